/** Rows by way of several indexes at once. */
import { describe, expect, it } from 'vitest';
import { Types } from '../../../src/format/types.ts';
import { unboundedMemory } from '../../../src/cache/memory-budget.ts';
import { candidatesOf, planOf } from '../../../src/query/planner/planner.ts';
import { readOf } from '../../../src/query/execute.ts';
import { compile, countEveryPlan, runEveryPlan } from './every-plan.ts';
import type { PlanRun } from './every-plan.ts';
import { runModel } from './model.ts';
import type { ModelQuery } from './model.ts';
import { TestTable } from './test-table.ts';
import { TreeCursor } from '../../../src/tree/cursor.ts';
import type { Row } from './test-table.ts';

const schema = {
  name: 't',
  version: 1,
  fields: {
    id: { typeId: Types.uint32 },
    key: { typeId: Types.varchar },
    rare: { typeId: Types.uint8 },
    often: { typeId: Types.uint8 },
    number: { typeId: Types.uint16 },
    text: { typeId: Types.varchar },
  },
  indexes: ['rare', 'often', 'number'],
} as const;
const count = 4000;

/** The 20 rows with the rare value lie far apart. */
function row(id: number): Row {
  const rare = id % 200 === 50 ? 1 : 0;
  return { id, key: `key ${id}`, rare, often: id % 4 === 2 ? 1 : 0, number: (id * 7919) % 1000, text: `text ${id}` };
}

async function tableOf(primaryKey: 'id' | 'key' = 'id', make = row, blockSizeBytes = 2048): Promise<TestTable> {
  const table = new TestTable({ ...schema, primaryKey }, { inlineRoots: true, blockSizeBytes });
  await table.commit(Array.from({ length: count }, (_, id) => make(id)));
  await table.merge();
  return table;
}

/** Reads all indexes, so that it is known how many entries each value has. */
async function warm({ state }: TestTable): Promise<void> {
  for (const tree of state.indexes.values()) {
    const cursor = new TreeCursor(tree);
    while (await cursor.next());
  }
}

const both: ModelQuery = {
  wheres: [
    ['rare', '=', 1],
    ['often', '=', 1],
  ],
  orders: [],
  limit: undefined,
  offset: 0,
};
const ranged: ModelQuery = {
  ...both,
  wheres: [
    ['number', '<', 300],
    ['often', '=', 1],
  ],
};

/** The runs by intersections: of a query, and as many as there are. All runs give what is expected. */
async function intersected(table: TestTable, rows: readonly Row[], query: ModelQuery): Promise<PlanRun[]> {
  const expected = runModel(rows, table.shape.keyNames as string, query);
  await warm(table);
  const runs = await runEveryPlan(table, compile(table, query), () => table.forgetBlocks());
  await warm(table);
  for (const run of runs) expect(run.rows).toEqual(expected);
  for (const found of await countEveryPlan(table, compile(table, query, true))) expect(found).toBe(expected.length);
  return runs.filter(({ candidate }) => candidate.access.kind === 'intersection');
}

const rows = Array.from({ length: count }, (_, id) => row(id));

