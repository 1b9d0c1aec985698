/**
 * One table as one view sees it: the trees of Block 0 and, on top, the changes of unmerged commits. Immutable: a new commit gives a new state.
 */
import { andThen, isPromise } from '../base/brands.ts';
import { hashOf } from '../base/bytes.ts';
import { invariant } from '../base/errors.ts';
import type { Node } from '../format/node.ts';
import { rowDeletedFlag } from '../format/row-layout.ts';
import type { AddedIndex, TableIndex, TableShape } from '../schema/table-shape.ts';
import type { KeyRange, RunCursor } from '../tree/cursor.ts';
import { openCursor } from '../tree/cursor-sequence.ts';
import { brokenIn } from '../tree/tree.ts';
import type { RowRef, Tree } from '../tree/tree.ts';
import { isSameIndex, isUsable } from './index-version.ts';
import type { IndexVersion } from './index-version.ts';
import type { LayerIndexes } from './layer-indexes.ts';
import { MergedCursor } from './merged-cursor.ts';

function visible(rowRef: RowRef): RowRef | undefined {
  return ((rowRef.source.rows[rowRef.base] as number) & rowDeletedFlag) !== 0 ? undefined : rowRef;
}

/** So many layers may lie loose on top of the others: looking into a few more takes less than joining them. */
const maxLoose = 16;

export class TableState {
  readonly shape: TableShape;
  readonly tree: Tree;
  readonly indexes: ReadonlyMap<string, Tree>;
  /** Newest first. Rows in them may be marked as deleted. */
  readonly layers: readonly Tree[];
  /** The stored versions of the indexes on functions. */
  readonly indexVersions: readonly IndexVersion[];
  /** Trees of no entries in the places of these indexes, by their names. */
  readonly blanks: ReadonlyMap<string, Tree>;
  /** Indexes that are being added: queries do not use them. */
  readonly added: readonly AddedIndex[];
  /** Joins layers, and finds their rows by an index. Undefined for a state that takes no layers. */
  readonly layering: LayerIndexes | undefined;
  /** How many of the newest layers were put on loosely. */
  readonly #loose: number;
  /** Of the layers, where all of them were put on a state without any, one by one. */
  readonly #filter: KeyFilter | undefined;

  constructor(
    shape: TableShape,
    tree: Tree,
    indexes: ReadonlyMap<string, Tree>,
    layers: readonly Tree[] = [],
    indexVersions: readonly IndexVersion[] = [],
    blanks: ReadonlyMap<string, Tree> = new Map(),
    added: readonly AddedIndex[] = [],
    layering?: LayerIndexes,
    loose = 0,
    filter?: KeyFilter,
  ) {
    this.shape = shape;
    this.tree = tree;
    this.indexes = indexes;
    this.layers = layers;
    this.indexVersions = indexVersions;
    this.blanks = blanks;
    this.added = added;
    this.layering = layering;
    this.#loose = loose;
    this.#filter = filter;
  }

  /** The entries of an index, if it has them for all rows in the tree. */
  treeOf(index: TableIndex): Tree | undefined {
    if (index.result === undefined) return this.indexes.get(index.name);
    return this.indexVersions.find((indexVersion) => isSameIndex(indexVersion.index, index) && isUsable(indexVersion))
      ?.tree;
  }

  /** Joins layers, and finds their rows by an index. */
  get layerIndexes(): LayerIndexes {
    invariant(this.layering !== undefined, 'The state takes no layers');
    return this.layering;
  }

  /** The state with one more layer on top. */
  withLayer(layer: Tree): TableState {
    return this.withLayers([layer]);
  }

  /** The state with more layers on top, the newest last. */
  withLayers(added: readonly Tree[]): TableState {
    return this.#withAll(this.layerIndexes.joined(this.shape, added, this.layers), 0, added);
  }

