import { describe, expect, it } from 'vitest';
import { Types } from '../../../src/format/types.ts';
import { TestTable } from './test-table.ts';
import type { Row } from './test-table.ts';

const schema = {
  name: 'events',
  version: 1,
  fields: { id: { typeId: Types.uint32 }, kind: { typeId: Types.varchar }, text: { typeId: Types.varchar } },
  primaryKey: 'id',
  indexes: ['kind', 'text'],
} as const;

function event(id: number): Row {
  return { id, kind: `kind ${id % 5}`, text: id === 77 ? 'x'.repeat(2000) : `text ${id}` };
}

/** A table of many leaves, and how many requests its driver has had. */
async function events(): Promise<{ table: TestTable; requests: () => number; most: () => number }> {
  const table = new TestTable(schema);
  await table.commit(Array.from({ length: 3000 }, (_, id) => event(id)));
  await table.merge();
  const { driver } = table;
  const get = driver.get.bind(driver);
  let total = 0;
  let running = 0;
  let most = 0;
  driver.get = async (key, options) => {
    total++;
    running++;
    most = Math.max(most, running);
    try {
      return await get(key, options);
    } finally {
      running--;
    }
  };
  table.forgetBlocks();
  return { table, requests: () => total, most: () => most };
}

describe('count', () => {
  it('of a whole table reads nothing', async () => {
    const { table, requests } = await events();
    expect(await table.query().count()).toBe(3000);
    expect(requests()).toBe(0);
    expect(
      await table
        .query()
        .where('id', '>=', -1)
        .where('kind', '!=', null)
        .where('id', '<', 2 ** 40)
        .limit(10)
        .count(),
    ).toBe(10);
    expect(
      await table
        .query()
        .where('id', '>', 2 ** 40)
        .count(),
    ).toBe(0);
  });

  it('of a range or of a value of an index reads only the blocks at its ends', async () => {
    const { table, requests } = await events();
    expect(await table.query().where('id', '>=', 100).where('id', '<', 2900).count()).toBe(2800);
    const forRange = requests();
    expect(forRange).toBeLessThan(10);
    expect(await table.query().where('kind', '=', 'kind 3').count()).toBe(600);
    expect(await table.query().where('kind', 'IN', ['kind 0', 'kind 4', 'none']).count()).toBe(1200);
    expect(requests() - forRange).toBeLessThan(30);
  });

  it('knows that an index holds only the beginning of a long value', async () => {
    const { table } = await events();
    expect(await table.query().where('text', '=', 'x'.repeat(2000)).count()).toBe(1);
    expect(await table.query().where('text', '=', 'x'.repeat(2001)).count()).toBe(0);
    expect(await table.query().where('text', '>', 'x'.repeat(1999)).count()).toBe(1);
    expect(await table.query().where('text', '>', 'x'.repeat(2000)).count()).toBe(0);
  });

  it('takes changes of unmerged commits into account', async () => {
    const { table } = await events();
    await table.commit([event(10), event(5000)], [20, 30, 9999]);
    await table.commit([event(20)], [40]);
    expect(await table.query().count()).toBe(2999);
    expect(await table.query().where('id', '<', 50).count()).toBe(48);
    expect(await table.query().where('kind', '=', 'kind 0').count()).toBe(599);
    expect(await table.query().where('id', '>', 4000).count()).toBe(1);
  });
});

describe('rows by way of an index', () => {
  it('are looked up many at a time where their blocks must be read', async () => {
    const { table, most } = await events();
    const rows = await table.query().where('kind', '=', 'kind 1').execute();
    expect(rows).toEqual(Array.from({ length: 600 }, (_, i) => event(i * 5 + 1)));
    expect(most()).toBeGreaterThan(3);
  });
});
