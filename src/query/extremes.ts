/** The least and the greatest value of a field: the first in its order, for which an index or the primary key may do. */
import type { LayoutField } from '../format/row-layout.ts';
import { compileAggregate, oneZero } from './aggregate.ts';
import type { WrittenAggregate } from './aggregate.ts';
import { Condition } from './condition.ts';
import { countRows } from './count.ts';
import type { Execution } from './execute.ts';
import type { WrittenQuery } from './written-query.ts';

/** The query for the one row that has it. */
export function writtenExtreme(written: WrittenQuery, kind: 'min' | 'max', name: string): WrittenQuery {
  const more: WrittenQuery['more'] = (shape) => {
    const { field } = compileAggregate(shape, { name: kind, kind, field: name });
    return [new Condition([name], { field: field as LayoutField, comparison: { kind: 'not null' } })];
  };
  const orders = [{ name, direction: kind === 'min' ? 'asc' : 'desc' } as const];
  return { ...written, orders, fields: [name], folds: [name], limit: 1, more };
}

/** What that query finds. */
export async function extremeOf(execution: Execution, name: string): Promise<unknown> {
  const rows = await execution.rows();
  return oneZero(rows[0]?.[name] ?? null);
}

/** A query for each aggregate of all rows that match; undefined where one needs every row. */
export function writtenSingly(
  written: WrittenQuery,
  aggregates: readonly WrittenAggregate[],
): readonly WrittenQuery[] | undefined {
  const queries: WrittenQuery[] = [];
  for (const { kind, field } of aggregates) {
    if (kind === 'count' && field === undefined) queries.push({ ...written, orders: [], counts: true });
    else if ((kind === 'min' || kind === 'max') && field !== undefined)
      queries.push(writtenExtreme(written, kind, field));
    else return undefined;
  }
  return queries;
}

/** Whether a query of {@link writtenSingly} takes a few blocks: it ends with its first row, or counts without reading any. */
export function isQuick({ state, query, plan }: Execution): boolean {
  const { access, residual, ordered } = plan;
  if (access.kind === 'nothing') return true;
  if (residual.length > 0) return false;
  if (query.counts !== true) return ordered;
  return state.layers.length === 0 && (access.kind === 'table' || access.kind === 'index');
}

/** What an aggregate comes to by its own query. */
export function resultOf(execution: Execution, { kind, field }: WrittenAggregate): Promise<unknown> {
  return kind === 'count' ? countRows(execution) : extremeOf(execution, field as string);
}
