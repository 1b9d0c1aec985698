/**
 * Keeps the view fresh. An instance begins with Block 0, and then reads the commits that the log holds beyond it. With polling
 * `onDemand` it still reads them when `start()` has resolved: a call that needs a fresh view waits for them, and a query may read
 * in the meantime (query/run-on-state.ts), so that its first row comes a round trip earlier.
 *
 * Freshness never depends on turns: every call that needs a fresh view asks for one here.
 */
import { withinDeadline, untilAborted } from '../base/abort.ts';
import type { Deadline } from '../base/abort.ts';
import type { Environment } from '../base/env.ts';
import type { EngineEvents } from '../log/engine-events.ts';
import type { LogFollower } from '../log/log-follower.ts';
import type { Backpressure } from './backpressure.ts';
import type { Polling } from './polling-pace.ts';

/** The log is looked at so soon after Block 0 was read, or Block 0 is read once more, in milliseconds. */
const soonMs = 2000;

/**
 * How long a comparison of the two clocks holds for reads, in milliseconds of the monotonic clock. Reads come by the million, and asking a
 * clock takes 5 % of a read from memory.
 */
const comparedForMs = 1;

export interface FreshnessOptions {
  readonly environment: Environment;
  /** Option `writeForwardInterval`, in milliseconds. */
  readonly intervalMs: number;
  readonly polling: Polling;
  /** Whether the process may be frozen between two calls, as functions are. Then each read asks both clocks. */
  readonly mayFreeze: boolean;
  readonly follower: LogFollower;
  readonly backpressure: Backpressure;
  readonly events: EngineEvents;
  /** How long opening, and the look at the log after it, may take, in milliseconds. */
  readonly timeoutMs: number;
  /** Aborted when the engine is closed. */
  readonly stopping: AbortSignal;
}

/**
 * A moment by both clocks of the machine. The monotonic clock may stand still while a machine is suspended or a function is frozen, and
 * the wall clock may be set back.
 */
export interface Moment {
  readonly monotonicMs: number;
  readonly wallMs: number;
}

/** Returns the present moment. */
export function momentNow(environment: Environment): Moment {
  return { monotonicMs: environment.monotonicMs(), wallMs: environment.now() };
}

/** Milliseconds since a moment, by the clock that has gone further. */
function msSince({ monotonicMs, wallMs }: Moment, environment: Environment): number {
  return Math.max(environment.monotonicMs() - monotonicMs, environment.now() - wallMs);
}

export class Freshness {
  readonly #options: FreshnessOptions;
  /** When the Block 0 was asked for that the view began with. */
  #opened: Moment = { monotonicMs: 0, wallMs: 0 };
  /** When the call began that brought the view up to date. Before the first look: never. */
  #refreshed: Moment = { monotonicMs: -Infinity, wallMs: -Infinity };
  /** When the clocks were compared for a read, by the monotonic one, and how far that one was behind the other. */
  #comparedMs = -Infinity;
  #behindMs = 0;
  #look: Promise<void> | undefined;

  constructor(options: FreshnessOptions) {
    this.#options = options;
  }

  /** Opens the view by `read`, and looks at the log: with polling `onDemand`, only begins to. */
  async open(read: (signal: AbortSignal) => Promise<void>): Promise<void> {
    const { environment, polling } = this.#options;
    const callName = 'db.start()';
    this.#opened = momentNow(environment);
    const complete = await this.#withDeadline(callName, undefined, async ({ signal }) => {
      await read(signal);
      return polling === 'onDemand' ? undefined : this.#readOn(signal);
    });
    if (complete !== undefined) return this.#workOff(callName, complete);
    this.#look = this.#lookBehind().finally(() => (this.#look = undefined));
    // A call that needs a fresh view then catches up itself, and rejects if that fails as well.
    this.#look.catch(() => undefined);
  }

  #withDeadline<T>(
    callName: string,
    signal: AbortSignal | undefined,
    call: (deadline: Deadline) => Promise<T>,
  ): Promise<T> {
    const { environment, timeoutMs } = this.#options;
    return withinDeadline(environment, callName, timeoutMs, signal, call);
  }

  /** Emits that the log or Block 0 was read. */
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
    const callName = 'The look at the log after db.start()';
    const complete = await this.#withDeadline(callName, stopping, ({ signal }) => this.#readOn(signal));
    await this.#workOff(callName, complete);
    this.#tell();
  }

  /** Milliseconds since the view was known to be the newest; infinite before the log was looked at. */
  get viewAgeMs(): number {
    return msSince(this.#refreshed, this.#options.environment);
  }

  /**
   * Whether the view is so old that a query should not trust it: the node was paused, could not reach the store, or
   * looks at it less often.
   */
  get isStale(): boolean {
    const { environment, intervalMs, mayFreeze } = this.#options;
    if (mayFreeze) return this.viewAgeMs > 2 * intervalMs;
    const nowMs = environment.monotonicMs();
    const { monotonicMs, wallMs } = this.#refreshed;
    if (!(nowMs - this.#comparedMs < comparedForMs)) {
      this.#comparedMs = nowMs;
      // Before the first look, both ages are infinite.
      this.#behindMs = Math.max(0, environment.now() - wallMs - (nowMs - monotonicMs)) || 0;
    }
    return nowMs - monotonicMs + this.#behindMs > 2 * intervalMs;
  }

  /** Whether it is being found out if the view that was opened is the newest. */
  get isLooking(): boolean {
    return this.#look !== undefined;
  }

  /**
   * The view shows everything that was committed before `started`: when the call began that brought it up to date. When it
   * ended says nothing, since its answers may have been long on the way.
   */
  note(started: Moment): void {
    if (started.monotonicMs <= this.#refreshed.monotonicMs) return;
    this.#refreshed = started;
    this.#comparedMs = -Infinity;
  }

  /** Catches up with everything that was committed before the call. */
  async catchUp(signal?: AbortSignal): Promise<void> {
    await this.#catchUp(signal);
    this.#tell();
  }

  async #catchUp(signal: AbortSignal | undefined): Promise<void> {
    const started = momentNow(this.#options.environment);
    await this.#options.backpressure.catchUp(signal);
    this.note(started);
  }

  /** Catches up if the next slot shows that there is something new. */
  async peek(): Promise<void> {
    const started = momentNow(this.#options.environment);
    if (await this.#options.follower.peek()) this.note(started);
  }

  /**
   * Reads the commits in the log beyond the Block 0 that the view began with, so that the view shows everything that was committed
   * before the start. False if there is no room for all of them.
   */
  async #readOn(signal: AbortSignal): Promise<boolean> {
    const { environment, follower } = this.#options;
    const complete = await follower.readOn(signal);
    // A slot may be missing because it was merged and trimmed since Block 0 was read, but not within two seconds.
    return msSince(this.#opened, environment) > soonMs ? follower.refresh(signal) : complete;
  }

  /** Ends a first look. A long backlog is merged step by step, each step within a deadline of its own. */
  async #workOff(callName: string, complete: boolean): Promise<void> {
    const { backpressure, stopping } = this.#options;
    while (!complete)
      complete = await this.#withDeadline(callName, stopping, ({ signal }) => backpressure.step(signal));
    this.note(this.#opened);
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
