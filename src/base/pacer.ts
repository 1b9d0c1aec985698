/** Keeps long work polite: it says when it is time to let the event loop run, and does so. */
import { sleep } from './env.ts';
import type { Environment } from './env.ts';

/** How long work may go on without a pause, in milliseconds. */
const sliceMs = 4;
/**
 * How many times as long work in the background rests as it works. What it makes others do comes on top of that: reading and
 * writing files, and collecting garbage.
 */
const restShare = 3;
/** Longest rest, in milliseconds: what took longer than a slice was mostly waiting. */
const longestRestMs = 4 * sliceMs;

export class Pacer {
  readonly #environment: Environment;
  readonly #rests: boolean;
  #since: number;

  /**
   * `rests`: for work in the background, which leaves others most of the time while it goes on. A turn of the event loop
   * would not do: whoever reads a little in every turn would get that little for every slice.
   */
  constructor(environment: Environment, rests = false) {
    this.#environment = environment;
    this.#rests = rests;
    this.#since = environment.monotonicMs();
  }

  /** Whether a pause is due. */
  due(): boolean {
    return this.#environment.monotonicMs() - this.#since >= sliceMs;
  }

  /** Lets the event loop run. */
  async pause(): Promise<void> {
    const workedMs = this.#environment.monotonicMs() - this.#since;
    if (this.#rests) await sleep(this.#environment, Math.min(restShare * workedMs, longestRestMs));
    else await this.#environment.yieldToEventLoop();
    this.#since = this.#environment.monotonicMs();
  }
}
