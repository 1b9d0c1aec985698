/** Queries that indexes answer by themselves: exactly, with unmerged commits over them, and only where they can. */
import { describe, expect, it } from 'vitest';
import { CorruptionError } from '../../../src/base/errors.ts';
import { BlockKind } from '../../../src/format/block.ts';
import { Types } from '../../../src/format/types.ts';
import type { TypeId } from '../../../src/format/types.ts';
import type { Explanation } from '../../../src/query/explain.ts';
import { candidatesOf } from '../../../src/query/planner/planner.ts';
import { layeredState } from '../../../src/view/layered-state.ts';
import { Tree } from '../../../src/tree/tree.ts';
import { compile, runEveryPlan } from './every-plan.ts';
import type { PlanRun } from './every-plan.ts';
import { runModel } from './model.ts';
import type { ModelQuery } from './model.ts';
import { TestTable } from './test-table.ts';
import type { Row } from './test-table.ts';

const all: ModelQuery = { wheres: [], orders: [], limit: undefined, offset: 0 };

function edgesOf(typeId: TypeId): unknown[] {
  switch (typeId) {
    case Types.int8:
      return [-128, -1, 0, 1, 127];
    case Types.int16:
      return [-32_768, -1, 0, 1, 32_767];
    case Types.int32:
      return [-(2 ** 31), -1, 0, 1, 2 ** 31 - 1];
    case Types.uint8:
      return [0, 1, 255];
    case Types.uint16:
      return [0, 1, 256, 65_535];
    case Types.uint32:
      return [0, 1, 0x01020304, 2 ** 32 - 1];
    case Types.uint64:
      return [0n, 1n, 0x0102030405060708n, 2n ** 64n - 1n];
    case Types.int64:
      return [-(2n ** 63n), -1n, 0n, 0x0102030405060708n, 2n ** 63n - 1n];
    case Types.timestamp:
      return [-8.64e15, -4_294_967_297, -1, 0, 1, 4_294_967_296, 8.64e15].map((ms) => new Date(ms));
    case Types.uuid:
      return ['00000000-0000-0000-0000-000000000000', '01234567-89ab-4def-8123-456789abcdef'];
    case Types.boolean:
      return [true, false];
    case Types.bytes:
      return [
        [],
        [0],
        [0, 0, 1],
        [255, 0],
        [...Array(13).keys()],
        Array<number>(1024).fill(0),
        Array<number>(1025).fill(7),
      ].map((list) => Buffer.from(list));
    default:
      return [
        '',
        'a',
        'a\0b',
        'twelve bytes',
        'thirteen byte',
        'é',
        '\u{10000}'.repeat(4),
        'x'.repeat(1024),
        'x'.repeat(1025),
      ];
  }
}

const exactTypes = [
  'int8',
  'int16',
  'int32',
  'uint8',
  'uint16',
  'uint32',
  'uint64',
  'int64',
  'timestamp',
  'uuid',
  'boolean',
  'bytes',
  'varchar',
] as const;

async function tableOf(typeId: TypeId, values: readonly unknown[]): Promise<TestTable> {
  const fields = { id: { typeId: Types.uint32 }, value: { typeId }, more: { typeId: Types.varchar } };
  const table = new TestTable({ name: 't', version: 1, fields, primaryKey: 'id', indexes: ['value'] });
  await table.commit([null, ...values].map((value, id) => ({ id, value, more: 'more' })));
  await table.merge();
  return table;
}

function onlyOf(runs: readonly PlanRun[]): PlanRun | undefined {
  return runs.find(({ candidate: { use } }) => use?.only === true);
}

