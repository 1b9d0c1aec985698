/** Searches with other conditions and orders: what they read, and how they are explained. */
import { describe, expect, it } from 'vitest';
import { Types } from '../../../src/format/types.ts';
import { filterOf } from '../../../src/query/conditions/condition.ts';
import type { SearchOptions } from '../../../src/query/conditions/search-options.ts';
import { explainSearch } from '../../../src/query/explain-search.ts';
import type { Explanation } from '../../../src/query/explain.ts';
import { searchRows } from '../../../src/query/search/search-rows.ts';
import type { ModelClause } from '../query/model.ts';
import { TestTable } from '../query/test-table.ts';
import type { Row } from '../query/test-table.ts';
import { runEveryWay, runOneWay, written } from './every-way.ts';
import type { AskedSearch } from './every-way.ts';

const count = 2000;

const bodies = {
  name: 'bodies',
  version: 1,
  fields: { id: { typeId: Types.uint32 }, body: { typeId: Types.varchar } },
  primaryKey: 'id',
  indexes: [{ fields: ['body'], text: {}, name: 'words' }],
} as const;

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

  it('looks among the rows of either of two indexes, and of the table, where a condition has branches', async () => {
    const table = await filled();
    const orCheap: ModelClause = {
      or: [
        ['tenant', '=', 'x'],
        ['price', '<', 20],
      ],
    };
    const either = { ...ofTenant, wheres: [orCheap] };
    const [byWords] = await runEveryWay(table, either, () => table.forgetBlocks());
    table.forgetBlocks();
    const run = await runOneWay(table, either);
    expect(run.way).toMatchObject({ kind: 'keys', others: { plan: { access: { kind: 'union' } } } });
    expect(run.rows).toEqual(byWords?.rows);
    expect(run.lookups).toBe(run.rows.length);
    expect(run.requests).toBeLessThan((byWords?.requests as number) / 2);
    const explanation = await explain(table, either, true);
    expect(explanation).toMatchObject({ indexes: ['tenant', 'price', 'words'], filters: [] });
    expect(explanation.steps[0]?.description).toBe(
      "Finds 59 rows by the words in index 'words', among 70 rows of indexes 'tenant' and 'price'.",
    );
    const orFew: ModelClause = {
      or: [
        ['tenant', '=', 'x'],
        ['id', 'IN', [4, 5, 6]],
      ],
    };
    const byKey = await explain(table, { ...ofTenant, wheres: [orFew] }, false);
    expect(byKey.steps[0]?.description).toMatch(/among 53 rows of index 'tenant' and 'wines' by primary key\.$/);
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

describe('a search', () => {
  const everyRow: AskedSearch = { ...ofTenant, wheres: [] };

  it.each(['', '...', '""', '-wine', '-"of house" -water'])('for %j has no words, and finds nothing', async (text) => {
    const table = await filled();
    const queries = [
      everyRow,
      ofTenant,
      cheapest,
      { ...cheapest, wheres: ofTenant.wheres },
      { ...everyRow, orders: [['id', 'desc']], limit: 1 },
    ] as const;
    for (const query of queries) {
      for (const { rows } of await runEveryWay(table, { ...query, text })) expect(rows).toEqual([]);
      const search = { text, options: {} };
      const { query: read } = await searchRows(table, table.state, written(query), search, undefined);
      // Nor can a row that is written later be found, so that it is no conflict for a transaction.
      const filter = filterOf(read.conditions);
      const row = await table.state.lookup(table.shape.keyBytes(3));
      expect(row && filter.matches(row.source, row.base)).toBe(false);
    }
  });

  it('counts a word once that begins like a misspelled one', async () => {
    const table = new TestTable(bodies);
    const others = Array.from({ length: 20 }, (_, i) => ({ id: 10 + i, body: 'other' }));
    await table.commit([{ id: 1, body: 'wines of them' }, { id: 2, body: 'wine wine of them all' }, ...others]);
    const idsOf = async (text: string, options: SearchOptions): Promise<unknown[]> => {
      return (await runOneWay(table, { ...everyRow, text, options })).rows.map(({ id }) => id);
    };
    expect(await idsOf('wine', { prefix: true })).toEqual([2, 1]);
    expect(await idsOf('wine', { prefix: true, fuzzy: true })).toEqual([2, 1]);
    expect(await idsOf('wyne', { prefix: true, fuzzy: true })).toEqual([2]);
  });

  it.each([
    [1, 2, 8],
    [1, 3, 6],
    [2, 3, 5],
    [2, 4, 8],
  ])('gives rows of different commits with the same texts the same score: %i, %i, %i', async (...counts) => {
    const table = new TestTable(bodies);
    const words = ['red', 'oak', 'wine'];
    const rows = (from: number, numbers: readonly number[]): Row[] =>
      numbers.flatMap((number, w) =>
        Array.from({ length: number }, (_, i) => ({ id: from + w * 20 + i, body: words[w] })),
      );
    const others = Array.from({ length: 40 }, (_, i) => ({ id: 1000 + i, body: 'other' }));
    await table.commit([{ id: 1, body: 'red oak wine' }, ...rows(100, counts), ...others]);
    await table.merge();
    // Here the word is the most common one that is rarest there.
    const [a, b, c] = counts;
    await table.commit([{ id: 2, body: 'red oak wine' }, ...rows(300, [c + 1, b, a])]);
    const ids = (await runOneWay(table, { ...everyRow, text: 'red oak wine' })).rows.map(({ id }) => id);
    expect(ids).toEqual([1, 2]);
  });
});
