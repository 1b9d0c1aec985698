/** `rowSchema()`, and the fields of more than a type: what they take, give back and refuse. */
import { describe, expect, expectTypeOf, it } from 'vitest';
import * as z from 'zod';
import {
  date,
  decimal,
  defineSchema,
  enumOf,
  formatDecimal,
  InvalidOptionError,
  InvalidSchemaError,
  parseDecimal,
  rowSchema,
  StoreDb,
  Types,
} from '../../../src/index.ts';
import type { RowOf, StandardSchema } from '../../../src/index.ts';
import { MemoryDriver } from '../../../src/storage/index.ts';

const orders = defineSchema({
  name: 'orders',
  version: 1,
  fields: {
    id: { typeId: Types.uuid, default: 'uuidv7' },
    status: { ...enumOf('open', 'paid'), default: 'open' },
    total: { ...decimal(2), required: true },
    due: date(),
    at: { typeId: Types.timestamp, default: 'now' },
    seen: { typeId: Types.uint64 },
    mark: { typeId: Types.bytes },
    data: { typeId: Types.json },
    stars: { typeId: Types.uint8 },
    file: { typeId: Types.blob },
  },
  primaryKey: 'id',
  indexes: ['total'],
});

function check(schema: StandardSchema, value: unknown): Promise<unknown> {
  return Promise.resolve(schema['~standard'].validate(value));
}

describe('rowSchema()', () => {
  const schema = rowSchema(orders);

  it('turns a row as JSON has it into a document that an insert takes', async () => {
    const body: unknown = JSON.parse(
      `{"total":"12.50","due":"2026-11-28","at":"2026-11-28T10:00:00Z","seen":"18446744073709551615","mark":"AQI=","data":{"a":[1]},"stars":5}`,
    );
    const result = await check(schema, body);
    const document = {
      total: 1250n,
      due: '2026-11-28',
      at: new Date('2026-11-28T10:00:00Z'),
      seen: 18446744073709551615n,
      mark: new Uint8Array([1, 2]),
      data: { a: [1] },
      stars: 5,
    };
    expect(result).toEqual({ value: document });
    await using db = StoreDb({ dbPrefix: 'app', nodeId: 0, driver: new MemoryDriver(), logLevel: 'silent' });
    db.registerSchema(orders);
    await db.start();
    const batch = db.batch();
    const id = await batch.insert(orders, (result as { value: typeof document }).value);
    await batch.flush();
    expect(await db.get(orders, id)).toMatchObject({ status: 'open', total: 1250n, stars: 5 });
  });

  it.each<[string, object, string, string]>([
    ['an unknown field', { total: 1n, totals: 1 }, 'totals', "Table 'orders' has no such field: did you mean total?"],
    ['a missing field', {}, 'total', 'A value is required.'],
    ['null in a required field', { total: null }, 'total', 'A value is required.'],
    ['null as the key', { total: 1n, id: null }, 'id', 'A value is required.'],
    ['a value of another type', { total: 1n, stars: 'five' }, 'stars', 'uint8'],
    ['a number that is too large', { total: 1n, stars: 256 }, 'stars', '256'],
    ['a value that is not listed', { total: 1n, status: 'lost' }, 'status', "'lost' is none of its values"],
    ['digits that would be rounded', { total: '1.005' }, 'total', 'nothing is rounded'],
    ['a day that is not there', { total: 1n, due: '2026-02-30' }, 'due', 'is no date'],
    ['a time that is not there', { total: 1n, at: '2026-02-30T00:00:00Z' }, 'at', '2026-01-31T12:00:00.000Z'],
    ['bytes that are not base64', { total: 1n, mark: '*' }, 'mark', 'base64'],
  ])('refuses %s', async (_, row, field, message) => {
    const { issues } = (await check(schema, row)) as { issues: { message: string; path: unknown[] }[] };
    expect(issues).toHaveLength(1);
    expect(issues[0]?.path).toEqual([field]);
    expect(issues[0]?.message).toContain(message);
  });

  it.each([null, undefined, 1, 'x', [], [{}]])('refuses %j, which is no row', async (value) => {
    expect(await check(schema, value)).toMatchObject({ issues: [{ path: [] }] });
  });

  it('takes no field from a prototype', async () => {
    expect(await check(schema, Object.create({ total: 1n }))).toMatchObject({ issues: [{ path: ['total'] }] });
  });

  it('takes any of the fields for an update', async () => {
    const partial = rowSchema(orders, { partial: true });
    expect(await check(partial, { stars: 1, seen: null })).toEqual({ value: { stars: 1, seen: null } });
    expect(await check(partial, {})).toEqual({ value: {} });
    expect(await check(partial, { total: null })).toMatchObject({ issues: [{ path: ['total'] }] });
    expect(() => rowSchema(orders, { parital: true } as never)).toThrow(InvalidOptionError);
    expect(() => rowSchema({ ...orders, primaryKey: 'no' } as never)).toThrow(InvalidSchemaError);
  });

  it('runs the validate of the definition on the row that would be stored', async () => {
    const checked = {
      ...orders,
      validate: z.object({
        id: z.string(),
        status: z.enum(['open']),
        total: z.bigint().positive(),
        due: z.string().nullable(),
        seen: z.bigint().optional(),
      }),
    };
    expect(await check(rowSchema(checked), { total: '1' })).toEqual({ value: { total: 100n } });
    expect(await check(rowSchema(checked), { total: '-1' })).toMatchObject({ issues: [{ path: ['total'] }] });
    expect(await check(rowSchema(checked), { total: 1n, status: 'paid' })).toMatchObject({
      issues: [{ path: ['status'] }],
    });
    expect(await check(rowSchema(checked, { partial: true }), { status: 'paid' })).toEqual({
      value: { status: 'paid' },
    });
  });

  it('gives its types on', () => {
    type Input = NonNullable<(typeof schema)['~standard']['types']>['input'];
    type Output = NonNullable<(typeof schema)['~standard']['types']>['output'];
    expectTypeOf<{ total: string; at: string; status: 'paid' }>().toExtend<Input>();
    expectTypeOf<{ total: bigint; at: Date }>().toExtend<Output>();
    expectTypeOf<{ at: Date }>().not.toExtend<Output>();
    expectTypeOf<{ total: bigint; at: string }>().not.toExtend<Output>();
    expectTypeOf<RowOf<typeof orders>['status']>().toEqualTypeOf<'open' | 'paid' | null>();
    expectTypeOf<RowOf<typeof orders>['total']>().toEqualTypeOf<bigint>();
    expectTypeOf<RowOf<typeof orders>['due']>().toEqualTypeOf<string | null>();
  });
});

