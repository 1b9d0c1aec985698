/** One total order everywhere: in `orderBy`, in comparisons, in primary keys and in indexes, whatever stage rows are in. */
import { describe, expect, it } from 'vitest';
import { defineSchema, Types } from '../../../src/index.ts';
import type { SchemaDefinition, TypeName } from '../../../src/index.ts';
import { column, failure, openDatabase, throughStages } from './open-database.ts';
import type { AnyQuery, Row, Staged } from './open-database.ts';

/** Values that are not null, ascending, each different from the one before it. */
const ascending: Partial<Record<TypeName, readonly unknown[]>> = {
  varchar: [
    '',
    '\0',
    '\0\0',
    '\0a',
    ' ',
    'A',
    'B',
    'a',
    'a\0',
    'a\0b',
    'aa',
    'abcdefghijk',
    'abcdefghijkl',
    'abcdefghijkl\0',
    'abcdefghijklm',
    'abcdefghijkm',
    'abcdz',
    'b',
    'zebra',
    'é',
    'ü',
    '\u07FF',
    '\u0800',
    '\uD7FF',
    '\uE000',
    '\uFFFD',
    // By code unit the surrogates of U+10000 would come before all from U+E000 on.
    '\uFFFF',
    '\uFFFFa',
    '\u{10000}',
    '\u{10000}a',
    '\u{1F600}',
    '\u{10FFFF}',
  ],
  float64: [
    -Infinity,
    -Number.MAX_VALUE,
    -(2 ** 53),
    -1.5,
    -1,
    -Number.MIN_VALUE,
    0,
    Number.MIN_VALUE,
    0.1,
    1,
    9,
    10,
    2 ** 53,
    Number.MAX_VALUE,
    Infinity,
  ],
  float32: [-Infinity, -3.5, -1, 0, Math.fround(0.1), 1, 9, 10, Infinity],
  int64: [
    -(2n ** 63n),
    -(2n ** 53n) - 1n,
    -(2n ** 53n),
    -256n,
    -1n,
    0n,
    1n,
    255n,
    256n,
    2n ** 53n + 1n,
    2n ** 63n - 1n,
  ],
  uint64: [0n, 1n, 255n, 256n, 2n ** 32n, 2n ** 53n, 2n ** 53n + 1n, 2n ** 63n - 1n, 2n ** 63n, 2n ** 64n - 1n],
  int8: [-128, -1, 0, 1, 127],
  int16: [-32_768, -256, -255, -1, 0, 1, 255, 256, 32_767],
  int32: [-(2 ** 31), -65_536, -1, 0, 1, 65_536, 2 ** 31 - 1],
  uint8: [0, 1, 127, 128, 255],
  uint16: [0, 255, 256, 65_535],
  uint32: [0, 1, 2 ** 31 - 1, 2 ** 31, 2 ** 32 - 1],
  timestamp: [-8.64e15, -62_135_596_800_000, -86_400_000, -1, 0, 1, 951_782_400_000, 8.64e15].map((ms) => new Date(ms)),
  boolean: [false, true],
  uuid: [
    '00000000-0000-0000-0000-000000000000',
    '00000000-0000-0000-0000-000000000001',
    '0a000000-0000-4000-8000-000000000000',
    '7fffffff-ffff-4fff-8fff-ffffffffffff',
    '80000000-0000-4000-8000-000000000000',
    'a0000000-0000-4000-8000-000000000000',
    'ffffffff-ffff-ffff-ffff-ffffffffffff',
  ],
  bytes: [
    [],
    [0],
    [0, 0],
    [0, 255],
    [1],
    [1, 0],
    [127],
    [128],
    [255],
    [255, 0],
    Array(12).fill(255),
    Array(13).fill(255),
  ].map((list: number[]) => Buffer.from(list)),
};

function schemaOf(type: TypeName) {
  const typeId = Types[type];
  return {
    byId: defineSchema({
      name: 'by id',
      version: 1,
      fields: { id: { typeId: Types.int32 }, plain: { typeId }, indexed: { typeId } },
      primaryKey: 'id',
      indexes: ['indexed'],
    }),
    byValue: defineSchema({ name: 'by value', version: 1, fields: { key: { typeId } }, primaryKey: 'key' }),
  };
}

