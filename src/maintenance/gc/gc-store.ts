/** The requests of garbage collection to the store: lists folders, finds reachable blocks, and deletes objects in batches. */
import { sleep } from '../../base/env.ts';
import type { Environment } from '../../base/env.ts';
import { StorageError } from '../../base/errors.ts';
import { defined } from '../../base/options.ts';
import type { Pacer } from '../../base/pacer.ts';
import type { Block0 } from '../../format/block0.ts';
import { catalogueName } from '../../format/catalogue.ts';
import { blockName } from '../../format/object-names.ts';
import type { TreePlace } from '../../format/object-names.ts';
import type { Node } from '../../format/node.ts';
import type { DeleteResult, ListEntry, StorageDriver } from '../../storage/contract/driver.ts';
import { putRepeatedly } from '../../storage/contract/retries.ts';
import { loadChild } from '../../tree/tree.ts';
import type { Tree } from '../../tree/tree.ts';
import type { ViewContext } from '../../view/view.ts';

/** Keys in one deletion. */
const batchKeys = 1000;
/** Attempts at deleting keys that the store reports as failed. */
const maxAttempts = 3;
const pauseMs = 100;

/** The kinds of objects that garbage collection deletes. */
export type GarbageKind = 'block' | 'blob' | 'staged' | 'commit' | 'root' | 'history' | 'probe';

/** An object that gc deletes, or would delete. */
export interface Garbage {
  /**
   * Its kind: a block, a blob, a staged run of a large commit, a commit, the kept root of a snapshot or of history, or a
   * probe of the store that was left behind.
   */
  readonly kind: GarbageKind;
  /** Name of the object, without the database's prefix. */
  readonly name: string;
  /** Its size in bytes. */
  readonly sizeBytes: number;
  /** Why nothing needs it any more. */
  readonly reason: string;
}

export interface GarbageStoreOptions {
  readonly driver: StorageDriver;
  readonly prefix: string;
  readonly environment: Environment;
  /** Whether to delete nothing, and only note the objects that would be deleted. */
  readonly dryRun: boolean;
  readonly signal: AbortSignal | undefined;
}

export class GarbageStore {
  /** Objects that were deleted, or would be. */
  readonly deleted: Garbage[] = [];
  /** Objects that the store did not delete. */
  readonly failed: { readonly name: string; readonly message: string }[] = [];
  readonly #options: GarbageStoreOptions;
  #batch: Garbage[] = [];

  constructor(options: GarbageStoreOptions) {
    this.#options = options;
  }

  /** Lists the objects of a folder, with names instead of keys. */
  async *list(folder: string): AsyncGenerator<ListEntry & { readonly name: string }, void, undefined> {
    const { driver, prefix, signal } = this.#options;
    const start = prefix.length + 1;
    for (let after: string | undefined; ; ) {
      signal?.throwIfAborted();
      const page = await driver.list(`${prefix}/${folder}`, defined({ signal, after }));
      for (const entry of page.entries) yield { ...entry, name: entry.key.slice(start) };
      after = page.entries.at(-1)?.key;
      if (!page.more || after === undefined) return;
    }
  }

