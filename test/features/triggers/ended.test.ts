/** Calls through the batch and the dbApi of a trigger that has ended: nobody takes in what they add, so none goes unheard. */
import { describe, expect, it } from 'vitest';
import { defineSchema, Types } from '../../../src/index.ts';
import type { Batch, Database } from '../../../src/index.ts';
import { GatedDriver } from '../batches/gated-driver.ts';
import { newDriver } from '../values/driver-under-test.ts';
import { column, failure, openDatabase, thrown, unhandledDuring } from '../values/open-database.ts';

const items = defineSchema({
  name: 'items',
  version: 1,
  fields: { id: { typeId: Types.uint32 }, name: { typeId: Types.varchar } },
  primaryKey: 'id',
});
const log = defineSchema({ ...items, name: 'log' });

const ended = {
  code: 'BATCH_STATE',
  message: expect.stringMatching(/^A trigger on table 'items' has ended/) as string,
};

type Api = Parameters<Parameters<Database['registerTrigger']>[2]>[2];

/** A database whose trigger on items keeps what it was given. */
async function start(driver = newDriver()) {
  const db = await openDatabase([items, log], driver);
  const given: { batch: Batch; api: Api }[] = [];
  db.registerTrigger('items', 'insert', (_, batch, api) => void given.push({ batch, api }));
  return { db, given };
}

/** Mutations that come too late. */
const late: readonly (readonly [what: string, call: (batch: Batch, api: Api) => Promise<unknown>])[] = [
  ['insert', (batch) => batch.insert(log, { id: 1 })],
  ['upsert', (batch) => batch.upsert(log, { id: 1 })],
  ['update', (batch) => batch.update(log, { id: 1 })],
  ['delete', (batch) => batch.delete(log, 1)],
  ['deleteWhere', (batch) => batch.deleteWhere({ table: 'log', keysUnder: never, reads: () => true })],
  ['insert in a sub-batch', (batch) => batch.subBatch().insert(log, { id: 1 })],
  ['flush of a sub-batch', (batch) => batch.subBatch().flush()],
  ['flush', (batch) => batch.flush()],
];

function never(): never {
  throw new Error('it was asked');
}

describe.each(late)('%s after the end of a trigger', (_, call) => {
  it('is refused, and fails the flush that the trigger is part of', async () => {
    const { db, given } = await start();
    const batch = db.batch();
    await batch.insert(items, { id: 1 });
    const { batch: handle, api } = given[0] as (typeof given)[0];
    const unhandled = await unhandledDuring(async () => {
      void call(handle, api).catch(() => undefined);
      await Promise.resolve();
      expect(await failure(batch.flush())).toMatchObject(ended);
    });
    expect(unhandled).toEqual([]);
    expect(await db.query(items).count()).toBe(0);
    // Told once: what the batch holds can be flushed, if its owner decides so.
    await batch.flush();
    expect(await db.query(items).count()).toBe(1);
    expect(await db.query(log).count()).toBe(0);
  });

  it('is refused aloud once that is committed or dropped', async () => {
    const { db, given } = await start();
    const batch = db.batch();
    await batch.insert(items, { id: 1 });
    await batch.flush();
    await batch.insert(items, { id: 2 });
    batch.clear();
    const unhandled = await unhandledDuring(async () => {
      for (const { batch: handle, api } of given) void call(handle, api);
    });
    expect(unhandled).toEqual([expect.objectContaining(ended), expect.objectContaining(ended)]);
    await batch.insert(log, { id: 7 });
    await batch.flush();
    expect(column(await db.query(log).execute(), 'id')).toEqual([7]);
  });
});

