/** The tables that the simulator fills. */
import { defineSchema } from '../../src/table/schema.ts';
import { Types } from '../../src/format/types.ts';
import { completePerson, isVersioned } from './versions.ts';

export const items = defineSchema({
  name: 'items',
  version: 1,
  fields: {
    id: { typeId: Types.uint16 },
    owner: { typeId: Types.varchar, maxLength: 8 },
    rank: { typeId: Types.int32 },
    text: { typeId: Types.varchar, maxLength: 60 },
  },
  primaryKey: 'id',
  indexes: ['owner', 'rank'],
});

export const notes = defineSchema({
  name: 'notes',
  version: 1,
  fields: {
    name: { typeId: Types.varchar, maxLength: 12 },
    score: { typeId: Types.float64 },
    text: { typeId: Types.varchar, maxLength: 60 },
    body: { typeId: Types.blob },
    photo: { typeId: Types.blob },
  },
  primaryKey: 'name',
  indexes: ['score'],
});

/** One row for every flush: it tells which commit holds the flush, and whether two do. */
export const marks = defineSchema({
  name: 'marks',
  version: 1,
  fields: { id: { typeId: Types.varchar, maxLength: 12 } },
  primaryKey: 'id',
});

/** What transactions move money between. Nothing else writes to it. */
export const accounts = defineSchema({
  name: 'accounts',
  version: 1,
  fields: { id: { typeId: Types.uint8 }, balance: { typeId: Types.int32 } },
  primaryKey: 'id',
});

export const schemas = [items, notes, marks, accounts] as const;

/** Money that every account begins with. */
export const firstBalance = 100;
export const accountIds = [1, 2, 3, 4];
/** All money that there is, once there are accounts. */
export const wholeBalance = firstBalance * accountIds.length;

export type Value = string | number | null;
export type Row = Readonly<Record<string, Value>>;

export function primaryKeyOf(table: string): string {
  if (isVersioned(table)) return 'id';
  return schemas.find(({ name }) => name === table)?.primaryKey as string;
}

/** Fields of a table that hold blobs. The model's rows hold what is in them, of which no two are the same. */
export function blobFieldsOf(table: string): readonly string[] {
  return table === notes.name ? ['body', 'photo'] : [];
}

/** Every field of a table, null where the document leaves it out. */
export function completeRow(table: string, document: Row): Row {
  if (isVersioned(table)) return completePerson(table, document);
  const { fields } = schemas.find(({ name }) => name === table) as (typeof schemas)[number];
  return Object.fromEntries(Object.keys(fields).map((name) => [name, document[name] ?? null]));
}
