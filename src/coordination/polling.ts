/**
 * How often an instance looks at the store by itself. It knows nothing of stores and timers: it counts slots of
 * `writeForwardInterval` between turns, and says when the next turn is.
 *
 * Freshness never rests on it: a query on a view older than two intervals refreshes first, whatever the polling.
 */
import { untilNextSlot } from './authority.ts';

/**
 * `interval`: a turn at every `writeForwardInterval`. `adaptive`: the pause between turns doubles, up to a minute, while
 * nobody uses the instance. `onDemand`: no turns but those that are needed to merge what is pending; and `start()` does not wait for the log.
 */
export type Polling = 'interval' | 'adaptive' | 'onDemand';

/** Every value of {@link Polling}. */
export const pollings: readonly Polling[] = ['interval', 'adaptive', 'onDemand'];

/** Longest pause of `adaptive` polling; an interval that is longer still is the pause itself. */
const longestPauseMs = 60_000;

export class PollingPace {
  readonly #polling: Polling;
  readonly #intervalMs: number;
  readonly #mostSlots: number;
  /** The pause up to the next turn. */
  #slots = 1;

  constructor(polling: Polling, intervalMs: number) {
    this.#polling = polling;
    this.#intervalMs = intervalMs;
    this.#mostSlots = polling === 'adaptive' ? Math.max(1, Math.floor(longestPauseMs / intervalMs)) : 1;
  }

  /** Whether the pause is always the same, so that nothing but a turn sets the next one. */
  get isSteady(): boolean {
    return this.#polling === 'interval';
  }

  /** Whether the pause is longer than it was: nobody has used the instance since the last turn. */
  get isBackedOff(): boolean {
    return this.#slots > 1;
  }

  /** Somebody uses the instance. True if the next turn is to come sooner for it. */
  asked(): boolean {
    if (this.#slots === 1) return false;
    this.#slots = 1;
    return true;
  }

  /**
   * A turn is over. What others committed makes the next one no sooner: nobody here has asked for it, and whoever does
   * is shown it.
   */
  turned(): void {
    this.#slots = Math.min(this.#slots * 2, this.#mostSlots);
  }

  /** Milliseconds until the next turn; undefined for none. `untilMergeMs`: until this node may merge, if it is to. */
  untilTurn(nowMs: number, untilMergeMs: number | undefined): number | undefined {
    if (this.#polling === 'onDemand') return untilMergeMs;
    const pollMs = untilNextSlot(nowMs, this.#intervalMs) + (this.#slots - 1) * this.#intervalMs;
    return Math.min(pollMs, untilMergeMs ?? pollMs);
  }
}
