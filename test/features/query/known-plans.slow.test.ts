/** Repeated queries are not planned again, and the plan of one must never answer another. */
import { afterAll, afterEach, describe, expect, it, vi } from 'vitest';
import { Types } from '../../../src/format/types.ts';
import type { Plan } from '../../../src/query/planner/access-paths.ts';
import type { Row, TestTable } from './test-table.ts';

vi.mock(import('../../../src/query/planner/planner.ts'), { spy: true });
// Modules stay loaded from one file of tests to the next: here they are loaded anew, with a planner that is spied on.
vi.resetModules();
const { planQuery } = await import('../../../src/query/planner/planner.ts');
const { toStoredSchema } = await import('../../../src/schema/schema.ts');
const { TableShape } = await import('../../../src/schema/table-shape.ts');
const { TestTable: Table } = await import('./test-table.ts');
const planned = vi.mocked(planQuery);
afterAll(() => {
  vi.doUnmock(import('../../../src/query/planner/planner.ts'));
  vi.resetModules();
});

const schema = {
  name: 'things',
  version: 1,
  fields: {
    id: { typeId: Types.uint32 },
    kind: { typeId: Types.varchar },
    size: { typeId: Types.float64 },
    big: { typeId: Types.int64 },
    made: { typeId: Types.timestamp },
    good: { typeId: Types.boolean },
  },
  primaryKey: 'id',
  indexes: ['kind', 'size', 'big'],
} as const;

const kinds = ['a', 'b', '1', 'null', 'true', 'a where 4:size = n1', 'a by 4:size asc', null];

function thing(id: number): Row {
  return {
    id,
    kind: kinds[id % kinds.length],
    size: id % 7 === 0 ? null : id % 5,
    big: BigInt(id % 100),
    made: new Date(id % 4),
    good: id % 2 === 0,
  };
}

async function things(): Promise<TestTable> {
  const table = new Table(schema);
  await table.commit(Array.from({ length: 500 }, (_, id) => thing(id)));
  await table.merge();
  // All blocks are in memory.
  await table.query().where('made', '!=', null).execute();
  return table;
}

afterEach(() => {
  planned.mockClear();
});

