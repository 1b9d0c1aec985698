/** Explains searches. */
import type { TableState } from '../view/table-state.ts';
import type { WrittenSearch } from './conditions/search-options.ts';
import { describePlan, RunMeter, stepsOf } from './explain.ts';
import type { ExplainedRun, Explanation } from './explain.ts';
import { Execution } from './operators/executor.ts';
import type { CompiledQuery, Plan } from './planner/access-paths.ts';
import { PlanCosts } from './planner/plan-cost.ts';
import type { CostEstimate, Estimated } from './planner/plan-cost.ts';
import type { QueryHost } from './planner/query-host.ts';
import type { WrittenQuery } from './planner/query-spec.ts';
import { searchRows } from './search/search-rows.ts';

/** Estimates the cost of a plan that has no others to be compared with. */
function estimateOf(state: TableState, query: CompiledQuery, plan: Plan): CostEstimate {
  const costs = new PlanCosts(state, query);
  const [one] = costs.open([plan]) as [Estimated];
  return costs.estimate(plan, one.access, plan.residual.length === 0 ? one.access.entries : costs.matches([one]));
}

/** Explains a search. The words are looked up in the index in any case: how many rows have them decides everything else. */
export async function explainSearch(
  host: QueryHost,
  state: TableState,
  written: WrittenQuery,
  options: ExplainedRun,
): Promise<Explanation> {
  const search = written.search as WrittenSearch;
  const { name } = state.shape;
  const meter = new RunMeter();
  const metered = meter.metered(state);
  const { query, plan, entries } = await searchRows(host, metered, written, search, options.signal);
  const index = meter.index(entries);
  const estimate = estimateOf(state, query, plan);
  const { prices } = host;
  const done = { ...estimate, entries, indexBlocks: index.blocks, indexReads: index.requests };
  if (!options.isRun) return { ...describePlan(name, plan), steps: stepsOf(name, plan, query, done, { prices }) };
  const execution = new Execution(metered, query, plan, options);
  const { length: returned } = await execution.rows();
  const { work } = execution;
  const actual = { index, table: meter.table(work.lookups), matches: work.matches, returned };
  return { ...describePlan(name, plan), steps: stepsOf(name, plan, query, done, { prices, actual }) };
}
