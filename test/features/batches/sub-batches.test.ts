/** Sub-batches to any depth, overlays of them on every kind of query, and deletion by query. */
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { defineSchema, Types } from '../../../src/index.ts';
import type { Batch, Database } from '../../../src/index.ts';
import { newDriver } from '../values/driver-under-test.ts';
import { column, failure, flushed, openDatabase, unhandledDuring } from '../values/open-database.ts';
import type { AnyQuery } from '../values/open-database.ts';

const items = defineSchema({
  name: 'items',
  version: 1,
  fields: { id: { typeId: Types.uint32 }, name: { typeId: Types.varchar }, age: { typeId: Types.uint8 } },
  primaryKey: 'id',
  indexes: ['age', 'name'],
});

async function ids(query: AnyQuery): Promise<unknown[]> {
  return column(await query.execute(), 'id');
}

describe('a sub-batch', () => {
  it('moves its operations into its parent when it is flushed, to any depth', async () => {
    const db = await openDatabase([items]);
    const root = db.batch();
    const chain: Batch[] = [root];
    for (let depth = 1; depth <= 12; depth++) chain.push((chain.at(-1) as Batch).subBatch());
    chain.forEach((batch, id) => void batch.insert(items, { id, name: `depth ${id}` }));
    for (let depth = chain.length - 1; depth > 0; depth--) {
      await (chain[depth] as Batch).flush();
      expect((chain[depth] as Batch).size).toBe(0);
      expect((chain[depth - 1] as Batch).size).toBe(chain.length - depth + 1);
    }
    expect(await db.query(items).count()).toBe(0);
    await root.flush();
    expect(await db.query(items).count()).toBe(13);
  });

  it('that was not flushed takes no part, and can be flushed after its parent was', async () => {
    const db = await openDatabase([items]);
    const root = db.batch();
    const sub = root.subBatch();
    const dropped = root.subBatch();
    void root.insert(items, { id: 1 });
    void sub.insert(items, { id: 2 });
    void dropped.insert(items, { id: 3 });
    await root.flush();
    expect(await ids(db.query(items))).toEqual([1]);
    await sub.flush();
    expect(await ids(db.query(items))).toEqual([1]);
    expect(root.size).toBe(1);
    await root.flush();
    expect(await ids(db.query(items))).toEqual([1, 2]);
    dropped.clear();
    await dropped.flush();
    expect(root.size).toBe(0);
  });

  it('keeps the order: flushed operations come after those of the parent', async () => {
    const db = await openDatabase([items]);
    const root = db.batch();
    const sub = root.subBatch();
    void sub.update(items, { id: 1, name: 'sub' });
    void root.insert(items, { id: 1, name: 'root' });
    await sub.flush();
    void root.update(items, { id: 1, age: 5 });
    await root.flush();
    expect(await db.get(items, 1)).toEqual({ id: 1, name: 'sub', age: 5 });
  });

  it('comes after mutations of its parent that still wait for their triggers', async () => {
    const db = await openDatabase([items]);
    db.registerTrigger('items', 'insert', () => sleep(5));
    const root = db.batch();
    const sub = root.subBatch();
    void root.insert(items, { id: 1, name: 'root' });
    void sub.update(items, { id: 1, name: 'sub' });
    void sub.delete(items, 2);
    void root.insert(items, { id: 2, name: 'kept in the end?' });
    await sub.flush();
    await root.flush();
    expect(await db.query(items).execute()).toEqual([{ id: 1, name: 'sub', age: null }]);
  });

  it('that fails when its parent is flushed rejects that flush, which keeps everything', async () => {
    const db = await openDatabase([items]);
    const root = db.batch();
    const sub = root.subBatch();
    void sub.update(items, { id: 1, name: 'nobody' });
    void root.insert(items, { id: 2 });
    await sub.flush();
    expect(await failure(root.flush())).toMatchObject({ code: 'ROW_NOT_FOUND', primaryKey: 1 });
    expect(root.size).toBe(2);
    expect(await db.query(items).count()).toBe(0);
  });

  it('reports its own failed mutations itself', async () => {
    const db = await openDatabase([items]);
    const root = db.batch();
    const sub = root.subBatch();
    void sub.insert('items', { id: 'x' });
    void sub.insert(items, { id: 1 });
    await root.flush();
    expect(await failure(sub.flush())).toMatchObject({ code: 'ENCODE' });
    expect(sub.size).toBe(1);
    await sub.flush();
    await root.flush();
    expect(await db.query(items).count()).toBe(1);
  });
});

