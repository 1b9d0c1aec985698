/** Compares the ways to come by the rows of a query, by what each would cost. */
import type { TableState } from '../../view/table-state.ts';
import type { Candidate, CompiledQuery } from './access-paths.ts';
import { PlanCosts } from './plan-cost.ts';
import type { Estimated } from './plan-cost.ts';

function cheapest(all: readonly Estimated[]): Estimated {
  return all.reduce((best, one) => (one.estimate.cost < best.estimate.cost ? one : best));
}

/**
 * The plans to choose from. Rows that are taken one by one are not to be held, all of them, to be sorted: that is for plans
 * that find no more than read-ahead may hold, whatever it costs to come by the rows in their order.
 */
function eligible(
  state: TableState,
  query: CompiledQuery,
  costs: PlanCosts,
  all: readonly Estimated[],
): readonly Estimated[] {
  if (query.sorts === undefined) return all;
  const mostBytes = query.sorts === 'none' ? -1 : state.tree.source.memory.aheadBytes;
  const fit = all.filter(({ candidate, estimate }) => {
    return candidate.ordered || costs.heldBytes(estimate.matches) <= mostBytes;
  });
  return fit.length === 0 ? all : fit;
}

/** The candidates with what they cost, and the one that costs least. */
export interface Comparison {
  readonly all: readonly Estimated[];
  readonly best: Estimated;
}

/** Compares the ways to come by the rows of a query. `sampled`: also where the sample makes no difference to the choice. */
export function comparePlans(
  state: TableState,
  query: CompiledQuery,
  candidates: readonly Candidate[],
  sampled = false,
): Comparison {
  const costs = new PlanCosts(state, query);
  const choose = (): Estimated => cheapest(eligible(state, query, costs, all));
  const all = costs.open(candidates);
  costs.locateStop(all);
  const reestimate = (matches: number): void => {
    for (const one of all)
      one.estimate = costs.estimate(one.candidate, one.access, Math.min(matches, one.access.entries));
  };
  const counted = costs.countedMatches(all);
  if (counted !== undefined) {
    reestimate(counted);
    return { all: eligible(state, query, costs, all), best: choose() };
  }
  const most = Math.min(...all.map(({ access }) => access.entries));
  // Where one is the best whether all or none of the rows match, there is nothing to find out.
  reestimate(most);
  const ifAll = choose();
  reestimate(0);
  const ifNone = choose();
  const matches = ifAll === ifNone && !sampled ? most : costs.matches(all);
  reestimate(matches);
  return { all: eligible(state, query, costs, all), best: ifAll === ifNone ? ifAll : choose() };
}
