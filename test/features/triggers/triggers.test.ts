/** What triggers are told, when they fire, and in which order what they add follows. */
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { BatchStateError, defineSchema, TriggerDepthError, Types } from '../../../src/index.ts';
import type { Database } from '../../../src/index.ts';
import { column, failure, flushed, makeDatabase, openDatabase, thrown } from '../values/open-database.ts';
import type { Row } from '../values/open-database.ts';

const items = defineSchema({
  name: 'items',
  version: 1,
  fields: {
    id: { typeId: Types.uint32 },
    name: { typeId: Types.varchar },
    age: { typeId: Types.uint8, default: 18 },
    photo: { typeId: Types.blob },
  },
  primaryKey: 'id',
  indexes: ['age'],
});
const log = defineSchema({
  name: 'log',
  version: 1,
  fields: { seq: { typeId: Types.uint32 }, what: { typeId: Types.varchar } },
  primaryKey: 'seq',
});

interface Fired {
  readonly operation: string;
  readonly row: Row;
}

const nothing = (): void => undefined;

/** Every firing on `items`, in order. */
function watch(db: Database): Fired[] {
  const fired: Fired[] = [];
  db.registerTrigger('items', '*', (row, _batch, _api, operation) => void fired.push({ operation, row: { ...row } }));
  return fired;
}

describe('a trigger', () => {
  it('gets the row before it, as the batch has it then', async () => {
    const db = makeDatabase([items]);
    await db.start();
    const first = db.batch();
    await first.insert(items, { id: 1, name: 'a' });
    await first.flush();
    const seen: unknown[] = [];
    db.registerTrigger(items, '*', (row, _batch, _api, operation, before) => {
      seen.push([operation, before?.name, before?.photo, row.name]);
      if (before !== undefined) before.name = 'changed by the trigger';
    });
    const photo = db.Blob('x');
    const batch = db.batch();
    await batch.update(items, { id: 1, name: 'b', photo });
    await batch.upsert(items, { id: 1, name: 'c' });
    await batch.insert(items, { id: 2, name: 'd' });
    await batch.upsert(items, { id: 3, name: 'e' });
    await batch.delete(items, 1);
    await batch.update(items, { id: 1, name: 'gone' });
    await batch.delete(items, 9);
    expect(seen).toEqual([
      ['update', 'a', null, 'b'],
      ['update', 'b', photo, 'c'],
      ['insert', undefined, undefined, 'd'],
      ['insert', undefined, undefined, 'e'],
      ['delete', 'c', null, 'c'],
      ['update', undefined, undefined, 'gone'],
      ['delete', undefined, undefined, undefined],
    ]);
    await db.stop();
  });

  it('fires for its operation, and * for all, in the order of registration', async () => {
    const db = makeDatabase([items]);
    const seen: string[] = [];
    // Before and after start, before and after the schema of its table.
    for (const [at, operation] of (['*', 'insert', 'update', 'delete', '*', 'insert'] as const).entries()) {
      if (at === 3) await db.start();
      db.registerTrigger('items', operation, async (row, _batch, _api, given) => {
        await sleep(at % 2);
        seen.push(`${at} ${given} ${String(row['id'])}`);
      });
    }
    db.registerTrigger('other', 'insert', () => void seen.push('other'));
    const batch = db.batch();
    await batch.insert(items, { id: 1 });
    expect(seen.splice(0)).toEqual(['0 insert 1', '1 insert 1', '4 insert 1', '5 insert 1']);
    await batch.update(items, { id: 1, age: 1 });
    expect(seen.splice(0)).toEqual(['0 update 1', '2 update 1', '4 update 1']);
    await batch.delete(items, 1);
    expect(seen.splice(0)).toEqual(['0 delete 1', '3 delete 1', '4 delete 1']);
    await batch.flush();
    // Not again when the batch is flushed, nor for the flush of a batch that was fired for already.
    expect(seen).toEqual([]);
  });

  it('fires when the mutation is added, not when it is flushed', async () => {
    const db = await openDatabase([items]);
    const fired = watch(db);
    const batch = db.batch();
    const added = batch.insert(items, { id: 1 });
    // Not within the call: the caller goes on first.
    expect(fired).toEqual([]);
    await added;
    expect(fired).toHaveLength(1);
    batch.clear();
    await batch.flush();
    expect(await db.get(items, 1)).toBeUndefined();
  });

  it('that is registered later fires for later operations', async () => {
    const db = await openDatabase([items]);
    const batch = db.batch();
    await batch.insert(items, { id: 1 });
    const fired = watch(db);
    await batch.insert(items, { id: 2 });
    expect(
      column(
        fired.map(({ row }) => row),
        'id',
      ),
    ).toEqual([2]);
  });

  it.each([
    ['', 'insert', nothing, 'tableName'],
    [undefined, 'insert', nothing, 'tableName'],
    ['items', 'upsert', nothing, 'operation'],
    ['items', undefined, nothing, 'operation'],
    ['items', 'insert', undefined, 'handler'],
    ['items', 'insert', {}, 'handler'],
  ])('is refused as (%s, %s, %s)', async (table, operation, handler, option) => {
    const db = await openDatabase([items]);
    const error = thrown(() => {
      db.registerTrigger(table as string, operation as 'insert', handler as () => void);
    });
    expect(error).toMatchObject({ code: 'INVALID_OPTION', option });
  });
});