  /** Adds an object to the batch to delete. It is deleted for certain, or in `failed`, once {@link finish} has resolved. */
  async delete(garbage: Garbage): Promise<void> {
    this.#batch.push(garbage);
    if (this.#batch.length >= batchKeys) await this.finish();
  }

  /** Deletes the objects of the batch. */
  async finish(): Promise<void> {
    const batch = this.#batch;
    this.#batch = [];
    if (batch.length === 0) return;
    if (this.#options.dryRun) this.deleted.push(...batch);
    else await this.#deleteNow(batch);
  }

  /** Forgets the batch and the failures, because the run begins again and will find these objects again. */
  forget(): void {
    this.#batch = [];
    this.failed.length = 0;
    if (this.#options.dryRun) this.deleted.length = 0;
  }

  async #deleteNow(batch: readonly Garbage[]): Promise<void> {
    const { prefix, environment, signal } = this.#options;
    const byKey = new Map(batch.map((garbage) => [`${prefix}/${garbage.name}`, garbage]));
    for (let attempt = 1; ; attempt++) {
      const failed = await this.#deleteKeys([...byKey.keys()]);
      const messages = new Map(failed.map(({ key, message }) => [key, message]));
      for (const [key, garbage] of byKey) {
        if (messages.has(key)) continue;
        byKey.delete(key);
        this.deleted.push(garbage);
      }
      if (byKey.size === 0) return;
      if (attempt < maxAttempts) {
        await sleep(environment, pauseMs * attempt, signal);
        continue;
      }
      // The next run finds them again.
      for (const [key, { name }] of byKey) this.failed.push({ name, message: messages.get(key) ?? '' });
      return;
    }
  }

  /** Deletes keys, and returns the keys that failed. A store that denies deletion may refuse the whole request. */
  async #deleteKeys(keys: readonly string[]): Promise<DeleteResult['failed']> {
    const { driver, signal } = this.#options;
    try {
      return (await driver.delete(keys, defined({ signal }))).failed;
    } catch (error) {
      if (!(error instanceof StorageError) || error.reason !== 'forbidden') throw error;
      return keys.map((key) => ({ key, message: error.message }));
    }
  }

  /**
   * The store's own time; undefined if the store has no room for the probe that asks for it. The times at which objects were
   * written are by that clock, so no other clock can be compared with them. A dry run, which deletes nothing, uses the local clock.
   */
  async now(probeName: string): Promise<number | undefined> {
    const { driver, prefix, signal, dryRun, environment } = this.#options;
    if (dryRun) return environment.now();
    const key = `${prefix}/${probeName}`;
    try {
      await putRepeatedly(environment, driver, key, new Uint8Array(1), { if: 'any', ...defined({ signal }) });
    } catch (error) {
      // The caller then writes Block 0 to learn the time: a full disk still has room for that.
      if (error instanceof StorageError && error.reason === 'full') return undefined;
      throw error;
    }
    const found = await driver.get(key, defined({ signal }));
    // If that fails, a later run finds the probe.
    await driver.delete([key], defined({ signal })).catch(() => undefined);
    // The probe should be there. If it is not, the time is 0, and nothing is old enough.
    return found.status === 'found' ? found.lastModifiedMs : 0;
  }
}

/** Inner nodes that are read at the same time. */
const readsAtOnce = 16;

/** The blocks that states of the database reach, catalogues included. Only inner nodes are read: a parent names its leaves. */
export class ReachableBlocks {
  /** Names of the blocks, with their sizes in bytes. */
  readonly names: Map<string, number> = new Map();
  readonly #context: ViewContext;
  readonly #pacer: Pacer;

  constructor(context: ViewContext, pacer: Pacer) {
    this.#context = context;
    this.#pacer = pacer;
  }

  /** Adds the blocks that a Block 0 reaches. Rejects if any node cannot be read: then nothing may be deleted. */
  async add(block0: Block0, signal: AbortSignal | undefined): Promise<void> {
    const { catalogue } = block0;
    if (catalogue !== undefined) this.names.set(catalogueName(catalogue.ref), catalogue.ref.sizeBytes);
    for (const { place, tree } of this.#context.trees(block0)) await this.#addTree(place, tree, signal);
  }

  async #addTree(place: TreePlace, tree: Tree, signal: AbortSignal | undefined): Promise<void> {
    if (tree.ref === null) return;
    const name = blockName(place, tree.ref);
    // States share most of their blocks. Where they share a block, they share all blocks below it.
    if (this.names.has(name)) return;
    this.names.set(name, tree.ref.sizeBytes);
    if (tree.ref.level === 0) return;
    let level = [await tree.loadRoot()];
    while (level.length > 0) level = await this.#addChildren(place, tree, level, signal);
  }

  /** Adds the children of nodes of one level, and returns those children that have children themselves. */
  async #addChildren(
    place: TreePlace,
    tree: Tree,
    parents: readonly Node[],
    signal: AbortSignal | undefined,
  ): Promise<Node[]> {
    const next: Node[] = [];
    let reads: Promise<Node>[] = [];
    for (const parent of parents) {
      for (let i = 0; i < parent.count; i++) {
        if (this.#pacer.due()) await this.#pacer.pause();
        signal?.throwIfAborted();
        const child = parent.child(i);
        const name = blockName(place, child);
        if (this.names.has(name)) continue;
        this.names.set(name, child.sizeBytes);
        if (parent.level === 1) continue;
        reads.push(loadChild(tree.source, parent, i));
        if (reads.length < readsAtOnce) continue;
        next.push(...(await Promise.all(reads)));
        reads = [];
      }
    }
    next.push(...(await Promise.all(reads)));
    return next;
  }
}
