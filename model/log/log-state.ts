/**
 * The state of the log's model: the contents of the store, the requests under way, and the knowledge of each node.
 *
 * The state also records for every slot the commit that was written there first. No node sees this record; the properties
 * compare the views of nodes with it. A view is a prefix of the record, or a property is violated at the step at which the
 * view first differs; so a view is only the number of its last slot.
 *
 * A commit is a byte: a bit for each of its flushes, and above them how often the first of these was tried before.
 */
import { brokenRules, Model } from '../checker/model.ts';
import type { LogMutant, LogScope, Operation } from './scope.ts';
import { logMutants } from './scope.ts';

/** The state of a flush. */
export const Status = {
  idle: 0,
  /** A transaction that has read. */
  begun: 1,
  called: 2,
  acknowledged: 3,
  /** Its caller was told that the outcome is unknown; the process has its bytes. */
  unknown: 4,
  /** Its caller was told that the outcome is unknown, and the process that had its bytes has ended. */
  orphaned: 5,
  /** It failed for certain. */
  failed: 6,
  /** It was rejected: DuplicateKeyError or TransactionConflictError. */
  rejected: 7,
  /** Its process ended while it was under way. */
  dead: 8,
  /** Its caller asked, and was told that it was applied. */
  yes: 9,
  /** Its caller asked, and was told that it was not applied, nor will be. */
  no: 10,
} as const;

/** Fields of a node, as offsets within its part of the state. */
export const Field = {
  /** 0 down, 1 opening, 2 up. */
  up: 0,
  /** `appliedSeq` and `logFloor` of the newest Block 0 that the node has seen. */
  applied: 1,
  floor: 2,
  /** Last slot of its view. */
  tail: 3,
  writer: 4,
  /** The flushes of the writer's group. */
  group: 5,
  /** The commit that it puts, and the slot for it. */
  commit: 6,
  slot: 7,
  /** The contents of the slot as read; if the slot is dead, the commit's outcome. */
  seen: 8,
  /** Whether the commit was put before. */
  again: 9,
  reader: 10,
  /** How many slots the reader has read, and the first of them. */
  count: 11,
  first: 12,
  /** Whether the writer waits for the reader. */
  awaited: 13,
  merging: 14,
  /** The last slot that the merge applies, and the Block 0 that it expects. */
  target: 15,
  expectedApplied: 16,
  expectedFloor: 17,
  /** The floor that it writes. */
  carriedFloor: 18,
  asking: 19,
  /** The flush that is asked about, and the contents of its slot as read. */
  asked: 20,
  askedSeen: 21,
  /** The feed's step, the last slot that it has given out, and the commit that it has read in the next. */
  feed: 22,
  given: 23,
  fed: 24,
  /** The commits that the reader has read, a byte for each slot. */
  read: 25,
} as const;

export const FlushField = { status: 0, tries: 1, since: 2, slot: 3, commit: 4, told: 5 } as const;
export const flushBytes = 6;

/** Reports to a transaction while it waits: its key was written, or slots were passed over. */
export const Told = { wrote: 1, jumped: 2 } as const;

export abstract class LogState extends Model {
  readonly scope: LogScope;
  readonly broken: Readonly<Record<LogMutant, boolean>>;
  readonly nodes: number;
  readonly slots: number;
  readonly flushes: number;
  readonly flushMask: number;
  readonly delayedCount: number;
  readonly operations: readonly Operation[];
  readonly nodeOf: readonly number[];
  // Offsets of the fields that exist once.
  readonly applied = 0;
  readonly floor = 1;
  readonly refreshed = 2;
  readonly delays = 3;
  readonly crashes = 4;
  readonly refusals = 5;
  readonly timeouts = 6;
  readonly aborts = 7;
  readonly retries = 8;
  readonly slot0 = 9;
  readonly recorded0: number;
  readonly delayed0: number;
  readonly flush0: number;
  readonly node0: number;
  readonly nodeBytes: number;

