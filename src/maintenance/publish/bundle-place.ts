/**
 * The place of the bundles of one database: its pointer, the objects that kept bundles have, puts of new objects, and the removal of
 * objects that no bundle has.
 */
import { compareBytes } from '../../base/bytes.ts';
import { backOff } from '../../base/env.ts';
import type { Backoff, Environment } from '../../base/env.ts';
import { CorruptionError, InvalidOptionError, isUnreadable, StorageError } from '../../base/errors.ts';
import { defined } from '../../base/options.ts';
import {
  decodeContents,
  decodePointer,
  encodePointer,
  hashKey,
  isOfBundles,
  maxManifestBytes,
  packBundleObject,
  pointerName,
  unpackBundleObject,
} from '../../format/bundle.ts';
import type { BundleContents, BundlePointer, ListedBundle } from '../../format/bundle.ts';
import { block0Name } from '../../format/object-names.ts';
import { listAll } from '../../storage/contract/driver.ts';
import type { PutBody, PutOptions, StorageDriver } from '../../storage/contract/driver.ts';
import { RetryingDriver } from '../../storage/wrap/retrying-driver.ts';
import type { StorePlace } from '../backup/state-copy.ts';

/** The pointer as it was read. */
export interface ReadPointer {
  readonly pointer: BundlePointer;
  readonly etag: string;
}

/** Anyone who can read a bundle can read all of it, so caches on the way may keep what never changes. */
const writtenOnce = { if: 'absent', cacheControl: 'public, max-age=31536000, immutable' } as const;
const maxAttempts = 4;
const afterFailure: Backoff = { firstMs: 50, maxMs: 200, jitter: 'around' };
const maxPuts = 16;
const maxPutBytes = 4 * 1024 * 1024;
/** Most keys in one deletion. */
const maxDeletions = 1000;

/** The objects of the bundles that are kept. */
export class KeptObjects {
  /** Names of blocks by what their bytes determine of them. */
  readonly #named = new Map<string, string>();
  /** Names of the objects that bundles have, blobs included. */
  readonly #objects = new Set<string>();
  /** Names of blocks that are part of manifests. */
  readonly #inlined = new Set<string>();
  /** Names of blobs by their references. */
  readonly #blobs = new Map<string, string>();
  /** Whether the objects of every bundle are known. */
  isWhole = true;

  /** Adds the objects of a bundle. Of equal blocks, the first that is added counts. */
  add({ manifest, contents }: ListedBundle, { blocks, inlined, blobs }: BundleContents): void {
    for (const name of [manifest, contents]) this.#objects.add(name);
    for (const list of [blocks, inlined]) {
      for (const name of list) {
        const key = hashKey(name);
        if (!this.#named.has(key)) this.#named.set(key, name);
      }
    }
    for (const name of blocks) this.#objects.add(name);
    for (const name of inlined) this.#inlined.add(name);
    for (const name of blobs) {
      this.#objects.add(name);
      const reference = name.slice(name.lastIndexOf('/') + 1);
      if (!this.#blobs.has(reference)) this.#blobs.set(reference, name);
    }
  }

  /** Returns the name of a block by the part that its bytes determine. */
  nameFor(key: string): string | undefined {
    return this.#named.get(key);
  }

  /** Returns the name of a blob that is there. */
  blob(reference: string): string | undefined {
    return this.#blobs.get(reference);
  }

  /** Whether an object is there. */
  has(name: string): boolean {
    return this.#objects.has(name);
  }

  /** Whether a bundle has the name: then a later bundle may use it again. */
  needs(name: string): boolean {
    return this.#objects.has(name) || this.#inlined.has(name);
  }
}

/** One call of `db.publish()` at the place. */
export class BundlePlace {
  readonly #environment: Environment;
  readonly #driver: StorageDriver;
  readonly #prefix: string;
  readonly #signal: AbortSignal | undefined;
  readonly #running = new Set<Promise<void>>();
  #runningBytes = 0;
  #failure: unknown;
  writtenObjects = 0;
  writtenBytes = 0;

  constructor(environment: Environment, { driver, prefix }: StorePlace, signal: AbortSignal | undefined) {
    this.#environment = environment;
    this.#driver = new RetryingDriver(driver, environment);
    this.#prefix = prefix;
    this.#signal = signal;
  }

  #key(name: string): string {
    return `${this.#prefix}/${name}`;
  }

  get #options(): { readonly signal?: AbortSignal } {
    return defined({ signal: this.#signal });
  }

  async #read(name: string): Promise<{ readonly bytes: Uint8Array; readonly etag: string } | undefined> {
    const found = await this.#driver.get(this.#key(name), this.#options);
    return found.status === 'found' ? found : undefined;
  }

  /** Throws `InvalidOptionError` if a database is at the place. */
  async refuseDatabase(): Promise<void> {
    const range = { start: 0, end: 0 };
    const found = await this.#driver.get(this.#key(block0Name), { range, ...this.#options });
    if (found.status !== 'found') return;
    throw new InvalidOptionError('to', `There is a database under ${this.#prefix}/: publish to a prefix of its own.`);
  }

  /**
   * Reads the pointer; undefined if nothing was published yet. Throws `InvalidOptionError` for bundles of another database, unless they
   * may be replaced.
   */
  async readPointer(source: string, replaces: boolean): Promise<ReadPointer | undefined> {
    const found = await this.#read(pointerName);
    if (found === undefined) return undefined;
    const pointer = decodePointer(found.bytes);
    if (pointer.source === source || replaces) return { pointer, etag: found.etag };
    throw new InvalidOptionError(
      'to',
      `Under ${this.#prefix}/ are bundles of another database: publish to a prefix of its own, or pass replace: true.`,
    );
  }

  /** Reads which objects bundles have. */
  async keptObjects(bundles: readonly ListedBundle[]): Promise<KeptObjects> {
    const kept = new KeptObjects();
    for (const bundle of bundles) {
      const name = bundle.contents;
      const found = await this.#read(name);
      try {
        if (found === undefined) throw new CorruptionError(name, 'The contents of a bundle are missing');
        kept.add(bundle, decodeContents(name, unpackBundleObject(name, found.bytes, maxManifestBytes)));
      } catch (error) {
        if (!isUnreadable(error)) throw error;
        // Nothing can be shared with the bundle, and nothing is removed while it is kept.
        kept.isWhole = false;
      }
    }
    return kept;
  }

  /** Starts to put an object. A promise resolves once there is room for more. The first failure is thrown by a later call. */
  put(name: string, content: Uint8Array): void | Promise<void> {
    const bytes = packBundleObject(name, content);
    return this.#start(bytes.length, async () => {
      if (await this.#putNew(name, () => bytes, { ...this.#options, ...writtenOnce }))
        this.writtenBytes += bytes.length;
    });
  }

