/** Rows by way of an index where the table is larger than the cache: no block is read again for each of its rows. */
import { expect, it } from 'vitest';
import { Types } from '../../../src/format/types.ts';
import { compile, runEveryPlan } from './every-plan.ts';
import { runModel } from './model.ts';
import type { ModelQuery } from './model.ts';
import { TestTable } from './test-table.ts';
import type { Row } from './test-table.ts';

const schema = {
  name: 'notes',
  version: 1,
  fields: { id: { typeId: Types.uint32 }, rank: { typeId: Types.uint32 }, text: { typeId: Types.varchar } },
  primaryKey: 'id',
  indexes: ['rank', { fields: ['rank', 'text'] }],
} as const;

const count = 4000;

function rowOf(id: number): Row {
  return { id, rank: (id * 7919) % 1000, text: `note ${id % 7}` };
}

const rows = Array.from({ length: count }, (_, id) => rowOf(id));

const queries: readonly ModelQuery[] = [
  { wheres: [['rank', '<', 250]], orders: [], limit: undefined, offset: 0 },
  { wheres: [['rank', 'BETWEEN', [100, 400]]], orders: [['text', 'desc']], limit: 50, offset: 3 },
  { wheres: [['rank', 'IN', Array.from({ length: 200 }, (_, i) => i * 5)]], orders: [], limit: undefined, offset: 0 },
];

it('reads each block once, and gives the same rows with commits that are not merged', async () => {
  const table = new TestTable(schema, { blockSizeBytes: 1024, cacheBytes: 20_000 });
  await table.commit(rows);
  await table.merge();
  table.forgetBlocks();
  await table.query().where('text', '!=', null).count();
  const before = table.requests;
  await table.query().where('text', '!=', null).count();
  const blocks = table.requests - before;
  expect(blocks).toBeGreaterThan(50);
  const changed = [7, 1000, 2001, 3999].map((id) => ({ id, rank: 200, text: 'changed' }));
  const taken: number[] = [];
  for (const state of ['merged', 'pending'] as const) {
    const present =
      state === 'merged'
        ? rows
        : rows.filter(({ id }) => id !== 12).map((row) => changed.find(({ id }) => id === row['id']) ?? row);
    if (state === 'pending') await table.commit(changed, [12]);
    for (const query of queries) {
      const expected = runModel(present, 'id', query);
      for (const run of await runEveryPlan(table, compile(table, query), () => table.forgetBlocks())) {
        expect(run.rows).toEqual(expected);
        const { candidate, requests } = run;
        if (candidate.access.kind === 'index' && !candidate.ordered && state === 'merged') taken.push(requests);
      }
    }
  }
  expect(taken.length).toBeGreaterThan(4);
  // Beside the rows the leaves of an index are read. Row by row it takes ten times as many.
  expect(Math.max(...taken)).toBeLessThan(blocks * 2.5);
});
