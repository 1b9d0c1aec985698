/** How far the rows of the next version were made. They are made in the order of the active version's keys. */
import { compareBytes, keyAfter } from '../base/bytes.ts';
import type { NextVersion } from '../view/view.ts';
import { TreeCursor } from '../tree/cursor.ts';
import { SplitTree } from '../tree/split-tree.ts';
import type { Tree } from '../tree/tree.ts';

/** All rows, none in order, or those whose keys are under a bound. */
export type MadeRows = 'all' | 'none' | Uint8Array;

/** What Block 0 says of it. */
export function madeRows(nextVersion: NextVersion | undefined): MadeRows {
  const built = nextVersion?.migration?.built;
  if (built === null) return 'all';
  return built ? keyAfter(Buffer.from(built, 'base64')) : 'none';
}

export function hasMade(made: MadeRows, key: Uint8Array): boolean {
  return typeof made === 'string' ? made === 'all' : compareBytes(key, made) < 0;
}

export function isSameMade(a: MadeRows, b: MadeRows): boolean {
  return typeof a === 'string' || typeof b === 'string' ? a === b : compareBytes(a, b) === 0;
}

/** The part of a tree from a key on, if there is any. */
export async function rowsFrom(tree: Tree, from: Uint8Array): Promise<Tree[]> {
  return (await new TreeCursor(tree, { from }).next()) ? [new SplitTree(undefined, tree, from)] : [];
}
