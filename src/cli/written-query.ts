/** The options by which `query` and `explain` are given a query. */
import type { Database } from '../database.ts';
import type { Query } from '../query/builder.ts';
import type { SchemaDefinition } from '../table/schema.ts';
import { addConditions, addOrders } from './conditions.ts';

export const queryOptions = {
  where: {
    type: 'string',
    array: true,
    requiresArg: true,
    nargs: 1,
    describe: 'A condition: "country = FR"; several must all hold',
  },
  order: { type: 'string', array: true, nargs: 1, describe: 'Order by a field: name, or population:desc' },
  limit: { type: 'number', describe: 'Most rows' },
  offset: { type: 'number', describe: 'Rows to skip' },
} as const;

export interface QueryArguments {
  readonly where: readonly string[] | undefined;
  readonly order: readonly string[] | undefined;
  readonly limit: number | undefined;
  readonly offset: number | undefined;
}

/** Throws `UsageError`. */
export function queryFrom(
  db: Database,
  schema: SchemaDefinition,
  { where = [], order = [], limit, offset }: QueryArguments,
): Query<Record<string, unknown>> {
  let query = addOrders(addConditions(db.query(schema.name), schema, where), schema, order);
  if (limit !== undefined) query = query.limit(limit);
  if (offset !== undefined) query = query.offset(offset);
  return query;
}
