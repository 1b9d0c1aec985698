import { setTimeout as sleep } from 'node:timers/promises';
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ByteWriter } from '../base/bytes.ts';
import { EncodeError } from '../base/errors.ts';
import { decodeRow } from '../format/row-decode.ts';
import { typeName, Types } from '../format/types.ts';
import type { TypeId } from '../format/types.ts';
import { normalizeValue } from '../format/values.ts';
import { toStoredSchema } from '../schema/schema.ts';
import type { MigrateFunction, PlainRow, FieldDefinition } from '../schema/schema.ts';
import { TableShape } from '../schema/table-shape.ts';
import type { RowRef } from '../tree/tree.ts';
import { PlainRows, RowNotMigrated, RowTranslation, versionConflict } from './row-translation.ts';

function shapeOf(
  version: number,
  fields: Record<string, FieldDefinition>,
  primaryKey: string | readonly string[] = 'id',
): TableShape {
  return new TableShape(toStoredSchema({ name: 't', version, fields, primaryKey }));
}

const key = { id: { typeId: Types.uint32 } };

function rowRefOf(shape: TableShape, row: PlainRow): RowRef {
  const rows = new PlainRows();
  // Not the first row of its arena, so that a base of 0 is not right by chance.
  rows.add(shape.layout, {});
  return { source: rows, base: rows.add(shape.layout, row) };
}

function failure(run: () => unknown): RowNotMigrated {
  try {
    run();
  } catch (error) {
    if (error instanceof RowNotMigrated) return error;
    throw error;
  }
  throw new Error('Nothing was thrown');
}

/** Translates a row, which must give the same result for a plain row and for an encoded row. */
function forward(translation: RowTranslation, row: PlainRow): PlainRow {
  const rowRef = rowRefOf(translation.from, row);
  const made = translation.forward(rowRef);
  expect(translation.forwardPlain(decodeRow(translation.from.layout, rowRef.source, rowRef.base))).toEqual(made);
  const rows = new PlainRows();
  rows.add(translation.to.layout, {});
  const at = translation.forwardInto(rowRef, rows);
  expect(decodeRow(translation.to.layout, rows, at)).toEqual(made);
  return made;
}

/**
 * Converts a value of one type to another, or returns the problem; the result must be the same for a plain row and an encoded
 * row.
 */
function carried(from: TypeId, to: TypeId, value: unknown): unknown {
  const translation = new RowTranslation(
    shapeOf(1, { ...key, value: { typeId: from } }),
    shapeOf(2, { ...key, value: { typeId: to } }),
    undefined,
    undefined,
  );
  const row = { id: 1, value };
  const reasons = [
    () => translation.forwardPlain(row),
    () => translation.forwardInto(rowRefOf(translation.from, row), new PlainRows()),
  ].map((run) => {
    try {
      run();
      return undefined;
    } catch (error) {
      return `${String(error)} (row ${String((error as RowNotMigrated).primaryKey)})`;
    }
  });
  expect(reasons[0]).toBe(reasons[1]);
  return reasons[0] ?? forward(translation, row)['value'];
}

const samples: Record<number, unknown> = {
  [Types.uint8]: 200,
  [Types.uint16]: 40_000,
  [Types.uint32]: 3_000_000_000,
  [Types.uint64]: 2n ** 63n + 1n,
  [Types.int8]: -100,
  [Types.int16]: -30_000,
  [Types.int32]: -2_000_000_000,
  [Types.int64]: -(2n ** 62n) - 1n,
  [Types.float64]: 0.1,
  [Types.varchar]: 'long enough for the heap: žluťoučký',
  [Types.blob]: '01234567-89ab-cdef-0123-456789abcdef',
  [Types.boolean]: true,
  [Types.timestamp]: new Date(1_700_000_000_123),
  [Types.json]: { b: [1, { a: null }], a: 'x'.repeat(20) },
  [Types.uuid]: '01234567-89ab-cdef-0123-456789abcdef',
  [Types.bytes]: Buffer.from('0123456789abcdef'),
  [Types.float32]: 1.5,
};
const typeIds = Object.values(Types);

const integers: readonly TypeId[] = [1, 2, 3, 4, 5, 6, 7, 8];
const numbers: ReadonlySet<TypeId> = new Set([...integers, Types.float64, Types.float32]);

