/** Compares the ways to come by the rows of a query, by what each would cost. */
import type { TableState } from '../table/table-state.ts';
import type { Candidate, CompiledQuery } from './plan.ts';
import { PlanCosts } from './plan-cost.ts';
import type { Estimated } from './plan-cost.ts';

function cheapest(all: readonly Estimated[]): Estimated {
  return all.reduce((best, one) => (one.estimate.cost < best.estimate.cost ? one : best));
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
  const all = costs.open(candidates);
  costs.locateStop(all);
  const reestimate = (matches: number): void => {
    for (const one of all)
      one.estimate = costs.estimate(one.candidate, one.access, Math.min(matches, one.access.entries));
  };
  const counted = costs.countedMatches(all);
  if (counted !== undefined) {
    reestimate(counted);
    return { all, best: cheapest(all) };
  }
  const most = Math.min(...all.map(({ access }) => access.entries));
  // Where one is the best whether all or none of the rows match, there is nothing to find out.
  reestimate(most);
  const ifAll = cheapest(all);
  reestimate(0);
  const ifNone = cheapest(all);
  const matches = ifAll === ifNone && !sampled ? most : costs.matches(all);
  reestimate(matches);
  return { all, best: ifAll === ifNone ? ifAll : cheapest(all) };
}
