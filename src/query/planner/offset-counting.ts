/** Whether the rows that `offset()` leaves out can be passed by the counts in the nodes of a tree, and whether that pays. */
import type { TableState } from '../../view/table-state.ts';
import { SplitTree } from '../../tree/split-tree.ts';
import { residualOf } from './access-paths.ts';
import type { Candidate, CompiledQuery, IndexAccess, TableAccess } from './access-paths.ts';
import { estimateTree } from './tree-statistics.ts';

/** Fewer rows are passed faster than their number is looked up. */
const fewestSkipped = 16;

/** The access of a plan whose rows can be skipped by counting, if it is one. */
export function skippable(
  state: TableState,
  query: CompiledQuery,
  { access, covered, ordered }: Candidate,
): IndexAccess | TableAccess | undefined {
  if (query.offset < fewestSkipped || !ordered || query.counts === true) return undefined;
  if ((access.kind !== 'table' && access.kind !== 'index') || access.ranges.length !== 1) return undefined;
  if (residualOf(query, covered).length > 0) return undefined;
  if (state.layers.length > 0 && !paysDespite(state, access, query.offset)) return undefined;
  const tree = access.kind === 'table' ? state.tree : state.treeOf(access.index);
  return tree === undefined || tree instanceof SplitTree || tree.mayBreak || tree.ref === null ? undefined : access;
}

/**
 * What commits have changed that are not merged yet is not in the counts: of a table it is found out by looking the changed rows
 * up, each of which may take as long as passing a leaf.
 */
function paysDespite(state: TableState, { kind }: IndexAccess | TableAccess, offset: number): boolean {
  const { entries, leaves } = estimateTree(state.tree);
  return kind === 'table' && offset >= fewestSkipped + state.layerRows * (1 + entries / Math.max(1, leaves));
}
