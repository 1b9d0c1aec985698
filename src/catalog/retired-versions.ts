/**
 * The system table of retired versions of tables. A row is committed like any other row, so every commit is certainly before or
 * after it, and the commits after it hold no rows of that version alone.
 */
import { InvalidSchemaError } from '../base/errors.ts';
import type { Block0 } from '../format/block0.ts';
import { commitBlockName } from '../format/commit.ts';
import type { TableChange } from '../format/commit.ts';
import { NodeEntries } from '../format/node-entries.ts';
import { openNode } from '../format/node.ts';
import { readField } from '../format/row-decode.ts';
import type { LayoutField } from '../format/row-layout.ts';
import { RowArena, appendNullRow, writeField } from '../format/row-encode.ts';
import type { StoredMigration } from '../format/stored-table.ts';
import type { StoredSchema } from '../format/stored-schema.ts';
import { Types } from '../format/types.ts';
import { TableShape } from '../schema/table-shape.ts';
import type { TableState } from '../view/table-state.ts';
import type { View } from '../view/view.ts';

/** One row for each table: the version that was retired last, and the birth of the migration that retired it. */
export const retiredVersionsSchema: StoredSchema = {
  name: '_retired_versions',
  version: 1,
  fields: [
    { name: 'table', typeId: Types.varchar },
    { name: 'version', typeId: Types.uint32 },
    { name: 'birth', typeId: Types.float64 },
  ],
  primaryKey: ['table'],
  indexes: [],
};

const shape = new TableShape(retiredVersionsSchema);

function fieldOf(name: string): LayoutField {
  return shape.layout.field(name) as LayoutField;
}

/** The change that retires the old version of a migration. */
export function retirementOf({ table, from, birth }: StoredMigration): TableChange {
  const rows = new RowArena('memory/retired');
  const { writer, heapWriter } = rows;
  const base = appendNullRow(shape.layout, writer);
  writeField(writer, base, heapWriter, fieldOf('table'), table);
  writeField(writer, base, heapWriter, fieldOf('version'), from);
  writeField(writer, base, heapWriter, fieldOf('birth'), birth);
  const entries = new NodeEntries(shape.changeShape);
  const key = shape.keyBytes(table);
  entries.addRow(key, 0, key.length, rows, base);
  const name = commitBlockName(shape.name);
  return { schema: shape.schema, node: openNode(name, entries.encode(name, 0, 1)) };
}

/** Whether a state shows that the old version of a migration is retired. */
async function isGivenUp(state: TableState | undefined, { table, from, birth }: StoredMigration): Promise<boolean> {
  const rowRef = await state?.lookup(shape.keyBytes(table));
  if (rowRef === undefined) return false;
  const { source, base } = rowRef;
  // A row of an earlier migration, cancelled since, says nothing about this one.
  return readField(source, base, fieldOf('version')) === from && readField(source, base, fieldOf('birth')) === birth;
}

/** Whether a view shows, in its blocks or in pending commits, that the old version of a migration is retired. */
export function isRetiring(view: View, migration: StoredMigration): Promise<boolean> {
  return isGivenUp(view.table(shape.name), migration);
}

/** The version that has replaced the version of a shape; undefined if that is not retired. */
async function successorOf(view: View, { name, version }: TableShape): Promise<number | undefined> {
  const active = view.table(name)?.shape.version;
  if (active !== undefined && active > version) return active;
  const migration = view.nextVersion(name)?.migration;
  if (migration?.phase !== 'switched' || migration.from !== version) return undefined;
  return (await isRetiring(view, migration)) ? migration.to : undefined;
}

/** Throws `InvalidSchemaError` if a flush writes a version that is retired. */
export async function refuseRetired(view: View, written: TableShape): Promise<void> {
  const successor = await successorOf(view, written);
  if (successor === undefined) return;
  const { name, version } = written;
  throw new InvalidSchemaError(
    name,
    `Table '${name}' has gone from version ${version} to version ${successor}, and version ${version} is retired. ` +
      `Nothing was written: deploy the version of the application that registers version ${successor} of the table.`,
  );
}

/** Throws `InvalidSchemaError` if the newest registered version of a table is one whose end was asked for. */
export function refuseEnding({ migrations }: Block0, registered: Iterable<TableShape>): void {
  for (const { name, version } of registered) {
    const ending = migrations.find(({ table, from, target }) => {
      return table === name && from === version && target?.retire === 'asked';
    });
    if (ending?.phase !== 'switched') continue;
    throw new InvalidSchemaError(
      name,
      `The end of version ${version} of table '${name}' was asked for, and it is the newest that is registered here: the table goes ` +
        `to version ${ending.to}. Deploy the version of the application that registers version ${ending.to} of the table. To use the ` +
        "other tables without it, set option retiredVersions to 'allow'.",
    );
  }
}

/** Throws `InvalidSchemaError` if the newest registered version of a table is retired. */
export async function refuseRegistered(view: View, registered: Iterable<TableShape>): Promise<void> {
  for (const one of registered) {
    const successor = await successorOf(view, one);
    if (successor === undefined) continue;
    const { name, version } = one;
    throw new InvalidSchemaError(
      name,
      `Version ${version} of table '${name}' is retired, and it is the newest that is registered here: the table has gone to ` +
        `version ${successor}. Deploy the version of the application that registers version ${successor} of the table. To use ` +
        "the other tables without it, set option retiredVersions to 'allow'.",
    );
  }
}
