/** Whether a leaf is one of the tree in which it was found: under a right checksum, too, it may be another table's. */
import { CorruptionError } from '../base/errors.ts';
import { BlockKind } from '../format/block.ts';
import type { EntryShape } from '../format/node-entries.ts';
import type { Node } from '../format/node.ts';
import { inlineBytes, nonAsciiFlag } from '../format/row-layout.ts';
import type { LayoutField } from '../format/row-layout.ts';

/** So often the heap may be pointed to as a whole without being looked at: it is not much, whoever copies the rows. */
const mostSharedBytes = 1024 * 1024;

/**
 * Whether every value has bytes of its own in the heap. If many pointed to the same bytes, the rows would take up far more
 * than the block as soon as they are copied or made into objects.
 */
function hasOwnValues(node: Node, variableFields: readonly LayoutField[]): boolean {
  const heapBytes = node.heapEnd - node.heapStart;
  const { count, rowsView } = node;
  if (count * variableFields.length * heapBytes <= mostSharedBytes) return true;
  let bytes = 0;
  for (let i = 0; i < count; i++) {
    const base = node.rowBase(i);
    for (let f = 0; f < variableFields.length; f++) {
      const length = rowsView.getUint32(base + (variableFields[f] as LayoutField).offset, true) & ~nonAsciiFlag;
      if (length > inlineBytes) bytes += length;
    }
  }
  return bytes <= heapBytes;
}

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
  if (node.schemaVersion !== schemaVersion) {
    return `The leaf's rows are of schema version ${node.schemaVersion}, not ${schemaVersion}`;
  }
  return layout === undefined || hasOwnValues(node, layout.variableFields)
    ? undefined
    : 'The values of its rows are longer than all that it holds';
}

/** Throws `CorruptionError` for a leaf that is not of its tree. */
export function checkLeaf(node: Node, leaf: EntryShape): void {
  const problem = leafProblem(node, leaf);
  if (problem !== undefined) throw new CorruptionError(node.name, problem);
}
