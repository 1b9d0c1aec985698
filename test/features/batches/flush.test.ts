/** The promises of flush(): all or nothing, the operations kept after a failure, the captured values, and who gets the error. */
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { BatchStateError, DuplicateKeyError, RowNotFoundError, defineSchema, Types } from '../../../src/index.ts';
import type { Database } from '../../../src/index.ts';
import { ObservedDriver } from '../../../src/storage/wrap/observed-driver.ts';
import { newDriver } from '../values/driver-under-test.ts';
import { column, failure, flushed, makeDatabase, openDatabase, unhandledDuring } from '../values/open-database.ts';
import type { Row } from '../values/open-database.ts';
import { GatedDriver } from './gated-driver.ts';

const items = defineSchema({
  name: 'items',
  version: 1,
  fields: {
    id: { typeId: Types.uint32 },
    name: { typeId: Types.varchar },
    age: { typeId: Types.uint8 },
    doc: { typeId: Types.json },
    raw: { typeId: Types.bytes },
    at: { typeId: Types.timestamp },
  },
  primaryKey: 'id',
  indexes: ['age'],
});
const others = defineSchema({ ...items, name: 'others' });

function names(db: Database): Promise<unknown[]> {
  return db
    .query('items')
    .execute()
    .then((rows) => column(rows, 'name'));
}

