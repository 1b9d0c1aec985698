/** Turns the queries of the command line into runnable ones: for rows of a table, or groups of them. */
import { compareValues } from '../../base/bytes.ts';
import type { OrderedValue } from '../../base/bytes.ts';
import { bigintBounds, Types } from '../../format/types.ts';
import type { TypeId } from '../../format/types.ts';
import type { Aggregates } from '../../query/aggregate.ts';
import type { TextSpan } from '../../query/conditions/search-options.ts';
import type { Query } from '../../query/query.ts';
import type { SchemaDefinition } from '../../schema/schema.ts';
import { compareJson } from '../../text/json-order.ts';
import type { OpenDatabase } from '../database/open-database.ts';
import { UsageError } from '../terminal/exit-code.ts';
import { fieldOf, isNumber, isPath, withCondition } from './condition-clauses.ts';
import type { Row } from './condition-clauses.ts';
import { parseCondition, parseNames, parseOrders, parseQuery } from './query-syntax.ts';
import type { WrittenColumn, WrittenQueryText, WrittenOrderTerm, WrittenTerm } from './query-syntax.ts';
import { withSearch } from './search-arguments.ts';
import type { SearchArguments } from './search-arguments.ts';
import { LanguageError } from './tokens.ts';
import type { Token } from './tokens.ts';

/** A column of the result. */
export interface AnswerColumn {
  readonly name: string;
  readonly typeId: TypeId;
  /** The property of a row or group that holds its value. */
  readonly from: string;
}

export interface AskedQuery {
  readonly schema: SchemaDefinition;
  readonly columns: readonly AnswerColumn[];
  /** The query for the rows that are printed or grouped, for `explain` and `count`. */
  readonly query: Query<Row>;
  readonly isGrouped: boolean;
  /** Whether the query has a limit. */
  readonly isLimited: boolean;
  /**
   * Returns the result: rows one by one, between which the caller must check `signal`; or groups, which are all computed before the
   * first. `most`: a limit on their number.
   */
  readonly answers: (signal: AbortSignal, most?: number) => AsyncIterable<Row>;
  /** Returns where a search has found its words in a row, by the names of fields. Undefined without a search. */
  readonly marks?: (row: Row) => Promise<{ readonly [field: string]: readonly TextSpan[] }>;
}

/** Finds the fields that a query names. */
class Names {
  readonly #schema: SchemaDefinition;
  readonly #source: string;

  constructor(schema: SchemaDefinition, source: string) {
    this.#schema = schema;
    this.#source = source;
  }

