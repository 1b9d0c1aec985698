/** Batches, queries and bookmarks of another database, instance, snapshot or transaction: refused by all that takes one. */
import { describe, expect, it } from 'vitest';
import { defineSchema, Types } from '../../../src/index.ts';
import type { Batch, Database } from '../../../src/index.ts';
import { newDriver } from '../values/driver-under-test.ts';
import { failure, flushed, openDatabase, thrown } from '../values/open-database.ts';

const items = defineSchema({
  name: 'items',
  version: 1,
  fields: { id: { typeId: Types.uint32 }, age: { typeId: Types.uint8 } },
  primaryKey: 'id',
});

async function filled(driver = newDriver()): Promise<Database> {
  const db = await openDatabase([items], driver);
  await flushed(db, (batch) => {
    for (let id = 0; id < 10; id++) void batch.insert(items, { id, age: id });
  });
  return db;
}

type Deletable = Parameters<Batch['deleteWhere']>[0];

describe('deleteWhere()', () => {
  async function refuses(db: Database, query: Deletable): Promise<void> {
    const refusal = { code: 'BATCH_STATE', message: expect.stringContaining('Nothing was deleted') as string };
    const batch = db.batch();
    expect(await failure(batch.deleteWhere(query))).toMatchObject(refusal);
    expect(await failure(batch.flush())).toMatchObject(refusal);
    expect(batch.size).toBe(0);
    const sub = db.batch().subBatch();
    void sub.deleteWhere(query);
    expect(await failure(sub.flush())).toMatchObject(refusal);
    const inTransaction = failure(db.transaction((tx) => tx.deleteWhere(query)));
    expect(await inTransaction).toMatchObject({ code: 'BATCH_STATE' });
    expect(await db.query(items).count()).toBe(10);
  }

  it('refuses a query of another database, though a table of that name is here', async () => {
    await refuses(await filled(), (await filled()).query(items).where('age', '<', 5));
  });

  it('refuses a query of another instance on the same database: it may show another state', async () => {
    const driver = newDriver();
    const db = await filled(driver);
    const other = await openDatabase([items], driver, { nodeId: 1 });
    await refuses(db, other.query(items));
  });

  it('refuses a query of a snapshot: its rows may have changed since', async () => {
    const db = await filled();
    await using snapshot = await db.snapshot();
    await flushed(db, (batch) => void batch.update(items, { id: 1, age: 200 }));
    await refuses(db, snapshot.query(items).where('age', '<', 5));
    await using earlier = await db.at(snapshot.generation);
    await refuses(db, earlier.query(items));
  });

  it('refuses a query of a transaction, under way or over', async () => {
    const db = await filled();
    let kept: Deletable | undefined;
    await db.transaction(async (tx) => {
      kept = tx.query(items);
      await refuses(db, kept);
    });
    await refuses(db, kept as Deletable);
  });

  it.each([undefined, null, 'items', {}, { table: 'items' }])('refuses %o', async (wrong) => {
    const db = await filled();
    const error = await failure(db.batch().deleteWhere(wrong as never));
    expect(error).toMatchObject({ code: 'BATCH_STATE', message: expect.stringContaining('takes a query') as string });
    expect(await failure(db.transaction((tx) => tx.deleteWhere(wrong as never)))).toMatchObject({
      code: 'BATCH_STATE',
    });
  });

  it('takes queries of its own, in triggers too, and does not change them', async () => {
    const db = await filled();
    const young = db.query(items).where('age', '<', 5);
    const batch = db.batch();
    await batch.insert(items, { id: 20, age: 1 });
    expect(await batch.deleteWhere(young)).toBe(6);
    // The query that was given shows no batch: it is as it was.
    expect(await young.count()).toBe(5);
    db.registerTrigger('items', 'update', async (_, own, api) => {
      await own.deleteWhere(api.query(items).where('age', '>', 7));
    });
    await batch.update(items, { id: 5, age: 5 });
    await batch.flush();
    expect(await db.query(items).count()).toBe(3);
  });
});

describe('overlay()', () => {
  it('refuses a batch of another database or instance, wherever the query is from', async () => {
    const driver = newDriver();
    const db = await filled(driver);
    const same = await openDatabase([items], driver, { nodeId: 1 });
    const other = await filled();
    await using snapshot = await db.snapshot();
    const refusal = { code: 'INVALID_QUERY', message: expect.stringContaining('another database instance') as string };
    for (const batch of [same.batch(), other.batch(), other.batch().subBatch()]) {
      expect(thrown(() => db.query(items).overlay(batch))).toMatchObject(refusal);
      expect(thrown(() => snapshot.query(items).overlay(batch))).toMatchObject(refusal);
      await db.transaction(async (tx) => {
        expect(thrown(() => tx.query(items).overlay(batch))).toMatchObject(refusal);
      });
    }
    expect(await db.query(items).overlay(db.batch().subBatch()).count()).toBe(10);
  });
});

describe('page()', () => {
  it('refuses a bookmark of another database, and takes one of another instance on the same', async () => {
    const driver = newDriver();
    const db = await filled(driver);
    const same = await openDatabase([items], driver, { nodeId: 1 });
    const other = await filled();
    const { next } = await db.query(items).page({ size: 3 });
    expect((await same.query(items).page({ size: 3, after: next })).rows).toMatchObject([
      { id: 3 },
      { id: 4 },
      { id: 5 },
    ]);
    expect(await failure(other.query(items).page({ size: 3, after: next }))).toMatchObject({
      code: 'BOOKMARK',
      message: expect.stringContaining('is of another database') as string,
    });
  });
});
