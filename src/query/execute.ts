/** Plans a query on a state of its table, and makes ready to carry the plan out. */
import { andThen } from '../base/brands.ts';
import type { TableState } from '../view/table-state.ts';
import type { BudgetMeter } from './budget.ts';
import { requireField, filterOf } from './conditions/condition.ts';
import type { Condition } from './conditions/condition.ts';
import { Execution } from './operators/executor.ts';
import type { CompiledQuery, Plan } from './planner/access-paths.ts';
import { plannedQuery } from './planner/plan-cache.ts';
import type { PlannedQuery } from './planner/plan-cache.ts';
import type { QueryHost, QueryRead } from './planner/query-host.ts';
import { unexpired } from './planner/query-spec.ts';
import type { WrittenQuery } from './planner/query-spec.ts';
import { eitherOf } from './run-on-state.ts';
import { searchCode } from './search-code.ts';

/** The host of a query, and the meter of its budget, if it has one. */
export interface ExecutionContext {
  readonly host: QueryHost;
  readonly meter: BudgetMeter | undefined;
}

/** Plans a query on a state. `ends` is aborted when the result is not needed any more. */
export function execute(
  { host, meter }: ExecutionContext,
  state: TableState,
  written: WrittenQuery,
  ends: AbortSignal | undefined,
): Execution | Promise<Execution> {
  const { shape } = state;
  const fields = written.fields?.map((name) => requireField(shape, name, 'select'));
  const signal = eitherOf(ends, meter?.signal);
  const begin = ({ query, plan, entries = 0 }: PlannedQuery & { readonly entries?: number }): Execution => {
    if (meter !== undefined) meter.plan = plan;
    const { environment } = host;
    const execution = new Execution(state, query, plan, { environment, fields, signal });
    execution.work.entries += entries;
    host.queried?.(shape, readOf(execution));
    return execution;
  };
  const { search } = written;
  if (search !== undefined) {
    return searchCode(host).then(async ({ searchRows }) =>
      begin(await searchRows(host, state, written, search, signal)),
    );
  }
  const planned = plannedQuery(host, state, unexpired(host, shape, written), signal);
  return andThen(planned, begin);
}

const nothing: QueryRead = { keys: [], range: undefined, matches: undefined };

function matching(conditions: readonly Condition[]): QueryRead['matches'] {
  if (conditions.length === 0) return undefined;
  const filter = filterOf(conditions);
  return (source, base) => filter.matches(source, base);
}

/**
 * Returns the read set of a query: the keys or the range and conditions whose rows can affect its result. Limit, offset and order do not
 * narrow it, since a matching row may move another one in or out.
 */
export function readOf({ query, plan }: { readonly query: CompiledQuery; readonly plan: Plan }): QueryRead {
  const { access, residual } = plan;
  switch (access.kind) {
    case 'nothing':
      return nothing;
    case 'keys':
      return { keys: access.keys, range: undefined, matches: matching(residual) };
    case 'table':
      if (access.ranges.length > 1) return { keys: undefined, range: undefined, matches: matching(query.conditions) };
      return { keys: undefined, range: access.ranges[0], matches: matching(residual) };
    case 'index':
    case 'intersection':
    case 'union':
    case 'search':
      // A row that is not in the index yet must be tested for the conditions that the index covers.
      return { keys: undefined, range: undefined, matches: matching(query.conditions) };
  }
}
