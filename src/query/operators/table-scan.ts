/** Rows of a table in key order, run by run: whole runs are filtered at a time, before anything is decoded. */
import { andThen, isPromise } from '../../base/brands.ts';
import { CorruptionError, invariant } from '../../base/errors.ts';
import type { Pacer } from '../../base/pacer.ts';
import type { Node } from '../../format/node.ts';
import type { RowLayout } from '../../format/row-layout.ts';
import type { RunCursor } from '../../tree/cursor.ts';
import type { Tree } from '../../tree/tree.ts';
import type { LayerEntries } from '../../view/layer-indexes.ts';
import type { TableState } from '../../view/table-state.ts';
import { maxPicks } from '../conditions/filter.ts';
import type { Filter } from '../conditions/filter.ts';
import type { IndexAccess } from '../planner/access-paths.ts';
import { indexCursor } from './index-cursor.ts';
import type { RowBatch, RowStream, QueryWork } from './row-batch.ts';

export class TableStream implements RowStream {
  readonly #layout: RowLayout;
  readonly #cursor: RunCursor;
  readonly #descending: boolean;
  readonly #filter: Filter;
  readonly #work: QueryWork;
  /** How many rows are tested at once. */
  readonly #atOnce: number;
  #picks: Int32Array | undefined;
  readonly #rate = new MatchRate();
  /** The rest of the present run. */
  #from = 0;
  #to = 0;

  constructor(layout: RowLayout, cursor: RunCursor, descending: boolean, filter: Filter, work: QueryWork) {
    this.#layout = layout;
    this.#cursor = cursor;
    this.#descending = descending;
    this.#filter = filter;
    this.#work = work;
    this.#atOnce = filter.rowsAtOnce(filter.slow ? 64 : maxPicks);
  }

