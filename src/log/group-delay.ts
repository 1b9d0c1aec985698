/** The pause before a commit in which writers come back that the last commit has served. */
import type { Environment, Timer } from '../base/env.ts';

/** The longest delay of a commit, as a part of the time that the last commit took. */
const partOfCommit = 0.1;
/** The longest delay in milliseconds, however long the last commit took. */
const maxMs = 25;
/** The shortest delay that is worth a timer: clocks tick by the millisecond. */
const minTimerMs = 1;

/**
 * Delays a commit for a short time, for the flushes of writers whose last flushes were committed a moment ago: a writer that writes
 * again and again comes back at once. Without the delay the first of them would take the next commit for itself, and all others would
 * wait for two commits: twice the time, and twice the requests. One flush alone is never delayed.
 */
export class GroupDelay {
  readonly #environment: Environment;
  /** The number of flushes in the last commit and of flushes that waited for its end. */
  #expected = 0;
  #begunMs = 0;
  #untilMs = 0;
  #onAll: (() => void) | undefined;

  constructor(environment: Environment) {
    this.#environment = environment;
  }

  /** Notes that a commit has ended. `flushes`: how many were in it, or came meanwhile. */
  noteEnd(flushes: number): void {
    const nowMs = this.#environment.monotonicMs();
    this.#expected = flushes;
    this.#untilMs = nowMs + Math.min(maxMs, (nowMs - this.#begunMs) * partOfCommit);
  }

  /** Notes that a flush has come. `flushes`: how many wait now. */
  noteArrival(flushes: number): void {
    if (flushes >= this.#expected) this.#onAll?.();
  }

  /**
   * Resolves when the next commit should begin: once as many flushes wait as are expected, or waiting for more is not worth
   * while.
   */
  async wait(waiting: () => number): Promise<void> {
    if (this.#isWorthwhile(waiting(), 0)) {
      // Some writers have their answer already, and have only not come to run.
      await this.#environment.yieldToEventLoop();
      if (this.#isWorthwhile(waiting(), minTimerMs)) await this.#allOrTime();
    }
    this.#begunMs = this.#environment.monotonicMs();
  }

  async #allOrTime(): Promise<void> {
    let timer: Timer | undefined;
    await new Promise<void>((resolve) => {
      this.#onAll = resolve;
      timer = this.#environment.setTimer(resolve, this.#untilMs - this.#environment.monotonicMs());
    });
    this.#onAll = undefined;
    timer?.cancel();
  }

  #isWorthwhile(waiting: number, minMs: number): boolean {
    const leftMs = this.#untilMs - this.#environment.monotonicMs();
    return this.#expected > 1 && waiting < this.#expected && leftMs > minMs;
  }
}