  /** The state with another layer on top, for a few reads: the layer is not made to be read fast. */
  withLooseLayer(layer: Tree): TableState {
    if (this.#loose < maxLoose) return this.#withAll([layer, ...this.layers], this.#loose + 1, [layer]);
    const loose = [...this.layers.slice(0, this.#loose).toReversed(), layer];
    return this.#withAll(this.layers.slice(this.#loose), 0, []).withLayers(loose);
  }

  /** Returns the state with other layers. `added`: the layers among them that this state does not have. */
  #withAll(layers: readonly Tree[], loose: number, added: readonly Tree[]): TableState {
    const isFiltered = this.layers.length === 0 || this.#filter !== undefined;
    const filter = isFiltered ? KeyFilter.with(this.#filter, added, layers) : undefined;
    const { shape, tree, indexes, indexVersions, blanks, added: more, layering } = this;
    return new TableState(shape, tree, indexes, layers, indexVersions, blanks, more, layering, loose, filter);
  }

  /** Rows of commits that are not merged yet: one that several have changed counts for each. */
  get layerRows(): number {
    return this.layers.reduce((sum, { count }) => sum + count, 0);
  }

  /** Whether an unmerged commit may have changed the row with a key. False is certain, and costs little. */
  mayBeOverlaid(key: Uint8Array, length: number = key.length): boolean {
    return this.layers.length > 0 && this.#filter?.mayHave(key, length) !== false;
  }

  /**
   * The row with a key: at once if it can be had from memory, else a promise. The key's bytes may be reused as soon as
   * the call returns.
   */
  lookup(key: Uint8Array, length: number = key.length): RowRef | undefined | Promise<RowRef | undefined> {
    const { layers } = this;
    if (!this.mayBeOverlaid(key, length)) return this.tree.lookup(key, length);
    for (let i = 0; i < layers.length; i++) {
      const rowRef = (layers[i] as Tree).lookup(key, length);
      if (isPromise(rowRef)) return this.#lookupFrom(rowRef, i, key.slice(0, length));
      if (rowRef !== undefined) return visible(rowRef);
    }
    return this.tree.lookup(key, length);
  }

  /** Returns the row with a key; null if there is none, and undefined if that is not known from memory. Reads nothing. */
  lookupCached(key: Uint8Array, length: number): RowRef | null | undefined {
    if (!this.mayBeOverlaid(key, length)) return this.tree.lookupCached(key, length);
    for (const layer of this.layers) {
      const rowRef = layer.lookupCached(key, length);
      if (rowRef === undefined) return undefined;
      if (rowRef !== null) return visible(rowRef) ?? null;
    }
    return this.tree.lookupCached(key, length);
  }

  async #lookupFrom(first: Promise<RowRef | undefined>, layer: number, key: Uint8Array): Promise<RowRef | undefined> {
    let rowRef = await first;
    for (let i = layer + 1; rowRef === undefined && i < this.layers.length; i++) {
      rowRef = await (this.layers[i] as Tree).lookup(key);
    }
    return rowRef === undefined ? this.tree.lookup(key) : visible(rowRef);
  }

  /**
   * Whether there is certainly no row with a key from `first` to `last`, both included, nor a mark of one that was deleted,
   * for all that is in memory. False where that is not known.
   */
  holdsNone(first: Uint8Array, last: Uint8Array): boolean {
    return [...this.layers, this.tree].every((tree) => tree.holds(first, last) === false);
  }

  /** Whether a commit that is not merged yet has changed the row with this key. */
  isOverlaid(key: Uint8Array): boolean | Promise<boolean> {
    if (!this.mayBeOverlaid(key)) return false;
    for (let i = 0; i < this.layers.length; i++) {
      const rowRef = (this.layers[i] as Tree).lookup(key);
      if (isPromise(rowRef)) return this.#isOverlaidFrom(rowRef, i, key);
      if (rowRef !== undefined) return true;
    }
    return false;
  }

  async #isOverlaidFrom(first: Promise<RowRef | undefined>, layer: number, key: Uint8Array): Promise<boolean> {
    if ((await first) !== undefined) return true;
    for (let i = layer + 1; i < this.layers.length; i++) {
      if ((await (this.layers[i] as Tree).lookup(key)) !== undefined) return true;
    }
    return false;
  }

  /** The rows with keys in a range, in key order. */
  scan(range: KeyRange = {}, descending = false): RunCursor {
    const bottom = openCursor(this.tree, range, descending);
    const cursor =
      this.layers.length === 0 ? bottom : new MergedCursor(this.#layerCursors(range, descending), bottom, descending);
    return this.#mayBreak || this.tree.mayBreak ? new CheckedCursor(cursor) : cursor;
  }

  /** Scans only the rows that unmerged commits have changed; with the rows that they deleted if `showDeleted`. */
  scanLayers(range: KeyRange = {}, showDeleted = false): RunCursor {
    const cursor = new MergedCursor(this.#layerCursors(range, false), undefined, false, showDeleted);
    return this.#mayBreak ? new CheckedCursor(cursor) : cursor;
  }

  get #mayBreak(): boolean {
    return this.layers.some((layer) => layer.mayBreak);
  }

  #layerCursors(range: KeyRange, descending: boolean): RunCursor[] {
    return this.layers.map((layer) => openCursor(layer, range, descending));
  }
}

/** A cursor over rows, some of which could not be made: it ends with the error of the first such row. */
class CheckedCursor implements RunCursor {
  readonly #cursor: RunCursor;

