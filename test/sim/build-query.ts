/** A query of the model as the engine takes it. */
import type { Query } from '../../src/query/builder.ts';
import { engineName } from './functions.ts';
import type { ModelQuery } from './model.ts';

export function buildQuery<Row extends object>(built: Query<Row>, query: ModelQuery): Query<Row> {
  for (const { field, operator, value } of query.wheres) built.where(engineName(field), operator, value);
  for (const { field, direction } of query.orders) built.orderBy(field, direction);
  if (query.limit !== undefined) built.limit(query.limit);
  return built.offset(query.offset);
}
