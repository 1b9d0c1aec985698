/**
 * What a way to come by the rows of a query would cost: entries and rows to be looked at, blocks to be read, and all of it as
 * one number. Worked out from what is in memory; planning reads nothing.
 */
import { endOfValue } from '../../schema/table-shape.ts';
import type { TreeEstimate } from '../../tree/tree-estimate.ts';
import type { Tree } from '../../tree/tree.ts';
import { haveEntries } from '../../view/layer-entries.ts';
import type { TableState } from '../../view/table-state.ts';
import { filterOf } from '../conditions/condition.ts';
import type { Condition } from '../conditions/condition.ts';
import { isMerged } from './access-paths.ts';
import type { Access, IntersectionAccess, Candidate, CompiledQuery, UnionAccess, IndexAccess } from './access-paths.ts';
import { countableAccess } from './query-spec.ts';
import { sampleMatches } from './sampling.ts';
import { estimateEntries, estimateRanges } from './range-estimate.ts';

// What the single pieces of work of a query take: plans are compared by them.

/** Costs in microseconds, as measured on one core with everything in memory, but for the request. */
const cost = {
  /** A block that must be read. A store takes longer; several reads are under way at a time. */
  read: 5000,
  /** Testing a row in its leaf. */
  test: 0.006,
  /** Testing it by foreign code, which gets the whole row. */
  slowTest: 1,
  /** Looking up a row by its primary key, and where rows come in the order of keys. */
  lookup: 0.5,
  nearLookup: 0.2,
  /** Reading an entry of an index where its row is not looked up. */
  entry: 0.15,
  /** Holding a primary key, and looking for one among those that are held, or in an index. */
  key: 0.15,
  probe: 0.2,
  /** Setting about a leaf, or a range. */
  leaf: 0.5,
  /** Putting a row in order among all, per doubling; and passing one that is not among the first. */
  sort: 0.1,
  pass: 0.03,
  /** A row of a commit that is not merged yet, where all of them are gone through. */
  overlaid: 0.1,
  /** An entry of a layer, where rows have entries of their own, and the search for the first of them. */
  layerEntry: 0.5,
  layer: 1,
} as const;

// What a way to come by rows gives, and what it takes to go through all of it: entries, rows and blocks.

/** What an access gives, and what it takes to go through all of it. */
interface AccessEstimate {
  /** Entries or rows that it goes through. */
  readonly entries: number;
  readonly exact: boolean;
  /** Leaves of the index, and those that are missing. */
  readonly indexLeaves: number;
  readonly indexMissing: number;
  /** Leaves of the table, and those that are missing. */
  readonly leaves: number;
  readonly missing: number;
  readonly ranges: number;
  /** Of an intersection: entries whose keys are in all of its indexes, and what is read of the others before all else. */
  readonly joint?: { readonly entries: number; readonly others: WholeRead };
}

/** What is read to its end, however soon the rest is over. */
interface WholeRead {
  readonly entries: number;
  readonly leaves: number;
  readonly missing: number;
}

const noOthers: WholeRead = { entries: 0, leaves: 0, missing: 0 };

type Mutable<T> = { -readonly [K in keyof T]: T[K] };

/** Leaves that so many rows in random places are in. */
function leavesOf(rows: number, leaves: number): number {
  return leaves <= 1 ? Math.min(rows, leaves) : leaves * (1 - (1 - 1 / leaves) ** rows);
}

