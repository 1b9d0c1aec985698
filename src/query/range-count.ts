/** How many entries of a tree lie in a range, from the counts in its nodes: only the blocks at the two ends are read. */
import type { Node } from '../format/node.ts';
import type { KeyRange } from '../tree/cursor.ts';
import { SplitTree, splitRange } from '../tree/split-tree.ts';
import { loadChild } from '../tree/tree.ts';
import type { Tree } from '../tree/tree.ts';

/** Entries of the tree with keys below `key`. */
export async function countBelow(tree: Tree, root: Node, key: Uint8Array): Promise<number> {
  let node = root;
  let below = 0;
  while (node.level > 0) {
    const child = node.childFor(key);
    for (let i = 0; i < child; i++) below += node.childCount(i);
    node = tree.source.peekChild(node, child) ?? (await loadChild(tree.source, node, child));
  }
  return below + node.lowerBound(key);
}

export async function countRange(tree: Tree, range: KeyRange): Promise<number> {
  if (tree instanceof SplitTree) {
    const [under, above] = splitRange(range, tree.bound);
    const lower = tree.lower === undefined || under === undefined ? 0 : await countRange(tree.lower, under);
    return lower + (above === undefined ? 0 : await countRange(tree.upper, above));
  }
  const { from, to } = range;
  if (tree.ref === null) return 0;
  if (from === undefined && to === undefined) return tree.count;
  const root = tree.peekRoot() ?? (await tree.loadRoot());
  const [start, end] = await Promise.all([
    from === undefined ? 0 : countBelow(tree, root, from),
    to === undefined ? tree.count : countBelow(tree, root, to),
  ]);
  return Math.max(0, end - start);
}
