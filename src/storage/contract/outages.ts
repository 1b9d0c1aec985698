/** Outages of a store, and how long failed requests are repeated during one. */
import { backOff } from '../../base/backoff.ts';
import type { Environment } from '../../base/env.ts';
import { StorageError } from '../../base/errors.ts';

/** Longest outage of a store that requests outlast, in milliseconds. */
const defaultMs = 10_000;
const maxPauseMs = 1000;

/** Whether a request failed because the store or the network was unavailable or overloaded. */
export function isOutage(error: unknown): error is StorageError {
  return error instanceof StorageError && (error.reason === 'unavailable' || error.reason === 'throttled');
}

/**
 * Decides how long failed requests are retried during an outage: a gateway that restarts is back after some seconds. If the store
 * has never answered, or did not come back in time, a request fails after its first few attempts, until one succeeds.
 */
export class Patience {
  readonly #environment: Environment;
  readonly #forMs: number;
  #hasAnswered = false;

  constructor(environment: Environment, forMs: number = defaultMs) {
    this.#environment = environment;
    this.#forMs = forMs;
  }

  /** Call this after a request has succeeded. */
  answered(): void {
    this.#hasAnswered = true;
  }

  /** Whether to retry a failed request that was first sent at `firstSentMs` on the monotonic clock. */
  isLeft(error: unknown, firstSentMs: number): boolean {
    if (!this.#hasAnswered || !isOutage(error)) return false;
    if (this.#environment.monotonicMs() - firstSentMs < this.#forMs) return true;
    this.#hasAnswered = false;
    return false;
  }

  /**
   * Pauses before another attempt: the time doubles up to a second, and is jittered. Resolves with false if the signal is
   * aborted: then there must not be another attempt. It does not reject with the signal's reason, which need not be an error of a
   * request.
   */
  async pause(firstPauseMs: number, attempt: number, signal: AbortSignal | undefined): Promise<boolean> {
    const backoff = { firstMs: firstPauseMs, maxMs: maxPauseMs, jitter: 'around' } as const;
    await backOff(this.#environment, backoff, attempt, signal).catch(() => undefined);
    return signal?.aborted !== true;
  }
}
