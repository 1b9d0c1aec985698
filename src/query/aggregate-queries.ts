/** The queries that aggregates are computed by. */
import type { LayoutField } from '../format/row-layout.ts';
import type { TableShape } from '../schema/table-shape.ts';
import { compileAggregate, writtenAggregates } from './aggregate.ts';
import type { Aggregates, CheckedAggregates, GroupRow, WrittenAggregate } from './aggregate.ts';
import { Condition } from './conditions/condition.ts';
import type { LiveResults, LiveRows } from './live-results.ts';
import type { WrittenQuery } from './planner/query-spec.ts';
import type { QueryOptions } from './run-on-state.ts';

/** Folds the rows of a query into aggregates. */
export type FoldRows = (aggregates: readonly WrittenAggregate[], options: QueryOptions) => Promise<object[]>;

/** Watches the groups of a query. */
export type WatchGroups = (
  aggregates: readonly WrittenAggregate[],
  options: QueryOptions,
) => LiveResults<LiveRows<object>>;

/** Rows of a query that agree in some fields, for each combination of values that there is; null is a value here. */
export class Groups<R extends object, G extends string> {
  readonly #fold: FoldRows;
  readonly #watch: WatchGroups;

  /** @internal Use `query.groupBy()`. */
  constructor(fold: FoldRows, watch: WatchGroups) {
    this.#fold = fold;
    this.#watch = watch;
  }

  /** Watches the groups: {@link aggregate}, as `query.watch()` gives the rows. */
  watch<const A extends Aggregates<R> & CheckedAggregates<R, A>, T = GroupRow<R, G, A>>(
    aggregates: A,
    options: QueryOptions = {},
  ): LiveResults<LiveRows<T>> {
    return this.#watch(writtenAggregates(aggregates), options) as LiveResults<never>;
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

/** Returns the query for the row with the least or the greatest value of a field: the first row in the order of the field. */
export function writtenExtreme(written: WrittenQuery, kind: 'min' | 'max', name: string): WrittenQuery {
  const more: WrittenQuery['more'] = (shape) => {
    const { field } = compileAggregate(shape, { name: kind, kind, field: name });
    return [new Condition([name], { field: field as LayoutField, comparison: { kind: 'not null' } })];
  };
  const orders = [{ name, direction: kind === 'min' ? 'asc' : 'desc' } as const];
  return { ...written, orders, fields: [name], folds: [name], limit: 1, more };
}

/** The names of the fields that conditions test, and of the fields that a condition fixes. */
interface ConditionNames {
  readonly all: ReadonlySet<string>;
  readonly fixed: ReadonlySet<string>;
}

/** Returns the names in the conditions of a query; undefined if a clause is not a single condition. */
function namesIn({ wheres }: WrittenQuery): ConditionNames | undefined {
  const all = new Set<string>();
  const fixed = new Set<string>();
  for (const { written } of wheres) {
    if (written.kind !== 'condition') return undefined;
    const { name, operator } = written.condition;
    all.add(name);
    if (operator === '=') fixed.add(name);
  }
  return { all, fixed };
}

/** Whether an index, or the table, has the matching rows in the order of a field, without others between them. */
function mayHaveEnds(shape: TableShape, { all, fixed }: ConditionNames, name: string): boolean {
  const { primaryKey } = shape.schema;
  const hasThem = (keys: readonly string[], inside?: ReadonlySet<string>): boolean => {
    const at = keys.findIndex((key) => !fixed.has(key) || key === name);
    if (keys[at] !== name) return false;
    return [...all].every((other) => inside?.has(other) === true || keys.slice(0, at + 1).includes(other));
  };
  if (hasThem(primaryKey)) return true;
  return shape.indexes.some(({ fields, where }) => {
    const inside = new Set(where?.tests.map(({ field }) => field.name));
    return hasThem([...fields.map((field) => field.name), ...primaryKey], inside);
  });
}

/** Returns a query for each aggregate of all matching rows; undefined if one of them needs every row. */
export function writtenSingly(
  shape: TableShape,
  written: WrittenQuery,
  aggregates: readonly WrittenAggregate[],
): readonly WrittenQuery[] | undefined {
  const names = namesIn(written);
  const queries: WrittenQuery[] = [];
  for (const { kind, field } of aggregates) {
    if (kind === 'count' && field === undefined) queries.push({ ...written, orders: [], counts: true });
    else if (
      (kind === 'min' || kind === 'max') &&
      field !== undefined &&
      names !== undefined &&
      mayHaveEnds(shape, names, field)
    )
      queries.push(writtenExtreme(written, kind, field));
    else return undefined;
  }
  return queries;
}
