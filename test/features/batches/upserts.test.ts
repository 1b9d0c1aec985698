/** Upserts that keep missing fields, and updates of the rows that a query finds. */
import { describe, expect, it } from 'vitest';
import { defineSchema, Types } from '../../../src/index.ts';
import { failure, flushed, openDatabase, throughStages } from '../values/open-database.ts';

const pages = defineSchema({
  name: 'pages',
  version: 1,
  fields: {
    id: { typeId: Types.uint32 },
    title: { typeId: Types.varchar, required: true },
    status: { typeId: Types.varchar, default: 'draft' },
    views: { typeId: Types.uint32 },
    file: { typeId: Types.blob },
  },
  primaryKey: 'id',
  indexes: ['status'],
});

const long = 'a title that a row cannot hold beside its other fields '.repeat(3);

describe('a partial upsert', () => {
  it('changes the given fields of a row that is there, and inserts one that is not', () =>
    throughStages(
      [pages],
      async (batch) => {
        await batch.insert(pages, { id: 1, title: 'one', status: 'live', views: 5 });
        await batch.upsert(pages, { id: 1, title: long }, { partial: true });
        await batch.upsert(pages, { id: 2, title: 'two', views: 7 }, { partial: true });
        await batch.upsert(pages, { id: 2, title: 'two', views: null }, { partial: true });
        await batch.delete(pages, 3);
        await batch.upsert(pages, { id: 3, title: 'three' }, { partial: true });
      },
      async ({ query }) => {
        const rows = await query('pages').orderBy('id', 'asc').execute();
        expect(rows).toEqual([
          { id: 1, title: long, status: 'live', views: 5, file: null },
          { id: 2, title: 'two', status: 'draft', views: null, file: null },
          { id: 3, title: 'three', status: 'draft', views: null, file: null },
        ]);
      },
    ));

  it('sees the row that is stored, merged or not, and keeps indexes right', async () => {
    const db = await openDatabase([pages]);
    await flushed(db, (batch) => {
      for (let id = 0; id < 500; id++) void batch.insert(pages, { id, title: `page ${id}`, status: 'live', views: id });
    });
    await db.checkpoint();
    await flushed(db, (batch) => void batch.upsert(pages, { id: 1, title: 'one', views: 0 }, { partial: true }));
    await flushed(db, (batch) => {
      for (let id = 400; id < 600; id++)
        void batch.upsert(pages, { id, title: 'new', status: 'old' }, { partial: true });
      void batch.upsert(pages, { id: 1, title: 'uno' }, { partial: true });
    });
    expect(await db.get(pages, 1)).toEqual({ id: 1, title: 'uno', status: 'live', views: 0, file: null });
    expect(await db.get(pages, 450)).toMatchObject({ title: 'new', status: 'old', views: 450 });
    expect(await db.get(pages, 550)).toMatchObject({ title: 'new', status: 'old', views: null });
    expect(await db.query(pages).where('status', '=', 'old').count()).toBe(200);
    expect((await db.verify({ deep: true })).findings).toEqual([]);
  });

  it('keeps a blob that is left out, and replaces one that is given', async () => {
    const db = await openDatabase([pages]);
    await flushed(db, (batch) => void batch.insert(pages, { id: 1, title: 'one', file: db.Blob('first') }));
    await flushed(db, (batch) => void batch.upsert(pages, { id: 1, title: 'uno' }, { partial: true }));
    const kept = await db.get(pages, 1);
    expect((await db.getBlob(kept?.file ?? '').getBuffer()).toString()).toBe('first');
    await flushed(db, (batch) => {
      void batch.upsert(pages, { id: 1, title: 'eins', file: db.Blob('second') }, { partial: true });
    });
    const replaced = await db.get(pages, 1);
    expect((await db.getBlob(replaced?.file ?? '').getBuffer()).toString()).toBe('second');
    expect(await failure(db.getBlob(kept?.file ?? '').getBuffer())).toMatchObject({ code: 'BLOB_NOT_FOUND' });
  });

  it('reaches triggers as an insert or an update', async () => {
    const db = await openDatabase([pages]);
    const told: unknown[] = [];
    db.registerTrigger(pages, '*', (row, _batch, _api, operation, before) => {
      told.push([operation, row.title, row.views, before?.title]);
    });
    await flushed(db, (batch) => {
      void batch.upsert(pages, { id: 1, title: 'one', views: 3 }, { partial: true });
      void batch.upsert(pages, { id: 1, title: 'uno' }, { partial: true });
    });
    expect(told).toEqual([
      ['insert', 'one', 3, undefined],
      ['update', 'uno', 3, 'one'],
    ]);
  });

  it('counts as read in a transaction by the fields that show through', async () => {
    const db = await openDatabase([pages]);
    await flushed(db, (batch) => void batch.insert(pages, { id: 1, title: 'one', views: 1 }));
    const row = await db.transaction(async (tx) => {
      await tx.upsert(pages, { id: 1, title: 'uno' }, { partial: true });
      return tx.get(pages, 1);
    });
    expect(row).toMatchObject({ title: 'uno', views: 1 });
  });

  it('checks rows as an insert does, and refuses unknown options', async () => {
    const db = await openDatabase([pages]);
    await flushed(db, (batch) => void batch.insert(pages, { id: 1, title: 'one' }));
    const batch = db.batch();
    const bare = { id: 1, views: 2 } as unknown as { id: number; title: string };
    expect(await failure(batch.upsert(pages, bare, { partial: true }))).toMatchObject({
      code: 'ENCODE',
      field: 'title',
    });
    const wrong = { partial: 1 } as unknown as { partial: boolean };
    expect(await failure(batch.upsert(pages, { id: 1, title: 'x' }, wrong))).toMatchObject({ code: 'INVALID_OPTION' });
    const typo = { partail: true } as object;
    expect(await failure(batch.upsert(pages, { id: 1, title: 'x' }, typo))).toMatchObject({ code: 'INVALID_OPTION' });
    expect(batch.size).toBe(0);
  });
});