describe('an intersection', () => {
  it('of two values follows the primary key in either direction, and skips the keys in between', async () => {
    for (const primaryKey of ['id', 'key'] as const) {
      const table = await tableOf(primaryKey);
      for (const direction of ['asc', 'desc'] as const) {
        const query: ModelQuery = { ...both, orders: [[primaryKey, direction]], limit: 7, offset: 2 };
        const [run] = await intersected(table, rows, query);
        expect(run?.candidate).toMatchObject({ ordered: true, access: { first: { index: { name: 'rare' } } } });
        // Of the other value there are 1,000 entries.
        expect(run?.work.entries).toBeLessThanOrEqual(20);
        expect(run?.work.lookups).toBe(run?.work.matches);
      }
    }
  });

  it('of two values reads the leaves that can have the keys of the smaller index, and no others', async () => {
    const rare = new Set([2, 6, 10, 3990, 3994, 3998]);
    const make = (id: number): Row => ({ ...row(id), rare: rare.has(id) ? 1 : 0 });
    const table = await tableOf('id', make, 512);
    const read = table.requests;
    table.forgetBlocks();
    await warm(table);
    expect(table.requests - read).toBeGreaterThan(60);
    const all = Array.from({ length: count }, (_, id) => make(id));
    for (const direction of ['asc', 'desc'] as const) {
      const [run] = await intersected(table, all, { ...both, orders: [['id', direction]] });
      expect(run?.work).toMatchObject({ entries: 6, lookups: 6 });
      expect(run?.requests).toBeLessThanOrEqual(16);
    }
  });

  it('of ranges holds the keys of the smaller one, and keeps the order of the other', async () => {
    for (const primaryKey of ['id', 'key'] as const) {
      const table = await tableOf(primaryKey);
      const runs = await intersected(table, rows, { ...ranged, orders: [['number', 'desc']], limit: 20 });
      expect(runs.map(({ candidate: { ordered } }) => ordered)).toContain(true);
      const three: ModelQuery = { ...ranged, wheres: [...ranged.wheres, ['rare', 'IN', [1, 2]]] };
      const all = await intersected(table, rows, three);
      expect(
        all.some(({ candidate: { access } }) => access.kind === 'intersection' && access.others.length === 2),
      ).toBe(true);
    }
  });

  it('gives up holding keys where they are too many, and tests rows instead', async () => {
    const table = await tableOf();
    const source = table.state.tree.source;
    Object.defineProperty(source, 'memory', { value: { ...unboundedMemory, readAheadBytes: 20_000 } });
    const runs = await intersected(table, rows, ranged);
    expect(runs).toHaveLength(1);
    const matching = runModel(rows, 'id', ranged).length;
    expect(runs[0]?.work.lookups).toBeGreaterThan(matching);
    const ordered = await intersected(table, rows, { ...ranged, orders: [['number', 'asc']], limit: 5 });
    expect(ordered.length).toBeGreaterThan(0);
  });

  it('shows changes of unmerged commits and deletions', async () => {
    const table = await tableOf();
    const changed = [
      { ...row(50), often: 0 },
      { ...row(51), rare: 1, often: 1 },
      { ...row(5000), rare: 1, often: 1 },
    ];
    await table.commit(changed, [250]);
    const now = [...rows.filter(({ id }) => id !== 250 && id !== 50 && id !== 51), ...changed];
    for (const query of [both, ranged, { ...both, orders: [['id', 'desc'] as const], limit: 3 }]) {
      expect((await intersected(table, now, query)).length).toBeGreaterThan(0);
    }
  });

  it('of conditions that others imply is none', async () => {
    const table = new TestTable({ ...schema, primaryKey: 'id', indexes: ['often', { fields: ['often', 'number'] }] });
    await table.commit(rows);
    await table.merge();
    const query = compile(table, ranged);
    expect(candidatesOf(table.state, query).filter(({ access }) => access.kind === 'intersection')).toEqual([]);
  });

  it('has read every row that matches, also one that is not there yet', async () => {
    const table = await tableOf();
    await warm(table);
    const query = compile(table, both);
    const candidate = candidatesOf(table.state, query).find(({ access }) => access.kind === 'intersection');
    const { keys, range, matches } = readOf({ query, plan: planOf(table.state, query, candidate as never) });
    expect([keys, range]).toEqual([undefined, undefined]);
    const layer = await table.layer([
      { ...row(9001), rare: 1, often: 1 },
      { ...row(9002), rare: 1, often: 0 },
    ]);
    const { node } = layer as { node: Parameters<NonNullable<typeof matches>>[0] & { rowBase(i: number): number } };
    expect([0, 1].map((i) => matches?.(node, node.rowBase(i)))).toEqual([true, false]);
  });

  it('reads an index without a condition in the requested order until it has enough', async () => {
    const table = await tableOf('id', (id) => ({ ...row(id), often: (id * 31) % 40, number: (id * 7919) % 4000 }));
    const query = table.query().where('often', '=', 3).orderBy('number').limit(5);
    const expected = Array.from({ length: count }, (_, id) => ({ often: (id * 31) % 40, number: (id * 7919) % 4000 }))
      .filter(({ often }) => often === 3)
      .map(({ number }) => number)
      .toSorted((a, b) => a - b);
    const numbers = async (): Promise<unknown[]> => (await query.execute()).map(({ number }) => number);
    table.forgetBlocks();
    // It looks at the index of the condition first, for a hundred rows would be a hundred look-ups.
    expect((await query.explain()).readsBeforePlanning).toBe(true);
    const before = table.requests;
    expect(await numbers()).toEqual(expected.slice(0, 5));
    expect(table.requests - before).toBeLessThan(30);
    table.forgetBlocks();
    await warm(table);
    expect(await query.explain()).toMatchObject({ access: 'intersection', order: 'access' });
    const last = table.query().where('often', '=', 3).orderBy('number', 'desc').offset(2).limit(4);
    expect((await last.execute()).map(({ number }) => number)).toEqual(expected.toReversed().slice(2, 6));
    // Reading most of an index to find a few rows takes longer than testing rows until they are there.
    const most = table.query().where('often', '>', 5).orderBy('number').limit(5);
    table.forgetBlocks();
    const start = table.requests;
    expect(await most.execute()).toHaveLength(5);
    expect(table.requests - start).toBeLessThan(20);
    // Where nearly all rows match it takes none of that.
    const wide = table.query().where('rare', '=', 0).orderBy('number').limit(5);
    expect(await wide.explain()).toMatchObject({ access: 'index', index: 'number' });
  });

  it('is explained: its indexes, the cost of each step, and the alternatives', async () => {
    const table = await tableOf();
    await table.query().execute();
    table.forgetBlocks();
    const told = await table.query().where('number', '<', 30).where('often', '=', 1).explain({ run: true });
    expect(told).toMatchObject({ access: 'intersection', indexes: ['often', 'number'], indexOnly: false, filters: [] });
    expect(told.index).toBeUndefined();
    expect(told.steps.map(({ description }) => description)).toEqual([
      "Looks in 2 ranges of indexes 'often' and 'number' for primary keys that are in all of them.",
      "Looks up their rows in 't'.",
      'Returns them.',
    ]);
    const matching = runModel(rows, 'id', {
      ...ranged,
      wheres: [
        ['number', '<', 30],
        ['often', '=', 1],
      ],
    }).length;
    expect(told.steps.map(({ actual }) => actual?.rows)).toEqual([1120, matching, matching]);
    expect(told.alternatives.map(({ index }) => index)).toContain('number');
  });
});