  constructor(scope: LogScope, mutant: LogMutant | undefined) {
    const { nodes, slots, flushes, delays = 0, crashes = 0 } = scope;
    const delayedCount = delays + crashes;
    const nodeBytes = Field.read + slots;
    super(9 + 2 * slots + 2 * delayedCount + flushBytes * flushes.length + nodeBytes * nodes);
    this.scope = scope;
    this.broken = brokenRules(logMutants, mutant);
    this.nodes = nodes;
    this.slots = slots;
    this.flushes = flushes.length;
    this.flushMask = (1 << flushes.length) - 1;
    this.delayedCount = delayedCount;
    this.operations = flushes.map(({ operation }) => operation);
    this.nodeOf = flushes.map(({ node }) => node);
    this.recorded0 = this.slot0 + slots;
    this.delayed0 = this.recorded0 + slots;
    this.flush0 = this.delayed0 + 2 * delayedCount;
    this.node0 = this.flush0 + flushBytes * flushes.length;
    this.nodeBytes = nodeBytes;
  }

  start(): void {
    const { next, scope } = this;
    next.fill(0);
    next[this.delays] = scope.delays ?? 0;
    next[this.crashes] = scope.crashes ?? 0;
    next[this.refusals] = scope.refusals ?? 0;
    next[this.timeouts] = scope.timeouts ?? 0;
    next[this.aborts] = scope.aborts ?? 0;
    next[this.retries] = scope.retries ?? 0;
    for (let i = 0; i < this.nodes; i++) next[this.nodeAt(i) + Field.up] = 2;
  }

  protected get(s: Uint8Array, at: number): number {
    return s[at] as number;
  }

  protected nodeAt(node: number): number {
    return this.node0 + node * this.nodeBytes;
  }

  /** The commit in a slot; 0 if there is none. */
  protected stored(s: Uint8Array, slot: number): number {
    return slot > this.slots ? 0 : (s[this.slot0 + slot - 1] as number);
  }

  /** The commit that was first written in a slot, even if the slot was deleted. */
  protected recorded(s: Uint8Array, slot: number): number {
    return slot > this.slots ? 0 : (s[this.recorded0 + slot - 1] as number);
  }

  protected flushAt(flush: number): number {
    return this.flush0 + flush * flushBytes;
  }

  protected status(s: Uint8Array, flush: number): number {
    return s[this.flushAt(flush) + FlushField.status] as number;
  }

  protected tries(s: Uint8Array, flush: number): number {
    return s[this.flushAt(flush) + FlushField.tries] as number;
  }

  /** Slots in the log when a flush was called; for a transaction, the last slot of the view that it has read. */
  protected since(s: Uint8Array, flush: number): number {
    return s[this.flushAt(flush) + FlushField.since] as number;
  }

  protected told(s: Uint8Array, flush: number): number {
    return s[this.flushAt(flush) + FlushField.told] as number;
  }

  /** The slot and the commit of a flush whose outcome is unknown. */
  protected slotOf(s: Uint8Array, flush: number): number {
    return s[this.flushAt(flush) + FlushField.slot] as number;
  }

  protected commitOf(s: Uint8Array, flush: number): number {
    return s[this.flushAt(flush) + FlushField.commit] as number;
  }

  protected setStatus(n: Uint8Array, flush: number, status: number, slot = 0, commit = 0): void {
    const at = this.flushAt(flush);
    n[at + FlushField.status] = status;
    n[at + FlushField.slot] = slot;
    n[at + FlushField.commit] = commit;
    n[at + FlushField.told] = 0;
    if (status <= Status.called) return;
    n[this.refreshed] = this.get(n, this.refreshed) & ~(1 << flush);
    // Fields that are not needed any more are cleared, so that equal states look equal. A transaction's put may still land.
    const mayLand = status === Status.unknown || status === Status.orphaned || status === Status.dead;
    if (!mayLand || this.operations[flush] !== 'increment') n[at + FlushField.since] = 0;
  }

  protected call(n: Uint8Array, flush: number, since: number, tries: number): void {
    const at = this.flushAt(flush);
    n[at + FlushField.status] = Status.called;
    n[at + FlushField.since] = since;
    n[at + FlushField.tries] = tries;
  }

  protected beginTransaction(n: Uint8Array, flush: number, tail: number): void {
    const at = this.flushAt(flush);
    n[at + FlushField.status] = Status.begun;
    n[at + FlushField.since] = tail;
  }

