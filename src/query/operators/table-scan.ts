/** Rows of a table in key order, run by run: whole runs are filtered at a time, before anything is decoded. */
import { isPromise } from '../../base/brands.ts';
import { CorruptionError } from '../../base/errors.ts';
import type { RowLayout } from '../../format/row-layout.ts';
import type { RunCursor } from '../../tree/cursor.ts';
import type { HitList, HitStream } from './row-batch.ts';
import { MatchRate } from './match-rate.ts';
import type { QueryWork } from './work-counters.ts';
import { maxPicks } from '../conditions/selector.ts';
import type { Filter } from '../conditions/selector.ts';

export class TableStream implements HitStream {
  readonly #layout: RowLayout;
  readonly #cursor: RunCursor;
  readonly #descending: boolean;
  readonly #filter: Filter;
  readonly #work: QueryWork;
  #picks: Int32Array | undefined;
  readonly #rate = new MatchRate();
  /** What is left of the present run. */
  #from = 0;
  #to = 0;

  constructor(layout: RowLayout, cursor: RunCursor, descending: boolean, filter: Filter, work: QueryWork) {
    this.#layout = layout;
    this.#cursor = cursor;
    this.#descending = descending;
    this.#filter = filter;
    this.#work = work;
  }

  next(hits: HitList): boolean | Promise<boolean> {
    const moved = this.#advance(hits.wanted);
    if (isPromise(moved)) return moved.then((more) => more && this.#addRows(hits));
    return moved && this.#addRows(hits);
  }

  /** Counts matching rows instead of adding them: how many of the next ones; undefined once there are no more. */
  count(): number | undefined | Promise<number | undefined> {
    const moved = this.#advance(Number.POSITIVE_INFINITY);
    if (isPromise(moved)) return moved.then((more) => (more ? this.#countRows() : undefined));
    return moved ? this.#countRows() : undefined;
  }

  #advance(wanted: number): boolean | Promise<boolean> {
    if (this.#from < this.#to) return true;
    this.#cursor.expect?.(this.#rate.rowsFor(wanted));
    const moved = this.#cursor.next();
    if (isPromise(moved)) return moved.then((more) => this.#enter(more));
    return this.#enter(moved);
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

  #addRows(hits: HitList): true {
    const { node } = this.#cursor;
    if (this.#filter.empty && this.#filter.bound === undefined) {
      const count = Math.min(this.#to - this.#from, maxPicks, hits.wanted);
      this.#work.rows += count;
      this.#work.matches += count;
      if (this.#descending) for (let k = 0; k < count; k++) hits.add(node, node.rowBase(--this.#to));
      else for (let k = 0; k < count; k++) hits.add(node, node.rowBase(this.#from++));
      return true;
    }
    const kept = this.#select(this.#filter.rowsAtOnce(this.#filter.slow ? 64 : maxPicks));
    const picks = this.#picks as Int32Array;
    for (let k = 0; k < kept; k++) {
      hits.add(node, node.rowBase(picks[this.#descending ? kept - 1 - k : k] as number));
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
