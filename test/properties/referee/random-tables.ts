/** Random tables and rows, in the terms of StoreDb and of SQL. */
import { Types } from '../../../src/index.ts';
import type { SchemaDefinition } from '../../../src/index.ts';
import type { SeededRandom } from '../../../src/testing/seeded-random.ts';
import type { SqlValue } from './sqlite.ts';

export type Row = Record<string, unknown>;

/** A kind of column: where the semantics of both databases are the same. */
interface Kind {
  readonly typeId: SchemaDefinition['fields'][string]['typeId'];
  readonly sqlType: string;
  /** A value that a row may hold, from few enough that conditions match and rows tie. */
  value(random: SeededRandom): unknown;
  /** A value to compare with, which the type need not hold. */
  compared(random: SeededRandom): unknown;
}

const letters = [
  '',
  'a',
  'b',
  'ab',
  'Z',
  'é',
  '\0',
  '\uFFFF',
  '\u{10000}',
  '\u{1F600}',
  'abcdefghijkl',
  'abcdefghijklm',
  ' ',
];

function text(random: SeededRandom): string {
  return random.pick(letters) + (random.chance(0.5) ? random.pick(letters) : '');
}

/** Mostly around the 1024 bytes that an index holds. */
function longText(random: SeededRandom): string {
  const stem = 'x'.repeat(random.pick([1, 1022, 1023, 1024, 1025]));
  return stem + random.pick(['', 'a', 'b', '\uFFFF', '\u{10000}']);
}

function bytes(random: SeededRandom): Buffer {
  const length = random.pick([0, 1, 2, 12, 13, 14]);
  return Buffer.from(Array.from({ length }, (_, i) => (i < length - 1 ? 7 : random.pick([0, 1, 127, 128, 255]))));
}

function integers(typeId: Kind['typeId'], low: number, high: number): Kind {
  const value = (random: SeededRandom): number =>
    random.chance(0.1) ? random.pick([low, high]) : random.integer(Math.max(low, -4), 6);
  return {
    typeId,
    sqlType: 'INTEGER',
    value,
    compared: (random) =>
      random.chance(0.2) ? random.pick([low - 1, high + 1, 0.5, -1.5, 1e15, -1e300, Infinity]) : value(random),
  };
}

const floats = [-Infinity, -1e300, -2.5, -0.1, 0, -0, 0.1, 1, 2.5, 3, 1e300, Infinity, Number.MIN_VALUE];

const same = (value: (random: SeededRandom) => unknown): Pick<Kind, 'value' | 'compared'> => ({
  value,
  compared: value,
});

export const kinds: Record<string, Kind> = {
  uint8: integers(Types.uint8, 0, 255),
  int16: integers(Types.int16, -32_768, 32_767),
  int32: integers(Types.int32, -(2 ** 31), 2 ** 31 - 1),
  uint32: integers(Types.uint32, 0, 2 ** 32 - 1),
  int64: {
    typeId: Types.int64,
    sqlType: 'INTEGER',
    ...same((random) => random.pick([-(2n ** 63n), -(2n ** 53n) - 1n, -1n, 0n, 1n, 2n ** 53n + 1n, 2n ** 63n - 1n])),
  },
  float64: { typeId: Types.float64, sqlType: 'REAL', ...same((random) => random.pick(floats)) },
  float32: {
    typeId: Types.float32,
    sqlType: 'REAL',
    value: (random) => random.pick([-2, -0.1, 0, 0.1, 0.5, 1, 3e38]),
    compared: (random) => random.pick([-2, -0.1, 0, 0.1, Math.fround(0.1), 0.5, 1e300]),
  },
  varchar: { typeId: Types.varchar, sqlType: 'TEXT', ...same(text) },
  long: { typeId: Types.varchar, sqlType: 'TEXT', ...same(longText) },
  bytes: { typeId: Types.bytes, sqlType: 'BLOB', ...same(bytes) },
  boolean: { typeId: Types.boolean, sqlType: 'INTEGER', ...same((random) => random.chance(0.5)) },
  timestamp: {
    typeId: Types.timestamp,
    sqlType: 'INTEGER',
    ...same((random) => new Date(random.pick([-8.64e15, -62_135_596_800_000, -1, 0, 1, 1.7e12, 8.64e15]))),
  },
};

/** Types whose values are unique often enough, and short enough, to be primary keys. */
const keyKinds: Record<string, (random: SeededRandom, i: number) => unknown> = {
  uint32: (_, i) => i * 3,
  int64: (_, i) => BigInt(i) * 4_294_967_297n - 2n ** 62n,
  varchar: (random, i) => `${random.pick(letters)}${i}`,
  bytes: (random, i) => Buffer.concat([bytes(random), Buffer.from([i >> 8, i & 255])]),
  float64: (_, i) => (i - 40) / 7,
};

export interface Column {
  readonly name: string;
  readonly kind: Kind;
}

export interface Table {
  readonly schema: SchemaDefinition;
  readonly columns: readonly Column[];
  key(random: SeededRandom, i: number): unknown;
}

export function randomTable(random: SeededRandom, name: string): Table {
  const keyKind = random.pick(Object.keys(keyKinds));
  const columns: Column[] = [{ name: 'k', kind: kinds[keyKind] as Kind }];
  const count = random.integer(2, 6);
  for (const [i, kind] of random.shuffled(Object.keys(kinds)).slice(0, count).entries()) {
    columns.push({ name: `f${i}_${kind}`, kind: kinds[kind] as Kind });
  }
  const rest = columns.slice(1).map((column) => column.name);
  return {
    schema: {
      name,
      version: 1,
      fields: Object.fromEntries(columns.map((column) => [column.name, { typeId: column.kind.typeId }])),
      primaryKey: 'k',
      indexes: [
        ...random.shuffled(rest).slice(0, random.integer(0, rest.length)),
        { fields: random.shuffled(rest).slice(0, random.integer(2, 3)) },
      ].filter((index) => typeof index === 'string' || index.fields.length > 1),
    },
    columns,
    key: keyKinds[keyKind] as Table['key'],
  };
}

/** Names of the fields of each index. */
export function indexedFields({ schema }: Table): readonly (readonly string[])[] {
  return (schema.indexes ?? []).flatMap((index) => {
    if (typeof index === 'string') return [[index]];
    return 'fields' in index ? [index.fields.map((field) => (typeof field === 'string' ? field : field.path))] : [];
  });
}

export function randomRow(random: SeededRandom, table: Table, key: unknown): Row {
  const row: Row = { k: key };
  for (const { name, kind } of table.columns.slice(1)) row[name] = random.chance(0.15) ? null : kind.value(random);
  return row;
}

/** A value as SQLite is given it. */
export function toSql(value: unknown, typeId: number): SqlValue {
  if (value === null) return null;
  if (typeof value === 'boolean') return value ? 1 : 0;
  if (value instanceof Date) return value.getTime();
  // SQLite has it as a text of its own otherwise, and -0 as 0 anyway.
  return typeof value === 'number' && typeId === Types.float32 ? Math.fround(value) : (value as SqlValue);
}
