/** What a type cannot hold is refused before anything is written; what it can hold is read back as it was. */
import { describe, expect, it } from 'vitest';
import { defineSchema, EncodeError, Types } from '../../../src/index.ts';
import type { TypeName } from '../../../src/index.ts';
import { ObservedDriver } from '../../../src/storage/wrap/observed-driver.ts';
import { newDriver } from './driver-under-test.ts';
import { failure, openDatabase, throughStages } from './open-database.ts';

function schemaOf(type: TypeName) {
  return defineSchema({
    name: `of ${type}`,
    version: 1,
    fields: {
      id: { typeId: Types.uint32 },
      value: { typeId: Types[type], maxLength: 3 },
      other: { typeId: Types.int8 },
    },
    primaryKey: 'id',
  });
}

class Point {
  readonly x = 1;
}

const circular: Record<string, unknown> = {};
circular['self'] = circular;
const holes: unknown[] = [1];
holes[2] = 3;
const named = Object.assign([1], { name: 'a' });
const uuid = '0189abcd-0123-7abc-8def-0123456789ab';

const nothingElse = [{}, [], () => 1, Symbol('s')];

/** For each type what it must not take. */
const refused: Record<TypeName, readonly unknown[]> = {
  uint8: [300, 256, -1, 1.5, Number.NaN, Infinity, '1', 1n, true, new Date(0), ...nothingElse],
  uint16: [65_536, -1, 0.5, '1', 1n, ...nothingElse],
  uint32: [2 ** 32, -1, 0.5, '1', 1n, ...nothingElse],
  uint64: [-1, -1n, 2n ** 64n, 2 ** 53, 2 ** 64, 1.5, Number.NaN, Infinity, '1', true, ...nothingElse],
  int8: [128, -129, 0.5, '1', 1n, ...nothingElse],
  int16: [32_768, -32_769, 0.5, '1', 1n, ...nothingElse],
  int32: [2 ** 31, -(2 ** 31) - 1, 0.5, '1', 1n, ...nothingElse],
  int64: [2n ** 63n, -(2n ** 63n) - 1n, 2 ** 53, -(2 ** 53), 1.5, Number.NaN, -Infinity, '1', ...nothingElse],
  float64: [Number.NaN, '1', 1n, true, new Date(0), ...nothingElse],
  float32: [Number.NaN, 1e39, -1e39, '1', 1n, ...nothingElse],
  varchar: ['a\uD800', '\uDC00b', '\uDC00\uD800', 5, 5n, true, Buffer.from('a'), new Date(0), ...nothingElse],
  boolean: [0, 1, 'true', 0n, ...nothingElse],
  timestamp: [new Date(Number.NaN), 0, '2020-01-01', 0n, ...nothingElse],
  uuid: ['', 'no uuid', uuid.slice(1), `${uuid}0`, uuid.replaceAll('-', ''), 5, Buffer.alloc(16), ...nothingElse],
  bytes: ['abc', [1, 2], new ArrayBuffer(2), new Uint16Array(2), 5, ...nothingElse.slice(0, 3)],
  blob: ['no reference', 5, Buffer.from('data'), ...nothingElse],
  json: [
    Number.NaN,
    Infinity,
    -0,
    1n,
    () => 1,
    Symbol('s'),
    new Date(0),
    new Map(),
    new Point(),
    Buffer.from('a'),
    circular,
    holes,
    named,
    { a: [undefined] },
    { a: [Number.NaN] },
    [undefined],
    { toJSON: () => 1 },
    { [Symbol('s')]: 1 },
  ],
};

