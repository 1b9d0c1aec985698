/** A trigger that fails: the mutation is not in the batch, one flush tells of it, and nothing goes unhandled. */
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { defineSchema, Types } from '../../../src/index.ts';
import type { Batch } from '../../../src/index.ts';
import { failure, openDatabase, unhandledDuring } from '../values/open-database.ts';

const items = defineSchema({
  name: 'items',
  version: 1,
  fields: { id: { typeId: Types.uint32 }, name: { typeId: Types.varchar } },
  primaryKey: 'id',
});
const log = defineSchema({ ...items, name: 'log' });

const cause = new Error('the trigger says no');

/** Ways to fail, for the row with id 2, after having added something. */
const failing: readonly (readonly [what: string, fail: (batch: Batch) => unknown, error: object])[] = [
  [
    'throws at once',
    () => {
      throw cause;
    },
    cause,
  ],
  ['returns a rejection', () => Promise.reject(cause), cause],
  [
    'throws later',
    async () => {
      await sleep(2);
      throw cause;
    },
    cause,
  ],
  ['adds a bad value and waits for it', (batch) => batch.insert('log', { id: 'x' }), { code: 'ENCODE', table: 'log' }],
  [
    'adds a bad value and does not look',
    (batch) => void batch.insert('log', { id: 'x' }),
    { code: 'ENCODE', table: 'log' },
  ],
  ['adds to a table that is not known', (batch) => void batch.delete('ghosts', 1), { code: 'SCHEMA_NOT_FOUND' }],
  [
    'swallows the rejection of what it adds',
    async (batch) => {
      await batch.insert('log', { id: 5, wrong: true }).catch(() => undefined);
    },
    { code: 'ENCODE', field: 'wrong' },
  ],
  [
    'fires one that fails, and does not look',
    (batch) => void batch.insert('log', { id: 5, name: 'fail' }),
    { message: 'the inner trigger says no' },
  ],
];

describe.each(failing)('a trigger that %s', (_, fail, error) => {
  async function start() {
    const db = await openDatabase([items, log]);
    db.registerTrigger('items', '*', async (row, batch) => {
      void batch.insert(log, { id: Number(row['id']), name: 'trace' });
      if (row['id'] === 2) await fail(batch);
    });
    const after: unknown[] = [];
    db.registerTrigger('items', '*', (row) => void after.push(row['id']));
    db.registerTrigger('log', 'insert', (row) => {
      if (row['name'] === 'fail') throw new Error('the inner trigger says no');
    });
    return { db, after };
  }

  it('fails the mutation and one flush, and leaves nothing of it', async () => {
    const { db, after } = await start();
    const batch = db.batch();
    await batch.insert(items, { id: 1, name: 'a' });
    expect(await failure(batch.insert(items, { id: 2, name: 'b' }))).toMatchObject(error);
    await batch.insert(items, { id: 3, name: 'c' });
    // Triggers that come after the one that failed are not fired.
    expect(after).toEqual([1, 3]);
    expect(batch.size).toBe(4);
    expect(await failure(batch.flush())).toMatchObject(error);
    expect(await db.query(items).count()).toBe(0);
    await batch.flush();
    expect(await db.query(items).execute()).toMatchObject([{ id: 1 }, { id: 3 }]);
    expect(await db.query(log).execute()).toMatchObject([{ id: 1 }, { id: 3 }]);
    await batch.flush();
  });

  it('in a sub-batch fails the flush of that, once', async () => {
    const { db } = await start();
    const root = db.batch();
    const sub = root.subBatch();
    void sub.insert(items, { id: 2 });
    void sub.insert(items, { id: 1 });
    await root.flush();
    expect(await failure(sub.flush())).toMatchObject(error);
    await sub.flush();
    expect(root.size).toBe(2);
  });

  it('is never an unhandled rejection, with or without a handler', async () => {
    const { db } = await start();
    let caught: unknown;
    const unhandled = await unhandledDuring(async () => {
      const ignored = db.batch();
      void ignored.insert(items, { id: 2 });
      void ignored.update(items, { id: 2 });
      void ignored.delete(items, 2);
      void ignored.subBatch().upsert(items, { id: 2 });
      const dropped = db.batch();
      void dropped.insert(items, { id: 2 });
      dropped.clear();
      await dropped.flush();
      const awaited = db.batch();
      const pending = awaited.insert(items, { id: 2 });
      await sleep(10);
      caught = await failure(pending);
    });
    expect(caught).toMatchObject(error);
    expect(unhandled).toEqual([]);
  });
});

describe('clear()', () => {
  it('drops mutations that still wait for their triggers, and their errors', async () => {
    const db = await openDatabase([items, log]);
    db.registerTrigger('items', 'insert', async (row, batch) => {
      await sleep(3);
      void batch.insert(log, { id: Number(row['id']) });
      if (row['id'] === 2) throw cause;
    });
    const batch = db.batch();
    void batch.insert(items, { id: 1 });
    void batch.insert(items, { id: 2 });
    void batch.insert(items, { id: 3 });
    batch.clear();
    void batch.insert(items, { id: 4 });
    await batch.flush();
    expect(await db.query(items).execute()).toMatchObject([{ id: 4 }]);
    expect(await db.query(log).execute()).toMatchObject([{ id: 4 }]);
  });
});
