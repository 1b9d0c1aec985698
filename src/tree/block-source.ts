/**
 * Where a tree's blocks come from. `find` and `peekChild` answer from memory without a promise; `load` goes to the store, once for
 * all who ask at the same time, and reads a damaged block a second time before it gives up.
 */
import { CorruptionError } from '../base/errors.ts';
import { blockName } from '../format/keys.ts';
import type { TreePlace } from '../format/keys.ts';
import type { BlockRef } from '../format/child-ref.ts';
import type { EntryShape } from '../format/node-entries.ts';
import { openNode } from '../format/node.ts';
import type { Node } from '../format/node.ts';
import type { Logger } from '../base/logger.ts';
import type { BlockCache, CacheCounters, CacheSlot } from '../memory/block-cache.ts';
import type { CacheDriver } from '../memory/cache-driver.ts';
import type { StorageDriver } from '../storage/driver.ts';
import { checkLeaf } from './leaf-shape.ts';

/** A block that Block 0 refers to is not in the store: the view is too old, or the store lost it. */
export class BlockGone extends CorruptionError {
  constructor(name: string) {
    super(name, 'A block that the database refers to is missing');
  }
}

export interface BlockSource {
  /** Counts what is found. Whoever keeps a slot counts the block that he finds in it. */
  readonly counters: CacheCounters;
  /** Where a block is in memory, if it is. */
  find(ref: BlockRef): CacheSlot | undefined;
  /** A block, from the store if need be. Throws {@link BlockGone} if it is not there. */
  load(ref: BlockRef): Promise<Node>;
  /** Child `i` of an inner node if it is in memory; remembers in the node where it found it. */
  peekChild(node: Node, i: number): Node | undefined;
  /** A block if it is in memory, for planning: it does not count as used, nor as asked for. */
  glance(ref: BlockRef): Node | undefined;
  /** The same for child `i` of an inner node. */
  glanceChild(node: Node, i: number): Node | undefined;
}

/** A source for trees that are one node in memory. */
export const noBlocks: BlockSource = {
  counters: { hits: 0, driverHits: 0, misses: 0 },
  find: () => undefined,
  load: (ref) => Promise.reject(new CorruptionError(ref.id, 'A tree in memory refers to a block')),
  peekChild: () => undefined,
  glance: () => undefined,
  glanceChild: () => undefined,
};

interface ObjectPart {
  readonly name: string;
  readonly range?: { readonly start: number; readonly end: number };
}

/** Blocks of all trees, read through one cache. Trees see it through {@link BlockReader.tree} and `staged`. */
export class BlockReader {
  readonly #driver: StorageDriver;
  readonly #prefix: string;
  readonly #cache: BlockCache;
  readonly #second: CacheDriver | undefined;
  readonly #logger: Logger | undefined;
  readonly #loading = new Map<string, Promise<Node>>();
  #databaseId = '';

  /** `second`: a cache behind the one in memory, of the user's own. */
  constructor(driver: StorageDriver, prefix: string, cache: BlockCache, second?: CacheDriver, logger?: Logger) {
    this.#driver = driver;
    this.#prefix = prefix;
    this.#cache = cache;
    this.#second = second;
    this.#logger = logger;
  }

  /** Says which database the blocks are of: the second cache may serve several. */
  useDatabase(databaseId: string): void {
    this.#databaseId = databaseId;
  }

  get cache(): BlockCache {
    return this.#cache;
  }

  /** The blocks of a table's or an index's tree, whose leaves are of this shape. */
  tree(place: TreePlace, leaf: EntryShape): BlockSource {
    return new CachedSource(
      this,
      leaf,
      (ref) => blockName(place, ref),
      (_, name) => ({ name }),
    );
  }

  /** The blocks of a staged tree: ranges of the objects that `runs` names. */
  staged(runs: readonly string[], runName: (run: string) => string, leaf: EntryShape): BlockSource {
    const object = (ref: BlockRef): string => runName(runs[ref.birth] ?? 'missing');
    const start = (ref: BlockRef): number => Number.parseInt(ref.id, 16);
    return new CachedSource(
      this,
      leaf,
      (ref) => `${object(ref)}+${start(ref)}`,
      (ref) => ({ name: object(ref), range: { start: start(ref), end: start(ref) + ref.sizeBytes } }),
    );
  }

