import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ByteWriter } from '../base/bytes.ts';
import { formatUuid } from '../base/ids.ts';
import { appendNullRow, checkDocument, checkKeys, documentValue, FieldProblem, writeField } from './row-encode.ts';
import { decodeRow } from './row-decode.ts';
import { RowLayout } from './row-layout.ts';
import type { LayoutField } from './row-layout.ts';
import { Types } from './types.ts';
import type { TypeId } from './types.ts';
import { describeValue } from '../base/messages.ts';
import { normalizeValue, ValueProblem, writeUuid } from './values.ts';

class Point {
  x = 1;
}

function nested(depth: number): unknown {
  let value: unknown = 1;
  for (let i = 0; i < depth; i++) value = [value];
  return value;
}

const holes: unknown[] = [1, 2];
holes.length = 4;
const named: unknown[] & { extra?: number } = [1];
named.extra = 2;
const cyclic: Record<string, unknown> = {};
cyclic['self'] = { inner: cyclic };
const hidden = Object.defineProperty({ a: 1 }, 'toJSON', { value: () => 'something else' });

const refused: readonly (readonly [type: TypeId, what: string, values: readonly unknown[]])[] = [
  [Types.uint8, 'other than 0 to 255', [300, 256, -1, 1.5, '1', 1n, true, Number.NaN, Infinity, {}, []]],
  [Types.int8, 'other than -128 to 127', [128, -129, 0.1, '0']],
  [Types.uint16, 'other than 0 to 65535', [65_536, -1]],
  [Types.int16, 'other than -32768 to 32767', [32_768, -32_769]],
  [Types.uint32, 'other than 0 to 2^32 - 1', [2 ** 32, -1]],
  [Types.int32, 'other than -2^31 to 2^31 - 1', [2 ** 31, -(2 ** 31) - 1]],
  [Types.uint64, 'other than bigints and safe integers in range', [2n ** 64n, -1n, -1, 2 ** 53, 1.5, '1']],
  [Types.int64, 'other than bigints and safe integers in range', [2n ** 63n, -(2n ** 63n) - 1n, 2 ** 53, Number.NaN]],
  [Types.float64, 'that are no numbers', ['1.5', Number.NaN, 1n, new Date(0), true]],
  [Types.float32, 'that are no numbers, or too large', ['1', Number.NaN, 3.5e38, -1e300]],
  [Types.boolean, 'other than true and false', [0, 1, 'true']],
  [Types.varchar, 'that are no well-formed strings', [1, '\uD800', 'x\uDC00y', '\uDC00\uD800', Buffer.from('a')]],
  [Types.timestamp, 'that are no valid Dates', [new Date(Number.NaN), 0, '2020-01-01', new Date(8.64e15 + 1)]],
  [Types.uuid, 'that are no UUIDs', ['', 'x', '0'.repeat(36), `${'0'.repeat(8)}-0000-0000-0000-00000000000g`, 1]],
  [Types.blob, 'that are no references', ['hello', Buffer.from('x')]],
  [Types.bytes, 'that are no bytes', ['text', [1, 2], new ArrayBuffer(2), new Uint16Array(2)]],
  [
    Types.json,
    'that would not read back as they are',
    [
      { a: { b: [undefined] } },
      [undefined],
      () => 1,
      { f: () => 1 },
      Symbol('s'),
      { [Symbol('s')]: 1 },
      1n,
      Number.NaN,
      Infinity,
      -0,
      [1, { a: -0 }],
      new Date(0),
      new Point(),
      new Map(),
      new Uint8Array(2),
      Object.create({ inherited: 1 }),
      holes,
      named,
      cyclic,
      nested(600),
      { toJSON: () => 1 },
      hidden,
    ],
  ],
];

/** A row of one field, which is null. */
function emptyRow(typeId: TypeId): { layout: RowLayout; rows: ByteWriter; field: LayoutField } {
  const layout = new RowLayout([{ name: 'a', typeId }]);
  const rows = new ByteWriter();
  appendNullRow(layout, rows);
  return { layout, rows, field: layout.fields[0] as LayoutField };
}

describe('values that a type cannot hold', () => {
  for (const [typeId, what, values] of refused) {
    it(`type ${typeId} refuses values ${what}`, () => {
      for (const value of values) {
        expect(() => normalizeValue(typeId, value), describeValue(value)).toThrow(ValueProblem);
        const { layout, rows, field } = emptyRow(typeId);
        expect(() => writeField(rows, 0, new ByteWriter(), field, value), describeValue(value)).toThrow(FieldProblem);
        expect(rows.finish()).toEqual(layout.nullRow);
      }
    });
  }

  it('are named in the error, with the field', () => {
    const layout = new RowLayout([{ name: 'age', typeId: Types.uint8 }]);
    const rows = new ByteWriter();
    const base = appendNullRow(layout, rows);
    const field = layout.field('age');
    let caught: unknown;
    try {
      if (field !== undefined) writeField(rows, base, new ByteWriter(), field, 300);
    } catch (error) {
      caught = error;
    }
    expect(caught).toBeInstanceOf(FieldProblem);
    expect(caught).toMatchObject({ field: 'age', value: 300 });
    expect((caught as Error).message).toContain('300');
    expect((caught as Error).message).toContain('uint8');
  });
});

