/**
 * Copies everything that a state of a database consists of, apart from its Block 0, to another place: blocks and blobs. They
 * never change, so one that is there already is not copied again, and a copy that was broken off can be gone on with.
 *
 * Invariant: what is copied through here was checked on the way, against the checksums that it has: damage is not spread.
 */
import { allEnded } from '../base/all-ended.ts';
import type { Environment } from '../base/env.ts';
import { CorruptionError, StorageError } from '../base/errors.ts';
import { Pacer } from '../base/pacer.ts';
import { BlobStore } from '../blob/blob-store.ts';
import { openBlock } from '../format/block.ts';
import type { Block0 } from '../format/block0.ts';
import { blobName, folders } from '../format/keys.ts';
import { protectedDriver } from '../storage/capsule-driver.ts';
import type { StorageDriver } from '../storage/driver.ts';
import type { Protection } from '../storage/protection.ts';
import { listAll } from '../storage/list-all.ts';
import type { ViewContext } from '../table/view.ts';
import { Reach } from './reach.ts';
import { blobsOf } from './state-blobs.ts';
import type { StateBlob } from './state-blobs.ts';

/** Where a database or its backups are. */
export interface StorePlace {
  /** Keeps the objects. */
  readonly driver: StorageDriver;
  /** What their names begin with, without `/` at either end, as `dbPrefix`. */
  readonly prefix: string;
}

/** The same place, with what is put there compressed and encrypted as the options say. `databaseId`: whose it is, if known. */
export function protectedPlace(
  environment: Environment,
  { driver, prefix }: StorePlace,
  protection: Protection | undefined,
  databaseId?: string,
): StorePlace {
  const whose = databaseId !== undefined && { databaseId };
  return { driver: protectedDriver({ driver, prefix, protection, environment, ...whose }), prefix };
}

/** How far a copy is. */
export interface CopyProgress {
  /** Objects that are at the other place, copied or there before. */
  readonly done: number;
  /** Objects that the state consists of. */
  readonly total: number;
  /** Bytes that went through this process; those that a store copied by itself are not counted. */
  readonly copiedBytes: number;
}

export interface StateCopyOptions {
  readonly environment: Environment;
  readonly from: StorePlace;
  readonly to: StorePlace;
  /** Whether both are in one store, so that the driver of `from` can copy to the other place where it can copy at all. */
  readonly isOneStore: boolean;
  /** Reads the blocks of `from`. */
  readonly context: ViewContext;
  readonly signal: AbortSignal | undefined;
  readonly onProgress: ((progress: CopyProgress) => void) | undefined;
  /** Called before each object; where it rejects, the copy does. */
  readonly check?: () => Promise<void>;
}

/** What a copy did. */
export interface CopyCounts {
  /** Objects that the state consists of. */
  readonly objects: number;
  /** Of these, the ones that were not there yet. */
  readonly copiedObjects: number;
  /** Bytes that went through this process; those that a store copied by itself are not counted. */
  readonly copiedBytes: number;
}

/** Objects that are on their way at the same time, and from which size on a blob goes in pieces. */
const maxCopies = 16;
const maxWholeBytes = 4 * 1024 * 1024;
const attempts = 3;

class StateCopy {
  readonly #options: StateCopyOptions;
  readonly #pacer: Pacer;
  readonly #blobs: BlobStore;
  /** Names of what is at the other place. */
  readonly present: Set<string> = new Set();
  /** Until the store has refused: then it refuses the next one as well. */
  #storeCopies: boolean;
  #total = 0;
  #done = 0;
  #copiedObjects = 0;
  #copiedBytes = 0;

  constructor(options: StateCopyOptions) {
    this.#options = options;
    this.#pacer = new Pacer(options.environment);
    this.#storeCopies = options.isOneStore && options.from.driver.copy !== undefined;
    this.#blobs = new BlobStore(options.from.driver, options.from.prefix);
  }