/** Worked out from what is in memory. */
function estimateAccess(state: TableState, access: Access): AccessEstimate {
  const none = { indexLeaves: 0, indexMissing: 0, ranges: 1, exact: true };
  const table = state.tree.estimate();
  const missingOf = (leaves: number): number => leaves * (1 - table.cachedFraction);
  switch (access.kind) {
    case 'nothing':
      return { ...none, entries: 0, leaves: 0, missing: 0 };
    case 'keys': {
      const entries = access.keys.length;
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
      return estimateIntersection(state, access);
    case 'union': {
      const parts = access.parts.map(({ plan }) => estimateAccess(state, plan.access));
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

/** Conditions on different fields are taken to have nothing to do with each other. */
function estimateIntersection(state: TableState, { first, others }: IntersectionAccess): AccessEstimate {
  const table = state.tree.estimate();
  const sum: Mutable<AccessEstimate> = { ...estimateAccess(state, first) };
  let joint = sum.entries;
  let read = 0;
  let leaves = 0;
  let missing = 0;
  for (const other of others) {
    const more = estimateAccess(state, other);
    joint *= more.entries / Math.max(1, table.entries, more.entries);
    // Of entries that are merely passed, the leaves between those that are looked for are not read.
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

/** Part of the rows that is taken to match a condition of which nothing is known. */
const usualSelectivity = 0.25;
/** Matching rows may lie together at the far end: so many times more may have to be looked at before enough are found. */
const misfortune = 4;

/** What a candidate would cost. */
export interface CostEstimate {
  /** Rows that match, of all that the access gives. */
  readonly matches: number;
  /** Entries of an index that are read. */
  readonly entries: number;
  /** Rows that are looked at. */
  readonly rows: number;
  /** Rows of unmerged commits that are looked at beside those. */
  readonly overlaid: number;
  /** Blocks that are used, and those that must be read: of indexes and of the table. */
  readonly indexBlocks: number;
  readonly indexReads: number;
  readonly tableBlocks: number;
  readonly tableReads: number;
  /** Size of a block, in bytes. */
  readonly blockBytes: number;
  /** All of it as one number, in microseconds of this machine or a like one. */
  readonly cost: number;
}

const notEstimated: CostEstimate = {
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

export interface Estimated {
  readonly candidate: Candidate;
  readonly access: AccessEstimate;
  estimate: CostEstimate;
}

/** The part of a cost that is reading what is not in memory. */
export function costOfReads({ indexReads, tableReads }: CostEstimate): number {
  return (indexReads + tableReads) * cost.read;
}

/** Whether rows come by one access. */
function isSingle({ candidate: { access } }: Estimated): boolean {
  return access.kind !== 'union' && access.kind !== 'intersection';
}

/** Whether the table is read from its first row on, in ascending order. */
function isFullScan({ access, ordered }: Candidate): boolean {
  return ordered && access.kind === 'table' && !access.descending && access.ranges[0]?.from === undefined;
}

/** The plans of one query, to be compared. */
export class PlanCosts {
  readonly #state: TableState;
  readonly #query: CompiledQuery;
  readonly #table: TreeEstimate;
  readonly #overlaid: number;
  /** The part of the table that a scan goes through until it has enough rows, if that is known. */
  #stop: number | undefined;

  constructor(state: TableState, query: CompiledQuery) {
    this.#state = state;
    this.#query = query;
    this.#table = state.tree.estimate();
    this.#overlaid = state.layerRows;
  }

  /** Candidates with what their accesses give. */
  open(candidates: readonly Candidate[]): Estimated[] {
    return candidates.map((candidate) => {
      const access = estimateAccess(this.#state, candidate.access);
      return { candidate, access, estimate: notEstimated };
    });
  }

  /** Finds out how far a scan has to go for as many rows as are wanted, if there is one and an index tells. */
  locateStop(all: readonly Estimated[]): void {
    const { limit, offset } = this.#query;
    if (limit === undefined || this.#overlaid > 0 || !all.some(({ candidate }) => isFullScan(candidate))) return;
    for (const { candidate } of all) {
      const { access, residual } = candidate;
      if (access.kind !== 'index' || !access.oneValue || residual.length > 0) continue;
      this.#stop = scannedPart(this.#state, access, limit + offset);
      return;
    }
  }

  /** The access that gives the fewest entries. */
  #fewest(all: readonly Estimated[]): Estimated {
    // What is found by several accesses is not sampled.
    const single = all.filter(isSingle);
    return (single.length === 0 ? all : single).reduce((best, one) =>
      one.access.entries < best.access.entries ? one : best,
    );
  }

  /** Rows that match, where an access gives just them; undefined where rows must be tested to know. */
  countedMatches(all: readonly Estimated[]): number | undefined {
    let fewest: Estimated | undefined;
    for (const one of all) {
      if (fewest !== undefined && fewest.access.entries <= one.access.entries) continue;
      if (isSingle(one) && one.candidate.residual.length === 0) fewest = one;
    }
    return fewest?.access.entries;
  }

  /**
   * Rows that match: counted by the access that gives the fewest, and of those the part that matches in a sample. At least
   * a little more than nothing.
   */
  matches(all: readonly Estimated[]): number {
    const fewest = this.#fewest(all);
    const { candidate, access } = fewest;
    const { residual } = candidate;
    const { tested, matched } = sampleMatches(this.#state, candidate.access, filterOf(residual));
    const guessed = residual.reduce((part, condition) => part * this.#selectivity(condition, all), 1);
    // Of few rows, the sample says little.
    return (access.entries * (matched + guessed)) / (tested + 1);
  }

  /** What the rows take that a query holds that sorts so many, in bytes. */
  heldBytes(matches: number): number {
    const { limit, offset } = this.#query;
    const { leaves, leafBytes, entries } = this.#table;
    const held = limit === undefined ? matches : Math.min(matches, limit + offset);
    return (held * leaves * leafBytes) / Math.max(1, entries);
  }

  /** Which part of all rows matches a condition: as a tree says that has it by itself, if one has. */
  #selectivity(condition: Condition, all: readonly Estimated[]): number {
    const counted = all.find(({ candidate: { covered }, access: { exact, joint } }) => {
      return exact && joint === undefined && covered.length === 1 && covered[0] === condition;
    });
    return counted === undefined ? usualSelectivity : Math.min(1, counted.access.entries / this.#table.entries);
  }

  /** Whether the tree itself says how many entries a range has. */
  #isCounted({ access, residual }: Candidate): boolean {
    if (residual.length > 0) return false;
    return access.kind === 'table' || (access.kind === 'index' && this.#overlaid === 0);
  }

  /** Only the blocks at both ends of a range are used. */
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
      matches,
      entries: 0,
      rows: 0,
      overlaid: 0,
      indexBlocks: ofIndex ? blocks : 0,
      indexReads: ofIndex ? reads : 0,
      tableBlocks: ofIndex ? 0 : blocks,
      tableReads: ofIndex ? 0 : reads,
      blockBytes: this.#table.leafBytes,
      cost: time,
    };
  }

  /** All parts are gone through to their ends, and what they give is sorted. */
  #unionEstimate({ parts }: UnionAccess, matches: number): CostEstimate {
    const sum = {
      matches,
      entries: 0,
      rows: 0,
      overlaid: 0,
      indexBlocks: 0,
      indexReads: 0,
      tableBlocks: 0,
      tableReads: 0,
      blockBytes: this.#table.leafBytes,
      cost: matches * cost.pass,
    };
    for (const { query, plan } of parts) {
      const costs = new PlanCosts(this.#state, query);
      const access = estimateAccess(this.#state, plan.access);
      const part = costs.estimate(plan, access, access.entries);
      sum.entries += part.entries;
      sum.rows += part.rows;
      sum.overlaid += part.overlaid;
      sum.indexBlocks += part.indexBlocks;
      sum.indexReads += part.indexReads;
      sum.tableBlocks += part.tableBlocks;
      sum.tableReads += part.tableReads;
      sum.cost += part.cost;
    }
    return sum;
  }

  /** The part of the entries, or keys, whose rows are looked at. */
  #lookedUp({ use }: Candidate, tests: readonly unknown[], entries: number, matches: number): number {
    if (use === undefined) return 1;
    if (use.only) return 0;
    return Math.min(1, matches / Math.max(1, entries)) ** (use.tests.length / tests.length);
  }

  /** Rows of unmerged commits that an access looks at which goes through so many entries. */
  #overlaidBy(access: Access, entries: number): number {
    if (!this.#hasEntries(access)) return this.#overlaid;
    const part = Math.min(1, entries / Math.max(1, this.#table.entries));
    // The first one of each layer, mostly, to know where it belongs.
    return Math.max(this.#overlaid * part, Math.min(this.#overlaid, this.#state.layers.length));
  }

  #overlaidCost(access: Access, overlaid: number): number {
    if (!this.#hasEntries(access)) return overlaid * cost.overlaid;
    return overlaid * cost.layerEntry + this.#state.layers.length * cost.layer;
  }

  #hasEntries(access: Access): boolean {
    const by = access.kind === 'intersection' ? access.first : access;
    return by.kind === 'index' && haveEntries(this.#state, by.index);
  }

  /** What a candidate costs if so many rows match in all. */
  estimate(candidate: Candidate, access: AccessEstimate, matches: number): CostEstimate {
    const { limit } = this.#query;
    // Those that are skipped by counting cost next to nothing.
    const offset = countableAccess(this.#state, this.#query, candidate) === undefined ? this.#query.offset : 0;
    const needed = limit === undefined ? Number.POSITIVE_INFINITY : limit + offset;
    const stops = (candidate.ordered || this.#query.counts === true) && needed < matches;
    if (this.#query.counts === true && this.#isCounted(candidate)) return this.#countEstimate(access, matches);
    const expected = stops ? needed / Math.max(matches, needed) : 1;
    if (candidate.access.kind === 'union') return this.#unionEstimate(candidate.access, matches);
    const tests = candidate.residual;
    const { joint } = access;
    const isSure = tests.length === 0 && joint === undefined;
    const guessed = isSure ? expected : (expected + Math.min(1, expected * misfortune)) / 2;
    const part = (stops && isFullScan(candidate) ? this.#stop : undefined) ?? guessed;
    const others = joint?.others ?? noOthers;
    const entries = access.entries * part + others.entries;
    const indexed = candidate.access.kind === 'index' || joint !== undefined;
    const found =
      joint === undefined ? access.entries : tests.length === 0 ? matches : Math.max(joint.entries, matches);
    const rows = found * part * this.#lookedUp(candidate, tests, found, matches);
    // The first leaf is there in any case.
    const gone = Math.max(Math.min(1, access.indexLeaves), access.indexLeaves * part);
    const indexLeaves = gone + others.leaves;
    const goneReads = access.indexLeaves === 0 ? 0 : (access.indexMissing / access.indexLeaves) * gone;
    const indexReads = goneReads + others.missing;
    // Rows that come by primary key lie in the first leaves, all others anywhere, and so do the few that entries leave.
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
    for (const { selector } of tests) time += tested * (selector.cost >= 1000 ? cost.slowTest : cost.test);
    if (tests.length === 0) time += tested * cost.test;
    if (use !== undefined || joint !== undefined) time += (entries - others.entries) * cost.entry;
    if (candidate.access.kind === 'intersection') {
      time += others.entries * cost.key + access.entries * part * cost.probe * candidate.access.others.length;
    }
    const overlaid = indexed ? this.#overlaidBy(candidate.access, access.entries * part) : 0;
    if (indexed) time += this.#overlaidCost(candidate.access, overlaid);
    if (!candidate.ordered && this.#query.unordered !== true) {
      const sorted = Math.min(matches, needed);
      time += matches * cost.pass + sorted * Math.log2(sorted + 1) * cost.sort;
    }
    return {
      matches,
      entries: indexed ? entries : 0,
      rows,
      overlaid,
      indexBlocks: indexLeaves,
      indexReads,
      tableBlocks: leaves,
      tableReads,
      blockBytes: this.#table.leafBytes,
      cost: time,
    };
  }
}

// How far a scan in the order of keys goes until it has found enough rows, where an index has those rows by themselves: its
// entries of one value name primary keys in ascending order. Rows of a value often lie side by side, anywhere in the table.

/**
 * Returns the part of the table, from 0 to 1, that a scan reads until it has `needed` of the rows that an index has for one value.
 * Undefined where the blocks in memory do not say.
 */
function scannedPart(state: TableState, access: IndexAccess, needed: number): number | undefined {
  const { index, ranges } = access;
  const tree = state.treeOf(index) as Tree;
  const from = ranges[0]?.from;
  if (from === undefined) return undefined;
  const node = tree.glanceLeaf(from);
  if (node === undefined) return undefined;
  const first = node.lowerBound(from);
  const last = Math.min(first + needed, node.count) - 1;
  // Its entries begin in the next leaf, or there are none.
  if (last < first) return undefined;
  const key = node.key(last);
  const primaryKey = key.subarray(endOfValue(node, key, key.length, index));
  const before = estimateRanges(state.tree, [{ to: primaryKey }]).entries / Math.max(1, state.tree.count);
  // The others lie in leaves behind this one, as far from each other as these.
  return Math.min(1, (before * needed) / (last - first + 1));
}