describe('rows made of index entries', () => {
  it.each(exactTypes)('are the rows, for every value of %s', async (name) => {
    const typeId = Types[name as 'int8'];
    const values = edgesOf(typeId);
    const table = await tableOf(typeId, values);
    const runs = await runEveryPlan(table, compile(table, all, false, { names: ['id', 'value'] }));
    const expected = [null, ...values].map((value, id) => ({ id, value }));
    for (const { rows } of runs) expect(rows).toStrictEqual(expected);
    const only = onlyOf(runs);
    // Only of the value that the index holds in part is the row looked up.
    const long = values.filter((value) => (value as { length?: number }).length === 1025);
    expect(only?.work).toMatchObject({ entries: expected.length, lookups: long.length });
  });

  it('do not distinguish -0 from 0, and so are only aggregated', async () => {
    for (const typeId of [Types.float64, Types.float32]) {
      const table = await tableOf(typeId, [-0, 0, -1.5, -Infinity, Infinity, 2 ** -100]);
      const runs = await runEveryPlan(table, compile(table, all, false, { names: ['id', 'value'] }));
      expect(onlyOf(runs)).toBeUndefined();
      for (const { rows } of runs) expect(rows[1]).toStrictEqual({ id: 1, value: -0 });
      const folded = await runEveryPlan(table, compile(table, all, false, { names: ['value'], folds: true }));
      const values = onlyOf(folded)?.rows.map(({ value }) => value) as number[];
      expect(values).toHaveLength(7);
      expect(new Set(values)).toStrictEqual(new Set([null, 0, -1.5, -Infinity, Infinity, 2 ** -100]));
    }
  });

  it('sums and compares as rows do where all values are -0', async () => {
    const table = await tableOf(Types.float64, [-0, -0]);
    expect(await table.query().sum('value')).toBe(0);
    expect(await table.query().min('value')).toBe(0);
    expect(await table.query().where('value', '=', 0).select('id').execute()).toEqual([{ id: 1 }, { id: 2 }]);
  });
});

function sale(id: number): Row {
  return { id, shop: `shop ${id % 7}`, price: (id * 7919) % 1000, notes: `${'notes '.repeat(20)}${id}` };
}

async function sales(): Promise<TestTable> {
  const table = new TestTable(
    {
      name: 'sales',
      version: 1,
      fields: {
        id: { typeId: Types.uint32 },
        shop: { typeId: Types.varchar },
        price: { typeId: Types.uint16 },
        notes: { typeId: Types.varchar },
      },
      primaryKey: 'id',
      indexes: [{ fields: ['shop', 'price'] }],
    },
    { inlineRoots: true, blockSizeBytes: 8192 },
  );
  await table.commit(Array.from({ length: 2000 }, (_, id) => sale(id)));
  await table.merge();
  table.forgetBlocks();
  return table;
}

function stepsOf({ steps }: Explanation): string[] {
  return steps.map(({ step }) => step);
}

