/**
 * Stores new blocks: names them, keeps a few uploads under way, and holds what was written in the cache. Names are
 * random and created only if absent, so that no block is ever overwritten.
 */
import { compareBytes } from '../base/bytes.ts';
import { backOff } from '../base/backoff.ts';
import type { Backoff } from '../base/backoff.ts';
import type { Environment } from '../base/env.ts';
import { CorruptionError, StorageError } from '../base/errors.ts';
import { newId } from '../base/ids.ts';
import type { BlockRef } from '../format/child-ref.ts';
import { blockName } from '../format/keys.ts';
import type { TreePlace } from '../format/keys.ts';
import { openCachedSealed } from '../cache/cached-node.ts';
import type { NodeEntries } from '../format/node-entries.ts';
import type { BlockCache } from '../cache/block-cache.ts';
import type { StorageDriver } from '../storage/contract/driver.ts';
import type { NodeSink } from './level-writer.ts';

export interface UploadOptions {
  readonly driver: StorageDriver;
  readonly prefix: string;
  readonly environment: Environment;
}

const maxUploads = 16;
const maxUploadBytes = 4 * 1024 * 1024;
const maxAttempts = 4;
const afterFailure: Backoff = { firstMs: 50, longestMs: 200, jitter: 'around' };

/** Uploads of create-only objects, a few at a time. The first failure is kept and thrown by the next call. */
export class Uploads {
  readonly #options: UploadOptions;
  readonly #running = new Set<Promise<void>>();
  #bytes = 0;
  #failure: unknown;

  constructor(options: UploadOptions) {
    this.#options = options;
  }

  /** Begins an upload. A promise is returned, and must be awaited, where enough of them are under way. */
  start(name: string, bytes: Uint8Array): void | Promise<void> {
    this.#bytes += bytes.length;
    const upload = this.#upload(name, bytes)
      .catch((error: unknown) => {
        this.#failure ??= error;
      })
      .finally(() => {
        this.#running.delete(upload);
        this.#bytes -= bytes.length;
      });
    this.#running.add(upload);
    return this.#running.size >= maxUploads || this.#bytes >= maxUploadBytes ? this.#room() : undefined;
  }

  async #room(): Promise<void> {
    while (this.#running.size >= maxUploads || this.#bytes >= maxUploadBytes) await Promise.race(this.#running);
    this.#check();
  }

  #check(): void {
    if (this.#failure !== undefined) throw this.#failure as Error;
  }

  /** Resolves once everything that was begun is durable; rejects if anything failed. */
  async finish(): Promise<void> {
    await Promise.all(this.#running);
    this.#check();
  }

  /** The name is new and random, so a lost race can only be an earlier attempt of this very upload. */
  async #upload(name: string, bytes: Uint8Array): Promise<void> {
    const { driver, prefix, environment } = this.#options;
    const key = `${prefix}/${name}`;
    for (let attempt = 1; ; attempt++) {
      try {
        const result = await driver.put(key, bytes, { if: 'absent', background: true });
        if (result.status === 'written') return;
        const stored = await driver.get(key);
        if (stored.status === 'found' && compareBytes(stored.bytes, bytes) === 0) return;
        if (stored.status === 'found') throw new CorruptionError(name, 'A new block met an object of its name');
        if (attempt >= maxAttempts) {
          throw new StorageError(key, 'unknown', `The store says that ${key} is there, and that it is missing`);
        }
      } catch (error) {
        if (!(error instanceof StorageError) || attempt >= maxAttempts) throw error;
      }
      await backOff(environment, afterFailure, attempt);
    }
  }
}

/** The sink for the nodes of one tree, all of one birth. */
export class BlockWriter implements NodeSink {
  readonly #uploads: Uploads;
  readonly #cache: BlockCache;
  readonly #environment: Environment;
  readonly #place: TreePlace;
  readonly #birth: number;
  written = 0;

  constructor(uploads: Uploads, cache: BlockCache, environment: Environment, place: TreePlace, birth: number) {
    this.#uploads = uploads;
    this.#cache = cache;
    this.#environment = environment;
    this.#place = place;
    this.#birth = birth;
  }

  put(entries: NodeEntries, from: number, to: number): BlockRef | Promise<BlockRef> {
    const { ref, name, bytes } = this.encode(entries, from, to);
    return this.store(ref, name, bytes);
  }

  /** Encodes a node under a new name without storing it. */
  encode(entries: NodeEntries, from: number, to: number): { ref: BlockRef; name: string; bytes: Uint8Array } {
    const identity = { birth: this.#birth, id: newId(this.#environment, 8) };
    const name = blockName(this.#place, identity);
    const bytes = entries.encode(name, from, to);
    return { ref: { ...identity, count: entries.rowCount(from, to), sizeBytes: bytes.length }, name, bytes };
  }

  store(ref: BlockRef, name: string, bytes: Uint8Array): BlockRef | Promise<BlockRef> {
    this.written++;
    this.#cache.add(openCachedSealed(name, bytes));
    const room = this.#uploads.start(name, bytes);
    return room === undefined ? ref : room.then(() => ref);
  }
}
