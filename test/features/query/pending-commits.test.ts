/**
 * Queries by an index while many commits wait to be merged: right by every plan, and with little more work than without.
 */
import { beforeAll, describe, expect, it } from 'vitest';
import { Types } from '../../../src/format/types.ts';
import { SeededRandom } from '../../../src/testing/seeded-random.ts';
import { compile, countEveryPlan, runEveryPlan } from './every-plan.ts';
import type { PlanRun } from './every-plan.ts';
import { runModel } from './model.ts';
import type { ModelQuery } from './model.ts';
import { TestTable } from './test-table.ts';
import type { Row } from './test-table.ts';

const count = 3000;
const commits = 60;
const rowsOfCommit = 25;

function row(id: number, random: SeededRandom): Row {
  const name = random.chance(0.1) ? null : `name ${random.integer(0, 30)}`;
  return { id, name: random.chance(0.2) ? `${'N'.repeat(200)}${name}` : name, rank: random.integer(0, 1000) };
}

const table = new TestTable(
  {
    name: 'people',
    version: 1,
    fields: {
      id: { typeId: Types.uint32 },
      name: { typeId: Types.varchar },
      rank: { typeId: Types.uint32 },
    },
    primaryKey: 'id',
    indexes: ['rank', 'name', { fields: ['name', 'rank'] }],
  },
  { blockSizeBytes: 4096 },
);
const rows = new Map<number, Row>();

beforeAll(async () => {
  const random = new SeededRandom('pending');
  for (let id = 0; id < count; id++) rows.set(id, row(id, random));
  await table.commit([...rows.values()]);
  await table.merge();
  for (let i = 0; i < commits; i++) {
    const changed = new Map<number, Row>();
    const deleted = new Set<number>();
    for (let k = 0; k < rowsOfCommit; k++) {
      // Mostly the same ones again and again.
      const id = random.chance(0.7) ? random.integer(0, 300) : random.integer(0, count + 500);
      if (random.chance(0.2)) {
        changed.delete(id);
        deleted.add(id);
        rows.delete(id);
      } else {
        deleted.delete(id);
        changed.set(id, row(id, random));
        rows.set(id, changed.get(id) as Row);
      }
    }
    const layer = await table.layer([...changed.values()], [...deleted]);
    if (layer !== undefined) table.state = table.state.withLayer(layer);
  }
  // All in memory, so that plans differ in work alone.
  await table.query().orderBy('rank').execute();
});

async function run(query: Partial<ModelQuery>): Promise<PlanRun[]> {
  const whole: ModelQuery = { wheres: [], orders: [], limit: undefined, offset: 0, ...query };
  const expected = runModel([...rows.values()], 'id', whole);
  const runs = await runEveryPlan(table, compile(table, whole));
  for (const one of runs) expect(one.rows).toEqual(expected);
  for (const found of await countEveryPlan(table, compile(table, whole, true))) expect(found).toBe(expected.length);
  return runs;
}

function byIndex(runs: readonly PlanRun[], name: string): PlanRun {
  const found = runs.find(({ candidate: { access } }) => access.kind === 'index' && access.index.name === name);
  if (found === undefined) throw new Error(`No plan goes by ${name}`);
  return found;
}

describe('While commits wait', () => {
  it('there are many rows in them, in a few layers', () => {
    expect(table.state.layers.length).toBeGreaterThan(2);
    expect(table.state.layers.length).toBeLessThan(12);
    expect(table.state.layers.reduce((sum, layer) => sum + layer.count, 0)).toBeGreaterThan(500);
  });

  it.each(['asc', 'desc'] as const)('the first rows by an index take few of theirs, %s', async (direction) => {
    const { work } = byIndex(await run({ orders: [['rank', direction]], limit: 10 }), 'rank');
    expect(work.rows).toBeLessThan(60);
  });

  it('a range of an index takes only those that are in it', async () => {
    const { work } = byIndex(await run({ wheres: [['rank', 'BETWEEN', [100, 110]]] }), 'rank');
    expect(work.rows).toBeLessThan(60);
  });

  it('a value of an index takes only those that have it', async () => {
    const { work } = byIndex(await run({ wheres: [['name', '=', 'name 7']], orders: [['id', 'desc']] }), 'name');
    expect(work.rows).toBeLessThan(60);
  });

  it.each<[string, Partial<ModelQuery>]>([
    ['long values', { orders: [['name', 'asc']], limit: 700 }],
    ['long values, descending, all', { orders: [['name', 'desc']] }],
    [
      'two fields',
      {
        orders: [
          ['name', 'asc'],
          ['rank', 'asc'],
        ],
        offset: 30,
        limit: 40,
      },
    ],
    ['lists of values', { wheres: [['rank', 'IN', [5, 6, 7, 400]]], orders: [['rank', 'desc']] }],
    [
      'two indexes',
      {
        wheres: [
          ['rank', '<', 300],
          ['name', '=', 'name 3'],
        ],
        orders: [['rank', 'asc']],
        limit: 5,
      },
    ],
    ['nothing', { wheres: [['name', '=', null]] }],
    ['conditions on other fields', { wheres: [['id', '>', 150]], orders: [['rank', 'desc']], limit: 50 }],
  ])('every plan gives the rows by %s', async (_, query) => {
    expect((await run(query)).length).toBeGreaterThan(1);
  });
});