describe('updateWhere', () => {
  it('changes every row that the query finds, in the database and in the batch', async () => {
    const db = await openDatabase([pages]);
    await flushed(db, (batch) => {
      for (let id = 0; id < 300; id++) void batch.insert(pages, { id, title: `page ${id}`, views: id });
    });
    await db.checkpoint();
    const batch = db.batch();
    await batch.insert(pages, { id: 1000, title: 'new', views: 250 });
    await batch.update(pages, { id: 0, views: 299 });
    const found = db.query(pages).where('views', '>=', 250);
    expect(await batch.updateWhere(found, { status: 'popular', title: long })).toBe(52);
    await batch.flush();
    const rows = await db.query(pages).where('status', '=', 'popular').execute();
    expect(rows).toHaveLength(52);
    expect(rows.every(({ title, views }) => title === long && (views ?? 0) >= 250)).toBe(true);
  });

  it('updates all of them or none, and fires triggers for each', async () => {
    const db = await openDatabase([pages]);
    await flushed(db, (batch) => {
      for (let id = 0; id < 5; id++) void batch.insert(pages, { id, title: `page ${id}` });
    });
    const updated: number[] = [];
    db.registerTrigger(pages, 'update', ({ id }) => {
      if (id === 3) throw new Error('not this one');
      updated.push(id);
    });
    const batch = db.batch();
    expect(await failure(batch.updateWhere(db.query(pages), { views: 1 }))).toMatchObject({ message: 'not this one' });
    expect([updated, batch.size]).toEqual([[0, 1, 2], 0]);
    batch.clear();
    expect(await batch.updateWhere(db.query(pages).where('id', '<', 3), { views: 1 })).toBe(3);
    await batch.flush();
    expect(await db.query(pages).where('views', '=', 1).count()).toBe(3);
  });

  it('takes the fields as they are at the call', async () => {
    const db = await openDatabase([pages]);
    await flushed(db, (batch) => void batch.insert(pages, { id: 1, title: 'one' }));
    const batch = db.batch();
    const fields = { views: 1 };
    const updated = batch.updateWhere(db.query(pages), fields);
    fields.views = 2;
    await updated;
    await batch.flush();
    expect(await db.get(pages, 1)).toMatchObject({ views: 1 });
  });

  it('rejects values that are no update, and a query of another table, and adds nothing', async () => {
    const db = await openDatabase([pages]);
    await flushed(db, (batch) => void batch.insert(pages, { id: 1, title: 'one' }));
    const batch = db.batch();
    for (const fields of [{ id: 2 }, { veiws: 1 }, { views: 'many' }, null, 5]) {
      expect(await failure(batch.updateWhere(db.query('pages'), fields as object))).toMatchObject({ code: 'ENCODE' });
    }
    const snapshot = await db.snapshot();
    const foreign = failure(batch.updateWhere(snapshot.query(pages), { views: 1 }));
    expect(await foreign).toMatchObject({ code: 'BATCH_STATE' });
    await snapshot.release();
    expect(batch.size).toBe(0);
  });

  it('is part of transactions', async () => {
    const db = await openDatabase([pages]);
    await flushed(db, (batch) => {
      for (let id = 0; id < 5; id++) void batch.insert(pages, { id, title: `page ${id}` });
    });
    const count = await db.transaction((tx) => tx.updateWhere(tx.query(pages).where('id', '>', 2), { views: 9 }));
    expect(count).toBe(2);
    expect(await db.query(pages).where('views', '=', 9).count()).toBe(2);
    const foreign = db.transaction((tx) => tx.updateWhere(db.query(pages), { views: 1 }));
    expect(await failure(foreign)).toMatchObject({ code: 'BATCH_STATE' });
  });
});
