/**
 * The source of a tree's blocks. `find` and `getCachedChild` answer from memory, without a promise. `load` reads from the store,
 * once for all concurrent callers, and reads a damaged block a second time before it fails.
 */
import { CorruptionError, isUnreadable } from '../base/errors.ts';
import { defined } from '../base/options.ts';
import type { BlockCache, CacheCounters } from '../cache/block-cache.ts';
import { CachedNode, openCached } from '../cache/cached-node.ts';
import type { CacheEntry } from '../cache/cached-node.ts';
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

/** A block that Block 0 refers to is not in the store: either the view is too old, or the store has lost the block. */
export class BlockGone extends CorruptionError {
  constructor(name: string) {
    super(name, 'A block that the database refers to is missing');
  }
}

export interface BlockSource {
  /** Counts the blocks found. A caller that keeps an entry counts each use of its block. */
  readonly counters: CacheCounters;
  /** The memory that readers may use. */
  readonly memory: ReadMemory;
  /** Returns the cache entry of a block if it is in memory. */
  find(ref: BlockRef): CacheEntry | undefined;
  /**
   * Returns a block, from the store if necessary. Throws {@link BlockGone} if the store does not have it. `passing`: the caller
   * is a scan, so the block should not be kept in memory.
   */
  load(ref: BlockRef, passing?: boolean): Promise<Node>;
  /** Returns child `i` of an inner node if it is in memory, and caches its entry in the node. */
  getCachedChild(node: Node, i: number, passing?: boolean): Node | undefined;
  /** Returns a block if it is in memory, for planning: that counts neither as a use nor as a request. */
  peek(ref: BlockRef): Node | undefined;
  /** Returns child `i` of an inner node if it is in memory, for planning. */
  peekChild(node: Node, i: number): Node | undefined;
}

/** A source for trees that are one node in memory. */
export const noBlocks: BlockSource = {
  counters: { hits: 0, driverHits: 0, misses: 0, turnover: 0 },
  memory: unboundedMemory,
  find: () => undefined,
  load: (ref) => Promise.reject(new CorruptionError(ref.id, 'A tree in memory refers to a block')),
  getCachedChild: () => undefined,
  peek: () => undefined,
  peekChild: () => undefined,
};

/** The object, or the part of one, that holds a block. */
export interface ObjectPart {
  readonly name: string;
  readonly range?: { readonly start: number; readonly end: number };
  /** Length of the block, as its parent says. */
  readonly sizeBytes: number;
}

/** Reads the blocks of all trees through one cache. Trees use it through {@link BlockReader.tree} and `staged`. */
export class BlockReader {
  readonly #driver: Pick<StorageDriver, 'get'>;
  readonly #prefix: string;
  readonly cache: BlockCache;
  readonly #second: ExternalCache | undefined;
  readonly #loads = new SingleFlight<CachedNode>();
  readonly memory: ReadMemory;

  /** `second`: a cache behind the cache in memory. `memory`: the memory that queries may use. */
  constructor(
    driver: Pick<StorageDriver, 'get'>,
    prefix: string,
    cache: BlockCache,
    { second, memory = unboundedMemory }: { second?: ExternalCache | undefined; memory?: ReadMemory } = {},
  ) {
    this.#driver = driver;
    this.#prefix = prefix;
    this.cache = cache;
    this.#second = second;
    this.memory = memory;
  }

  /** Returns the source of the blocks of a table's or an index's tree, whose leaves have this shape. */
  tree(place: TreePlace, leaf: EntryShape): BlockSource {
    const nameOf = blockNames(place);
    return new CachedSource(this, leaf, nameOf, ({ sizeBytes }, name) => ({ name, sizeBytes }));
  }

  /** Returns the source of the blocks of a staged tree: ranges of the objects that `runs` names. */
  staged(runs: readonly string[], runName: (run: string) => string, leaf: EntryShape): BlockSource {
    const object = (ref: BlockRef): string => runName(runs[ref.birth] ?? 'missing');
    const start = (ref: BlockRef): number => Number.parseInt(ref.id, 16);
    return new CachedSource(
      this,
      leaf,
      (ref) => `${object(ref)}+${start(ref)}`,
      (ref) => {
        const { sizeBytes } = ref;
        return { name: object(ref), range: { start: start(ref), end: start(ref) + sizeBytes }, sizeBytes };
      },
    );
  }

  /** Reads and checks the block `name`, which lies in `part`. Concurrent callers share one read. */
  load(name: string, part: ObjectPart): Promise<CachedNode> {
    return this.#loads.share(name, () => this.#read(name, part));
  }

