/** Which commits are worth a merge: any, or only many of them together. Reads show them in either case. */
import type { WriteCounters } from '../tree/level-writer.ts';

/** When pending commits are merged. */
export interface MergePolicy {
  /**
   * The number of commits that a merge waits for, 1 to 2,000. 1: pending commits are merged at the next turn. Default 16, or 2,000
   * where only `maxWaitMs` is given.
   */
  readonly minCommits?: number;
  /**
   * How long the oldest of them waits for others at most, in milliseconds, 0 to 86,400,000. Default 60000, or 600000 where only
   * `minCommits` is given.
   */
  readonly maxWaitMs?: number;
}

/** The tail at the time at which it was seen first. */
interface SeenTail {
  readonly tail: number;
  readonly atMs: number;
}

/**
 * The pause of a node that merges alone, in durations of its last merge, so that merging takes at most a quarter of its time. If
 * rows are changed all over a large table, every merge rewrites most of its blocks, even for few commits; the more commits a merge
 * has, the less it costs for each of them.
 */
const restFactor = 3;
/** The longest rest: an instance that opens the database reads the waiting commits one by one. */
const maxRestMs = 60_000;

/** Applies a policy to the views of one node. Time is its own monotonic clock: nodes need not agree on when a merge is due. */
export class MergeWait {
  readonly #policy: Required<MergePolicy>;
  /** Ascending. A tail is dropped once all commits up to it are applied. */
  #seen: SeenTail[] = [];
  #restsUntilMs = 0;

  constructor(policy: Required<MergePolicy>) {
    this.#policy = policy;
  }

  /** Notes a view: the last slot that it shows, and the last one that is merged. */
  note(tail: number, appliedSeq: number, nowMs: number): void {
    const { minCommits, maxWaitMs } = this.#policy;
    // Nothing waits, so that nobody asks for how long.
    if (minCommits === 1 || maxWaitMs === 0) return;
    const last = this.#seen[this.#seen.length - 1];
    if (tail > appliedSeq && tail > (last?.tail ?? 0)) this.#seen.push({ tail, atMs: nowMs });
    if ((this.#seen[0]?.tail ?? Infinity) <= appliedSeq)
      this.#seen = this.#seen.filter((seen) => seen.tail > appliedSeq);
  }

  /** Takes note of a merge in turn that has just ended, and of how long it took. */
  merged(durationMs: number, nowMs: number): void {
    this.#restsUntilMs = nowMs + Math.min(restFactor * durationMs, maxRestMs);
  }

  /**
   * Milliseconds until so many pending commits are to be merged: 0 for now; undefined if there are none. `isAlone`: no
   * other node would merge them meanwhile, so that this one may rest after its last merge.
   */
  untilDue(pending: number, nowMs: number, isAlone: boolean): number | undefined {
    if (pending === 0) return undefined;
    const restMs = isAlone ? Math.max(0, this.#restsUntilMs - nowMs) : 0;
    const oldest = this.#seen[0];
    if (pending >= this.#policy.minCommits || oldest === undefined) return restMs;
    return Math.max(restMs, oldest.atMs + this.#policy.maxWaitMs - nowMs);
  }
}

/** Counters of merges since `start()`. */
export interface MergeStats extends WriteCounters {
  /** Merges that replaced Block 0. */
  merges: number;
  /** Merges that another instance was faster with: their work was thrown away. */
  lostMerges: number;
  /** Blocks that were written. */
  blocksWritten: number;
}