describe('a value that the type cannot hold', () => {
  it.each(Object.keys(refused) as TypeName[])('is refused by %s', async (type) => {
    const schema = schemaOf(type);
    const driver = new ObservedDriver(newDriver());
    const db = await openDatabase([schema], driver);
    const { put } = driver.snapshot();
    for (const value of refused[type]) {
      for (const method of ['insert', 'upsert', 'update'] as const) {
        const batch = db.batch();
        // Untyped, as from JavaScript: the compiler refuses most of these too.
        const error = await failure(batch[method](schema.name, { id: 1, other: 1, value }));
        expect(error).toBeInstanceOf(EncodeError);
        expect(error).toMatchObject({ code: 'ENCODE', table: schema.name, field: 'value' });
        expect((error as EncodeError).value).toBe(value);
        expect((error as EncodeError).message).toContain(schema.name);
        expect(batch.size).toBe(0);
        // One flush tells whoever ignored the promise, and then there is nothing left to write.
        expect(await failure(batch.flush())).toBe(error);
        await batch.flush();
      }
    }
    expect(driver.snapshot().put).toBe(put);
    expect(await db.get(schema, 1)).toBeUndefined();
  });

  it('does not change earlier operations of the batch', async () => {
    const schema = schemaOf('varchar');
    const db = await openDatabase([schema]);
    const batch = db.batch();
    const long = 'a long text that goes to the heap ';
    void batch.insert(schema, { id: 1, value: `${long}1` });
    // `value` is written before `other` is seen to be wrong.
    await failure(batch.insert(schema, { id: 2, value: `${long}2`, other: 1000 }));
    void batch.insert(schema, { id: 3, value: `${long}3` });
    expect(batch.size).toBe(2);
    await failure(batch.flush());
    await batch.flush();
    expect(await db.query(schema).execute()).toEqual([
      { id: 1, value: `${long}1`, other: null },
      { id: 3, value: `${long}3`, other: null },
    ]);
  });

  it.each([
    ['a field that the schema does not name', { id: 1, valeu: 'a' }, 'valeu', 'a'],
    ['a missing primary key', { value: 'a' }, 'id', undefined],
    ['a primary key of null', { id: null, value: 'a' }, 'id', null],
    ['an undefined primary key', { id: undefined, value: 'a' }, 'id', undefined],
    ['a primary key of another type', { id: '1' }, 'id', '1'],
    ['a document that is null', null, '', null],
    ['a document that is a string', 'text', '', 'text'],
    ['a document that is an array', [1], '', [1]],
  ])('also refused: %s', async (_, document, field, value) => {
    const schema = schemaOf('varchar');
    const db = await openDatabase([schema]);
    for (const method of ['insert', 'upsert', 'update'] as const) {
      const batch = db.batch();
      const error = await failure(batch[method](schema.name, document as object));
      expect(error).toBeInstanceOf(EncodeError);
      expect(error).toMatchObject({ table: schema.name, field, value });
      expect(await failure(batch.flush())).toBe(error);
      await batch.flush();
    }
    expect(await db.query(schema).count()).toBe(0);
  });

  it.each([undefined, null, '1', 300.5, -1])('a deletion by the key %s is refused', async (key) => {
    const schema = schemaOf('varchar');
    const db = await openDatabase([schema]);
    const batch = db.batch();
    const error = await failure(batch.delete(schema.name, key));
    expect(error).toMatchObject({ code: 'ENCODE', table: schema.name, field: 'id', value: key });
    expect(batch.size).toBe(0);
    expect(await failure(batch.flush())).toBe(error);
  });

  it('a table that is not registered', async () => {
    const db = await openDatabase([]);
    const batch = db.batch();
    const message = 'Schema not found for table ghosts. Register it with db.registerSchema() before you use it.';
    const error = await failure(batch.insert('ghosts', { id: 1 }));
    expect(error).toMatchObject({ code: 'SCHEMA_NOT_FOUND', message });
    expect(await failure(batch.flush())).toBe(error);
    expect(await failure(db.query('ghosts').execute())).toMatchObject({ message });
    expect(await failure(db.get('ghosts', 1))).toMatchObject({ message });
  });
});

const elevenBytes = 'elevenbytes';

