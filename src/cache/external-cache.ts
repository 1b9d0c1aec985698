/**
 * A cache of the user's own behind the one in memory. Whatever goes wrong with it, reads go on without it: one that fails
 * or does not answer is passed over for a while, and what it gives is used only if it is, byte by byte, what was put there
 * under that name.
 */
import { createHash } from 'node:crypto';
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

/** Bytes behind a block that tell of which name and content they are. */
const sealBytes = 16;
/** A cache that has not answered by then is slower than a store may be, in milliseconds. */
const patienceMs = 1000;
/** How long a cache that failed is passed over, in milliseconds: at first, and at most. */
const firstPauseMs = 1000;
const maxPauseMs = 60_000;
/** So many blocks may be on their way to the cache; others are not put there. */
const maxSets = 32;

function sealOf(key: string, bytes: Uint8Array): Uint8Array {
  return createHash('sha256').update(`${key}\n`).update(bytes).digest().subarray(0, sealBytes);
}

export class ExternalCache {
  readonly #options: ExternalCacheOptions;
  readonly #sets = new Set<Promise<unknown>>();
  #databaseId = '';
  #pauseMs = 0;
  #pausedUntilMs = 0;
  #toldOfDamage = false;

  constructor(options: ExternalCacheOptions) {
    this.#options = options;
  }

  /** Says which database the blocks are of: the cache may serve several. */
  useDatabase(databaseId: string): void {
    this.#databaseId = databaseId;
  }

  #key(name: string): string {
    return `${this.#databaseId}/${name}`;
  }

  get #isPaused(): boolean {
    return this.#options.environment.monotonicMs() < this.#pausedUntilMs;
  }

  /** The bytes of a block, if the cache has them. Never rejects. */
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
    // Not of a class of the driver's own, whose methods may differ.
    const bytes = new Uint8Array(sealed.buffer, sealed.byteOffset, Math.max(0, length));
    if (length >= 0 && Buffer.compare(sealOf(key, bytes), sealed.subarray(length)) === 0) return bytes;
    this.#reportDamage(key);
    void this.#attempt(async () => driver.delete(key));
    return undefined;
  }

  /** Puts a block there, which nobody waits for. */
  put(name: string, bytes: Uint8Array): void {
    if (this.#isPaused || this.#sets.size >= maxSets) return;
    const key = this.#key(name);
    const sealed = new Uint8Array(bytes.length + sealBytes);
    sealed.set(bytes);
    sealed.set(sealOf(key, bytes), bytes.length);
    const setting = this.#attempt(async () => this.#options.driver.set(key, sealed)).finally(() => {
      this.#sets.delete(setting);
    });
    this.#sets.add(setting);
  }

  /** Resolves once nothing is on its way to the cache any more, or it has taken too long. */
  async idle(): Promise<void> {
    await Promise.all(this.#sets);
  }

  /** What a call gives; undefined if it failed, or took too long. */
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

  /** Calls that were under way together fail together: that counts as one failure, and is told once until it works again. */
  #noteFailure(error: unknown): void {
    if (this.#isPaused) return;
    const { environment, logger } = this.#options;
    const isNew = this.#pauseMs === 0;
    this.#pauseMs = isNew ? firstPauseMs : Math.min(maxPauseMs, this.#pauseMs * 2);
    this.#pausedUntilMs = environment.monotonicMs() + this.#pauseMs;
    if (!isNew) return;
    const reason = messageOf(error);
    logger.warn(`The cache driver failed and is passed over for a while: ${reason}`, { error });
  }

  #reportDamage(key: string): void {
    if (this.#toldOfDamage) return;
    this.#toldOfDamage = true;
    this.#options.logger.warn(
      'The cache driver gave other bytes than were put there. They were not used, and it is asked to remove them. ' +
        'This is told once.',
      { key },
    );
  }
}
