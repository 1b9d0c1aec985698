/**
 * A cache supplied by the user, behind the block cache in memory. Reads never depend on it: a cache that fails or does not answer
 * is bypassed for a while, and its bytes are used only if they are exactly the bytes that were put there under that name.
 */
import { compareBytes } from '../base/bytes.ts';
import { sha256 } from '#platform';
import { isBytes, messageOf } from '../base/brands.ts';
import { sleep } from '../base/env.ts';
import type { Environment } from '../base/env.ts';
import type { Logger } from '../base/logger.ts';
import { newAbortController } from '../base/abort.ts';
import type { CacheDriver } from '../storage/contract/driver.ts';

export interface ExternalCacheOptions {
  readonly driver: CacheDriver;
  readonly environment: Environment;
  readonly logger: Logger;
}

/** Bytes of the seal after a block: a hash of its key and content. */
const sealBytes = 16;
/** Longest wait for an answer, in milliseconds. A slower cache would be slower than the store. */
const patienceMs = 1000;
/** How long a cache that failed is bypassed, in milliseconds: at first, and at most. */
const firstPauseMs = 1000;
const maxPauseMs = 60_000;
/** Most puts to the cache at the same time; further blocks are not put there. */
const maxSets = 32;

function sealOf(key: string, bytes: Uint8Array): Uint8Array {
  return sha256(`${key}\n`, bytes).subarray(0, sealBytes);
}

/** Reads and writes blocks through the user's cache driver. */
export class ExternalCache {
  readonly #options: ExternalCacheOptions;
  readonly #sets = new Set<Promise<unknown>>();
  #databaseId = '';
  #pauseMs = 0;
  #pausedUntilMs = 0;
  #toldOfDamage = false;
  #isClosed = false;

  constructor(options: ExternalCacheOptions) {
    this.#options = options;
  }

  /** Sets the database that the blocks belong to: the cache may serve several. */
  useDatabase(databaseId: string): void {
    this.#databaseId = databaseId;
  }

  #key(name: string): string {
    return `${this.#databaseId}/${name}`;
  }

  get #isPaused(): boolean {
    return this.#options.environment.monotonicMs() < this.#pausedUntilMs;
  }

  /** Returns the bytes of a block, if the cache has them. Never rejects. */
  async get(name: string): Promise<Uint8Array | undefined> {
    if (this.#isPaused) return undefined;
    const { driver } = this.#options;
    const key = this.#key(name);
    const sealed = await this.#attempt(async () => {
      const answer = await driver.get(key);
      if (answer === undefined || answer === null || isBytes(answer)) return answer ?? undefined;
      throw new TypeError('get() of a cache driver gives bytes, as a Uint8Array, or undefined');
    });
    if (sealed === undefined) return undefined;
    const length = sealed.length - sealBytes;
    // Makes a plain array: the driver may return a subclass whose methods differ.
    const bytes = new Uint8Array(sealed.buffer, sealed.byteOffset, Math.max(0, length));
    if (length >= 0 && compareBytes(sealOf(key, bytes), sealed.subarray(length)) === 0) return bytes;
    this.#reportDamage(key);
    void this.#attempt(async () => driver.delete(key));
    return undefined;
  }

  /** Puts a block there without waiting for the result. */
  put(name: string, bytes: Uint8Array): void {
    if (this.#isClosed || this.#isPaused || this.#sets.size >= maxSets) return;
    const key = this.#key(name);
    const sealed = new Uint8Array(bytes.length + sealBytes);
    sealed.set(bytes);
    sealed.set(sealOf(key, bytes), bytes.length);
    const setting = this.#attempt(async () => this.#options.driver.set(key, sealed)).finally(() => {
      this.#sets.delete(setting);
    });
    this.#sets.add(setting);
  }

  /** Waits until all puts have ended or timed out. */
  async idle(): Promise<void> {
    await Promise.all(this.#sets);
  }

  /** Puts nothing more, and waits as {@link idle} does: a read that ends after `stop()` leaves the driver alone. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await this.idle();
  }

  /** Returns the result of a call; undefined if it failed or took too long. */
  async #attempt<T>(call: () => Promise<T>): Promise<T | undefined> {
    const answered = newAbortController();
    const late = sleep(this.#options.environment, patienceMs, answered.signal).then(() => {
      throw new Error(`no answer within ${patienceMs} ms`);
    });
    try {
      const value = await Promise.race([call(), late]);
      this.#noteSuccess();
      return value;
    } catch (error) {
      this.#noteFailure(error);
      return undefined;
    } finally {
      answered.abort();
    }
  }

  #noteSuccess(): void {
    if (this.#pauseMs === 0 || this.#isPaused) return;
    this.#pauseMs = 0;
    this.#options.logger.info('The cache driver works again.');
  }

  /**
   * Notes a failure. Calls that ran at the same time often fail together: that counts as one failure, and is logged once until a
   * call succeeds.
   */
  #noteFailure(error: unknown): void {
    if (this.#isPaused) return;
    const { environment, logger } = this.#options;
    const isNew = this.#pauseMs === 0;
    this.#pauseMs = isNew ? firstPauseMs : Math.min(maxPauseMs, this.#pauseMs * 2);
    this.#pausedUntilMs = environment.monotonicMs() + this.#pauseMs;
    if (!isNew) return;
    const reason = messageOf(error);
    logger.warn(`The cache driver failed and is bypassed for a while: ${reason}`, { error });
  }

  #reportDamage(key: string): void {
    if (this.#toldOfDamage) return;
    this.#toldOfDamage = true;
    this.#options.logger.warn(
      'The cache driver returned other bytes than were put there. They were not used, and StoreDb deletes them there. ' +
        'This is logged once.',
      { key },
    );
  }
}
