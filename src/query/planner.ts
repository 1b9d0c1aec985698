/** Chooses the plan of a query: the one that costs least, for all that is known. */
import type { TableState } from '../table/table-state.ts';
import { candidatesFor, effectiveOrder, isBest, residualOf } from './plan.ts';
import type { Candidate, CompiledQuery, Plan } from './plan.ts';
import { compareCosts } from './plan-cost.ts';
import { isWorthProbing, probe } from './plan-probe.ts';

/** The plan that comes by the rows in one of the possible ways. */
export function planOf(state: TableState, query: CompiledQuery, { access, covered, ordered }: Candidate): Plan {
  const order = effectiveOrder(state.shape.primaryKey, query);
  return { access, covered, ordered, residual: residualOf(query, covered), order };
}

/** All the ways to come by the rows of a query. */
export function candidatesOf(state: TableState, query: CompiledQuery): Candidate[] {
  return candidatesFor(state, query, effectiveOrder(state.shape.primaryKey, query));
}

/** The plan of a query on a state of its table: at once, unless something must be read to choose well. */
export function planQuery(state: TableState, query: CompiledQuery): Plan | Promise<Plan> {
  const candidates = candidatesOf(state, query);
  const only = candidates.length === 1 ? candidates[0] : candidates.find((candidate) => isBest(candidate));
  if (only !== undefined) return planOf(state, query, only);
  const { all, best } = compareCosts(state, query, candidates);
  if (!isWorthProbing(best, all)) return planOf(state, query, best.candidate);
  return probe(state, all).then(() => planOf(state, query, compareCosts(state, query, candidates).best.candidate));
}
