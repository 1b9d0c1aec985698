/** Puts that may be carried out more than once: of bytes that are the same every time. */
import { backOff } from '../../base/backoff.ts';
import type { Environment } from '../../base/env.ts';
import { StorageError } from '../../base/errors.ts';
import type { PutOptions, StorageDriver } from './driver.ts';

const maxAttempts = 4;

/**
 * Puts bytes until the store has said that they are there. With the condition `absent` the name must be new and random: a
 * lost race is then an earlier attempt of this very put.
 */
export async function putRepeatedly(
  driver: StorageDriver,
  key: string,
  bytes: Uint8Array,
  options: PutOptions & { readonly if: 'any' | 'absent' },
): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      await driver.put(key, bytes, options);
      return;
    } catch (error) {
      if (!(error instanceof StorageError) || attempt >= maxAttempts || options.signal?.aborted === true) throw error;
    }
  }
}

// How long requests are repeated to a store that has gone away: a gateway that is started again is back after some seconds. A
// store that has never answered is none that will be back, and neither is one that was not back in time: then a request fails
// after its first few attempts, until one succeeds.

/** How long a store may be away, in milliseconds. */
const defaultMs = 10_000;
const maxPauseMs = 1000;

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
    const backoff = { firstMs: firstPauseMs, maxMs: maxPauseMs, jitter: 'around' } as const;
    await backOff(this.#environment, backoff, attempt, signal).catch(() => undefined);
    return signal?.aborted !== true;
  }
}

// Names of the objects that an instance wrote since it last saw Block 0. If Block 0 then turns out to be gone, these are what
// it made after the database was deleted, and nobody else.

/** Names that are remembered. What an instance writes beyond that is not known to be its own. */
const maxKeys = 10_000;

export class OwnWrites {
  /** By name, the number of the write. In ascending order. */
  readonly #keys = new Map<string, number>();
  #count = 0;

  /** A write is about to be made, or was made just now. */
  note(key: string): void {
    this.#count++;
    this.#keys.delete(key);
    if (this.#keys.size < maxKeys) this.#keys.set(key, this.#count);
  }

  /** What to tell {@link seen} about a look that begins now. */
  get mark(): number {
    return this.#count;
  }

  /** Block 0 was there in a look that began when the mark was taken: what was written before that was no leftover. */
  seen(mark: number): void {
    for (const [key, number] of this.#keys) {
      if (number > mark) return;
      this.#keys.delete(key);
    }
  }

  has(key: string): boolean {
    return this.#keys.has(key);
  }

  get keys(): readonly string[] {
    return [...this.#keys.keys()];
  }
}
