/**
 * Checks which blocks a new tree shares with another tree. A Block 0 may refer to a block only if the Block 0 before it does, or if
 * the block is born with it or later: gc may be about to delete any other (docs/protocol.md, "Written ahead").
 */
import type { Pacer } from '../base/pacer.ts';
import { isSameBlock } from '../format/block.ts';
import type { BlockRef } from '../format/block.ts';
import type { Node } from '../format/node.ts';
import { isSameTree, loadChild } from './tree.ts';
import type { Tree } from './tree.ts';

/**
 * Whether a tree reaches only blocks of a birth of at least `birth`, and blocks of the present tree. The answer may be false although
 * it does, if the trees have other keys above the same block. Reads the inner nodes that were born then, and the present ones above
 * the blocks that are shared.
 */
export async function sharesOnly(tree: Tree, present: Tree, birth: number, pacer: Pacer): Promise<boolean> {
  if (tree.ref === null || isSameTree(tree, present)) return true;
  if (tree.ref.birth < birth) return false;
  const root = tree.getCachedRoot() ?? (await tree.loadRoot());
  return sharesBelow(root, tree, present, birth, pacer);
}

/** Whether the same holds for the children of a node. */
async function sharesBelow(node: Node, tree: Tree, present: Tree, birth: number, pacer: Pacer): Promise<boolean> {
  if (node.level === 0) return true;
  for (let i = 0; i < node.count; i++) {
    if (pacer.due()) await pacer.pause();
    const ref = node.child(i);
    if (ref.birth < birth) {
      if (!(await isBlockOf(present, ref, node.level - 1, node.key(i)))) return false;
    } else if (node.level > 1) {
      const child = tree.source.getCachedChild(node, i) ?? (await loadChild(tree.source, node, i));
      if (!(await sharesBelow(child, tree, present, birth, pacer))) return false;
    }
  }
  return true;
}

/** Whether a tree has a block at a level, where a key belongs. */
async function isBlockOf(tree: Tree, ref: BlockRef, level: number, key: Uint8Array): Promise<boolean> {
  if (tree.ref === null || tree.ref.level < level) return false;
  if (tree.ref.level === level) return isSameBlock(tree.ref, ref);
  let node = tree.getCachedRoot() ?? (await tree.loadRoot());
  for (;;) {
    const i = node.childFor(key);
    if (node.level === level + 1) return isSameBlock(node.child(i), ref);
    node = tree.source.getCachedChild(node, i) ?? (await loadChild(tree.source, node, i));
  }
}
