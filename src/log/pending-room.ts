/**
 * Room for commits that wait to be merged. Every instance holds them in memory, since reads show them: beyond a bound it merges
 * out of turn, and beyond twice that it takes no more of them.
 */
import type { SplitPool } from '../cache/memory-pool.ts';
import type { View } from '../view/view.ts';

/** Pending commits after which an instance merges out of turn. */
const maxPendingCommits = 2000;

/** What the commits of a view may take in the memory of an instance. */
export class PendingRoom {
  readonly #pool: SplitPool;
  /** Bytes of pending commits after which an instance merges out of turn. */
  readonly #maxBytes: number;

  constructor(pool: SplitPool, maxMemoryBytes: number) {
    this.#pool = pool;
    this.#maxBytes = Math.floor(maxMemoryBytes / 8);
  }

  /** Whether so much waits in a view that it is merged whatever the policy says. */
  isLarge({ pending, pendingBytes, isSlow }: View): boolean {
    return isSlow || pending.length > maxPendingCommits || pendingBytes > this.#maxBytes;
  }

  /** Bytes of commits that may still be read or written on top of a view; 0: none until some are merged. */
  bytesFor({ pending, pendingBytes }: View): number {
    if (pending.length >= maxPendingCommits * 2) return 0;
    return Math.max(0, Math.min(this.#maxBytes * 2, this.#pool.waitingRoomBytes) - pendingBytes);
  }

  /** Says what the commits of the newest view take, in bytes. */
  take({ pendingBytes }: View): void {
    this.#pool.setCommitted(pendingBytes);
  }
}
