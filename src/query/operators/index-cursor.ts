/**
 * Cursors over the entries of an index, in the order in which a query wants the rows: by the indexed values in either
 * direction, entries of the same values always by ascending primary key. Runs are to be read from their beginning.
 */
import { andThen } from '../../base/brands.ts';
import { compareBytes, prefixEnd } from '../../base/bytes.ts';
import type { Node } from '../../format/node.ts';
import { endOfValue } from '../../schema/table-shape.ts';
import type { TableIndex } from '../../schema/table-shape.ts';
import { CursorSequence } from '../../tree/cursor-sequence.ts';
import { TreeCursor } from '../../tree/cursor.ts';
import type { KeyRange, RunCursor } from '../../tree/cursor.ts';
import type { Tree } from '../../tree/tree.ts';
import type { IndexAccess } from '../planner/access-paths.ts';

/** Entries before the last one that are compared with it before the first entry of their value is searched for. */
const nearEntries = 4;

/** Descending by the indexed values, ascending by primary key where they are the same. */
export class DescendingValues implements RunCursor {
  readonly #tree: Tree;
  readonly #index: TableIndex;
  readonly #from: Uint8Array | undefined;
  /** Descends over the entries below {@link #ascending}. */
  #descending: TreeCursor;
  /** Entries of a value that may begin in an earlier leaf. */
  #ascending: TreeCursor | undefined;
  #expected = 0;
  /** The end of the rest of the descending cursor's run. */
  #left = 0;
  #fresh = true;
  /** The key of an entry; reused for each. */
  #key: Uint8Array = new Uint8Array(64);
  node!: Node;
  from = 0;
  to = 0;

  constructor(tree: Tree, range: KeyRange, index: TableIndex) {
    this.#tree = tree;
    this.#index = index;
    this.#from = range.from;
    this.#descending = new TreeCursor(tree, range, true);
  }

  expect(entries: number): void {
    this.#expected = entries;
    (this.#ascending ?? this.#descending).expect(entries);
  }

  next(): boolean | Promise<boolean> {
    if (this.#ascending !== undefined) {
      const moved = this.#ascending.next();
      return andThen(moved, (more) => this.#take(more));
    }
    if (this.#fresh || this.#left <= this.#descending.from) {
      const moved = this.#descending.next();
      return andThen(moved, (more) => more && this.#enter());
    }
    return this.#takeGroup();
  }

  #enter(): boolean | Promise<boolean> {
    this.#fresh = false;
    this.#left = this.#descending.to;
    return this.#takeGroup();
  }

  /** Takes a run of the ascending cursor, or continues with the entries below its value. */
  #take(more: boolean): boolean | Promise<boolean> {
    const cursor = this.#ascending as TreeCursor;
    if (!more) {
      this.#ascending = undefined;
      this.#descending.expect(this.#expected);
      return this.next();
    }
    this.node = cursor.node;
    this.from = cursor.from;
    this.to = cursor.to;
    return true;
  }

  /** Returns the first entry of the leaf with the value of entry `last`, which is the first `end` bytes of its key. */
  #firstOfValue(node: Node, last: number, end: number): number {
    // Mostly few rows have the same value, and their entries are found sooner than by a search.
    for (let i = last - 1; i >= 0; i--) {
      if (!node.beginsAlike(i, last, end)) return i + 1;
      if (last - i >= nearEntries) return node.lowerBound(this.#key, end);
    }
    return 0;
  }

  /** Takes the entries of the last value in the rest of the run. */
  #takeGroup(): boolean | Promise<boolean> {
    const { node, from } = this.#descending;
    const last = this.#left - 1;
    const length = node.keyLength(last);
    if (length > this.#key.length) this.#key = new Uint8Array(2 * length);
    node.copyKey(last, this.#key, 0);
    const end = endOfValue(node, this.#key, length, this.#index);
    const start = this.#firstOfValue(node, last, end);
    if (start > from) {
      this.node = node;
      this.from = start;
      this.to = this.#left;
      this.#left = start;
      return true;
    }
    const value = this.#key.slice(0, end);
    // The value may have entries in earlier leaves: all of them, ascending, and then on below the value.
    const below = this.#from !== undefined && compareBytes(this.#from, value) > 0 ? this.#from : value;
    this.#ascending = new TreeCursor(this.#tree, { from: below, to: prefixEnd(value) });
    this.#descending = new TreeCursor(this.#tree, { from: this.#from, to: below }, true);
    this.#ascending.expect(this.#expected);
    this.#fresh = true;
    return this.next();
  }
}

/** The entries of an access, in its order. `breathe`: called again and again while ranges are empty. */
export function indexCursor(
  tree: Tree,
  { index, oneValue, ranges, descending }: IndexAccess,
  breathe?: () => void | Promise<void>,
): RunCursor {
  const one = ranges.length === 1 ? ranges[0] : undefined;
  if (one !== undefined && (oneValue || !descending)) return new TreeCursor(tree, one, descending);
  const make = (i: number): RunCursor => {
    if (!descending) return new TreeCursor(tree, ranges[i]);
    return new DescendingValues(tree, ranges[ranges.length - 1 - i] as KeyRange, index);
  };
  return new CursorSequence(ranges.length, make, tree.source.memory, breathe);
}
