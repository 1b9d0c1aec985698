/** The least and the greatest value of a field: the first in its order, for which an index or the primary key may do. */
import type { LayoutField } from '../format/row-layout.ts';
import type { TableShape } from '../schema/table-shape.ts';
import { compileAggregate, oneZero } from './aggregate.ts';
import type { WrittenAggregate } from './aggregate.ts';
import { Condition } from './conditions/condition.ts';
import { countRows } from './count.ts';
import type { Execution } from './operators/executor.ts';
import type { WrittenQuery } from './planner/query-spec.ts';

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

/** Of so few rows it takes less to look at all of them than to plan several queries. */
const fewRows = 1000;

/** Names of the fields that conditions are on, and of those that one gives a single value. */
interface ConditionNames {
  readonly all: ReadonlySet<string>;
  readonly fixed: ReadonlySet<string>;
}

/** Undefined where it is not so simple. */
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

/** Whether an index, or the table, has the rows that match in the order of a field, and no others between them. */
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

/** A query for each aggregate of all rows that match; undefined where one is bound to need every row. */
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

/** Whether a query of {@link writtenSingly} takes a few blocks: it ends with its first row, or counts without reading any. */
export function isQuick({ state, query, plan }: Execution): boolean {
  const { access, residual, ordered } = plan;
  if (access.kind === 'nothing') return true;
  if (access.kind !== 'table' && access.kind !== 'index') return false;
  if (residual.length > 0 || state.tree.count <= fewRows) return false;
  return query.counts === true ? state.layers.length === 0 : ordered;
}

/** What an aggregate comes to by its own query. */
export function resultOf(execution: Execution, { kind, field }: WrittenAggregate): Promise<unknown> {
  return kind === 'count' ? countRows(execution) : extremeOf(execution, field as string);
}
