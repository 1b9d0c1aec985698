/** Searches with other conditions and orders: what they read, and how they are explained. */
import { describe, expect, it } from 'vitest';
import { Types } from '../../../src/format/types.ts';
import { explainSearch } from '../../../src/query/explain-search.ts';
import type { Explanation } from '../../../src/query/explain.ts';
import { TestTable } from '../query/test-table.ts';
import { runEveryWay, runOneWay, written } from './every-way.ts';
import type { AskedSearch } from './every-way.ts';

const count = 2000;

/** Of 2,000 rows, 50 are of tenant 'x'; nearly all have the word 'wine'. */
async function filled(): Promise<TestTable> {
  const fields = {
    id: { typeId: Types.uint32 },
    tenant: { typeId: Types.varchar },
    price: { typeId: Types.uint32 },
    body: { typeId: Types.varchar },
  };
  const indexes = [{ fields: ['body'], text: {}, name: 'words' }, 'tenant', 'price'];
  const schema = { name: 'wines', version: 1, fields, primaryKey: 'id', indexes };
  const table = new TestTable(schema, { blockSizeBytes: 1024, inlineRoots: true });
  await table.commit(
    Array.from({ length: count }, (_, id) => ({
      id,
      tenant: id % 40 === 3 ? 'x' : `t${id % 7}`,
      price: (id * 37) % count,
      body: `${id % 25 === 3 ? 'water' : 'wine'} of house ${'and '.repeat(id % 9)}`,
    })),
  );
  await table.merge();
  return table;
}

const ofTenant: AskedSearch = {
  text: 'wine',
  options: {},
  wheres: [['tenant', '=', 'x']],
  orders: [],
  limit: undefined,
  offset: 0,
};
const cheapest: AskedSearch = { ...ofTenant, wheres: [], orders: [['price', 'asc']], limit: 5 };

function explain(table: TestTable, asked: AskedSearch, isRun: boolean): Promise<Explanation> {
  const search = { text: asked.text, options: asked.options };
  const { environment } = table;
  return explainSearch(table, table.state, { ...written(asked), search }, { isRun, environment });
}

describe('a search among the rows of an index', () => {
  it('looks for these rows alone in the entries of the words, and reads no row that does not match', async () => {
    const table = await filled();
    const [byWords] = await runEveryWay(table, ofTenant, () => table.forgetBlocks());
    table.forgetBlocks();
    const run = await runOneWay(table, ofTenant);
    expect(run.way).toMatchObject({ kind: 'keys', others: { plan: { access: { index: { name: 'tenant' } } } } });
    expect(run.use).toEqual({ words: 0, asked: 50, others: 50, rows: 0 });
    expect(run.rows).toHaveLength(40);
    expect(run.lookups).toBe(40);
    expect(run.rows).toEqual(byWords?.rows);
    expect(byWords?.use.words).toBeGreaterThan(1900);
    expect(byWords?.lookups).toBeGreaterThan(1900);
    expect(run.requests).toBeLessThan((byWords?.requests as number) / 2);
    // Excluded words are looked for in these rows as well.
    const others = await runOneWay(table, { ...ofTenant, text: 'house -water' });
    expect(others.way.kind).toBe('keys');
    expect(others.rows.map(({ id }) => id)).toEqual(run.rows.map(({ id }) => id));
    // With a limit, the best rows are known before they are read.
    table.forgetBlocks();
    const best = await runOneWay(table, { ...ofTenant, limit: 5 });
    expect({ kind: best.way.kind, lookups: best.lookups }).toEqual({ kind: 'keys', lookups: 5 });
    expect(best.rows).toEqual(run.rows.slice(0, 5));
  });

  it('is not chosen where the index leaves nearly all rows', async () => {
    const table = await filled();
    const run = await runOneWay(table, { ...ofTenant, wheres: [['tenant', '!=', 'x']], limit: 5 });
    expect(run.way.kind).toBe('words');
  });

  it('is explained with both indexes, its cost, and the other ways', async () => {
    const table = await filled();
    const explanation = await explain(table, ofTenant, true);
    expect(explanation).toMatchObject({ access: 'search', index: 'words', indexes: ['tenant', 'words'], filters: [] });
    expect(explanation.steps[0]?.description).toBe(
      "Finds 40 rows by the words in index 'words', among 50 rows of index 'tenant'.",
    );
    expect(explanation.steps[0]?.actual).toMatchObject({ rows: 100 });
    expect(explanation.alternatives).toEqual([
      { access: 'search', index: 'words', relativeCost: expect.any(Number) as number },
    ]);
    expect(explanation.alternatives[0]?.relativeCost).toBeGreaterThan(2);
  });
});

describe('a search with an order and a limit', () => {
  it('goes through the index of the order until it has enough rows, and sorts none', async () => {
    const table = await filled();
    const [byWords] = await runEveryWay(table, cheapest, () => table.forgetBlocks());
    table.forgetBlocks();
    const run = await runOneWay(table, cheapest);
    expect(run.way).toMatchObject({ kind: 'order', others: { plan: { access: { index: { name: 'price' } } } } });
    expect(run.rows).toEqual(byWords?.rows);
    expect(run.lookups).toBe(5);
    expect(run.use).toMatchObject({ words: 0, rows: 0 });
    expect(run.use.asked).toBeLessThan(64);
    expect(run.requests).toBeLessThan((byWords?.requests as number) / 4);
    const explanation = await explain(table, cheapest, true);
    expect(explanation).toMatchObject({ access: 'search', indexes: ['price', 'words'], order: 'access' });
    expect(explanation.steps.map(({ step, description }) => `${step}: ${description}`)).toEqual([
      "index: Goes through index 'price' in order, and looks for its rows among those with the words in index 'words'.",
      "table: Looks up their rows in 'wines'.",
      'result: Returns them.',
    ]);
    expect(explanation.steps.at(-1)?.actual).toMatchObject({ rows: 5 });
  });

  it('finds the words first where few rows have them', async () => {
    const table = await filled();
    await table.commit([{ id: count, tenant: 'x', price: 1, body: 'vermouth' }]);
    const run = await runOneWay(table, { ...cheapest, text: 'vermouth' });
    expect(run.way.kind).toBe('words');
    expect(run.rows).toHaveLength(1);
  });
});
