/**
 * How often an instance looks at the store by itself. This file knows nothing of stores and timers: it counts intervals of
 * `writeForwardInterval` between turns, and says when the next turn is.
 *
 * Freshness never depends on it: a query on a view older than two intervals refreshes first, with any polling.
 */
import { untilNextTurn } from './merge-rotation.ts';

/**
 * How often an instance looks at the store. `interval`: a turn at every `writeForwardInterval`. `adaptive`: the pause between turns
 * doubles, up to five minutes, while nobody reads through the instance. `onDemand`: only the turns that merging pending commits needs; and
 * `start()` does not wait for the log.
 */
export type Polling = 'interval' | 'adaptive' | 'onDemand';

/** Every value of {@link Polling}. */
export const pollings: readonly Polling[] = ['interval', 'adaptive', 'onDemand'];

/** Longest pause of `adaptive` polling; an interval that is longer still is the pause itself. */
const maxPauseMs = 300_000;

/** Returns the longest time between two looks of an instance at the store, in milliseconds, unless its polling is `onDemand`. */
export function longestPauseMs(intervalMs: number): number {
  return Math.max(maxPauseMs, intervalMs);
}

export class PollingPace {
  readonly #polling: Polling;
  readonly #intervalMs: number;
  /** Whether the pause is always the same, so that nothing but a turn sets the next one. */
  readonly isSteady: boolean;
  readonly #maxIntervals: number;
  /** The pause up to the next turn, in intervals. */
  #intervals = 1;

  constructor(polling: Polling, intervalMs: number) {
    this.#polling = polling;
    this.#intervalMs = intervalMs;
    this.isSteady = polling === 'interval';
    this.#maxIntervals = polling === 'adaptive' ? Math.max(1, Math.floor(maxPauseMs / intervalMs)) : 1;
  }

  /** Whether the pause is longer than it was: nobody has read through the instance since the last turn. */
  get isBackedOff(): boolean {
    return this.#intervals > 1;
  }

  /** Notes that somebody reads through the instance. True if the next turn must come sooner for it. */
  asked(): boolean {
    if (this.#intervals === 1) return false;
    this.#intervals = 1;
    return true;
  }

  /**
   * Notes the end of a turn. Commits of other nodes bring the next turn no sooner: no caller here has asked for them, and one
   * that asks sees them.
   */
  turned(): void {
    this.#intervals = Math.min(this.#intervals * 2, this.#maxIntervals);
  }

  /** Milliseconds until the next turn; undefined for none. `untilMergeMs`: until this node may merge, if something is due. */
  untilTurn(nowMs: number, untilMergeMs: number | undefined): number | undefined {
    if (this.#polling === 'onDemand') return untilMergeMs;
    const pollMs = untilNextTurn(nowMs, this.#intervalMs) + (this.#intervals - 1) * this.#intervalMs;
    return Math.min(pollMs, untilMergeMs ?? pollMs);
  }
}
