/**
 * Where the rows of an index leaf's entries are in the table's tree. A row that was looked up by its primary key is found
 * again without a search, for as long as the tree is the same: a merge that changes it makes a new one.
 */
import type { Node } from '../format/node.ts';

/** Rows that are searched by way of a leaf before it is worth the memory to remember where they are. */
const worthwhileSearches = 64;
const mostRows = 0xffff;
/** Paths of two levels, with 16 bits for each, as {@link Uint32Array} holds them. */
const mostPath = 2 ** 32;
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