/** The expected result of converting 5, or a sample, of one type to another. */
function expectedOf(from: TypeId, to: TypeId, value: unknown): unknown {
  const five = to === Types.uint64 || to === Types.int64 ? 5n : 5;
  if (numbers.has(from) && numbers.has(to)) return five;
  if (from === Types.varchar && integers.includes(to)) return five;
  if (integers.includes(from) && to === Types.varchar) return '5';
  if (from === Types.uuid && to === Types.varchar) return value;
  return expect.stringMatching(/(give the new version a `migrate` function|is not a UUID)/);
}

describe('values that carry over', () => {
  it.each(typeIds)('keeps type %i as it is, and null', (typeId) => {
    expect(carried(typeId, typeId, samples[typeId])).toEqual(samples[typeId]);
    for (const other of typeIds) expect(carried(typeId, other, null)).toBeNull();
  });

  it('goes between exactly these types', () => {
    const small: Record<number, unknown> = { 4: 5n, 8: 5n, [Types.varchar]: '5' };
    for (const from of typeIds) {
      for (const to of typeIds) {
        if (from === to) continue;
        const value = numbers.has(from) || from === Types.varchar ? (small[from] ?? 5) : samples[from];
        expect(carried(from, to, value), `${typeName(from)} to ${typeName(to)}`).toEqual(expectedOf(from, to, value));
      }
    }
    expect(carried(Types.varchar, Types.uuid, '01234567-89AB-cdef-0123-456789abcdef')).toBe(samples[Types.uuid]);
  });

  it('refuses values that the new type cannot hold', () => {
    const refused: [TypeId, TypeId, unknown][] = [
      [Types.uint16, Types.uint8, 256],
      [Types.int8, Types.uint8, -1],
      [Types.uint32, Types.int32, 2 ** 31],
      [Types.int64, Types.int32, 2n ** 53n],
      [Types.int64, Types.int32, 2n ** 60n],
      [Types.int64, Types.uint64, -1n],
      [Types.int8, Types.uint64, -1],
      [Types.uint64, Types.int64, 2n ** 63n],
      [Types.int64, Types.float64, 2n ** 53n + 1n],
      [Types.uint32, Types.float32, 2 ** 24 + 1],
      [Types.uint64, Types.float32, 2n ** 64n - 1n],
      [Types.float64, Types.int32, 0.5],
      [Types.float64, Types.int64, 0.5],
      [Types.float64, Types.int64, Number.POSITIVE_INFINITY],
      [Types.float64, Types.int64, 2 ** 63],
      [Types.float64, Types.float32, 1e300],
      [Types.varchar, Types.int32, '1e3'],
      [Types.varchar, Types.int32, ''],
      [Types.varchar, Types.int32, '05'],
      [Types.varchar, Types.int32, '-0'],
      [Types.varchar, Types.uint8, '256'],
      [Types.varchar, Types.uint64, '9'.repeat(20)],
      [Types.varchar, Types.uint64, '1'.repeat(200)],
      [Types.varchar, Types.uuid, 'x'],
    ];
    for (const [from, to, value] of refused)
      expect(carried(from, to, value)).toMatch(/^MigrationError: Field 'value': .* \(row 1\)$/);
  });

  it('takes values that the new type can hold', () => {
    expect(carried(Types.float64, Types.int64, 2 ** 62)).toBe(2n ** 62n);
    expect(carried(Types.int64, Types.float64, -(2n ** 60n))).toBe(-(2 ** 60));
    expect(carried(Types.float64, Types.float32, 0.1)).toBe(Math.fround(0.1));
    expect(carried(Types.float64, Types.float32, Number.NEGATIVE_INFINITY)).toBe(Number.NEGATIVE_INFINITY);
    expect(carried(Types.varchar, Types.uint64, '18446744073709551615')).toBe(2n ** 64n - 1n);
    expect(carried(Types.float32, Types.int8, -0)).toBe(0);
  });

  it('gives new fields their constant default, and leaves out those that are gone', () => {
    const to = shapeOf(2, {
      ...key,
      json: { typeId: Types.json, default: { a: [1] } },
      big: { typeId: Types.uint64, default: 7 },
      day: { typeId: Types.timestamp, default: new Date(5) },
      raw: { typeId: Types.bytes, default: Buffer.from([1, 2]) },
      made: { typeId: Types.uuid, default: 'uuidv7' },
      none: { typeId: Types.varchar },
    });
    const from = shapeOf(1, { ...key, gone: { typeId: Types.varchar } });
    const translation = new RowTranslation(from, to, undefined, undefined);
    const row = forward(translation, { id: 1, gone: 'x' });
    expect(row).toEqual({
      id: 1,
      json: { a: [1] },
      big: 7n,
      day: new Date(5),
      raw: Buffer.from([1, 2]),
      made: null,
      none: null,
    });
    (row['json'] as { a: number[] }).a.push(2);
    (row['raw'] as Buffer)[0] = 9;
    expect(forward(translation, { id: 1 })).toMatchObject({ json: { a: [1] }, raw: Buffer.from([1, 2]) });
  });

  it('takes names that every object has for names', () => {
    const names = ['__proto__', 'constructor', 'toString'];
    const fields = Object.fromEntries(
      [...names.map((name) => [name, { typeId: Types.varchar }]), ['id', { typeId: Types.uint32 }]].map(([k, v]) => [
        k,
        v,
      ]),
    ) as Record<string, FieldDefinition>;
    const translation = new RowTranslation(shapeOf(1, key), shapeOf(2, fields), () => ({ id: 1 }), undefined);
    const row = translation.forward(rowRefOf(shapeOf(1, key), { id: 1 }));
    expect(Object.keys(row).toSorted()).toEqual([...names, 'id'].toSorted());
    expect(Object.values(row)).toEqual(expect.arrayContaining([null, null, null, 1]));
    expect(Object.getPrototypeOf(row)).toBe(Object.prototype);
  });
});

