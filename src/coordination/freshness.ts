/**
 * How fresh the view is, and what makes it so. An instance begins with Block 0, and looks at what the log holds beyond that.
 * With polling `onDemand` this goes on when `start()` has ended: whatever needs a fresh view waits for it, and may read in
 * the meantime (query/run-on-state.ts), so that the first row is there a round trip earlier.
 *
 * Freshness never rests on turns: whatever needs a fresh view asks for it here.
 */
import { withinDeadline, untilAborted } from '../base/abort.ts';
import type { Deadline } from '../base/abort.ts';
import type { Environment } from '../base/env.ts';
import type { LogEvents } from '../log/log-events.ts';
import type { LogFollower } from '../log/log-follower.ts';
import type { Backpressure } from './backpressure.ts';
import { untilNextSlot } from './rotation.ts';

// How often an instance looks at the store by itself. It knows nothing of stores and timers: it counts slots of
// `writeForwardInterval` between turns, and says when the next turn is.
//
// Freshness never rests on it: a query on a view older than two intervals refreshes first, whatever the polling.

/**
 * `interval`: a turn at every `writeForwardInterval`. `adaptive`: the pause between turns doubles, up to a minute, while
 * nobody uses the instance. `onDemand`: no turns but those that are needed to merge what is pending; and `start()` does not wait for the log.
 */
export type Polling = 'interval' | 'adaptive' | 'onDemand';

/** Every value of {@link Polling}. */
export const pollings: readonly Polling[] = ['interval', 'adaptive', 'onDemand'];

/** Longest pause of `adaptive` polling; an interval that is longer still is the pause itself. */
const maxPauseMs = 60_000;

export class PollingPace {
  readonly #polling: Polling;
  readonly #intervalMs: number;
  readonly #maxSlots: number;
  /** The pause up to the next turn. */
  #slots = 1;

  constructor(polling: Polling, intervalMs: number) {
    this.#polling = polling;
    this.#intervalMs = intervalMs;
    this.#maxSlots = polling === 'adaptive' ? Math.max(1, Math.floor(maxPauseMs / intervalMs)) : 1;
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
   * A turn is over. What others committed makes the next one no sooner: nobody here has asked for it, and a caller that
   * does sees it.
   */
  turned(): void {
    this.#slots = Math.min(this.#slots * 2, this.#maxSlots);
  }

  /** Milliseconds until the next turn; undefined for none. `untilMergeMs`: until this node may merge, if it is to. */
  untilTurn(nowMs: number, untilMergeMs: number | undefined): number | undefined {
    if (this.#polling === 'onDemand') return untilMergeMs;
    const pollMs = untilNextSlot(nowMs, this.#intervalMs) + (this.#slots - 1) * this.#intervalMs;
    return Math.min(pollMs, untilMergeMs ?? pollMs);
  }
}

/** The log is looked at so soon after Block 0 was read, or Block 0 is read once more, in milliseconds. */
const soonMs = 2000;

export interface FreshnessOptions {
  readonly environment: Environment;
  /** Option `writeForwardInterval`, in milliseconds. */
  readonly intervalMs: number;
  readonly polling: Polling;
  readonly follower: LogFollower;
  readonly backpressure: Backpressure;
  readonly events: LogEvents;
  /** How long opening, and the look at the log after it, may take, in milliseconds. */
  readonly timeoutMs: number;
  /** Aborted when the engine is closed. */
  readonly stopping: AbortSignal;
}

export class Freshness {
  readonly #options: FreshnessOptions;
  /** When the Block 0 was asked for that the view began with. */
  #openedMs = 0;
  /** When the call began that brought the view up to date. Before the first look: never. */
  #refreshedMs = -Infinity;
  #look: Promise<void> | undefined;

  constructor(options: FreshnessOptions) {
    this.#options = options;
  }

  /** Opens the view by `read`, and looks at the log: with polling `onDemand`, only begins to. */
  async open(read: (signal: AbortSignal) => Promise<void>): Promise<void> {
    const { environment, polling } = this.#options;
    const what = 'db.start()';
    this.#openedMs = environment.monotonicMs();
    const complete = await this.#withDeadline(what, undefined, async ({ signal }) => {
      await read(signal);
      return polling === 'onDemand' ? undefined : this.#readOn(signal);
    });
    if (complete !== undefined) return this.#workOff(what, complete);
    this.#look = this.#lookBehind().finally(() => (this.#look = undefined));
    // A call that needs a fresh view catches up then, and is told if that fails as well.
    this.#look.catch(() => undefined);
  }

  #withDeadline<T>(
    what: string,
    signal: AbortSignal | undefined,
    call: (deadline: Deadline) => Promise<T>,
  ): Promise<T> {
    const { environment, timeoutMs } = this.#options;
    return withinDeadline(environment, what, timeoutMs, signal, call);
  }