  protected tell(n: Uint8Array, flush: number, what: number): void {
    const at = this.flushAt(flush) + FlushField.told;
    n[at] = this.get(n, at) | what;
  }

  /** How many slots hold commits. */
  protected length(s: Uint8Array): number {
    let length = 0;
    while (length < this.slots && s[this.recorded0 + length] !== 0) length++;
    return length;
  }

  /** Whether the key exists after a flush. */
  protected presentBy(flush: number): boolean {
    return this.operations[flush] !== 'delete';
  }

  /** Whether a flush changes anything where the key exists, or does not. */
  protected writes(flush: number, present: boolean): boolean {
    return this.operations[flush] !== 'delete' || present;
  }

  /** Whether the key exists after a commit. */
  protected presentAfter(commit: number, present: boolean): boolean {
    let after = present;
    for (let f = 0; f < this.flushes; f++) if ((commit >> f) & 1) after = this.presentBy(f);
    return after;
  }

  /** Whether the key exists in the state after a slot. */
  protected presentAt(s: Uint8Array, slot: number): boolean {
    let present = false;
    for (let at = 1; at <= slot; at++) present = this.presentAfter(this.recorded(s, at), present);
    return present;
  }

  /** Whether commits after slot `from`, up to `to`, have written the key. */
  protected wroteBetween(s: Uint8Array, from: number, to: number): boolean {
    let present = this.presentAt(s, from);
    for (let at = from + 1; at <= to; at++) {
      const commit = this.recorded(s, at);
      for (let f = 0; f < this.flushes; f++) {
        if (((commit >> f) & 1) === 0) continue;
        if (this.writes(f, present)) return true;
        present = this.presentBy(f);
      }
    }
    return false;
  }

  /** Whether the key was in the given condition at some time since slot `from`, between flushes of one commit too. */
  protected wasSince(s: Uint8Array, from: number, condition: boolean): boolean {
    let present = this.presentAt(s, from);
    if (present === condition) return true;
    for (let at = from + 1; at <= this.slots; at++) {
      const commit = this.recorded(s, at);
      for (let f = 0; f < this.flushes; f++) {
        if (((commit >> f) & 1) === 0) continue;
        present = this.presentBy(f);
        if (present === condition) return true;
      }
    }
    return false;
  }

  /** The slot that a flush has in the log; 0 if none. */
  protected placeOf(s: Uint8Array, flush: number): number {
    for (let at = 1; at <= this.slots; at++) if ((this.recorded(s, at) >> flush) & 1) return at;
    return 0;
  }

  /** A put reaches the store. True if it was written. */
  protected land(n: Uint8Array, slot: number, commit: number): boolean {
    const at = this.slot0 + slot - 1;
    if (n[at] !== 0 && !this.broken['slot-overwritten']) return false;
    n[at] = commit;
    if (n[this.recorded0 + slot - 1] === 0) this.#record(n, slot, commit);
    return true;
  }