  constructor(cursor: RunCursor) {
    this.#cursor = cursor;
  }

  get node(): Node {
    return this.#cursor.node;
  }

  get from(): number {
    return this.#cursor.from;
  }

  get to(): number {
    return this.#cursor.to;
  }

  expect(entries: number): void {
    this.#cursor.expect?.(entries);
  }

  next(): boolean | Promise<boolean> {
    const moved = this.#cursor.next();
    return andThen(moved, (more) => this.#checked(more));
  }

  #checked(more: boolean): boolean {
    if (!more) return false;
    for (const [at, error] of brokenIn(this.node) ?? []) if (at >= this.from && at < this.to) throw error;
    return true;
  }
}

/** Bits of the filter for each key. Two of them are set, so that about one absent key in forty passes the filter. */
const bitsOfKey = 16;
const bitsOfWord = 32;
const minKeys = 128;
/** Of a longer key only the end counts, where keys mostly differ. */
const maxHashed = 32;

function hashOfKey(key: Uint8Array, length: number): number {
  return hashOf(key, length > maxHashed ? length - maxHashed : 0, length);
}

/** Two of the bits of a word. */
function bitsIn(hash: number): number {
  return (1 << (hash & 31)) | (1 << ((hash >>> 5) & 31));
}

/** The entries of a layer that is all in memory. */
function nodeOf({ node }: Tree): Node | undefined {
  return node?.level === 0 ? node : undefined;
}

/**
 * A Bloom filter over the keys of a table's layers. The bits of a key lie in one word, so one read of memory rules out
 * most keys. States that follow each other share a filter. It only learns more keys: a key that a state does not show
 * costs a needless search.
 */
export class KeyFilter {
  readonly #words: Int32Array;
  readonly #mask: number;
  /** Keys that it has room for. */
  #left: number;
  /** A key that it learns. */
  #key = new Uint8Array(64);

  private constructor(keys: number) {
    const words = 2 ** Math.ceil(Math.log2((Math.max(minKeys, keys) * bitsOfKey) / bitsOfWord));
    this.#words = new Int32Array(words);
    this.#mask = words - 1;
    this.#left = (words * bitsOfWord) / bitsOfKey;
  }

  /**
   * Returns a filter for `layers`: the present one with the layers in `added` put in, or a larger one.
   * Undefined where a layer is not all in memory.
   */
  static with(before: KeyFilter | undefined, added: readonly Tree[], layers: readonly Tree[]): KeyFilter | undefined {
    if (!layers.every(nodeOf)) return undefined;
    const count = added.reduce((sum, layer) => sum + layer.count, 0);
    if (before !== undefined && count <= before.#left) {
      for (const layer of added) before.#learn(nodeOf(layer) as Node);
      return before;
    }
    const filter = new KeyFilter(2 * layers.reduce((sum, layer) => sum + layer.count, 0));
    for (const layer of layers) filter.#learn(nodeOf(layer) as Node);
    return filter;
  }

  #learn(node: Node): void {
    this.#left -= node.count;
    for (let i = 0; i < node.count; i++) {
      const length = node.keyLength(i);
      if (length > this.#key.length) this.#key = new Uint8Array(length * 2);
      node.copyKey(i, this.#key, 0);
      const hash = hashOfKey(this.#key, length);
      const word = (hash >>> 10) & this.#mask;
      this.#words[word] = (this.#words[word] as number) | bitsIn(hash);
    }
  }

  /** Whether the first `length` bytes of `key` may be a key of the layers: false is certain. */
  mayHave(key: Uint8Array, length: number): boolean {
    const hash = hashOfKey(key, length);
    const bits = bitsIn(hash);
    return ((this.#words[(hash >>> 10) & this.#mask] as number) & bits) === bits;
  }
}
