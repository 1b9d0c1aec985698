/** Rows that were found, as places of their bytes, and streams of them. */
import { andThen } from '../../base/brands.ts';
import type { RowSource } from '../../format/row-layout.ts';

/** A list that is filled and emptied over and over. */
export class RowBatch {
  readonly sources: RowSource[] = [];
  readonly bases: number[] = [];
  /** How many more rows are of use to the caller. */
  wanted: number;

  constructor(wanted: number = Number.POSITIVE_INFINITY) {
    this.wanted = wanted;
  }

  get count(): number {
    return this.bases.length;
  }

  add(source: RowSource, base: number): void {
    this.sources.push(source);
    this.bases.push(base);
  }

  clear(): void {
    this.sources.length = 0;
    this.bases.length = 0;
  }
}

export interface RowStream {
  /** Adds some rows, perhaps none; false once there are no more. Without a promise where all is in memory. */
  next(batch: RowBatch): boolean | Promise<boolean>;
}

/** One stream after the other. */
export class ConcatenatedStream implements RowStream {
  readonly #streams: RowStream[];

  constructor(streams: readonly RowStream[]) {
    this.#streams = [...streams];
  }

  next(batch: RowBatch): boolean | Promise<boolean> {
    const stream = this.#streams[0];
    if (stream === undefined) return false;
    const more = stream.next(batch);
    return andThen(more, (moved) => this.#after(moved));
  }

  #after(more: boolean): boolean {
    if (!more) this.#streams.shift();
    return this.#streams.length > 0;
  }
}

/** The work that a query has done, in the units of the cost model. Counted a batch at a time. */
export class QueryWork {
  /** Rows that were looked at where they lie. */
  rows = 0;
  /** Entries of an index that were read. */
  entries = 0;
  /** Rows that were looked up by their primary key. */
  lookups = 0;
  /** Rows that matched. */
  matches = 0;
}
