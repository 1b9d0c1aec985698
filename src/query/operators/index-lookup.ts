/** Rows by way of an index: every entry names a primary key, by which the row is looked up in the table's tree. */
import { isPromise } from '../../base/brands.ts';
import { copyRange } from '../../base/bytes.ts';
import { Node } from '../../format/node.ts';
import type { TableIndex } from '../../schema/table-shape.ts';
import type { TableState } from '../../view/table-state.ts';
import type { RunCursor } from '../../tree/cursor.ts';
import { CachedNode } from '../../cache/cached-node.ts';
import type { RowPlaces } from '../../cache/cached-node.ts';
import { PartialNode } from '../../tree/tree.ts';
import type { LookupPath, RowRef, TreeIdentity } from '../../tree/tree.ts';
import { TwoPartTree } from '../../tree/two-part-tree.ts';
import { missingRow, LookupPace, Lookups } from './lookups.ts';
import type { Found } from './lookups.ts';
import type { RowBatch, RowStream, QueryWork } from './row-batch.ts';
import { endOfKey, endOfValue } from '../../schema/table-shape.ts';
import type { IndexAccess } from '../planner/access-paths.ts';
import type { Filter } from '../conditions/filter.ts';

const noBytes = new Uint8Array(0);

/**
 * The rows of the entries that a cursor moves over, in their order. Rows that commits which are not merged yet have
 * changed are left out: the index does not know them as they are now.
 */
export class IndexStream implements RowStream {
  readonly #state: TableState;
  readonly #index: TableIndex;
  readonly #cursor: RunCursor;
  readonly #filter: Filter;
  readonly #work: QueryWork;
  /** Whether runs are read from their end. */
  readonly #descending: boolean;
  readonly #overlaid: boolean;
  readonly #pace: LookupPace;
  /** Whether entries come by primary key, so that the next row is often in the leaf of the last one, all of which is shown. */
  readonly #keepsLeaf: boolean;
  #leaf: Node | undefined;
  #leafPath = 0;
  readonly #way: LookupPath = { path: 0 };
  #from = 0;
  #to = 0;
  #ended = false;
  /** An entry's key, and the primary key in it; reused for each entry, so a lookup copies the keys that it must keep. */
  #entry: Uint8Array = noBytes;
  #primaryKey: Uint8Array = noBytes;
  /** Whether rows were looked up before. */
  #goesOn = false;

  constructor(state: TableState, access: IndexAccess, cursor: RunCursor, filter: Filter, work: QueryWork) {
    this.#state = state;
    this.#index = access.index;
    this.#cursor = cursor;
    this.#pace = new LookupPace(state.tree.source.memory, filter);
    this.#filter = filter;
    this.#work = work;
    this.#keepsLeaf = access.oneValue && !(state.tree instanceof TwoPartTree);
    this.#descending = access.oneValue && access.descending;
    this.#overlaid = state.layers.length > 0;
  }

