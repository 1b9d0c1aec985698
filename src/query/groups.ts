/** Groups of a query's rows: what `query.groupBy()` returns. */
import { writtenAggregates } from './aggregate.ts';
import type { Aggregates, CheckedAggregates, GroupRow, WrittenAggregate } from './aggregate.ts';
import type { QueryOptions } from './run-on-state.ts';

/** Folds the rows of a query into aggregates. */
export type FoldRows = (aggregates: readonly WrittenAggregate[], options: QueryOptions) => Promise<object[]>;

/** Rows of a query that agree in some fields, for each combination of values that there is; null is a value here. */
export class Groups<R extends object, G extends keyof R> {
  readonly #fold: FoldRows;

  /** @internal Use `query.groupBy()`. */
  constructor(fold: FoldRows) {
    this.#fold = fold;
  }

  /**
   * Runs the query: an object for each group with the fields that it is grouped by and the aggregates, as in
   * `aggregate({ books: 'count', cheapest: { min: 'price' } })`. They come in the order of these fields, ascending. Rejects
   * with `MemoryBudgetError` if there are more groups than `maxMemoryBytes` has room for.
   */
  async aggregate<const A extends Aggregates<R> & CheckedAggregates<R, A>, T = GroupRow<R, G, A>>(
    aggregates: A,
    options: QueryOptions = {},
  ): Promise<T[]> {
    return (await this.#fold(writtenAggregates(aggregates), options)) as T[];
  }
}
