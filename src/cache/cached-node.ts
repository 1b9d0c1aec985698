/**
 * Nodes as trees read them: what was found out on the way through a node stays with it while it is in memory, and counts as
 * part of it. That is where the blocks of its children are, and for leaves of an index where the rows of its entries are.
 */
import { sealedKind } from '../format/block.ts';
import { Node, nodeKind } from '../format/node.ts';

// Where the rows of an index leaf's entries are in the table's tree. A row that was looked up by its primary key is found
// again without a search, for as long as the tree is the same: a merge that changes it makes a new one.

/** Rows that are searched by way of a leaf before it is worth the memory to remember where they are. */
const worthwhileSearches = 64;
const maxRows = 0xffff;
/** Paths of two levels, with 16 bits for each, as {@link Uint32Array} holds them. */
const maxPath = 2 ** 32;
/** What is remembered takes so much for each entry of the leaf. */
const entryBytes = Uint32Array.BYTES_PER_ELEMENT + Uint16Array.BYTES_PER_ELEMENT;

export class RowPlaces {
  readonly #leaf: Node;
  /** Of the tree that the places are in. The tree itself is not held: it may go. */
  #tree: object | undefined;
  #searches = 0;
  /** For each entry the way to the leaf that its row is in. */
  #paths: Uint32Array | undefined;
  /** And the row's number in that leaf, from 1 on; 0: not known. */
  #rows: Uint16Array | undefined;

  constructor(leaf: Node) {
    this.#leaf = leaf;
  }

  /** From here on the places are in the tree with this identity. Those in another one are forgotten: they are asked for no more. */
  enter(tree: object): void {
    if (this.#tree === tree) return;
    this.#tree = tree;
    this.#searches = 0;
    this.#rows?.fill(0);
  }

  /** The path to the leaf with the row of entry `i`, which is its row {@link rowOf}; undefined where it is not known. */
  pathOf(tree: object, i: number): number | undefined {
    // A query on another tree may have come in between, even in one turn: a registered function can begin one.
    if (this.#rows === undefined || this.#tree !== tree || this.#rows[i] === 0) return undefined;
    return (this.#paths as Uint32Array)[i];
  }

  /** The number of the row of entry `i` in its leaf, where {@link pathOf} has just told the path to that leaf. */
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

/** Where a cached block is found again; empty once it was evicted. */
export interface CacheEntry {
  readonly name: string;
  node: CachedNode | undefined;
  /** Used since its queue last passed it. */
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

/** The cache that an entry is of. */
export interface EntryOwner {
  /** The entry has left its queue, and has no block any more. */
  dropped(entry: QueuedEntry): void;
  /** The block of the entry takes so many bytes more. */
  grew(entry: QueuedEntry, bytes: number): void;
}

export class CachedNode extends Node {
  /** For inner nodes: the entry of each child that was looked for, which has its name at least. */
  childEntries: CacheEntry[] | undefined = undefined;
  /** The entry that holds the node, or the last that did; undefined for nodes that no cache holds. */
  holder: QueuedEntry | undefined = undefined;
  #places: RowPlaces | undefined = undefined;

  /** For leaves of an index: where rows of its entries are in the tree with this identity. Those in another tree are forgotten. */
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

/** Opens a block that was sealed here a moment ago: its checksum need not be made again. */
export function openCachedSealed(name: string, bytes: Uint8Array): CachedNode {
  return new CachedNode(name, sealedKind(bytes), bytes);
}

/** The entries of an inner node's children; of a node that remembers none, new ones each time. */
export function childEntriesOf(node: Node): CacheEntry[] {
  return node instanceof CachedNode ? (node.childEntries ??= []) : [];
}