/** Rows in blocks, rows in a commit that is not merged, and a batch with a sub-batch on top. */
async function layered(): Promise<{
  db: Database;
  root: Batch;
  sub: Batch;
  expected: Map<number, { name: string | null; age: number | null }>;
}> {
  const db = await openDatabase([items], newDriver(), { blockSizeBytes: 1024 });
  const expected = new Map<number, { name: string | null; age: number | null }>();
  await flushed(db, (batch) => {
    for (let id = 0; id < 300; id++) {
      const row = { name: `n${(id * 7) % 300}`, age: id % 10 };
      void batch.insert(items, { id, ...row });
      expected.set(id, row);
    }
  });
  await db.checkpoint();
  const root = db.batch();
  const sub = root.subBatch();
  const change = (batch: Batch, from: number, age: number): void => {
    for (let id = from; id < 300; id += 20) {
      void batch.update(items, { id, age });
      expected.set(id, { name: (expected.get(id) as { name: string }).name, age });
      void batch.delete(items, id + 1);
      expected.delete(id + 1);
    }
    const row = { name: `new ${from}`, age: null };
    void batch.insert(items, { id: 1000 + from, ...row });
    expected.set(1000 + from, row);
    void batch.upsert(items, { id: from + 2, name: null, age: 3 });
    expected.set(from + 2, { name: null, age: 3 });
  };
  await flushed(db, (batch) => change(batch, 0, 50));
  change(root, 4, 51);
  change(sub, 8, 52);
  // Both on one row: the sub-batch is on top.
  void root.update(items, { id: 15, name: 'root', age: 1 });
  void sub.update(items, { id: 15, age: 200 });
  expected.set(15, { name: 'root', age: 200 });
  void root.insert(items, { id: 2000, name: 'for a moment' });
  void sub.delete(items, 2000);
  return { db, root, sub, expected };
}

describe('an overlay', () => {
  it('shows batch and sub-batch in every kind of query', async () => {
    const { db, sub, expected } = await layered();
    const rows = [...expected].map(([id, row]) => Object.assign({ id }, row)).toSorted((a, b) => a.id - b.id);
    const query = (): AnyQuery => db.query('items').overlay(sub);
    expect(await query().execute()).toEqual(rows);
    expect(await query().count()).toBe(rows.length);
    expect(await ids(query().orderBy('id', 'desc').limit(20))).toEqual(
      rows
        .toReversed()
        .slice(0, 20)
        .map(({ id }) => id),
    );
    for (const age of [0, 3, 9, 50, 51, 52, 200, null]) {
      const same = rows.filter((row) => row.age === age).map(({ id }) => id);
      expect(await ids(query().where('age', '=', age)), `age ${age}`).toEqual(same);
      expect(await query().where('age', '=', age).count()).toBe(same.length);
      expect((await query().where('age', '=', age).first())?.['id']).toBe(same[0]);
    }
    const ranged = rows.filter(({ age }) => age !== null && age >= 9 && age < 52);
    expect(await ids(query().where('age', '>=', 9).where('age', '<', 52))).toEqual(ranged.map(({ id }) => id));
    expect(await query().where('age', '>=', 9).where('age', '<', 52).count()).toBe(ranged.length);
    const named = rows.filter(({ name }) => ['n7', 'n14', 'new 8', 'root'].includes(name ?? ''));
    expect(await ids(query().where('name', 'IN', ['n7', 'n14', 'new 8', 'root']))).toEqual(named.map(({ id }) => id));
    const sorted = rows.toSorted((a, b) => (b.age ?? -1) - (a.age ?? -1) || a.id - b.id).map(({ id }) => id);
    expect(await ids(query().orderBy('age', 'desc'))).toEqual(sorted);
    expect(await ids(query().orderBy('age', 'desc').offset(10).limit(10))).toEqual(sorted.slice(10, 20));
    const iterated: unknown[] = [];
    for await (const row of query().orderBy('age', 'desc')) iterated.push(row['id']);
    expect(iterated).toEqual(sorted);
    db.registerFunction('parity', (row) => (row['id'] as number) % 2);
    expect(await query().where('parity', '=', 1).count()).toBe(rows.filter(({ id }) => id % 2 === 1).length);
  });

  it('of the parent does not show the sub-batch, and no query shows an overlay of another', async () => {
    const { db, root, sub } = await layered();
    expect(await db.query(items).overlay(root).where('age', '=', 52).count()).toBe(0);
    expect(await db.query(items).overlay(root).where('id', '=', 15).first()).toMatchObject({ name: 'root', age: 1 });
    expect(await db.query(items).where('age', '=', 51).count()).toBe(0);
    expect(await db.query(items).overlay(root.subBatch()).where('age', '=', 51).count()).toBe(15);
    await sub.flush();
    expect(await db.query(items).overlay(root).where('age', '=', 52).count()).toBe(15);
  });

  it('equals the rows that the flush then writes', async () => {
    const { db, root, sub } = await layered();
    const shown = await db.query(items).overlay(sub).execute();
    await sub.flush();
    expect(await db.query(items).overlay(root).execute()).toEqual(shown);
    await root.flush();
    expect(await db.query(items).execute()).toEqual(shown);
    await db.checkpoint();
    expect(await db.query(items).execute()).toEqual(shown);
    expect(await db.verify()).toMatchObject({ ok: true });
  });

  it('shows operations that contradict the database as far as it can', async () => {
    const db = await openDatabase([items]);
    await flushed(db, (batch) => void batch.insert(items, { id: 1, name: 'stored' }));
    const batch = db.batch();
    void batch.insert(items, { id: 1, name: 'twice' });
    void batch.update(items, { id: 2, name: 'nobody' });
    expect(await db.query(items).overlay(batch).execute()).toEqual([{ id: 1, name: 'twice', age: null }]);
    expect(await failure(batch.flush())).toMatchObject({ code: 'DUPLICATE_KEY' });
  });
});

