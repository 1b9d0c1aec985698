/** How a node follows the log (src/log/log-follower.ts). */
import { Act } from './actions.ts';
import { Field, LogState, Status, Told } from './log-state.ts';

/** The steps of the reader. */
const Reader = { idle: 0, reading: 1, confirming: 2 } as const;
/** The steps of the writer. */
export const Writer = { idle: 0, group: 1, refresh: 2, put: 3, read: 4, confirm: 5, dead: 6 } as const;

export abstract class FollowerSteps extends LogState {
  /** The writer goes on, whose refresh has come to its end. */
  protected abstract refreshEnded(n: Uint8Array, node: number): void;

  /** Takes note of the present Block 0. */
  protected see(n: Uint8Array, node: number): void {
    this.advance(n, node, 0, 0, 0);
  }

  /**
   * Takes note of the present Block 0, and moves the view over slots that were read: `count` of them from `first` on, in
   * the node's fields from `field` on. Transactions learn of the commits read, even if Block 0 has applied them already,
   * and of slots that were not read.
   */
  protected advance(n: Uint8Array, node: number, first: number, count: number, field: number): void {
    const at = this.nodeAt(node);
    const tail = this.get(n, at + Field.tail);
    this.#noteBlock0(n, node);
    let told = tail;
    for (let i = 0; i < count; i++) {
      const slot = first + i;
      this.show(n, node, slot, this.get(n, at + field + i));
      if (slot <= this.get(n, at + Field.floor) || slot !== told + 1) continue;
      told = slot;
      if (this.wroteBetween(n, slot - 1, slot)) this.#tellTransactions(n, node, Told.wrote);
    }
    if (this.get(n, at + Field.tail) > told) this.#tellTransactions(n, node, Told.jumped);
  }

  #noteBlock0(n: Uint8Array, node: number): void {
    const at = this.nodeAt(node);
    const isEarly = this.broken['reader-block0-first'] && n[at + Field.reader] === Reader.confirming;
    const isUnchecked = this.broken['opening-without-check'] && n[at + Field.up] === 1;
    const isBefore = this.broken['check-before-put'] && n[at + Field.writer] === Writer.confirm;
    if (isEarly || isUnchecked || isBefore) return;
    const applied = this.get(n, this.applied);
    if (applied > this.get(n, at + Field.applied)) n[at + Field.applied] = applied;
    if (this.get(n, this.floor) > this.get(n, at + Field.floor)) n[at + Field.floor] = this.get(n, this.floor);
    if (applied > this.get(n, at + Field.tail)) n[at + Field.tail] = applied;
  }

  /** Moves the view over the commit of the next slot, unless Block 0 shows that the slot may be dead. */
  protected show(n: Uint8Array, node: number, slot: number, commit: number): void {
    const at = this.nodeAt(node);
    if (slot <= this.get(n, at + Field.floor) || slot !== this.get(n, at + Field.tail) + 1) return;
    const recorded = this.recorded(n, slot);
    if (recorded !== commit) {
      this.fail('I4', `A view shows ${this.commitName(commit)} in slot ${slot}, others ${this.commitName(recorded)}.`);
    }
    n[at + Field.tail] = slot;
  }

  #tellTransactions(n: Uint8Array, node: number, what: number): void {
    for (let f = 0; f < this.flushes; f++) {
      if (this.nodeOf[f] !== node || this.operations[f] !== 'increment') continue;
      const status = this.status(n, f);
      if (status === Status.begun || status === Status.called) this.tell(n, f, what);
    }
  }

  protected isReading(s: Uint8Array, node: number): boolean {
    return s[this.nodeAt(node) + Field.reader] !== Reader.idle;
  }

  /** Begins to read the slots after the tail. */
  protected beginToRead(n: Uint8Array, node: number, awaited: boolean): void {
    const at = this.nodeAt(node);
    this.#forget(n, node);
    n[at + Field.reader] = Reader.reading;
    n[at + Field.first] = this.get(n, at + Field.tail) + 1;
    n[at + Field.awaited] = awaited ? 1 : 0;
    if (this.broken['reader-block0-first']) this.see(n, node);
    if (n[at + Field.up] === 2 && this.scope.oneByOne !== true) this.#read(n, node);
  }

  /** Reads the slots that exist after the tail. */
  #read(n: Uint8Array, node: number): void {
    const at = this.nodeAt(node);
    do this.#readOne(n, node);
    while (this.scope.oneByOne !== true && n[at + Field.reader] === Reader.reading);
  }

  /** Reads the next slot. */
  #readOne(n: Uint8Array, node: number): void {
    const at = this.nodeAt(node);
    const count = this.get(n, at + Field.count);
    const slot = this.get(n, at + Field.first) + count;
    const commit = this.stored(n, slot);
    if (commit !== 0) {
      n[at + Field.read + count] = commit;
      n[at + Field.count] = count + 1;
      if (this.broken['put-from-unconfirmed']) this.show(n, node, slot, commit);
      return;
    }
    // A lone missing slot needs no second look where a database is opened: the view is Block 0's.
    if (n[at + Field.up] === 1 && count === 0) this.#end(n, node);
    else n[at + Field.reader] = Reader.confirming;
  }

  protected expandReader(node: number): void {
    const { state } = this;
    const at = this.nodeAt(node);
    const phase = this.get(state, at + Field.reader);
    if (phase === Reader.reading) {
      const n = this.begin();
      this.#read(n, node);
      this.emit(Act['read on'], node, this.get(state, at + Field.first) + this.get(state, at + Field.count));
    } else if (phase === Reader.confirming) {
      const n = this.begin();
      this.#catchUp(n, node);
      this.emit(Act['catch up'], node);
    } else if (state[at + Field.up] === 2 && this.#mayPoll(node)) {
      const n = this.begin();
      this.beginToRead(n, node, false);
      this.emit(Act.read, node, this.get(n, at + Field.first));
    }
  }

  /** A turn that would find nothing at all is left out, unless the scope asks for it. */
  #mayPoll(node: number): boolean {
    const { state } = this;
    const { polling = 'never' } = this.scope;
    if (polling !== 'useful') return polling === 'always';
    const at = this.nodeAt(node);
    const isOld = state[at + Field.applied] !== state[this.applied] || state[at + Field.floor] !== state[this.floor];
    return isOld || this.stored(state, this.get(state, at + Field.tail) + 1) !== 0;
  }

  /** Confirms the slots read by Block 0, and reads on if Block 0 has moved past them. */
  #catchUp(n: Uint8Array, node: number): void {
    const at = this.nodeAt(node);
    const first = this.get(n, at + Field.first);
    const count = this.get(n, at + Field.count);
    this.advance(n, node, first, count, Field.read);
    if (this.get(n, at + Field.applied) >= first + count) {
      this.beginToRead(n, node, n[at + Field.awaited] === 1);
    } else this.#end(n, node);
  }

  #end(n: Uint8Array, node: number): void {
    const at = this.nodeAt(node);
    const awaited = n[at + Field.awaited] === 1;
    this.#forget(n, node);
    if (n[at + Field.up] === 1) n[at + Field.up] = 2;
    if (awaited) this.refreshEnded(n, node);
  }

  #forget(n: Uint8Array, node: number): void {
    const at = this.nodeAt(node);
    for (const field of [Field.reader, Field.count, Field.first, Field.awaited]) n[at + field] = 0;
    for (let i = 0; i < this.slots; i++) n[at + Field.read + i] = 0;
  }
}
