import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ByteWriter } from '../base/bytes.ts';
import { CorruptionError } from '../base/errors.ts';
import { BlockKind } from './block.ts';
import { NodeEntries, rowHeapBytes } from './node-entries.ts';
import { openNode } from './node.ts';
import { decodeRow, isNull, readField } from './row-decode.ts';
import { appendNullRow, copyField, copyRow, writeField } from './row-encode.ts';
import { inlineBytes, RowLayout, rowStride } from './row-layout.ts';
import type { TypedField, LayoutField, RowSource } from './row-layout.ts';
import { integerBounds, maxTimestampMs, Types, widthOf } from './types.ts';
import type { TypeId } from './types.ts';

type Row = Readonly<Record<string, unknown>>;

/** Returns a row's fields as a list: a field called `constructor` or `__proto__` would confuse a comparison of objects. */
function listed(row: Row): unknown[] {
  expect(Object.getPrototypeOf(row)).toBe(Object.prototype);
  return Object.entries(row);
}

/** Rows and their heap in memory, as a batch holds them. */
class Rows implements RowSource {
  readonly writer = new ByteWriter(1);
  readonly heapWriter = new ByteWriter(1);
  readonly name = 'memory/test';
  readonly rowsStart = 0;
  readonly heapStart = 0;
  readonly text = undefined;
  get rows(): Uint8Array {
    return this.writer.bytes;
  }
  get rowsView(): DataView {
    return this.writer.view;
  }
  get heap(): Uint8Array {
    return this.heapWriter.bytes;
  }
  get heapEnd(): number {
    return this.heapWriter.length;
  }

  add(layout: RowLayout, row: Row): number {
    const base = appendNullRow(layout, this.writer);
    for (const field of layout.fields) {
      const value = Object.hasOwn(row, field.name) ? row[field.name] : undefined;
      if (value !== null && value !== undefined) writeField(this.writer, base, this.heapWriter, field, value);
    }
    return base;
  }
}

/** Texts of about the length that fits in a view, with characters of 1 to 4 bytes. */
const texts = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 20 }),
  fc
    .tuple(fc.constantFrom('a', '\0', '\u007f', 'é', '€', '😀'), fc.nat({ max: 14 }), fc.constantFrom('', 'z', 'ß'))
    .map(([character, times, end]) => character.repeat(times) + end),
  fc.nat({ max: 2000 }).map((length) => 'long'.repeat(length)),
);

function valuesOf(typeId: TypeId): fc.Arbitrary<unknown> {
  const bounds = integerBounds(typeId);
  if (bounds !== undefined) return fc.integer(bounds);
  switch (typeId) {
    case Types.uint64:
      return fc.bigInt({ min: 0n, max: 2n ** 64n - 1n });
    case Types.int64:
      return fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n });
    case Types.float64:
      return fc.double({ noNaN: true });
    case Types.float32:
      return fc.float({ noNaN: true });
    case Types.boolean:
      return fc.boolean();
    case Types.timestamp:
      return fc.integer({ min: -maxTimestampMs, max: maxTimestampMs }).map((time) => new Date(time));
    case Types.uuid:
    case Types.blob:
      return fc.uuid();
    case Types.bytes:
      return fc.uint8Array({ maxLength: 40 }).map((bytes) => Buffer.from(bytes));
    case Types.json:
      // Null in a row means that the field is null, for every type. -0 is refused.
      return fc
        .jsonValue({ maxDepth: 2 })
        .filter((value) => !JSON.stringify([value]).includes('null'))
        .map((value) => JSON.parse(JSON.stringify(value)) as unknown);
    default:
      return texts;
  }
}

const names = fc.oneof(
  { weight: 5, arbitrary: fc.string({ minLength: 1, maxLength: 8 }) },
  fc.constantFrom('__proto__', 'constructor', 'toString', 'naïve', '\uffff', '\u{10000}', 'id'),
);
const schemas = fc.uniqueArray(fc.record({ name: names, typeId: fc.constantFrom(...Object.values(Types)) }), {
  minLength: 1,
  maxLength: 20,
  selector: (field) => field.name,
});

const tables = schemas.chain((fields) => {
  const values = fields.map(({ typeId }) => fc.option(valuesOf(typeId), { freq: 5 }));
  const row = fc.tuple(...values).map((list): Row => {
    return Object.fromEntries(fields.map(({ name }, i) => [name, list[i]]));
  });
  return fc.record({ fields: fc.constant(fields), rows: fc.array(row, { minLength: 1, maxLength: 8 }) });
});

function nodeOf(layout: RowLayout, source: RowSource, bases: readonly number[]): ReturnType<typeof openNode> {
  const entries = new NodeEntries({ kind: BlockKind.table, level: 0, layout, schemaVersion: 1 });
  bases.forEach((base, i) => entries.addRow(Uint8Array.of(i), 0, 1, source, base));
  return openNode('data/t/1', entries.encode('data/t/1', 0, bases.length));
}