const comparisons: readonly (readonly [
  operator: '=' | '!=' | '<' | '<=' | '>' | '>=',
  holds: (sign: number) => boolean,
])[] = [
  ['=', (sign) => sign === 0],
  ['!=', (sign) => sign !== 0],
  ['<', (sign) => sign < 0],
  ['<=', (sign) => sign <= 0],
  ['>', (sign) => sign > 0],
  ['>=', (sign) => sign >= 0],
];

/** Positions in a scattered order, so that nothing is in order by accident. */
function scattered(count: number): number[] {
  const step = [7, 11, 13].find((candidate) => count % candidate !== 0) as number;
  return Array.from({ length: count }, (_, i) => (i * step) % count);
}

async function checkOrder(type: TypeName, values: readonly unknown[], { query }: Staged): Promise<void> {
  const nulls = [values.length, values.length + 1];
  const up = values.map((_, id) => id);
  const down = up.toReversed();
  for (const field of ['plain', 'indexed']) {
    const ids = async (ordered: AnyQuery): Promise<unknown[]> => column(await ordered.execute(), 'id');
    // Rows of null come first, and among themselves by primary key, whatever the direction.
    expect(await ids(query('by id').orderBy(field))).toEqual([...nulls, ...up]);
    expect(await ids(query('by id').orderBy(field, 'desc'))).toEqual([...down, ...nulls]);
    for (const [at, value] of values.entries()) {
      for (const [operator, holds] of comparisons) {
        const expected = up.filter((id) => holds(id - at));
        if (operator === '!=') expected.push(...nulls);
        const where = query('by id').where(field, operator, value);
        expect(await ids(where), `${type}: ${field} ${operator} value ${at}`).toEqual(expected);
        expect(await where.count()).toBe(expected.length);
      }
    }
    expect(await ids(query('by id').where(field, 'IN', [values.at(-1), values[0], values[0]]))).toEqual([
      0,
      values.length - 1,
    ]);
  }
  // As a primary key.
  expect(column(await query('by value').execute(), 'key')).toEqual(values);
  expect(column(await query('by value').orderBy('key', 'desc').execute(), 'key')).toEqual(values.toReversed());
  for (const [at, value] of values.entries()) {
    for (const [operator, holds] of comparisons) {
      const found = column(await query('by value').where('key', operator, value).execute(), 'key');
      expect(found, `${type}: key ${operator} value ${at}`).toEqual(values.filter((_, i) => holds(i - at)));
    }
  }
}

describe('the order of values', () => {
  it.each(Object.keys(ascending) as TypeName[])('of %s: plain, indexed and as primary key', async (type) => {
    const values = ascending[type] as readonly unknown[];
    const { byId, byValue } = schemaOf(type);
    await throughStages(
      [byId, byValue],
      (batch) => {
        for (const i of scattered(values.length)) {
          void batch.insert(byId.name, { id: i, plain: values[i], indexed: values[i] });
          void batch.insert(byValue.name, { key: values[i] });
        }
        // Two rows of null, of which one is so because it was left out.
        void batch.insert(byId.name, { id: values.length + 1 });
        void batch.insert(byId.name, { id: values.length, plain: null, indexed: null });
      },
      (staged) => checkOrder(type, values, staged),
    );
  });

  it('of -0 and 0 is equal, in every comparison and key', async () => {
    for (const type of ['float64', 'float32'] as const) {
      const { byId, byValue } = schemaOf(type);
      await throughStages(
        [byId, byValue],
        (batch) => {
          void batch.insert(byId.name, { id: 2, plain: -0, indexed: -0 });
          void batch.insert(byId.name, { id: 1, plain: 0, indexed: 0 });
          void batch.insert(byId.name, { id: 3, plain: 1, indexed: 1 });
          void batch.insert(byValue.name, { key: -0 });
        },
        async ({ query, db, stage }) => {
          for (const field of ['plain', 'indexed']) {
            for (const zero of [0, -0, 0n]) {
              expect(await query('by id').where(field, '=', zero).count()).toBe(2);
              expect(await query('by id').where(field, '<', zero).count()).toBe(0);
              expect(await query('by id').where(field, '>=', zero).count()).toBe(3);
              expect(await query('by id').where(field, 'IN', [zero, 5]).count()).toBe(2);
            }
            expect(column(await query('by id').orderBy(field).execute(), 'id')).toEqual([1, 2, 3]);
            expect(column(await query('by id').orderBy(field, 'desc').execute(), 'id')).toEqual([3, 1, 2]);
          }
          expect(await query('by value').where('key', '=', 0).count()).toBe(1);
          if (stage === 'in the batch') return;
          expect(await db.get(byValue, 0)).toBeDefined();
          const batch = db.batch();
          void batch.insert(byValue.name, { key: 0 });
          expect(await failure(batch.flush())).toMatchObject({ code: 'DUPLICATE_KEY' });
        },
      );
    }
  });

  it('is kept by updates and deletions through an index', async () => {
    const { byId } = schemaOf('varchar');
    const db = await openDatabase([byId]);
    const first = db.batch();
    for (const [id, value] of ['b', 'a', '\u{10000}', '\uFFFF', null].entries()) {
      void first.insert(byId, { id, plain: value, indexed: value });
    }
    await first.flush();
    await db.checkpoint();
    const second = db.batch();
    void second.update(byId, { id: 0, indexed: '\u{10001}' });
    void second.update(byId, { id: 1, indexed: null });
    void second.update(byId, { id: 4, indexed: 'c' });
    void second.delete(byId, 3);
    const expected = [1, 4, 2, 0];
    expect(column(await db.query(byId).overlay(second).orderBy('indexed').execute(), 'id')).toEqual(expected);
    await second.flush();
    expect(column(await db.query(byId).orderBy('indexed').execute(), 'id')).toEqual(expected);
    await db.checkpoint();
    expect(column(await db.query(byId).orderBy('indexed').execute(), 'id')).toEqual(expected);
    expect(column(await db.query(byId).where('indexed', '=', 'b').execute(), 'id')).toEqual([]);
    expect(column(await db.query(byId).where('indexed', '>', '\uFFFF').execute(), 'id')).toEqual([0, 2]);
  });
});

