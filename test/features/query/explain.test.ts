/** The result of `explain()`, before a query is run and after it. */
import { describe, expect, it } from 'vitest';
import { Types } from '../../../src/format/types.ts';
import type { ExplainedStep, Explanation } from '../../../src/query/explain.ts';
import { TestTable } from './test-table.ts';
import type { Row } from './test-table.ts';

const schema = {
  name: 'cities',
  version: 1,
  fields: {
    id: { typeId: Types.uint32 },
    country: { typeId: Types.varchar },
    people: { typeId: Types.uint32 },
    name: { typeId: Types.varchar },
    notes: { typeId: Types.json },
  },
  primaryKey: 'id',
  indexes: ['country'],
} as const;

function city(id: number): Row {
  const country = id % 400 === 0 ? 'IS' : id % 2 === 0 ? 'FR' : 'DE';
  return { id, country, people: (id * 7919) % 100_000, name: `City ${id}`, notes: null };
}

async function cities(): Promise<TestTable> {
  const table = new TestTable(schema, { inlineRoots: true });
  await table.commit(Array.from({ length: 4000 }, (_, id) => city(id)));
  await table.merge();
  return table;
}

function stepOf({ steps }: Explanation, name: ExplainedStep['step']): ExplainedStep {
  return steps.find(({ step }) => step === name) as ExplainedStep;
}