describe('a query that was asked before', () => {
  it('is planned once, for all callers, and again once rows have changed', async () => {
    const table = await things();
    const ask = async (): Promise<Row[]> => table.query().where('kind', '=', 'a').orderBy('size').limit(3).execute();
    await ask();
    planned.mockClear();
    const first = await ask();
    expect(await ask()).toStrictEqual(first);
    expect(planned).toHaveBeenCalledTimes(0);
    await table.commit([], [first[0]?.['id']]);
    const rest = await ask();
    expect(rest.slice(0, 2)).toStrictEqual(first.slice(1));
    expect(rest).toHaveLength(3);
    expect(planned).toHaveBeenCalledTimes(1);
  });

  it('is planned again once other blocks are in memory', async () => {
    const table = await things();
    const ask = async (): Promise<Row[]> => table.query().where('kind', '=', 'a').orderBy('size').limit(3).execute();
    await ask();
    await ask();
    planned.mockClear();
    table.forgetBlocks();
    await ask();
    expect(planned).toHaveBeenCalled();
  });

  it('is not taken for another one', async () => {
    const table = await things();
    const wheres = [
      ...kinds.map((kind) => ['kind', '=', kind] as const),
      ['kind', '!=', 'a'],
      ['kind', '>', 'a'],
      ['size', '=', 1],
      ['size', '=', null],
      ['size', '>=', 0],
      ['size', '>=', -0],
      ['big', '=', 1n],
      ['good', '=', true],
      ['good', '=', false],
      ['made', '=', new Date(1)],
      ['made', '=', new Date(2)],
      ['kind', 'IN', ['a', 'b']],
      ['kind', 'IN', ['a', 'true']],
    ] as const;
    const orders = [undefined, ['size', 'asc'], ['size', 'desc']] as const;
    for (let round = 0; round < 2; round++) {
      for (const [field, operator, value] of wheres) {
        for (const order of orders) {
          for (const limit of [undefined, 1, 4]) {
            for (const offset of [0, 2]) {
              let query = table.query().where(field, operator, value).offset(offset);
              if (order !== undefined) query = query.orderBy(order[0], order[1]);
              if (limit !== undefined) query = query.limit(limit);
              const matches = (row: Row): boolean => {
                const found = row[field] as never;
                if (operator === 'IN') return value.includes(found);
                if (field === 'made') return (found as Date).getTime() === value.getTime();
                if (operator === '=') return found === value;
                if (operator === '!=') return found !== value;
                return found !== null && (operator === '>' ? found > (value as never) : found >= (value as never));
              };
              const expected = Array.from({ length: 500 }, (_, id) => thing(id)).filter(matches);
              const by = order === undefined ? 0 : order[1] === 'asc' ? 1 : -1;
              const size = (row: Row): number => (row['size'] as number | null) ?? Number.NEGATIVE_INFINITY;
              if (by !== 0) expected.sort((a, b) => (size(a) === size(b) ? 0 : size(a) < size(b) ? -by : by));
              const rows = await query.execute();
              const end = limit === undefined ? undefined : offset + limit;
              expect(rows).toStrictEqual(expected.slice(offset, end));
              expect(await query.count()).toBe(rows.length);
              expect(await query.select('size').execute()).toStrictEqual(rows.map((row) => ({ size: row['size'] })));
            }
          }
        }
      }
    }
  });

  it('is another one once a function has the name of its field', async () => {
    const table = await things();
    const ask = async (): Promise<number> => (await table.query().where('kind', '=', 'a').execute()).length;
    expect([await ask(), await ask()]).toStrictEqual([63, 63]);
    table.register('kind', (row) => (row['id'] === 3 ? 'a' : 'b'));
    expect([await ask(), await ask()]).toStrictEqual([1, 1]);
  });

  it('is distinguished from one whose values look the same', async () => {
    const table = await things();
    const both = table.query().where('kind', '=', 'a').where('size', '=', 1);
    expect((await both.execute()).length).toBeGreaterThan(0);
    const values = ['a where size = 1', 'a where 4:size = n 1', 's1:a', '1:a', 'a by size asc', 'a select size'];
    for (const value of values) expect(await table.query().where('kind', '=', value).execute()).toStrictEqual([]);
    const ordered = table.query().where('kind', '=', 'b').orderBy('size');
    expect(await ordered.execute()).toHaveLength(63);
    expect(await table.query().where('kind', '=', 'b by size asc').execute()).toStrictEqual([]);
  });

  it('has a plan of its own where it was written before its table was known', async () => {
    const table = await things();
    const shapeOf = table.shapeOf.bind(table);
    // As before start(): the shape is that of the registered schema, and not that of the stored table.
    const registered = new TableShape(toStoredSchema(schema));
    table.shapeOf = () => registered;
    const early = table.query().where('big', '=', 5n);
    table.shapeOf = shapeOf;
    await table.query().where('big', '=', 6n).execute();
    planned.mockClear();
    await early.execute();
    await table.query().where('big', '=', 5n).execute();
    await table.query().where('big', '=', 7n).execute();
    const accesses = planned.mock.results.map(({ value }) => (value as Plan).access.kind);
    expect(accesses).toStrictEqual(['index', 'index']);
  });

  it('is forgotten after many others', async () => {
    const table = await things();
    const ask = async (least: number): Promise<number> =>
      (await table.query().where('size', '>', least).orderBy('size').limit(3).execute()).length;
    // What the first ones read comes into memory, by which plans are chosen.
    for (let i = 0; i < 128; i++) await ask((i % 64) / 100);
    planned.mockClear();
    await ask(0);
    expect(planned).toHaveBeenCalledTimes(0);
    await ask(1);
    await ask(0);
    expect(planned).toHaveBeenCalledTimes(2);
  });
});
