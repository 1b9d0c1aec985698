/** Layers of rows as commits leave them, for tests that put them together themselves. */
import { ByteWriter } from '../../../src/base/bytes.ts';
import { NodeEntries } from '../../../src/format/node-entries.ts';
import { RowArena, appendNullRow, writeField } from '../../../src/format/row-encode.ts';
import { rowDeletedFlag } from '../../../src/format/row-layout.ts';
import type { TableShape } from '../../../src/schema/table-shape.ts';
import { treeOfNode } from '../../../src/tree/tree.ts';
import type { Tree } from '../../../src/tree/tree.ts';

/** The key of a row whose primary key is a number. */
export function keyOf(shape: TableShape, id: number): Uint8Array {
  const writer = new ByteWriter();
  shape.writeKey(writer, id);
  return writer.finish();
}

/** A layer with the row that each primary key has, or the mark of one that was deleted. */
export function layerOf(shape: TableShape, rows: ReadonlyMap<number, object | null>): Tree {
  const arena = new RowArena('memory/test');
  const entries = new NodeEntries(shape.changeShape);
  for (const [id, row] of [...rows].toSorted(([a], [b]) => a - b)) {
    const base = appendNullRow(shape.layout, arena.writer);
    for (const field of row === null ? [] : shape.layout.fields) {
      const value: unknown = row?.[field.name as keyof typeof row];
      if (value !== null) writeField(arena.writer, base, arena.heapWriter, field, value);
    }
    if (row === null) arena.writer.bytes[base] = (arena.writer.bytes[base] as number) | rowDeletedFlag;
    const key = keyOf(shape, id);
    entries.addRow(key, 0, key.length, arena, base);
  }
  return treeOfNode(entries.toNode('memory/commit'));
}
