/**
 * Skips the rows that `offset()` leaves out by the counts in the nodes of a tree, where an access gives just the rows that are
 * asked for, in their order: a page far behind costs as much as the first one.
 */
import { compareBytes, prefixEnd } from '../../base/bytes.ts';
import { isTruncatedComponent, skipKeyComponent } from '../../format/ordered-key.ts';
import type { Node } from '../../format/node.ts';
import type { TableIndex } from '../../schema/table-shape.ts';
import type { TableState } from '../../view/table-state.ts';
import type { KeyRange } from '../../tree/cursor.ts';
import { loadChild } from '../../tree/tree.ts';
import type { Tree } from '../../tree/tree.ts';
import { endOfValue } from '../../schema/table-shape.ts';
import type { IndexAccess, TableAccess } from '../planner/access-paths.ts';
import { countBelow, countMerged } from './range-count.ts';

const noBytes = new Uint8Array(0);

/** What is left of an access, and how many of its rows are to be skipped yet. */
export interface Skipped {
  readonly access: IndexAccess | TableAccess;
  readonly offset: number;
}

/**
 * The same with changes that are not merged, each of which may shift the rows behind it by one: so many rows fewer are skipped, and
 * then it is counted how many those are by now.
 */
async function skipChanged(
  state: TableState,
  access: TableAccess,
  offset: number,
  breathe: () => void | Promise<void>,
): Promise<Skipped | undefined> {
  const skipped = await skipStored(state, access, offset - state.layerRows);
  // Then not even as many are left as could have been inserted.
  if (skipped === undefined) return undefined;
  const [before] = access.ranges as [KeyRange];
  const [behind] = skipped.access.ranges as [KeyRange];
  const passed = access.descending ? { ...before, from: behind.to } : { ...before, to: behind.from };
  return { access: skipped.access, offset: offset - (await countMerged(state, passed, breathe)) };
}

/** Skips as many rows of an access as can be counted. Reads the way to the first row that is left, and little else. */
export function skipRows(
  state: TableState,
  access: IndexAccess | TableAccess,
  offset: number,
  breathe: () => void | Promise<void>,
): Promise<Skipped | undefined> {
  return access.kind === 'table' && state.layers.length > 0
    ? skipChanged(state, access, offset, breathe)
    : skipStored(state, access, offset);
}

/** What was merged alone. Undefined if nothing is left. */
async function skipStored(
  state: TableState,
  access: IndexAccess | TableAccess,
  offset: number,
): Promise<Skipped | undefined> {
  const index = access.kind === 'index' ? access.index : undefined;
  const tree = index === undefined ? state.tree : (state.treeOf(index) as Tree);
  const range = access.ranges[0] as KeyRange;
  const root = tree.peekRoot() ?? (await tree.loadRoot());
  const left = (rest: KeyRange): IndexAccess | TableAccess => ({ ...access, ranges: [rest] });
  if (!access.descending) {
    const before = range.from === undefined ? 0 : await countBelow(tree, root, range.from);
    const first = await entryAt(tree, root, before + offset);
    if (first === undefined || isAtOrAbove(first.key, range.to)) return undefined;
    return isCut(index, first) ? { access, offset } : { access: left({ ...range, from: first.key }), offset: 0 };
  }
  const end = range.to === undefined ? tree.count : await countBelow(tree, root, range.to);
  // The last one that is skipped, as far as entries come from the end.
  const last = await entryAt(tree, root, end - offset);
  if (last === undefined || !isAtOrAbove(last.key, range.from ?? noBytes)) return undefined;
  if (isCut(index, last)) return { access, offset };
  if (access.kind === 'table' || access.oneValue) return { access: left({ ...range, to: last.key }), offset: 0 };
  // Entries of one value come by ascending primary key: those of this one are left, and skipped one by one.
  const { node, key } = last;
  const above = prefixEnd(key.slice(0, endOfValue(node, key, key.length, access.index)));
  const skipped = above === undefined || isAtOrAbove(above, range.to) ? 0 : end - (await countBelow(tree, root, above));
  return { access: left({ ...range, to: skipped === 0 ? range.to : above }), offset: offset - skipped };
}

interface Entry {
  readonly node: Node;
  readonly key: Uint8Array;
}

/** The entry with so many before it; undefined where there is none. */
async function entryAt(tree: Tree, root: Node, position: number): Promise<Entry | undefined> {
  if (position < 0 || position >= tree.count) return undefined;
  let node = root;
  let left = position;
  while (node.level > 0) {
    let child = 0;
    while (left >= node.childCount(child)) left -= node.childCount(child++);
    node = tree.source.peekChild(node, child) ?? (await loadChild(tree.source, node, child));
  }
  return { node, key: node.key(left) };
}

function isAtOrAbove(key: Uint8Array, bound: Uint8Array | undefined): boolean {
  return bound !== undefined && compareBytes(key, bound) >= 0;
}

/** Whether an entry holds only the first bytes of a value: where its row belongs among others is known by the rows alone. */
function isCut(index: TableIndex | undefined, { node, key }: Entry): boolean {
  if (index === undefined) return false;
  endOfValue(node, key, key.length, index);
  let end = 0;
  for (const { typeId } of index.fields) {
    end = skipKeyComponent(key, end, typeId);
    if (isTruncatedComponent(key, end, typeId)) return true;
  }
  return false;
}
