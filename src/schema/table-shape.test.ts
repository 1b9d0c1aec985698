import { describe, expect, it } from 'vitest';
import { ByteWriter, compareBytes } from '../base/bytes.ts';
import { MalformedKey } from '../format/ordered-key.ts';
import { appendNullRow, RowArena, writeField } from '../format/row-encode.ts';
import type { LayoutField } from '../format/row-layout.ts';
import { Types } from '../format/types.ts';
import type { TypeId } from '../format/types.ts';
import { keyDocument, keyOfDocument } from './key-documents.ts';
import { haveSameKeys } from './same-shape.ts';
import { toStoredSchema } from './schema.ts';
import { writeIndexEntry } from './index-entries.ts';
import { primaryKeyOf, shapeOf, TableShape } from './table-shape.ts';
import type { KeyValue, TableIndex } from './table-shape.ts';

function schemaOf(name: string, fields: readonly string[] = ['id', 'text']): ReturnType<typeof toStoredSchema> {
  const typed = new Map(fields.map((field) => [field, { typeId: field === 'id' ? Types.int32 : Types.varchar }]));
  return toStoredSchema({ name, version: 1, fields: Object.fromEntries<object>(typed), primaryKey: 'id' });
}

describe('shapeOf', () => {
  it('is one for all who have the same schema, and another for every other', () => {
    const shape = shapeOf(schemaOf('notes'));
    expect(shape).toBeInstanceOf(TableShape);
    expect(shapeOf(schemaOf('notes'))).toBe(shape);
    expect(shapeOf(schemaOf('books'))).not.toBe(shape);
    expect(shapeOf(schemaOf('notes', ['id', 'title']))).not.toBe(shape);
    expect(shapeOf(schemaOf('notes', ['text', 'id']))).not.toBe(shape);
  });

  it('stays right with many shapes, most of them not used any more', () => {
    const kept = Array.from({ length: 100 }, (_, i) => shapeOf(schemaOf(`kept${i}`)));
    for (let i = 0; i < 2000; i++) expect(shapeOf(schemaOf(`passing${i}`)).name).toBe(`passing${i}`);
    kept.forEach((shape, i) => expect(shapeOf(schemaOf(`kept${i}`))).toBe(shape));
  });
});

describe('keys of several fields', () => {
  const keyed = (types: Readonly<Record<string, TypeId>>, primaryKey: readonly string[]): TableShape => {
    const fields = Object.entries(types).map(([name, typeId]) => [name, { typeId }] as const);
    return shapeOf(toStoredSchema({ name: 'keyed', version: 1, fields: Object.fromEntries(fields), primaryKey }));
  };
  const shape = keyed({ size: Types.int16, note: Types.varchar, raw: Types.bytes, at: Types.varchar }, [
    'at',
    'size',
    'raw',
  ]);
  const keyOf = (value: KeyValue): Uint8Array => {
    const writer = new ByteWriter(8);
    shape.writeKey(writer, value);
    return writer.finish();
  };

  it('are their components one after the other, in the order of the key', () => {
    expect(shape.keyNames).toEqual(['at', 'size', 'raw']);
    const places = shape.layout.fields.map(({ name, index }) => [name, shape.keyPlaces[index]]);
    expect(Object.fromEntries(places)).toEqual({ at: 0, size: 1, raw: 2, note: -1 });
    const bytes = [1, 0x61, 0, 0xff, 0x62, 0, 1, 1, 0x7f, 0xff, 1, 7, 0, 1];
    expect([...keyOf(['a\0b', -1, Uint8Array.of(7)])]).toEqual(bytes);
  });

  it('sort as the values do, and read back as they were written', () => {
    const values = ['', '\0', '\0\0', '\0a', 'a', 'a\0', 'a\0b', 'aa', 'b'].flatMap((at) =>
      [-300, 0, 7].flatMap((size) => [[], [0], [0, 1], [1]].map((raw) => [at, size, Buffer.from(raw)] as const)),
    );
    const keys = values.map(keyOf);
    for (let i = 1; i < keys.length; i++) {
      expect(compareBytes(keys[i - 1] as Uint8Array, keys[i] as Uint8Array)).toBeLessThan(0);
    }
    expect(keys.map((key) => shape.keyValue(key))).toEqual(values);
  });

  it('are made into documents, and of them', () => {
    const [at, size, raw] = ['x', 3, Buffer.of(1)];
    expect(keyDocument(shape, [at, size, raw])).toEqual({ at, size, raw });
    expect(keyOfDocument(shape, { size, raw, note: 'n', at })).toEqual([at, size, raw]);
  });

  it('have the same bytes in versions where each part has the same type', () => {
    const types = { n: Types.int16, m: Types.varchar, k: Types.int32 };
    const one = keyed(types, ['m', 'n']);
    expect(haveSameKeys(one, keyed({ b: Types.varchar, a: Types.int16 }, ['b', 'a']))).toBe(true);
    for (const primaryKey of [['m', 'k'], ['n', 'm'], ['m'], ['m', 'n', 'k']]) {
      const other = keyed(types, primaryKey);
      expect(haveSameKeys(one, other), primaryKey.join()).toBe(false);
      expect(haveSameKeys(other, one), primaryKey.join()).toBe(false);
    }
  });
});

describe('index entries', () => {
  it('are the indexed values, the primary key and the included values, to the byte', () => {
    const schema = toStoredSchema({
      name: 'noted',
      version: 1,
      fields: {
        id: { typeId: Types.uint8 },
        size: { typeId: Types.int16 },
        note: { typeId: Types.varchar },
        price: { typeId: Types.float32 },
      },
      primaryKey: 'id',
      indexes: [{ fields: ['size'], include: ['price', 'note'] }],
    });
    const shape = shapeOf(schema);
    const [index] = shape.indexes as [TableIndex];
    const entryOf = (row: Readonly<Record<string, unknown>>): number[] => {
      const arena = new RowArena('memory/row');
      const base = appendNullRow(shape.layout, arena.writer);
      for (const [name, value] of Object.entries(row)) {
        writeField(arena.writer, base, arena.heapWriter, shape.layout.field(name) as LayoutField, value);
      }
      const writer = new ByteWriter(8);
      writeIndexEntry(writer, index, arena, base, Uint8Array.of(1, 7));
      const entry = writer.finish();
      expect([...primaryKeyOf(entry, index)]).toEqual([1, 7]);
      return [...entry];
    };
    expect(entryOf({ id: 7, size: 2, note: 'a', price: 1 })).toEqual(
      [
        [1, 0x80, 2],
        [1, 7],
        [1, 0xbf, 0x80, 0, 0],
        [1, 0x61, 0, 1],
      ].flat(),
    );
    expect(entryOf({ id: 7, price: -0 })).toEqual([0, 1, 7, 1, 0x7f, 0xff, 0xff, 0xff, 0]);
    expect(entryOf({ id: 7, price: 0 })).toEqual([0, 1, 7, 1, 0x80, 0, 0, 0, 0]);
    expect(() => primaryKeyOf(Uint8Array.of(0, 1), index)).toThrow(MalformedKey);
  });
});
