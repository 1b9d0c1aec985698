/** Rows that `offset()` leaves out are skipped by the counts in a tree's nodes if possible, in every order. */
import { beforeAll, describe, expect, it } from 'vitest';
import { Types } from '../../../src/format/types.ts';
import { compile, runEveryPlan } from './every-plan.ts';
import { runModel } from './model.ts';
import type { ModelQuery } from './model.ts';
import { TestTable } from './test-table.ts';
import type { Row } from './test-table.ts';

const schema = {
  name: 'notes',
  version: 1,
  fields: {
    id: { typeId: Types.uint32 },
    rank: { typeId: Types.uint32 },
    kind: { typeId: Types.varchar },
    title: { typeId: Types.varchar },
  },
  primaryKey: 'id',
  indexes: ['rank', 'kind', 'title', { fields: ['kind', 'rank'] }],
} as const;

const count = 3000;
const long = 'L'.repeat(1024);

const rows: Row[] = Array.from({ length: count }, (_, id) => ({
  id: id * 2,
  // Each a few times, and some of them null.
  rank: id % 50 === 7 ? null : Math.floor(((id * 7919) % count) / 3),
  kind: id % 3 === 0 ? 'a' : `kind ${id % 7}`,
  // A few that an index holds only the first bytes of.
  title: id % 100 === 3 ? `${long}${(id * 31) % 97}` : `title ${(id * 104_729) % 1009}`,
}));

type Order = readonly [string, 'asc' | 'desc'];

const orders: readonly (readonly Order[])[] = [
  [],
  [['id', 'desc']],
  [['rank', 'asc']],
  [['rank', 'desc']],
  [['kind', 'asc']],
  [['kind', 'desc']],
  [['title', 'asc']],
  [['title', 'desc']],
  [
    ['kind', 'asc'],
    ['rank', 'asc'],
  ],
  [
    ['kind', 'desc'],
    ['rank', 'desc'],
  ],
];

const wheres: readonly ModelQuery['wheres'][] = [
  [],
  [['id', '>', 777]],
  [
    ['id', '>=', 100],
    ['id', '<', 5001],
  ],
  [['kind', '=', 'a']],
  [['rank', '>=', 100]],
  [
    ['rank', '>', 10],
    ['rank', '<=', 800],
  ],
  [['title', '>', 'M']],
  [
    ['kind', '=', 'a'],
    ['rank', '<', 500],
  ],
];

let table: TestTable;

beforeAll(async () => {
  table = new TestTable(schema, { blockSizeBytes: 1024, inlineRoots: true });
  await table.commit(rows);
  await table.merge();
});

