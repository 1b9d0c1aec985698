/**
 * The cost model: estimates how many entries and rows a plan tests and how many blocks it reads, and turns that into one number. The
 * estimates come from the blocks in memory, without reading.
 */
import { concatBytes } from '../../base/bytes.ts';
import { endOfValues, primaryKeyIn } from '../../schema/table-shape.ts';
import type { KeyRange } from '../../tree/cursor.ts';
import type { TreeEstimate } from '../../tree/tree-estimate.ts';
import type { Tree } from '../../tree/tree.ts';
import { haveEntries } from '../../view/layer-indexes.ts';
import type { TableState } from '../../view/table-state.ts';
import { filterOf } from '../conditions/condition.ts';
import type { Condition } from '../conditions/condition.ts';
import { slowCost } from '../conditions/filter.ts';
import type { Selector } from '../conditions/filter.ts';
import { elementCost } from '../conditions/list-selectors.ts';
import { isMerged } from './access-paths.ts';
import type {
  Access,
  IntersectionAccess,
  Candidate,
  CompiledQuery,
  IndexAccess,
  TableAccess,
  UnionAccess,
} from './access-paths.ts';
import { countableAccess } from './query-spec.ts';
import { sampleMatches } from './sampling.ts';
import { estimateEntries, estimateRanges } from './range-estimate.ts';

/** Costs in microseconds, as measured on one core with everything in memory, but for the request. */
export const cost = {
  /** A block that must be read. A store takes longer; several reads are under way at a time. */
  read: 5000,
  /** Testing a row in its leaf. */
  test: 0.006,
  /** Testing it by a registered function, which gets the whole row. */
  slowTest: 1,
  /** Looking for an element in the JSON text of a list. */
  elementTest: 0.4,
  /** Looking up a row by its primary key, and where rows come in the order of keys. */
  lookup: 0.5,
  nearLookup: 0.2,
  /** Reading an entry of an index where its row is not looked up. */
  entry: 0.15,
  /** Holding a primary key; and searching for one among held keys or in an index. */
  key: 0.15,
  probe: 0.2,
  /** Beginning a leaf, or a range. */
  leaf: 0.5,
  /** Sorting a row, per doubling of the number of rows; and rejecting one that is not among the first. */
  sort: 0.1,
  pass: 0.03,
  /** A row of an unmerged commit, where all of them are scanned. */
  overlaid: 0.1,
  /** An entry of a layer, where its rows have index entries; and the search for the first of them. */
  layerEntry: 0.5,
  layer: 1,
} as const;

/** The size of an access: the entries, rows and blocks that a full scan of it takes. */
interface AccessEstimate {
  /** The entries or rows that it scans. */
  readonly entries: number;
  readonly exact: boolean;
  /** The leaves of the index, and how many of them are not in memory. */
  readonly indexLeaves: number;
  readonly indexMissing: number;
  /** The leaves of the table, and how many of them are not in memory. */
  readonly leaves: number;
  readonly missing: number;
  readonly ranges: number;
  /** For an intersection: the entries whose keys are in all of its indexes, and the reads of the other indexes, which come first. */
  readonly joint?: { readonly entries: number; readonly others: WholeRead };
}

/** A part that is read to its end, even if the query stops early. */
interface WholeRead {
  readonly entries: number;
  readonly leaves: number;
  readonly missing: number;
}

const noOthers: WholeRead = { entries: 0, leaves: 0, missing: 0 };

type Mutable<T> = { -readonly [K in keyof T]: T[K] };

/** Returns the expected number of leaves that hold `rows` rows at random places. */
export function leavesOf(rows: number, leaves: number): number {
  return leaves <= 1 ? Math.min(rows, leaves) : leaves * (1 - (1 - 1 / leaves) ** rows);
}

/** Returns the cost of testing a row by a selector. */
export function testCost(selector: Selector): number {
  const { cost: own } = selector;
  if (selector.timeBy !== undefined) return selector.timeBy(testCost);
  if (own >= slowCost) return cost.slowTest;
  return own >= elementCost ? cost.elementTest : cost.test;
}

