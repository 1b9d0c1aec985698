/** Keeps long work polite: it says when it is time to let the event loop run, and does so. */
import type { Environment } from './env.ts';

/** How long work may go on without a pause, in milliseconds. */
const sliceMs = 4;

export class Pacer {
  readonly #environment: Environment;
  #since: number;

  constructor(environment: Environment) {
    this.#environment = environment;
    this.#since = environment.monotonicMs();
  }

  /** Whether a pause is due. */
  due(): boolean {
    return this.#environment.monotonicMs() - this.#since >= sliceMs;
  }

  /** Lets the event loop run. */
  async pause(): Promise<void> {
    await this.#environment.yieldToEventLoop();
    this.#since = this.#environment.monotonicMs();
  }
}
