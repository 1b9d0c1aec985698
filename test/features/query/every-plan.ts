/** A query run by every plan that the planner could have chosen, each with its reads. */
import { compileClause, writtenClause } from '../../../src/query/conditions/clause.ts';
import { requireField } from '../../../src/query/conditions/condition.ts';
import { countRows, Fold } from '../../../src/query/aggregate-rows.ts';
import type { FoldOptions } from '../../../src/query/aggregate-rows.ts';
import { Execution } from '../../../src/query/operators/executor.ts';
import type { Row } from '../../../src/query/operators/executor.ts';
import { describePlan } from '../../../src/query/explain.ts';
import type { Explanation } from '../../../src/query/explain.ts';
import type { Access, Candidate, CompiledQuery } from '../../../src/query/planner/access-paths.ts';
import { candidatesOf, planOf, planQuery } from '../../../src/query/planner/planner.ts';
import { requireOrderField } from '../../../src/query/planner/query-spec.ts';
import type { QueryWork } from '../../../src/query/operators/row-batch.ts';
import { clauseOf } from './model.ts';
import type { ModelQuery } from './model.ts';
import { QueryMemory } from '../../../src/query/planner/query-host.ts';
import type { TestTable } from './test-table.ts';

export interface PlanRun {
  readonly candidate: Candidate;
  readonly rows: Row[];
  readonly work: QueryWork;
  readonly requests: number;
}

/** Names of the fields that are taken of each row, and whether their values are only folded. */
export interface Taken {
  readonly names: readonly string[];
  readonly folds?: boolean;
}

export function compile({ shape }: TestTable, query: ModelQuery, counts = false, taken?: Taken): CompiledQuery {
  const names = counts ? [] : taken?.names;
  const folds = counts || taken?.folds === true;
  const isWhole = query.limit === undefined && query.offset === 0;
  return {
    conditions: query.wheres.flatMap((where) => {
      const { written } = writtenClause<Row>((clauses) => clauseOf(clauses, where));
      return compileClause({ shape, registered: () => undefined }, written);
    }),
    order: query.orders.map(([name, direction]) => {
      return { field: requireOrderField(shape, name), descending: direction === 'desc' };
    }),
    limit: query.limit,
    offset: query.offset,
    counts,
    unordered: counts || (folds && isWhole),
    takes: names && { fields: names.map((name) => requireField(shape, name, 'select')), signs: !folds },
  };
}

/** The access that the planner chooses. */
export async function chosenFor({ state }: TestTable, query: CompiledQuery): Promise<Access> {
  return (await planQuery(state, query, new QueryMemory())).access;
}

/** All plans that the planner could choose, those first that leave least to be tested and sorted; intersections last. */
export function plansOf({ state }: TestTable, query: CompiledQuery): Explanation[] {
  const plans = candidatesOf(state, query).map((one) => describePlan(state.shape.name, planOf(state, query, one)));
  const score = ({ filters, order, access }: Explanation): number => {
    return (
      filters.length * 4 +
      (order === 'sort' ? 2 : 0) +
      (access === 'table' ? 1 : 0) +
      (access === 'intersection' ? 100 : 0)
    );
  };
  return plans.toSorted((a, b) => score(a) - score(b));
}

/** Runs the query by each candidate. `before` is called before each run. */
export async function runEveryPlan(
  table: TestTable,
  query: CompiledQuery,
  before: () => unknown = () => undefined,
): Promise<PlanRun[]> {
  const { state, environment } = table;
  const runs: PlanRun[] = [];
  for (const candidate of candidatesOf(state, query)) {
    await before();
    const requests = table.requests;
    const fields = query.takes?.fields;
    const execution = new Execution(state, query, planOf(state, query, candidate), { environment, fields });
    const rows = query.counts === true ? [] : await execution.rows();
    if (query.counts === true) await countRows(execution);
    runs.push({ candidate, rows, work: execution.work, requests: table.requests - requests });
  }
  return runs;
}

/** Counts by each candidate. */
export async function countEveryPlan(table: TestTable, query: CompiledQuery): Promise<number[]> {
  const { state, environment } = table;
  const counts: number[] = [];
  for (const candidate of candidatesOf(state, query)) {
    counts.push(await countRows(new Execution(state, query, planOf(state, query, candidate), { environment })));
  }
  return counts;
}

/** Folds by each candidate. */
export async function foldEveryPlan(table: TestTable, query: CompiledQuery, options: FoldOptions): Promise<Row[][]> {
  const { state, environment } = table;
  const folded: Row[][] = [];
  for (const candidate of candidatesOf(state, query)) {
    const execution = new Execution(state, query, planOf(state, query, candidate), { environment });
    folded.push(await new Fold(execution, options).rows());
  }
  return folded;
}
