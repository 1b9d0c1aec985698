/** Repeated requests: puts that are made again until the store has said that the object is there, and outages of the store. */
import { backOff } from '../../base/env.ts';
import { compareBytes } from '../../base/bytes.ts';
import type { Environment, Backoff } from '../../base/env.ts';
import { CorruptionError, StorageError } from '../../base/errors.ts';
import { defined } from '../../base/options.ts';
import type { PutOptions, StorageDriver } from './driver.ts';

const maxAttempts = 4;
const afterFailure: Backoff = { firstMs: 50, maxMs: 200, jitter: 'around' };

/**
 * Puts bytes until the store has said that they are there, in up to four attempts. With the condition `absent` the name must be new
 * and random: if the store says that an object is there, it can only be an earlier attempt of this very put, and it is read to make
 * sure. Rejects with `StorageError`, or with `CorruptionError` where the object holds other bytes.
 */
export async function putRepeatedly(
  environment: Environment,
  driver: Pick<StorageDriver, 'get' | 'put'>,
  key: string,
  bytes: Uint8Array,
  options: PutOptions & { readonly if: 'any' | 'absent' },
): Promise<void> {
  const { signal } = options;
  for (let attempt = 1; ; attempt++) {
    try {
      const result = await driver.put(key, bytes, options);
      if (result.status === 'written') return;
      const stored = await driver.get(key, defined({ signal }));
      if (stored.status === 'found' && compareBytes(stored.bytes, bytes) === 0) return;
      if (stored.status === 'found') throw new CorruptionError(key, 'A new object met another object of its name');
      throw new StorageError(key, 'unknown', `The store says that ${key} is there, and that it is missing.`);
    } catch (error) {
      if (!(error instanceof StorageError) || attempt >= maxAttempts || signal?.aborted === true) throw error;
    }
    await backOff(environment, afterFailure, attempt, signal);
  }
}

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