describe('offset', () => {
  it('leaves out the same rows in every plan, wherever it lies', { timeout: 120_000 }, async () => {
    let compared = 0;
    for (const where of wheres) {
      for (const by of orders) {
        const all = runModel(rows, 'id', { wheres: where, orders: by, limit: undefined, offset: 0 });
        const ends = [all.length - 1, all.length, all.length + 1].filter((offset) => offset >= 0);
        for (const offset of [1, 15, 16, 17, 29, 333, 1000, 2222, ...ends]) {
          for (const limit of [1, 20, undefined]) {
            const query = compile(table, { wheres: where, orders: by, limit, offset });
            const expected = all.slice(offset, limit === undefined ? undefined : offset + limit);
            for (const run of await runEveryPlan(table, query)) {
              expect(run.rows, JSON.stringify({ where, by, offset, limit })).toEqual(expected);
              compared++;
            }
          }
        }
      }
    }
    expect(compared).toBeGreaterThan(3000);
  });

  it('costs as much as the first page does', async () => {
    const cold = async (orderBy: Order | undefined, offset: number): Promise<number> => {
      table.forgetBlocks();
      const before = table.requests;
      const query = table.query().offset(offset).limit(5);
      const found = await (orderBy === undefined ? query : query.orderBy(...orderBy)).execute();
      const by = orderBy === undefined ? [] : [orderBy];
      expect(found).toEqual(runModel(rows, 'id', { wheres: [], orders: by, limit: 5, offset }));
      return table.requests - before;
    };
    for (const orderBy of [undefined, ['id', 'desc']] as const) {
      const first = await cold(orderBy, 0);
      // Rows that are wanted may lie in two leaves, under two nodes.
      for (const offset of [16, 100, 1500, 2990]) expect(await cold(orderBy, offset)).toBeLessThanOrEqual(first + 3);
    }
    for (const orderBy of [
      ['rank', 'asc'],
      ['rank', 'desc'],
    ] as const) {
      // The way to an entry, and to each of five rows; some more of those with the same rank.
      for (const offset of [100, 1500, 2900]) expect(await cold(orderBy, offset)).toBeLessThanOrEqual(4 + 8 * 3);
    }
  });

  it('is the same in a loop, and with commits that are not merged', async () => {
    const other = new TestTable(schema, { blockSizeBytes: 1024 });
    await other.commit(rows);
    await other.merge();
    const changed = rows.slice(100, 130).map((row) => Object.assign({}, row, { rank: 5000 }));
    await other.commit(
      changed,
      rows.slice(10, 20).map(({ id }) => id),
    );
    const present = rows.toSpliced(100, 30, ...changed);
    present.splice(10, 10);
    for (const [shown, of] of [
      [table, rows],
      [other, present],
    ] as const) {
      for (const direction of ['asc', 'desc'] as const) {
        const looped: Row[] = [];
        for await (const row of shown.query().orderBy('rank', direction).offset(1200).limit(40)) looped.push(row);
        const by: readonly Order[] = [['rank', direction]];
        expect(looped).toEqual(runModel(of, 'id', { wheres: [], orders: by, limit: 40, offset: 1200 }));
      }
    }
  });

  it('skips rows of the table although some of them wait to be merged', async () => {
    const other = new TestTable(schema, { blockSizeBytes: 1024, inlineRoots: true });
    await other.commit(rows);
    await other.merge();
    // Some go, some change, and some come, between others and behind the last.
    const gone = [40, 700, 701, 2100].map((i) => rows[i] as Row);
    const changed: Row[] = [50, 900, 2500].map((i) => Object.assign({}, rows[i], { title: 'changed' }));
    const last = rows.at(-1) as Row;
    const more = [1, 1001, (last['id'] as number) + 1].map((id) => Object.assign({}, last, { id }));
    await other.commit(
      [...changed, ...more],
      gone.map(({ id }) => id),
    );
    await other.commit([gone[1] as Row]);
    const stays = (row: Row): boolean => !gone.includes(row) || row === gone[1];
    const present = [...rows.filter(stays), ...more]
      .map((row) => changed.find(({ id }) => id === row['id']) ?? row)
      .toSorted((a, b) => (a['id'] as number) - (b['id'] as number));
    for (const direction of ['asc', 'desc'] as const) {
      for (const offset of [250, 690, 699, 700, 701, 703, 1500, 2500, present.length - 4, present.length, 5000]) {
        for (const where of [
          [],
          [
            ['id', '>=', 100],
            ['id', '<', 90_000],
          ],
        ] as const) {
          const model = { wheres: where, orders: [['id', direction]] as const, limit: 7, offset };
          other.forgetBlocks();
          const before = other.requests;
          const [run] = await runEveryPlan(other, compile(other, model));
          expect(run?.rows, JSON.stringify(model)).toEqual(runModel(present, 'id', model));
          // A leaf has some seven rows: those before the first one that is wanted are not read.
          expect(other.requests - before).toBeLessThan(60);
        }
      }
    }
    const steps = async (offset: number): Promise<string | undefined> =>
      (await other.query().offset(offset).limit(2).explain()).steps.at(-1)?.description;
    expect(await steps(2500)).toContain('skipped by counting');
    expect(await steps(20)).not.toContain('skipped by counting');
  });

  it('is shown by explain()', async () => {
    const skips = async (offset: number, limit: number): Promise<boolean> => {
      const { steps } = await table.query().orderBy('rank').offset(offset).limit(limit).explain();
      return steps.at(-1)?.description === `Returns them. The ${offset} before them are skipped by counting.`;
    };
    expect(await skips(2000, 5)).toBe(true);
    expect(await skips(3, 5)).toBe(false);
    const { steps } = await table.query().where('title', '!=', 'x').offset(2000).limit(5).explain();
    expect(steps.at(-1)?.description).toBe('Returns them.');
  });
});
