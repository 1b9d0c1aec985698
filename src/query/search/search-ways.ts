/**
 * The ways to carry out a search together with other conditions and an order, and what they cost. The words are looked up in any case: how many
 * rows have each of them decides the scores, and is known before a way is chosen.
 */
import type { TableState } from '../../view/table-state.ts';
import type { Tree } from '../../tree/tree.ts';
import type { Condition } from '../conditions/condition.ts';
import { countRange } from '../operators/range-count.ts';
import { effectiveOrder, residualOf } from '../planner/access-paths.ts';
import type { Candidate, CompiledQuery, Plan } from '../planner/access-paths.ts';
import { entryUseOf } from '../planner/covering-index.ts';
import { maxKeyBytes, minKeyBytes } from '../planner/index-intersections.ts';
import { cost, leavesOf, notEstimated, PlanCosts, testCost } from '../planner/plan-cost.ts';
import type { CostEstimate, Estimated } from '../planner/plan-cost.ts';
import { candidatesOf, comparePlans, guessedRanges } from '../planner/planner.ts';
import { estimateRanges } from '../planner/range-estimate.ts';
import { rareness } from './find-rows.ts';
import type { Corpus, OpenedWords, OpenWord } from './find-rows.ts';
import { PostingRun } from './posting-run.ts';

/** Rows that another access gives, by their primary keys. */
export interface OtherRows {
  /** The conditions that the access fulfils. */
  readonly query: CompiledQuery;
  readonly plan: Plan;
}

/** A way to carry out a search. */
export interface SearchWay {
  /**
   * `words`: finds the rows with the words, and tests them for the other conditions; `keys`: finds the rows with the words among those
   * of another access; `order`: goes through another access, which has the order asked for, and looks for its rows among those with
   * the words.
   */
  readonly kind: 'words' | 'keys' | 'order';
  /** The other access. */
  readonly others?: OtherRows;
  readonly estimate: CostEstimate;
}

/** Costs in microseconds, beside those of other plans. */
const times = {
  /** Going over an entry of a word, and ranking a row. */
  posting: 0.03,
  rank: 0.06,
  /** Looking for a row among those with a word: in a tree, and in memory. */
  probe: 1.5,
  heldProbe: 0.4,
} as const;

/** The assumed part of the rows with the words of a phrase that have the phrase. */
const phraseShare = 0.5;
/** Rows that are found may lie behind many that are not: a way in order may have to go so much further. */
const clusteringPenalty = 4;
/** The cost of a search from which a block or two are read to plan it better. */
const worthReads = 3 * cost.read;
/** The most ranges of the table that are counted for a plan. */
const maxCounted = 2;

/** A search that is planned. */
export interface PlannedSearch {
  readonly state: TableState;
  /** The query without its search. */
  readonly query: CompiledQuery;
  readonly corpus: Corpus;
  readonly opened: OpenedWords;
  /** Whether the best rows come first. */
  readonly isRanked: boolean;
  readonly hasPhrases: boolean;
}

/** The entries and leaves of the words of a search. */
interface WordsRead {
  readonly entries: number;
  readonly leaves: number;
  readonly missing: number;
}

/** Returns the ways to carry out a search, at least one. */
export async function searchWays(search: PlannedSearch): Promise<SearchWay[]> {
  const { state, query, isRanked } = search;
  const isStopping = !isRanked && (query.limit !== undefined || query.sorts === 'none') && query.counts !== true;
  // There is no other way, and its cost does not matter. Without words nothing is found, and among other rows each would do.
  const isAlone = query.conditions.length === 0 && !isStopping;
  if (isAlone || search.opened.words.words.length === 0) return [{ kind: 'words', estimate: notEstimated }];
  const words = new WayCosts(search);
  const keyQuery = keyQueryOf(state, query, isStopping);
  const candidates = candidatesOf(state, keyQuery);
  const isOther = ({ access, covered }: Candidate): boolean => access.kind === 'nothing' || covered.length > 0;
  const isInOrder = (one: Candidate): boolean => isStopping && one.ordered;
  if (!candidates.some((one) => isOther(one) || isInOrder(one))) return [words.ofWords()];
  let all = comparePlans(state, keyQuery, candidates, true).all;
  words.learn(all);
  const first = words.ofWords();
  if (first.estimate.cost > worthReads && (await countGuessed(state, all))) {
    all = comparePlans(state, keyQuery, candidates, true).all;
    words.learn(all);
  }
  const ways = [words.ofWords()];
  for (const one of all) {
    const { candidate } = one;
    if (isOther(candidate)) ways.push(...words.ofKeys(othersOf(state, keyQuery, { ...candidate, ordered: false })));
    if (isInOrder(candidate)) ways.push(words.inOrder(othersOf(state, keyQuery, candidate)));
  }
  return ways;
}

