/** Reads the rows that a search has found. */
import type { TableState } from '../../view/table-state.ts';
import type { Filter } from '../conditions/filter.ts';
import { LookupPace, Lookups } from '../operators/lookups.ts';
import type { QueryWork, RowBatch, RowStream } from '../operators/row-batch.ts';

/** The primary keys of rows, in their order. */
export interface RankedKeys {
  /** Returns the next one; undefined if there is none. */
  take(): Uint8Array | undefined;
}

/** The rows that a search has found, in their order. */
export class RankedStream implements RowStream {
  readonly #state: TableState;
  readonly #found: RankedKeys;
  readonly #filter: Filter;
  readonly #work: QueryWork;
  readonly #pace: LookupPace;

  constructor(state: TableState, found: RankedKeys, filter: Filter, work: QueryWork) {
    this.#state = state;
    this.#found = found;
    this.#filter = filter;
    this.#work = work;
    this.#pace = new LookupPace(state.tree.source.memory, filter);
  }

  next(batch: RowBatch): boolean | Promise<boolean> {
    const lookups = new Lookups(this.#filter, batch, this.#work);
    const step = this.#pace.step(batch.wanted);
    const most = this.#filter.empty ? Math.min(step, batch.wanted) : step;
    for (let left = most; left > 0; left--) {
      const key = this.#found.take();
      if (key === undefined) {
        if (left === most) return false;
        break;
      }
      lookups.add(this.#state.lookup(key));
    }
    return lookups.finish();
  }
}