/** Estimates an access from the blocks in memory. `table`: the estimate of the table's tree. */
function estimateAccess(state: TableState, table: TreeEstimate, access: Access): AccessEstimate {
  const none = { indexLeaves: 0, indexMissing: 0, ranges: 1, exact: true };
  const missingOf = (leaves: number): number => leaves * (1 - table.cachedFraction);
  switch (access.kind) {
    case 'nothing':
      return { ...none, entries: 0, leaves: 0, missing: 0 };
    case 'keys':
    case 'search': {
      const entries = access.kind === 'keys' ? access.keys.length : access.total;
      const leaves = leavesOf(entries, table.leaves);
      return { ...none, entries, leaves, missing: missingOf(leaves), ranges: entries };
    }
    case 'table': {
      const sum = estimateRanges(state.tree, access.ranges);
      const { exact, leaves, missing } = sum;
      let { entries } = sum;
      for (const layer of state.layers) entries += estimateRanges(layer, access.ranges).entries;
      const ranges = access.ranges.length;
      return { entries, exact, indexLeaves: 0, indexMissing: 0, leaves, missing, ranges };
    }
    case 'index': {
      const tree = state.treeOf(access.index) as Tree;
      const { entries, exact, leaves: indexLeaves, missing } = estimateEntries(tree, access);
      const leaves = leavesOf(entries, table.leaves);
      const ranges = access.ranges.length;
      return { entries, exact, indexLeaves, indexMissing: missing, leaves, missing: missingOf(leaves), ranges };
    }
    case 'intersection':
      return estimateIntersection(state, table, access);
    case 'union': {
      const parts = access.parts.map(({ plan }) => estimateAccess(state, table, plan.access));
      const sum = (of: (part: AccessEstimate) => number): number => parts.reduce((total, part) => total + of(part), 0);
      return {
        entries: sum(({ entries }) => entries),
        exact: parts.every(({ exact }) => exact),
        indexLeaves: sum(({ indexLeaves }) => indexLeaves),
        indexMissing: sum(({ indexMissing }) => indexMissing),
        leaves: sum(({ leaves }) => leaves),
        missing: sum(({ missing }) => missing),
        ranges: sum(({ ranges }) => ranges),
      };
    }
  }
}

/** Estimates an intersection. Conditions on different fields are assumed to be independent. */
function estimateIntersection(
  state: TableState,
  table: TreeEstimate,
  { first, others }: IntersectionAccess,
): AccessEstimate {
  const sum: Mutable<AccessEstimate> = { ...estimateAccess(state, table, first) };
  let joint = sum.entries;
  let read = 0;
  let leaves = 0;
  let missing = 0;
  for (const other of others) {
    const more = estimateAccess(state, table, other);
    joint *= more.entries / Math.max(1, table.entries, more.entries);
    // In a merge, leaves between the keys that are searched for are not read.
    const isMergedIn = isMerged(first, other);
    if (isMergedIn) {
      const part = Math.min(1, sum.entries / Math.max(1, more.indexLeaves));
      sum.indexLeaves += more.indexLeaves * part;
      sum.indexMissing += more.indexMissing * part;
    } else {
      read += more.entries;
      leaves += more.indexLeaves;
      missing += more.indexMissing;
    }
    sum.ranges += more.ranges;
    sum.exact &&= more.exact;
  }
  return { ...sum, joint: { entries: joint, others: { entries: read, leaves, missing } } };
}

/** The selectivity of a condition without statistics. */
const defaultSelectivity = 0.25;
/** Matching rows may be clustered at the far end. A scan may then have to test so many times more rows before it finds enough. */
const clusteringPenalty = 4;

/** The estimated cost of a candidate. */
export interface CostEstimate {
  /** The cardinality: matching rows among those of the access. */
  readonly matches: number;
  /** The index entries that are read. */
  readonly entries: number;
  /** The rows that are tested or looked up. */
  readonly rows: number;
  /** The rows of unmerged commits that are tested in addition. */
  readonly overlaid: number;
  /** The blocks that are used, and those of them that must be read: of indexes and of the table. */
  readonly indexBlocks: number;
  readonly indexReads: number;
  readonly tableBlocks: number;
  readonly tableReads: number;
  /** The size of a block, in bytes. */
  readonly blockBytes: number;
  /** The total cost, in microseconds of a typical machine. */
  readonly cost: number;
}

export const notEstimated: CostEstimate = {
  matches: 0,
  entries: 0,
  rows: 0,
  overlaid: 0,
  indexBlocks: 0,
  indexReads: 0,
  tableBlocks: 0,
  tableReads: 0,
  blockBytes: 0,
  cost: 0,
};

const figures = Object.keys(notEstimated) as (keyof CostEstimate)[];

export interface Estimated {
  readonly candidate: Candidate;
  readonly access: AccessEstimate;
  estimate: CostEstimate;
}

