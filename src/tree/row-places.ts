/**
 * Where the rows of an index leaf's entries are in the table's tree. A row that was looked up by its primary key is found
 * again without a search, for as long as the tree is the same: a merge that changes it makes a new one.
 */
import type { Node } from '../format/node.ts';
import { mostChildren } from './tree.ts';
import type { Tree, TreeIdentity } from './tree.ts';

/** Rows that are searched by way of a leaf before it is worth the memory to remember where they are. */
const worthwhileSearches = 64;
const mostRows = 0xffff;
const mostPath = mostChildren * mostChildren;
/** What is remembered takes so much for each entry of the leaf. */
const entryBytes = Uint32Array.BYTES_PER_ELEMENT + Uint16Array.BYTES_PER_ELEMENT;

export class RowPlaces {
  readonly #leaf: Node;
  /** Of the tree that the places are in. The tree itself is not held: it may go. */
  #tree: TreeIdentity | undefined;
  #searches = 0;
  /** For each entry the way to the leaf that its row is in. */
  #paths: Uint32Array | undefined;
  /** And the row's number in that leaf, from 1 on; 0: not known. */
  #rows: Uint16Array | undefined;

  private constructor(leaf: Node) {
    this.#leaf = leaf;
  }

  /**
   * The places that a leaf of an index remembers of a table's tree; undefined where there is nothing to be remembered. What it
   * knew of another tree is forgotten: whoever still works with that one finds and notes nothing any more.
   */
  static of(leaf: Node, { identity }: Tree): RowPlaces | undefined {
    if (identity === undefined) return undefined;
    const places = (leaf.places as RowPlaces | undefined) ?? new RowPlaces(leaf);
    leaf.places = places;
    if (places.#tree !== identity) {
      places.#tree = identity;
      places.#searches = 0;
      places.#rows?.fill(0);
    }
    return places;
  }

  /** The leaf with the row of entry `i`, which is its row {@link rowOf}, if that is known and the leaf is in memory. */
  leafOf(tree: Tree, i: number): Node | undefined {
    // A query on another tree may have come in between, even in one turn: a registered function can begin one.
    if (this.#rows === undefined || this.#tree !== tree.identity) return undefined;
    if (this.#rows[i] === 0) return undefined;
    return tree.leafAt((this.#paths as Uint32Array)[i] as number);
  }

  /** The number of the row of entry `i` in its leaf, where {@link leafOf} has just found that leaf. */
  rowOf(i: number): number {
    return ((this.#rows as Uint16Array)[i] as number) - 1;
  }

  /** Remembers that the row of entry `i` is row `row` of the leaf at the end of a path in a tree. */
  note(tree: Tree, i: number, path: number, row: number): void {
    if (this.#tree !== tree.identity) return;
    if (this.#rows === undefined && ++this.#searches < worthwhileSearches) return;
    if (row >= mostRows || path >= mostPath) return;
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