describe('values that a type holds', () => {
  it('are the first and the last of each type of numbers, and -0', () => {
    const held: readonly (readonly [TypeId, readonly number[]])[] = [
      [Types.uint8, [0, 255]],
      [Types.int8, [-128, 127]],
      [Types.uint16, [0, 65_535]],
      [Types.int16, [-32_768, 32_767]],
      [Types.uint32, [0, 2 ** 31, 2 ** 32 - 1]],
      [Types.int32, [-(2 ** 31), -1, 2 ** 31 - 1]],
      [Types.float64, [-Infinity, Number.MIN_VALUE, 0.1, 2 ** 53, Number.MAX_VALUE, Infinity]],
    ];
    for (const [typeId, values] of held) {
      for (const value of [...values, -0]) {
        const { layout, rows, field } = emptyRow(typeId);
        writeField(rows, 0, new ByteWriter(), field, value);
        const source = {
          rows: rows.bytes,
          rowsView: rows.view,
          rowsStart: 0,
          heap: rows.bytes,
          heapStart: 0,
          heapEnd: 0,
        };
        const read = decodeRow(layout, { ...source, name: 'row', text: undefined }, 0);
        expect(read, `type ${typeId}`).toEqual({ a: typeId === Types.float64 ? value : value + 0 });
      }
    }
  });

  it('are brought into one form', () => {
    expect(normalizeValue(Types.uint64, 5)).toBe(5n);
    expect(normalizeValue(Types.int64, Number.MIN_SAFE_INTEGER)).toBe(BigInt(Number.MIN_SAFE_INTEGER));
    expect(normalizeValue(Types.float32, 0.1)).toBe(Math.fround(0.1));
    expect(normalizeValue(Types.float32, Infinity)).toBe(Infinity);
    expect(normalizeValue(Types.uuid, 'A0B1C2D3-E4F5-0617-8899-AABBCCDDEEFF')).toBe(
      'a0b1c2d3-e4f5-0617-8899-aabbccddeeff',
    );
    expect(normalizeValue(Types.varchar, '\u{1F600}')).toBe('\u{1F600}');
  });

  it('JSON reads back exactly as it is', () => {
    fc.assert(
      fc.property(fc.jsonValue({ stringUnit: 'binary', maxDepth: 5 }), (value) => {
        fc.pre(!containsNegativeZero(value));
        expect(JSON.parse(normalizeValue(Types.json, value) as string)).toEqual(value);
      }),
    );
    const odd = JSON.parse('{"__proto__": {"a": 1}, "constructor": 2, "10": 1, "9": 2, "": "\\ud800"}') as unknown;
    const read: unknown = JSON.parse(normalizeValue(Types.json, odd) as string);
    expect(read).toStrictEqual(odd);
    expect(Object.keys(read as object)).toContain('__proto__');
    expect(normalizeValue(Types.json, nested(500))).toHaveLength(1001);
  });

  it('UUIDs go into 16 bytes and come back', () => {
    fc.assert(
      fc.property(fc.uuid(), (uuid) => {
        const bytes = new Uint8Array(18);
        writeUuid(uuid, bytes, 1);
        expect(formatUuid(bytes, 1)).toBe(uuid);
        expect([bytes[0], bytes[17]]).toEqual([0, 0]);
      }),
    );
  });
});

function containsNegativeZero(value: unknown): boolean {
  if (typeof value === 'object' && value !== null) return Object.values(value).some(containsNegativeZero);
  return Object.is(value, -0);
}

describe('documents', () => {
  const names = ['__proto__', 'constructor', 'toString', 'hasOwnProperty', 'id'];
  const layout = new RowLayout(names.map((name) => ({ name, typeId: Types.uint8 })));

  it('may have fields that every object inherits, and hold only their own properties', () => {
    const document = JSON.parse('{"__proto__": 1, "constructor": 2, "id": 3}') as object;
    checkDocument(document);
    const rows = new ByteWriter();
    const base = appendNullRow(layout, rows);
    for (const field of layout.fields) {
      const value = documentValue(document, field);
      if (value !== undefined) writeField(rows, base, new ByteWriter(), field, value);
    }
    const source = { rows: rows.bytes, rowsView: rows.view, heap: rows.bytes, name: 'test', text: undefined };
    const row = decodeRow(layout, { ...source, rowsStart: 0, heapStart: 0, heapEnd: 0 }, base);
    expect(Object.keys(row)).toEqual(names);
    expect(Object.getPrototypeOf(row)).toBe(Object.prototype);
    expect(Object.values(row)).toEqual([1, 2, null, null, 3]);
    expect(({} as Record<string, unknown>)['1']).toBeUndefined();
  });

  it('are refused where they have fields that the schema does not name, or are no objects', () => {
    expect(() => checkKeys(layout, { id: 1, nmae: 2 }, 1)).toThrow(/'nmae'/);
    for (const value of [null, undefined, 1, 'x', [], [1]]) {
      expect(() => checkDocument(value)).toThrow(FieldProblem);
    }
  });
});