  /** Reads and checks the block `name`, which lies in `part`; shared by all who ask meanwhile. */
  load(name: string, part: ObjectPart): Promise<Node> {
    const known = this.#loading.get(name);
    if (known !== undefined) return known;
    const loading = this.#read(name, part).finally(() => {
      this.#loading.delete(name);
    });
    this.#loading.set(name, loading);
    return loading;
  }

  async #read(name: string, part: ObjectPart): Promise<Node> {
    const cached = await this.#readSecond(name);
    if (cached !== undefined) {
      this.#cache.counters.driverHits++;
      return cached;
    }
    this.#cache.counters.misses++;
    const node = await this.#readStore(name, part);
    if (this.#second !== undefined) await this.#quietly(() => this.#second?.set(this.#secondKey(name), node.rows));
    return node;
  }

  #secondKey(name: string): string {
    return `${this.#databaseId}/${name}`;
  }

  /** A block from the second cache. What it has lost or damaged is read from the store. */
  async #readSecond(name: string): Promise<Node | undefined> {
    const second = this.#second;
    if (second === undefined) return undefined;
    return this.#quietly(async () => {
      const bytes = await second.get(this.#secondKey(name));
      return bytes === undefined || bytes === null ? undefined : openNode(name, bytes);
    });
  }

  async #quietly<T>(call: () => T | Promise<T>): Promise<T | undefined> {
    try {
      return await call();
    } catch (error) {
      this.#logger?.warn(`The cache driver failed and was passed over: ${(error as Error).message}`, { error });
      return undefined;
    }
  }

  async #readStore(name: string, part: ObjectPart): Promise<Node> {
    try {
      return await this.#readOnce(name, part);
    } catch (error) {
      // Damage on the way is possible; damage in the store is there the second time too.
      if (!(error instanceof CorruptionError) || error instanceof BlockGone) throw error;
      return this.#readOnce(name, part);
    }
  }

  async #readOnce(name: string, { name: object, range }: ObjectPart): Promise<Node> {
    const result = await this.#driver.get(`${this.#prefix}/${object}`, range === undefined ? {} : { range });
    if (result.status !== 'found') throw new BlockGone(object);
    return openNode(name, result.bytes);
  }
}

class CachedSource implements BlockSource {
  readonly counters: CacheCounters;
  readonly #reader: BlockReader;
  readonly #leaf: EntryShape;
  readonly #nameOf: (ref: BlockRef) => string;
  readonly #partOf: (ref: BlockRef, name: string) => ObjectPart;

  constructor(
    reader: BlockReader,
    leaf: EntryShape,
    nameOf: (ref: BlockRef) => string,
    partOf: (ref: BlockRef, name: string) => ObjectPart,
  ) {
    this.counters = reader.cache.counters;
    this.#reader = reader;
    this.#leaf = leaf;
    this.#nameOf = nameOf;
    this.#partOf = partOf;
  }

  find(ref: BlockRef): CacheSlot | undefined {
    const slot = this.#reader.cache.find(this.#nameOf(ref));
    if (slot?.node !== undefined) this.counters.hits++;
    return slot;
  }

  peekChild(node: Node, i: number): Node | undefined {
    const slots = (node.slots ??= []);
    let slot = slots[i] as CacheSlot | undefined;
    if (slot?.node !== undefined) {
      slot.used = true;
      this.counters.hits++;
      return slot.node;
    }
    slot = this.#reader.cache.find(this.#nameOf(node.child(i)));
    // What does not belong here is left to `load`, and to the error that follows from it.
    if (slot?.node === undefined || slot.node.level !== node.level - 1 || slot.node.count === 0) return undefined;
    slots[i] = slot;
    this.counters.hits++;
    return slot.node;
  }

  glance(ref: BlockRef): Node | undefined {
    return this.#reader.cache.glance(this.#nameOf(ref))?.node;
  }

  glanceChild(node: Node, i: number): Node | undefined {
    const slots = (node.slots ??= []);
    let slot = slots[i] as CacheSlot | undefined;
    if (slot?.node !== undefined) return slot.node;
    slot = this.#reader.cache.glance(this.#nameOf(node.child(i)));
    if (slot?.node === undefined || slot.node.level !== node.level - 1 || slot.node.count === 0) return undefined;
    slots[i] = slot;
    return slot.node;
  }

  async load(ref: BlockRef): Promise<Node> {
    const cached = this.find(ref)?.node;
    if (cached !== undefined) return cached;
    const name = this.#nameOf(ref);
    const node = await this.#reader.load(name, this.#partOf(ref, name));
    if (node.sizeBytes !== ref.sizeBytes) {
      throw new CorruptionError(
        name,
        `The block is ${node.sizeBytes} bytes long, not ${ref.sizeBytes} as its parent says`,
      );
    }
    checkLeaf(node, this.#leaf);
    this.#reader.cache.add(node);
    return node;
  }
}
