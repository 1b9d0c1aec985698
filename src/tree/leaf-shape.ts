/** Whether a leaf is one of the tree in which it was found: under a right checksum, too, it may be another table's. */
import { CorruptionError } from '../base/errors.ts';
import { BlockKind } from '../format/block.ts';
import type { EntryShape } from '../format/node-entries.ts';
import type { Node } from '../format/node.ts';

/** Why the entries of a leaf cannot be read as what the tree holds; undefined if they can, and for inner nodes. */
export function leafProblem(node: Node, leaf: EntryShape): string | undefined {
  if (node.level > 0) return undefined;
  const { kind, layout, schemaVersion = 0 } = leaf;
  if (node.kind !== kind) {
    const found = node.kind === BlockKind.table ? 'rows' : 'index entries';
    return `The leaf holds ${found}, which is not what this tree is for`;
  }
  if (layout !== undefined && node.stride !== layout.stride) {
    return `The leaf's rows are ${node.stride} bytes long, and the schema's are ${layout.stride}`;
  }
  if (node.schemaVersion === schemaVersion) return undefined;
  return `The leaf's rows are of schema version ${node.schemaVersion}, not ${schemaVersion}`;
}

/** Throws `CorruptionError` for a leaf that is not of its tree. */
export function checkLeaf(node: Node, leaf: EntryShape): void {
  const problem = leafProblem(node, leaf);
  if (problem !== undefined) throw new CorruptionError(node.name, problem);
}
