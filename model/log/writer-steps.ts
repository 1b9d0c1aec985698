/** How a node writes to the log: groups, slots and outcomes of puts (src/log/log-writer.ts, src/log/commit-outcome.ts). */
import { Act, Outcome } from './actions.ts';
import { FollowerSteps, Writer } from './follower-steps.ts';
import { Field, Status, Told } from './log-state.ts';

/** Whether a commit has its slot. */
export const CommitOutcome = { open: 0, applied: 1, lost: 2, unknown: 3 } as const;

export abstract class WriterSteps extends FollowerSteps {
  protected expandWriter(node: number): void {
    const { state } = this;
    const at = this.nodeAt(node);
    if (state[at + Field.up] !== 2) return;
    switch (state[at + Field.writer]) {
      case Writer.idle:
      case Writer.group:
        this.#expandPrepare(node);
        break;
      case Writer.refresh:
      case Writer.dead:
        this.#expandRefresh(node);
        break;
      case Writer.put:
        this.#expandPut(node);
        break;
      case Writer.read: {
        const n = this.begin();
        n[at + Field.seen] = this.stored(n, this.get(n, at + Field.slot));
        n[at + Field.writer] = Writer.confirm;
        if (this.broken['no-check-after-own'] && this.#isOwn(n, node)) this.#won(n, node);
        else if (this.broken['lost-without-check'] && n[at + Field.seen] !== 0 && !this.#isOwn(n, node)) {
          this.show(n, node, this.get(n, at + Field.slot), this.get(n, at + Field.seen));
          this.#lost(n, node);
        }
        this.emit(Act['read own slot'], node, this.get(state, at + Field.slot));
        this.#expandTimeout(node);
        break;
      }
      default:
        this.#expandConfirm(node);
        this.#expandTimeout(node);
    }
  }

  /** Flushes of a node that wait, as bits. */
  #called(s: Uint8Array, node: number): number {
    let called = 0;
    for (let f = 0; f < this.flushes; f++) {
      if (this.nodeOf[f] === node && this.status(s, f) === Status.called) called |= 1 << f;
    }
    return called;
  }

  #expandPrepare(node: number): void {
    const { state } = this;
    const at = this.nodeAt(node);
    const isNew = state[at + Field.writer] === Writer.idle;
    const called = this.#called(state, node);
    // Flushes called since then are for the next group.
    const group = isNew ? called : called & this.get(state, at + Field.group);
    if (isNew && group === 0) return;
    const n = this.begin();
    n[at + Field.group] = group;
    const { accepted, changes, refresh } = this.#validate(n, node, group);
    if (refresh) {
      n[at + Field.writer] = Writer.refresh;
      this.emit(Act['refresh for a verdict'], node);
      return;
    }
    if (accepted === 0) this.#rest(n, node);
    else if (!changes) {
      // A flush that has nothing to change needs the same check as a rejection.
      if ((group & ~this.get(n, this.refreshed)) !== 0 && !this.broken['verdict-without-refresh']) {
        n[at + Field.writer] = Writer.refresh;
        this.emit(Act['refresh for a verdict'], node);
        return;
      }
      this.#concludeUnchanged(n, node, group, accepted);
    } else if (!this.#send(n, node, accepted)) return;
    this.emit(Act.prepare, node, 0, this.get(n, at + Field.slot));
  }

