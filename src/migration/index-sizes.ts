/**
 * Computes the bytes that the indexes of a table take, from the references to their blocks. It reads inner blocks and no leaf.
 */
import type { Registry } from '../catalog/registry.ts';
import type { Node } from '../format/node.ts';
import { loadChild } from '../tree/tree.ts';
import type { Tree } from '../tree/tree.ts';
import { indexedFunctions, isSameIndex } from '../view/index-version.ts';
import type { View } from '../view/view.ts';
import type { IndexStatus } from './index-status.ts';

/** Returns the trees of a table's indexes, by the names of the indexes. */
function treesOf(view: View, table: string, registry: Registry): Map<string, Tree> {
  const state = view.table(table);
  if (state === undefined) return new Map();
  const trees = new Map(state.indexes);
  for (const { index, tree } of state.added) trees.set(index.name, tree);
  for (const { index } of indexedFunctions(state.shape, (name) => registry.registeredFunction(name))) {
    const stored = state.indexVersions.find((each) => isSameIndex(each.index, index));
    if (stored !== undefined) trees.set(index.name, stored.tree);
  }
  return trees;
}

/** Returns the bytes of all blocks of a tree. The signal ends the reading. */
async function bytesOf(tree: Tree, signal: AbortSignal | undefined): Promise<number> {
  if (tree.ref === null) return 0;
  const below = async (node: Node): Promise<number> => {
    signal?.throwIfAborted();
    let bytes = 0;
    for (let i = 0; i < node.count; i++) {
      bytes += node.child(i).sizeBytes;
      if (node.level > 1) bytes += await below(await loadChild(tree.source, node, i, true));
    }
    return bytes;
  };
  return tree.ref.sizeBytes + (tree.ref.level === 0 ? 0 : await below(await tree.loadRoot()));
}

/** Adds sizes to the status of indexes. An index of which this node knows no stored tree gets no size. */
export async function withSizes(
  view: View,
  table: string,
  registry: Registry,
  found: readonly IndexStatus[],
  signal: AbortSignal | undefined,
): Promise<IndexStatus[]> {
  const trees = treesOf(view, table, registry);
  const sized: IndexStatus[] = [];
  for (const status of found) {
    const tree = trees.get(status.name);
    sized.push(tree === undefined ? status : { ...status, sizeBytes: await bytesOf(tree, signal) });
  }
  return sized;
}
