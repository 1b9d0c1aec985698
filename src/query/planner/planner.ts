/** Chooses the cheapest plan of a query by estimated cost. */
import type { TableIndex } from '../../schema/table-shape.ts';
import type { KeyRange } from '../../tree/cursor.ts';
import { loadChild } from '../../tree/tree.ts';
import type { Tree } from '../../tree/tree.ts';
import type { TableState } from '../../view/table-state.ts';
import { candidatesFor, effectiveOrder, obviousOf } from './access-paths.ts';
import type { Candidate, CompiledQuery, DeferredRead, Plan, Access } from './access-paths.ts';
import { intersectionsOf } from './index-intersections.ts';
import { PlanCosts, costOfReads, isStoppingScan } from './plan-cost.ts';
import type { Estimated, TreePlace } from './plan-cost.ts';
import type { QueryMemory } from './query-host.ts';

/** The most rounds of probing for one plan. A plan may look good only because its size is guessed. */
const maxLooks = 3;

/** Returns the plan for a candidate. */
export function planOf(state: TableState, query: CompiledQuery, candidate: Candidate, deferred?: DeferredRead): Plan {
  // Naming the fields takes a fraction of the time of a spread.
  const { access, covered, residual, ordered, use } = candidate;
  const order = effectiveOrder(state.shape, query);
  return { access, covered, ordered, use, residual, order, deferred };
}

/** Returns all candidate plans of a query. */
export function candidatesOf(state: TableState, query: CompiledQuery): Candidate[] {
  const candidates = candidatesFor(state, query, effectiveOrder(state.shape, query), planFromMemory);
  if (candidates.length < 3) return candidates;
  return [...candidates, ...intersectionsOf(state, query, candidates)];
}

/** The plan of a query from what is in memory. */
export function planFromMemory(state: TableState, query: CompiledQuery): Plan {
  const candidates = candidatesOf(state, query);
  return planOf(state, query, obviousOf(candidates) ?? comparePlans(state, query, candidates).best.candidate);
}

/**
 * Returns the plan of a query on a state of its table; a promise if blocks must be read to choose well. `looks`: the rounds of probing
 * so far. Another one follows while the best plan is itself a guess.
 */
export function planQuery(
  state: TableState,
  query: CompiledQuery,
  memory: QueryMemory,
  looks = 0,
): Plan | Promise<Plan> {
  const candidates = candidatesOf(state, query);
  const obvious = obviousOf(candidates);
  if (obvious !== undefined) return planOf(state, query, obvious);
  const comparison = comparePlans(state, query, candidates);
  const { best } = comparison;
  if (looks < maxLooks && isWorthProbing(comparison, query)) {
    return probe(state, comparison).then(() => planQuery(state, query, memory, looks + 1));
  }
  // The blocks just read are in memory: no read is deferred.
  if (looks > 0) return planOf(state, query, best.candidate);
  const { chosen, deferred } = chooseCheapest(state, comparison, memory);
  return planOf(state, query, chosen.candidate, deferred);
}

/** Up to so many reads, a plan is taken without probing. */
const fewReads = 4;
/** The most ranges of a candidate that are probed. */
const maxRanges = 2;
/** The most ranges of all branches of a union that are probed. */
const maxUnionRanges = 8;

type Limited = Pick<CompiledQuery, 'limit'>;

/** Reads the blocks on the path to a key. */
async function readTowards(tree: Tree, key: Uint8Array): Promise<void> {
  let node = tree.getCachedRoot() ?? (await tree.loadRoot());
  while (node.level > 0) {
    const child = node.childFor(key);
    node = tree.source.getCachedChild(node, child) ?? (await loadChild(tree.source, node, child));
  }
}

function isGuessed({ candidate: { access }, access: { exact } }: Estimated): boolean {
  return !exact && (access.kind === 'index' || access.kind === 'intersection' || access.kind === 'union');
}

/** Whether the number of row lookups is a guess. The number of leaves in a range is known, so index-only scans are certain. */
function isUncertain(one: Estimated): boolean {
  return isGuessed(one) && one.candidate.use?.only !== true;
}

/**
 * Whether a plan reads all entries of its ranges where another plan may end early. It reads the ends of the ranges in any case, so
 * probing them costs nothing, and the number of entries between them matters.
 */
function readsAllItself(
  { candidate: { access, ordered } }: Estimated,
  all: readonly Estimated[],
  { limit }: Limited,
): boolean {
  if (access.kind === 'union') return true;
  return limit !== undefined && !ordered && all.some(({ candidate }) => candidate.ordered);
}

/**
 * Whether to probe before choosing a plan. The number of index entries that a condition selects is not known while the leaves at the
 * ends of its ranges are not in memory. Reading them takes a request or two, and the wrong plan may take many more.
 */
export function isWorthProbing({ all, best, unlocated }: Comparison, query: Limited): boolean {
  // Rows of one value may all lie far behind: a scan that is expected to stop early may read the whole table.
  if (unlocated !== undefined && isStoppingScan(best.candidate) && best.access.missing > fewReads) return true;
  const uncertain = all.filter((one) => isUncertain(one));
  // Of two guessed plans, one may be far worse than it looks.
  if (uncertain.includes(best) && all.filter((one) => isGuessed(one)).length > 1) return true;
  if (uncertain.includes(best) && readsAllItself(best, all, query)) return true;
  return best.estimate.indexReads + best.estimate.tableReads > fewReads && uncertain.length > 0;
}

/** Reads the ends of ranges whose numbers of entries are guessed, and the keys that tell where a scan can stop. */
async function probe(state: TableState, { all, unlocated }: Comparison): Promise<void> {
  const keys = all.filter((one) => isUncertain(one)).flatMap(({ candidate }) => endsOf(state, candidate));
  if (unlocated !== undefined) keys.push(unlocated);
  await Promise.all(keys.map(({ tree, key }) => readTowards(tree, key)));
}

