/**
 * The model of the log: two or three nodes that flush, follow, merge, crash and come back, a store, and somebody who
 * trims the log at any moment. There are no clocks: a step that may be taken later may be taken now.
 */
import { Act, logActions, Outcome } from './actions.ts';
import { Writer } from './follower-steps.ts';
import { Field, nodeName, Status } from './log-state.ts';
import { counterparts, NodeSymmetry } from './node-symmetry.ts';
import type { LogMutant, LogScope } from './scope.ts';
import { FeedSteps } from './feed-steps.ts';
import { CommitOutcome } from './writer-steps.ts';

const Merging = { idle: 0, sent: 1, orphaned: 2 } as const;
const Asking = { idle: 0, put: 1, read: 2, confirm: 3 } as const;

export class LogModel extends FeedSteps {
  readonly actions = logActions;
  readonly #symmetry: NodeSymmetry | undefined;

  constructor(scope: LogScope, mutant: LogMutant | undefined) {
    super(scope, mutant);
    const others = counterparts(scope);
    // A mutant is named in the trace.
    this.usesSymmetry = others !== undefined && mutant === undefined;
    this.#symmetry = others && new NodeSymmetry(this, others);
  }

  protected override emit(action: number, a = 0, b = 0, c = 0): void {
    if (this.usesSymmetry) this.#symmetry?.normalise(this.next);
    super.emit(action, a, b, c);
  }

  expand(): void {
    for (let f = 0; f < this.flushes; f++) this.#expandFlush(f);
    for (let node = 0; node < this.nodes; node++) {
      this.expandWriter(node);
      this.expandReader(node);
      this.expandFeed(node);
      this.#expandMerge(node);
      this.#expandAsking(node);
      this.#expandCrash(node);
    }
    this.#expandStore();
  }