describe('decimal()', () => {
  it.each<[string | number | bigint, number, bigint, string]>([
    ['12.5', 2, 1250n, '12.50'],
    ['-0.05', 2, -5n, '-0.05'],
    ['+7', 0, 7n, '7'],
    [12.25, 2, 1225n, '12.25'],
    [3n, 2, 300n, '3.00'],
    ['0.000000000000000001', 18, 1n, '0.000000000000000001'],
    ['92233720368547758.07', 2, 0x7fff_ffff_ffff_ffffn, '92233720368547758.07'],
    ['-92233720368547758.08', 2, -0x8000_0000_0000_0000n, '-92233720368547758.08'],
    ['1.5000', 1, 15n, '1.5'],
  ])('reads and writes %s with %i digits', (text, scale, units, written) => {
    expect(parseDecimal(text, scale)).toBe(units);
    expect(formatDecimal(units, scale)).toBe(written);
    expect(parseDecimal(written, scale)).toBe(units);
  });

  it.each<[unknown, number]>([
    ['1.005', 2],
    [0.1 + 0.2, 2],
    ['92233720368547758.08', 2],
    ['1e3', 2],
    ['', 2],
    ['.5', 2],
    ['1,5', 2],
    [Number.NaN, 2],
    [Number.POSITIVE_INFINITY, 2],
    [1e21, 2],
    [null, 2],
    ['1', 19],
    ['1', -1],
    ['1', 1.5],
  ])('refuses %s with %d digits', (value, scale) => {
    expect(() => parseDecimal(value as string, scale)).toThrow(InvalidOptionError);
  });

  it('refuses what is no scale, and what is no bigint', () => {
    expect(() => decimal(19)).toThrow(InvalidOptionError);
    expect(() => formatDecimal(1 as never, 2)).toThrow(InvalidOptionError);
  });

  it('is ordered, compared and summed without rounding', async () => {
    await using db = StoreDb({ dbPrefix: 'app', nodeId: 0, driver: new MemoryDriver(), logLevel: 'silent' });
    db.registerSchema(orders);
    await db.start();
    const batch = db.batch();
    for (const text of ['0.10', '0.20', '90071992547409.93', '-3.5', '100']) {
      void batch.insert(orders, { total: parseDecimal(text, 2) });
    }
    await batch.flush();
    const rows = await db.query(orders).where('total', '>', parseDecimal('0.1', 2)).orderBy('total').execute();
    expect(rows.map(({ total }) => formatDecimal(total, 2))).toEqual(['0.20', '100.00', '90071992547409.93']);
    expect(formatDecimal((await db.query(orders).sum('total')) ?? 0n, 2)).toBe('90071992547506.73');
  });
});