function endsOf(state: TableState, { access }: Candidate): TreePlace[] {
  return guessedRanges(access).flatMap(({ index, range: { from, to } }) => {
    const tree = state.treeOf(index) as Tree;
    return [from, to].filter((key) => key !== undefined).map((key) => ({ tree, key }));
  });
}

/** A range of the entries of an index. */
export interface IndexRange {
  readonly index: TableIndex;
  readonly range: KeyRange;
}

/** Returns the ranges to probe. Table ranges of a union need none. */
export function guessedRanges(access: Access): readonly IndexRange[] {
  switch (access.kind) {
    case 'index':
      return access.ranges.slice(0, maxRanges).map((range) => ({ index: access.index, range }));
    case 'union':
      return access.parts.flatMap(({ plan }) => guessedRanges(plan.access)).slice(0, maxUnionRanges);
    default:
      return [];
  }
}

function cheapest(all: readonly Estimated[]): Estimated {
  return all.reduce((best, one) => (one.estimate.cost < best.estimate.cost ? one : best));
}

/**
 * Returns the plans to choose from. A loop that takes rows one by one must not hold all of them for a sort. So a plan that sorts is
 * eligible only if its rows fit into the memory for reading ahead, even if plans in order cost more.
 */
function eligible(
  state: TableState,
  query: CompiledQuery,
  costs: PlanCosts,
  all: readonly Estimated[],
): readonly Estimated[] {
  if (query.sorts === undefined) return all;
  const maxBytes = query.sorts === 'none' ? -1 : state.tree.source.memory.readAheadBytes;
  const fit = all.filter(({ candidate, estimate }) => {
    return candidate.ordered || costs.heldBytes(estimate.matches) <= maxBytes;
  });
  return fit.length === 0 ? all : fit;
}

/** The candidates with their costs, and the cheapest one. */
export interface Comparison {
  readonly all: readonly Estimated[];
  readonly best: Estimated;
  /** The place in an index that can tell where a scan stops, if it is not in memory. */
  readonly unlocated?: TreePlace | undefined;
}

/** Compares the candidates of a query by cost. `sampled`: takes a sample of rows even if it does not affect the choice. */
export function comparePlans(
  state: TableState,
  query: CompiledQuery,
  candidates: readonly Candidate[],
  sampled = false,
): Comparison {
  const costs = new PlanCosts(state, query);
  const choose = (): Estimated => cheapest(eligible(state, query, costs, all));
  const all = costs.open(candidates);
  const unlocated = costs.locateStop(all);
  const reestimate = (matches: number): void => {
    for (const one of all)
      one.estimate = costs.estimate(one.candidate, one.access, Math.min(matches, one.access.entries));
  };
  const counted = costs.countedMatches(all);
  if (counted !== undefined) {
    reestimate(counted);
    return { all: eligible(state, query, costs, all), best: choose(), unlocated };
  }
  const most = Math.min(...all.map(({ access }) => access.entries));
  // If the same candidate is best whether all or none of the rows match, no sample is needed.
  reestimate(most);
  const ifAll = choose();
  reestimate(0);
  const ifNone = choose();
  const matches = ifAll === ifNone && !sampled ? most : costs.matches(all);
  reestimate(matches);
  return { all: eligible(state, query, costs, all), best: ifAll === ifNone ? ifAll : choose(), unlocated };
}

/** A saving of less than this part of a plan's cost is not worth a read. */
const worthwhilePart = 0.2;

class DeferredReads implements DeferredRead {
  readonly #account: Map<string, number>;
  readonly #name: string;
  readonly #each: number;
  readonly #price: number;

  constructor(account: Map<string, number>, name: string, each: number, price: number) {
    this.#account = account;
    this.#name = name;
    this.#each = each;
    this.#price = price;
  }

  use(): boolean {
    const sum = (this.#account.get(this.#name) ?? 0) + this.#each;
    this.#account.set(this.#name, sum);
    return sum >= this.#price;
  }
}

/**
 * Chooses the cheapest plan, or an index that must be read first if earlier runs without it have cost as much as the read. Returns the
 * cost of going without the index with a plan that does. Scanning rows in memory is cheaper than reading an index once, but not again
 * and again. So the costs are added up until they pay for the read. In total that costs at most twice the best choice.
 */
function chooseCheapest(
  state: TableState,
  { all, best }: Comparison,
  memory: QueryMemory,
): { readonly chosen: Estimated; readonly deferred?: DeferredRead } {
  if (costOfReads(best.estimate) > 0) return { chosen: best };
  let other: Estimated | undefined;
  let index: TableIndex | undefined;
  const inMemory = ({ estimate }: Estimated): number => estimate.cost - costOfReads(estimate);
  for (const one of all) {
    const { access } = one.candidate;
    if (access.kind !== 'index' || costOfReads(one.estimate) === 0) continue;
    if (other !== undefined && inMemory(one) >= inMemory(other)) continue;
    other = one;
    ({ index } = access);
  }
  if (other === undefined || index === undefined) return { chosen: best };
  const each = best.estimate.cost - inMemory(other);
  if (each < best.estimate.cost * worthwhilePart) return { chosen: best };
  const name = `${state.shape.name} ${index.name}`;
  const account = memory.deferredMicros(state.tree.source);
  const price = costOfReads(other.estimate);
  if ((account.get(name) ?? 0) >= price) {
    account.delete(name);
    return { chosen: other };
  }
  const deferred = new DeferredReads(account, name, each, price);
  deferred.use();
  return { chosen: best, deferred };
}