  /** A commit is the first in its slot: that decides the slot. Checks every promise. */
  #record(n: Uint8Array, slot: number, commit: number): void {
    if (slot > 1 && this.recorded(n, slot - 1) === 0) {
      this.fail('I4', `Slot ${slot} is written although slot ${slot - 1} is free: the log has a gap.`);
    }
    let present = this.presentAt(n, slot - 1);
    let wroteBefore = false;
    for (let f = 0; f < this.flushes; f++) {
      if (((commit >> f) & 1) === 0) continue;
      this.#checkFlush(n, f, slot, commit);
      if (this.operations[f] === 'insert' && present) {
        this.fail('I5', `${this.flushName(f)} inserts a key that exists already.`);
      }
      if (this.operations[f] === 'increment' && (wroteBefore || this.wroteBetween(n, this.since(n, f), slot - 1))) {
        this.fail('I5', `${this.flushName(f)} writes what follows from a state that is out of date: a change is lost.`);
      }
      wroteBefore ||= this.writes(f, present);
      present = this.presentBy(f);
    }
    n[this.recorded0 + slot - 1] = commit;
  }

  #checkFlush(n: Uint8Array, f: number, slot: number, commit: number): void {
    const before = this.placeOf(n, f);
    if (before !== 0) this.fail('I3', `${this.flushName(f)} is applied twice, in slots ${before} and ${slot}.`);
    const status = this.status(n, f);
    const refused = status === Status.failed || status === Status.rejected || status === Status.no;
    const lowest = 31 - Math.clz32(commit & -commit);
    const isOlder = f === lowest && commit >> this.flushes < this.tries(n, f);
    if (refused || isOlder) {
      this.fail('I3', `${this.flushName(f)} is applied although its caller was told that it never will be.`);
    }
    for (let g = f + 1; g < this.flushes; g++) {
      if (this.nodeOf[g] !== this.nodeOf[f] || this.tries(n, g) > 0 || this.tries(n, f) > 0) continue;
      if (this.placeOf(n, g) !== 0) {
        this.fail('I4', `${this.flushName(f)} was called before ${this.flushName(g)}, and is applied after it.`);
      }
    }
  }

  /** A flush is told that it was applied. */
  protected acknowledge(n: Uint8Array, node: number, flush: number, slot: number, commit: number): void {
    const recorded = this.recorded(n, slot);
    if (recorded !== commit) {
      const whose = recorded === 0 ? 'nothing' : this.commitName(recorded);
      this.fail('I1', `${this.flushName(flush)} is acknowledged in slot ${slot}, but the log has ${whose} there.`);
    }
    if (this.get(n, this.nodeAt(node) + Field.tail) < slot) {
      this.fail('I7', `${this.flushName(flush)} is acknowledged, but the view of its own node does not show it.`);
    }
    this.setStatus(n, flush, this.status(n, flush) === Status.called ? Status.acknowledged : Status.yes);
  }

  /** A flush is told that it was not applied, nor will be. */
  protected refuse(n: Uint8Array, flush: number, status: number): void {
    const slot = this.placeOf(n, flush);
    if (slot !== 0) {
      this.fail('I3', `${this.flushName(flush)} is told that it was not applied, but it is, in slot ${slot}.`);
    }
    this.setStatus(n, flush, status);
  }

  /** A flush is rejected because of the state of its key. */
  protected reject(n: Uint8Array, flush: number): void {
    if (this.operations[flush] === 'insert' && !this.wasSince(n, this.since(n, flush), true)) {
      this.fail(
        'I5',
        `${this.flushName(flush)} gets a DuplicateKeyError, but there was no such key since it was called.`,
      );
    }
    this.refuse(n, flush, Status.rejected);
  }

  /** Keeps puts that are still on their way in order, so that equal states look equal. */
  protected addLoose(n: Uint8Array, slot: number, commit: number): boolean {
    const { delayed0, delayedCount } = this;
    for (let i = 0; i < delayedCount; i++) {
      const at = delayed0 + 2 * i;
      if (n[at] !== 0) continue;
      n[at] = slot;
      n[at + 1] = commit;
      for (let k = at; k > delayed0 && this.#delayedOrder(n, k) < this.#delayedOrder(n, k - 2); k -= 2) {
        for (let b = 0; b < 2; b++) {
          const moved = this.get(n, k + b);
          n[k + b] = this.get(n, k - 2 + b);
          n[k - 2 + b] = moved;
        }
      }
      return true;
    }
    return false;
  }

  #delayedOrder(n: Uint8Array, at: number): number {
    return this.get(n, at) * 256 + this.get(n, at + 1);
  }

  protected removeLoose(n: Uint8Array, index: number): void {
    const { delayed0, delayedCount } = this;
    for (let at = delayed0 + 2 * index; at < delayed0 + 2 * delayedCount; at++) {
      n[at] = at + 2 < delayed0 + 2 * delayedCount ? this.get(n, at + 2) : 0;
    }
  }

  flushName(flush: number): string {
    return `flush ${flush + 1} (${this.operations[flush]} by ${nodeName(this.nodeOf[flush] as number)})`;
  }

  commitName(commit: number): string {
    if (commit === 0) return 'nothing';
    const flushes: number[] = [];
    for (let f = 0; f < this.flushes; f++) if ((commit >> f) & 1) flushes.push(f + 1);
    const again = commit >> this.flushes > 0 ? ', tried again' : '';
    return `the commit of flush ${flushes.join(' and ')}${again}`;
  }
}

export function nodeName(node: number): string {
  return String.fromCharCode(65 + node);
}
