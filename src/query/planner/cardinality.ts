/** What a way to come by rows gives, and what it takes to go through all of it: entries, rows and blocks. */
import type { TableState } from '../../view/table-state.ts';
import type { Tree } from '../../tree/tree.ts';
import { isMerged } from './access-paths.ts';
import type { Access, IntersectionAccess } from './access-paths.ts';
import { estimateEntries, estimateRanges, estimateTree } from './tree-statistics.ts';

/** What an access gives, and what it takes to go through all of it. */
export interface AccessEstimate {
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

export const noOthers: WholeRead = { entries: 0, leaves: 0, missing: 0 };

type Mutable<T> = { -readonly [K in keyof T]: T[K] };

/** Leaves that so many rows in random places are in. */
export function leavesOf(rows: number, leaves: number): number {
  return leaves <= 1 ? Math.min(rows, leaves) : leaves * (1 - (1 - 1 / leaves) ** rows);
}

/** Worked out from what is in memory. */
export function estimateAccess(state: TableState, access: Access): AccessEstimate {
  const none = { indexLeaves: 0, indexMissing: 0, ranges: 1, exact: true };
  const table = estimateTree(state.tree);
  const missingOf = (leaves: number): number => leaves * (1 - table.atHand);
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
  const table = estimateTree(state.tree);
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