describe('flush', () => {
  it('writes all of several tables, once; the batch is empty then and can be used again', async () => {
    const db = await openDatabase([items, others]);
    const batch = db.batch();
    void batch.insert(items, { id: 1, name: 'a' });
    void batch.insert(others, { id: 1, name: 'b' });
    void batch.update(items, { id: 1, age: 3 });
    expect(batch.size).toBe(3);
    expect(await db.get(items, 1)).toBeUndefined();
    await batch.flush();
    expect(batch.size).toBe(0);
    expect(await db.get(items, 1)).toMatchObject({ name: 'a', age: 3 });
    expect(await db.get(others, 1)).toMatchObject({ name: 'b' });
    void batch.update(items, { id: 1, name: 'c' });
    void batch.delete(others, 1);
    await batch.flush();
    expect(await db.get(items, 1)).toMatchObject({ name: 'c', age: 3 });
    expect(await db.get(others, 1)).toBeUndefined();
  });

  it('of nothing writes nothing', async () => {
    const driver = new ObservedDriver(newDriver());
    const db = await openDatabase([items], driver);
    const before = driver.snapshot();
    const batch = db.batch();
    await batch.flush();
    await batch.subBatch().flush();
    await batch.flush();
    await Promise.all([batch.flush(), batch.flush()]);
    expect(driver.snapshot()).toEqual(before);
  });

  it('folds operations on one row in their order', async () => {
    const db = await openDatabase([items]);
    await flushed(db, (batch) => void batch.insert(items, { id: 1, name: 'old', age: 1 }));
    const batch = db.batch();
    void batch.delete(items, 1);
    void batch.insert(items, { id: 1, name: 'new' });
    void batch.update(items, { id: 1, doc: { a: 1 } });
    void batch.insert(items, { id: 2, name: 'gone' });
    void batch.delete(items, 2);
    void batch.upsert(items, { id: 3, name: 'first', age: 9 });
    void batch.upsert(items, { id: 3, name: 'second' });
    void batch.insert(items, { id: 4, name: 'x' });
    void batch.update(items, { id: 4, name: null });
    void batch.update(items, { id: 4, age: undefined, raw: Buffer.from([1]) });
    const nulls = { id: 0, name: null, age: null, doc: null, raw: null, at: null };
    const expected = [
      { ...nulls, id: 1, name: 'new', doc: { a: 1 } },
      { ...nulls, id: 3, name: 'second' },
      { ...nulls, id: 4, raw: Buffer.from([1]) },
    ];
    expect(await db.query(items).overlay(batch).execute()).toEqual(expected);
    await batch.flush();
    expect(await db.query(items).execute()).toEqual(expected);
  });

  it('rejects a duplicate and a missing row as a whole, keeps the operations, and can be repaired', async () => {
    const driver = new ObservedDriver(newDriver());
    const db = await openDatabase([items, others], driver);
    await flushed(db, (batch) => void batch.insert(items, { id: 1, name: 'old' }));
    const { put } = driver.snapshot();
    const batch = db.batch();
    void batch.insert(others, { id: 5, name: 'with it' });
    void batch.insert(items, { id: 2, name: 'b' });
    void batch.insert(items, { id: 1, name: 'again' });
    for (let attempt = 0; attempt < 3; attempt++) {
      const error = await failure(batch.flush());
      expect(error).toBeInstanceOf(DuplicateKeyError);
      expect(error).toMatchObject({ code: 'DUPLICATE_KEY', table: 'items', primaryKey: 1 });
      expect(batch.size).toBe(3);
    }
    expect(driver.snapshot().put).toBe(put);
    expect(await names(db)).toEqual(['old']);
    expect(await db.query(others).count()).toBe(0);
    // Whoever removes the row from the database has repaired the batch.
    await flushed(db, (repair) => void repair.delete(items, 1));
    await batch.flush();
    expect(await names(db)).toEqual(['again', 'b']);
    expect(await db.get(others, 5)).toMatchObject({ name: 'with it' });

    void batch.update(items, { id: 9, name: 'nobody' });
    const error = await failure(batch.flush());
    expect(error).toBeInstanceOf(RowNotFoundError);
    expect(error).toMatchObject({ code: 'ROW_NOT_FOUND', table: 'items', primaryKey: 9 });
    expect(batch.size).toBe(1);
    batch.clear();
    expect(batch.size).toBe(0);
    await batch.flush();
    expect(await names(db)).toEqual(['again', 'b']);
  });

  it.each([
    ['insert twice', 'DUPLICATE_KEY', [['insert'], ['insert']]],
    ['insert after an upsert', 'DUPLICATE_KEY', [['upsert'], ['insert']]],
    ['insert after an update', 'ROW_NOT_FOUND', [['update'], ['insert']]],
    ['update after a delete', 'ROW_NOT_FOUND', [['insert'], ['delete'], ['update']]],
    ['delete of nothing, insert', '', [['delete'], ['insert']]],
    ['insert, delete, insert', '', [['insert'], ['delete'], ['insert']]],
    ['delete twice', '', [['delete'], ['delete']]],
    ['upsert twice', '', [['upsert'], ['upsert'], ['update']]],
  ] as const)('within one batch: %s', async (_, code, operations) => {
    const db = await openDatabase([items]);
    const batch = db.batch();
    for (const [operation] of operations) {
      if (operation === 'delete') void batch.delete(items, 1);
      else void batch[operation](items, { id: 1, name: 'n' });
    }
    const outcome = await batch.flush().then(
      () => '',
      (error: unknown) => (error as { code: string }).code,
    );
    expect(outcome).toBe(code);
    expect(batch.size).toBe(code === '' ? 0 : operations.length);
  });

  it('takes the values at the time of the call of insert, update and upsert', async () => {
    const db = await openDatabase([items]);
    for (const method of ['insert', 'upsert', 'update'] as const) {
      const raw = Buffer.from([1, 2, 3]);
      const long = Buffer.alloc(100, 5);
      const at = new Date(1000);
      const doc = { list: [1, { deep: true }] };
      const id = { insert: 1, upsert: 2, update: 1 }[method];
      const document: Row = { id, name: 'before', raw, at, doc };
      const batch = db.batch();
      void batch[method]('items', document);
      void batch.upsert('items', { id: 3, raw: long });
      document['id'] = 99;
      document['name'] = 'after';
      document['unknown'] = 1;
      raw.fill(9);
      long.fill(9);
      at.setTime(0);
      doc.list.push(5);
      const expected = {
        name: 'before',
        raw: Buffer.from([1, 2, 3]),
        at: new Date(1000),
        doc: { list: [1, { deep: true }] },
      };
      expect(await db.query(items).overlay(batch).where('id', '=', id).first()).toMatchObject(expected);
      await batch.flush();
      expect(await db.get(items, id)).toEqual({ id, age: null, ...expected });
      expect((await db.get(items, 3))?.raw).toEqual(Buffer.alloc(100, 5));
    }
    const key = Buffer.from([1]);
    const keyed = defineSchema({
      name: 'keyed',
      version: 1,
      fields: { key: { typeId: Types.bytes } },
      primaryKey: 'key',
    });
    db.registerSchema(keyed);
    await flushed(db, (batch) => void batch.insert(keyed, { key: Buffer.from([1]) }));
    const batch = db.batch();
    void batch.delete(keyed, key);
    key[0] = 2;
    await batch.flush();
    expect(await db.query(keyed).count()).toBe(0);
  });

  it('delete reads nothing of the table', async () => {
    const driver = new ObservedDriver(newDriver());
    const db = await openDatabase([items], driver, { blockSizeBytes: 512 });
    await flushed(db, (batch) => {
      for (let id = 0; id < 200; id++) void batch.insert(items, { id, name: `row ${id}` });
    });
    await db.checkpoint();
    await db.stop();
    const again = await openDatabase([items], driver);
    const { get } = driver.snapshot();
    await flushed(again, (batch) => void batch.delete(items, 5));
    expect(driver.snapshot().get).toBe(get);
    expect(await again.get(items, 5)).toBeUndefined();
  });

  it('upsert replaces the whole row, and reads as much as an insert', async () => {
    const driver = new ObservedDriver(newDriver());
    const db = await openDatabase([items], driver, { blockSizeBytes: 512 });
    await flushed(db, (batch) => {
      for (let id = 0; id < 200; id++) void batch.insert(items, { id, name: `row ${id}`, age: id % 7 });
    });
    await db.checkpoint();
    await db.stop();
    // An instance with nothing in its cache.
    const again = await openDatabase([items], driver);
    const { get } = driver.snapshot();
    await flushed(again, (batch) => {
      void batch.upsert(items, { id: 5, name: 'new' });
      void batch.upsert(items, { id: 500, name: 'new too' });
    });
    // The ways to two leaves: whether the rows are there as they are must be known.
    expect(driver.snapshot().get - get).toBe(4);
    expect(await again.get(items, 5)).toEqual({ id: 5, name: 'new', age: null, doc: null, raw: null, at: null });
    await again.checkpoint();
    expect(await again.query(items).count()).toBe(201);
    expect(await again.query(items).where('age', '=', 5).count()).toBe(27);
    expect(await again.verify()).toMatchObject({ ok: true });
  });
});

