/** A query of the model as the engine takes it. */
import type { Query } from '../../../src/query/query.ts';
import type { Clause, Clauses } from '../../../src/query/conditions/clause.ts';
import { engineName } from './functions.ts';
import type { ModelClause, ModelQuery } from './model.ts';

type AnyClauses = Clauses<Record<string, unknown>>;

/** The type is that of one field: which fields there are is not known here. */
function nameOf(field: string | readonly string[]): string {
  return typeof field === 'string' ? engineName(field) : (field as unknown as string);
}

function built(clause: ModelClause, clauses: AnyClauses): Clause {
  const { is, and, or, not } = clauses;
  if ('and' in clause) return and(...clause.and.map((each) => built(each, clauses)));
  if ('or' in clause) return or(...clause.or.map((each) => built(each, clauses)));
  return 'not' in clause ? not(built(clause.not, clauses)) : is(nameOf(clause.field), clause.operator, clause.value);
}

export function buildQuery<Row extends object>(start: Query<Row>, model: ModelQuery): Query<Row> {
  let query = start;
  const { wheres, clause, orders, limit, offset } = model;
  for (const { field, operator, value } of wheres) query = query.where(nameOf(field), operator, value);
  if (clause !== undefined) query = query.where((clauses) => built(clause, clauses as unknown as AnyClauses));
  for (const { field, direction } of orders) query = query.orderBy(field, direction);
  if (limit !== undefined) query = query.limit(limit);
  return query.offset(offset);
}