  next(batch: RowBatch): boolean | Promise<boolean> {
    if (this.#ended) return false;
    const { wanted } = batch;
    const step = this.#pace.step(wanted);
    // If all rows match, no lookup is needless.
    const most = this.#filter.empty ? Math.min(step, wanted) : step;
    return this.#fill(new Lookups(this.#filter, batch, this.#work), batch, most, wanted);
  }

  /**
   * Looks up the rows of the next entries, up to `most`, also of several runs: one may be a single entry, and its row must not be
   * waited for alone. `wanted` rows are of use.
   */
  #fill(lookups: Lookups, batch: RowBatch, most: number, wanted: number): true | Promise<true> {
    let left = most;
    while (left > 0 && batch.count < wanted) {
      if (this.#from >= this.#to) {
        // Where rows are tested, the first that is found is often enough: more runs are looked at together from then on.
        if (left < most && !this.#filter.empty && !this.#goesOn) break;
        this.#cursor.expect?.(this.#filter.empty ? wanted - (most - left) : Number.POSITIVE_INFINITY, left);
        const moved = this.#cursor.next();
        const rest = left;
        if (isPromise(moved)) return moved.then((more) => this.#goOn(more, lookups, batch, rest, wanted));
        if (!this.#enter(moved)) break;
      }
      left -= this.#lookUp(lookups, left);
    }
    this.#goesOn = true;
    return lookups.finish();
  }

  #goOn(more: boolean, lookups: Lookups, batch: RowBatch, left: number, wanted: number): true | Promise<true> {
    if (this.#enter(more)) return this.#fill(lookups, batch, left, wanted);
    return lookups.finish();
  }

  /** The cursor has come to a run, or to the end. */
  #enter(more: boolean): boolean {
    this.#ended = !more;
    if (!more) return false;
    this.#from = this.#cursor.from;
    this.#to = this.#cursor.to;
    return true;
  }

  /** Looks up rows of the run, up to `most`. Returns how many. */
  #lookUp(lookups: Lookups, most: number): number {
    const { tree } = this.#state;
    const { node } = this.#cursor;
    const { identity } = tree;
    // Undefined where there is nothing to be remembered.
    const places = identity !== undefined && node instanceof CachedNode ? node.placesIn(identity) : undefined;
    const count = Math.min(most, this.#to - this.#from);
    for (let left = count; left > 0; left--) {
      const i = this.#descending ? --this.#to : this.#from++;
      let length: number | undefined;
      if (this.#overlaid) {
        length = this.#readPrimaryKey(i);
        if (this.#state.mayBeOverlaid(this.#primaryKey, length)) {
          lookups.add(this.#findUnlessOverlaid(length));
          continue;
        }
      }
      const path = places?.pathOf(identity as TreeIdentity, i);
      const leaf = path === undefined ? undefined : tree.leafAt(path);
      if (leaf !== undefined) {
        lookups.addRow(leaf, leaf.rowBase((places as RowPlaces).rowOf(i)));
        continue;
      }
      // Reading it may replace the array that it is read into.
      length ??= this.#readPrimaryKey(i);
      lookups.add(this.#find(this.#primaryKey, length, node, places, i));
    }
    this.#work.entries += count;
    return count;
  }

  /** Copies the primary key that an entry names and returns its length. */
  #readPrimaryKey(i: number): number {
    const { node } = this.#cursor;
    const length = node.keyLength(i);
    if (length > this.#entry.length) {
      this.#entry = new Uint8Array(length * 2);
      this.#primaryKey = new Uint8Array(length * 2);
    }
    const entry = this.#entry;
    node.copyKey(i, entry, 0);
    const start = endOfValue(node, entry, length, this.#index);
    const end = endOfKey(node, entry, start, length, this.#index);
    copyRange(entry, start, end, this.#primaryKey, 0);
    return end - start;
  }

  /** Searches for a row. `places` is to remember that it is the one of entry `i`. */
  #find(key: Uint8Array, length: number, { name }: Node, places?: RowPlaces, i = 0): RowRef | Promise<RowRef> {
    const { tree } = this.#state;
    const near = this.#leaf;
    if (near !== undefined) {
      const at = near.find(key, length);
      if (at >= 0) {
        places?.note(tree.identity as TreeIdentity, i, this.#leafPath, at);
        return { source: near, base: near.rowBase(at) };
      }
    }
    const found = tree.lookup(key, length, this.#way);
    if (isPromise(found)) {
      return found.then((rowRef) => rowRef ?? this.#missing(name));
    }
    if (found === undefined) return this.#missing(name);
    const { source, base } = found;
    if (!(source instanceof Node)) return found;
    if (!(source instanceof PartialNode))
      places?.note(tree.identity as TreeIdentity, i, this.#way.path, source.numberOf(base));
    if (this.#keepsLeaf) {
      this.#leaf = source;
      this.#leafPath = this.#way.path;
    }
    return found;
  }

  #findUnlessOverlaid(length: number): Found | Promise<Found> {
    const key = this.#primaryKey.slice(0, length);
    const overlaid = this.#state.isOverlaid(key);
    // The cursor may have gone on when that is known.
    const { node } = this.#cursor;
    if (isPromise(overlaid)) return overlaid.then((is) => (is ? undefined : this.#find(key, length, node)));
    return overlaid ? undefined : this.#find(key, length, node);
  }

  #missing(leafName: string): never {
    return missingRow({ state: this.#state, index: this.#index, leafName });
  }
}
