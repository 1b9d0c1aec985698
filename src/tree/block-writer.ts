/**
 * Stores the nodes of new trees as blocks, a few uploads at a time, and keeps them in the cache. Names of blocks are random and created
 * only if absent, so that no block is ever overwritten.
 */
import type { Environment } from '../base/env.ts';
import { newId } from '../base/ids.ts';
import type { BlockCache } from '../cache/block-cache.ts';
import { openStoredSealed } from '../cache/dense-node.ts';
import type { BlockRef } from '../format/block.ts';
import { blockName } from '../format/object-names.ts';
import type { TreePlace } from '../format/object-names.ts';
import type { NodeEntries } from '../format/node-entries.ts';
import type { StorageDriver } from '../storage/contract/driver.ts';
import { putRepeatedly } from '../storage/contract/retries.ts';
import type { NodeSink } from './level-writer.ts';

export interface UploadOptions {
  readonly driver: Pick<StorageDriver, 'get' | 'put'>;
  readonly prefix: string;
  readonly environment: Environment;
}

const maxUploads = 16;
const maxUploadBytes = 4 * 1024 * 1024;

/** Uploads objects that must not exist yet, a few at a time. The first failure is kept, and thrown by the next call. */
export class Uploads {
  readonly #options: UploadOptions;
  readonly #running = new Set<Promise<void>>();
  #bytes = 0;
  #failure: unknown;

  constructor(options: UploadOptions) {
    this.#options = options;
  }

  /** Starts an upload. If enough uploads are running, returns a promise that must be awaited. */
  start(name: string, bytes: Uint8Array): void | Promise<void> {
    // A driver may hand the bytes over to another thread, and then they have no length any more.
    const { length } = bytes;
    this.#bytes += length;
    const upload = this.#upload(name, bytes)
      .catch((error: unknown) => {
        this.#failure ??= error;
      })
      .finally(() => {
        this.#running.delete(upload);
        this.#bytes -= length;
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

  /** Resolves once all started uploads are durable; rejects if any of them failed. */
  async finish(): Promise<void> {
    await Promise.all(this.#running);
    this.#check();
  }

  async #upload(name: string, bytes: Uint8Array): Promise<void> {
    const { driver, prefix, environment } = this.#options;
    await putRepeatedly(environment, driver, `${prefix}/${name}`, bytes, { if: 'absent', background: true });
  }
}

/** The sink for the nodes of one tree, which all have the same birth. */
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
    this.#cache.add(openStoredSealed(name, bytes));
    const room = this.#uploads.start(name, bytes);
    return room === undefined ? ref : room.then(() => ref);
  }
}