/** For each type what it must read back, and as what if not the same. */
const held: Record<Exclude<TypeName, 'blob'>, readonly (readonly [given: unknown, read?: unknown])[]> = {
  uint8: [[0], [255], [-0, 0]],
  uint16: [[0], [65_535]],
  uint32: [[0], [2 ** 32 - 1]],
  uint64: [[0n], [0, 0n], [2n ** 64n - 1n], [2 ** 53 - 1, 2n ** 53n - 1n], [2n ** 63n]],
  int8: [[-128], [127], [-1]],
  int16: [[-32_768], [32_767]],
  int32: [[-(2 ** 31)], [2 ** 31 - 1]],
  int64: [[-(2n ** 63n)], [2n ** 63n - 1n], [-1, -1n], [-(2 ** 53) + 1, -(2n ** 53n) + 1n]],
  float64: [[0], [-1.5], [Number.MIN_VALUE], [Number.MAX_VALUE], [Infinity], [-Infinity], [0.1]],
  float32: [[0.5], [0.1, Math.fround(0.1)], [Infinity], [3.4028234663852886e38], [1e-46, 0]],
  varchar: [
    [''],
    ['a'],
    [elevenBytes],
    [`${elevenBytes}.`],
    [`${elevenBytes}..`],
    ['ääääää'],
    ['äääääää'],
    ['€€€€'],
    ['\u{10000}\u{10FFFF}'],
    ['\0'],
    ['\0'.repeat(13)],
    ['\uFFFF'],
    ['x'.repeat(200_000)],
    ['é'.repeat(100_000)],
  ],
  boolean: [[true], [false]],
  timestamp: [
    [new Date(0)],
    [new Date(-1)],
    [new Date('1582-10-15T00:00:00Z')],
    [new Date('0001-01-01T00:00:00Z')],
    [new Date(8.64e15)],
    [new Date(-8.64e15)],
  ],
  uuid: [
    [uuid],
    [uuid.toUpperCase(), uuid],
    ['00000000-0000-0000-0000-000000000000'],
    ['ffffffff-ffff-ffff-ffff-ffffffffffff'],
  ],
  bytes: [
    [Buffer.alloc(0)],
    [Buffer.from([0])],
    [Buffer.from(elevenBytes)],
    [Buffer.alloc(12, 255)],
    [Buffer.alloc(13)],
    [new Uint8Array([1, 2, 3]), Buffer.from([1, 2, 3])],
    [Buffer.alloc(100_000, 7)],
  ],
  json: [
    [true],
    [0],
    ['text'],
    ['\uD800'],
    [[]],
    [{}],
    [{ a: [1, { b: null }], '': 'ü€\u{10000}' }],
    [JSON.parse('{"__proto__":{"x":1},"constructor":2}')],
    [{ text: 'y'.repeat(70_000) }],
  ],
};

describe('a value that the type can hold', () => {
  it.each(Object.keys(held) as (keyof typeof held)[])('is read back as it was: %s', async (type) => {
    const schema = schemaOf(type);
    const cases = held[type];
    const expected = cases.map(([given, read = given], id) => ({ id, value: read, other: null }));
    await throughStages(
      [schema],
      (batch) => {
        cases.forEach(([value], id) => void batch.insert(schema.name, { id, value }));
        void batch.insert(schema.name, { id: cases.length, value: null, other: -128 });
      },
      async ({ query }) => {
        const rows = await query(schema.name).execute();
        expect(rows).toEqual([...expected, { id: cases.length, value: null, other: -128 }]);
        const bytes = rows.map((row) => row['value']).filter((value) => value instanceof Uint8Array);
        expect(bytes.every((value) => Buffer.isBuffer(value))).toBe(true);
      },
    );
  });

  it('null and fields that are left out or undefined are null; every declared field is there', async () => {
    const types = Object.keys(Types) as TypeName[];
    const schema = defineSchema({
      name: 'all',
      version: 1,
      fields: Object.fromEntries(
        [['id', Types.int64] as const, ...types.map((type) => [type, Types[type]] as const)].map(([name, typeId]) => [
          name,
          { typeId },
        ]),
      ),
      primaryKey: 'id',
    });
    const nulls = Object.fromEntries(types.map((type) => [type, null]));
    await throughStages(
      [schema],
      (batch) => {
        void batch.insert(schema.name, { id: 1 });
        void batch.insert(schema.name, { id: 2, ...nulls });
        void batch.insert(schema.name, { id: 3, ...Object.fromEntries(types.map((type) => [type, undefined])) });
      },
      async ({ query }) => {
        const rows = await query(schema.name).execute();
        expect(rows).toEqual([1n, 2n, 3n].map((id) => Object.assign({ id }, nulls)));
        expect(Object.keys(rows[0] as object)).toEqual(['id', ...types]);
      },
    );
  });
});
