/**
 * Where a tree's blocks come from. `find` and `peekChild` answer from memory without a promise; `load` goes to the store, once for
 * all who ask at the same time, and reads a damaged block a second time before it gives up.
 */
import { CorruptionError, isUnreadable } from '../base/errors.ts';
import { defined } from '../base/options.ts';
import type { BlockCache, CacheCounters } from '../cache/block-cache.ts';
import { openCached, childEntriesOf } from '../cache/cached-node.ts';
import type { CachedNode, CacheEntry } from '../cache/cached-node.ts';
import type { ExternalCache } from '../cache/external-cache.ts';
import { unboundedMemory } from '../cache/memory-budget.ts';
import type { ReadMemory } from '../cache/memory-budget.ts';
import { BlockKind } from '../format/block.ts';
import type { BlockRef } from '../format/block.ts';
import { blockNames } from '../format/object-names.ts';
import type { TreePlace } from '../format/object-names.ts';
import type { EntryShape } from '../format/node-entries.ts';
import type { Node } from '../format/node.ts';
import { inlineBytes, nonAsciiFlag } from '../format/row-layout.ts';
import type { LayoutField } from '../format/row-layout.ts';
import type { StorageDriver } from '../storage/contract/driver.ts';

/** A block that Block 0 refers to is not in the store: the view is too old, or the store lost it. */
export class BlockGone extends CorruptionError {
  constructor(name: string) {
    super(name, 'A block that the database refers to is missing');
  }
}

export interface BlockSource {
  /** Counts what is found. A caller that keeps an entry counts the block that it finds in it. */
  readonly counters: CacheCounters;
  /** What those who read may hold meanwhile. */
  readonly memory: ReadMemory;
  /** Where a block is in memory, if it is. */
  find(ref: BlockRef): CacheEntry | undefined;
  /**
   * A block, from the store if need be. Throws {@link BlockGone} if it is not there. `passing`: a scan comes by it, which is
   * no reason to keep it in memory.
   */
  load(ref: BlockRef, passing?: boolean): Promise<Node>;
  /** Child `i` of an inner node if it is in memory; remembers in the node where it found it. */
  peekChild(node: Node, i: number, passing?: boolean): Node | undefined;
  /** A block if it is in memory, for planning: it does not count as used, nor as asked for. */
  glance(ref: BlockRef): Node | undefined;
  /** Returns child `i` of an inner node if it is in memory, for planning. */
  glanceChild(node: Node, i: number): Node | undefined;
}

/** A source for trees that are one node in memory. */
export const noBlocks: BlockSource = {
  counters: { hits: 0, driverHits: 0, misses: 0, turnover: 0 },
  memory: unboundedMemory,
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
  readonly #second: ExternalCache | undefined;
  readonly #loads = new SingleFlight<CachedNode>();
  readonly memory: ReadMemory;

  /** `second`: a cache behind the one in memory. `memory`: what queries may hold. */
  constructor(
    driver: StorageDriver,
    prefix: string,
    cache: BlockCache,
    { second, memory = unboundedMemory }: { second?: ExternalCache | undefined; memory?: ReadMemory } = {},
  ) {
    this.#driver = driver;
    this.#prefix = prefix;
    this.#cache = cache;
    this.#second = second;
    this.memory = memory;
  }

  get cache(): BlockCache {
    return this.#cache;
  }

  /** The blocks of a table's or an index's tree, whose leaves are of this shape. */
  tree(place: TreePlace, leaf: EntryShape): BlockSource {
    const nameOf = blockNames(place);
    return new CachedSource(this, leaf, nameOf, (_, name) => ({ name }));
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
  load(name: string, part: ObjectPart): Promise<CachedNode> {
    return this.#loads.share(name, () => this.#read(name, part));
  }

  async #read(name: string, part: ObjectPart): Promise<CachedNode> {
    const cached = this.#second && (await this.#readSecond(name));
    if (cached !== undefined) {
      this.#cache.counters.driverHits++;
      return cached;
    }
    this.#cache.counters.misses++;
    const node = await this.#readStore(name, part);
    this.#second?.put(name, node.rows);
    return node;
  }

  /** A block from the second cache. What it has lost or damaged is read from the store. */
  async #readSecond(name: string): Promise<CachedNode | undefined> {
    const bytes = await this.#second?.get(name);
    return bytes === undefined ? undefined : openCached(name, bytes);
  }

  async #readStore(name: string, part: ObjectPart): Promise<CachedNode> {
    try {
      return await this.#readOnce(name, part);
    } catch (error) {
      // Damage on the way is possible; damage in the store is there the second time too.
      if (!isUnreadable(error) || error instanceof BlockGone) throw error;
      return this.#readOnce(name, part);
    }
  }

  async #readOnce(name: string, { name: object, range }: ObjectPart): Promise<CachedNode> {
    const result = await this.#driver.get(`${this.#prefix}/${object}`, defined({ range }));
    if (result.status !== 'found') throw new BlockGone(object);
    return openCached(name, result.bytes);
  }
}

