/**
 * Room for commits that wait to be merged. Every instance holds them in memory, since reads show them: beyond a bound it merges
 * out of turn, and beyond twice that bound it takes no more of them (coordination/backpressure.ts).
 */
import type { InstanceMemory } from '../cache/instance-memory.ts';
import type { View } from '../view/view.ts';

/** By default, merges wait for so many pending commits. */
export const usuallyPending = 16;
/** With more pending commits than this, an instance merges out of turn. */
const maxPendingCommits = 2000;
/** An instance takes no more commits than this before they are merged. */
export const roomForCommits: number = maxPendingCommits * 2;

/** How much of an instance's memory the pending commits of a view may take. */
export class PendingRoom {
  readonly #memory: InstanceMemory;
  /** With more bytes of pending commits than this, an instance merges out of turn. */
  readonly #maxBytes: number;

  constructor(memory: InstanceMemory, maxMemoryBytes: number) {
    this.#memory = memory;
    this.#maxBytes = Math.floor(maxMemoryBytes / 8);
  }

  /** How many bytes of commits may wait at most. */
  get #roomBytes(): number {
    return Math.min(this.#maxBytes * 2, this.#memory.waitingRoomBytes);
  }

  /** Whether so many commits wait in a view, or ones so slow to read, that they are merged regardless of the merge policy. */
  isLarge({ pending, pendingBytes, isSlow }: View): boolean {
    return isSlow || pending.length > maxPendingCommits || pendingBytes > this.#maxBytes;
  }

  /** How many bytes of commits may still be read or written on top of a view; 0: none until pending commits are merged. */
  bytesFor({ pending, pendingBytes }: View): number {
    if (pending.length >= roomForCommits) return 0;
    return Math.max(0, this.#roomBytes - pendingBytes);
  }

  /** The pending commits of a view as a share of those that there is room for: at 1, no more are read or written. */
  shareOf({ pending, pendingBytes }: View): number {
    const ofBytes = pendingBytes === 0 ? 0 : pendingBytes / Math.max(1, this.#roomBytes);
    return Math.min(1, Math.max(ofBytes, pending.length / roomForCommits));
  }

  /** Tells the memory of the instance how many bytes the pending commits of the newest view take. */
  take({ pendingBytes }: View): void {
    this.#memory.setCommitted(pendingBytes);
  }
}
