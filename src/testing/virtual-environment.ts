/**
 * An environment that a test controls: virtual time, seeded randomness, and a process that can be paused and killed.
 * What takes minutes of deadlines and pauses takes no time, and happens in the same way in every run.
 *
 *     const environment = new VirtualEnvironment({ seed: 1 });
 *     const db = createDatabase({ dbPrefix: 'test', nodeId: 0, driver: environment.connect(driver) }, environment);
 *     await environment.run(db.start());
 *
 * Time moves only within `run()` and `advance()`, and only when nothing else can happen. For that, everything that code
 * under test waits for must come from here: timers, `yieldToEventLoop()`, and drivers that answer at once or by timers
 * of a virtual environment. A driver that does real I/O breaks the illusion.
 */
import type { Environment, Timer } from '../base/env.ts';
import { kinds, OptionTable } from '../base/options.ts';
import type { StorageDriver } from '../storage/contract/driver.ts';
import { ConnectedDriver } from './connected-driver.ts';
import { SeededRandom, seedKind } from './seeded-random.ts';
import { VirtualTimeline } from './virtual-timeline.ts';

/** Options of `VirtualEnvironment`. */
export interface VirtualEnvironmentOptions {
  /** What randomness comes from. Default 1. */
  readonly seed?: number | string;
  /** What the wall clock shows at first, in milliseconds since 1970. */
  readonly startMs?: number;
  /**
   * How far the monotonic clock moves with every look at it, in milliseconds. Virtual code takes no time; with this,
   * long work notices that it is due for a pause. Default 0.
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
  /** The time that this process shares with others. */
  readonly timeline: VirtualTimeline;
  /** Added to the wall clock only: a clock that is wrong. May be changed at any time. */
  skewMs = 0;
  readonly #options: VirtualEnvironmentOptions;
  readonly #random: SeededRandom;
  /** Decides the order of what happens after a pause; apart from the randomness that the code under test uses. */
  readonly #ordering: SeededRandom;
  #lookedMs = 0;
  #timers = 0;
  #frozen = false;
  #pausedUntilMs = 0;
  #held: Held[] = [];

  /** Makes a process on a timeline, by default one of its own. Throws `InvalidOptionError`. */
  constructor(options: VirtualEnvironmentOptions = {}, timeline: VirtualTimeline = new VirtualTimeline()) {
    this.timeline = timeline;
    this.#options = environmentOptions.check('new VirtualEnvironment()', options);
    this.#random = new SeededRandom(options.seed ?? 1);
    this.#ordering = this.#random.fork();
  }

  /** Another process on the same timeline, with a clock and randomness of its own. Throws `InvalidOptionError`. */
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

  /** Timers that are set and have not fired: none are left behind by an instance that was stopped. */
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

  /** Kills the process: none of its timers fires and no answer reaches it any more, and it sends nothing. */
  freeze(): void {
    this.#frozen = true;
    this.#held = [];
  }

  /** Stops the process for a while. Clocks go on; whatever is due meanwhile happens when it wakes. */
  pause(ms: number): void {
    const untilMs = this.timeline.nowMs + ms;
    if (untilMs <= this.#pausedUntilMs) return;
    this.#pausedUntilMs = untilMs;
    this.timeline.schedule(() => this.#wake(), ms);
  }

  /** A driver as this process has it: once the process is frozen it sends nothing, and hears nothing. */
  connect(driver: StorageDriver): StorageDriver {
    return new ConnectedDriver(driver, this);
  }

  /** Waits for a promise while virtual time passes; rejects if it hangs. */
  run<T>(promise: Promise<T>, patienceMs?: number): Promise<T> {
    return this.timeline.run(promise, patienceMs);
  }

  /** Lets so much virtual time pass, with everything that happens meanwhile. */
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
    // A process that was stopped finds its timers due and its answers there, and may see either first.
    const timersFirst = this.#ordering.chance(0.5);
    const inOrder = [
      ...held.filter(({ isTimer }) => isTimer === timersFirst),
      ...held.filter(({ isTimer }) => isTimer !== timersFirst),
    ];
    // Each as an event of its own: what follows from one comes before the next.
    for (const { isTimer, happen } of inOrder) this.timeline.schedule(() => this.#happen(isTimer, happen), 0);
  }
}