describe('a mutation that failed', () => {
  it('rejects its own promise and exactly one flush, which keeps the rest', async () => {
    const db = await openDatabase([items]);
    const batch = db.batch();
    void batch.insert(items, { id: 1, name: 'a' });
    const bad = batch.insert('items', { id: 2, age: 300 });
    void batch.insert(items, { id: 3, name: 'c' });
    const error = await failure(bad);
    expect(error).toMatchObject({ code: 'ENCODE' });
    expect(await failure(batch.flush())).toBe(error);
    expect(await names(db)).toEqual([]);
    expect(batch.size).toBe(2);
    await batch.flush();
    expect(await names(db)).toEqual(['a', 'c']);
    await batch.flush();
  });

  it('rejects one of two flushes that were called together', async () => {
    const db = await openDatabase([items]);
    const batch = db.batch();
    void batch.insert(items, { id: 1, name: 'a' });
    void batch.insert('items', { id: 'x' });
    const results = await Promise.allSettled([batch.flush(), batch.flush(), batch.flush()]);
    expect(results.map(({ status }) => status)).toEqual(['rejected', 'fulfilled', 'fulfilled']);
    expect(await names(db)).toEqual(['a']);
  });

  it('of several, one flush reports all, and clear() forgets them', async () => {
    const db = await openDatabase([items]);
    const batch = db.batch();
    void batch.insert('items', { id: 'x' });
    void batch.update('items', { id: 1, wrong: 2 });
    expect(await failure(batch.flush())).toMatchObject({ field: 'id' });
    await batch.flush();
    void batch.delete('items', 'x');
    batch.clear();
    await batch.flush();
  });

  it('is never an unhandled rejection, whether or not the caller awaits it', async () => {
    const db = await openDatabase([items]);
    const stopped = makeDatabase([items]);
    db.registerTrigger('items', 'delete', () => Promise.reject(new Error('no deletes')));
    await flushed(db, (batch) => void batch.insert(items, { id: 1, name: 'a' }));
    const unhandled = await unhandledDuring(async () => {
      for (const batch of [db.batch(), db.batch().subBatch(), stopped.batch()]) {
        void batch.insert('items', { id: 'x' });
        void batch.insert('items', { id: 2, wrong: 1 });
        void batch.update('ghosts', { id: 2 });
        void batch.delete('items', null);
        void batch.delete('items', 1);
        void batch.upsert('_blobs', { id: 1 });
      }
      const batch = db.batch();
      // Seen late: after the microtasks in which Node would have called it unhandled.
      const late = batch.insert('items', { id: 'x' });
      await sleep(5);
      expect(await failure(late)).toMatchObject({ code: 'ENCODE' });
      expect(await failure(batch.flush())).toMatchObject({ code: 'ENCODE' });
    });
    expect(unhandled).toEqual([]);
  });

  it('on a database that is not started is rejected, as every call is', async () => {
    const db = makeDatabase([items]);
    expect(await failure(db.batch().insert(items, { id: 1 }))).toMatchObject({ code: 'NOT_STARTED' });
    expect(await failure(db.batch().flush())).toMatchObject({ code: 'NOT_STARTED' });
    expect(await failure(db.query(items).execute())).toMatchObject({ code: 'NOT_STARTED' });
    await db.start();
    const batch = db.batch();
    void batch.insert(items, { id: 1, name: 'kept' });
    await db.stop();
    expect(await failure(batch.flush())).toMatchObject({ code: 'NOT_STARTED' });
    await db.start();
    await batch.flush();
    expect(await names(db)).toEqual(['kept']);
  });

  it('may not write to system tables', async () => {
    const db = await openDatabase([items]);
    for (const table of ['_blobs', '_deleted_blobs']) {
      expect(await failure(db.batch().insert(table, { id: 1 }))).toBeInstanceOf(BatchStateError);
      expect(await failure(db.batch().delete(table, 1))).toBeInstanceOf(BatchStateError);
    }
  });
});