class CachedSource implements BlockSource {
  readonly counters: CacheCounters;
  readonly memory: ReadMemory;
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
    this.memory = reader.memory;
    this.#reader = reader;
    this.#leaf = leaf;
    this.#nameOf = nameOf;
    this.#partOf = partOf;
  }

  find(ref: BlockRef, passing = false): CacheEntry | undefined {
    const entry = this.#reader.cache.find(this.#nameOf(ref), passing);
    if (entry?.node !== undefined) this.counters.hits++;
    return entry;
  }

  peekChild(node: Node, i: number, passing = false): Node | undefined {
    const entries = childEntriesOf(node);
    let entry = entries[i];
    if (entry?.node !== undefined) {
      if (!passing) entry.used = true;
      this.counters.hits++;
      return entry.node;
    }
    entry = this.#reader.cache.find(this.#childName(node, i, entries), passing);
    // What does not belong here is left to `load`, and to the error that follows from it.
    if (entry?.node === undefined || entry.node.level !== node.level - 1 || entry.node.count === 0) return undefined;
    entries[i] = entry;
    this.counters.hits++;
    return entry.node;
  }

  /** The name of a child: made once, whether or not the block is in memory, for it takes longer than to look for it. */
  #childName(node: Node, i: number, entries: CacheEntry[]): string {
    const before = entries[i];
    if (before !== undefined) return before.name;
    const name = this.#nameOf(node.child(i));
    entries[i] = { name, node: undefined, used: false, bytes: 0 };
    return name;
  }

  glance(ref: BlockRef): Node | undefined {
    return this.#reader.cache.glance(this.#nameOf(ref))?.node;
  }

  glanceChild(node: Node, i: number): Node | undefined {
    const entries = childEntriesOf(node);
    let entry = entries[i];
    if (entry?.node !== undefined) return entry.node;
    entry = this.#reader.cache.glance(this.#childName(node, i, entries));
    if (entry?.node === undefined || entry.node.level !== node.level - 1 || entry.node.count === 0) return undefined;
    entries[i] = entry;
    return entry.node;
  }

  async load(ref: BlockRef, passing = false): Promise<Node> {
    const cached = this.find(ref, passing)?.node;
    if (cached !== undefined) return cached;
    const name = this.#nameOf(ref);
    const node = await this.#reader.load(name, this.#partOf(ref, name));
    if (node.sizeBytes !== ref.sizeBytes) {
      throw new CorruptionError(
        name,
        `The block is ${node.sizeBytes} bytes long, not ${ref.sizeBytes} as its parent says`,
      );
    }
    // Many may wait for one block: the first of them has looked at it.
    if (this.#reader.cache.glance(name)?.node === node) return node;
    checkLeaf(node, this.#leaf);
    this.#reader.cache.add(node, passing);
    return node;
  }
}

// Whether a leaf is one of the tree in which it was found: under a right checksum, too, it may be another table's.

/** So often the heap may be pointed to as a whole without being looked at: it is not much, no matter who copies the rows. */
const maxSharedBytes = 1024 * 1024;

/**
 * Whether every value has bytes of its own in the heap. If many pointed to the same bytes, the rows would take up far more
 * than the block as soon as they are copied or made into objects.
 */
function hasOwnValues(node: Node, variableFields: readonly LayoutField[]): boolean {
  const heapBytes = node.heapEnd - node.heapStart;
  const { count, rowsView } = node;
  if (count * variableFields.length * heapBytes <= maxSharedBytes) return true;
  let bytes = 0;
  for (let i = 0; i < count; i++) {
    const base = node.rowBase(i);
    for (let f = 0; f < variableFields.length; f++) {
      const length = rowsView.getUint32(base + (variableFields[f] as LayoutField).offset, true) & ~nonAsciiFlag;
      if (length > inlineBytes) bytes += length;
    }
  }
  return bytes <= heapBytes;
}

/** Why the entries of a leaf cannot be read as what the tree holds; undefined if they can, and for inner nodes. */
export function leafProblem(node: Node, leaf: EntryShape): string | undefined {
  if (node.level > 0) return undefined;
  const { kind, layout, schemaVersion = 0 } = leaf;
  if (node.kind !== kind) {
    const found = node.kind === BlockKind.table ? 'rows' : 'index entries';
    return `The leaf holds ${found}, which is not what this tree is for`;
  }
  if (layout !== undefined && node.stride !== layout.stride) {
    return `The leaf's rows are ${node.stride} bytes long, and the schema's are ${layout.stride}`;
  }
  if (node.schemaVersion !== schemaVersion) {
    return `The leaf's rows are of schema version ${node.schemaVersion}, not ${schemaVersion}`;
  }
  return layout === undefined || hasOwnValues(node, layout.variableFields)
    ? undefined
    : 'The values of its rows are longer than all that it holds';
}

/** Throws `CorruptionError` for a leaf that is not of its tree. */
export function checkLeaf(node: Node, leaf: EntryShape): void {
  const problem = leafProblem(node, leaf);
  if (problem !== undefined) throw new CorruptionError(node.name, problem);
}

// Blocks on their way: those who ask for one meanwhile share it.

/** A block that is being read, as long as it is. */
interface Load<N extends Node> {
  node: Promise<N> | undefined;
}

export class SingleFlight<N extends Node> {
  /**
   * It is not enough to delete what has arrived. A map that makes room for more leaves its former table behind, with all
   * that was in it then and a link to the next table. As soon as one of those tables is old, as each is that outlives a
   * collection of the whole heap, the young ones behind it count as in use: scans would leave half of the blocks that
   * they pass to the next such collection. So the tables hold what can be emptied.
   */
  readonly #loads = new Map<string, Load<N>>();

  /** A block that is on its way, or else that `read` gives. */
  share(name: string, read: () => Promise<N>): Promise<N> {
    const known = this.#loads.get(name)?.node;
    if (known !== undefined) return known;
    const load: Load<N> = { node: undefined };
    const node = read().finally(() => {
      this.#loads.delete(name);
      load.node = undefined;
    });
    load.node = node;
    this.#loads.set(name, load);
    return node;
  }
}