const person1 = shapeOf(1, { ...key, name: { typeId: Types.varchar }, tags: { typeId: Types.json } });
const person2 = shapeOf(2, {
  ...key,
  first: { typeId: Types.varchar },
  last: { typeId: Types.varchar, default: 'X' },
  tags: { typeId: Types.json },
});

function split(row: PlainRow): PlainRow {
  const [first, last] = String(row['name']).split(' ');
  return { ...row, first, last };
}

describe('a migrate function', () => {
  it('makes the row; missing fields are null or the default, and fields of the old version alone are left out', () => {
    const seen: unknown[] = [];
    const migrate: MigrateFunction = (row, fromVersion) => {
      seen.push(fromVersion);
      return split(row);
    };
    const translation = new RowTranslation(person1, person2, migrate, undefined);
    expect(forward(translation, { id: 7, name: 'Ada Lovelace', tags: ['a'] })).toEqual({
      id: 7,
      first: 'Ada',
      last: 'Lovelace',
      tags: ['a'],
    });
    expect(forward(translation, { id: 7, name: 'Ada' })).toEqual({ id: 7, first: 'Ada', last: 'X', tags: null });
    expect(new Set(seen)).toEqual(new Set([1]));
  });

  it.each<[string, unknown, RegExp]>([
    ['nothing', undefined, /returned undefined/],
    ['null', null, /returned null/],
    ['a list', [], /returned an array/],
    ['a promise', Promise.resolve({ id: 1 }), /returned a promise/],
    ['an unknown field', { id: 1, firts: 'x' }, /a field 'firts', which neither version has/],
    ['a value of another type', { id: 1, first: 5 }, /field 'first': 5 does not fit type varchar/],
    ['another primary key', { id: 2 }, /gave the primary key 2/],
    ['a null primary key', { id: null }, /gave the primary key null/],
    ['a primary key of another type', { id: '1' }, /field 'id': '1' does not fit/],
    ['what JSON cannot hold', { id: 1, tags: [Number.NaN] }, /field 'tags'/],
  ])('that returns %s does not migrate the row', (_, made, message) => {
    const translation = new RowTranslation(person1, person2, () => made as PlainRow, undefined);
    const rowRef = rowRefOf(person1, { id: 1, name: 'x' });
    for (const run of [() => translation.forward(rowRef), () => translation.forwardInto(rowRef, new PlainRows())]) {
      const error = failure(run);
      expect(error.message).toMatch(message);
      expect([error.table, error.primaryKey]).toEqual(['t', 1]);
    }
  });

  it('that is asynchronous leaves no rejection unhandled', async () => {
    const migrate = (async () => {
      throw new Error('late');
    }) as unknown as MigrateFunction;
    const translation = new RowTranslation(person1, person2, migrate, undefined);
    expect(failure(() => translation.forwardPlain({ id: 1 })).message).toMatch(/returned a promise/);
    await sleep(5);
  });

  it('that throws is the cause', () => {
    const cause = new TypeError('no name');
    const translation = new RowTranslation(
      person1,
      person2,
      () => {
        throw cause;
      },
      undefined,
    );
    const error = failure(() => translation.forward(rowRefOf(person1, { id: 3 })));
    expect(error.cause).toBe(cause);
    expect(error.message).toBe('`migrate` of version 2 threw: no name.');
  });

  it('may change the row that it is given, and keep the row that it returned', () => {
    const kept: PlainRow[] = [];
    const migrate: MigrateFunction = (row) => {
      (row['tags'] as unknown[]).push('more');
      row['name'] = 'changed';
      const made = { id: row['id'], tags: row['tags'] };
      kept.push(made);
      return made;
    };
    const translation = new RowTranslation(person1, person2, migrate, undefined);
    const row1 = { id: 1, name: 'a b', tags: ['one'] };
    const made = translation.forwardPlain(row1);
    (kept[0] as { tags: unknown[] }).tags.push('later');
    expect(made['tags']).toEqual(['one', 'more']);
    expect(row1).toEqual({ id: 1, name: 'a b', tags: ['one'] });
  });
});