describe('the row', () => {
  it('of an insert is the row as it will be stored', async () => {
    const db = await openDatabase([items]);
    const fired = watch(db);
    const batch = db.batch();
    await batch.insert(items, { id: 1, name: undefined });
    await batch.insert(items, { id: 2, name: 'b', age: null });
    expect(fired).toEqual([
      { operation: 'insert', row: { id: 1, name: null, age: 18, photo: null } },
      { operation: 'insert', row: { id: 2, name: 'b', age: null, photo: null } },
    ]);
    await batch.flush();
    expect(await db.query(items).execute()).toEqual(fired.map(({ row }) => row));
  });

  it('of an update is the whole row after it: stored, merged, of the batch, of its parent, of a flush under way', async () => {
    const db = await openDatabase([items]);
    await flushed(db, (batch) => void batch.insert(items, { id: 1, name: 'merged', age: 1 }));
    await db.checkpoint();
    await flushed(db, (batch) => void batch.insert(items, { id: 2, name: 'stored', age: 2 }));
    const fired = watch(db);
    const batch = db.batch();
    void batch.insert(items, { id: 3, name: 'in the batch', age: 3 });
    const sub = batch.subBatch();
    await batch.update(items, { id: 1, age: 11 });
    await batch.update(items, { id: 2, age: 12 });
    await sub.update(items, { id: 3, age: 13 });
    await sub.update(items, { id: 3, name: null });
    const flushing = batch.flush();
    await batch.update(items, { id: 2, name: 'during a flush' });
    await flushing;
    expect(fired.filter(({ operation }) => operation === 'update').map(({ row }) => row)).toEqual([
      { id: 1, name: 'merged', age: 11, photo: null },
      { id: 2, name: 'stored', age: 12, photo: null },
      { id: 3, name: 'in the batch', age: 13, photo: null },
      { id: 3, name: null, age: 13, photo: null },
      { id: 2, name: 'during a flush', age: 12, photo: null },
    ]);
  });

  it('of a delete is the row before it, or only the key where there is none', async () => {
    const db = await openDatabase([items]);
    await flushed(db, (batch) => void batch.insert(items, { id: 1, name: 'stored', age: 1 }));
    const fired = watch(db);
    const batch = db.batch();
    await batch.update(items, { id: 1, age: 2 });
    await batch.delete(items, 1);
    await batch.delete(items, 1);
    await batch.delete(items, 99);
    expect(fired.slice(1)).toEqual([
      { operation: 'delete', row: { id: 1, name: 'stored', age: 2, photo: null } },
      { operation: 'delete', row: { id: 1 } },
      { operation: 'delete', row: { id: 99 } },
    ]);
  });

  it('of an upsert comes as an insert or an update', async () => {
    const db = await openDatabase([items]);
    await flushed(db, (batch) => void batch.insert(items, { id: 1, name: 'stored', age: 1 }));
    const fired = watch(db);
    const batch = db.batch();
    await batch.upsert(items, { id: 1, name: 'replaced' });
    await batch.upsert(items, { id: 2, name: 'new' });
    await batch.upsert(items, { id: 2, age: 5 });
    await batch.delete(items, 1);
    await batch.upsert(items, { id: 1 });
    expect(fired).toEqual([
      { operation: 'update', row: { id: 1, name: 'replaced', age: 18, photo: null } },
      { operation: 'insert', row: { id: 2, name: 'new', age: 18, photo: null } },
      { operation: 'update', row: { id: 2, name: null, age: 5, photo: null } },
      { operation: 'delete', row: { id: 1, name: 'replaced', age: 18, photo: null } },
      { operation: 'insert', row: { id: 1, name: null, age: 18, photo: null } },
    ]);
  });

  it('of an update that finds no row has the given fields; the flush is rejected', async () => {
    const db = await openDatabase([items]);
    const fired = watch(db);
    const batch = db.batch();
    await batch.update(items, { id: 7, name: 'nobody' });
    expect(fired[0]).toMatchObject({ operation: 'update', row: { id: 7, name: 'nobody' } });
    expect(await failure(batch.flush())).toMatchObject({ code: 'ROW_NOT_FOUND' });
  });

  it('holds the wrapper of a blob while that is new, and its reference otherwise', async () => {
    const db = await openDatabase([items]);
    const first = db.Blob('first');
    const second = db.Blob('second');
    await flushed(db, (batch) => void batch.insert(items, { id: 1, photo: first }));
    const reference = (await db.get(items, 1))?.photo;
    const fired = watch(db);
    const batch = db.batch();
    await batch.update(items, { id: 1, age: 1 });
    await batch.update(items, { id: 1, photo: second });
    await batch.update(items, { id: 1, age: 2 });
    const sub = batch.subBatch();
    await sub.update(items, { id: 1, age: 3 });
    await batch.insert(items, { id: 2, photo: first });
    await batch.delete(items, 2);
    await batch.update(items, { id: 1, photo: null });
    expect(fired.map(({ row }) => row['photo'])).toEqual([reference, second, second, second, first, first, null]);
  });

  it('may be changed by a trigger without any effect on the stored row or on the next trigger', async () => {
    const db = await openDatabase([items]);
    db.registerTrigger('items', 'insert', (row) => void Object.assign(row, { name: 'changed', id: 5 }));
    await flushed(db, (batch) => void batch.insert(items, { id: 1, name: 'given' }));
    expect(await db.query(items).execute()).toMatchObject([{ id: 1, name: 'given' }]);
  });
});

