/** The tables that the simulator fills. */
import { defineSchema } from '../../../src/schema/define-schema.ts';
import type { SchemaDefinition } from '../../../src/schema/schema.ts';
import { Types } from '../../../src/format/types.ts';
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

/** No two rows have the same email, or the same seat in the same team. Not in all runs. */
export const seats = defineSchema({
  name: 'seats',
  version: 1,
  fields: {
    id: { typeId: Types.uint16 },
    email: { typeId: Types.varchar },
    team: { typeId: Types.uint8 },
    seat: { typeId: Types.uint8 },
    points: { typeId: Types.int32 },
    text: { typeId: Types.varchar, maxLength: 60 },
  },
  primaryKey: 'id',
  indexes: [
    { fields: ['email'], unique: true },
    { fields: ['team', 'seat'], unique: true, name: 'place' },
    { fields: ['team', 'points'] },
    { fields: ['points'], unique: true, where: { team: [1, null], seat: { not: null } }, name: 'top' },
    { fields: ['points'], where: { seat: null }, name: 'standing' },
  ],
});

/** Its key is made of several fields, a text between two numbers. Only in runs that say so. */
export const pages = defineSchema({
  name: 'pages',
  version: 1,
  fields: {
    rank: { typeId: Types.int32 },
    part: { typeId: Types.int16 },
    slug: { typeId: Types.varchar, maxLength: 8 },
    tenant: { typeId: Types.uint8 },
    label: { typeId: Types.varchar },
    text: { typeId: Types.varchar, maxLength: 60 },
  },
  primaryKey: ['tenant', 'slug', 'part'],
  indexes: [
    { fields: ['slug', 'rank'], name: 'ranks' },
    { fields: ['rank', 'tenant', 'slug'], name: 'places' },
    { fields: ['label'], unique: true, name: 'label' },
    { fields: ['rank'], where: { tenant: [1, 2], label: { not: null } }, name: 'labelled' },
  ],
});

/** Names of its indexes: in some runs it has sometimes some of them, and sometimes others. */
export const pageIndexes: readonly string[] = pages.indexes.map(({ name }) => name);

/** The same version of it with some of its indexes. */
export function pagesWith(names: ReadonlySet<string>): SchemaDefinition {
  return { ...pages, indexes: pages.indexes.filter(({ name }) => names.has(name)) };
}

export const schemas = [items, notes, marks, accounts, seats] as const;
const known = [...schemas, pages] as const;

/** Names of all tables that there may be, but for those in several versions. */
export const tableNames: readonly string[] = known.map(({ name }) => name);

/** Names of the tables of a run. */
export function tablesIn({ pageChance }: { readonly pageChance: number }): readonly string[] {
  return tableNames.filter((name) => pageChance > 0 || name !== pages.name);
}

/** What may be there once only. */
export interface UniqueFields {
  readonly fields: readonly string[];
  /** Which rows count. */
  readonly isInside: (row: Row) => boolean;
}

const all = (): boolean => true;
/** Rows that the indexes on some rows are of, by their names. */
export const insideOf: Readonly<Record<string, (row: Row) => boolean>> = {
  top: ({ team, seat }) => (team === 1 || team === null) && seat !== null,
  standing: ({ seat }) => seat === null,
  labelled: ({ tenant, label }) => (tenant === 1 || tenant === 2) && label !== null,
};

/** The fields in which no two rows of a table may agree unless one is null there, by the names of their indexes. */
export function uniqueFieldsOf(table: string): ReadonlyMap<string, UniqueFields> {
  if (table === pages.name) return new Map([['label', { fields: ['label'], isInside: all }]]);
  if (table !== seats.name) return new Map();
  return new Map([
    ['email', { fields: ['email'], isInside: all }],
    ['place', { fields: ['team', 'seat'], isInside: all }],
    ['top', { fields: ['points'], isInside: insideOf['top'] as UniqueFields['isInside'] }],
  ]);
}

/** Money that every account begins with. */
export const firstBalance = 100;
export const accountIds = [1, 2, 3, 4];
/** All money that there is, once there are accounts. */
export const wholeBalance = firstBalance * accountIds.length;

export type Value = string | number | null;
export type Row = Readonly<Record<string, Value>>;

/** The fields of a table's primary key. */
export function primaryKeyOf(table: string): readonly string[] {
  if (isVersioned(table)) return ['id'];
  return [known.find(({ name }) => name === table)?.primaryKey as string | readonly string[]].flat();
}

/** A primary key as the model has it: the values of several fields are one text. */
export type Key = string | number;

/** The model's key of what the engine calls one: the values of several fields are an array there. */
export function modelKey(primaryKey: unknown): Key {
  return Array.isArray(primaryKey) ? JSON.stringify(primaryKey) : (primaryKey as Key);
}

/** The same the other way round. */
export function engineKey(table: string, key: Key): Value | readonly Value[] {
  return primaryKeyOf(table).length > 1 ? (JSON.parse(key as string) as Value[]) : key;
}

/** The model's key of a row. */
export function keyOf(table: string, row: Row): Key {
  const values = primaryKeyOf(table).map((name) => row[name] as Value);
  return modelKey(values.length > 1 ? values : values[0]);
}

/** Fields of a table that hold blobs. The model's rows hold what is in them, of which no two are the same. */
export function blobFieldsOf(table: string): readonly string[] {
  return table === notes.name ? ['body', 'photo'] : [];
}

/** Every field of a table, null where the document leaves it out. */
export function completeRow(table: string, document: Row): Row {
  if (isVersioned(table)) return completePerson(table, document);
  const { fields } = known.find(({ name }) => name === table) as (typeof known)[number];
  return Object.fromEntries(Object.keys(fields).map((name) => [name, document[name] ?? null]));
}
