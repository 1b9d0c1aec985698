/** Starting, stopping, and the calls that work before, between and after. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { defineSchema, NotStartedError, StoreDb, Types } from '../../../src/index.ts';
import type { Database, StoreDbOptions } from '../../../src/index.ts';
import type { StorageDriver } from '../../../src/storage/index.ts';
import { GatedDriver } from '../batches/gated-driver.ts';
import { hangs, ScriptedDriver } from '../protocol/scripted-driver.ts';
import { newDriver } from '../values/driver-under-test.ts';

const notes = defineSchema({
  name: 'notes',
  version: 1,
  fields: { id: { typeId: Types.int32 }, text: { typeId: Types.varchar } },
  primaryKey: 'id',
});

function make(driver: StorageDriver = newDriver(), options: Partial<StoreDbOptions> = {}): Database {
  const db = StoreDb({ dbPrefix: 'app', nodeId: 0, driver, logLevel: 'silent', ...options });
  db.registerSchema(notes);
  return db;
}

async function insert(db: Database, id: number): Promise<void> {
  const batch = db.batch();
  void batch.insert(notes, { id, text: `note ${id}` });
  await batch.flush();
}

describe('an instance that is not running', () => {
  const calls: [string, (db: Database) => Promise<unknown>][] = [
    ['batch.insert()', (db) => db.batch().insert(notes, { id: 1 })],
    ['batch.upsert()', (db) => db.batch().upsert(notes, { id: 1 })],
    ['batch.update()', (db) => db.batch().update(notes, { id: 1 })],
    ['batch.delete()', (db) => db.batch().delete(notes, 1)],
    ['batch.flush()', (db) => db.batch().flush()],
    ['subBatch().flush()', (db) => db.batch().subBatch().flush()],
    ['query.execute()', (db) => db.query(notes).execute()],
    ['query.first()', (db) => db.query(notes).first()],
    ['query.count()', (db) => db.query(notes).count()],
    [
      'async iteration',
      async (db) => {
        for await (const row of db.query(notes)) void row;
      },
    ],
    ['db.get()', (db) => db.get(notes, 1)],
    ['db.refresh()', (db) => db.refresh()],
    ['db.checkpoint()', (db) => db.checkpoint()],
    ['db.verify()', (db) => db.verify()],
  ];

  it.each(calls)('%s rejects with NotStartedError before start() and after stop()', async (_, call) => {
    const db = make();
    const check = (): Promise<void> => expect(call(db)).rejects.toMatchObject({ code: 'NOT_STARTED' });
    await check();
    await db.start();
    await db.stop();
    await check();
    await expect(call(db)).rejects.toBeInstanceOf(NotStartedError);
    await db.start();
    const error = await call(db).catch((reason: unknown) => reason);
    expect(error).not.toBeInstanceOf(NotStartedError);
    await db.stop();
  });

  it('starting a stop, all calls are refused at once', async () => {
    const db = make();
    await db.start();
    const stopped = db.stop();
    await expect(db.get(notes, 1)).rejects.toBeInstanceOf(NotStartedError);
    await expect(db.batch().insert(notes, { id: 1 })).rejects.toBeInstanceOf(NotStartedError);
    await stopped;
  });

  it('refuses a batch that was filled before: it keeps its operations for the next start', async () => {
    const db = make();
    await db.start();
    const batch = db.batch();
    void batch.insert(notes, { id: 1, text: 'kept' });
    await db.stop();
    await expect(batch.flush()).rejects.toBeInstanceOf(NotStartedError);
    expect(batch.size).toBe(1);
    await db.start();
    await batch.flush();
    expect(await db.get(notes, 1)).toEqual({ id: 1, text: 'kept' });
    await db.stop();
  });

  it('has figures all the same', () => {
    expect(make().stats()).toMatchObject({ log: undefined, merges: undefined, requests: { get: 0, put: 0 } });
  });
});

describe('starting and stopping', () => {
  it('are idempotent, one after the other and at once', async () => {
    const db = make();
    await Promise.all([db.start(), db.start()]);
    await db.start();
    expect(db.stats().requests).toMatchObject({ list: 1, put: 1 });
    await Promise.all([db.stop(), db.close(), db.stop()]);
    await db.stop();
    await db.close();
  });

  it('stop() before start() does nothing', async () => {
    const db = make();
    await db.stop();
    await db.start();
    await db.stop();
  });

  it('in any order at once end as the last call says', async () => {
    const db = make();
    const calls = [db.start(), db.stop()];
    await Promise.all(calls);
    await expect(db.refresh()).rejects.toBeInstanceOf(NotStartedError);
    await db.start();
    await Promise.all([db.stop(), db.start()]);
    await db.refresh();
    await db.stop();
  });

  it('can be repeated, and flushed rows are there', async () => {
    const db = make();
    for (let id = 0; id < 5; id++) {
      await db.start();
      await insert(db, id);
      if (id % 2 === 0) await db.checkpoint();
      await db.close();
    }
    await db.start();
    expect(await db.query(notes).count()).toBe(5);
    await db.stop();
  });

  it('stop() waits for flushes under way', async () => {
    const db = make();
    await db.start();
    const flushed = insert(db, 1);
    for (let i = 0; i < 10; i++) await Promise.resolve();
    await db.stop();
    await flushed;
    await db.start();
    expect(await db.get(notes, 1)).toEqual({ id: 1, text: 'note 1' });
    await db.stop();
  });

  it('stop() waits for flushes whose blobs are being uploaded, and the next start() shows them', async () => {
    const driver = new GatedDriver(newDriver());
    const db = make(driver);
    db.registerSchema({
      name: 'files',
      version: 1,
      fields: { id: { typeId: Types.uint32 }, body: { typeId: Types.blob } },
      primaryKey: 'id',
    });
    await db.start();
    const release = driver.hold(/\/blobs\//);
    const batch = db.batch();
    void batch.insert('files', { id: 1, body: db.Blob('some bytes') });
    const flushed = batch.flush();
    await driver.held;
    const stopped = db.stop();
    const started = db.start();
    release();
    await Promise.all([flushed, stopped, started]);
    expect(await db.get('files', 1)).toMatchObject({ id: 1 });
    await db.stop();
  });

  it('stop() waits for flushes of the same turn, sub-batches and slow triggers, and refuses later calls', async () => {
    const db = make();
    const log = { ...notes, name: 'log' };
    db.registerSchema(log);
    const fired: number[] = [];
    db.registerTrigger('notes', '*', async ({ id }, batch, api) => {
      await sleep(5);
      // What a trigger reads and adds belongs to the flush.
      const seen = await api.get('notes', id);
      await batch.upsert('log', { id, text: seen === undefined ? 'gone' : 'seen' });
      await batch.subBatch().flush();
      fired.push(id as number);
    });
    await db.start();
    const filled = db.batch();
    await filled.insert(notes, { id: 9, text: 'to be deleted' });
    await filled.flush();
    const batch = db.batch();
    const sub = batch.subBatch();
    void sub.insert(notes, { id: 1, text: 'note 1' });
    const moved = sub.flush();
    void batch.insert(notes, { id: 2, text: 'note 2' });
    const deleted = batch.deleteWhere(db.query(notes).where('id', '=', 9));
    const flushed = batch.flush();
    const other = insert(db, 3);
    const stopped = db.stop();
    const late = db.batch();
    const refused = [
      insert(db, 4),
      late.insert(notes, { id: 5, text: '' }),
      late.flush(),
      batch.flush(),
      late.deleteWhere(db.query(notes)),
      db.query(notes).execute(),
      db.get(notes, 1),
      db.transaction(() => undefined),
    ];
    for (const call of refused) await expect(call).rejects.toBeInstanceOf(NotStartedError);
    await Promise.all([moved, deleted, flushed, other, stopped]);
    expect(fired.toSorted((a, b) => a - b)).toEqual([1, 2, 3, 9, 9]);
    await db.start();
    expect((await db.query(notes).execute()).map(({ id }) => id)).toEqual([1, 2, 3]);
    expect((await db.query(log).execute()).map(({ id, text }) => [id, text])).toEqual([
      [1, 'seen'],
      [2, 'seen'],
      [3, 'seen'],
      [9, 'gone'],
    ]);
    await db.stop();
  });

  it('stop() waits for a transaction in its function', async () => {
    const db = make();
    await db.start();
    await insert(db, 1);
    const order: string[] = [];
    const committed = db.transaction(async (tx) => {
      await sleep(5);
      const note = await tx.get(notes, 1);
      await sleep(5);
      await tx.update(notes, { id: 1, text: `${note?.text} and more` });
      order.push('function');
    });
    await db.stop();
    order.push('stopped');
    await committed;
    expect(order).toEqual(['function', 'stopped']);
    await db.start();
    expect(await db.get(notes, 1)).toEqual({ id: 1, text: 'note 1 and more' });
    await db.stop();
  });

  it('stop() closes the driver, before a start() that waits for it goes on', async () => {
    const order: string[] = [];
    const driver: StorageDriver = newDriver();
    const get = driver.get.bind(driver);
    driver.get = (key, options) => {
      order.push('get');
      return get(key, options);
    };
    driver.close = async () => {
      order.push('closing');
      for (let i = 0; i < 50; i++) await Promise.resolve();
      order.push('closed');
    };
    const db = make(driver);
    await db.start();
    order.length = 0;
    await Promise.all([db.stop(), db.start()]);
    expect(order.slice(0, 3)).toEqual(['closing', 'closed', 'get']);
    await db.stop();
  });

  it('a start() that failed can be tried again', async () => {
    const driver = new ScriptedDriver(newDriver(), 'app');
    driver.onPut(/^block0$/, () => Promise.reject(new Error('not yet')), 5);
    const db = make(driver);
    await expect(db.start()).rejects.toThrow('not yet');
    await expect(db.refresh()).rejects.toBeInstanceOf(NotStartedError);
    driver.heal();
    await db.start();
    await db.stop();
  });

  it('await using stops it', async () => {
    let kept: Database | undefined;
    {
      await using db = make();
      kept = db;
      await db.start();
      await db.refresh();
    }
    await expect(kept.refresh()).rejects.toBeInstanceOf(NotStartedError);
  });

  it('the write-forward loop merges by itself, on the turn of this node', async () => {
    const driver = newDriver();
    const turns = { writeForwardInterval: 20, mergePolicy: { minCommits: 1 } };
    const db = make(driver, turns);
    const other = make(driver, { ...turns, nodeId: 1 });
    await Promise.all([db.start(), other.start()]);
    await insert(db, 1);
    await expect.poll(() => db.stats().log?.appliedSeq, { timeout: 20_000 }).toBe(1);
    await expect.poll(() => other.get(notes, 1), { timeout: 20_000 }).toEqual({ id: 1, text: 'note 1' });
    await Promise.all([db.stop(), other.stop()]);
  });

  it('a node whose turn it never is merges nothing', async () => {
    const db = make(newDriver(), { writeForwardInterval: 10, polling: 'interval', nodes: () => [7] });
    await db.start();
    await insert(db, 1);
    const before = db.stats().requests.getUnchanged;
    await expect.poll(() => db.stats().requests.getUnchanged, { timeout: 20_000 }).toBeGreaterThan(before + 5);
    expect(db.stats().log?.appliedSeq).toBe(0);
    await db.stop();
  });
});

describe('a script', () => {
  it.each([['flush'], ['checkpoint']])('that calls stop() exits by itself (%s)', async (mode) => {
    const folder = await mkdtemp(join(tmpdir(), 'store-db-exit-'));
    try {
      const script = fileURLToPath(new URL('exit-child.ts', import.meta.url));
      const child = spawn(process.execPath, ['--import', 'tsx', script, folder, mode], {
        stdio: ['ignore', 'pipe', 'pipe'],
      });
      let output = '';
      let errors = '';
      child.stdout.on('data', (chunk: Buffer) => (output += chunk.toString()));
      child.stderr.on('data', (chunk: Buffer) => (errors += chunk.toString()));
      const [code] = (await once(child, 'exit')) as [number | null];
      expect({ code, errors }).toEqual({ code: 0, errors: '' });
      expect(JSON.parse(output)).toEqual([{ id: 1, text: 'hello' }]);
    } finally {
      await rm(folder, { recursive: true });
    }
  });
});

describe('a call while the store hangs', () => {
  it('does not stop other calls that need nothing from it', async () => {
    const driver = new ScriptedDriver(newDriver(), 'app');
    const db = make(driver);
    await db.start();
    await insert(db, 1);
    driver.onAll(hangs);
    const controller = new AbortController();
    const refreshed = db.refresh({ signal: controller.signal });
    expect(await db.get(notes, 1)).toEqual({ id: 1, text: 'note 1' });
    controller.abort();
    await expect(refreshed).rejects.toMatchObject({ code: 'ABORTED' });
    driver.heal();
    await db.stop();
  });
});