  async #read(name: string, part: ObjectPart): Promise<CachedNode> {
    const cached = this.#second && (await this.#readSecond(name));
    if (cached !== undefined) {
      this.cache.counters.driverHits++;
      return cached;
    }
    this.cache.counters.misses++;
    const node = await this.#readStore(name, part);
    this.#second?.put(name, node.rows);
    return node;
  }

  /** Reads a block from the second cache; undefined if it is lost or damaged there, so that it is read from the store. */
  async #readSecond(name: string): Promise<CachedNode | undefined> {
    const bytes = await this.#second?.get(name);
    try {
      return bytes === undefined ? undefined : this.open(name, bytes);
    } catch (error) {
      if (!isUnreadable(error)) throw error;
      return undefined;
    }
  }

  /** Checks the bytes of a block. Throws `CorruptionError`. */
  protected open(name: string, bytes: Uint8Array): CachedNode {
    return openCached(name, bytes);
  }

  /** Reads the bytes of a block; undefined if the object is missing. */
  protected async fetch({ name, range }: ObjectPart): Promise<Uint8Array | undefined> {
    const result = await this.#driver.get(`${this.#prefix}/${name}`, defined({ range }));
    return result.status === 'found' ? result.bytes : undefined;
  }

  async #readStore(name: string, part: ObjectPart): Promise<CachedNode> {
    try {
      return await this.#readOnce(name, part);
    } catch (error) {
      // The damage may have happened in transit; damage in the store shows up the second time too.
      if (!isUnreadable(error) || error instanceof BlockGone) throw error;
      return this.#readOnce(name, part);
    }
  }

  async #readOnce(name: string, part: ObjectPart): Promise<CachedNode> {
    const bytes = await this.fetch(part);
    if (bytes === undefined) throw new BlockGone(part.name);
    return this.open(name, bytes);
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

  getCachedChild(node: Node, i: number, passing = false): Node | undefined {
    const entries = childEntriesOf(node);
    let entry = entries[i];
    if (entry?.node !== undefined) {
      if (!passing) entry.used = true;
      this.counters.hits++;
      return entry.node;
    }
    entry = this.#reader.cache.find(this.#childName(node, i, entries), passing);
    // A block that does not belong here is left to `load`, which throws the error.
    if (entry?.node === undefined || entry.node.level !== node.level - 1 || entry.node.count === 0) return undefined;
    entries[i] = entry;
    this.counters.hits++;
    return entry.node;
  }

  /**
   * Returns the name of a child. It is cached even if the block is not in memory, because making it takes longer than the
   * lookup.
   */
  #childName(node: Node, i: number, entries: CacheEntry[]): string {
    const before = entries[i];
    if (before !== undefined) return before.name;
    const name = this.#nameOf(node.child(i));
    entries[i] = { name, node: undefined, used: false, bytes: 0 };
    return name;
  }

  peek(ref: BlockRef): Node | undefined {
    return this.#reader.cache.peek(this.#nameOf(ref))?.node;
  }

  peekChild(node: Node, i: number): Node | undefined {
    const entries = childEntriesOf(node);
    let entry = entries[i];
    if (entry?.node !== undefined) return entry.node;
    entry = this.#reader.cache.peek(this.#childName(node, i, entries));
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
    // Of several callers that waited for one block, the first has already checked it.
    if (this.#reader.cache.peek(name)?.node === node) return node;
    checkLeaf(node, this.#leaf);
    this.#reader.cache.add(node, passing);
    return node;
  }
}

/** Returns the entries of an inner node's children; a new list on each call if the node is not a {@link CachedNode}. */
function childEntriesOf(node: Node): CacheEntry[] {
  return node instanceof CachedNode ? (node.childEntries ??= []) : [];
}

/** Below this size, shared bytes of the heap are not looked for: they cannot take much memory, even if the rows are copied. */
const maxSharedBytes = 1024 * 1024;

/**
 * Whether every value has its own bytes in the heap. If many values shared the same bytes, rows would take far more memory than
 * the block once they are copied or decoded.
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

/**
 * Returns the reason why a leaf does not belong to its tree, even if its checksum is correct; undefined if it does, and for
 * inner nodes.
 */
export function leafProblem(node: Node, leaf: EntryShape): string | undefined {
  if (node.level > 0) return undefined;
  const { kind, layout, schemaVersion = 0 } = leaf;
  if (node.kind !== kind) {
    const found = node.kind === BlockKind.table ? 'rows' : 'index entries';
    return `The leaf holds ${found}, which do not belong in this tree`;
  }
  if (layout !== undefined && node.stride !== layout.stride) {
    return `The leaf's rows are ${node.stride} bytes long, and the schema's are ${layout.stride}`;
  }
  if (node.schemaVersion !== schemaVersion) {
    return `The leaf's rows are of schema version ${node.schemaVersion}, not ${schemaVersion}`;
  }
  return layout === undefined || hasOwnValues(node, layout.variableFields)
    ? undefined
    : 'The values of its rows are longer than its heap';
}

/** Throws `CorruptionError` for a leaf that does not belong to its tree. */
export function checkLeaf(node: Node, leaf: EntryShape): void {
  const problem = leafProblem(node, leaf);
  if (problem !== undefined) throw new CorruptionError(node.name, problem);
}

/** A block, while it is being read. */
interface Load<N extends Node> {
  node: Promise<N> | undefined;
}

/** Reads blocks such that concurrent callers share one read. */
export class SingleFlight<N extends Node> {
  /**
   * Deleting an entry whose block has arrived is not enough. A map that grows leaves its former table behind, with its entries
   * and a link to the next table. Once one of these tables is old, as each is that survives a collection of the whole heap, the
   * young tables behind it count as in use: scans would leave half of the blocks that they read to the next such collection. So
   * the tables hold objects that can be emptied.
   */
  readonly #loads = new Map<string, Load<N>>();

  /** Returns the block that is already being read, or else reads it with `read`. */
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
