/**
 * The short time that a commit waits before it begins, for the flushes of those whose last ones were committed a moment
 * ago. Whoever writes again and again comes back at once. Without the delay the first of them would take the next commit
 * for itself, and all others would wait for two: twice the time, and twice the requests.
 */
import type { Environment, Timer } from '../base/env.ts';

/** The longest delay, as a part of the time that the last commit took. */
const partOfCommit = 0.1;
/** And in milliseconds, whatever that one took. */
const longestMs = 25;
/** Less is not worth a timer: clocks tick by the millisecond. */
const leastTimerMs = 1;

/** Decides how long a commit is delayed. One flush alone never is. */
export class GroupDelay {
  readonly #environment: Environment;
  /** How many flushes were in the last commit, or waited for its end. */
  #expected = 0;
  #begunMs = 0;
  #untilMs = 0;
  #onAll: (() => void) | undefined;

  constructor(environment: Environment) {
    this.#environment = environment;
  }

  /** A commit has ended: `flushes` were in it, or had come meanwhile. */
  ended(flushes: number): void {
    const nowMs = this.#environment.monotonicMs();
    this.#expected = flushes;
    this.#untilMs = nowMs + Math.min(longestMs, (nowMs - this.#begunMs) * partOfCommit);
  }

  /** A flush has come: `flushes` wait now. */
  came(flushes: number): void {
    if (flushes >= this.#expected) this.#onAll?.();
  }

  /**
   * Resolves when the next commit is to begin: once as many flushes wait as are expected, or it is not worth while to wait for
   * more.
   */
  async over(waiting: () => number): Promise<void> {
    if (this.#isWorthwhile(waiting(), 0)) {
      // Some have their answer already, and have only not come to run.
      await this.#environment.yieldToEventLoop();
      if (this.#isWorthwhile(waiting(), leastTimerMs)) await this.#allOrTime();
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

  #isWorthwhile(waiting: number, leastMs: number): boolean {
    const leftMs = this.#untilMs - this.#environment.monotonicMs();
    return this.#expected > 1 && waiting < this.#expected && leftMs > leastMs;
  }
}
