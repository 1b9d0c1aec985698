/**
 * An environment that a test controls: virtual time, seeded randomness, and a process that can be paused and killed.
 * Minutes of deadlines and pauses take no time, and every run is the same.
 *
 *     const environment = new VirtualEnvironment({ seed: 1 });
 *     const db = createDatabase({ dbPrefix: 'test', nodeId: 0, driver: environment.connect(driver) }, environment);
 *     await environment.run(db.start());
 *
 * Time moves only within `run()` and `advance()`, and only when nothing else can happen. So the code under test may only wait for
 * timers and `yieldToEventLoop()` of this environment, and for drivers that answer at once or by timers of a virtual environment. It
 * does not work with a driver that does real I/O.
 */
import type { Environment, Timer } from '../base/env.ts';
import { kinds, OptionTable } from '../base/options.ts';
import type { StorageDriver } from '../storage/contract/driver.ts';
import { ConnectedDriver } from './connected-driver.ts';
import { SeededRandom, seedKind } from './seeded-random.ts';
import { VirtualTimeline } from './virtual-timeline.ts';

/** Options of `VirtualEnvironment`. */
export interface VirtualEnvironmentOptions {
  /** The seed of the randomness. Default 1. */
  readonly seed?: number | string;
  /** The initial time of the wall clock, in milliseconds since 1970. */
  readonly startMs?: number;
  /**
   * The milliseconds by which the monotonic clock moves each time it is read. Code takes no virtual time; with this,
   * long work notices that it must pause. Default 0.
   */
  readonly lookMs?: number;
}

const environmentOptions = new OptionTable<VirtualEnvironmentOptions>({
  seed: seedKind,
  startMs: kinds.number(0, Infinity),
  lookMs: kinds.number(0, Infinity),
});

interface Held {
  readonly isTimer: boolean;
  readonly happen: () => void;
}

/** One process in virtual time. {@link fork} makes others on the same timeline. */
export class VirtualEnvironment implements Environment {
  /** The virtual time, which this process may share with others. */
  readonly timeline: VirtualTimeline;
  /** An error in milliseconds that is added to the wall clock only. May be changed at any time. */
  skewMs = 0;
  readonly #options: VirtualEnvironmentOptions;
  readonly #random: SeededRandom;
  /** Decides the order of events after a pause, independently of the randomness that the code under test uses. */
  readonly #ordering: SeededRandom;
  #lookedMs = 0;
  #timers = 0;
  #frozen = false;
  #pausedUntilMs = 0;
  #held: Held[] = [];

  /** Creates a process on a timeline, by default a new one. Throws `InvalidOptionError`. */
  constructor(options: VirtualEnvironmentOptions = {}, timeline: VirtualTimeline = new VirtualTimeline()) {
    this.timeline = timeline;
    this.#options = environmentOptions.check('new VirtualEnvironment()', options);
    this.#random = new SeededRandom(options.seed ?? 1);
    this.#ordering = this.#random.fork();
  }

  /** Creates another process on the same timeline, with its own clock and randomness. Throws `InvalidOptionError`. */
  fork(options: VirtualEnvironmentOptions = {}): VirtualEnvironment {
    environmentOptions.check('environment.fork()', options);
    const seed = options.seed ?? this.#ordering.integer(0, 0xffff_ffff);
    return new VirtualEnvironment({ ...this.#options, ...options, seed }, this.timeline);
  }

  now(): number {
    return Math.floor((this.#options.startMs ?? 1_700_000_000_000) + this.timeline.nowMs + this.skewMs);
  }

  monotonicMs(): number {
    this.#lookedMs += this.#options.lookMs ?? 0;
    return this.timeline.nowMs + this.#lookedMs;
  }

  setTimer(callback: () => void, delayMs: number): Timer {
    if (this.#frozen) return { cancel: () => undefined };
    this.#timers++;
    let pending = true;
    const happen = (): void => {
      if (!pending) return;
      pending = false;
      this.#timers--;
      callback();
    };
    const event = this.timeline.schedule(() => this.#happen(true, happen), delayMs);
    return {
      cancel: () => {
        event.cancel();
        if (pending) this.#timers--;
        pending = false;
      },
    };
  }

  /** The number of timers that are set and have not fired. A stopped instance leaves none behind. */
  get timerCount(): number {
    return this.#timers;
  }

  random(): number {
    return this.#random.next();
  }

  randomBytes(length: number): Uint8Array {
    return this.#random.bytes(length);
  }

  yieldToEventLoop(): Promise<void> {
    return new Promise((resolve) => {
      this.timeline.schedule(() => this.#happen(false, resolve), 0);
    });
  }

  /** Calls `happen` now, after the pause if there is one, or never if the process is dead by then. */
  deliver(happen: () => void): void {
    this.#happen(false, happen);
  }

  /** Whether {@link freeze} was called. */
  get isFrozen(): boolean {
    return this.#frozen;
  }

  /** Whether the process is paused now. */
  get isPaused(): boolean {
    return this.timeline.nowMs < this.#pausedUntilMs;
  }

  /** Kills the process: its timers do not fire, no answer reaches it, and it sends no requests. */
  freeze(): void {
    this.#frozen = true;
    this.#held = [];
  }

  /** Suspends the process for a while. Clocks go on; events that are due meanwhile happen when it wakes. */
  pause(ms: number): void {
    const untilMs = this.timeline.nowMs + ms;
    if (untilMs <= this.#pausedUntilMs) return;
    this.#pausedUntilMs = untilMs;
    this.timeline.schedule(() => this.#wake(), ms);
  }

  /** Connects a driver to this process: once the process is frozen, it sends no requests and gets no answers. */
  connect(driver: StorageDriver): StorageDriver {
    return new ConnectedDriver(driver, this);
  }

  /** Waits for a promise while virtual time passes; rejects if it hangs. */
  run<T>(promise: Promise<T>, patienceMs?: number): Promise<T> {
    return this.timeline.run(promise, patienceMs);
  }

  /** Lets virtual time pass, with all events that happen meanwhile. */
  advance(ms: number): Promise<void> {
    return this.timeline.advance(ms);
  }

  #happen(isTimer: boolean, happen: () => void): void {
    if (this.#frozen) return;
    if (this.isPaused) this.#held.push({ isTimer, happen });
    else happen();
  }

  #wake(): void {
    if (this.isPaused) return;
    const held = this.#held;
    this.#held = [];
    // After a pause, timers and answers are both due, and either may come first.
    const timersFirst = this.#ordering.chance(0.5);
    const inOrder = [
      ...held.filter(({ isTimer }) => isTimer === timersFirst),
      ...held.filter(({ isTimer }) => isTimer !== timersFirst),
    ];
    // Each is a separate event, so that the consequences of one come before the next.
    for (const { isTimer, happen } of inOrder) this.timeline.schedule(() => this.#happen(isTimer, happen), 0);
  }
}