  /** Validates each flush on top of those before it. */
  #validate(n: Uint8Array, node: number, group: number): { accepted: number; changes: boolean; refresh: boolean } {
    const tail = this.get(n, this.nodeAt(node) + Field.tail);
    let present = this.presentAt(n, tail);
    let accepted = 0;
    let changes = false;
    for (let f = 0; f < this.flushes; f++) {
      if (((group >> f) & 1) === 0) continue;
      if (this.#isRejected(n, node, f, present, changes)) {
        if (accepted !== 0) {
          // A flush that contradicts one of the same group is rejected once that one is committed.
          if (this.broken['verdict-on-group']) this.reject(n, f);
          continue;
        }
        const isFinal = (this.get(n, this.refreshed) >> f) & 1 || this.operations[f] === 'increment';
        if (!isFinal && !this.broken['verdict-without-refresh']) return { accepted: 0, changes, refresh: true };
        this.reject(n, f);
        continue;
      }
      accepted |= 1 << f;
      changes ||= this.writes(f, present);
      present = this.presentBy(f);
    }
    return { accepted, changes, refresh: false };
  }

  #isRejected(n: Uint8Array, node: number, f: number, present: boolean, changedBefore: boolean): boolean {
    if (this.operations[f] === 'insert') return present;
    if (this.operations[f] !== 'increment' || this.broken['reads-not-validated']) return false;
    if (this.broken['reads-validated-once'] && n[this.nodeAt(node) + Field.writer] === Writer.group) return false;
    const told = this.told(n, f);
    if ((told & Told.wrote) !== 0) return true;
    if ((told & Told.jumped) !== 0 && !this.broken['jump-not-noticed']) return true;
    return changedBefore && !this.broken['reads-not-validated-in-group'];
  }

  /** Sends the put for the slot after the tail; false if the scope has no more slots. */
  #send(n: Uint8Array, node: number, accepted: number): boolean {
    const at = this.nodeAt(node);
    const slot = this.get(n, at + Field.tail) + 1;
    if (slot > this.slots) return false;
    const lowest = 31 - Math.clz32(accepted & -accepted);
    n[at + Field.commit] = accepted | (this.tries(n, lowest) << this.flushes);
    n[at + Field.slot] = slot;
    n[at + Field.seen] = 0;
    n[at + Field.again] = 0;
    n[at + Field.writer] = Writer.put;
    if (this.broken['acknowledged-early']) {
      for (let f = 0; f < this.flushes; f++) if ((accepted >> f) & 1) this.acknowledge(n, node, f, slot, accepted);
    }
    return true;
  }

  /** Nothing must be written, and that is certain. */
  #concludeUnchanged(n: Uint8Array, node: number, group: number, accepted: number): void {
    for (let f = 0; f < this.flushes; f++) {
      if (((group >> f) & 1) === 0) continue;
      if (((accepted >> f) & 1) === 0) this.reject(n, f);
      else {
        if (!this.wasSince(n, this.since(n, f), false)) {
          this.fail('I5', `${this.flushName(f)} finds no key, but there was one at all times since it was called.`);
        }
        this.setStatus(n, f, Status.acknowledged);
      }
    }
    this.#rest(n, node);
  }

  /** Another refresh than one under way: it must start after the flushes were called. */
  #expandRefresh(node: number): void {
    if (this.isReading(this.state, node)) return;
    const n = this.begin();
    const at = this.nodeAt(node);
    this.beginToRead(n, node, true);
    if (this.state[at + Field.writer] === Writer.dead) {
      this.emit(Act['learn after a dead slot'], node, this.get(this.state, at + Field.seen));
    } else this.emit(Act.read, node, this.get(n, at + Field.first));
  }

  protected refreshEnded(n: Uint8Array, node: number): void {
    const at = this.nodeAt(node);
    if (n[at + Field.writer] === Writer.refresh) {
      n[this.refreshed] = this.get(n, this.refreshed) | (this.get(n, at + Field.group) & this.#called(n, node));
      n[at + Field.writer] = Writer.group;
    } else if (n[at + Field.writer] === Writer.dead) this.#decide(n, node, this.get(n, at + Field.seen));
  }

  #expandPut(node: number): void {
    const { state } = this;
    const at = this.nodeAt(node);
    const slot = this.get(state, at + Field.slot);
    const commit = this.get(state, at + Field.commit);
    let n = this.begin();
    // A node that expects others reads the slot at the same time. That counts only if there was something in it.
    if (state[at + Field.again] === 0 && state[at + Field.seen] === 0 && this.stored(n, slot) !== 0) {
      n[at + Field.seen] = this.stored(n, slot);
      this.emit(Act['read with the put'], node, slot);
      n = this.begin();
    }
    const isWritten = this.land(n, slot, commit);
    if (isWritten) {
      n[at + Field.seen] = commit;
      n[at + Field.writer] = Writer.confirm;
      if (this.broken['no-check-after-put']) this.#won(n, node);
      if (this.broken['acknowledged-unseen']) this.#conclude(n, node);
    } else if (this.broken['refusal-is-loss']) this.#lost(n, node);
    else this.#readSlot(n, node);
    this.emit(Act.put, node, slot, isWritten ? Outcome.written : Outcome.taken);
    if (this.get(state, this.delays) > 0) {
      n = this.begin();
      n[this.delays] = this.get(n, this.delays) - 1;
      if (this.land(n, slot, commit)) {
        this.#readSlot(n, node);
        this.emit(Act.put, node, slot, Outcome.answerLost);
      }
      n = this.begin();
      n[this.delays] = this.get(n, this.delays) - 1;
      if (this.addLoose(n, slot, commit)) {
        this.#readSlot(n, node);
        this.emit(Act.put, node, slot, Outcome.onItsWay);
      }
    }
    // Only the failure of the very first put can be definite.
    const isFirst = state[at + Field.again] === 0 || this.broken['refusal-after-ambiguity'];
    if (this.get(state, this.refusals) > 0 && isFirst) {
      n = this.begin();
      n[this.refusals] = this.get(n, this.refusals) - 1;
      for (let f = 0; f < this.flushes; f++) {
        if (((commit >> f) & 1) === 0) continue;
        if (this.status(n, f) === Status.unknown) this.refuse(n, f, Status.no);
        else if (this.status(n, f) === Status.called) this.refuse(n, f, Status.failed);
      }
      this.#rest(n, node);
      this.emit(Act.put, node, slot, Outcome.refused);
    }
  }

  /** The answer says nothing: the slot is read, unless it was read with the put. */
  #readSlot(n: Uint8Array, node: number): void {
    const at = this.nodeAt(node);
    n[at + Field.writer] = n[at + Field.seen] === 0 ? Writer.read : Writer.confirm;
    n[at + Field.again] = 1;
    if (this.broken['new-slot-before-decided']) this.#lost(n, node);
  }

  #isOwn(n: Uint8Array, node: number): boolean {
    const at = this.nodeAt(node);
    const seen = this.get(n, at + Field.seen);
    if (seen === 0) return false;
    if (!this.broken['ownership-by-node']) return seen === n[at + Field.commit];
    const lowest = 31 - Math.clz32(seen & -seen);
    return this.nodeOf[lowest] === node;
  }

  /** The outcome of a commit whose slot is at or under the floor, by the list of applied commits. */
  protected deadSlotOutcome(n: Uint8Array, slot: number, commit: number): number {
    const { listed = this.slots } = this.scope;
    if (this.broken['dead-slot-means-lost']) return CommitOutcome.lost;
    if (slot <= this.get(n, this.applied) - listed || slot > this.get(n, this.applied)) {
      return this.broken['not-listed-means-dead'] ? CommitOutcome.lost : CommitOutcome.unknown;
    }
    return this.recorded(n, slot) === commit ? CommitOutcome.applied : CommitOutcome.lost;
  }

  #expandConfirm(node: number): void {
    const { state } = this;
    const at = this.nodeAt(node);
    const slot = this.get(state, at + Field.slot);
    const n = this.begin();
    const floor = this.get(n, this.broken['check-before-put'] ? at + Field.floor : this.floor);
    if (floor >= slot) {
      this.see(n, node);
      n[at + Field.seen] = this.deadSlotOutcome(n, slot, this.get(n, at + Field.commit));
      n[at + Field.writer] = Writer.dead;
    } else if (n[at + Field.seen] === 0) {
      // Still missing: the same bytes, at the same slot.
      this.see(n, node);
      n[at + Field.writer] = this.broken['regrouped-at-undecided'] ? Writer.idle : Writer.put;
      if (this.broken['regrouped-at-undecided']) this.#rest(n, node);
    } else if (this.#isOwn(n, node)) this.#won(n, node);
    else {
      this.advance(n, node, slot, 1, Field.seen);
      this.#lost(n, node);
    }
    this.emit(Act.confirm, node, slot);
    const isLost = n[at + Field.writer] === Writer.group;
    if (isLost && this.get(state, this.refusals) > 0) {
      n[this.refusals] = this.get(n, this.refusals) - 1;
      for (let f = 0; f < this.flushes; f++) {
        if ((this.get(n, at + Field.group) >> f) & 1 && this.status(n, f) === Status.called) {
          this.refuse(n, f, Status.failed);
        }
      }
      this.#rest(n, node);
      this.emit(Act.contention, node, slot);
    }
  }

  #decide(n: Uint8Array, node: number, outcome: number): void {
    if (outcome === CommitOutcome.applied) this.#conclude(n, node);
    else if (outcome === CommitOutcome.lost) this.#lost(n, node);
    else this.#unknown(n, node);
  }

  /** The slot is the commit's own, and confirmed. */
  #won(n: Uint8Array, node: number): void {
    const at = this.nodeAt(node);
    const slot = this.get(n, at + Field.slot);
    const recorded = this.recorded(n, slot);
    // A commit that is shown wrongly is also acknowledged wrongly, and that message is plainer.
    if (recorded === n[at + Field.commit]) {
      const isUnchecked = this.broken['no-check-after-put'] || this.broken['no-check-after-own'];
      if (isUnchecked) this.show(n, node, slot, recorded);
      else this.advance(n, node, slot, 1, Field.seen);
    }
    this.#conclude(n, node);
  }

  #conclude(n: Uint8Array, node: number): void {
    const at = this.nodeAt(node);
    const commit = this.get(n, at + Field.commit);
    const slot = this.get(n, at + Field.slot);
    const contradicted = this.get(n, at + Field.group) & ~commit;
    for (let f = 0; f < this.flushes; f++) {
      const status = this.status(n, f);
      const waits = status === Status.called || status === Status.unknown;
      if ((commit >> f) & 1 && waits) this.acknowledge(n, node, f, slot, commit);
      else if ((contradicted >> f) & 1 && status === Status.called) this.reject(n, f);
    }
    this.#rest(n, node);
  }

  #lost(n: Uint8Array, node: number): void {
    const at = this.nodeAt(node);
    const commit = this.get(n, at + Field.commit);
    for (let f = 0; f < this.flushes; f++) {
      if ((commit >> f) & 1 && this.status(n, f) === Status.unknown) this.refuse(n, f, Status.no);
    }
    const group = this.get(n, at + Field.group) & this.#called(n, node);
    this.#rest(n, node);
    if (group === 0) return;
    n[at + Field.group] = group;
    n[at + Field.writer] = Writer.group;
    if (this.broken['not-validated-after-loss']) this.#send(n, node, commit & this.#called(n, node));
  }

  #unknown(n: Uint8Array, node: number): void {
    const at = this.nodeAt(node);
    const commit = this.get(n, at + Field.commit);
    for (let f = 0; f < this.flushes; f++) {
      if (((commit >> f) & 1) === 0 || this.status(n, f) !== Status.called) continue;
      if (this.broken['plain-error-on-ambiguity']) this.refuse(n, f, Status.failed);
      else this.setStatus(n, f, Status.unknown, this.get(n, at + Field.slot), commit);
    }
    this.#rest(n, node);
  }

  #expandTimeout(node: number): void {
    if (this.get(this.state, this.timeouts) === 0) return;
    const n = this.begin();
    n[this.timeouts] = this.get(n, this.timeouts) - 1;
    this.#unknown(n, node);
    this.emit(Act['time out'], node);
  }

  /** The group is done; its remaining flushes go with the next. */
  #rest(n: Uint8Array, node: number): void {
    const at = this.nodeAt(node);
    for (let field: number = Field.writer; field <= Field.again; field++) n[at + field] = 0;
  }
}
