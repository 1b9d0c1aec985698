/** How changes are followed commit by commit (src/engine/log-feed.ts). */
import { Act } from './actions.ts';
import { Field } from './log-state.ts';
import { WriterSteps } from './writer-steps.ts';

const Feed = { waiting: 0, read: 1, ended: 2 } as const;

export abstract class FeedSteps extends WriterSteps {
  protected expandFeed(node: number): void {
    const { state } = this;
    const at = this.nodeAt(node);
    if (this.scope.feed !== true || node !== 0 || state[at + Field.up] !== 2) return;
    const phase = state[at + Field.feed];
    const slot = this.get(state, at + Field.given) + 1;
    if (phase === Feed.read) this.#giveAfterLook(node, slot);
    else if (phase === Feed.waiting && slot <= this.get(state, at + Field.applied)) this.#readAgain(node, slot);
    else if (phase === Feed.waiting && slot <= this.get(state, at + Field.tail)) {
      const n = this.begin();
      this.#give(n, node, slot, this.recorded(n, slot));
      this.emit(Act.feed, node, slot);
    }
  }

  /** The view has merged the slot, and forgotten its commit. */
  #readAgain(node: number, slot: number): void {
    const at = this.nodeAt(node);
    const n = this.begin();
    if (this.get(n, at + Field.floor) >= slot) {
      n[at + Field.feed] = Feed.ended;
      this.emit(Act['feed after a look'], node, slot, 0);
      return;
    }
    n[at + Field.fed] = this.stored(n, slot);
    n[at + Field.feed] = Feed.read;
    if (this.broken['feed-without-floor']) this.#give(n, node, slot, this.get(n, at + Field.fed));
    this.emit(Act['read again'], node, slot);
  }

  #giveAfterLook(node: number, slot: number): void {
    const at = this.nodeAt(node);
    const n = this.begin();
    const isDead = this.get(n, this.floor) >= slot;
    if (isDead) {
      n[at + Field.feed] = Feed.ended;
      n[at + Field.fed] = 0;
    } else this.#give(n, node, slot, this.get(n, at + Field.fed));
    this.emit(Act['feed after a look'], node, slot, isDead ? 0 : 1);
  }

  #give(n: Uint8Array, node: number, slot: number, commit: number): void {
    const at = this.nodeAt(node);
    // A missing slot is distinguished from one that holds a commit, and is an error of its own.
    if (commit === 0 && this.broken['feed-without-floor']) {
      n[at + Field.feed] = Feed.ended;
      return;
    }
    if (commit !== this.recorded(n, slot)) {
      this.fail('I4', `A feed gives out ${this.commitName(commit)} for slot ${slot}.`);
    }
    n[at + Field.given] = slot;
    n[at + Field.fed] = 0;
    n[at + Field.feed] = Feed.waiting;
  }
}
