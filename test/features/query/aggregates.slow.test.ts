import { describe, expect, it } from 'vitest';
import { realEnvironment } from '../../../src/base/env.ts';
import { InvalidQueryError, MemoryBudgetError } from '../../../src/base/errors.ts';
import { createDatabase } from '../../../src/api/database.ts';
import { MemoryDriver } from '../../../src/storage/memory-driver.ts';
import { Types } from '../../../src/format/types.ts';
import { TestTable } from './test-table.ts';
import type { Row } from './test-table.ts';

const schema = {
  name: 'sales',
  version: 1,
  fields: {
    id: { typeId: Types.uint32 },
    shop: { typeId: Types.varchar },
    price: { typeId: Types.float64 },
    cents: { typeId: Types.int64 },
    at: { typeId: Types.timestamp },
    paid: { typeId: Types.boolean },
    notes: { typeId: Types.json },
  },
  primaryKey: 'id',
  indexes: ['cents', 'paid'],
} as const;

function sale(id: number): Row {
  const price = id % 4 === 0 ? null : id / 10;
  const cents = id % 5 === 0 ? null : 2n ** 60n + BigInt(id);
  return { id, shop: `Shop ${id % 3}`, price, cents, at: new Date(id * 1000), paid: id % 2 === 0, notes: { id } };
}

async function sales(count: number): Promise<TestTable> {
  const table = new TestTable(schema);
  await table.commit(Array.from({ length: count }, (_, id) => sale(id)));
  await table.merge();
  return table;
}

function countReads(table: TestTable): () => number {
  let reads = 0;
  const get = table.driver.get.bind(table.driver);
  table.driver.get = (key, options) => {
    reads++;
    return get(key, options);
  };
  return () => reads;
}

describe('aggregates', () => {
  it('skip null, and are null where nothing is left', async () => {
    const table = await sales(9);
    expect(await table.query().sum('price')).toBe(2.4);
    expect(await table.query().avg('price')).toBe(2.4 / 6);
    expect(await table.query().min('at')).toEqual(new Date(0));
    expect(await table.query().max('shop')).toBe('Shop 2');
    const none = table.query().where('price', '=', null).where('id', '>', 0);
    const spec = { rows: 'count', prices: { count: 'price' }, sum: { sum: 'price' }, avg: { avg: 'price' } } as const;
    expect(await none.aggregate(spec)).toEqual({ rows: 2, prices: 0, sum: null, avg: null });
    expect([await none.min('price'), await none.max('price')]).toEqual([null, null]);
    expect(
      await table
        .query()
        .where('id', '>', 100)
        .aggregate({ n: 'count', most: { max: 'id' } }),
    ).toEqual({ n: 0, most: null });
  });

  it('are exact for bigints', async () => {
    const table = await sales(5);
    expect(await table.query().sum('cents')).toBe(2n ** 62n + 10n);
    expect(await table.query().avg('cents')).toBe(2 ** 60);
    await table.commit([{ id: 0, cents: -(2n ** 62n) - 4n }]);
    expect(await table.query().avg('cents')).toBe(6 / 5);
    expect(await table.query().max('cents')).toBe(2n ** 60n + 4n);
  });

  it('do not depend on the order in which rows are read', async () => {
    const table = await sales(2000);
    const byKey = await table.query().sum('price');
    expect(await table.query().where('paid', 'IN', [true, false]).sum('price')).toBe(byKey);
    // Tenths from 0 to 199.9 without every fourth of them.
    expect(byKey).toBe((1999 * 2000) / 20 - 4 * ((499 * 500) / 20));
  });

  it('are of the rows that the query returns', async () => {
    const table = await sales(100);
    const query = table.query().orderBy('id', 'desc').offset(10).limit(3);
    expect(await query.aggregate({ n: 'count', least: { min: 'id' }, most: { max: 'id' } })).toEqual({
      n: 3,
      least: 87,
      most: 89,
    });
    expect([await query.min('id'), await query.max('id'), await query.sum('id')]).toEqual([87, 89, 264]);
    expect(await query.groupBy('paid').aggregate({ ids: { sum: 'id' } })).toEqual([
      { paid: false, ids: 87 + 89 },
      { paid: true, ids: 88 },
    ]);
    const wide = table.query().orderBy('shop').orderBy('price', 'desc').limit(40);
    expect(await wide.groupBy('shop').aggregate({ n: 'count' })).toEqual([
      { shop: 'Shop 0', n: 34 },
      { shop: 'Shop 1', n: 6 },
    ]);
  });

  it('come from the ends of indexes and of the primary key, with a few requests', async () => {
    const table = await sales(30_000);
    const reads = countReads(table);
    for (const [field, least, most] of [
      ['id', 0, 29_999],
      ['cents', 2n ** 60n + 1n, 2n ** 60n + 29_999n],
      ['paid', false, true],
    ] as const) {
      table.forgetBlocks();
      const before = reads();
      expect(await table.query().min(field)).toBe(least);
      expect(await table.query().max(field)).toBe(most);
      expect(reads() - before).toBeLessThan(20);
    }
    await table.commit([{ ...sale(40_000), cents: 5n }], [29_999]);
    expect(await table.query().min('cents')).toBe(5n);
    expect(await table.query().max('cents')).toBe(2n ** 60n + 29_998n);
    expect(await table.query().max('id')).toBe(40_000);
  });

  it('come from there together as well, of one state, unless one of them needs every row', async () => {
    const table = await sales(30_000);
    const reads = countReads(table);
    const readBy = async (call: () => Promise<unknown>): Promise<[unknown, number]> => {
      table.forgetBlocks();
      const before = reads();
      return [await call(), reads() - before];
    };
    const ends = { rows: 'count', least: { min: 'cents' }, most: { max: 'cents' }, last: { max: 'id' } } as const;
    const all = { rows: 30_000, least: 2n ** 60n + 1n, most: 2n ** 60n + 29_999n, last: 29_999 };
    const [found, few] = await readBy(() => table.query().aggregate(ends));
    expect(found).toEqual(all);
    expect(few).toBeLessThan(20);
    const [paid, some] = await readBy(() =>
      table
        .query()
        .where('paid', '=', true)
        .aggregate({ last: { max: 'id' } }),
    );
    expect(paid).toEqual({ last: 29_998 });
    expect(some).toBeLessThan(20);
    const [whole, many] = await readBy(() => table.query().aggregate({ ...ends, dearest: { max: 'price' } }));
    expect(whole).toEqual({ ...all, dearest: 2999.9 });
    expect(many).toBeGreaterThan(100);
    const [refused] = await readBy(async () => {
      const budgeted = table.query().budget({ requests: 2 });
      return budgeted.aggregate(ends).catch((error: unknown) => error);
    });
    expect(refused).toMatchObject({ code: 'BUDGET_EXCEEDED', used: { requests: 2 } });
    await table.commit([{ ...sale(40_000), cents: 5n }], [29_999]);
    expect(await table.query().aggregate(ends)).toEqual({
      rows: 30_000,
      least: 5n,
      most: 2n ** 60n + 29_998n,
      last: 40_000,
    });
    await expect(table.query().aggregate({ a: { min: 'nothing' } as never })).rejects.toThrow(/min\(\).*'nothing'/);
  });

  it('of a field hidden by a function are of the field', async () => {
    const table = await sales(10);
    table.register('price', () => 1);
    expect(await table.query().max('price')).toBe(0.9);
  });

  it('refuse fields that they are not for', async () => {
    const table = await sales(1);
    await expect(table.query().sum('shop')).rejects.toThrow(/sum\(\): field 'shop' .* is of type varchar/);
    await expect(table.query().avg('at')).rejects.toThrow(InvalidQueryError);
    await expect(table.query().min('notes')).rejects.toThrow(/JSON, which has no order/);
    await expect(table.query().max('nothing')).rejects.toThrow(InvalidQueryError);
    expect(() => table.query().groupBy()).toThrow(InvalidQueryError);
    expect(() => table.query().groupBy('notes')).toThrow(/JSON/);
    const spec = (given: unknown): Promise<unknown> => table.query().aggregate(given as never);
    for (const given of [
      undefined,
      {},
      { a: 'sum' },
      { a: {} },
      { a: { sum: 'price', min: 'price' } },
      { a: { sum: 1 } },
    ]) {
      await expect(spec(given)).rejects.toThrow(InvalidQueryError);
    }
    await expect(table.query().groupBy('shop').aggregate({ shop: 'count' })).rejects.toThrow(/choose another/);
  });
});

