/**
 * The model of dropped tables: nodes that register one table, write to it and drop it, while commits are merged and drops are forgotten. The
 * table is there at first. No commit holds rows from a registration that was made before a drop in front of that commit.
 */
import { actionInfos, actionNumbers, brokenRules, Model } from '../checker/model.ts';
import type { ActionEntry } from '../checker/model.ts';
import type { DropMutant, DropScope } from './scope.ts';
import { dropMutants } from './scope.ts';

const Phase = { idle: 0, writing: 1, dropping: 2 } as const;
/** `registered`: where the registration counts from, and one; `since`: the tail that its node showed then, and one. */
const Field = { tail: 0, registered: 1, since: 2, refused: 3, phase: 4, slot: 5 } as const;
const nodeBytes = 6;
/** What a slot holds: nothing, a drop, or rows, as `since` of their registration and this. */
const drop = 1;
const rows = 1;

const dropped = 'src/catalog/dropped-tables.ts';
const nodeName = (node: number): string => String.fromCharCode(65 + node);

const list = [
  ['register', [dropped, 'A registration after a drop'], (a, b) => `${nodeName(a)}: registers the table at ${b}`],
  [
    'write',
    ['src/batch/flush.ts', 'this.#context.dropped.refuseOn('],
    (a, b) => `${nodeName(a)}: sends rows to slot ${b}`,
  ],
  ['drop', [dropped, 'export class DroppedTables'], (a, b) => `${nodeName(a)}: sends a drop to slot ${b}`],
  [
    'put',
    ['src/log/log-writer.ts', 'await log.put(slot'],
    (a, b, c) => `${nodeName(a)}: its put for slot ${b} ${c === 1 ? 'is written' : 'finds something in the slot'}`,
  ],
  ['look', [dropped, 'follow(view: View'], (a, b) => `${nodeName(a)}: reads Block 0 and the log up to ${b}`],
  ['merge', ['src/merge/merger.ts', 'async #merge('], (a) => `somebody merges up to slot ${a}`],
  ['forget', [dropped, "'forgotten'"], (a) => `Block 0 forgets the drop in slot ${a}, after many of other tables`],
] as const satisfies readonly ActionEntry[];

const Act = actionNumbers(list);

export class DropModel extends Model {
  readonly actions = actionInfos(list);
  readonly scope: DropScope;
  readonly #broken: Readonly<Record<DropMutant, boolean>>;
  readonly #applied = 0;
  /** The drop that Block 0 lists; 0 for none. */
  readonly #listed = 1;
  /** The last drop that it has forgotten. */
  readonly #forgotten = 2;
  readonly #length = 3;

  constructor(scope: DropScope, mutant: DropMutant | undefined) {
    super(4 + scope.slots + nodeBytes * scope.nodes);
    this.scope = scope;
    this.#broken = brokenRules(dropMutants, mutant);
  }

  start(): void {
    this.next.fill(0);
  }