  next(batch: RowBatch): boolean | Promise<boolean> {
    const moved = this.#advance(batch.wanted);
    return andThen(moved, (more) => more && this.#addRows(batch));
  }

  /** Counts matching rows instead of adding them: how many of the next ones; undefined once there are no more. */
  count(): number | undefined | Promise<number | undefined> {
    const moved = this.#advance(Number.POSITIVE_INFINITY);
    return andThen(moved, (more) => (more ? this.#countRows() : undefined));
  }

  #advance(wanted: number): boolean | Promise<boolean> {
    if (this.#from < this.#to) return true;
    this.#cursor.expect?.(this.#rate.rowsFor(wanted));
    const moved = this.#cursor.next();
    return andThen(moved, (more) => this.#enter(more));
  }

  #enter(more: boolean): boolean {
    if (!more) return false;
    const { node, from, to } = this.#cursor;
    if (node.stride !== this.#layout.stride) {
      throw new CorruptionError(
        node.name,
        `Rows of ${node.stride} bytes, where the schema makes rows of ${this.#layout.stride}`,
      );
    }
    this.#from = from;
    this.#to = to;
    return true;
  }

  #countRows(): number {
    if (!this.#filter.empty) return this.#select(this.#filter.rowsAtOnce(maxPicks));
    const count = this.#to - this.#from;
    this.#from = this.#to;
    this.#work.rows += count;
    return count;
  }

  #addRows(batch: RowBatch): true {
    const { node } = this.#cursor;
    if (this.#filter.empty && this.#filter.bound === undefined) {
      const count = Math.min(this.#to - this.#from, maxPicks, batch.wanted);
      this.#work.rows += count;
      this.#work.matches += count;
      if (this.#descending) for (let k = 0; k < count; k++) batch.add(node, node.rowBase(--this.#to));
      else for (let k = 0; k < count; k++) batch.add(node, node.rowBase(this.#from++));
      return true;
    }
    const kept = this.#select(this.#atOnce);
    const picks = this.#picks as Int32Array;
    for (let k = 0; k < kept; k++) {
      batch.add(node, node.rowBase(picks[this.#descending ? kept - 1 - k : k] as number));
    }
    return true;
  }

  /** Takes up to `most` rows off the run and leaves those that match in the picks, ascending. */
  #select(most: number): number {
    const { node } = this.#cursor;
    const count = Math.min(this.#to - this.#from, most);
    this.#work.rows += count;
    if (this.#descending) this.#to -= count;
    else this.#from += count;
    const first = this.#descending ? this.#to : this.#from - count;
    if (this.#filter.slow) node.expectReads(count);
    let picks = this.#picks;
    if (picks === undefined || picks.length < count) picks = this.#picks = new Int32Array(count);
    const run = { source: node, first: node.rowsStart, stride: node.stride, from: first, to: first + count };
    const kept = this.#filter.selectRun(run, picks);
    this.#work.matches += kept;
    this.#rate.note(count, kept);
    return kept;
  }
}

/** Estimates how many rows a query must test for the matches that it needs, by the rows that it has tested. */
class MatchRate {
  #seen = 0;
  #matched = 0;

  note(seen: number, matched: number): void {
    this.#seen += seen;
    this.#matched += matched;
  }

  /** Returns the number of rows to test for `wanted` matches: infinity while none has matched. */
  rowsFor(wanted: number): number {
    if (this.#seen === this.#matched) return wanted;
    return this.#matched === 0 ? Number.POSITIVE_INFINITY : Math.ceil((wanted * this.#seen) / this.#matched);
  }
}

/** Entries that are gone through before the caller may do something else; fewer where each row takes long. */
const entriesAtOnce = 1024;
const slowEntriesAtOnce = 64;

export interface LayerStreamOptions {
  readonly state: TableState;
  /** Which of its layers: 0 is the newest. */
  readonly position: number;
  readonly access: IndexAccess;
  /** All conditions of the query. */
  readonly filter: Filter;
  readonly work: QueryWork;
  readonly pacer: Pacer;
}

export class LayerStream implements RowStream {
  readonly #state: TableState;
  readonly #layer: Tree;
  readonly #newer: readonly Tree[];
  readonly #access: IndexAccess;
  readonly #filter: Filter;
  readonly #work: QueryWork;
  readonly #pacer: Pacer;
  readonly #descending: boolean;
  #rows: Uint32Array | undefined;
  #cursor: RunCursor | undefined;
  /** The rest of the present run. */
  #from = 0;
  #to = 0;
  #key = new Uint8Array(64);

  constructor({ state, position, access, filter, work, pacer }: LayerStreamOptions) {
    this.#state = state;
    this.#layer = state.layers[position] as Tree;
    this.#newer = state.layers.slice(0, position);
    this.#access = access;
    this.#filter = filter;
    this.#work = work;
    this.#pacer = pacer;
    this.#descending = access.oneValue && access.descending;
  }

  next(batch: RowBatch): boolean | Promise<boolean> {
    if (this.#cursor !== undefined) return this.#read(batch);
    const { layerIndexes } = this.#state;
    const entries = layerIndexes.entriesOf(this.#layer, this.#access.index, this.#pacer);
    return andThen(entries, (made) => this.#begin(made, batch));
  }

  #begin({ tree, rows }: LayerEntries, batch: RowBatch): boolean {
    this.#rows = rows;
    this.#cursor = indexCursor(tree, this.#access);
    return this.#read(batch);
  }

  #read(batch: RowBatch): boolean {
    const most = batch.count + batch.wanted;
    const atOnce = this.#filter.rowsAtOnce(this.#filter.slow ? slowEntriesAtOnce : entriesAtOnce);
    for (let left = atOnce; left > 0 && batch.count < most; left--) {
      // Rows added before the end are returned first.
      if (this.#from >= this.#to && !this.#advance()) return left < atOnce;
      const i = this.#descending ? --this.#to : this.#from++;
      this.#add((this.#rows as Uint32Array)[i] as number, batch);
    }
    return true;
  }

  #advance(): boolean {
    const cursor = this.#cursor as RunCursor;
    const moved = cursor.next();
    invariant(!isPromise(moved), 'Entries that are in memory are read without waiting');
    if (!moved) return false;
    this.#from = cursor.from;
    this.#to = cursor.to;
    return true;
  }

  #add(i: number, batch: RowBatch): void {
    const node = this.#layer.node as Node;
    this.#work.rows++;
    if (this.#isHidden(node, i)) return;
    const base = node.rowBase(i);
    if (!this.#filter.matches(node, base)) return;
    this.#work.matches++;
    batch.add(node, base);
  }

  /** Whether a later commit has changed the row. */
  #isHidden(node: Node, i: number): boolean {
    if (this.#newer.length === 0) return false;
    const length = node.keyLength(i);
    if (length > this.#key.length) this.#key = new Uint8Array(length * 2);
    node.copyKey(i, this.#key, 0);
    return this.#newer.some((layer) => layer.lookup(this.#key, length) !== undefined);
  }
}
