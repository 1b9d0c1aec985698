/** The options by which commands are given a query, or what is left of one. */
import type { Query } from '../../query/query.ts';
import { UsageError } from '../terminal/exit-code.ts';
import { askedQuery } from './asked-query.ts';
import type { AskedQuery } from './asked-query.ts';
import { withCondition } from './conditions.ts';
import type { Row } from './conditions.ts';
import { parseCondition, parseNames, parseOrders, parseQuery } from './query-syntax.ts';
import type { WrittenQueryText } from './query-syntax.ts';
import type { OpenDatabase } from '../database/open-database.ts';

export const queryOptions = {
  where: {
    type: 'string',
    array: true,
    requiresArg: true,
    nargs: 1,
    describe: "A condition: \"country = 'FR' and (people > 1000000 or name like 'Paris%')\"; several must all hold",
  },
  order: { type: 'string', array: true, nargs: 1, describe: 'Order by fields: name, or "population desc, name"' },
  limit: { type: 'number', describe: 'Most rows' },
  offset: { type: 'number', describe: 'Rows to skip' },
} as const;

export const queryPositional = {
  query: {
    type: 'string',
    demandOption: true,
    describe: 'A table, or a query: "cities where people > 1000000 order by name"',
  },
} as const;

export interface QueryArguments {
  readonly where?: readonly string[] | undefined;
  readonly order?: readonly string[] | undefined;
  readonly limit?: number | undefined;
  readonly offset?: number | undefined;
  readonly fields?: string | undefined;
}

function once<T>(option: string, given: T | undefined, written: T | undefined): T | undefined {
  if (given === undefined) return written;
  if (written === undefined) return given;
  throw new UsageError(`The query says ${option} itself: leave out --${option}.`);
}

function checkedCount(option: string, count: number | undefined): number | undefined {
  if (count === undefined || (Number.isSafeInteger(count) && count >= 0)) return count;
  throw new UsageError(`--${option} is ${count}; it must be a whole number of at least 0.`);
}

/** A query with what options say of it. */
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

/** What commands are asked for. `reads`: where tables are read from. Throws `UsageError`. */
export function queryFrom(
  opened: OpenDatabase,
  text: string,
  options: QueryArguments,
  reads: (table: string) => Query<Row> = (table) => opened.db.query(table),
): AskedQuery {
  const tables = opened.tables.map(({ name }) => name);
  const written = withOptions(parseQuery(text, tables), options);
  const schema = opened.table(written.table.value);
  let query = reads(schema.name);
  for (const where of options.where ?? []) query = withCondition(query, schema, parseCondition(where), where);
  return askedQuery(query, schema, written);
}
