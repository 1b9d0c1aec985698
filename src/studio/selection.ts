/** Queries of the page: conditions, order and fields as they were asked for, as queries of the library. */
import { defined } from '../base/options.ts';
import { InvalidOptionError } from '../index.ts';
import type { Database, Query, SearchOptions, Snapshot } from '../index.ts';
import type { Asked } from './asked.ts';
import type { KnownTable } from './known-tables.ts';

/** A query on a table whose fields are not known to the compiler. */
export type LooseQuery = Query<Record<string, unknown>>;

/** A query as its builder takes names and values that are checked when it is called. */
export interface LooseBuilder {
  where(field: string, operator: string, value: unknown): LooseQuery;
  orderBy(field: string, direction: string): LooseQuery;
  select(...fields: readonly string[]): LooseQuery;
}

const operators = ['=', '!=', '<', '<=', '>', '>=', 'IN', 'BETWEEN', 'PREFIX', 'HAS', 'HAS ANY', 'HAS ALL'] as const;
const listOperators: ReadonlySet<string> = new Set(['IN', 'BETWEEN', 'HAS ANY', 'HAS ALL']);
/** Most conditions of a call. */
export const maxConditions = 100;
const maxOrders = 16;
const maxValues = 10_000;

function valueOf(table: KnownTable, condition: Asked, field: string, operator: string): unknown {
  if (!listOperators.has(operator)) return table.value(field, condition.any('value'));
  const cells = condition.list('value', maxValues);
  if (operator === 'BETWEEN' && cells.length !== 2) condition.fail('value', 'a list of two values');
  return cells.map((cell) => table.value(field, cell));
}

/** Returns a name that must be that of a field, or a path into one. Throws `InvalidOptionError`. */
export function fieldIn(table: KnownTable, asked: Asked, name = 'field'): string {
  const field = asked.text(name);
  table.typeOf(field);
  return field;
}

/** Returns the fields that were asked for. Throws `InvalidOptionError`. */
export function columnsOf(table: KnownTable, asked: Asked): readonly string[] {
  const fields = asked.optionalTexts('fields', table.fields.size);
  if (fields === undefined) return table.columns;
  if (fields.length === 0) throw new InvalidOptionError('fields', 'Choose at least one column.');
  for (const name of fields) table.field(name);
  return [...new Set(fields)];
}

/** Returns a query with the conditions and the search that were asked for. Throws `InvalidOptionError` and `InvalidQueryError`. */
export function conditionedQuery(source: Database | Snapshot, table: KnownTable, asked: Asked): LooseQuery {
  let query: LooseQuery = source.query(table.name);
  for (const condition of asked.parts('where', maxConditions)) {
    const field = fieldIn(table, condition);
    const operator = condition.oneOf('operator', operators);
    query = (query as LooseBuilder).where(field, operator, valueOf(table, condition, field, operator));
  }
  const search = asked.optionalPart('search');
  return search === undefined ? query : query.search(search.text('text'), searchOptionsOf(search));
}

/** Returns the options of a search, which the query checks. */
function searchOptionsOf(search: Asked): SearchOptions {
  const names = ['match', 'prefix', 'fuzzy', 'fields', 'weights', 'index'] satisfies (keyof SearchOptions)[];
  return defined(Object.fromEntries(names.map((name) => [name, search.any(name)])));
}

/** An order, as it was asked for. */
export interface CheckedOrder {
  readonly field: string;
  readonly direction: 'asc' | 'desc';
}

/** Returns the orders that were asked for. Throws `InvalidOptionError`. */
export function ordersOf(asked: Asked): CheckedOrder[] {
  return asked.parts('orderBy', maxOrders).map((order) => {
    return { field: order.text('field'), direction: order.oneOf('direction', ['asc', 'desc']) };
  });
}

/** Returns the query that was asked for: conditions, order and fields. Throws `InvalidOptionError` and `InvalidQueryError`. */
export function selectingQuery(source: Database | Snapshot, table: KnownTable, asked: Asked): LooseQuery {
  let query = conditionedQuery(source, table, asked);
  for (const { field, direction } of ordersOf(asked)) {
    table.typeOf(field);
    query = (query as LooseBuilder).orderBy(field, direction);
  }
  return (query as LooseBuilder).select(...columnsOf(table, asked));
}
