/**
 * Cached nodes of trees. A node remembers the cache entries of its children, and a leaf of an index remembers the places of the
 * rows of its entries. This memory counts as part of the node, and goes with it.
 */
import { sealedKind } from '../format/block.ts';
import { Node, nodeKind } from '../format/node.ts';

/** Number of row searches through a leaf before remembering the places is worth the memory. */
const worthwhileSearches = 64;
const maxRows = 0xffff;
/** Paths have two levels of 16 bits each, so that an element of a {@link Uint32Array} holds one. */
const maxPath = 2 ** 32;
/** Bytes that the places take per entry of the leaf. */
const entryBytes = Uint32Array.BYTES_PER_ELEMENT + Uint16Array.BYTES_PER_ELEMENT;

/**
 * The places in the table's tree of the rows of an index leaf's entries. A row that was looked up by its primary key is found
 * again without a search while the tree is the same: a merge that changes the tree makes a new one.
 */
export class RowPlaces {
  readonly #leaf: Node;
  /** The identity of the tree that the places are in. It does not keep the tree in memory. */
  #tree: object | undefined;
  #searches = 0;
  /** For each entry, the path to the leaf that holds its row. */
  #paths: Uint32Array | undefined;
  /** For each entry, the number of its row in that leaf, from 1 on; 0 if it is not known. */
  #rows: Uint16Array | undefined;

  constructor(leaf: Node) {
    this.#leaf = leaf;
  }

  /** Selects the tree with this identity. Places in another tree are forgotten: they are no longer needed. */
  enter(tree: object): void {
    if (this.#tree === tree) return;
    this.#tree = tree;
    this.#searches = 0;
    this.#rows?.fill(0);
  }

  /**
   * Returns the path to the leaf with the row of entry `i`; undefined if it is not known. {@link rowOf} returns the row's number
   * there.
   */
  pathOf(tree: object, i: number): number | undefined {
    // A query on another tree may have run since, even in the same turn: a registered function can begin one.
    if (this.#rows === undefined || this.#tree !== tree || this.#rows[i] === 0) return undefined;
    return (this.#paths as Uint32Array)[i];
  }

  /** Returns the number of the row of entry `i` in its leaf. Valid only right after {@link pathOf} has returned a path. */
  rowOf(i: number): number {
    return ((this.#rows as Uint16Array)[i] as number) - 1;
  }

  /** Remembers that the row of entry `i` is row `row` of the leaf at the end of a path in the tree with this identity. */
  note(tree: object, i: number, path: number, row: number): void {
    if (this.#tree !== tree) return;
    if (this.#rows === undefined && ++this.#searches < worthwhileSearches) return;
    if (row >= maxRows || path >= maxPath) return;
    if (this.#rows === undefined) this.#allocate();
    (this.#paths as Uint32Array)[i] = path;
    (this.#rows as Uint16Array)[i] = row + 1;
  }

  #allocate(): void {
    const { count } = this.#leaf;
    this.#paths = new Uint32Array(count);
    this.#rows = new Uint16Array(count);
    this.#leaf.grow(count * entryBytes);
  }
}

/** A reference to a cached block; empty once the block was evicted. */
export interface CacheEntry {
  readonly name: string;
  node: CachedNode | undefined;
  /** Whether the block was used since its queue last passed it. */
  used: boolean;
  bytes: number;
}

export type QueueName = 'inner' | 'fresh' | 'kept';

/** An entry in a queue. */
export interface QueuedEntry extends CacheEntry {
  queue: QueueName;
  before: QueuedEntry | undefined;
  after: QueuedEntry | undefined;
  readonly owner: EntryOwner;
}

/** The cache that holds an entry. */
export interface EntryOwner {
  /** Called when the entry was removed from its queue and emptied. */
  dropped(entry: QueuedEntry): void;
  /** Called when the block of the entry has grown by `bytes`. */
  grew(entry: QueuedEntry, bytes: number): void;
}

/** A node in memory, with its cache entry and the entries of its children. */
export class CachedNode extends Node {
  /** For inner nodes: the entries of the children that were looked up. An evicted child's entry still has its name. */
  childEntries: CacheEntry[] | undefined = undefined;
  /** The entry that holds the node or held it last; undefined for nodes that no cache has held. */
  holder: QueuedEntry | undefined = undefined;
  #places: RowPlaces | undefined = undefined;

  /**
   * For leaves of an index: returns the places of its rows in the tree with this identity. Places in another tree are forgotten.
   */
  placesIn(tree: object): RowPlaces {
    const places = (this.#places ??= new RowPlaces(this));
    places.enter(tree);
    return places;
  }

  override grow(bytes: number): void {
    super.grow(bytes);
    const { holder } = this;
    holder?.owner.grew(holder, bytes);
  }
}

/** Checks a stored block and opens it as a node of a tree. */
export function openCached(name: string, bytes: Uint8Array): CachedNode {
  return new CachedNode(name, nodeKind(name, bytes), bytes);
}

/** Opens a block that this process has just sealed, without checking its checksum. */
export function openCachedSealed(name: string, bytes: Uint8Array): CachedNode {
  return new CachedNode(name, sealedKind(bytes), bytes);
}