  #expandFlush(flush: number): void {
    const { state } = this;
    const node = this.nodeOf[flush] as number;
    const at = this.nodeAt(node);
    if (state[at + Field.up] !== 2) return;
    const status = this.status(state, flush);
    if (status === Status.idle && this.#isNext(flush)) {
      const n = this.begin();
      if (this.operations[flush] === 'increment') {
        this.beginTransaction(n, flush, this.get(n, at + Field.tail));
        this.emit(Act.begin, node, flush);
      } else {
        this.call(n, flush, this.length(n), 0);
        this.emit(Act.call, node, flush);
      }
    } else if (status === Status.begun) {
      const n = this.begin();
      this.call(n, flush, this.since(n, flush), 0);
      this.emit(Act.call, node, flush);
    } else if (status === Status.called && this.get(state, this.aborts) > 0) this.#expandAbort(flush, node);
    else this.#expandAgain(flush, node, status);
  }

  /** Applications call the flushes of their node in order. */
  #isNext(flush: number): boolean {
    for (let f = flush - 1; f >= 0; f--) {
      if (this.nodeOf[f] !== this.nodeOf[flush]) continue;
      const status = this.status(this.state, f);
      return status !== Status.idle && status !== Status.begun;
    }
    return true;
  }

  #expandAbort(flush: number, node: number): void {
    const at = this.nodeAt(node);
    const commit = this.get(this.state, at + Field.commit);
    const n = this.begin();
    n[this.aborts] = this.get(n, this.aborts) - 1;
    if ((commit >> flush) & 1) this.setStatus(n, flush, Status.unknown, this.get(n, at + Field.slot), commit);
    else this.refuse(n, flush, Status.failed);
    this.emit(Act.abort, node, flush);
  }

  /** A batch is flushed again, once it is known that its old commit was not applied. */
  #expandAgain(flush: number, node: number, status: number): void {
    const { state, broken } = this;
    const isSettled = status === Status.no || (broken['give-up-then-retry'] && status === Status.unknown);
    const canRetry = this.operations[flush] !== 'increment' && this.tries(state, flush) === 0;
    if (!isSettled || !canRetry || this.get(state, this.retries) === 0) return;
    const n = this.begin();
    n[this.retries] = this.get(n, this.retries) - 1;
    this.setStatus(n, flush, Status.idle);
    this.call(n, flush, this.length(n), 1);
    this.emit(Act['flush again'], node, flush);
  }

  #expandMerge(node: number): void {
    const { state, broken } = this;
    const at = this.nodeAt(node);
    const isUp = state[at + Field.up] === 2;
    const phase = this.get(state, at + Field.merging);
    const known = this.get(state, at + Field.applied);
    if (phase === Merging.idle) {
      if (!isUp || this.get(state, at + Field.tail) <= known) return;
      const n = this.begin();
      n[at + Field.merging] = Merging.sent;
      n[at + Field.target] = this.get(n, at + Field.tail);
      n[at + Field.expectedApplied] = known;
      n[at + Field.expectedFloor] = this.get(n, at + Field.floor);
      n[at + Field.carriedFloor] = this.get(n, at + Field.floor);
      this.emit(Act.merge, node, this.get(n, at + Field.target));
      return;
    }
    const expected = this.get(state, at + Field.expectedApplied);
    const isExpected = expected === state[this.applied] && state[at + Field.expectedFloor] === state[this.floor];
    const n = this.begin();
    if (isExpected || broken['blind-block0']) {
      const target = this.get(n, at + Field.target);
      if (target < this.get(n, this.applied)) {
        this.fail('I1', `Block 0 goes back: commits after slot ${target} are in the blocks no more.`);
      }
      n[this.applied] = target;
      n[this.floor] = this.get(n, at + Field.carriedFloor);
      this.#endMerge(n, node);
      if (!broken['blind-block0']) this.#dropLostMerges(n);
      if (phase === Merging.sent) this.see(n, node);
      this.emit(Act.replace, node);
    } else {
      // Only bookkeeping has changed: the same blocks are offered on the new Block 0.
      n[at + Field.expectedFloor] = this.get(n, this.floor);
      if (!broken['merge-carries-floor']) n[at + Field.carriedFloor] = this.get(n, this.floor);
      this.emit(Act['replace again'], node);
    }
  }

  /**
   * Merges on a generation that is over can only be dropped, whenever that is, and so are writes of Block 0 that nobody
   * offers again: they are gone at once, so that fewer states differ.
   */
  #dropLostMerges(n: Uint8Array): void {
    for (let node = 0; node < this.nodes; node++) {
      const at = this.nodeAt(node);
      const isSame = n[at + Field.expectedApplied] === n[this.applied];
      const isExpected = isSame && n[at + Field.expectedFloor] === n[this.floor];
      const canWin = n[at + Field.merging] === Merging.sent ? isSame : isExpected;
      if (n[at + Field.merging] !== Merging.idle && !canWin) this.#endMerge(n, node);
    }
  }

  #endMerge(n: Uint8Array, node: number): void {
    const at = this.nodeAt(node);
    for (let field: number = Field.merging; field <= Field.carriedFloor; field++) n[at + field] = 0;
  }

  /** Somebody asks for the outcome of a flush: LogWriter.resolve(). */
  #expandAsking(node: number): void {
    const { state } = this;
    const at = this.nodeAt(node);
    if (state[at + Field.up] !== 2) return;
    const phase = this.get(state, at + Field.asking);
    const flush = this.get(state, at + Field.asked);
    if (phase === Asking.idle) {
      for (let f = 0; f < this.flushes; f++) if (this.nodeOf[f] === node) this.#expandAsk(node, f);
    } else if (phase === Asking.put) this.#expandPutAgain(node, flush);
    else if (phase === Asking.read) {
      const n = this.begin();
      const slot = this.slotOf(n, flush);
      const seen = this.stored(n, slot);
      n[at + Field.askedSeen] = seen;
      n[at + Field.asking] = Asking.confirm;
      if (this.broken['resolve-without-floor'] && seen !== 0) this.#tell(n, node, this.#compare(n, flush, seen));
      this.emit(Act['read asked'], node, flush);
    } else this.#expandTell(node, flush);
  }

  #expandAsk(node: number, flush: number): void {
    const { state } = this;
    const at = this.nodeAt(node);
    const status = this.status(state, flush);
    if (status !== Status.unknown && status !== Status.orphaned) return;
    const writer = this.get(state, at + Field.writer);
    const isUnderWay = writer >= Writer.put && state[at + Field.commit] === this.commitOf(state, flush);
    // Never twice at once: the first put may yet be refused, which is definite only while there is no other put.
    if (isUnderWay && !this.broken['resolved-twice']) return;
    const n = this.begin();
    n[at + Field.asking] = status === Status.unknown ? Asking.put : Asking.read;
    n[at + Field.asked] = flush;
    this.emit(Act.ask, node, flush);
  }

  #expandPutAgain(node: number, flush: number): void {
    const { state } = this;
    const at = this.nodeAt(node);
    const slot = this.slotOf(state, flush);
    const commit = this.commitOf(state, flush);
    let n = this.begin();
    const isWritten = this.land(n, slot, commit);
    n[at + Field.asking] = isWritten ? Asking.confirm : Asking.read;
    if (isWritten) n[at + Field.askedSeen] = commit;
    this.emit(Act['put again'], node, flush, isWritten ? Outcome.written : Outcome.taken);
    if (this.get(state, this.delays) === 0) return;
    n = this.begin();
    n[this.delays] = this.get(n, this.delays) - 1;
    n[at + Field.asking] = Asking.read;
    if (this.addLoose(n, slot, commit)) this.emit(Act['put again'], node, flush, Outcome.onItsWay);
  }

  #compare(n: Uint8Array, flush: number, seen: number): number {
    return seen === this.commitOf(n, flush) ? CommitOutcome.applied : CommitOutcome.lost;
  }

  #expandTell(node: number, flush: number): void {
    const { state } = this;
    const at = this.nodeAt(node);
    const slot = this.slotOf(state, flush);
    const commit = this.commitOf(state, flush);
    const isOrphaned = this.status(state, flush) === Status.orphaned;
    const seen = this.get(state, at + Field.askedSeen);
    const n = this.begin();
    let outcome: number = CommitOutcome.unknown;
    if (this.get(n, this.floor) >= slot) outcome = this.deadSlotOutcome(n, slot, commit);
    else if (seen !== 0) outcome = this.#compare(n, flush, seen);
    else if (this.broken['missing-means-no']) outcome = CommitOutcome.lost;
    // A process that has the bytes puts them again. Without them it cannot tell, since a delayed put may still land.
    else if (!isOrphaned) outcome = CommitOutcome.open;
    if (!isOrphaned) this.advance(n, node, slot, seen === 0 ? 0 : 1, Field.askedSeen);
    if (outcome === CommitOutcome.open) {
      n[at + Field.asking] = Asking.put;
      this.emit(Act.tell, node, flush, CommitOutcome.open);
      const given = this.begin();
      this.#tell(given, node, CommitOutcome.unknown);
      this.emit(Act.tell, node, flush, CommitOutcome.unknown);
      return;
    }
    this.#tell(n, node, outcome);
    this.emit(Act.tell, node, flush, outcome);
  }

  #tell(n: Uint8Array, node: number, outcome: number): void {
    const at = this.nodeAt(node);
    const flush = this.get(n, at + Field.asked);
    for (const field of [Field.asking, Field.asked, Field.askedSeen]) n[at + field] = 0;
    const status = this.status(n, flush);
    if (status !== Status.unknown && status !== Status.orphaned) return;
    if (outcome === CommitOutcome.applied) {
      // A node that is told that it was applied must see it.
      if (this.get(n, at + Field.tail) < this.slotOf(n, flush)) this.see(n, node);
      const slot = this.slotOf(n, flush);
      if (this.recorded(n, slot) !== this.commitOf(n, flush)) {
        this.fail('I1', `The caller of ${this.flushName(flush)} is told that it was applied, but it is not.`);
      }
      this.setStatus(n, flush, Status.yes);
    } else if (outcome === CommitOutcome.lost) this.refuse(n, flush, Status.no);
  }

  #expandCrash(node: number): void {
    const { state } = this;
    const at = this.nodeAt(node);
    if (state[at + Field.up] === 0) {
      const n = this.begin();
      n[at + Field.up] = 1;
      n[at + Field.applied] = this.get(n, this.applied);
      n[at + Field.floor] = this.get(n, this.floor);
      n[at + Field.tail] = this.get(n, this.applied);
      this.beginToRead(n, node, false);
      this.emit(Act.open, node);
      return;
    }
    if (this.get(state, this.crashes) === 0) return;
    let n = this.begin();
    this.#crash(n, node);
    this.emit(Act.crash, node, 0);
    n = this.begin();
    const asked = this.get(state, at + Field.asked);
    let isLoose = false;
    if (state[at + Field.writer] === Writer.put) {
      isLoose = this.addLoose(n, this.get(state, at + Field.slot), this.get(state, at + Field.commit));
    } else if (state[at + Field.asking] === Asking.put) {
      isLoose = this.addLoose(n, this.slotOf(state, asked), this.commitOf(state, asked));
    }
    if (!isLoose) return;
    this.#crash(n, node);
    this.emit(Act.crash, node, 1);
  }

  #crash(n: Uint8Array, node: number): void {
    const at = this.nodeAt(node);
    n[this.crashes] = this.get(n, this.crashes) - 1;
    for (let field = 0; field < this.nodeBytes; field++) {
      // The write of Block 0 may still be on its way.
      if (field < Field.merging || field > Field.carriedFloor) n[at + field] = 0;
    }
    if (n[at + Field.merging] === Merging.sent) n[at + Field.merging] = Merging.orphaned;
    for (let f = 0; f < this.flushes; f++) {
      if (this.nodeOf[f] !== node) continue;
      const status = this.status(n, f);
      if (status === Status.begun || status === Status.called) this.setStatus(n, f, Status.dead);
      if (status === Status.unknown) {
        this.setStatus(n, f, Status.orphaned, this.slotOf(n, f), this.commitOf(n, f));
      }
    }
  }

  /** Trimming, by any process, and the requests that the network still carries. */
  #expandStore(): void {
    const { state, broken } = this;
    const applied = this.get(state, this.applied);
    const floor = this.get(state, this.floor);
    const highest = broken['trim-past-applied'] ? Math.min(applied + 1, this.slots) : applied;
    for (let to = floor + 1; to <= highest && !broken['trim-without-floor']; to++) {
      const n = this.begin();
      n[this.floor] = to;
      if (!broken['blind-block0']) this.#dropLostMerges(n);
      this.emit(Act['raise the floor'], to);
    }
    const deletable = broken['trim-before-floor'] || broken['trim-without-floor'] ? applied : floor;
    for (let slot = 1; slot <= deletable; slot++) {
      if (this.stored(state, slot) === 0) continue;
      const n = this.begin();
      if (slot > applied && this.stored(n, slot) === this.recorded(n, slot)) {
        this.fail('I1', `Slot ${slot} is deleted, and what it holds is not in the blocks yet.`);
      }
      n[this.slot0 + slot - 1] = 0;
      this.emit(Act['delete a slot'], slot);
    }
    for (let i = 0; i < this.delayedCount; i++) {
      const slot = this.get(state, this.delayed0 + 2 * i);
      if (slot === 0) break;
      const n = this.begin();
      this.land(n, slot, this.get(n, this.delayed0 + 2 * i + 1));
      this.removeLoose(n, i);
      this.emit(Act['late put'], slot);
    }
  }

  describeState(s: Uint8Array): string {
    const slots: string[] = [];
    for (let slot = 1; slot <= this.slots; slot++) slots.push(this.#commit(this.stored(s, slot)));
    const delayed: string[] = [];
    for (let i = 0; i < this.delayedCount; i++) {
      const slot = this.get(s, this.delayed0 + 2 * i);
      if (slot !== 0) delayed.push(`${this.#commit(this.get(s, this.delayed0 + 2 * i + 1))} to ${slot}`);
    }
    const tails: string[] = [];
    for (let node = 0; node < this.nodes; node++) {
      tails.push(`${nodeName(node)} ${s[this.nodeAt(node) + Field.tail]}`);
    }
    const onTheWay = delayed.length === 0 ? '' : `, on the way: ${delayed.join(', ')}`;
    const root = `applied ${s[this.applied]}, floor ${s[this.floor]}`;
    return `Block 0: ${root}; slots: ${slots.join(' ')}${onTheWay}; tails: ${tails.join(', ')}`;
  }

  #commit(commit: number): string {
    if (commit === 0) return '-';
    const flushes: number[] = [];
    for (let f = 0; f < this.flushes; f++) if ((commit >> f) & 1) flushes.push(f + 1);
    return `[${flushes.join('+')}${commit >> this.flushes > 0 ? '’' : ''}]`;
  }
}
