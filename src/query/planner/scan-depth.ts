/**
 * How far a scan in the order of keys goes until it has found enough rows, where an index has those rows by themselves: its
 * entries of one value name primary keys in ascending order. Rows of a value often lie side by side, anywhere in the table.
 */
import type { TableState } from '../../view/table-state.ts';
import type { Tree } from '../../tree/tree.ts';
import { endOfValue } from '../../schema/table-shape.ts';
import type { IndexAccess } from './access-paths.ts';
import { estimateRanges } from './tree-statistics.ts';

/**
 * The part of the table before the last of the first `needed` rows that an access by one value gives, from 0 to 1. Undefined
 * where that cannot be told from what is in memory.
 */
export function stopPosition(state: TableState, access: IndexAccess, needed: number): number | undefined {
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