/** Returns the way that costs least. One without an order holds all rows for a sort, which a loop that takes rows one by one must not. */
export function cheapestWay(ways: readonly SearchWay[], { sorts }: CompiledQuery): SearchWay {
  const ordered = ways.filter(({ kind }) => kind === 'order');
  const eligible = sorts === 'none' && ordered.length > 0 ? ordered : ways;
  return eligible.reduce((best, one) => (one.estimate.cost < best.estimate.cost ? one : best));
}

/** Returns the query for primary keys by which the rows of a search are found. */
function keyQueryOf({ shape }: TableState, query: CompiledQuery, isStopping: boolean): CompiledQuery {
  const takes = { fields: shape.keyFields, signs: false };
  if (isStopping) return { ...query, takes };
  return { ...query, takes, order: [], limit: undefined, offset: 0, counts: false, unordered: true, sorts: undefined };
}

/** Reads the ends of the ranges whose numbers of entries are guessed. Returns whether there were any. */
async function countGuessed(state: TableState, all: readonly Estimated[]): Promise<boolean> {
  const guessed = all.flatMap(({ candidate: { access }, access: { exact } }) => {
    if (exact) return [];
    if (access.kind === 'table')
      return access.ranges.slice(0, maxCounted).map((range) => countRange(state.tree, range));
    return guessedRanges(access).map(({ index, range }) => countRange(state.treeOf(index) as Tree, range));
  });
  await Promise.all(guessed);
  return guessed.length > 0;
}

/** Returns the rows of a candidate, which fulfil the conditions that it covers. */
function othersOf(state: TableState, query: CompiledQuery, candidate: Candidate): OtherRows {
  const { access, covered, ordered } = candidate;
  // The order asked for also depends on conditions that are tested later.
  const order = ordered ? effectiveOrder(state.shape, query) : [];
  const scanned = access.kind === 'intersection' ? access.first : access;
  const use = scanned.kind === 'index' ? entryUseOf(state, query.takes, scanned.index, [], order) : undefined;
  return {
    query: { ...query, conditions: covered, limit: undefined, offset: 0, unordered: !ordered },
    plan: { access, covered, residual: [], ordered, use, order },
  };
}

/** The rows that a way finds, and how many of them are looked up. */
interface Found {
  readonly rows: number;
  readonly lookups: number;
  readonly isSorted: boolean;
  /** Whether their blocks were read before. */
  readonly isAtHand?: boolean;
  readonly residual: readonly Condition[];
}

/** Estimates what the ways of a search cost. */
class WayCosts {
  readonly #search: PlannedSearch;
  readonly #table: ReturnType<Tree['estimate']>;
  readonly #rows: number;
  /** The rows with the words. */
  readonly #found: number;
  /** How many rows are wanted. */
  readonly #needed: number;
  readonly #read: WordsRead;
  /** The rows that fulfil the other conditions. */
  #matches: number;

  constructor(search: PlannedSearch) {
    const { state, query, corpus, opened } = search;
    this.#search = search;
    this.#table = state.tree.estimate();
    this.#rows = Math.max(1, corpus.rows);
    this.#matches = this.#rows;
    this.#found = rowsWith(opened, this.#rows);
    const isShort = query.limit !== undefined && query.counts !== true;
    this.#needed = isShort ? (query.limit ?? 0) + query.offset : Number.POSITIVE_INFINITY;
    this.#read = wordsRead(opened);
  }

  /** Learns how many rows fulfil the other conditions. */
  learn(all: readonly Estimated[]): void {
    const { query } = this.#search;
    if (query.conditions.length === 0) return;
    const known = all.map(({ estimate, access }) => Math.min(estimate.matches, access.entries));
    this.#matches = Math.min(this.#rows, Math.max(...known, 0.1));
  }