  typeOf(field: Token): TypeId {
    return fieldOf(this.#schema, field, this.#source).typeId;
  }

  /** Whether a name is a path into a json field. */
  isPath({ value }: Token): boolean {
    return isPath(this.#schema, value);
  }

  fail(message: string, at: number): never {
    throw new LanguageError(message, this.#source, at);
  }

  /** Checks that no two columns have one name, since the names are keys in JSON. Throws `LanguageError`. */
  distinct(columns: readonly AnswerColumn[], written: readonly WrittenColumn[]): readonly AnswerColumn[] {
    columns.forEach(({ name }, i) => {
      if (columns.findIndex((other) => other.name === name) === i) return;
      this.fail(`Two columns have the name ${name}: rename one with 'as'`, written[i]?.at ?? 0);
    });
    return columns;
  }
}

/** Adds orders to a query. Throws `LanguageError`. */
export function withOrders(
  query: Query<Row>,
  schema: SchemaDefinition,
  orders: readonly WrittenOrderTerm[],
  source: string,
): Query<Row> {
  let asked = query;
  for (const { field, aggregate, direction, at } of orders) {
    if (aggregate !== undefined || field === undefined) {
      throw new LanguageError('Rows are ordered by fields. Only groups have aggregates: add group by', source, at);
    }
    if (fieldOf(schema, field, source).typeId === Types.json && !isPath(schema, field.value)) {
      throw new LanguageError(`Field ${field.value} is json, which has no order`, source, at);
    }
    asked = asked.orderBy(field.value, direction);
  }
  return asked;
}

/** Returns the columns of a query without aggregates. */
function rowColumns(
  names: Names,
  schema: SchemaDefinition,
  columns: WrittenQueryText['columns'],
): readonly AnswerColumn[] {
  if (columns === undefined) {
    return Object.entries(schema.fields).map(([name, { typeId }]) => ({ name, typeId, from: name }));
  }
  const made = columns.map(({ field, as }): AnswerColumn => {
    const token = field as Token;
    return { name: as ?? token.value, typeId: names.typeOf(token), from: token.value };
  });
  return names.distinct(made, columns);
}

/** The aggregates of a query, each once, under names that no field has. */
class AggregateNames {
  readonly #groupBy: readonly string[];
  readonly aggregates: Record<string, Aggregates<Row>[string]> = {};

  constructor(groupBy: readonly string[]) {
    this.#groupBy = groupBy;
  }

  /** Returns the property of a group that holds a term, and its type. Throws `LanguageError`. */
  find(names: Names, { aggregate, field, at }: WrittenTerm): Pick<AnswerColumn, 'from' | 'typeId'> {
    const typeId = field === undefined ? Types.uint32 : names.typeOf(field);
    if (aggregate === undefined) {
      const name = (field as Token).value;
      if (this.#groupBy.includes(name)) return { from: name, typeId };
      return names.fail(
        `The query is not grouped by ${name}: add it to group by, or write for example min(${name})`,
        at,
      );
    }
    const isField = field !== undefined && !names.isPath(field);
    if (isField && (aggregate === 'sum' || aggregate === 'avg') && !isNumber(typeId)) {
      names.fail(`${aggregate} takes numbers, and ${field?.value ?? ''} is not a number`, at);
    }
    if (isField && (aggregate === 'min' || aggregate === 'max') && typeId === Types.json) {
      names.fail(`Field ${field?.value ?? ''} is json, which has no order`, at);
    }
    let from = headOf({ aggregate, field });
    while (this.#groupBy.includes(from)) from += ' ';
    this.aggregates[from] = field === undefined ? 'count' : ({ [aggregate]: field.value } as Aggregates<Row>[string]);
    return { from, typeId: typeOfAggregate(aggregate, typeId) };
  }
}

function typeOfAggregate(aggregate: string, typeId: TypeId): TypeId {
  if (aggregate === 'count') return Types.uint32;
  if (aggregate === 'min' || aggregate === 'max') return typeId;
  return aggregate === 'sum' && bigintBounds(typeId) !== undefined ? Types.int64 : Types.float64;
}

/** Returns the name of a column without `as`. */
function headOf({ aggregate, field }: Pick<WrittenTerm, 'aggregate' | 'field'>): string {
  if (aggregate === undefined) return field?.value ?? '';
  return field === undefined ? 'count' : `${aggregate}(${field.value})`;
}

const rowCount: WrittenColumn = { at: 0, aggregate: 'count', field: undefined, as: undefined };

function groupedQuery(query: Query<Row>, schema: SchemaDefinition, written: WrittenQueryText): AskedQuery {
  const { source, groupBy, orderBy, limit = Number.POSITIVE_INFINITY, offset = 0 } = written;
  const names = new Names(schema, source);
  for (const field of groupBy) {
    if (names.typeOf(field) === Types.json && !isPath(schema, field.value))
      names.fail(`Field ${field.value} is json, and rows cannot be grouped by it`, field.at);
  }
  const groups = groupBy.map(({ value }) => value);
  const found = new AggregateNames(groups);
  const columnNames = new Names(schema, written.columnSource ?? source);
  const orderNames = new Names(schema, written.orderSource ?? source);
  const wanted = written.columns ?? [
    ...groupBy.map((field): WrittenColumn => ({ at: field.at, aggregate: undefined, field, as: undefined })),
    rowCount,
  ];
  const columns = columnNames.distinct(
    wanted.map((column) => ({ name: column.as ?? headOf(column), ...found.find(columnNames, column) })),
    wanted,
  );
  const orders = orderBy.map((term) => {
    const named = term.aggregate === undefined ? columns.find(({ name }) => name === term.field?.value) : undefined;
    const { from, typeId } = named ?? found.find(orderNames, term);
    return { from, typeId, sign: term.direction === 'desc' ? -1 : 1 };
  });
  const { aggregates } = found;
  if (Object.keys(aggregates).length === 0) found.find(names, rowCount);
  const run = async (signal: AbortSignal): Promise<Row[]> => {
    if (groups.length === 0) return [await query.aggregate<Aggregates<Row>, Row>(aggregates, { signal })];
    const rows = await query.groupBy(...groups).aggregate<Aggregates<Row>, Row>(aggregates, { signal });
    return orders.length === 0 ? rows : rows.toSorted((a, b) => compareRows(a, b, orders));
  };
  const answers: AskedQuery['answers'] = async function* (signal, most = limit) {
    const rows = await run(signal);
    yield* rows.slice(offset, offset + Math.min(limit, most));
  };
  return { schema, columns, query, isGrouped: true, isLimited: written.limit !== undefined, answers };
}

interface GroupOrder {
  readonly from: string;
  readonly typeId: TypeId;
  readonly sign: number;
}

function compareRows(a: Row, b: Row, orders: readonly GroupOrder[]): number {
  for (const { from, typeId, sign } of orders) {
    const [left, right] = [a[from], b[from]];
    const order =
      typeId === Types.json ? compareJson(left, right) : compareValues(left as OrderedValue, right as OrderedValue);
    if (order !== 0) return order * sign;
  }
  return 0;
}

/** Replaces the `as` names of columns in orders by the fields that they stand for. */
function namedFields(
  columns: WrittenQueryText['columns'],
  orders: readonly WrittenOrderTerm[],
): readonly WrittenOrderTerm[] {
  return orders.map((term) => {
    const column = columns?.find(({ as }) => as !== undefined && as === term.field?.value);
    return column === undefined ? term : { ...term, field: column.field };
  });
}

/** Makes a runnable query of a parsed one. `all`: a query for all rows of the table. Throws `LanguageError`. */
function askedQuery(all: Query<Row>, schema: SchemaDefinition, written: WrittenQueryText): AskedQuery {
  const { source, columns: asked, where, groupBy, orderBy, limit, offset } = written;
  const query = where === undefined ? all : withCondition(all, schema, where, source);
  const isGrouped = groupBy.length > 0 || (asked?.some(({ aggregate }) => aggregate !== undefined) ?? false);
  if (isGrouped) return groupedQuery(query, schema, written);
  const columns = rowColumns(new Names(schema, written.columnSource ?? source), schema, asked);
  let rows = withOrders(query, schema, namedFields(asked, orderBy), written.orderSource ?? source);
  if (limit !== undefined) rows = rows.limit(limit);
  if (offset !== undefined) rows = rows.offset(offset);
  // The query itself: a generator around it would cost more than the rows.
  const answers: AskedQuery['answers'] = (_, most) => {
    const wanted = most === undefined ? rows : rows.limit(Math.min(most, limit ?? most));
    return wanted.select(...columns.map(({ from }) => from));
  };
  return { schema, columns, query: rows, isGrouped: false, isLimited: limit !== undefined, answers };
}

/** The command line options for parts of a query. */
export const queryOptions = {
  where: {
    type: 'string',
    array: true,
    nargs: 1,
    describe: "Condition: \"country = 'FR' and (people > 1000000 or name like 'Paris%')\"; if repeated, all must hold",
  },
  order: { type: 'string', array: true, nargs: 1, describe: 'Order by fields: name, or "population desc, name"' },
  limit: { type: 'number', describe: 'Maximum number of rows' },
  offset: { type: 'number', describe: 'Number of rows to skip' },
} as const;

export const queryPositional = {
  query: {
    type: 'string',
    isRequired: true,
    describe: 'A table, or a query: "cities where people > 1000000 order by name"',
  },
} as const;

export interface QueryArguments extends SearchArguments {
  readonly where?: readonly string[] | undefined;
  readonly order?: readonly string[] | undefined;
  readonly limit?: number | undefined;
  readonly offset?: number | undefined;
  readonly fields?: string | undefined;
}

function once<T>(option: string, given: T | undefined, written: T | undefined): T | undefined {
  if (given === undefined) return written;
  if (written === undefined) return given;
  throw new UsageError(`The query contains ${option} already: leave out --${option}.`);
}

function checkedCount(option: string, count: number | undefined): number | undefined {
  if (count === undefined || (Number.isSafeInteger(count) && count >= 0)) return count;
  throw new UsageError(`--${option} is ${count}; it must be a whole number of at least 0.`);
}

/** Adds the options to a parsed query. */
function withOptions(written: WrittenQueryText, options: QueryArguments): WrittenQueryText {
  const { order = [], fields } = options;
  const { limit, offset } = written;
  let query: WrittenQueryText = {
    ...written,
    limit: once('limit', checkedCount('limit', options.limit), limit),
    offset: once('offset', checkedCount('offset', options.offset), offset),
  };
  if (order.length > 0) {
    const orderSource = order.join(', ');
    const orderBy = once('order', parseOrders(orderSource), query.orderBy.length > 0 ? query.orderBy : undefined) ?? [];
    query = { ...query, orderBy, orderSource };
  }
  if (fields !== undefined) {
    const columns = parseNames(fields).map((field) => ({ at: field.at, aggregate: undefined, field, as: undefined }));
    query = { ...query, columns: once('fields', columns, query.columns), columnSource: fields };
  }
  return query;
}

/** Makes the query that a command line asks for. `reads`: starts a query on a table, by default of the database. Throws `UsageError`. */
export function queryFrom(
  opened: OpenDatabase,
  text: string,
  options: QueryArguments,
  reads: (table: string) => Query<Row> = (table) => opened.db.query(table),
): AskedQuery {
  const tables = opened.tables.map(({ name }) => name);
  const written = withOptions(parseQuery(text, tables), options);
  const schema = opened.readable(written.table.value);
  let query = withSearch(reads(schema.name), schema, options);
  for (const where of options.where ?? []) query = withCondition(query, schema, parseCondition(where), where);
  const asked = askedQuery(query, schema, written);
  if (options.search === undefined || asked.isGrouped) return asked;
  return { ...asked, marks: (row) => query.highlight(row) };
}