/** Returns the part of a cost that is for reads of blocks. */
export function costOfReads({ indexReads, tableReads }: CostEstimate): number {
  return (indexReads + tableReads) * cost.read;
}

/** Whether a candidate has a single access. */
function isSingle({ candidate: { access } }: Estimated): boolean {
  return access.kind !== 'union' && access.kind !== 'intersection';
}

/** Whether a candidate reads rows in the order asked for, from one end of a range of the table, and tests them until it has enough. */
export function isStoppingScan({ access, ordered, residual }: Candidate): boolean {
  return ordered && access.kind === 'table' && access.ranges.length === 1 && residual.length > 0;
}

/** A key in a tree. */
export interface TreePlace {
  readonly tree: Tree;
  readonly key: Uint8Array;
}

/** Estimates the costs of the plans of one query. */
export class PlanCosts {
  readonly #state: TableState;
  readonly #query: CompiledQuery;
  readonly #table: TreeEstimate;
  readonly #overlaid: number;
  /** The part of its range that a scan reads until it has enough rows, if known. */
  #stop: { readonly scan: Candidate; readonly part: number } | undefined;

  constructor(state: TableState, query: CompiledQuery) {
    this.#state = state;
    this.#query = query;
    this.#table = state.tree.estimate();
    this.#overlaid = state.layerRows;
  }