describe('a call after the end of a trigger', () => {
  it('of work that the trigger began and did not await fails the flush', async () => {
    const db = await openDatabase([items, log]);
    db.registerTrigger('items', 'insert', (_, batch) => {
      const copy = async (id: number): Promise<void> => {
        for (let turn = 0; turn < 5; turn++) await Promise.resolve();
        await batch.insert(log, { id });
      };
      for (const id of [1, 2, 3]) void copy(id);
    });
    const batch = db.batch();
    const unhandled = await unhandledDuring(async () => {
      void batch.insert(items, { id: 1 });
      const error = await failure(batch.flush());
      expect(error).toMatchObject(ended);
      expect((error as Error).message).toContain('forEach()');
    });
    // Its own promises tell as well.
    expect(unhandled.length).toBe(3);
    for (const each of unhandled) expect(each).toMatchObject(ended);
    expect(await db.query(items).count()).toBe(0);
  });

  it('while the flush is under way keeps it from being written', async () => {
    const driver = new GatedDriver(newDriver());
    const db = await openDatabase([items, log], driver);
    let handle: Batch | undefined;
    db.registerTrigger('items', 'insert', (_, batch) => void (handle = batch));
    // Its blob is uploaded first: there is time.
    const open = driver.hold(/^db\/blobs\//);
    const files = defineSchema({ ...items, name: 'files', fields: { ...items.fields, file: { typeId: Types.blob } } });
    db.registerSchema(files);
    const batch = db.batch();
    await batch.insert(items, { id: 1 });
    await batch.insert(files, { id: 1, file: db.Blob(new Uint8Array(300_000)) });
    const unhandled = await unhandledDuring(async () => {
      const flushed = failure(batch.flush());
      await driver.held;
      void handle?.insert(log, { id: 1 });
      open();
      expect(await flushed).toMatchObject(ended);
    });
    expect(unhandled).toEqual([]);
    expect(await db.query(items).count()).toBe(0);
    await batch.flush();
    expect(await db.query(items).count()).toBe(1);
  });

  it('that comes when the commit cannot be stopped any more is refused aloud', async () => {
    const driver = new GatedDriver(newDriver());
    const { db, given } = await start(driver);
    const open = driver.hold(/\/committed\//);
    const batch = db.batch();
    await batch.insert(items, { id: 1 });
    const unhandled = await unhandledDuring(async () => {
      const flushed = batch.flush();
      await driver.held;
      void given[0]?.batch.insert(log, { id: 1 });
      open();
      await flushed;
    });
    expect(unhandled).toEqual([expect.objectContaining(ended)]);
    expect(await db.query(items).count()).toBe(1);
  });

  it('of a trigger in an earlier round leaves the flush of the next one alone', async () => {
    const driver = new GatedDriver(newDriver());
    const { db, given } = await start(driver);
    const batch = db.batch();
    await batch.insert(items, { id: 1 });
    const open = driver.hold(/\/committed\//);
    const first = batch.flush();
    await driver.held;
    await batch.insert(items, { id: 2 });
    open();
    await first;
    expect(await failure(given[0]?.batch.insert(log, { id: 1 }) as Promise<unknown>)).toMatchObject(ended);
    await batch.flush();
    expect(await db.query(items).count()).toBe(2);
    expect(await failure(given[1]?.batch.insert(log, { id: 1 }) as Promise<unknown>)).toMatchObject(ended);
    await batch.flush();
  });

  it('reads nothing either: the effects of a late read would be lost', async () => {
    const { db, given } = await start();
    const batch = db.batch();
    let asked: { execute(): Promise<unknown> } | undefined;
    db.registerTrigger('items', 'insert', (_, __, api) => void (asked = api.query(log)));
    await batch.insert(items, { id: 1 });
    const api = given[0]?.api as Api;
    expect(thrown(() => api.query(log))).toMatchObject(ended);
    expect(await failure(api.get(log, 1))).toMatchObject(ended);
    expect(await failure(asked?.execute() as Promise<unknown>)).toMatchObject(ended);
    expect(await failure(batch.flush())).toMatchObject(ended);
    await batch.flush();
    expect(await db.query(items).count()).toBe(1);
  });

  it('of a transaction fails the transaction', async () => {
    const { db, given } = await start();
    const error = await failure(
      db.transaction(async (tx) => {
        await tx.insert(items, { id: 1 });
        void given[0]?.batch.insert(log, { id: 1 });
      }),
    );
    expect(error).toMatchObject(ended);
    expect(await db.query(items).count()).toBe(0);
  });
});
