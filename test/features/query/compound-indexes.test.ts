/** Indexes on several fields: which part of one a query reads, and which orders it gives. */
import { describe, expect, it } from 'vitest';
import { Types } from '../../../src/format/types.ts';
import type { Explanation } from '../../../src/query/explain.ts';
import type { Operator } from '../../../src/query/conditions/comparison.ts';
import { compile, plansOf } from './every-plan.ts';
import { runModel } from './model.ts';
import type { ModelQuery } from './model.ts';
import { TestTable } from './test-table.ts';
import type { Row } from './test-table.ts';

const cities = {
  name: 'cities',
  version: 1,
  fields: {
    id: { typeId: Types.uint32 },
    country: { typeId: Types.varchar },
    region: { typeId: Types.uint8 },
    city: { typeId: Types.varchar },
    people: { typeId: Types.uint32 },
  },
  primaryKey: 'id',
  indexes: ['country', { fields: ['country', 'region', 'city'] }, { fields: ['region', 'id'], name: 'by region' }],
} as const;

const all = 'country,region,city';
const countries = ['DE', 'FR', 'IT', `${'L'.repeat(1024)}1`, `${'L'.repeat(1024)}2`, null];

function rowsOf(count: number): Row[] {
  return Array.from({ length: count }, (_, id) => ({
    id,
    country: countries[(id * 7) % countries.length] as string | null,
    region: id % 5 === 4 ? null : (id * 3) % 4,
    city: `city ${(id * 31) % 17}`,
    people: (id * 7919) % 1000,
  }));
}

const rows = rowsOf(300);

async function filled(): Promise<TestTable> {
  const table = new TestTable(cities, { blockSizeBytes: 1024 });
  await table.commit(rows);
  await table.merge();
  return table;
}

type Where = readonly [string, Operator, unknown];
type Order = readonly [string, 'asc' | 'desc'];

interface Ask {
  readonly wheres: readonly Where[];
  readonly orders?: readonly Order[];
  readonly limit?: number;
}

/** Runs a query, compares it with the model, and tells its plan. */
async function explain(table: TestTable, { wheres, orders = [], limit }: Ask): Promise<Explanation> {
  const build = (): ReturnType<TestTable['query']> => {
    let query = table.query();
    for (const where of wheres) query = query.where(...where);
    for (const order of orders) query = query.orderBy(...order);
    return limit === undefined ? query : query.limit(limit);
  };
  const asked: ModelQuery = { wheres, orders, limit, offset: 0 };
  const expected = runModel(rows, 'id', asked);
  expect(await build().execute()).toEqual(expected);
  expect(await build().count()).toBe(expected.length);
  // Of small tables, all rows are read: whichever plan is chosen, here is what indexes could do.
  const plans = plansOf(table, compile(table, asked));
  const [first] = plans;
  const alike = plans.filter(({ filters, order }) => filters.length === first?.filters.length && order === first.order);
  return (alike.find(({ index }) => index === all) ?? first) as Explanation;
}

const france: Where = ['country', '=', 'FR'];

describe('an index on several fields', () => {
  it('gives rows by values of its first fields and a range of the next', async () => {
    const table = await filled();
    expect(await explain(table, { wheres: [france, ['region', '=', 2]] })).toMatchObject({ index: all, filters: [] });
    expect(await explain(table, { wheres: [france, ['region', '>=', 1], ['region', '<', 3]] })).toMatchObject({
      index: all,
      ranges: 1,
      filters: [],
    });
    expect(await explain(table, { wheres: [france, ['region', '=', null], ['city', '>', 'city 3']] })).toMatchObject({
      index: all,
      ranges: 1,
      filters: [],
    });
    // Behind a range there is no other one: that is tested on the rows.
    expect(await explain(table, { wheres: [france, ['region', '>', 0], ['city', '=', 'city 3']] })).toMatchObject({
      index: all,
      filters: ['city'],
    });
  });

  it('takes lists of values as several ranges', async () => {
    const table = await filled();
    const wheres: Where[] = [
      ['country', 'IN', ['FR', 'IT', null]],
      ['region', 'IN', [0, 1]],
    ];
    expect(await explain(table, { wheres })).toMatchObject({ index: all, ranges: 6, filters: [] });
    expect(await explain(table, { wheres: [...wheres, ['city', '<', 'city 2']] })).toMatchObject({
      ranges: 6,
      filters: [],
    });
    const many = Array.from({ length: 400 }, (_, i) => i % 256);
    const long = await explain(table, {
      wheres: [
        ['country', 'IN', Array.from({ length: 40 }, (_, i) => `F${i}`).concat('FR')],
        ['region', 'IN', many],
      ],
    });
    // So many ranges as both lists make together would be no help.
    expect(long).toMatchObject({ access: 'index', ranges: 41, filters: ['region'] });
  });

  it('is left alone where only a field behind its first is asked for', async () => {
    const table = await filled();
    expect(await explain(table, { wheres: [['city', '=', 'city 3']] })).toMatchObject({ access: 'table' });
  });

  it('knows when conditions contradict each other in any of its fields', async () => {
    const table = await filled();
    expect(
      await explain(table, {
        wheres: [
          ['city', '>', 'b'],
          ['city', '<', 'a'],
        ],
      }),
    ).toMatchObject({ access: 'nothing' });
  });

  it('leaves a value alone to the index on that field only, whose rows come by primary key', async () => {
    const table = await filled();
    expect(await explain(table, { wheres: [france] })).toMatchObject({ index: 'country', order: 'access' });
  });

  it('tests values on the rows if it stores only their beginnings', async () => {
    const table = await filled();
    const wheres: Where[] = [
      ['country', '=', countries[3]],
      ['region', '=', 2],
    ];
    const plan = await explain(table, { wheres });
    expect(plan.filters).toEqual(['country']);
    expect(await explain(table, { wheres, orders: [['city', 'desc']] })).toMatchObject({ order: 'access' });
  });
});