describe('groups', () => {
  it('come in the order of their fields, null first', async () => {
    const table = await sales(20);
    await table.commit(
      [
        { ...sale(50), shop: null },
        { ...sale(51), shop: null, paid: null },
      ],
      [0],
    );
    const rows = await table.query().groupBy('shop', 'paid').aggregate({ n: 'count' });
    expect(rows).toEqual([
      { shop: null, paid: null, n: 1 },
      { shop: null, paid: true, n: 1 },
      { shop: 'Shop 0', paid: false, n: 3 },
      { shop: 'Shop 0', paid: true, n: 3 },
      { shop: 'Shop 1', paid: false, n: 4 },
      { shop: 'Shop 1', paid: true, n: 3 },
      { shop: 'Shop 2', paid: false, n: 3 },
      { shop: 'Shop 2', paid: true, n: 3 },
    ]);
    expect(Object.keys(rows[0] as object)).toEqual(['shop', 'paid', 'n']);
    const odd = await table
      .query()
      .groupBy('paid')
      .aggregate(JSON.parse('{"__proto__":"count"}') as { n: 'count' });
    expect(Object.entries(odd[0] as object)).toEqual([
      ['paid', null],
      ['__proto__', 1],
    ]);
  });

  it('are bounded by memory', async () => {
    const maxMemoryBytes = 4 * 1024 * 1024;
    const driver = new MemoryDriver();
    const db = createDatabase(
      { dbPrefix: 'db', nodeId: 0, driver, maxMemoryBytes, logLevel: 'silent' },
      realEnvironment,
    );
    const visits = { name: 'visits', version: 1, fields: { id: { typeId: Types.uint32 } }, primaryKey: 'id' } as const;
    db.registerSchema(visits);
    await db.start();
    const batch = db.batch();
    for (let id = 0; id < 40_000; id++) void batch.insert(visits, { id });
    await batch.flush();
    await db.checkpoint();
    const groups = db.query('visits').groupBy('id').aggregate({ n: 'count' });
    await expect(groups).rejects.toThrow(MemoryBudgetError);
    await expect(groups).rejects.toThrow(/maxMemoryBytes/);
    // What the attempt held is given back.
    expect(await db.query('visits').where('id', '<', 2).groupBy('id').aggregate({ n: 'count' })).toHaveLength(2);
    await db.stop();
  });
});
