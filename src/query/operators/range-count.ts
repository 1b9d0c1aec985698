/** Counts the entries of a tree in a range by the counts in its nodes. Only the blocks at the two ends are read. */
import { isPromise } from '../../base/brands.ts';
import type { Node } from '../../format/node.ts';
import { isDeleted } from '../../view/merged-cursor.ts';
import type { TableState } from '../../view/table-state.ts';
import type { KeyRange } from '../../tree/cursor.ts';
import { TwoPartTree, splitRange } from '../../tree/two-part-tree.ts';
import { loadChild } from '../../tree/tree.ts';
import type { RowRef, Tree } from '../../tree/tree.ts';
import { LookupPace } from './lookups.ts';

/** Entries of the tree with keys below `key`. */
export async function countBelow(tree: Tree, root: Node, key: Uint8Array): Promise<number> {
  let node = root;
  let below = 0;
  while (node.level > 0) {
    const child = node.childFor(key);
    for (let i = 0; i < child; i++) below += node.childCount(i);
    node = tree.source.getCachedChild(node, child) ?? (await loadChild(tree.source, node, child));
  }
  return below + node.lowerBound(key);
}

export async function countRange(tree: Tree, range: KeyRange): Promise<number> {
  if (tree instanceof TwoPartTree) {
    const [under, above] = splitRange(range, tree.bound);
    const lower = tree.lower === undefined || under === undefined ? 0 : await countRange(tree.lower, under);
    return lower + (above === undefined ? 0 : await countRange(tree.upper, above));
  }
  const { from, to } = range;
  if (tree.ref === null) return 0;
  if (from === undefined && to === undefined) return tree.count;
  const root = tree.getCachedRoot() ?? (await tree.loadRoot());
  const [start, end] = await Promise.all([
    from === undefined ? 0 : countBelow(tree, root, from),
    to === undefined ? tree.count : countBelow(tree, root, to),
  ]);
  return Math.max(0, end - start);
}

/** All rows in a range of primary keys: from the tree's own counts, corrected by the changes of unmerged commits. */
export async function countMerged(
  state: TableState,
  range: KeyRange,
  breathe: () => void | Promise<void>,
): Promise<number> {
  let total = await countRange(state.tree, range);
  if (state.layers.length === 0) return total;
  const changes = state.scanLayers(range, true);
  const pace = new LookupPace(state.tree.source.memory);
  const waiting: Promise<void>[] = [];
  let room = pace.step(Number.POSITIVE_INFINITY);
  let key = new Uint8Array(256);
  const subtract = (before: RowRef | undefined): void => {
    if (before !== undefined) total--;
  };
  for (;;) {
    let more = changes.next();
    if (isPromise(more)) more = await more;
    if (!more) break;
    const { node, from, to } = changes;
    for (let i = from; i < to; i++) {
      const length = node.keyLength(i);
      if (key.length < length) key = new Uint8Array(length * 2);
      node.copyKey(i, key, 0);
      const before = state.tree.lookup(key, length);
      if (!isPromise(before)) subtract(before);
      else {
        const subtracted = before.then(subtract);
        // If one lookup fails, the others are still under way, and their errors must not go unhandled.
        subtracted.catch(() => undefined);
        waiting.push(subtracted);
      }
      if (waiting.length >= room) {
        await Promise.all(waiting);
        waiting.length = 0;
        room = pace.step(Number.POSITIVE_INFINITY);
      }
      if (!isDeleted(node, i)) total++;
    }
    await breathe();
  }
  await Promise.all(waiting);
  return total;
}