const keyed = (typeId: number): SchemaDefinition =>
  ({
    name: 'keyed',
    version: 1,
    fields: { key: { typeId }, note: { typeId: Types.int8 } },
    primaryKey: 'key',
  }) as SchemaDefinition;

describe('long keys', () => {
  it.each([
    ['ASCII', 'a'.repeat(1024), 'a'.repeat(1025)],
    ['two bytes a character', 'é'.repeat(512), `${'é'.repeat(512)}a`],
    ['three bytes a character', `${'€'.repeat(341)}a`, '€'.repeat(342)],
    ['four bytes a character', '\u{1F600}'.repeat(256), `${'\u{1F600}'.repeat(256)}a`],
    ['zeros', '\0'.repeat(1024), '\0'.repeat(1025)],
  ])('varchar of 1024 bytes is a key, 1025 an EncodeError: %s', async (_, fits, tooLong) => {
    const schema = keyed(Types.varchar);
    await throughStages(
      [schema],
      (batch) => void batch.insert(schema, { key: fits, note: 1 }),
      async ({ query, get, db }) => {
        expect(await query('keyed').where('key', '=', fits).execute()).toEqual([{ key: fits, note: 1 }]);
        // Comparing with a longer one is no error: it just equals nothing.
        expect(await query('keyed').where('key', '=', tooLong).count()).toBe(0);
        expect(await query('keyed').where('key', '<', tooLong).count()).toBe(1);
        expect(await query('keyed').where('key', '>=', tooLong).count()).toBe(0);
        expect(await get('keyed', fits)).toEqual({ key: fits, note: 1 });
        for (const method of ['insert', 'upsert', 'update'] as const) {
          const error = await failure(db.batch()[method]('keyed', { key: tooLong }));
          expect(error).toMatchObject({ code: 'ENCODE', table: 'keyed', field: 'key', value: tooLong });
        }
        expect(await failure(db.batch().delete('keyed', tooLong))).toMatchObject({ code: 'ENCODE', field: 'key' });
      },
    );
  });

  it('the same of bytes', async () => {
    const schema = keyed(Types.bytes);
    const fits = Buffer.alloc(1024, 255);
    const db = await openDatabase([schema]);
    const batch = db.batch();
    void batch.insert(schema, { key: fits, note: 1 });
    void batch.insert(schema, { key: Buffer.alloc(1024), note: 2 });
    await batch.flush();
    await db.checkpoint();
    expect(column(await db.query(schema).execute(), 'note')).toEqual([2, 1]);
    expect(await db.get(schema, fits)).toMatchObject({ note: 1 });
    expect(await failure(db.batch().insert(schema, { key: Buffer.alloc(1025) }))).toMatchObject({ code: 'ENCODE' });
  });
});