describe('back to the version in force', () => {
  const from = shapeOf(1, {
    ...key,
    only: { typeId: Types.varchar },
    count: { typeId: Types.uint8 },
    price: { typeId: Types.float64 },
    given: { typeId: Types.varchar, default: 'd' },
  });
  const to = shapeOf(2, {
    ...key,
    count: { typeId: Types.int64 },
    price: { typeId: Types.float32 },
    added: { typeId: Types.varchar },
  });
  const translation = new RowTranslation(from, to, undefined, undefined);

  it('keeps the fields of the old version alone, and takes the common ones', () => {
    const row1 = { id: 1, only: 'o', count: 5, price: 0.5, given: null };
    const row2 = { ...translation.forwardPlain(row1), count: 6n, added: 'a' };
    expect(translation.back(row2, row1)).toEqual({ id: 1, only: 'o', count: 6, price: 0.5, given: null });
  });

  it('gives a new row the defaults of the old version', () => {
    const row2 = { id: 1, count: 6n, price: null, added: 'a' };
    expect(translation.back(row2, undefined)).toEqual({ id: 1, only: null, count: 6, price: null, given: 'd' });
  });

  it('is null where the old type cannot hold the value', () => {
    expect(translation.back({ id: 1, count: 1000n, price: 1, added: null }, undefined)).toMatchObject({ count: null });
  });

  it('loses no precision of fields that the writer did not change', () => {
    const row1 = { id: 1, only: 'o', count: 5, price: 0.1, given: null };
    const row2 = translation.forwardPlain(row1);
    expect(row2['price']).not.toBe(0.1);
    expect(translation.back({ ...row2, count: 9n }, row1)).toEqual({ ...row1, count: 9 });
  });

  it("uses the old version's own migrate first", () => {
    const joined: MigrateFunction = (row, version) => ({
      id: row['id'],
      name: `${String(row['first'])} ${String(row['last'])} ${version}`,
    });
    const both = new RowTranslation(person1, person2, split, joined);
    const row1 = { id: 1, name: 'Ada Lovelace', tags: ['t'] };
    const row2 = { id: 1, first: 'Ada', last: 'King', tags: ['u'] };
    expect(both.back(row2, row1)).toEqual({ id: 1, name: 'Ada King 2', tags: ['u'] });
    const one = new RowTranslation(person1, person2, split, undefined);
    expect(one.back(row2, row1)).toEqual({ id: 1, name: 'Ada Lovelace', tags: ['u'] });
    const bad = new RowTranslation(person1, person2, split, () => ({ name: 5 }));
    expect(failure(() => bad.back(row2, row1)).message).toMatch(/`migrate` of version 1, field 'name'/);
  });

  it('shares nothing with its input', () => {
    const row1 = { id: 1, name: 'Ada Lovelace', tags: ['t'] };
    const one = new RowTranslation(person1, person2, undefined, (row) => {
      (row['tags'] as unknown[]).push('x');
      return { name: 'n' };
    });
    const row2 = { id: 1, first: null, last: null, tags: ['t'] };
    const made = one.back(row2, row1);
    expect(row2.tags).toEqual(['t']);
    expect(made['tags']).not.toBe(row2.tags);
    expect(made['tags']).not.toBe(row1.tags);
  });
});