describe('while a flush is under way', () => {
  async function gated(): Promise<{ db: Database; driver: GatedDriver }> {
    const driver = new GatedDriver(newDriver());
    const db = await openDatabase([items], driver);
    return { db, driver };
  }

  it('additions belong to the next flush, and an overlay shows everything', async () => {
    const { db, driver } = await gated();
    const batch = db.batch();
    void batch.insert(items, { id: 1, name: 'a', age: 1 });
    const open = driver.hold(/committed/);
    const first = batch.flush();
    await driver.held;
    void batch.insert(items, { id: 2, name: 'b', age: 2 });
    void batch.update(items, { id: 1, age: 3 });
    expect(batch.size).toBe(2);
    expect(column(await db.query(items).overlay(batch).execute(), 'age')).toEqual([3, 2]);
    open();
    await first;
    expect(await db.query(items).execute()).toMatchObject([{ id: 1, age: 1 }]);
    expect(batch.size).toBe(2);
    await batch.flush();
    expect(await db.query(items).execute()).toMatchObject([
      { id: 1, age: 3 },
      { id: 2, age: 2 },
    ]);
  });

  it('a second flush of the batch waits its turn, and takes the additions made meanwhile', async () => {
    const { db, driver } = await gated();
    const batch = db.batch();
    void batch.insert(items, { id: 1, name: 'a' });
    const open = driver.hold(/committed/);
    const flushes = [batch.flush(), batch.flush()];
    await driver.held;
    void batch.insert(items, { id: 2, name: 'b' });
    flushes.push(batch.flush());
    open();
    await Promise.all(flushes);
    expect(await names(db)).toEqual(['a', 'b']);
    expect(batch.size).toBe(0);
  });

  it('that fails, additions made meanwhile come after the kept operations', async () => {
    const { db, driver } = await gated();
    await flushed(db, (batch) => void batch.insert(items, { id: 1, name: 'old' }));
    const batch = db.batch();
    void batch.update(items, { id: 1, name: 'first' });
    const open = driver.hold(/committed/);
    const controller = new AbortController();
    const first = batch.flush({ signal: controller.signal });
    await driver.held;
    void batch.update(items, { id: 1, name: 'second' });
    void batch.insert(items, { id: 2, name: 'more' });
    driver.refuse = true;
    open();
    expect(await failure(first)).toMatchObject({ name: 'StorageError' });
    expect(batch.size).toBe(3);
    driver.refuse = false;
    await batch.flush();
    expect(await names(db)).toEqual(['second', 'more']);
  });

  it('clear() also drops the operations that the flush would have given back', async () => {
    const { db, driver } = await gated();
    const batch = db.batch();
    void batch.insert(items, { id: 1, name: 'a' });
    const open = driver.hold(/committed/);
    const first = batch.flush();
    await driver.held;
    batch.clear();
    driver.refuse = true;
    open();
    await failure(first);
    driver.refuse = false;
    expect(batch.size).toBe(0);
    await batch.flush();
    expect(await names(db)).toEqual([]);
  });

  it('batches of one instance do not disturb each other', async () => {
    const { db } = await gated();
    const batches = Array.from({ length: 20 }, (_, id) => {
      const batch = db.batch();
      void batch.insert(items, { id, name: `n${id}` });
      // Every third collides with the one before it.
      if (id % 3 === 2) void batch.insert(items, { id: id - 1, name: 'collides' });
      return batch;
    });
    const results = await Promise.allSettled(batches.map((batch) => batch.flush()));
    expect(results.map(({ status }) => status === 'fulfilled')).toEqual(batches.map((_, id) => id % 3 !== 2));
    expect(await db.query(items).count()).toBe(14);
    await db.checkpoint();
    expect(await db.verify()).toMatchObject({ ok: true });
  });
});