  /** Starts to put a blob. */
  putBlob(name: string, sizeBytes: number, contentType: string, body: () => PutBody): void | Promise<void> {
    return this.#start(Math.min(sizeBytes, maxPutBytes / 4), async () => {
      await this.#putNew(name, body, { contentType, ...this.#options, ...writtenOnce });
    });
  }

  #start(bytes: number, put: () => Promise<void>): void | Promise<void> {
    this.#check();
    this.#runningBytes += bytes;
    const running = put()
      .catch((error: unknown) => {
        this.#failure ??= error;
      })
      .finally(() => {
        this.#running.delete(running);
        this.#runningBytes -= bytes;
      });
    this.#running.add(running);
    return this.#isFull ? this.#room() : undefined;
  }

  get #isFull(): boolean {
    return this.#running.size >= maxPuts || this.#runningBytes >= maxPutBytes;
  }

  async #room(): Promise<void> {
    while (this.#isFull && this.#running.size > 0) await Promise.race(this.#running);
    this.#check();
  }

  #check(): void {
    this.#signal?.throwIfAborted();
    if (this.#failure !== undefined) throw this.#failure as Error;
  }

  /** Resolves once all puts are durable; rejects if one failed. */
  async finish(): Promise<void> {
    await this.end();
    this.#check();
  }

  /** Resolves once no put is under way. */
  async end(): Promise<void> {
    await Promise.all(this.#running);
  }

  /**
   * Puts an object whose name tells its content, so that an object of that name is this very object. Returns whether this call wrote
   * it.
   */
  async #putNew(name: string, body: () => PutBody, options: PutOptions): Promise<boolean> {
    for (let attempt = 1; ; attempt++) {
      try {
        const { status } = await this.#driver.put(this.#key(name), body(), options);
        if (status === 'written') this.writtenObjects++;
        return status === 'written';
      } catch (error) {
        if (!(error instanceof StorageError) || attempt >= maxAttempts || this.#signal?.aborted === true) throw error;
        if (error.reason === 'forbidden') throw error;
      }
      await backOff(this.#environment, afterFailure, attempt, this.#signal);
    }
  }

  /** Replaces the pointer that was read. Returns whether it was that one still. */
  async replacePointer(before: ReadPointer | undefined, pointer: BundlePointer): Promise<boolean> {
    const bytes = encodePointer(pointer);
    const condition = before === undefined ? 'absent' : { etag: before.etag };
    const options = { if: condition, cacheControl: 'no-cache', ...this.#options } as const;
    try {
      const { status } = await this.#driver.put(this.#key(pointerName), bytes, options);
      if (status === 'written') this.writtenObjects++;
      return status === 'written';
    } catch (error) {
      if (!(error instanceof StorageError)) throw error;
      // The put may have worked all the same.
      const found = await this.#read(pointerName);
      if (found !== undefined && compareBytes(found.bytes, bytes) === 0) return true;
      throw error;
    }
  }

  /**
   * Deletes the objects that no bundle has and no bundle will have, since their numbers are not above the number of the last bundle.
   * Returns how many there were.
   */
  async removeOthers(kept: KeptObjects, number: number): Promise<number> {
    if (!kept.isWhole) return 0;
    let removed = 0;
    let keys: string[] = [];
    const remove = async (): Promise<void> => {
      const { failed } = await this.#driver.delete(keys, this.#options);
      removed += keys.length - failed.length;
      keys = [];
    };
    for await (const { key } of listAll(this.#driver, `${this.#prefix}/`, this.#options)) {
      const name = key.slice(this.#prefix.length + 1);
      if (isOfBundles(name, number) !== true || kept.needs(name)) continue;
      keys.push(key);
      if (keys.length >= maxDeletions) await remove();
    }
    if (keys.length > 0) await remove();
    return removed;
  }
}