describe('explain', () => {
  it('lists the steps, with expected and actual reads', async () => {
    const table = await cities();
    const query = table.query().where('country', '=', 'IS').where('people', '>', 50_000).orderBy('name').limit(2);
    table.forgetBlocks();
    const before = table.requests;
    const told = await query.explain();
    expect(table.requests).toBe(before);
    expect(told).toMatchObject({
      access: 'index',
      index: 'country',
      filters: ['people'],
      order: 'sort',
      readsBeforePlanning: false,
    });
    expect(told.steps.map(({ step, actual }) => [step, actual])).toEqual(
      ['index', 'table', 'filter', 'sort', 'result'].map((step) => [step, undefined]),
    );
    expect(told.steps.map(({ description }) => description)).toEqual([
      "Reads 1 range of index 'country'.",
      "Looks up their rows in 'cities'.",
      'Tests people.',
      'Sorts by name, primary key and keeps the first.',
      'Returns them.',
    ]);

    const ran = await query.explain({ run: true });
    const requests = table.requests - before;
    expect(stepOf(ran, 'index').actual).toMatchObject({ rows: 10, blocks: 1, requests: 1 });
    expect(stepOf(ran, 'table').actual).toMatchObject({ rows: 10, blocks: 12, requests: 12 });
    expect(stepOf(ran, 'filter').actual?.rows).toBe(3);
    expect(stepOf(ran, 'sort').actual?.rows).toBe(2);
    expect(stepOf(ran, 'result').actual?.rows).toBe(2);
    expect(requests).toBe(13);
    const bytes = stepOf(ran, 'table').actual?.bytes as number;
    expect(bytes).toBeGreaterThan(10_000);
    // 0.0004 dollars for 1,000 reads.
    expect(stepOf(ran, 'table').actual?.dollars).toBeCloseTo(12 * 4e-7, 12);
  });

  it('estimates well where everything is in memory, and knows that nothing has to be read', async () => {
    const table = await cities();
    await table.query().execute();
    const query = table.query().where('country', '=', 'IS');
    await query.execute();
    const { steps } = await query.explain({ run: true });
    for (const { estimated, actual } of steps) {
      expect(estimated.requests).toBe(0);
      expect(actual?.requests).toBe(0);
      expect(estimated.rows).toBe(actual?.rows);
      expect(estimated.dollars).toBe(0);
    }
    expect(stepOf({ steps } as unknown as Explanation, 'table').estimated.blocks).toBeCloseTo(10, -1);
  });

  it('estimates how many rows of a scan match, from a sample', async () => {
    const table = await cities();
    await table.query().execute();
    const told = await table.query().where('people', '<', 10_000).explain({ run: true });
    expect(told.access).toBe('table');
    expect(stepOf(told, 'table')).toMatchObject({ estimated: { rows: 4000 }, actual: { rows: 4000 } });
    const { estimated, actual } = stepOf(told, 'filter');
    expect(actual?.rows).toBe(402);
    expect(estimated.rows).toBeGreaterThan(200);
    expect(estimated.rows).toBeLessThan(800);
  });

  it('counts unmerged rows among the rows of the table', async () => {
    const table = await cities();
    await table.commit([city(5000), city(5001)]);
    const told = await table.query().where('id', '>=', 5000).explain({ run: true });
    expect(stepOf(told, 'table').actual).toMatchObject({ rows: 2, requests: 0 });
    expect(stepOf(told, 'result').actual?.rows).toBe(2);
  });

  it('lists the other plans with their costs', async () => {
    const table = await cities();
    await table.query().execute();
    const rare = await table.query().where('country', '=', 'IS').explain();
    expect(rare.alternatives.map(({ access }) => access)).toEqual(['table']);
    expect(rare.alternatives[0]?.relativeCost).toBeGreaterThan(1);
    const often = await table.query().where('country', '=', 'FR').explain();
    expect(often.access).toBe('table');
    expect(often.alternatives[0]).toMatchObject({ access: 'index', index: 'country' });
    expect((await table.query().where('id', '=', 7).explain()).alternatives).toEqual([]);
  });

  it('names the index that is missing, and none where it would not help', async () => {
    const table = await cities();
    await table.query().execute();
    const missing = async (query: ReturnType<TestTable['query']>): Promise<unknown> =>
      (await query.explain()).missingIndex;
    const { query } = { query: () => table.query() };
    expect(await missing(query().where('name', '=', 'City 7'))).toEqual(['name']);
    expect(await missing(query().orderBy('people').limit(5))).toEqual(['people']);
    expect(await missing(query().where('name', '=', 'City 7').orderBy('people').limit(5))).toEqual(['name', 'people']);
    expect(await missing(query().where('people', 'BETWEEN', [10, 20]))).toEqual(['people']);
    // Half of the rows match; an index finds the row; nobody can index JSON.
    expect(await missing(query().where('people', '<', 50_000))).toBeUndefined();
    expect(await missing(query().where('country', '=', 'IS'))).toBeUndefined();
    expect(await missing(query().where('id', '=', 3))).toBeUndefined();
    expect(await missing(query().where('notes', '!=', null))).toBeUndefined();
    expect(await missing(query())).toBeUndefined();
  });

  it('names after a run the missing index that nobody could know before, with nothing in memory', async () => {
    const table = new TestTable({ ...schema, indexes: ['people'] }, { inlineRoots: true });
    await table.commit(Array.from({ length: 4000 }, (_, id) => city(id)));
    await table.merge();
    table.forgetBlocks();
    const query = table.query().where('country', '=', 'IS').orderBy('people').limit(10);
    expect((await query.explain()).missingIndex).toBeUndefined();
    expect((await query.explain({ run: true })).missingIndex).toEqual(['country', 'people']);
    table.forgetBlocks();
    const often = table.query().where('country', '!=', 'IS').orderBy('people').limit(10);
    expect((await often.explain({ run: true })).missingIndex).toBeUndefined();
  });

  it('says where a run would look closer before it chooses', async () => {
    const table = new TestTable({ ...schema, indexes: ['country', 'people'] }, { inlineRoots: true });
    await table.commit(Array.from({ length: 4000 }, (_, id) => city(id)));
    await table.merge();
    table.forgetBlocks();
    const query = table.query().where('country', '=', 'IS').where('people', '=', 7919);
    const before = table.requests;
    expect((await query.explain()).readsBeforePlanning).toBe(true);
    expect(table.requests).toBe(before);
    expect(await query.execute()).toEqual([]);
    expect((await query.explain({ run: true })).readsBeforePlanning).toBe(false);
    expect((await query.explain()).readsBeforePlanning).toBe(false);
  });

  it('looks closer at the branches of a union, which may have many rows where few are wanted', async () => {
    const table = new TestTable({ ...schema, indexes: ['country', 'people'] }, { inlineRoots: true });
    const rows = Array.from({ length: 1_200 }, (_, id) => ({ ...city(id), country: `C ${(id * 7919) % 20}` }));
    await table.commit(rows);
    await table.merge();
    table.forgetBlocks();
    const query = table
      .query()
      .where(({ is, or }) => or(is('country', '=', 'C 7'), is('people', '=', 7919)))
      .limit(3);
    expect(await query.explain()).toMatchObject({ access: 'union', readsBeforePlanning: true });
    const before = table.requests;
    expect(await query.execute()).toHaveLength(3);
    expect(table.requests - before).toBeLessThan(8);
    expect((await query.explain()).access).toBe('table');
  });

  it('looks at a plan that looks good because nobody has looked at it, before it is chosen', async () => {
    const fields = {
      id: { typeId: Types.uint32 },
      a: { typeId: Types.uint32 },
      s: { typeId: Types.uint32 },
      b: { typeId: Types.uint32 },
      text: { typeId: Types.varchar },
    };
    const definition = { name: 'points', version: 1, fields, primaryKey: 'id', indexes: ['a', 's', 'b'] } as const;
    const table = new TestTable(definition, { inlineRoots: true, blockSizeBytes: 16_384 });
    const of = (id: number, step: number, count: number): number => ((id * step) % 20_011) % count;
    const rows = Array.from({ length: 20_000 }, (_, id) => {
      return { id, a: of(id, 7919, 1000), s: of(id, 104_729, 100), b: of(id, 1299, 10_000), text: 'x'.repeat(300) };
    });
    await table.commit(rows);
    await table.merge();
    for (const a of [17, 500, 726]) {
      table.forgetBlocks();
      const before = table.requests;
      const query = table
        .query()
        .where(({ is, or }) => or(is('s', '=', 11), is('b', '=', 77)))
        .where('a', '=', a);
      expect(await query.execute()).toEqual(rows.filter((row) => (row.s === 11 || row.b === 77) && row.a === a));
      expect(table.requests - before).toBeLessThan(40);
    }
  });
});