  #get(s: Uint8Array, at: number): number {
    return s[at] as number;
  }

  #stored(s: Uint8Array, slot: number): number {
    return this.#get(s, 3 + slot);
  }

  #nodeAt(node: number): number {
    return 4 + this.scope.slots + node * nodeBytes;
  }

  /** The last drop after a slot, up to another one; 0 if there is none. */
  #lastDrop(s: Uint8Array, after: number, to: number): number {
    for (let slot = to; slot > after; slot--) if (this.#stored(s, slot) === drop) return slot;
    return 0;
  }

  /** Whether the table is there after a slot. */
  #isThere(s: Uint8Array, slot: number): boolean {
    const last = this.#lastDrop(s, 0, slot);
    return last === 0 || last < slot;
  }

  expand(): void {
    for (let node = 0; node < this.scope.nodes; node++) this.#expandNode(node);
    this.#expandStore();
  }

  #expandNode(node: number): void {
    const { state, scope } = this;
    const at = this.#nodeAt(node);
    const tail = this.#get(state, at + Field.tail);
    if (state[at + Field.phase] !== Phase.idle) {
      this.#put(node, at);
      return;
    }
    if (tail < this.#get(state, this.#length)) {
      const n = this.begin();
      this.#see(n, at);
      this.emit(Act.look, node, this.#get(n, at + Field.tail));
    }
    if (state[at + Field.registered] === 0 || state[at + Field.refused] === 1) {
      const n = this.begin();
      n[at + Field.since] = tail + 1;
      n[at + Field.registered] = (this.#broken['registered-at-newest'] ? this.#get(n, this.#length) : tail) + 1;
      n[at + Field.refused] = 0;
      this.emit(Act.register, node, tail);
    }
    if (tail === scope.slots) return;
    if (state[at + Field.registered] !== 0 && state[at + Field.refused] === 0) {
      const n = this.begin();
      n[at + Field.phase] = Phase.writing;
      n[at + Field.slot] = tail + 1;
      this.emit(Act.write, node, tail + 1);
    }
    if (!this.#isThere(state, tail)) return;
    const n = this.begin();
    n[at + Field.phase] = Phase.dropping;
    n[at + Field.slot] = tail + 1;
    this.emit(Act.drop, node, tail + 1);
  }

  /** The view of a node moves to the end of the log, and its registration ends if a drop shows. */
  #see(n: Uint8Array, at: number): void {
    const before = this.#get(n, at + Field.tail);
    const applied = this.#get(n, this.#applied);
    const length = this.#get(n, this.#length);
    // Slots that are merged are not read any more.
    let last = this.#lastDrop(n, Math.max(before, applied), length);
    if (last === 0) last = this.#get(n, this.#listed);
    const counts = this.#get(n, at + Field.registered) - 1;
    let isDropped = last > Math.max(before, counts);
    const mayBeForgotten = this.#get(n, this.#forgotten) > before && !this.#broken['forgotten-not-noticed'];
    if (mayBeForgotten && this.#isThere(n, before) && !this.#isThere(n, applied)) isDropped = true;
    if (isDropped && counts >= 0) n[at + Field.refused] = 1;
    n[at + Field.tail] = length;
  }

  #put(node: number, at: number): void {
    const n = this.begin();
    const slot = this.#get(n, at + Field.slot);
    const isFree = this.#get(n, this.#length) < slot;
    if (isFree) this.#land(n, node, at, slot);
    const isWriting = n[at + Field.phase] === Phase.writing;
    this.#see(n, at);
    const next = this.#get(n, at + Field.tail) + 1;
    const goesOn = !isFree && isWriting && this.#broken['not-checked-after-loss'] && next <= this.scope.slots;
    if (goesOn) n[at + Field.slot] = next;
    else for (const field of [Field.phase, Field.slot]) n[at + field] = 0;
    this.emit(Act.put, node, slot, isFree ? 1 : 0);
  }

  #land(n: Uint8Array, node: number, at: number, slot: number): void {
    n[this.#length] = slot;
    const isDrop = n[at + Field.phase] === Phase.dropping;
    const since = this.#get(n, at + Field.since) - 1;
    n[3 + slot] = isDrop ? drop : rows + since + 1;
    const last = isDrop ? 0 : this.#lastDrop(n, since, slot - 1);
    if (last === 0) return;
    // Where the table was not there, a registration may outlive a drop that is forgotten: it writes nothing of the old table.
    if (last <= this.#get(n, this.#forgotten) && !this.#isThere(n, since)) return;
    this.fail(
      'dropped tables',
      `${nodeName(node)} writes slot ${slot} as registered at ${since}, behind the drop in ${last}.`,
    );
  }

  #expandStore(): void {
    const { state } = this;
    const length = this.#get(state, this.#length);
    if (this.#get(state, this.#applied) < length) {
      const n = this.begin();
      const before = this.#get(n, this.#applied);
      const last = this.#lastDrop(n, before, length);
      n[this.#applied] = length;
      if (last > 0 && !this.#broken['drops-not-listed']) n[this.#listed] = last;
      // A table that comes back may have been dropped at the last slot that is forgotten.
      const isBack = n[this.#listed] === 0 && this.#isThere(n, length) && !this.#isThere(n, before);
      if (isBack && !this.#broken['back-without-drop']) n[this.#listed] = this.#get(n, this.#forgotten);
      this.emit(Act.merge, length);
    }
    // The drop of a table that is there again is kept with the table.
    const listed = this.#get(state, this.#listed);
    if (listed === 0 || this.#isThere(state, this.#get(state, this.#applied))) return;
    const n = this.begin();
    n[this.#forgotten] = listed;
    n[this.#listed] = 0;
    this.emit(Act.forget, listed);
  }

  describeState(s: Uint8Array): string {
    const slots: string[] = [];
    for (let slot = 1; slot <= this.scope.slots; slot++) {
      const stored = this.#stored(s, slot);
      slots.push(stored === 0 ? '-' : stored === drop ? 'drop' : `rows@${stored - rows - 1}`);
    }
    const nodes: string[] = [];
    for (let node = 0; node < this.scope.nodes; node++) {
      const at = this.#nodeAt(node);
      const registered = s[at + Field.registered] === 0 ? '' : ` registered at ${this.#get(s, at + Field.since) - 1}`;
      nodes.push(
        `${nodeName(node)} at ${s[at + Field.tail]}${registered}${s[at + Field.refused] === 1 ? ', refused' : ''}`,
      );
    }
    return `Block 0: applied ${s[this.#applied]}, drop ${s[this.#listed]}, forgotten ${s[this.#forgotten]}; slots: ${slots.join(' ')}; ${nodes.join('; ')}`;
  }
}
