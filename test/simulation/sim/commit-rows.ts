/** The rows that a commit changes, wherever they are: in the commit, or in the runs that were staged for it. */
import type { TableChange } from '../../../src/format/commit.ts';
import { stagedName } from '../../../src/format/object-names.ts';
import { openNode } from '../../../src/format/node.ts';
import type { Node } from '../../../src/format/node.ts';

/** The objects in the store, by their names. */
export type Objects = ReadonlyMap<string, Uint8Array>;

/** A row: entry `i` of a leaf. */
export interface ChangedRow {
  readonly node: Node;
  readonly i: number;
}

/** Names of the staged objects that a change needs. */
export function stagedNames({ staged }: TableChange): string[] {
  return (staged?.runs ?? []).map(stagedName);
}

/** Throws where a staged object is missing. */
export function* changedRows(
  { node, staged }: Pick<TableChange, 'node' | 'staged'>,
  objects: Objects,
): Generator<ChangedRow, void, undefined> {
  if (node.level === 0) {
    for (let i = 0; i < node.count; i++) yield { node, i };
    return;
  }
  for (let i = 0; i < node.count; i++) {
    const { birth: run, id, sizeBytes } = node.child(i);
    const name = stagedName(staged?.runs[run] ?? 'missing');
    const object = objects.get(name);
    if (object === undefined) throw new Error(`${name} is not there`);
    const start = Number.parseInt(id, 16);
    const child = openNode(`${name}+${start}`, object.subarray(start, start + sizeBytes));
    yield* changedRows({ node: child, ...(staged === undefined ? {} : { staged }) }, objects);
  }
}
