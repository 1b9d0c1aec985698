/** Keys that are given out as they were given in, and documents that are only checked. */
import { describe, expect, it } from 'vitest';
import { realEnvironment } from '../base/env.ts';
import { readField } from '../format/row-decode.ts';
import { Types } from '../format/types.ts';
import { toStoredSchema } from '../schema/schema.ts';
import { shapeOf } from '../schema/table-shape.ts';
import { Operation, TableOperations } from './table-operations.ts';

const shape = shapeOf(
  toStoredSchema({
    name: 'kept',
    version: 1,
    fields: {
      at: { typeId: Types.timestamp },
      id: { typeId: Types.uuid },
      of: { typeId: Types.float32 },
      text: { typeId: Types.varchar, required: true },
      long: { typeId: Types.varchar },
    },
    primaryKey: ['id', 'at', 'of'],
  }),
);
const named = shapeOf(
  toStoredSchema({
    name: 'named',
    version: 1,
    fields: { tenant: { typeId: Types.uint32 }, slug: { typeId: Types.varchar }, text: { typeId: Types.varchar } },
    primaryKey: ['slug', 'tenant'],
  }),
);
const id = '0F8FAD5B-D9CB-469F-A165-70867728950E';

describe('the key of an added document', () => {
  it('is as it is read back, and nothing that the caller may change', () => {
    const operations = new TableOperations(shape, realEnvironment);
    const at = new Date(1000);
    const key = operations.addDocument(Operation.insert, { at, id, of: 0.1, text: 'a' }) as [string, Date, number];
    expect(key).toEqual([id.toLowerCase(), new Date(1000), Math.fround(0.1)]);
    expect(key[1]).not.toBe(at);
    at.setTime(5);
    expect(key[1].getTime()).toBe(1000);
    expect(key).toEqual(shape.keyFields.map((field) => readField(operations.arena, operations.base(0), field)));
    expect(key).toEqual(shape.keyValue(operations.keys.key(0)));
  });

  it('is in the order of the key, and not of the fields', () => {
    const operations = new TableOperations(named, realEnvironment);
    expect(operations.addDocument(Operation.insert, { tenant: 7, slug: 'é', text: null })).toEqual(['é', 7]);
    expect(named.keyValue(operations.keys.key(0))).toEqual(['é', 7]);
  });

  it('has 0 for the -0 of a document, where the field holds integers', () => {
    const operations = new TableOperations(named, realEnvironment);
    expect(operations.addDocument(Operation.insert, { tenant: -0, slug: 'a' })).toEqual(['a', 0]);
  });

  it('is of the values that the row has, where a document gives another each time', () => {
    const operations = new TableOperations(named, realEnvironment);
    let reads = 0;
    const document = {
      get slug(): string {
        return `s${reads++}`;
      },
      tenant: 1,
    };
    const key = operations.addDocument(Operation.insert, document);
    expect(key).toEqual(named.rowKey(operations.arena, operations.base(0)));
    expect(key).toEqual(named.keyValue(operations.keys.key(0)));
  });

  it('is refused where a part of it is missing or too long', () => {
    const operations = new TableOperations(named, realEnvironment);
    const add = (document: object) => () => operations.addDocument(Operation.insert, document);
    expect(add({ slug: 'a' })).toThrow(/field 'tenant'.*made of slug, tenant: every row needs all/);
    expect(add({ slug: null, tenant: 1 })).toThrow(/field 'slug'.*missing, or null/);
    expect(add({ slug: 'x'.repeat(1025), tenant: 1 })).toThrow(/field 'slug, tenant'.*1025 bytes/);
    expect(operations.count).toBe(0);
    expect(operations.keys.count).toBe(0);
  });
});

describe('a document that is tried', () => {
  const good = { at: new Date(0), id, of: 1, text: 'a', long: 'é'.repeat(200) };

  it('leaves nothing behind, and does not change operations added before and after', () => {
    const operations = new TableOperations(shape, realEnvironment);
    const alone = new TableOperations(shape, realEnvironment);
    const other = { ...good, at: new Date(9), long: 'z'.repeat(30) };
    for (const document of [good, other]) {
      operations.tryDocument(Operation.insert, { ...good, text: 'y'.repeat(500), at: new Date(77) });
      expect(() => operations.tryDocument(Operation.insert, { ...good, text: null })).toThrow(/text/);
      operations.addDocument(Operation.insert, document);
      alone.addDocument(Operation.insert, document);
    }
    expect(operations.count).toBe(2);
    expect(operations.sizeBytes).toBe(alone.sizeBytes);
    for (const i of [0, 1]) {
      expect(operations.keys.key(i)).toEqual(alone.keys.key(i));
      for (const field of shape.layout.fields) {
        const value = readField(operations.arena, operations.base(i), field);
        expect(value).toEqual(readField(alone.arena, alone.base(i), field));
        expect(operations.names(i, field)).toBe(alone.names(i, field));
      }
    }
  });

  it.each([
    ['a value that does not fit', { ...good, of: 'x' }],
    ['a field that there is not', { ...good, txt: 1 }],
    ['a required field that is missing', { ...good, text: undefined }],
    ['a part of the key that is missing', { ...good, at: null }],
    ['no document', 5],
  ])('is refused as one that is added: %s', (_, document) => {
    const tried = new TableOperations(shape, realEnvironment);
    const errorOf = (work: () => unknown): unknown => {
      try {
        work();
      } catch (error) {
        return error;
      }
      return undefined;
    };
    const error = errorOf(() => tried.tryDocument(Operation.insert, document));
    expect(error).toMatchObject({ code: 'ENCODE' });
    expect(error).toEqual(errorOf(() => tried.addDocument(Operation.insert, document)));
  });
});