  /** Finding the rows with the words, and testing them. */
  ofWords(): SearchWay {
    const { query, isRanked } = this.#search;
    const { entries, leaves, missing } = this.#read;
    const residual = this.#tested(query.conditions);
    const time = entries * times.posting + this.#found * times.rank + leaves * cost.leaf + missing * cost.read;
    const part = (this.#matches / this.#rows) * this.#phrases;
    const lookups = isRanked ? Math.min(this.#found, this.#needed / part) : this.#found;
    const found: Found = { rows: this.#found, lookups, isSorted: !isRanked, residual };
    const index = { entries, indexBlocks: leaves, indexReads: missing };
    return { kind: 'words', estimate: this.#estimate(index, time, found) };
  }

  /** Finding the rows with the words among others: none if the others take too much memory. */
  ofKeys(others: OtherRows): SearchWay[] {
    const { state, query, isRanked } = this.#search;
    const { estimate, keys } = keysOf(state, others, this.#givenBy(others));
    if (keys * minKeyBytes > maxKeyBytes(state)) return [];
    const probes = this.#probes(keys);
    const rows = (keys * this.#found) / this.#rows;
    const part = Math.min(1, (this.#matches / Math.max(0.1, keys)) * this.#phrases);
    const lookups = isRanked ? Math.min(rows, this.#needed / part) : rows;
    const residual = this.#tested(residualOf(query, others.plan.covered));
    const { kind } = others.plan.access;
    const isAtHand = kind === 'table' || kind === 'union';
    const found: Found = { rows, lookups, isSorted: !isRanked, isAtHand, residual };
    const time = estimate.cost + probes.time + keys * cost.key + rows * times.rank;
    return [{ kind: 'keys', others, estimate: this.#estimate(sumOf(estimate, probes), time, found) }];
  }

  /** Going through others in order, until enough of them have the words. */
  inOrder(others: OtherRows): SearchWay {
    const { state, query } = this.#search;
    const { keys } = keysOf(state, others, this.#givenBy(others));
    const isWhole = others.plan.access.kind === 'nothing';
    const part = ((this.#found / this.#rows) * this.#matches * this.#phrases) / Math.max(1, keys);
    const expected = Math.min(keys, this.#needed / Math.max(part, Number.MIN_VALUE));
    const walked = isWhole ? 0 : (expected + Math.min(keys, expected * clusteringPenalty)) / 2;
    const limit = Math.ceil(walked);
    const costs = new PlanCosts(state, { ...others.query, limit });
    const [one] = costs.open([others.plan]) as [Estimated];
    const estimate = costs.estimate(others.plan, one.access, keys);
    const probes = this.#probes(walked);
    const rows = (walked * this.#found) / this.#rows;
    const residual = this.#tested(residualOf(query, others.plan.covered));
    // Others that are not made of entries of an index are rows of the table.
    const lookups = others.plan.use?.only === true ? rows : 0;
    const time = estimate.cost + probes.time;
    const found: Found = { rows, lookups, isSorted: false, residual };
    return { kind: 'order', others, estimate: this.#estimate(sumOf(estimate, probes), time, found) };
  }

  /** The most rows that an access gives: those that match, if it fulfils all conditions. */
  #givenBy({ plan }: OtherRows): number {
    return residualOf(this.#search.query, plan.covered).length === 0 ? this.#matches : this.#rows;
  }

  get #phrases(): number {
    return this.#search.hasPhrases ? phraseShare : 1;
  }

  #tested(conditions: readonly Condition[]): readonly Condition[] {
    return conditions.filter(({ isEmpty }) => !isEmpty);
  }

  /** Estimates how long it takes to look for rows among those with the words, and the leaves that it takes. */
  #probes(keys: number): WordsRead & { readonly time: number } {
    const { words, sources, counts } = this.#search.opened;
    let [entries, leaves, missing, time] = [0, 0, 0, 0];
    for (const source of sources) {
      let left = keys;
      for (const [i, word] of source.words.entries()) {
        entries += left;
        if (word.place instanceof PostingRun) time += left * times.heldProbe;
        else {
          const all = leavesIn(word);
          const asked = leavesOf(left, all.leaves);
          leaves += asked;
          missing += all.leaves === 0 ? 0 : (asked * all.missing) / all.leaves;
          time += left * times.probe;
        }
        if (!words.any) left *= Math.min(1, (counts[i] as number) / this.#rows);
      }
    }
    return { entries, leaves, missing, time: time + leaves * cost.leaf + missing * cost.read };
  }

  #estimate(
    index: Pick<CostEstimate, 'entries' | 'indexBlocks' | 'indexReads'>,
    time: number,
    { rows, lookups, isSorted, isAtHand, residual }: Found,
  ): CostEstimate {
    const { leaves, cachedFraction, leafBytes } = this.#table;
    const tableBlocks = leavesOf(lookups, leaves);
    const tableReads = isAtHand === true ? 0 : tableBlocks * (1 - cachedFraction);
    const matches = Math.min(rows, (this.#found / this.#rows) * this.#matches * this.#phrases);
    let sum = time + tableReads * cost.read + tableBlocks * cost.leaf + lookups * cost.lookup;
    for (const { selector } of residual) sum += Math.max(lookups, matches) * testCost(selector);
    if (this.#search.hasPhrases) sum += Math.max(lookups, matches) * cost.slowTest;
    if (isSorted) {
      const sorted = Math.min(matches, this.#needed);
      sum += matches * cost.pass + sorted * Math.log2(sorted + 1) * cost.sort;
    }
    const { entries, indexBlocks, indexReads } = index;
    const blocks = { indexBlocks, indexReads, tableBlocks, tableReads, blockBytes: leafBytes };
    return { ...notEstimated, ...blocks, matches, entries, rows: lookups, cost: sum };
  }
}

function sumOf(keys: CostEstimate, probes: WordsRead): Pick<CostEstimate, 'entries' | 'indexBlocks' | 'indexReads'> {
  return {
    entries: keys.entries + keys.rows + probes.entries,
    indexBlocks: keys.indexBlocks + keys.tableBlocks + probes.leaves,
    indexReads: keys.indexReads + keys.tableReads + probes.missing,
  };
}

/** Estimates how many primary keys an access gives, at most `most`, and what that costs. */
function keysOf(
  state: TableState,
  { query, plan }: OtherRows,
  most: number,
): { readonly estimate: CostEstimate; readonly keys: number } {
  const { access } = plan;
  if (access.kind === 'nothing') return { estimate: notEstimated, keys: 0 };
  // They need not be looked up.
  if (access.kind === 'keys') return { estimate: notEstimated, keys: access.keys.length };
  const costs = new PlanCosts(state, query);
  const [one] = costs.open([plan]) as [Estimated];
  const keys = Math.min(most, one.access.joint?.entries ?? one.access.entries);
  return { estimate: costs.estimate(plan, one.access, keys), keys };
}

/** Estimates how many rows have the words of a search. Words that are looked for together often occur together. */
function rowsWith({ words, counts }: OpenedWords, rows: number): number {
  if (words.any)
    return Math.min(
      rows,
      counts.reduce((sum, count) => sum + count, 0),
    );
  let part = 1;
  let weight = 1;
  for (const count of counts) {
    part *= Math.min(1, count / rows) ** weight;
    weight /= 2;
  }
  return Math.max(0.1, part * rows);
}

function leavesIn({ place }: OpenWord): { readonly leaves: number; readonly missing: number } {
  return place instanceof PostingRun ? { leaves: 0, missing: 0 } : estimateRanges(place.source.tree, [place.range]);
}

/** Estimates what a search reads that goes over the entries of its words. */
function wordsRead({ words, sources }: OpenedWords): WordsRead {
  let [entries, leaves, missing] = [0, 0, 0];
  for (const source of sources) {
    const fewest = Math.min(...source.words.map(({ count: rows }) => rows));
    for (const word of source.words) {
      const all = leavesIn(word);
      // A part of a word that many more rows have is read only where rows may be.
      const isSkipped = !words.any && word.count >= fewest * rareness;
      const part = isSkipped && all.leaves > 0 ? Math.min(1, leavesOf(fewest, all.leaves) / all.leaves) : 1;
      // Rows are looked for that have the rarest word.
      entries += words.any ? word.count : Math.min(word.count, fewest);
      leaves += all.leaves * part;
      missing += all.missing * part;
    }
  }
  return { entries, leaves, missing };
}