describe('fields that were renamed', () => {
  const from = shapeOf(1, { ...key, name: { typeId: Types.varchar }, n: { typeId: Types.varchar } });
  const to = new TableShape(
    toStoredSchema({
      name: 't',
      version: 2,
      fields: { ...key, title: { typeId: Types.varchar }, count: { typeId: Types.uint8 } },
      primaryKey: 'id',
      renames: { title: 'name', count: 'n' },
    }),
  );

  it('carry over, and are converted, in both directions', () => {
    const translation = new RowTranslation(from, to, undefined, undefined);
    const row1 = { id: 1, name: 'a', n: '5' };
    expect(forward(translation, row1)).toEqual({ id: 1, title: 'a', count: 5 });
    expect(translation.back({ id: 1, title: 'b', count: 6 }, row1)).toEqual({ id: 1, name: 'b', n: '6' });
    expect(failure(() => translation.forwardPlain({ id: 1, name: 'a', n: '999' })).message).toMatch(/Field 'count'/);
  });

  it('are there before a migrate function is called, which wins, and carry over where it leaves them out', () => {
    const seen: PlainRow[] = [];
    let made: PlainRow = {};
    const migrate: MigrateFunction = (row) => {
      seen.push({ ...row });
      row['name'] = row['title'] = 'spoilt';
      return made;
    };
    const translation = new RowTranslation(from, to, migrate, migrate);
    const row1 = { id: 1, name: 'a', n: '5' };
    expect(forward(translation, row1)).toEqual({ id: 1, title: 'a', count: 5 });
    expect(seen[0]).toEqual({ id: 1, name: 'a', n: '5', title: 'a', count: 5 });
    made = { title: 'own', count: null };
    expect(forward(translation, row1)).toEqual({ id: 1, title: 'own', count: null });
    // If a value does not fit, the function must make one.
    made = { count: 9 };
    seen.length = 0;
    expect(forward(translation, { id: 1, name: 'a', n: 'many' })).toEqual({ id: 1, title: 'a', count: 9 });
    expect(seen[0]).toEqual({ id: 1, name: 'a', n: 'many', title: 'a' });
    made = { n: 'own' };
    seen.length = 0;
    expect(translation.back({ id: 1, title: 'b', count: 6 }, undefined)).toEqual({ id: 1, name: 'b', n: 'own' });
    expect(seen[0]).toEqual({ id: 1, title: 'b', count: 6, name: 'b', n: '6' });
  });

  it('keep values lost on the way if the writer did not change them', () => {
    const wide = shapeOf(1, { ...key, price: { typeId: Types.float64 } });
    const narrow = new TableShape(
      toStoredSchema({
        name: 't',
        version: 2,
        fields: { ...key, cost: { typeId: Types.float32 } },
        primaryKey: 'id',
        renames: { cost: 'price' },
      }),
    );
    const translation = new RowTranslation(wide, narrow, undefined, undefined);
    const row1 = { id: 1, price: 0.1 };
    expect(translation.back(translation.forwardPlain(row1), row1)).toEqual(row1);
  });

  it('may not be blobs', () => {
    const blob = { typeId: Types.blob };
    const renamed = toStoredSchema({
      name: 't',
      version: 2,
      fields: { ...key, photo: blob },
      primaryKey: 'id',
      renames: { photo: 'image' },
    });
    expect(versionConflict(shapeOf(1, { ...key, image: blob }), new TableShape(renamed))).toMatch(/blob fields/);
  });
});

describe('reconciling', () => {
  it('takes the changes of the old version, and keeps everything else', () => {
    const shape = shapeOf(2, {
      ...key,
      a: { typeId: Types.json },
      b: { typeId: Types.bytes },
      c: { typeId: Types.float64 },
    });
    const translation = new RowTranslation(shape, shape, undefined, undefined);
    const stored = { id: 1, a: { mine: 1 }, b: Buffer.from('mine'), c: 3 };
    const before = { id: 1, a: { x: 1 }, b: Buffer.from('x'), c: 0 };
    expect(translation.reconcile(stored, before, structuredClone(before))).toEqual(stored);
    expect(translation.reconcile(stored, before, { ...before, a: { x: 2 } })).toEqual({ ...stored, a: { x: 2 } });
    expect(translation.reconcile(stored, before, { ...before, b: null })).toEqual({ ...stored, b: null });
    expect(translation.reconcile(stored, before, { ...before, c: -0 })['c']).toBe(-0);
  });
});