  /** Tells that somebody has looked. */
  #tell(): void {
    const { events, follower } = this.#options;
    events.looked.emit(follower.view);
  }

  /** Resolves once no look goes on behind the start, however it has ended. Rejects if the engine is closed. */
  async looked(): Promise<void> {
    await this.idle();
    this.#options.stopping.throwIfAborted();
  }

  async #lookBehind(): Promise<void> {
    const { stopping } = this.#options;
    const what = 'The look at the log after db.start()';
    const complete = await this.#withDeadline(what, stopping, ({ signal }) => this.#readOn(signal));
    await this.#workOff(what, complete);
    this.#tell();
  }

  /** Milliseconds since the view was known to be the newest; infinite before the log was looked at. */
  get viewAgeMs(): number {
    return this.#options.environment.monotonicMs() - this.#refreshedMs;
  }

  /**
   * Whether the view is so old that a query should not trust it: the node was paused, could not reach the store, or
   * looks at it less often.
   */
  get isStale(): boolean {
    return this.viewAgeMs > 2 * this.#options.intervalMs;
  }

  /** Whether it is being found out if the view that was opened is the newest. */
  get isLooking(): boolean {
    return this.#look !== undefined;
  }

  /**
   * The view shows everything that was committed before `startedMs`: when the call began that brought it up to date. When it
   * ended says nothing, since its answers may have been long on the way.
   */
  note(startedMs: number): void {
    this.#refreshedMs = Math.max(this.#refreshedMs, startedMs);
  }

  /** Catches up with everything that was committed before the call. */
  async catchUp(signal?: AbortSignal): Promise<void> {
    await this.#catchUp(signal);
    this.#tell();
  }

  async #catchUp(signal: AbortSignal | undefined): Promise<void> {
    const startedMs = this.#options.environment.monotonicMs();
    await this.#options.backpressure.catchUp(signal);
    this.note(startedMs);
  }

  /** Catches up if the next slot shows that there is something new. */
  async peek(): Promise<void> {
    const startedMs = this.#options.environment.monotonicMs();
    if (await this.#options.follower.peek()) this.note(startedMs);
  }

  /**
   * Reads what the log holds beyond the Block 0 that the view began with, so that it shows everything that was committed
   * before that was asked for. False if there is no room for all of it.
   */
  async #readOn(signal: AbortSignal): Promise<boolean> {
    const { environment, follower } = this.#options;
    const complete = await follower.readOn(signal);
    // A slot may be missing because it was merged and trimmed since Block 0 was read: not in the blink of an eye.
    return environment.monotonicMs() - this.#openedMs > soonMs ? follower.refresh(signal) : complete;
  }

  /** Ends a first look. What has piled up for long is worked off step by step, each of them in time. */
  async #workOff(what: string, complete: boolean): Promise<void> {
    const { backpressure, stopping } = this.#options;
    while (!complete) complete = await this.#withDeadline(what, stopping, ({ signal }) => backpressure.step(signal));
    this.note(this.#openedMs);
  }

  /**
   * Makes the view as fresh as a query must have it. True if it then shows everything that was committed before the call: a
   * look that is under way goes back to the opening only.
   */
  async freshen(signal: AbortSignal | undefined): Promise<boolean> {
    if (this.#look !== undefined) await untilAborted(this.looked(), signal);
    if (!this.isStale) return false;
    await this.#catchUp(signal);
    return true;
  }

  /** Resolves once no look is under way. */
  async idle(): Promise<void> {
    await this.#look?.catch(() => undefined);
  }
}