describe('index values longer than 1 KiB', () => {
  const stem = 's'.repeat(1024);
  const texts: readonly (string | null)[] = [
    null,
    stem.slice(0, 1023),
    stem,
    `${stem}a`,
    `${stem}a`,
    `${stem}ab`,
    `${stem}${'b'.repeat(3000)}`,
    `${stem}${'b'.repeat(3000)}c`,
    `${stem}\uFFFF`,
    `${stem}\u{10000}`,
    `${'s'.repeat(1023)}t`,
    // The cut after 1024 bytes falls into the middle of a character.
    `${'t'.repeat(1023)}€1`,
    `${'t'.repeat(1023)}€2`,
    `${'t'.repeat(1023)}\u{1F600}`,
    'u',
  ];

  function check(values: readonly unknown[]) {
    return async ({ query }: Staged): Promise<void> => {
      const ids = async (found: AnyQuery): Promise<unknown[]> => column(await found.execute(), 'id');
      const same = (id: number): number[] => values.flatMap((value, i) => (isEqual(value, values[id]) ? [i] : []));
      const all = values.map((_, id) => id);
      expect(await ids(query('long').orderBy('value'))).toEqual(all);
      expect(await ids(query('long').orderBy('value').limit(3).offset(4))).toEqual(all.slice(4, 7));
      // Ties stay in ascending order of primary keys when the rest is turned round.
      const groups = all.filter((id) => same(id)[0] === id).toReversed();
      expect(await ids(query('long').orderBy('value', 'desc'))).toEqual(groups.flatMap(same));
      for (const id of all) {
        if (values[id] === null) continue;
        const value = values[id];
        const [first, last] = [same(id)[0] as number, same(id).at(-1) as number];
        expect(await ids(query('long').where('value', '=', value)), `= ${id}`).toEqual(same(id));
        expect(await ids(query('long').where('value', '>', value)), `> ${id}`).toEqual(all.slice(last + 1));
        expect(await ids(query('long').where('value', '>=', value)), `>= ${id}`).toEqual(all.slice(first));
        expect(await ids(query('long').where('value', '<', value)), `< ${id}`).toEqual(all.slice(1, first));
        expect(await ids(query('long').where('value', '<=', value)), `<= ${id}`).toEqual(all.slice(1, last + 1));
        expect(await query('long').where('value', '>', value).count()).toBe(all.length - last - 1);
        const ranged = query('long').where('value', '>', values[3]).where('value', '<=', value);
        expect(await ids(ranged.orderBy('value'))).toEqual(all.slice(5, Math.max(5, last + 1)));
      }
      expect(await ids(query('long').where('value', 'IN', [values[2], values[3], values[7], null]))).toEqual([
        0, 2, 3, 4, 7,
      ]);
    };
  }

  function isEqual(a: unknown, b: unknown): boolean {
    return a instanceof Uint8Array && b instanceof Uint8Array ? Buffer.compare(a, b) === 0 : a === b;
  }

  const bytes = texts.map((text) => (text === null ? null : Buffer.from(text)));

  it.each([
    ['varchar', Types.varchar, texts],
    ['bytes', Types.bytes, bytes],
  ])(
    '%s: equality, ranges and order are right, also where the first 1024 bytes are equal',
    async (_, typeId, values) => {
      const schema: SchemaDefinition = {
        name: 'long',
        version: 1,
        fields: { id: { typeId: Types.uint8 }, value: { typeId } },
        primaryKey: 'id',
        indexes: ['value'],
      };
      const add = (id: number): Row => ({ id, value: values[id] });
      await throughStages(
        [schema],
        (batch) => {
          for (const i of scattered(values.length)) void batch.insert(schema.name, add(i));
        },
        check(values),
      );
    },
  );

  it('is found under its new value only, after an update that changes nothing in the first 1024 bytes', async () => {
    const schema = defineSchema({
      name: 'long',
      version: 1,
      fields: { id: { typeId: Types.uint8 }, value: { typeId: Types.varchar } },
      primaryKey: 'id',
      indexes: ['value'],
    });
    const db = await openDatabase([schema]);
    for (const end of ['old', 'new']) {
      const batch = db.batch();
      void batch.upsert(schema, { id: 1, value: stem + end });
      await batch.flush();
      await db.checkpoint();
    }
    expect(await db.query(schema).where('value', '=', `${stem}old`).count()).toBe(0);
    expect(await db.query(schema).where('value', '=', `${stem}new`).count()).toBe(1);
    expect(await db.verify()).toMatchObject({ ok: true });
  });
});
