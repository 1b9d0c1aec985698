/**
 * The model of collecting garbage: merges that take any time, snapshots that are pinned, released, abandoned and ended,
 * a history, and several runs of gc at once. A replacement of Block 0 that loses against another is repeated on the newest
 * (src/block0/block0-register.ts, `update`), so it is one step here; a merge's replacement counts only in its generation.
 */
import { Act, gcActions } from './actions.ts';
import { GcState, MergeField, Pin, PinField, RunField } from './gc-state.ts';

const Run = { idle: 0, collecting: 1, waiting: 2 } as const;
const Merge = { idle: 0, begun: 1, written: 2 } as const;

export class GcModel extends GcState {
  readonly actions = gcActions;

  expand(): void {
    const { scope } = this;
    for (let m = 0; m < scope.merges; m++) this.#expandMerge(m);
    for (let p = 0; p < scope.pins; p++) this.#expandPin(p);
    for (let r = 0; r < scope.runs; r++) this.#expandRun(r);
  }

  #expandMerge(merge: number): void {
    const { state, scope, broken } = this;
    const at = this.mergeAt(merge);
    const phase = this.get(state, at + MergeField.phase);
    const base = this.get(state, at + MergeField.base);
    const present = this.get(state, this.generation);
    if (phase === Merge.idle) {
      // Records without a name: the first that is idle will do.
      if (merge > 0 && state[this.mergeAt(merge - 1)] === Merge.idle) return;
      this.#beginMerge(merge, present);
      return;
    }
    if (phase === Merge.begun) {
      const n = this.begin();
      this.#writeBlock(n, at);
      this.emit(Act['write a block'], base, this.get(state, at + MergeField.block));
      this.#endMerge(at, base);
      return;
    }
    this.#endMerge(at, base);
    if (scope.history === true && state[at + MergeField.kept] === 0 && !broken['history-not-stored']) {
      const n = this.begin();
      n[this.history0 + base] = 1;
      n[at + MergeField.kept] = 1;
      this.emit(Act['keep history'], base);
      return;
    }
    const birth = this.birthOf(this.get(state, at + MergeField.block));
    // Only a block that is written ahead has a birth after the generation that follows.
    if (present < birth) this.#replaceAhead(at, base, present);
    else if (broken['blocks-carried-over'] && present < scope.generations) this.#replace(at, present);
  }

  /** Replaces Block 0, perhaps some generations after the one that the merge began on. */
  #replaceAhead(at: number, base: number, present: number): void {
    const { state, broken } = this;
    const other = 1 - this.get(state, at + MergeField.leaf);
    const block = this.leaf(state, base, other);
    // Trees made from an earlier generation may have kept a block that has been replaced since.
    const isBornLater = block !== 0 && this.birthOf(block) > present;
    if (block === this.leaf(state, present, other)) this.#replace(at, present);
    else {
      if (isBornLater || broken['replaced-blocks-again']) this.#replace(at, present, block);
      this.#replace(at, present);
    }
  }

  #beginMerge(merge: number, base: number): void {
    const { ahead = 0, generations } = this.scope;
    for (let before = base; before <= base + ahead && before < generations; before++)
      this.#beginFor(merge, base, before);
  }

  /** Begins a merge on a generation, with a block of the birth that follows generation `before`. */
  #beginFor(merge: number, base: number, before: number): void {
    const { state, scope, broken } = this;
    const at = this.mergeAt(merge);
    const used = broken['deterministic-names'] ? 0 : this.get(state, this.used0 + before);
    if (used >= scope.attempts) return;
    for (let leaf = 0; leaf < 2; leaf++) {
      const n = this.begin();
      n[at + MergeField.phase] = Merge.begun;
      n[at + MergeField.base] = base;
      n[at + MergeField.block] = before * scope.attempts + used + 1;
      n[at + MergeField.leaf] = leaf;
      if (!broken['deterministic-names']) n[this.used0 + before] = used + 1;
      if (broken['merge-carries-bookkeeping']) {
        n[at + MergeField.collected] = this.get(n, this.collected);
        n[at + MergeField.floor] = this.get(n, this.floor);
        n[at + MergeField.pins] = this.pinned(n);
      }
      this.emit(Act['begin a merge'], base);
    }
  }

  #writeBlock(n: Uint8Array, at: number): void {
    const block = this.get(n, at + MergeField.block);
    n[at + MergeField.phase] = Merge.written;
    const isNew = !this.isThere(n, block);
    n[this.block0 + block - 1] = 1;
    // The leaf whose rows it holds: a block written for one leaf does not belong into the other.
    if (this.broken['deterministic-names'] && isNew)
      n[this.author0 + block - 1] = this.get(n, at + MergeField.leaf) + 1;
  }

  #endMerge(at: number, base: number): void {
    const n = this.begin();
    this.#clearMerge(n, at);
    this.emit(Act['end a merge'], base);
  }

  #clearMerge(n: Uint8Array, at: number): void {
    for (let field: number = MergeField.phase; field <= MergeField.pins; field++) n[at + field] = 0;
  }

  /** `other`: the leaf that it keeps. Default: the present one. */
  #replace(at: number, base: number, other?: number): void {
    const { broken } = this;
    const n = this.begin();
    const leaf = this.get(n, at + MergeField.leaf);
    const block = this.get(n, at + MergeField.block);
    const root = this.root0 + 2 * (base + 1);
    n[root + leaf] = block;
    n[root + 1 - leaf] = other ?? this.leaf(n, base, 1 - leaf);
    n[this.generation] = base + 1;
    if (broken['merge-carries-bookkeeping']) this.#carry(n, at);
    if (broken['deterministic-names'] && n[this.author0 + block - 1] !== leaf + 1) {
      this.fail('I14', `Block ${this.blockName(block)} holds the rows that another merge has written.`);
    }
    this.#clearMerge(n, at);
    this.checkKept(n);
    this.emit(Act.replace, base + 1);
    if (!broken['own-blocks-deleted']) return;
    n[this.block0 + block - 1] = 0;
    this.checkKept(n);
    this.emit(Act.replace, base + 1);
  }

  /** Block 0 gets the pins and bounds that it had when the merge began. */
  #carry(n: Uint8Array, at: number): void {
    n[this.collected] = this.get(n, at + MergeField.collected);
    n[this.floor] = this.get(n, at + MergeField.floor);
    for (let p = 0; p < this.scope.pins; p++) {
      if (this.isPinned(n, p) && ((this.get(n, at + MergeField.pins) >> p) & 1) === 0) {
        this.fail('I8', `Snapshot ${p + 1} is held, and Block 0 does not list it any more.`);
      }
    }
  }

  #isRetained(s: Uint8Array, generation: number): boolean {
    if (generation >= this.get(s, this.collected)) return true;
    return this.scope.history === true && generation >= this.get(s, this.floor);
  }

  #expandPin(pin: number): void {
    const { state } = this;
    const at = this.pinAt(pin);
    const generation = this.get(state, at + PinField.generation);
    switch (state[at + PinField.phase]) {
      case Pin.none:
        this.#choose(at, pin);
        break;
      case Pin.chosen:
        this.#crashPin(at, pin, Pin.none);
        if (this.broken['pinned-before-copied']) this.#pin(at, pin, Pin.uncopied);
        else this.#copy(at, pin, generation);
        break;
      case Pin.copied:
        this.#crashPin(at, pin, Pin.ended);
        this.#pin(at, pin, Pin.held);
        break;
      case Pin.uncopied: {
        const n = this.begin();
        n[at + PinField.phase] = Pin.held;
        n[at + PinField.copy] = 1;
        this.emit(Act.copy, pin, generation);
        break;
      }
      case Pin.held:
        this.#crashPin(at, pin, Pin.abandoned);
        this.#release(at, pin);
        break;
      case Pin.unheld: {
        const n = this.begin();
        this.#clearPin(n, at);
        this.emit(Act.release, pin);
        break;
      }
      case Pin.ended:
        // Its own process deletes the copy, or gc does.
        if (state[at + PinField.copy] === 1) this.#deleteOwnCopy(at, pin);
        break;
      default:
    }
  }

  /** The state to pin: the present one, or one of the history. */
  #choose(at: number, pin: number): void {
    const { state, scope } = this;
    const present = this.get(state, this.generation);
    for (let g = 0; g <= present; g++) {
      const isKept = scope.history === true && state[this.history0 + g] === 1;
      if (g !== present && !isKept) continue;
      const n = this.begin();
      n[at + PinField.phase] = Pin.chosen;
      n[at + PinField.generation] = g;
      this.emit(Act.choose, pin, g);
    }
  }

  #copy(at: number, pin: number, generation: number): void {
    const n = this.begin();
    const isChecked = this.broken['pin-checked-early'];
    if (isChecked && !this.#isRetained(n, generation)) return;
    n[at + PinField.phase] = Pin.copied;
    n[at + PinField.copy] = 1;
    this.emit(Act.copy, pin, generation);
  }

  #pin(at: number, pin: number, phase: number): void {
    const n = this.begin();
    const generation = this.get(n, at + PinField.generation);
    const isUnchecked = this.broken['pin-not-checked'] || this.broken['pin-checked-early'];
    const isPinned = isUnchecked || this.#isRetained(n, generation);
    if (isPinned) n[at + PinField.phase] = phase;
    else if (n[at + PinField.copy] === 0) this.#clearPin(n, at);
    else n[at + PinField.phase] = Pin.ended;
    this.checkKept(n);
    this.emit(Act.pin, pin, 0, isPinned ? 1 : 0);
  }

  #release(at: number, pin: number): void {
    const n = this.begin();
    if (this.broken['copy-deleted-first']) {
      n[at + PinField.phase] = Pin.unheld;
      n[at + PinField.copy] = 0;
      this.checkKept(n);
      this.emit(Act.release, pin, 0, 1);
      return;
    }
    n[at + PinField.phase] = Pin.ended;
    this.emit(Act.release, pin);
  }

  #deleteOwnCopy(at: number, pin: number): void {
    const n = this.begin();
    this.#clearPin(n, at);
    this.emit(Act.release, pin, 0, 1);
  }

  #crashPin(at: number, pin: number, phase: number): void {
    const n = this.begin();
    n[at + PinField.phase] = phase;
    if (phase === Pin.none) this.#clearPin(n, at);
    this.emit(Act.abandon, pin);
  }

  #clearPin(n: Uint8Array, at: number): void {
    for (let field: number = PinField.phase; field <= PinField.copy; field++) n[at + field] = 0;
  }

  #expandRun(run: number): void {
    const { state, scope } = this;
    const at = this.runAt(run);
    const phase = this.get(state, at + RunField.phase);
    if (phase === Run.idle) {
      if (run > 0 && state[this.runAt(run - 1)] === Run.idle) return;
      if (scope.waits === true) this.#wait(at);
      else this.#announceFrom(at, this.get(state, this.generation));
      return;
    }
    if (phase === Run.waiting) {
      this.#announceFrom(at, this.get(state, at + RunField.generation));
      return;
    }
    this.#expandDeletions(at);
    const n = this.begin();
    if (this.broken['announced-afterwards']) {
      n[this.collected] = Math.max(this.get(n, this.collected), this.get(n, at + RunField.generation));
    }
    for (let field: number = RunField.phase; field <= RunField.floor; field++) n[at + field] = 0;
    this.emit(Act['end a run'], this.get(state, at + RunField.generation));
  }

  /** The run waits for loops, and collects from the present generation. */
  #wait(at: number): void {
    const n = this.begin();
    n[at + RunField.phase] = Run.waiting;
    n[at + RunField.generation] = this.get(n, this.generation);
    this.emit(Act.wait, this.get(n, this.generation));
  }

  /** Clocks may be wrong: any snapshot may seem abandoned, or none. */
  #announceFrom(at: number, from: number): void {
    const { state, scope } = this;
    const highest = scope.history === true ? this.get(state, this.generation) : 0;
    for (let floor = this.get(state, this.floor); floor <= highest; floor++) {
      this.#announce(at, from, floor, -1);
      for (let p = 0; p < scope.pins; p++) if (this.isPinned(state, p)) this.#announce(at, from, floor, p);
    }
  }

  #announce(at: number, generation: number, floor: number, expired: number): void {
    const { broken } = this;
    const n = this.begin();
    if (!broken['not-announced'] && !broken['announced-afterwards']) {
      n[this.collected] = Math.max(this.get(n, this.collected), generation);
    }
    if (!broken['history-floor-not-written']) n[this.floor] = floor;
    if (expired >= 0 && !broken['expiry-by-clock']) {
      if (broken['abandoned-pins-stay']) return;
      n[this.pinAt(expired) + PinField.phase] = Pin.ended;
    }
    this.#beginRun(n, at, generation, floor, broken['expiry-by-clock'] ? expired : -1);
    this.emit(Act.announce, generation, expired + 1, floor);
  }

  /** Works out the blocks to keep, from the Block 0 that was announced. */
  #beginRun(n: Uint8Array, at: number, generation: number, floor: number, unkept: number): void {
    const { scope, broken } = this;
    const present = this.get(n, this.generation);
    let keep = this.reach(n, present) | (broken['only-present-kept'] ? 0 : this.reach(n, generation));
    for (let p = 0; p < scope.pins; p++) {
      if (broken['pins-ignored'] || p === unkept || !this.isPinned(n, p)) continue;
      keep |= this.reach(n, this.get(n, this.pinAt(p) + PinField.generation));
    }
    if (scope.history === true && !broken['history-ignored']) {
      for (let g = floor; g < present; g++) keep |= this.reach(n, g);
    }
    n[at + RunField.phase] = Run.collecting;
    n[at + RunField.generation] = generation;
    n[at + RunField.keepLow] = keep & 0xff;
    n[at + RunField.keepHigh] = keep >> 8;
    n[at + RunField.pins] = this.pinned(n);
    n[at + RunField.bound] = scope.history === true ? Math.min(generation, floor) : generation;
    n[at + RunField.floor] = floor;
  }

  /** The last birth that a run may delete. */
  #lastBirth(s: Uint8Array, generation: number): number {
    const { broken } = this;
    if (broken['no-birth-rule']) return this.scope.generations;
    if (broken['births-one-later']) return generation + 1;
    if (broken['births-below']) return generation - 1;
    return broken['later-bound'] ? this.get(s, this.generation) : generation;
  }

  #expandDeletions(at: number): void {
    const { state, scope, broken } = this;
    const generation = this.get(state, at + RunField.generation);
    const keep = this.get(state, at + RunField.keepLow) | (this.get(state, at + RunField.keepHigh) << 8);
    const lastBirth = this.#lastBirth(state, generation);
    for (let block = 1; block <= this.blocks; block++) {
      if (!this.isThere(state, block) || (keep >> block) & 1 || this.birthOf(block) > lastBirth) continue;
      const n = this.begin();
      n[this.block0 + block - 1] = 0;
      this.checkKept(n);
      this.emit(Act['delete a block'], generation, block);
    }
    const bound = this.get(state, at + RunField.bound) + (broken['copies-deleted-early'] ? 1 : 0);
    for (let p = 0; p < scope.pins; p++) {
      const pin = this.pinAt(p);
      if (state[pin + PinField.copy] === 0 || (this.get(state, at + RunField.pins) >> p) & 1) continue;
      if (this.get(state, pin + PinField.generation) >= bound) continue;
      const n = this.begin();
      n[pin + PinField.copy] = 0;
      if (n[pin + PinField.phase] === Pin.ended) this.#clearPin(n, pin);
      this.checkKept(n);
      this.emit(Act['delete a copy'], generation, p);
    }
    for (let g = 0; g < this.get(state, at + RunField.floor); g++) {
      if (state[this.history0 + g] === 0) continue;
      const n = this.begin();
      n[this.history0 + g] = 0;
      this.checkKept(n);
      this.emit(Act['delete history'], generation, g);
    }
  }

  /**
   * I9: when nothing is under way, no garbage stays. If a last commit is merged, all snapshots have expired, the history
   * is over and gc runs once more, only the blocks that the present state reaches are left. Computed without making the
   * steps.
   */
  override check(): void {
    const { state, scope, broken } = this;
    for (let m = 0; m < scope.merges; m++) if (state[this.mergeAt(m)] !== Merge.idle) return;
    for (let r = 0; r < scope.runs; r++) if (state[this.runAt(r)] !== 0) return;
    const last = this.get(state, this.generation) + 1;
    let keep = this.reach(state, last - 1);
    if (broken['abandoned-pins-stay']) {
      for (let p = 0; p < scope.pins; p++) {
        if (state[this.pinAt(p)] === Pin.abandoned)
          this.fail('I9', `Snapshot ${p + 1} is abandoned, and stays for ever.`);
      }
    }
    keep &= ~1;
    const lastBirth = broken['births-below'] ? last - 1 : last;
    for (let block = 1; block <= this.blocks; block++) {
      if (!this.isThere(state, block) || (keep >> block) & 1 || this.birthOf(block) <= lastBirth) continue;
      // A block that was written ahead goes once the generation of its birth has passed.
      if (this.birthOf(block) > last) continue;
      this.fail('I9', `Nothing reaches block ${this.blockName(block)}, and nothing will ever delete it.`);
    }
  }
}
