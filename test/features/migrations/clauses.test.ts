/** Clauses, aggregates, pages and budgets on a table whose active version is an older one, with a batch laid over it. */
import { BookmarkError, defineSchema, StoreDb, Types } from 'store-db';
import { MemoryDriver } from 'store-db/lib/storage';
import { expect, it } from 'vitest';

const base = { id: { typeId: Types.uint32 }, name: { typeId: Types.varchar } } as const;
const old = defineSchema({
  name: 'items',
  version: 1,
  fields: { ...base, size: { typeId: Types.uint8 } },
  primaryKey: 'id',
});
const wide = defineSchema({
  name: 'items',
  version: 2,
  fields: { ...base, size: { typeId: Types.int64 }, kind: { typeId: Types.varchar, default: 'plain' } },
  primaryKey: 'id',
  indexes: ['size'],
});

it('are asked of the rows as the registered version has them', async () => {
  const driver = new MemoryDriver();
  const options = { dbPrefix: 'migrated', driver, logLevel: 'silent', blockSizeBytes: 4096 } as const;
  const before = StoreDb({ ...options, nodeId: 0 });
  before.registerSchema(old);
  await before.start();
  const batch = before.batch();
  for (let id = 0; id < 500; id++)
    void batch.insert(old, { id, name: `name ${id % 7}`, size: id % 5 === 0 ? null : id % 100 });
  await batch.flush();
  await before.checkpoint();
  const { next } = await before.query(old).orderBy('size').page({ size: 10 });

  const after = StoreDb({ ...options, nodeId: 1 });
  after.registerSchema(wide);
  await after.start();
  const draft = after.batch();
  await draft.insert(wide, { id: 1000, name: 'new', size: 2n ** 40n, kind: 'odd' });
  await draft.delete(wide, 7);
  const query = (): ReturnType<typeof after.query<typeof wide>> => after.query(wide).overlay(draft);
  const all = await query().execute();
  expect(all).toHaveLength(500);

  const asked = query().where(({ is, or, not }) =>
    or(not(is('size', 'BETWEEN', [3, 98])), is('name', 'PREFIX', 'name 6')),
  );
  const expected = all.filter(
    ({ size, name }) => size === null || size < 3n || size > 98n || name?.startsWith('name 6'),
  );
  expect(await asked.execute()).toEqual(expected);
  expect(await asked.max('size')).toBe(2n ** 40n);
  const sums = await asked.groupBy('kind').aggregate({ n: 'count', sum: { sum: 'size' } });
  expect(sums).toEqual([
    { kind: 'odd', n: 1, sum: 2n ** 40n },
    {
      kind: 'plain',
      n: expected.length - 1,
      sum: expected.reduce((sum, { size }) => sum + (size ?? 0n), 0n) - 2n ** 40n,
    },
  ]);
  const ids: number[] = [];
  for (let bookmark: string | undefined, more = true; more; more = bookmark !== undefined) {
    const page = await query().orderBy('size', 'desc').page({ size: 77, after: bookmark });
    ids.push(...page.rows.map(({ id }) => id));
    bookmark = page.next;
  }
  expect(ids).toEqual((await query().orderBy('size', 'desc').execute()).map(({ id }) => id));
  await expect(after.query(wide).orderBy('size').page({ size: 10, after: next })).rejects.toThrow(BookmarkError);

  const cold = StoreDb({ ...options, nodeId: 2 });
  cold.registerSchema(wide);
  await cold.start();
  await expect(cold.query(wide).budget({ requests: 2 }).execute()).rejects.toMatchObject({ code: 'BUDGET_EXCEEDED' });
  expect(await cold.query(wide).budget({ requests: 100 }).count()).toBe(500);
  for (const db of [before, after, cold]) await db.stop();
});