describe('deleteWhere', () => {
  async function ten(): Promise<Database> {
    const db = await openDatabase([items]);
    await flushed(db, (batch) => {
      for (let id = 0; id < 10; id++) void batch.insert(items, { id, name: `n${id}`, age: id });
    });
    return db;
  }

  it("deletes the rows that the query finds, the batch's own writes included", async () => {
    const db = await ten();
    const batch = db.batch();
    void batch.insert(items, { id: 20, age: 8 });
    void batch.update(items, { id: 0, age: 7 });
    void batch.update(items, { id: 9, age: 1 });
    expect(await batch.deleteWhere(db.query(items).where('age', '>=', 7))).toBe(4);
    expect(await ids(db.query(items))).toHaveLength(10);
    expect(await ids(db.query(items).overlay(batch))).toEqual([1, 2, 3, 4, 5, 6, 9]);
    await batch.flush();
    expect(await ids(db.query(items))).toEqual([1, 2, 3, 4, 5, 6, 9]);
    expect(await db.batch().deleteWhere(db.query(items).where('age', '=', 99))).toBe(0);
    const some = db.batch();
    expect(await some.deleteWhere(db.query(items).orderBy('age', 'desc').limit(2))).toBe(2);
    await some.flush();
    expect(await ids(db.query(items))).toEqual([1, 2, 3, 4, 9]);
  });

  it('deletes no row that others have committed since', async () => {
    const driver = newDriver();
    const db = await openDatabase([items], driver);
    const other = await openDatabase([items], driver, { nodeId: 1 });
    await flushed(db, (batch) => void batch.insert(items, { id: 1, age: 8 }));
    const batch = db.batch();
    expect(await batch.deleteWhere(db.query(items).where('age', '=', 8))).toBe(1);
    await flushed(other, (others) => void others.insert(items, { id: 2, age: 8 }));
    await batch.flush();
    await other.refresh();
    expect(await ids(db.query(items))).toEqual([2]);
    expect(await ids(other.query(items))).toEqual([2]);
  });

  it('takes its place among the mutations also if nobody waits for it', async () => {
    const db = await ten();
    const batch = db.batch();
    void batch.insert(items, { id: 20, age: 5 });
    void batch.deleteWhere(db.query(items).where('age', '>=', 5));
    void batch.insert(items, { id: 5, name: 'new', age: 5 });
    await batch.flush();
    expect(await ids(db.query(items))).toEqual([0, 1, 2, 3, 4, 5]);
    expect(await db.get(items, 5)).toMatchObject({ name: 'new' });
  });

  it('fires triggers, and deletes nothing if one refuses a row', async () => {
    const db = await ten();
    const seen: unknown[] = [];
    db.registerTrigger('items', 'delete', (row) => {
      seen.push(row['id']);
      if (row['id'] === 8) throw new Error('not this one');
    });
    const batch = db.batch();
    expect(await failure(batch.deleteWhere(db.query(items).where('id', '>', 5)))).toMatchObject({
      message: 'not this one',
    });
    expect(seen).toEqual([6, 7, 8]);
    expect(batch.size).toBe(0);
    expect(await failure(batch.flush())).toMatchObject({ message: 'not this one' });
    await batch.flush();
    expect(await db.query(items).count()).toBe(10);
    expect(await batch.deleteWhere(db.query(items).where('id', '<', 3))).toBe(3);
    await batch.flush();
    expect(await db.query(items).count()).toBe(7);
  });

  it('that fails rejects one flush, and is never an unhandled rejection', async () => {
    const db = await ten();
    const batch = db.batch();
    const unhandled = await unhandledDuring(async () => {
      void batch.deleteWhere(db.query('ghosts'));
      void batch.deleteWhere(db.query('_blobs'));
    });
    expect(unhandled).toEqual([]);
    expect(await failure(batch.flush())).toMatchObject({ code: 'SCHEMA_NOT_FOUND' });
    await batch.flush();
  });
});
