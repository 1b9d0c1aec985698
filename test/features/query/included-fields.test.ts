/** Indexes that hold more fields than they are on: which queries they answer, and that nothing else reads the fields for keys. */
import { describe, expect, it } from 'vitest';
import { Types } from '../../../src/format/types.ts';
import { intersectionsOf } from '../../../src/query/planner/index-intersections.ts';
import { candidatesOf } from '../../../src/query/planner/planner.ts';
import { compile, runEveryPlan } from './every-plan.ts';
import { runModel } from './model.ts';
import type { ModelQuery } from './model.ts';
import { TestTable } from './test-table.ts';
import type { Row } from './test-table.ts';

const schema = {
  name: 'products',
  version: 1,
  fields: {
    shop: { typeId: Types.uint8 },
    code: { typeId: Types.varchar },
    country: { typeId: Types.varchar },
    name: { typeId: Types.varchar },
    price: { typeId: Types.float64 },
    rate: { typeId: Types.float32 },
    at: { typeId: Types.timestamp },
    size: { typeId: Types.int32 },
    notes: { typeId: Types.varchar },
  },
  primaryKey: 'code',
  indexes: [
    { fields: ['country'], include: ['name', 'price', 'rate', 'at'] },
    { fields: ['size'], include: ['country'] },
    { fields: ['shop'], include: ['size'] },
    { fields: ['country', 'size'], include: ['name'], where: { size: { not: null } }, name: 'sized' },
  ],
} as const;

const names = ['lamp', '', 'tab\0le', 'ë'.repeat(20), 'x'.repeat(1024), 'x'.repeat(1025), null];
const prices = [0, -0, 1.5, -1.5, Infinity, -Infinity, 5e-324, null];

function product(i: number): Row {
  return {
    shop: i % 3,
    code: `c${i}`,
    country: ['DE', 'FR', null, 'IT'][(i * 7) % 4],
    name: names[(i * 5) % names.length],
    price: prices[(i * 3) % prices.length],
    rate: i % 4 === 0 ? -0 : i / 2,
    at: i % 5 === 0 ? null : new Date(i * 86_400_000 - 4e10),
    size: i % 6 === 0 ? null : (i * 11) % 17,
    notes: `${'notes '.repeat(30)}${i}`,
  };
}

const rows = Array.from({ length: 200 }, (_, i) => product(i));

async function filled(): Promise<TestTable> {
  const table = new TestTable(schema, { blockSizeBytes: 2048 });
  await table.commit(rows.slice(0, 150));
  await table.merge();
  return table;
}

function taking(all: readonly Row[], query: ModelQuery, taken: readonly string[]): Row[] {
  const found = runModel(all, 'code', query);
  return found.map((row) => Object.fromEntries(taken.map((name) => [name, row[name]])));
}

const inGermany: ModelQuery = { wheres: [['country', '=', 'DE']], orders: [], limit: undefined, offset: 0 };

describe('an index that includes fields', () => {
  const queries: readonly ModelQuery[] = [
    inGermany,
    { ...inGermany, orders: [['price', 'desc']], limit: 7, offset: 2 },
    { ...inGermany, wheres: [...inGermany.wheres, ['price', '>=', 0]] },
    { ...inGermany, wheres: [...inGermany.wheres, ['name', 'PREFIX', 'x']] },
    { ...inGermany, wheres: [...inGermany.wheres, ['size', '>', 3]], orders: [['size', 'desc']] },
    {
      ...inGermany,
      wheres: [
        ['size', 'IN', [1, 2, 3, 5]],
        ['country', '!=', 'FR'],
      ],
    },
    {
      ...inGermany,
      wheres: [['size', 'BETWEEN', [2, 9]]],
      orders: [
        ['country', 'asc'],
        ['size', 'asc'],
      ],
      limit: 9,
    },
    { ...inGermany, wheres: [['country', '=', null]], orders: [['at', 'asc']] },
    {
      ...inGermany,
      wheres: [
        {
          or: [
            ['size', '=', 4],
            ['country', '=', 'IT'],
          ],
        },
      ],
    },
  ];

  it('gives exactly the values of its rows, by each plan, also with unmerged commits', async () => {
    const table = await filled();
    const taken = ['shop', 'code', 'country', 'name', 'price', 'rate', 'at'];
    for (const merged of [true, false]) {
      if (!merged) {
        await table.commit([...rows.slice(140), { ...product(3), name: 'new', price: -0 }], ['c0', 'c1']);
      }
      const gone = (row: Row): boolean => ['c0', 'c1', 'c3'].includes(row['code'] as string);
      const all = merged
        ? rows.slice(0, 150)
        : [...rows.filter((row) => !gone(row)), { ...product(3), name: 'new', price: -0 }];
      for (const query of queries) {
        const expected = taking(all, query, taken);
        const runs = await runEveryPlan(table, compile(table, query, false, { names: taken }));
        for (const run of runs) expect(run.rows).toStrictEqual(expected);
      }
    }
  });

  it('reads no row, except of a text that it holds in part', async () => {
    const table = await filled();
    const query = compile(table, inGermany, false, { names: ['name', 'price', 'rate', 'at', 'code'] });
    const runs = await runEveryPlan(table, query);
    const only = runs.find(({ candidate: { use } }) => use?.only === true);
    const matching = rows.slice(0, 150).filter(({ country }) => country === 'DE');
    const long = matching.filter(({ name }) => (name as string | null)?.length === 1025);
    expect(long.length).toBeGreaterThan(0);
    expect(only?.work).toMatchObject({ entries: matching.length, lookups: long.length });
  });

  it.each([
    [['size', 'BETWEEN', [1, 12]], false],
    [['shop', '=', 1], true],
  ] as const)('can be one of several that are intersected, with %j', async (where, isMerged) => {
    const table = new TestTable(schema, { blockSizeBytes: 2048 });
    const many = Array.from({ length: 600 }, (_, i) => product(i));
    await table.commit(many);
    await table.merge();
    const asked: ModelQuery = { ...inGermany, wheres: [...inGermany.wheres, where] };
    const query = compile(table, asked);
    const found = intersectionsOf(table.state, query, candidatesOf(table.state, query));
    const merged = found.map(({ access }) => {
      return access.kind === 'intersection' && [access.first, ...access.others].every(({ oneValue }) => oneValue);
    });
    expect(merged).toContain(isMerged);
    const expected = taking(many, asked, Object.keys(schema.fields));
    for (const run of await runEveryPlan(table, query)) expect(run.rows).toStrictEqual(expected);
  });

  it('gives pages that follow each other', async () => {
    const table = await filled();
    const seen: Row[] = [];
    let after: string | undefined;
    do {
      const query = table.query().where('country', '=', 'FR').select('code', 'name', 'price');
      const page = await query.page({ size: 7, ...(after !== undefined && { after }) });
      seen.push(...page.rows);
      after = page.next;
    } while (after !== undefined);
    const expected = taking(rows.slice(0, 150), { ...inGermany, wheres: [['country', '=', 'FR']] }, [
      'code',
      'name',
      'price',
    ]);
    expect(seen).toStrictEqual(expected);
  });
});
