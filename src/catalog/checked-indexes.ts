/**
 * The system table that says which unique indexes are checked although they are no indexes of their tables yet. A row is
 * committed like any other, so that every commit is certainly before or after it: those after it were checked.
 */
import { ByteWriter } from '../base/bytes.ts';
import { commitBlockName } from '../format/commit.ts';
import type { TableChange } from '../format/commit.ts';
import { NodeEntries } from '../format/node-entries.ts';
import { openNode } from '../format/node.ts';
import { readField } from '../format/row-decode.ts';
import type { LayoutField } from '../format/row-layout.ts';
import { RowArena } from '../format/row-arena.ts';
import { appendNullRow, writeField } from '../format/row-encode.ts';
import type { StoredSchema } from '../format/stored-schema.ts';
import { Types } from '../format/types.ts';
import { isComplete } from '../schema/added-index.ts';
import type { AddedIndex } from '../schema/added-index.ts';
import { TableShape } from '../schema/table-shape.ts';
import type { TableState } from '../view/table-state.ts';
import type { View } from '../view/view.ts';

/** One row for each index, by its table and name: in which generation the one was added that is checked. */
export const checkedIndexesSchema: StoredSchema = {
  name: '_checked_indexes',
  version: 1,
  fields: [
    { name: 'index', typeId: Types.varchar },
    { name: 'birth', typeId: Types.float64 },
  ],
  primaryKey: ['index'],
  indexes: [],
};

const shape = new TableShape(checkedIndexesSchema);

function fieldOf(name: string): LayoutField {
  return shape.layout.field(name) as LayoutField;
}

/** No two indexes of a database have the same, however long their names are. */
function nameOf(table: string, { index }: AddedIndex): string {
  return JSON.stringify([table, index.name]);
}

function keyOf(table: string, added: AddedIndex): Uint8Array {
  const key = new ByteWriter(64);
  shape.writeKey(key, nameOf(table, added));
  return key.finish();
}

/** The change from which on every commit is checked for an index. */
export function checkingOf(table: string, added: AddedIndex): TableChange {
  const rows = new RowArena('memory/checked');
  const { writer, heapWriter } = rows;
  const base = appendNullRow(shape.layout, writer);
  writeField(writer, base, heapWriter, fieldOf('index'), nameOf(table, added));
  writeField(writer, base, heapWriter, fieldOf('birth'), added.birth);
  const entries = new NodeEntries(shape.changeShape);
  const key = keyOf(table, added);
  entries.addRow(key, 0, key.length, rows, base);
  const name = commitBlockName(shape.name);
  return { schema: shape.schema, node: openNode(name, entries.encode(name, 0, 1)) };
}

/** Whether a view shows that every commit after it is checked for an index, in its blocks or in pending commits. */
export async function isChecked(view: View, table: string, added: AddedIndex): Promise<boolean> {
  const hit = await view.table(shape.name)?.lookup(keyOf(table, added));
  // An index of the same name that was dropped says nothing about this one.
  return hit !== undefined && readField(hit.source, hit.base, fieldOf('birth')) === added.birth;
}

const none: readonly AddedIndex[] = [];

/** The indexes that are being added to a table which a flush on a view must be checked for. */
export function checkedIndexes(view: View, table: TableState): readonly AddedIndex[] | Promise<readonly AddedIndex[]> {
  const unique = table.added.filter((added) => added.index.unique && isComplete(added));
  return unique.length === 0 ? none : checkedOf(view, table, unique);
}

async function checkedOf(view: View, table: TableState, unique: readonly AddedIndex[]): Promise<AddedIndex[]> {
  const checked: AddedIndex[] = [];
  for (const added of unique) if (await isChecked(view, table.shape.name, added)) checked.push(added);
  return checked;
}
