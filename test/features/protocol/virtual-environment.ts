/**
 * An environment whose clock moves only when nothing else can happen: what takes minutes of deadlines and pauses takes
 * no time, and happens the same way every time.
 */
import type { Environment, Timer } from '../../../src/base/env.ts';
import { loadAll } from '../../../src/base/later.ts';

interface Pending {
  readonly atMs: number;
  readonly order: number;
  readonly callback: () => void;
}

/** After so much virtual time without a result, a call is taken to hang. */
const patienceMs = 30 * 60_000;

export class VirtualEnvironment implements Environment {
  /** Added to the wall clock only: a clock that is wrong. */
  skewMs = 0;
  #elapsedMs = 0;
  #timers: Pending[] = [];
  #order = 0;
  #yields = 0;
  #holding = 0;
  #state: number;

  constructor(seed = 1) {
    this.#state = seed >>> 0;
  }

  now(): number {
    return 1_700_000_000_000 + this.#elapsedMs + this.skewMs;
  }

  monotonicMs(): number {
    return this.#elapsedMs;
  }

  get timerCount(): number {
    return this.#timers.length;
  }

  setTimer(callback: () => void, delayMs: number): Timer {
    const timer: Pending = { atMs: this.#elapsedMs + Math.max(0, delayMs), order: this.#order++, callback };
    this.#timers.push(timer);
    return {
      cancel: () => {
        this.#timers = this.#timers.filter((other) => other !== timer);
      },
    };
  }

  random(): number {
    // A linear congruential generator; its high bits are good enough for jitter.
    this.#state = (Math.imul(this.#state, 1664525) + 1013904223) >>> 0;
    return this.#state / 0x1_0000_0000;
  }

  randomBytes(length: number): Uint8Array {
    return Uint8Array.from({ length }, () => Math.floor(this.random() * 256));
  }

  async yieldToEventLoop(): Promise<void> {
    this.#yields++;
    await nextTurn();
    this.#yields--;
  }

  /** Lets everything happen that can without the clock moving; nobody else moves it meanwhile. */
  async quiesce(): Promise<void> {
    this.#holding++;
    await loadAll();
    await this.#calmDown();
    this.#holding--;
  }

  async #calmDown(): Promise<void> {
    for (let quiet = 0; quiet < 3; quiet++) {
      await nextTurn();
      if (this.#yields > 0) quiet = -1;
    }
  }

  /** Moves the clock on by so much, with everything that happens meanwhile. */
  async advance(ms: number): Promise<void> {
    const untilMs = this.#elapsedMs + ms;
    await this.quiesce();
    for (let next = this.#nextTimer(); next !== undefined && next.atMs <= untilMs; next = this.#nextTimer()) {
      this.#fire(next);
      await this.quiesce();
    }
    this.#elapsedMs = untilMs;
  }

  /** Waits for a promise, moving the clock on whenever nothing else happens. */
  async run<T>(promise: Promise<T>): Promise<T> {
    let settled = false;
    const note = (): void => {
      settled = true;
    };
    promise.then(note, note);
    // Loading code takes real time, in which the clock must not move.
    this.#holding++;
    await loadAll();
    this.#holding--;
    const startedMs = this.#elapsedMs;
    for (;;) {
      await this.#calmDown();
      if (settled) return promise;
      if (this.#holding > 0) continue;
      const next = this.#nextTimer();
      if (next === undefined) throw new Error('the call hangs: nothing is left to wait for');
      if (next.atMs - startedMs > patienceMs) throw new Error(`the call hangs: no result after ${patienceMs} ms`);
      this.#fire(next);
    }
  }

  #nextTimer(): Pending | undefined {
    let first: Pending | undefined;
    for (const timer of this.#timers) {
      if (first === undefined || timer.atMs < first.atMs || (timer.atMs === first.atMs && timer.order < first.order)) {
        first = timer;
      }
    }
    return first;
  }

  #fire(timer: Pending): void {
    this.#timers = this.#timers.filter((other) => other !== timer);
    this.#elapsedMs = Math.max(this.#elapsedMs, timer.atMs);
    timer.callback();
  }
}

function nextTurn(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}