describe('rows', () => {
  it('read back as they were written: from a batch, from a node, from its text, and copied', () => {
    fc.assert(
      fc.property(tables, ({ fields, rows }) => {
        const layout = new RowLayout(fields);
        const source = new Rows();
        const bases = rows.map((row) => source.add(layout, row));
        const expected = rows.map(listed);
        expect(bases.map((base) => listed(decodeRow(layout, source, base)))).toStrictEqual(expected);
        const node = nodeOf(layout, source, bases);
        const heapBytes = bases.reduce((sum, base) => sum + rowHeapBytes(layout, source, base), 0);
        expect(node.heapEnd - node.heapStart).toBe(heapBytes);
        const decoded = (): unknown[] => rows.map((_, i) => listed(decodeRow(layout, node, node.rowBase(i))));
        expect(decoded()).toStrictEqual(expected);
        node.expectReads(1000);
        expect(node.text).toBeDefined();
        expect(decoded()).toStrictEqual(expected);
        const copies = new Rows();
        copies.heapWriter.append(Uint8Array.of(1, 2, 3));
        const copied = rows.map((_, i) => copyRow(layout, node, node.rowBase(i), copies.writer, copies.heapWriter));
        expect(copied.map((base) => listed(decodeRow(layout, copies, base)))).toStrictEqual(expected);
      }),
      { numRuns: 400 },
    );
  });

  it('take over single fields of others', () => {
    fc.assert(
      fc.property(tables, fc.nat(), ({ fields, rows }, pick) => {
        const layout = new RowLayout(fields);
        const [source, target] = [new Rows(), new Rows()];
        const [from, to] = [rows[0] as Row, rows[rows.length - 1] as Row];
        const field = layout.fields[pick % layout.fields.length] as LayoutField;
        const [fromBase, base] = [source.add(layout, from), target.add(layout, to)];
        copyField(field, widthOf(field.typeId), source, fromBase, target.writer, base, target.heapWriter);
        const expected = decodeRow(layout, target, target.add(layout, to));
        Object.defineProperty(expected, field.name, { value: from[field.name] });
        expect(listed(decodeRow(layout, target, base))).toStrictEqual(listed(expected));
      }),
      { numRuns: 200 },
    );
  });

  it('hold nulls as such, and leave their bytes zero', () => {
    const fields = Object.entries(Types).map(([name, typeId]): TypedField => ({ name, typeId }));
    const layout = new RowLayout(fields);
    const source = new Rows();
    const base = source.add(layout, {});
    for (const field of layout.fields) {
      expect(isNull(source, base, field)).toBe(true);
      expect(readField(source, base, field)).toBeNull();
    }
    expect(source.rows.slice(layout.bitmapBytes, layout.stride)).toEqual(
      new Uint8Array(layout.stride - layout.bitmapBytes),
    );
    expect((source.rows[base] as number) & 3).toBe(0);
  });
});

describe('the layout', () => {
  it('puts fields in the order of their names, in any order of definition', () => {
    const fields: TypedField[] = [
      { name: '\u{10000}', typeId: Types.uint8 },
      { name: 'b', typeId: Types.varchar },
      { name: '\uffff', typeId: Types.uint16 },
      { name: 'a', typeId: Types.float64 },
    ];
    const layout = new RowLayout(fields);
    expect(layout.fields.map((field) => field.name)).toEqual(['a', 'b', '\uffff', '\u{10000}']);
    expect(layout.fields.map((field) => field.offset)).toEqual([1, 9, 25, 27]);
    expect(layout.declared.map((field) => field.name)).toEqual(fields.map((field) => field.name));
    expect(layout.stride).toBe(28);
    expect(rowStride(fields)).toBe(28);
    expect(new RowLayout(fields.toReversed()).stride).toBe(28);
  });

  it('has a bit for each field after the two marks', () => {
    for (const [count, bytes] of [
      [6, 1],
      [7, 2],
      [14, 2],
      [15, 3],
    ] as const) {
      const fields = Array.from({ length: count }, (_, i) => ({ name: `f${i}`, typeId: Types.boolean }));
      expect(new RowLayout(fields).bitmapBytes).toBe(bytes);
    }
  });
});

describe('long and short texts', () => {
  const layout = new RowLayout([{ name: 'text', typeId: Types.varchar }]);
  const field = layout.fields[0] as LayoutField;

  it('stay in the row up to 12 bytes of UTF-8', () => {
    for (const character of ['a', 'é', '€', '😀']) {
      for (let times = 0; times <= 13; times++) {
        const text = character.repeat(times);
        const rows = new Rows();
        const base = rows.add(layout, { text });
        expect(readField(rows, base, field)).toBe(text);
        const bytes = Buffer.byteLength(text);
        expect(rows.heapEnd, `${times} times ${character}`).toBe(bytes <= inlineBytes ? 0 : bytes);
      }
    }
  });

  it('are refused by readers where they point outside the heap', () => {
    const rows = new Rows();
    const base = rows.add(layout, { text: 'longer than twelve bytes' });
    const node = nodeOf(layout, rows, [base]);
    for (const [at, value] of [
      [0, 25],
      [0, 0x7fffffff],
      [8, 1],
      [8, 0xffffffff],
    ] as const) {
      const bytes = node.rows.slice();
      const view = new DataView(bytes.buffer);
      view.setUint32(node.rowBase(0) + field.offset + at, value, true);
      const { rowsStart, heapStart, heapEnd } = node;
      const damaged: RowSource = {
        name: 'x',
        rows: bytes,
        rowsView: view,
        heap: bytes,
        text: undefined,
        rowsStart,
        heapStart,
        heapEnd,
      };
      expect(() => readField(damaged, node.rowBase(0), field)).toThrow(CorruptionError);
      expect(() => copyRow(layout, damaged, node.rowBase(0), new ByteWriter(), new ByteWriter())).toThrow(
        CorruptionError,
      );
    }
  });
});