describe('queries that an index answers by itself', () => {
  const rows = Array.from({ length: 2000 }, (_, id) => sale(id));
  const ofShop = rows.filter(({ shop }) => shop === 'shop 3');

  it('read no row, and say so', async () => {
    const table = await sales();
    const query = table.query().where('shop', '=', 'shop 3').orderBy('price').select('price').limit(5);
    const told = await query.explain({ run: true });
    expect(told).toMatchObject({ access: 'index', index: 'shop,price', indexOnly: true, order: 'access' });
    expect(stepsOf(told)).toEqual(['index', 'result']);
    expect(told.steps[0]?.description).toBe("Reads 1 range of index 'shop,price', which has all that is asked for.");
    expect(told.steps[0]?.actual).toMatchObject({ rows: 5, requests: 1 });
    const prices = ofShop.map(({ price }) => price as number).toSorted((a, b) => a - b);
    expect(await query.execute()).toEqual(prices.slice(0, 5).map((price) => ({ price })));
    const whole = await table.query().where('shop', '=', 'shop 3').orderBy('price').limit(5).explain();
    expect(whole.indexOnly).toBe(false);
  });

  it('are counts, extremes, sums and groups too', async () => {
    const table = await sales();
    const before = table.requests;
    const cheap = ofShop.filter(({ price }) => (price as number) < 300).length;
    expect(await table.query().where('shop', '=', 'shop 3').where('price', '!=', 7).count()).toBe(
      ofShop.filter(({ price }) => price !== 7).length,
    );
    expect(await table.query().where('shop', '=', 'shop 3').max('price')).toBe(
      Math.max(...ofShop.map(({ price }) => price as number)),
    );
    const groups = await table.query().where('price', '<', 300).groupBy('shop').aggregate({ n: 'count' });
    expect(groups[3]).toEqual({ shop: 'shop 3', n: cheap });
    const taken = table.requests - before;
    await table.query().execute();
    expect(taken).toBeLessThan((table.requests - before) / 4);
  });

  it('test entries before rows are looked up', async () => {
    const table = await sales();
    const told = await table.query().where('shop', '>=', 'shop 5').where('price', '=', 57).explain({ run: true });
    expect(told).toMatchObject({ access: 'index', indexOnly: false, filters: ['price'] });
    const matching = rows.filter(({ shop, price }) => (shop as string) > 'shop 4' && price === 57);
    const [index, looked] = told.steps;
    expect(index?.actual?.rows).toBe(rows.filter(({ shop }) => (shop as string) > 'shop 4').length);
    expect(looked?.actual?.rows).toBe(matching.length);
  });

  it('are not answered so where something else is asked for: by a condition, a function, the order or the caller', async () => {
    const table = await sales();
    table.register('odd', ({ notes }) => (notes as string).endsWith('1'));
    const inShop = { ...all, wheres: [['shop', '=', 'shop 3'] as const] };
    const queries: ModelQuery[] = [
      { ...inShop, wheres: [...inShop.wheres, ['notes', '>', `${'notes '.repeat(20)}15`]] },
      { ...inShop, orders: [['notes', 'desc']], limit: 3 },
      {
        ...inShop,
        wheres: [
          ...inShop.wheres,
          {
            or: [
              ['price', '<', 100],
              ['notes', '=', rows[3]?.['notes']],
            ],
          },
        ],
      },
    ];
    for (const query of queries) {
      const expected = runModel(rows, 'id', query).map(({ id, price }) => ({ id, price }));
      const runs = await runEveryPlan(table, compile(table, query, false, { names: ['id', 'price'] }));
      for (const run of runs) expect(run.rows).toEqual(expected);
      expect(onlyOf(runs)).toBeUndefined();
    }
    const odd = table.query().where('shop', '=', 'shop 3').where('odd', '=', true);
    const expected = rows.filter(({ shop, notes }) => shop === 'shop 3' && (notes as string).endsWith('1'));
    expect(await odd.count()).toBe(expected.length);
    expect(await odd.sum('price')).toBe(expected.reduce((sum, { price }) => sum + (price as number), 0));
    expect((await odd.select('price').explain()).indexOnly).toBe(false);
  });

  it('show changes of unmerged commits', async () => {
    const table = await sales();
    await table.commit(
      [
        { ...sale(3), price: 5000 },
        { ...sale(3000), shop: 'shop 3', price: 6000 },
      ],
      [10],
    );
    const query = table.query().where('shop', '=', 'shop 3').orderBy('price', 'desc').select('id', 'price').limit(3);
    const told = await query.explain({ run: true });
    expect(told.indexOnly).toBe(true);
    expect(stepsOf(told)).toEqual(['index', 'table', 'result']);
    // Those of the shop; of three changed rows among 2,000, one is expected.
    expect(told.steps[1]).toMatchObject({ estimated: { rows: 1 }, actual: { rows: 2 } });
    const [first, second] = await query.execute();
    expect([first, second]).toEqual([
      { id: 3000, price: 6000 },
      { id: 3, price: 5000 },
    ]);
    expect(await table.query().where('shop', '=', 'shop 3').where('price', '!=', 1).count()).toBe(ofShop.length);
    expect(await table.query().where('shop', '=', 'shop 3').where('id', '=', 10).count()).toBe(0);
  });

  it('are not answered so where rows may be such as cannot be made', async () => {
    const table = await sales();
    const { state, shape } = table;
    const query = compile(table, { ...all, wheres: [['shop', '=', 'shop 3']] }, false, { names: ['id', 'price'] });
    const brokenTree = new Tree(state.tree.source, state.tree.ref, undefined, true);
    const broken = layeredState(shape, brokenTree, state.indexes);
    expect(candidatesOf(state, query).some(({ use }) => use !== undefined)).toBe(true);
    expect(candidatesOf(broken, query).some(({ use }) => use !== undefined)).toBe(false);
  });

  it('end where an entry is damaged', async () => {
    const table = await sales();
    const index = table.state.indexes.get('shop,price') as Tree;
    const source = index.source as { getCachedChild: typeof index.source.getCachedChild };
    await table.query().where('shop', '=', 'shop 3').select('price').orderBy('price').execute();
    const peek = source.getCachedChild.bind(source);
    source.getCachedChild = (node, i, passing) => {
      const child = peek(node, i, passing);
      if (child === undefined || child.kind !== BlockKind.index) return child;
      // The tags of all prices.
      for (let k = 0; k < child.count; k++) child.rows[child.suffixEnd(k) - 8] = 9;
      return child;
    };
    const prices = table.query().where('shop', '=', 'shop 3').select('price').orderBy('price').execute();
    await expect(prices).rejects.toThrow(CorruptionError);
  });
});