describe('bringing in line', () => {
  const from = shapeOf(1, { ...key, rank: { typeId: Types.int32 }, text: { typeId: Types.varchar } });
  const to = shapeOf(2, {
    ...key,
    rank: { typeId: Types.int16 },
    label: { typeId: Types.varchar },
    level: { typeId: Types.uint8, default: 3 },
  });
  const inLine = (migrate: MigrateFunction | undefined, before: PlainRow | undefined, after: PlainRow): PlainRow => {
    const stored = rowRefOf(to, { id: 1, rank: 8, label: 'mine', level: 1 });
    const then = before && rowRefOf(from, { id: 1, ...before });
    return new RowTranslation(from, to, migrate, undefined).inLine(stored, then, rowRefOf(from, { id: 1, ...after }));
  };
  const labelled: MigrateFunction = ({ text, ...row }) => ({
    ...row,
    label: text === null ? null : `<${text as string}>`,
  });
  /** Fits no row of the new version. The old version wrote it, and then another value. */
  const tooLarge = 40_000;

  it('takes only fields that have changed, by functions and without them', () => {
    expect(inLine(undefined, { rank: 5, text: 'a' }, { rank: 6, text: 'b' })).toEqual({
      id: 1,
      rank: 6,
      label: 'mine',
      level: 1,
    });
    expect(inLine(labelled, { rank: 5, text: 'a' }, { rank: 5, text: 'b' })).toEqual({
      id: 1,
      rank: 8,
      label: '<b>',
      level: 1,
    });
  });

  it('looks at each change for itself where the row that was cannot be made', () => {
    const kept = { id: 1, rank: 5, label: 'mine', level: 1 };
    expect(inLine(undefined, { rank: tooLarge, text: 'a' }, { rank: 5, text: 'b' })).toEqual(kept);
    expect(inLine(labelled, { rank: tooLarge, text: 'a' }, { rank: 5, text: 'a' })).toEqual(kept);
    expect(inLine(labelled, { rank: tooLarge, text: 'a' }, { rank: 5, text: 'b' })).toEqual({ ...kept, label: '<b>' });
  });

  it('takes all that carries over where nothing is known of the row that was', () => {
    expect(inLine(undefined, undefined, { rank: 5, text: 'a' })).toEqual({ id: 1, rank: 5, label: 'mine', level: 1 });
  });
});

