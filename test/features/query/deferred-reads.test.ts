/** A query that is asked over and over gets the index that one query alone would not be worth the reading of. */
import { describe, expect, it } from 'vitest';
import { Types } from '../../../src/format/types.ts';
import { TestTable } from './test-table.ts';

const rows = 20_000;
const groups = 500;

const schema = {
  name: 'things',
  version: 1,
  fields: {
    id: { typeId: Types.uint32 },
    group: { typeId: Types.uint32 },
    size: { typeId: Types.uint32 },
    text: { typeId: Types.varchar },
  },
  primaryKey: 'id',
  indexes: ['group', 'size'],
} as const;

/** A table of which all rows are in memory, but no leaf of an index. */
async function scanned(): Promise<TestTable> {
  const table = new TestTable(schema, { blockSizeBytes: 16_384 });
  const all = Array.from({ length: rows }, (_, id) => ({
    id,
    group: (id * 7919) % groups,
    size: id % 3,
    text: `${id}`,
  }));
  await table.commit(all);
  await table.merge();
  table.forgetBlocks();
  expect(await table.query().where('text', '=', '17').execute()).toHaveLength(1);
  table.requests = 0;
  return table;
}

async function accessOf(table: TestTable, group: number): Promise<string> {
  const { steps } = await table.query().where('group', '=', group).explain();
  return JSON.stringify(steps);
}

describe('an index that is not in memory, of a table that is', () => {
  it('is not read for a few queries: going through the rows is cheaper', async () => {
    const table = await scanned();
    for (let i = 0; i < 5; i++) expect(await table.query().where('group', '=', i).execute()).toHaveLength(40);
    expect(table.requests).toBe(0);
  });

  it.each([
    ['asked in the same words', () => 7],
    ['asked for other values', (i: number) => i % groups],
  ])('is read when the queries have cost as much as that would have: %s', async (_, valueOf) => {
    const table = await scanned();
    let asked = 0;
    for (; table.requests === 0 && asked < 1000; asked++) {
      expect(await table.query().where('group', '=', valueOf(asked)).execute()).toHaveLength(40);
    }
    // A read is taken to last 5 ms, and a look at each of 20,000 rows a tenth of a millisecond.
    expect(asked).toBeGreaterThan(20);
    expect(asked).toBeLessThan(100);
    expect(table.requests).toBeLessThanOrEqual(2);
    // From then on it is the index that is used, as long as the value is in what was read.
    const { requests } = table;
    expect(await accessOf(table, valueOf(asked - 1))).toContain('group');
    await table
      .query()
      .where('group', '=', valueOf(asked - 1))
      .execute();
    expect(table.requests).toBe(requests);
  });

  it('is not read for queries that it would not make cheaper', async () => {
    const table = await scanned();
    for (let i = 0; i < 100; i++) {
      expect(await table.query().where('size', '<=', 1).where('text', '=', 'none').execute()).toEqual([]);
    }
    expect(table.requests).toBe(0);
  });

  it('is not counted for by explain()', async () => {
    const table = await scanned();
    for (let i = 0; i < 300; i++) await accessOf(table, 7);
    await table.query().where('group', '=', 7).execute();
    expect(table.requests).toBe(0);
  });
});
