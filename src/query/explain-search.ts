/** Explains searches. */
import type { TableState } from '../view/table-state.ts';
import type { WrittenSearch } from './conditions/search-options.ts';
import { describePlan, RunMeter, stepsOf } from './explain.ts';
import type { Alternative, ExplainedRun, Explanation } from './explain.ts';
import { Execution } from './operators/executor.ts';
import { indexesOf } from './planner/access-paths.ts';
import type { CompiledQuery, Plan, RankedAccess } from './planner/access-paths.ts';
import { PlanCosts } from './planner/plan-cost.ts';
import type { CostEstimate, Estimated } from './planner/plan-cost.ts';
import type { QueryHost } from './planner/query-host.ts';
import type { WrittenQuery } from './planner/query-spec.ts';
import { searchRows } from './search/search-rows.ts';
import type { SearchWay } from './search/search-ways.ts';

/** Estimates the cost of a plan that has no others to be compared with. */
function estimateOf(state: TableState, query: CompiledQuery, plan: Plan): CostEstimate {
  const costs = new PlanCosts(state, query);
  const [one] = costs.open([plan]) as [Estimated];
  return costs.estimate(plan, one.access, plan.residual.length === 0 ? one.access.entries : costs.matches([one]));
}

/** Names the indexes that a way uses, as an explanation does. */
function namesOf({ others }: SearchWay, index: string): Pick<Explanation, 'access' | 'index' | 'indexes'> {
  const names = others === undefined ? [] : indexesOf(others.plan.access);
  return { access: 'search', index, ...(names.length > 0 && { indexes: [...names, index] }) };
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
  const { query, plan, entries, way, ways } = await searchRows(host, metered, written, search, options.signal);
  const index = meter.index(entries);
  const { prices } = host;
  // Rows are looked for in order only when the query is run.
  const isDone = way.kind !== 'order';
  const looked = { entries, indexBlocks: index.blocks, indexReads: index.requests };
  const done = isDone ? { ...estimateOf(state, query, plan), ...looked } : way.estimate;
  const { access } = plan as { readonly access: RankedAccess };
  const described: Explanation = {
    ...describePlan(name, plan),
    ...namesOf(way, access.index.name),
    alternatives: ways
      .filter((one) => one !== way)
      .toSorted((a, b) => a.estimate.cost - b.estimate.cost)
      .map((one) => alternativeTo(way, one, access.index.name)),
  };
  if (!options.isRun) return { ...described, steps: stepsOf(name, plan, query, done, { prices }) };
  const execution = new Execution(metered, query, plan, options);
  const { length: returned } = await execution.rows();
  const { work } = execution;
  const used = isDone ? index : meter.index(entries + work.entries);
  const actual = { index: used, table: meter.table(work.lookups), matches: work.matches, returned };
  return { ...described, steps: stepsOf(name, plan, query, done, { prices, actual }) };
}

function alternativeTo({ estimate: chosen }: SearchWay, other: SearchWay, index: string): Alternative {
  const relativeCost = Math.round((10 * other.estimate.cost) / Math.max(chosen.cost, 0.01)) / 10;
  return { ...namesOf(other, index), relativeCost };
}