describe('operations added by triggers', () => {
  it('follow directly the operation that fired them, in any order of waiting', async () => {
    const db = await openDatabase([items, log]);
    let seq = 0;
    const order: string[] = [];
    db.registerTrigger('items', '*', async (row, batch, _api, operation) => {
      await sleep(3);
      void batch.insert(log, { seq: seq++, what: `${operation} ${String(row['id'])}` });
    });
    db.registerTrigger('log', 'insert', async (row, batch) => {
      order.push(String(row['what']));
      if (row['what'] !== 'insert 1') return;
      await sleep(2);
      // Written as a cascade: it comes before what the caller added next.
      void batch.insert(items, { id: 10, name: 'cascade' });
    });
    const batch = db.batch();
    void batch.insert(items, { id: 1, name: 'a' });
    void batch.update(items, { id: 10, name: 'after the cascade' });
    void batch.insert(items, { id: 2 });
    await batch.flush();
    expect(order).toEqual(['insert 1', 'insert 10', 'update 10', 'insert 2']);
    expect(column(await db.query(log).execute(), 'what')).toEqual(order);
    expect(await db.get(items, 10)).toMatchObject({ name: 'after the cascade' });
  });

  it('comes between two operations on one row', async () => {
    const db = await openDatabase([items]);
    db.registerTrigger(
      'items',
      'insert',
      (row, batch) => void batch.update('items', { id: row['id'], name: 'by the trigger' }),
    );
    const batch = db.batch();
    void batch.insert(items, { id: 1, name: 'inserted' });
    void batch.update(items, { id: 1, age: 3 });
    void batch.insert(items, { id: 2, name: 'inserted' });
    void batch.update(items, { id: 2, name: 'by the caller' });
    await batch.flush();
    expect(await db.query(items).execute()).toMatchObject([
      { name: 'by the trigger', age: 3 },
      { name: 'by the caller', age: 18 },
    ]);
  });

  it('is committed with it: a flush that is rejected writes neither', async () => {
    const db = await openDatabase([items, log]);
    db.registerTrigger('items', 'insert', (row, batch) => batch.insert(log, { seq: row['id'] as number, what: 'x' }));
    await flushed(db, (batch) => void batch.insert(log, { seq: 1 }));
    const batch = db.batch();
    await batch.insert(items, { id: 1 });
    expect(batch.size).toBe(2);
    expect(await failure(batch.flush())).toMatchObject({ code: 'DUPLICATE_KEY', table: 'log' });
    expect(await db.query(items).count()).toBe(0);
    await flushed(db, (repair) => void repair.delete(log, 1));
    await batch.flush();
    expect(await db.query(items).count()).toBe(1);
  });

  it('may come through a sub-batch and deleteWhere of the handle', async () => {
    const db = await openDatabase([items, log]);
    await flushed(db, (batch) => {
      for (let seq = 0; seq < 5; seq++) void batch.insert(log, { seq, what: 'old' });
    });
    db.registerTrigger('items', 'insert', async (_row, batch, api) => {
      const sub = batch.subBatch();
      void sub.insert(log, { seq: 10, what: 'new' });
      await sub.flush();
      await batch.deleteWhere(api.query(log).where('what', '=', 'old'));
    });
    await flushed(db, (batch) => void batch.insert(items, { id: 1 }));
    expect(await db.query(log).execute()).toEqual([{ seq: 10, what: 'new' }]);
  });

  it('does not fire again when a sub-batch is flushed into its parent', async () => {
    const db = await openDatabase([items, log]);
    const fired = watch(db);
    db.registerTrigger('items', 'insert', (row, batch) => batch.insert(log, { seq: row['id'] as number }));
    const root = db.batch();
    const sub = root.subBatch();
    const deep = sub.subBatch();
    void deep.insert(items, { id: 1 });
    await deep.flush();
    await sub.flush();
    expect(root.size).toBe(2);
    await root.flush();
    expect(fired).toHaveLength(1);
    expect(await db.query(log).count()).toBe(1);
  });
});