describe('primary keys of another type', () => {
  function pair(fromType: TypeId, toType: TypeId, toName = 'id'): RowTranslation {
    const from = shapeOf(1, { id: { typeId: fromType }, text: { typeId: Types.varchar } });
    const to = shapeOf(2, { [toName]: { typeId: toType }, text: { typeId: Types.varchar } }, toName);
    return new RowTranslation(from, to, undefined, undefined);
  }

  function keyBytes(shape: TableShape, value: never): Uint8Array {
    const writer = new ByteWriter();
    shape.writeKey(writer, value);
    return writer.finish();
  }

  it.each<[TypeId, TypeId, unknown, unknown]>([
    [Types.uint8, Types.int64, 200, 200n],
    [Types.int64, Types.int16, -5n, -5],
    [Types.uint32, Types.varchar, 77, '77'],
    [Types.varchar, Types.int64, '-9000000000', -9000000000n],
    [Types.uuid, Types.varchar, samples[Types.uuid], samples[Types.uuid]],
    [Types.varchar, Types.uuid, samples[Types.uuid], samples[Types.uuid]],
  ])('goes from %i to %i and back', (fromType, toType, value, converted) => {
    const translation = pair(fromType, toType);
    expect(versionConflict(translation.from, translation.to)).toBeUndefined();
    const row = forward(translation, { id: value, text: 'x' });
    expect(row).toEqual({ id: converted, text: 'x' });
    expect(translation.back(row, undefined)).toEqual({ id: value, text: 'x' });
    const before = keyBytes(translation.from, value as never);
    const after = keyBytes(translation.to, converted as never);
    expect(translation.keyForward(before)).toEqual(after);
    expect(translation.keyBack(after)).toEqual(before);
    expect(translation.keepsKeys).toBe(false);
  });

  it('of several fields takes each of them into account', () => {
    const typed = (types: readonly TypeId[]): Record<string, FieldDefinition> =>
      Object.fromEntries(types.map((typeId, i) => [`k${i}`, { typeId }]));
    const from = shapeOf(1, typed([Types.varchar, Types.uint16, Types.varchar]), ['k0', 'k1', 'k2']);
    const to = shapeOf(2, typed([Types.varchar, Types.varchar, Types.int32]), ['k0', 'k1', 'k2']);
    const translation = new RowTranslation(from, to, undefined, undefined);
    expect(versionConflict(from, to)).toBeUndefined();
    const [row, made] = [
      { k0: 'a', k1: 7, k2: '-3' },
      { k0: 'a', k1: '7', k2: -3 },
    ];
    expect(forward(translation, row)).toEqual(made);
    expect(translation.back(made, undefined)).toEqual(row);
    const before = keyBytes(from, ['a', 7, '-3'] as never);
    const after = keyBytes(to, ['a', '7', -3] as never);
    expect(translation.keepsKeys).toBe(false);
    expect(translation.keyForward(before)).toEqual(after);
    expect(translation.keyBack(after)).toEqual(before);
    const last = shapeOf(3, typed([Types.varchar, Types.varchar, Types.float64]), ['k0', 'k1', 'k2']);
    expect(versionConflict(to, last)).toContain('do not correspond to such keys one to one');
  });

  it('may have another name', () => {
    const translation = pair(Types.uint8, Types.uint8, 'number');
    expect(translation.keepsKeys).toBe(true);
    expect(forward(translation, { id: 4, text: 'x' })).toEqual({ number: 4, text: 'x' });
    expect(translation.back({ number: 5, text: null }, undefined)).toEqual({ id: 5, text: null });
  });

  it('refuses keys that the other type cannot hold or distinguish', () => {
    expect(
      failure(() => pair(Types.varchar, Types.uuid).forwardPlain({ id: String(samples[15]).toUpperCase() })).message,
    ).toMatch(/is not how the uuid/);
    expect(failure(() => pair(Types.varchar, Types.uint8).forwardPlain({ id: '256' })).primaryKey).toBe('256');
    expect(() => pair(Types.uint8, Types.int64).back({ id: 256n, text: null }, undefined)).toThrow(EncodeError);
    expect(() => pair(Types.uint8, Types.varchar).back({ id: '07', text: null }, undefined)).toThrow(
      /Version 1 of table 't'/,
    );
  });

  it('must correspond one to one', () => {
    const conflict = (a: TypeId, b: TypeId): string | undefined => {
      const { from, to } = pair(a, b);
      return versionConflict(from, to);
    };
    for (const [a, b] of [
      [Types.float64, Types.int32],
      [Types.float32, Types.float64],
      [Types.timestamp, Types.int64],
      [Types.boolean, Types.uint8],
      [Types.bytes, Types.varchar],
      [Types.uuid, Types.bytes],
    ] as const) {
      expect(conflict(a, b)).toMatch(/do not correspond/);
      expect(conflict(b, a)).toMatch(/do not correspond/);
    }
    const blob = shapeOf(2, { ...key, picture: { typeId: Types.blob } });
    expect(versionConflict(shapeOf(1, key), blob)).toMatch(/blob fields/);
    expect(versionConflict(blob, blob)).toBeUndefined();
  });
});

function fits(typeId: TypeId, value: unknown): boolean {
  try {
    normalizeValue(typeId, value);
    return true;
  } catch {
    return false;
  }
}

describe('any integers', () => {
  it('come back as they were, or are refused', () => {
    fc.assert(
      fc.property(
        fc.constantFrom(...integers),
        fc.constantFrom(...integers, Types.varchar, Types.float64, Types.float32),
        fc.bigInt({ min: -(2n ** 63n), max: 2n ** 64n - 1n }),
        fc.nat({ max: 63 }),
        (from, to, raw, shift) => {
          const value = raw >> BigInt(shift);
          const plain = from === 4 || from === 8 ? value : Number(value);
          if (!fits(from, plain)) return;
          const there = new RowTranslation(
            shapeOf(1, { ...key, value: { typeId: from } }),
            shapeOf(2, { ...key, value: { typeId: to } }),
            undefined,
            undefined,
          );
          let row: PlainRow;
          try {
            row = there.forwardPlain({ id: 1, value: plain });
          } catch (error) {
            if (error instanceof RowNotMigrated) return;
            throw error;
          }
          expect(there.back(row, undefined)['value']).toEqual(plain);
        },
      ),
    );
  });
});
