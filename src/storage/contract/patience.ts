/**
 * How long requests are repeated to a store that has gone away: a gateway that is started again is back after some seconds. A
 * store that has never answered is none that will be back, and neither is one that was not back in time: then a request fails
 * after its first few attempts, until one succeeds.
 */
import { backOff } from '../../base/backoff.ts';
import type { Environment } from '../../base/env.ts';
import { StorageError } from '../../base/errors.ts';

/** How long a store may be away, in milliseconds. */
const defaultMs = 10_000;
const longestPauseMs = 1000;

/** Whether a request failed since the store, or the way to it, was not there or had too much to do. */
export function isOutage(error: unknown): error is StorageError {
  return error instanceof StorageError && (error.reason === 'unavailable' || error.reason === 'throttled');
}

export class Patience {
  readonly #environment: Environment;
  readonly #forMs: number;
  #hasAnswered = false;

  constructor(environment: Environment, forMs: number = defaultMs) {
    this.#environment = environment;
    this.#forMs = forMs;
  }

  /** To be called once a request has succeeded. */
  answered(): void {
    this.#hasAnswered = true;
  }

  /** Whether a request that was first sent at a time, by the monotonic clock, and failed is to be sent again. */
  isLeft(error: unknown, firstSentMs: number): boolean {
    if (!this.#hasAnswered || !isOutage(error)) return false;
    if (this.#environment.monotonicMs() - firstSentMs < this.#forMs) return true;
    this.#hasAnswered = false;
    return false;
  }

  /**
   * Pauses before a further attempt: the time doubles up to a second, and is jittered. Resolves with whether there is to be one:
   * not once the signal is aborted, whose reason may be anything and is no error of a request.
   */
  async pause(firstPauseMs: number, attempt: number, signal: AbortSignal | undefined): Promise<boolean> {
    const backoff = { firstMs: firstPauseMs, longestMs: longestPauseMs, jitter: 'around' } as const;
    await backOff(this.#environment, backoff, attempt, signal).catch(() => undefined);
    return signal?.aborted !== true;
  }
}