describe('its order', () => {
  it.each<[string, Ask]>([
    [
      'all fields',
      {
        wheres: [],
        orders: [
          ['country', 'asc'],
          ['region', 'asc'],
          ['city', 'asc'],
        ],
        limit: 50,
      },
    ],
    [
      'all fields, descending',
      {
        wheres: [],
        orders: [
          ['country', 'desc'],
          ['region', 'desc'],
          ['city', 'desc'],
        ],
        limit: 250,
      },
    ],
    [
      'the fields behind one that is fixed',
      {
        wheres: [france],
        orders: [
          ['region', 'desc'],
          ['city', 'desc'],
        ],
      },
    ],
    [
      'the same with the fixed one named',
      {
        wheres: [france],
        orders: [
          ['country', 'desc'],
          ['region', 'asc'],
          ['city', 'asc'],
        ],
      },
    ],
    ['the last field', { wheres: [france, ['region', '=', 2]], orders: [['city', 'asc']] }],
    [
      'ranges one after the other',
      {
        wheres: [['country', 'IN', ['FR', 'DE']]],
        orders: [
          ['country', 'desc'],
          ['region', 'desc'],
          ['city', 'desc'],
        ],
      },
    ],
    [
      'all fields but one that is fixed at the end',
      {
        wheres: [['city', '=', 'city 3']],
        orders: [
          ['country', 'asc'],
          ['region', 'asc'],
        ],
        limit: 10,
      },
    ],
    [
      'long values',
      {
        wheres: [['country', '>', 'J']],
        orders: [
          ['country', 'desc'],
          ['region', 'desc'],
          ['city', 'desc'],
        ],
      },
    ],
    ['the primary key in it', { wheres: [['region', '>', 0]], orders: [['region', 'asc']] }],
    [
      'the primary key in it, descending',
      {
        wheres: [['region', '>', 0]],
        orders: [
          ['region', 'desc'],
          ['id', 'desc'],
        ],
      },
    ],
  ])('serves %s', async (_, ask) => {
    expect(await explain(await filled(), ask)).toMatchObject({ access: 'index', order: 'access' });
  });

  it.each<[string, Ask]>([
    [
      'different directions',
      {
        wheres: [france],
        orders: [
          ['region', 'asc'],
          ['city', 'desc'],
        ],
      },
    ],
    [
      'fewer fields than it has, between which the primary key decides',
      { wheres: [france], orders: [['region', 'asc']] },
    ],
    [
      'fields in another sequence',
      {
        wheres: [france],
        orders: [
          ['city', 'asc'],
          ['region', 'asc'],
        ],
      },
    ],
    [
      'a field behind a list of values',
      {
        wheres: [['country', 'IN', ['FR', 'IT']]],
        orders: [
          ['region', 'asc'],
          ['city', 'asc'],
        ],
      },
    ],
    [
      'the primary key descending behind ascending fields',
      {
        wheres: [['region', '>', 0]],
        orders: [
          ['region', 'asc'],
          ['id', 'desc'],
        ],
      },
    ],
  ])('does not serve %s', async (_, ask) => {
    expect(await explain(await filled(), ask)).toMatchObject({ order: 'sort' });
  });
});