  async run(block0: Block0): Promise<CopyCounts> {
    const { context, signal } = this.#options;
    await this.#listPresent();
    const reach = new Reach(context, this.#pacer);
    await reach.add(block0, signal);
    // Roots that are a part of Block 0 are no objects.
    for (const { name } of block0.inlined) reach.names.delete(name);
    const blobs = await blobsOf(context, block0, this.#pacer, signal);
    this.#total = reach.names.size + blobs.length;
    await this.#each(reach.names, (name) => this.#copyBlock(name));
    await this.#each(blobs, (blob) => this.#copyBlob(blob));
    return { objects: this.#total, copiedObjects: this.#copiedObjects, copiedBytes: this.#copiedBytes };
  }

  async #listPresent(): Promise<void> {
    const { to, signal } = this.#options;
    for (const folder of [folders.data, folders.indexes, folders.blobs]) {
      for await (const { key } of listAll(to.driver, `${to.prefix}/${folder}`, signal && { signal })) {
        this.present.add(key.slice(to.prefix.length + 1));
      }
    }
  }

  /** Works on some at a time; the first failure is the failure of all, once nothing is under way any more. */
  async #each<T>(items: Iterable<T>, copy: (item: T) => Promise<void>): Promise<void> {
    const { signal, onProgress, check } = this.#options;
    const left = items[Symbol.iterator]();
    const worker = async (): Promise<void> => {
      for (let next = left.next(); next.done !== true; next = left.next()) {
        signal?.throwIfAborted();
        try {
          await check?.();
          await copy(next.value);
        } catch (error) {
          left.return?.();
          throw error;
        }
        this.#done++;
        onProgress?.({ done: this.#done, total: this.#total, copiedBytes: this.#copiedBytes });
        if (this.#pacer.due()) await this.#pacer.pause();
      }
    };
    await allEnded(Array.from({ length: maxCopies }, worker));
  }

  async #copyBlock(name: string): Promise<void> {
    if (this.present.has(name)) return;
    const { from, signal } = this.#options;
    if (await this.#copiedByStore(name)) return;
    await this.#repeatedly(async () => {
      const found = await from.driver.get(`${from.prefix}/${name}`, signal && { signal });
      if (found.status !== 'found') throw new CorruptionError(name, 'A block that the state refers to is missing');
      openBlock(name, found.bytes);
      await this.#put(name, found.bytes, found.bytes.length);
    });
  }

  async #copyBlob({ reference, record }: StateBlob): Promise<void> {
    const name = blobName(reference);
    if (this.present.has(name)) return;
    const { signal } = this.#options;
    const { sizeBytes, contentType } = record;
    const known = { sizeBytes, ...(contentType !== undefined && { contentType }) };
    if (await this.#copiedByStore(name, known)) return;
    await this.#repeatedly(async () => {
      if (sizeBytes === 0) await this.#blobs.check(reference, record, signal);
      const body =
        sizeBytes <= maxWholeBytes
          ? await this.#blobs.read(reference, record, 0, sizeBytes, signal)
          : this.#blobs.stream(reference, record, 0, sizeBytes, signal);
      await this.#put(name, body, sizeBytes, contentType);
    });
  }

  /** Where both places are in one store that can copy, nothing need be moved through here. */
  async #copiedByStore(name: string, known: { sizeBytes?: number; contentType?: string } = {}): Promise<boolean> {
    const { from, to, signal } = this.#options;
    if (!this.#storeCopies) return false;
    const options = { ...known, ...(signal && { signal }) };
    const answer = await from.driver.copy?.(`${from.prefix}/${name}`, `${to.prefix}/${name}`, options);
    if (answer?.status === 'copied') this.#copiedObjects++;
    else this.#storeCopies = false;
    return answer?.status === 'copied';
  }

  async #put(
    name: string,
    body: Parameters<StorageDriver['put']>[1],
    bytes: number,
    contentType?: string,
  ): Promise<void> {
    const { to, signal } = this.#options;
    const options = {
      if: 'absent',
      ...(signal && { signal }),
      ...(contentType !== undefined && { contentType }),
    } as const;
    // Lost: somebody else put the same bytes there, or an earlier attempt of this did.
    await to.driver.put(`${to.prefix}/${name}`, body, options);
    this.#copiedObjects++;
    this.#copiedBytes += bytes;
  }

  async #repeatedly(copy: () => Promise<void>): Promise<void> {
    for (let attempt = 1; ; attempt++) {
      try {
        await copy();
        return;
      } catch (error) {
        const mayHelp = error instanceof StorageError && attempt < attempts;
        if (!mayHelp || this.#options.signal?.aborted === true) throw error;
      }
    }
  }
}

/** Copies what is not there yet. When it has resolved, all that the state consists of is at the other place. */
export function copyState(block0: Block0, options: StateCopyOptions): Promise<CopyCounts> {
  return new StateCopy(options).run(block0);
}
