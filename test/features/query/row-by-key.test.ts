/** Queries for one row by its key, which are answered without a plan: they have the results of planned ones. */
import { describe, expect, it } from 'vitest';
import { Query } from '../../../src/query/query.ts';
import { Types } from '../../../src/index.ts';
import { TestTable } from './test-table.ts';
import type { Row } from './test-table.ts';

const long = 'x'.repeat(2000);

async function texts(): Promise<TestTable> {
  const table = new TestTable({
    name: 'texts',
    version: 1,
    fields: { id: { typeId: Types.varchar, maxLength: 4000 }, size: { typeId: Types.uint32 } },
    primaryKey: 'id',
  });
  const ids = ['', 'a', 'b', 'été', 'x'.repeat(300)];
  await table.commit(ids.map((id, size) => ({ id, size })));
  await table.merge();
  await table.commit([{ id: 'c', size: 7 }], ['b']);
  return table;
}

function query(table: TestTable): Query {
  return new Query(table, table.shape.name);
}

async function sizes(asked: Query): Promise<unknown[]> {
  return (await asked.execute()).map((row: Row) => row['size']);
}

describe('a query for one row by its key', () => {
  it('gives the row if it is there, in the blocks or in a commit, and if no commit has deleted it', async () => {
    const table = await texts();
    for (const late of [false, true]) {
      table.late = late;
      table.forgetBlocks();
      expect(await query(table).where('id', '=', 'a').execute()).toStrictEqual([{ id: 'a', size: 1 }]);
      expect(await sizes(query(table).where('id', '=', ''))).toStrictEqual([0]);
      expect(await sizes(query(table).where('id', '=', 'été'))).toStrictEqual([3]);
      expect(await sizes(query(table).where('id', '=', 'c'))).toStrictEqual([7]);
      expect(await sizes(query(table).where('id', '=', 'b'))).toStrictEqual([]);
      expect(await sizes(query(table).where('id', '=', 'nobody'))).toStrictEqual([]);
      expect(await sizes(query(table).where('id', '=', null))).toStrictEqual([]);
    }
  });

  it('has all that else is asked for', async () => {
    const table = await texts();
    const byKey = (): Query => query(table).where('id', '=', 'a');
    expect(await sizes(byKey().limit(1))).toStrictEqual([1]);
    expect(await sizes(byKey().limit(0))).toStrictEqual([]);
    expect(await sizes(byKey().offset(1))).toStrictEqual([]);
    expect(await sizes(byKey().where('size', '=', 2))).toStrictEqual([]);
    expect(await sizes(byKey().orderBy('size'))).toStrictEqual([1]);
    expect(await byKey().select('size').execute()).toStrictEqual([{ size: 1 }]);
    expect(await sizes(query(table).where('id', '<=', 'a'))).toStrictEqual([0, 1]);
    expect(await sizes(query(table).where('size', '=', 1))).toStrictEqual([1]);
    expect(await byKey().first()).toStrictEqual({ id: 'a', size: 1 });
  });

  it('does not take a key for another one that it begins like', async () => {
    const table = await texts();
    expect(await sizes(query(table).where('id', '=', 'x'.repeat(300)))).toStrictEqual([4]);
    expect(await sizes(query(table).where('id', '=', 'x'.repeat(299)))).toStrictEqual([]);
    expect(await sizes(query(table).where('id', '=', long))).toStrictEqual([]);
  });

  it('asks a function of that name that was registered meanwhile', async () => {
    const table = await texts();
    const before = query(table).where('id', '=', 'a');
    expect(await sizes(before)).toStrictEqual([1]);
    table.functions.set('id', { name: 'id', fn: ({ size }) => (size === 3 ? 'a' : 'b'), version: undefined });
    expect(await sizes(before)).toStrictEqual([3]);
  });
});
