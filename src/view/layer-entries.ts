/**
 * Entries of an index for the rows of a layer, which is in memory: the index itself has no entries of unmerged rows.
 * They are made when a query first uses that index.
 */
import type { Pacer } from '../base/pacer.ts';
import { KeyList } from '../format/key-list.ts';
import { NodeEntries } from '../format/node-entries.ts';
import type { Node } from '../format/node.ts';
import { treeOfNode } from '../tree/tree.ts';
import type { Tree } from '../tree/tree.ts';
import { isDeleted } from './merged-cursor.ts';
import { indexLeafShape } from '../schema/table-shape.ts';
import type { TableIndex, TableShape } from '../schema/table-shape.ts';

/** Name of nodes that only memory holds. */
const memoryName = 'memory/entries';

export interface LayerEntries {
  /** A single leaf of entries, ascending. */
  readonly tree: Tree;
  /** For each entry, which row of the layer it is of. Rows that are marked as deleted have none. */
  readonly rows: Uint32Array;
}

/**
 * Whether entries of an index can be made for all layers of a table: their rows are in memory and could be made, and the
 * index is not on a function.
 */
export function haveEntries({ layers }: { readonly layers: readonly Tree[] }, { result }: TableIndex): boolean {
  return result === undefined && layers.every(({ node, mayBreak }) => node?.level === 0 && !mayBreak);
}

/** Makes the entries of an index for the rows in the node of a layer. */
export async function makeLayerEntries(
  node: Node,
  shape: TableShape,
  index: TableIndex,
  pacer: Pacer,
): Promise<LayerEntries> {
  const keys = new KeyList();
  const rows: number[] = [];
  let primaryKey = new Uint8Array(64);
  for (let i = 0; i < node.count; i++) {
    if (isDeleted(node, i)) continue;
    const length = node.keyLength(i);
    if (length > primaryKey.length) primaryKey = new Uint8Array(length * 2);
    node.copyKey(i, primaryKey, 0);
    if (shape.writeIndexEntry(keys.writer, index, node, node.rowBase(i), primaryKey, length)) {
      keys.end();
      rows.push(i);
    }
    if ((i & 0xff) === 0 && pacer.due()) await pacer.pause();
  }
  const order = await keys.sorted(pacer);
  const entries = new NodeEntries(indexLeafShape, order.length);
  for (const position of order) entries.addKey(keys.bytes, keys.start(position), keys.endOf(position));
  const leaf = entries.toNode(memoryName);
  node.grow(leaf.sizeBytes + order.byteLength);
  return { tree: treeOfNode(leaf), rows: order.map((position) => rows[position] as number) };
}
