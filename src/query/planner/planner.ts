/** Chooses the plan of a query: the one that costs least, for all that is known. */
import type { TableState } from '../../view/table-state.ts';
import { chosenOf } from './read-amortization.ts';
import { intersectionsOf } from './index-intersections.ts';
import { candidatesFor, effectiveOrder, isBest, residualOf } from './access-paths.ts';
import type { Candidate, CompiledQuery, Forgone, Plan } from './access-paths.ts';
import { comparePlans } from './compare-plans.ts';
import { isWorthProbing, probe } from './planning-reads.ts';

/** What looks good because nobody has looked at it is looked at, so often at most. */
const mostLooks = 3;

/** The plan that comes by the rows in one of the possible ways. */
export function planOf(state: TableState, query: CompiledQuery, candidate: Candidate, forgone?: Forgone): Plan {
  // Named one by one: that takes a fraction of the time of copying whatever there is.
  const { access, covered, ordered, use } = candidate;
  const order = effectiveOrder(state.shape, query);
  return { access, covered, ordered, use, residual: residualOf(query, covered), order, forgone };
}

/** All the ways to come by the rows of a query. */
export function candidatesOf(state: TableState, query: CompiledQuery): Candidate[] {
  const candidates = candidatesFor(state, query, effectiveOrder(state.shape, query), planFromMemory);
  if (candidates.length < 3) return candidates;
  return [...candidates, ...intersectionsOf(state, query, candidates)];
}

/** The only candidate, or one that nothing can be better than. */
function obviousOf(candidates: readonly Candidate[]): Candidate | undefined {
  return candidates.length === 1 ? candidates[0] : candidates.find((candidate) => isBest(candidate));
}

/** The plan of a query from what is in memory. */
export function planFromMemory(state: TableState, query: CompiledQuery): Plan {
  const candidates = candidatesOf(state, query);
  return planOf(state, query, obviousOf(candidates) ?? comparePlans(state, query, candidates).best.candidate);
}

/**
 * The plan of a query on a state of its table: at once, unless something must be read to choose well. `looks`: how often that was
 * done, again while what is the best then is a guess of its own.
 */
export function planQuery(state: TableState, query: CompiledQuery, looks = 0): Plan | Promise<Plan> {
  const candidates = candidatesOf(state, query);
  const obvious = obviousOf(candidates);
  if (obvious !== undefined) return planOf(state, query, obvious);
  const comparison = comparePlans(state, query, candidates);
  const { all, best } = comparison;
  if (looks < mostLooks && isWorthProbing(best, all, query)) {
    return probe(state, all).then(() => planQuery(state, query, looks + 1));
  }
  // What was just read is in memory: nothing is forgone.
  if (looks > 0) return planOf(state, query, best.candidate);
  const { chosen, forgone } = chosenOf(state, comparison);
  return planOf(state, query, chosen.candidate, forgone);
}