describe('the handles', () => {
  it('let a trigger see the writes of the batch and of its parents', async () => {
    const db = await openDatabase([items, log]);
    await flushed(db, (batch) => void batch.insert(items, { id: 1, name: 'stored', age: 40 }));
    const seen: unknown[] = [];
    db.registerTrigger('log', 'insert', async (_row, batch, api) => {
      void batch.update(items, { id: 1, name: 'by the trigger' });
      seen.push(column(await api.query(items).where('age', '>=', 40).orderBy('age').execute(), 'id'));
      seen.push((await api.get(items, 1))?.name, (await api.get(items, 3))?.name, await api.get(items, 99));
      // Its own mutation is in the batch too.
      seen.push(await api.query(log).count());
    });
    const root = db.batch();
    const sub = root.subBatch();
    void root.insert(items, { id: 2, age: 50 });
    void sub.insert(items, { id: 3, name: 'of the sub-batch', age: 60 });
    await sub.insert(log, { seq: 1 });
    expect(seen).toEqual([[1, 2, 3], 'by the trigger', 'of the sub-batch', undefined, 1]);
    expect(await db.query(log).count()).toBe(0);
  });

  it('cannot be flushed', async () => {
    const db = await openDatabase([items, log]);
    const errors: unknown[] = [];
    db.registerTrigger('items', 'insert', async (_row, batch) => {
      errors.push(await failure(batch.flush()));
      void batch.insert(log, { seq: 1 });
    });
    const batch = db.batch();
    await batch.insert(items, { id: 1 });
    expect(errors[0]).toBeInstanceOf(BatchStateError);
    expect(errors[0]).toMatchObject({ code: 'BATCH_STATE' });
    await batch.flush();
    expect(await db.query(log).count()).toBe(1);
  });
});

describe('cascades', () => {
  const depthOf = async (
    most: number,
    viaSubBatch: boolean,
  ): Promise<{ deepest: number; error: unknown; size: number }> => {
    const db = await openDatabase([log]);
    let deepest = 0;
    db.registerTrigger('log', 'insert', async (row, batch) => {
      const seq = row['seq'] as number;
      deepest = Math.max(deepest, seq);
      if (seq >= most) return;
      const target = viaSubBatch ? batch.subBatch() : batch;
      await target.insert(log, { seq: seq + 1 });
      if (viaSubBatch) await target.flush();
    });
    const batch = db.batch();
    const error = await batch.insert(log, { seq: 1 }).then(
      () => undefined,
      (reason: unknown) => reason,
    );
    return { deepest, error, size: batch.size };
  };

  it.each([false, true])('may be 32 levels deep, not more (through sub-batches: %s)', async (viaSubBatch) => {
    expect(await depthOf(32, viaSubBatch)).toEqual({ deepest: 32, error: undefined, size: 32 });
    const { deepest, error, size } = await depthOf(1000, viaSubBatch);
    expect(error).toBeInstanceOf(TriggerDepthError);
    expect(error).toMatchObject({ code: 'TRIGGER_DEPTH' });
    expect(deepest).toBe(32);
    // Nothing of the whole cascade is in the batch.
    expect(size).toBe(0);
  });
});