  /** Returns the candidates with estimates of their accesses. */
  open(candidates: readonly Candidate[]): Estimated[] {
    return candidates.map((candidate) => {
      const access = estimateAccess(this.#state, this.#table, candidate.access);
      return { candidate, access, estimate: notEstimated };
    });
  }

  /**
   * Estimates how far a scan must read for the rows wanted, if an index has their primary keys. Returns the place in the index that would
   * tell, if its block is not in memory.
   */
  locateStop(all: readonly Estimated[]): TreePlace | undefined {
    const { limit, offset } = this.#query;
    if (limit === undefined || this.#overlaid > 0) return undefined;
    const scan = all.find(({ candidate }) => isStoppingScan(candidate))?.candidate;
    if (scan === undefined) return undefined;
    for (const { candidate } of all) {
      const { access, residual } = candidate;
      // Of the entries of one value, those with keys in the range of the scan are the rows that match.
      if (access.kind !== 'index' || !access.oneValue || !residual.every((one) => scan.covered.includes(one))) continue;
      const stop = scannedPart(this.#state, scan.access as TableAccess, access, limit + offset);
      if (typeof stop === 'object') return stop;
      if (stop !== undefined) this.#stop = { scan, part: stop };
      return undefined;
    }
    return undefined;
  }

  /** Returns the candidate whose access has the fewest entries. */
  #fewest(all: readonly Estimated[]): Estimated {
    // Unions and intersections cannot be sampled.
    const single = all.filter(isSingle);
    return (single.length === 0 ? all : single).reduce((best, one) =>
      one.access.entries < best.access.entries ? one : best,
    );
  }

  /** Returns the number of matching rows, if an access gives exactly those; undefined if rows must be tested to know. */
  countedMatches(all: readonly Estimated[]): number | undefined {
    let fewest: Estimated | undefined;
    for (const one of all) {
      if (fewest !== undefined && fewest.access.entries <= one.access.entries) continue;
      if (isSingle(one) && one.candidate.residual.length === 0) fewest = one;
    }
    return fewest?.access.entries;
  }

  /**
   * Estimates the number of matching rows: the entries of the smallest access, times the part that matches in a sample. The result is
   * greater than zero.
   */
  matches(all: readonly Estimated[]): number {
    const fewest = this.#fewest(all);
    const { candidate, access } = fewest;
    const { residual } = candidate;
    const { tested, matched } = sampleMatches(this.#state, candidate.access, filterOf(residual));
    const guessed = residual.reduce((part, condition) => part * this.#selectivity(condition, all), 1);
    // The guess counts as one row, so that it matters only for small samples.
    return (access.entries * (matched + guessed)) / (tested + 1);
  }

  /** Returns the bytes of rows that a query holds if it sorts `matches` rows. */
  heldBytes(matches: number): number {
    const { limit, offset } = this.#query;
    const { leaves, leafBytes, entries } = this.#table;
    const held = limit === undefined ? matches : Math.min(matches, limit + offset);
    return (held * leaves * leafBytes) / Math.max(1, entries);
  }

  /** Returns the selectivity of a condition: from the candidate that covers exactly this condition, if there is one. */
  #selectivity(condition: Condition, all: readonly Estimated[]): number {
    const counted = all.find(({ candidate: { covered }, access: { exact, joint } }) => {
      return exact && joint === undefined && covered.length === 1 && covered[0] === condition;
    });
    return counted === undefined ? defaultSelectivity : Math.min(1, counted.access.entries / this.#table.entries);
  }

  /** Whether the counts in the nodes of a tree give the number of rows. */
  #isCounted({ access, residual }: Candidate): boolean {
    if (residual.length > 0) return false;
    return access.kind === 'table' || (access.kind === 'index' && this.#overlaid === 0);
  }

  /** Estimates a count, which uses only the blocks at both ends of each range. */
  #countEstimate(
    { indexLeaves, indexMissing, leaves, missing, ranges }: AccessEstimate,
    matches: number,
  ): CostEstimate {
    const all = indexLeaves > 0 ? indexLeaves : leaves;
    const blocks = Math.min(2 * ranges, all);
    const reads = all === 0 ? 0 : (blocks * (indexLeaves > 0 ? indexMissing : missing)) / all;
    const time = reads * cost.read + blocks * cost.leaf + this.#overlaid * cost.lookup;
    const ofIndex = indexLeaves > 0;
    return {
      ...notEstimated,
      matches,
      ...(ofIndex ? { indexBlocks: blocks, indexReads: reads } : { tableBlocks: blocks, tableReads: reads }),
      blockBytes: this.#table.leafBytes,
      cost: time,
    };
  }

  /** Estimates a union. All parts are read to their ends, and their rows are sorted. */
  #unionEstimate({ parts }: UnionAccess, matches: number): CostEstimate {
    const sum: Mutable<CostEstimate> = { ...notEstimated, cost: matches * cost.pass };
    for (const { query, plan } of parts) {
      const costs = new PlanCosts(this.#state, query);
      const access = estimateAccess(this.#state, this.#table, plan.access);
      const part = costs.estimate(plan, access, access.entries);
      for (const figure of figures) sum[figure] += part[figure];
    }
    return { ...sum, matches, blockBytes: this.#table.leafBytes };
  }

  /** Returns the part of the entries, or keys, whose rows are looked up. */
  #lookedUp({ use }: Candidate, tests: readonly unknown[], entries: number, matches: number): number {
    if (use === undefined) return 1;
    if (use.only) return 0;
    return Math.min(1, matches / Math.max(1, entries)) ** (use.tests.length / tests.length);
  }

  /** Returns the number of rows of unmerged commits that an access tests if it scans `entries` entries, and the cost of that. */
  #overlaidBy(access: Access, entries: number): { readonly overlaid: number; readonly time: number } {
    if (!this.#hasEntries(access)) return { overlaid: this.#overlaid, time: this.#overlaid * cost.overlaid };
    const part = Math.min(1, entries / Math.max(1, this.#table.entries));
    const layers = this.#state.layers.length;
    // In most cases the first row of each layer is read to compare it.
    const overlaid = Math.max(this.#overlaid * part, Math.min(this.#overlaid, layers));
    return { overlaid, time: overlaid * cost.layerEntry + layers * cost.layer };
  }

  #hasEntries(access: Access): boolean {
    const by = access.kind === 'intersection' ? access.first : access;
    return by.kind === 'index' && haveEntries(this.#state, by.index);
  }

  /** Estimates the cost of a candidate if `matches` rows match in all. */
  estimate(candidate: Candidate, access: AccessEstimate, matches: number): CostEstimate {
    const { limit } = this.#query;
    let { offset } = this.#query;
    // Rows that are skipped by counting cost almost nothing.
    if (offset > 0 && countableAccess(this.#state, this.#query, candidate) !== undefined) offset = 0;
    const needed = limit === undefined ? Number.POSITIVE_INFINITY : limit + offset;
    const stops = (candidate.ordered || this.#query.counts === true) && needed < matches;
    if (this.#query.counts === true && this.#isCounted(candidate)) return this.#countEstimate(access, matches);
    const expected = stops ? needed / Math.max(matches, needed) : 1;
    if (candidate.access.kind === 'union') return this.#unionEstimate(candidate.access, matches);
    const tests = candidate.residual;
    const { joint } = access;
    const isSure = tests.length === 0 && joint === undefined;
    const guessed = isSure ? expected : (expected + Math.min(1, expected * clusteringPenalty)) / 2;
    const part = stops && this.#stop?.scan === candidate ? this.#stop.part : guessed;
    const others = joint?.others ?? noOthers;
    const entries = access.entries * part + others.entries;
    const indexed = candidate.access.kind === 'index' || joint !== undefined;
    const found =
      joint === undefined ? access.entries : tests.length === 0 ? matches : Math.max(joint.entries, matches);
    const rows = found * part * this.#lookedUp(candidate, tests, found, matches);
    // At least one leaf is read.
    const gone = Math.max(Math.min(1, access.indexLeaves), access.indexLeaves * part);
    const indexLeaves = gone + others.leaves;
    const goneReads = access.indexLeaves === 0 ? 0 : (access.indexMissing / access.indexLeaves) * gone;
    const indexReads = goneReads + others.missing;
    // Rows in the order of primary keys lie in the first leaves. All others, and the few that entries leave, lie anywhere.
    const byKey = candidate.access.kind === 'index' && candidate.access.oneValue;
    const first = Math.max(Math.min(1, access.leaves), access.leaves * part);
    const anywhere = indexed ? leavesOf(rows, this.#table.leaves) : first;
    const leaves = byKey ? (candidate.use === undefined ? first : Math.min(first, anywhere)) : anywhere;
    const tableReads = access.leaves === 0 ? 0 : (access.missing / access.leaves) * leaves;
    const reads = tableReads + indexReads;
    let time = reads * cost.read + (leaves + indexLeaves + access.ranges) * cost.leaf;
    if (candidate.access.kind !== 'table') time += rows * (byKey ? cost.nearLookup : cost.lookup);
    const { use } = candidate;
    const tested = use?.only === true ? found * part : rows;
    for (const { selector } of tests) time += tested * testCost(selector);
    if (tests.length === 0) time += tested * cost.test;
    if (use !== undefined || joint !== undefined) time += (entries - others.entries) * cost.entry;
    if (candidate.access.kind === 'intersection') {
      time += others.entries * cost.key + access.entries * part * cost.probe * candidate.access.others.length;
    }
    const layered = indexed ? this.#overlaidBy(candidate.access, access.entries * part) : { overlaid: 0, time: 0 };
    time += layered.time;
    if (!candidate.ordered && this.#query.unordered !== true) {
      const sorted = Math.min(matches, needed);
      time += matches * cost.pass + sorted * Math.log2(sorted + 1) * cost.sort;
    }
    return {
      matches,
      entries: indexed ? entries : 0,
      rows,
      overlaid: layered.overlaid,
      indexBlocks: indexLeaves,
      indexReads,
      tableBlocks: leaves,
      tableReads,
      blockBytes: this.#table.leafBytes,
      cost: time,
    };
  }
}

/**
 * Returns the part of its range, from 0 to 1, that a scan of the table in key order reads for `needed` rows, from the entries of one value in
 * an index: they have the primary keys of the matching rows, in order. This matters since rows of one value are often clustered. Returns
 * the place of these entries if it is not in memory, and undefined if its block is not enough to know.
 */
function scannedPart(
  state: TableState,
  { ranges: [range = {}], descending }: TableAccess,
  { index, ranges: [{ from, to } = {}] }: IndexAccess,
  needed: number,
): number | TreePlace | undefined {
  const bound = descending ? range.to : range.from;
  const end = descending ? to : from;
  const key =
    bound === undefined || from === undefined ? end : concatBytes(from.subarray(0, endOfValues(from, index)), bound);
  if (key === undefined) return undefined;
  const tree = state.treeOf(index) as Tree;
  const leaf = tree.peekLeaf(key);
  if (leaf === undefined) return { tree, key };
  const at = leaf.lowerBound(key);
  const first = descending ? Math.max(at - needed, from === undefined ? 0 : leaf.lowerBound(from)) : at;
  const behind = descending ? at : Math.min(at + needed, to === undefined ? leaf.count : leaf.lowerBound(to));
  // The entries begin in the next leaf, or there are none.
  if (first >= behind) return undefined;
  const last = leaf.key(descending ? first : behind - 1);
  const primaryKey = primaryKeyIn(leaf, last, index);
  const read = descending ? { ...range, from: primaryKey } : { ...range, to: primaryKey };
  const entriesIn = (one: KeyRange): number => estimateRanges(state.tree, [one]).entries;
  // The other entries lie in other leaves. Their rows are assumed to be as far apart as these.
  return Math.min(1, ((entriesIn(read) / Math.max(1, entriesIn(range))) * needed) / (behind - first));
}
