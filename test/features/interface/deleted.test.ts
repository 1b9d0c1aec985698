/** An instance whose database is deleted under it gets an error, writes nothing more, and brings nothing back. */
import { existsSync, readdirSync, rmSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { StoreDb, Types } from '../../../src/index.ts';
import type { Database, Logger } from '../../../src/index.ts';
import { FileDriver, MemoryDriver, ObservedDriver } from '../../../src/storage/index.ts';
import type { StorageDriver } from '../../../src/storage/index.ts';

const notes = {
  name: 'notes',
  version: 1,
  fields: { id: { typeId: Types.uint32 }, text: { typeId: Types.varchar }, file: { typeId: Types.blob } },
  primaryKey: 'id',
} as const;

let root: string;
let running: Database[];
let lines: string[];

beforeEach(async () => {
  root = await mkdtemp(path.join(tmpdir(), 'store-db-deleted-'));
  running = [];
  lines = [];
});
afterEach(async () => {
  await Promise.all(running.map((db) => db.stop()));
  await rm(root, { recursive: true, force: true });
});

async function keysOf(driver: StorageDriver): Promise<string[]> {
  return (await driver.list('')).entries.map(({ key }) => key);
}

async function empty(driver: StorageDriver): Promise<void> {
  await driver.delete(await keysOf(driver));
}

/** Stores, and how somebody else empties them. */
const stores = {
  'a bucket': () => {
    const driver = new MemoryDriver();
    return { driver, removeAll: () => empty(driver) };
  },
  'the content of a folder': () => ({
    driver: new FileDriver({ path: root, durability: 'none' }),
    removeAll: async () => {
      for (const name of readdirSync(root)) rmSync(path.join(root, name), { recursive: true });
    },
  }),
  'a folder': () => ({
    driver: new FileDriver({ path: path.join(root, 'data'), durability: 'none' }),
    removeAll: async () => rmSync(path.join(root, 'data'), { recursive: true }),
  }),
} satisfies Record<string, () => { driver: StorageDriver; removeAll: () => Promise<void> }>;

async function open(driver: StorageDriver, intervalMs = 60_000, nodeId = 1): Promise<Database> {
  const quiet = (): void => {};
  const note = (message: string): void => void lines.push(message);
  const logger: Logger = { debug: quiet, info: quiet, warn: quiet, error: note };
  const db = StoreDb({ dbPrefix: 'db', nodeId, driver, logger, polling: 'interval', writeForwardInterval: intervalMs });
  db.registerSchema(notes);
  await db.start();
  running.push(db);
  return db;
}

async function write(db: Database, from: number, count = 1): Promise<void> {
  const batch = db.batch();
  for (let id = from; id < from + count; id++) void batch.upsert(notes, { id, text: `text ${id}` });
  await batch.flush();
}

const deleted = { code: 'DATABASE_REPLACED', message: expect.stringMatching(/was deleted or moved/) as string };

describe.each(Object.entries(stores))('%s is emptied under an instance', (_, make) => {
  it('a flush fails, nothing comes back, and a new database can be created there', async () => {
    const { driver, removeAll } = make();
    const observed = new ObservedDriver(driver);
    const db = await open(observed);
    await write(db, 1);
    await db.checkpoint();
    await write(db, 2);
    await removeAll();
    const flush = write(db, 3).catch((error: unknown) => error);
    expect(await flush).toMatchObject({ code: 'COMMIT_OUTCOME_UNKNOWN', cause: deleted });
    expect(await keysOf(driver)).toEqual([]);
    observed.reset();
    await expect(write(db, 4)).rejects.toMatchObject(deleted);
    const batch = db.batch();
    void batch.insert(notes, { id: 5, file: db.Blob('blob') });
    await expect(batch.flush()).rejects.toMatchObject(deleted);
    await expect(db.checkpoint()).rejects.toMatchObject(deleted);
    await expect(db.gc()).rejects.toMatchObject(deleted);
    await expect(db.snapshot()).rejects.toMatchObject(deleted);
    await expect(db.refresh()).rejects.toMatchObject(deleted);
    expect(observed.snapshot()).toMatchObject({ put: 0, putLost: 0, errors: 0 });
    await db.stop();
    expect(await keysOf(driver)).toEqual([]);
    const next = await open(driver);
    expect(await next.query(notes).count()).toBe(0);
  });

  it('its turns end, it says so once, and leaves nothing of a merge', async () => {
    const { driver, removeAll } = make();
    const db = await open(driver, 40);
    await write(db, 1, 500);
    await removeAll();
    await expect.poll(() => lines.length, { timeout: 5000 }).toBe(1);
    await wait(200);
    expect(lines).toEqual([expect.stringMatching(/is gone: the database was deleted/)]);
    await db.stop();
    expect(await keysOf(driver)).toEqual([]);
  });

  it('a merge and a blob that were under way leave nothing behind', async () => {
    const { driver, removeAll } = make();
    const db = await open(driver);
    await write(db, 1, 2000);
    await db.refresh();
    await removeAll();
    const batch = db.batch();
    void batch.insert(notes, { id: 5000, file: db.Blob('blob') });
    const ended = await Promise.allSettled([db.checkpoint(), batch.flush(), db.snapshot()]);
    expect(ended.map(({ status }) => status)).toEqual(['rejected', 'rejected', 'rejected']);
    await db.stop();
    expect(await keysOf(driver)).toEqual([]);
  });
});

describe('where not everything is gone', () => {
  it('nothing is deleted, for it may be a restore under way', async () => {
    const driver = new MemoryDriver();
    const db = await open(driver);
    await write(db, 1);
    await driver.delete(['db/block0']);
    const before = await keysOf(driver);
    await expect(write(db, 2)).rejects.toMatchObject({ code: 'COMMIT_OUTCOME_UNKNOWN', cause: deleted });
    await db.stop();
    expect(await keysOf(driver)).toEqual(expect.arrayContaining(before));
  });

  it('a commit does not stay in the log of another database that took the place', async () => {
    const driver = new MemoryDriver();
    const db = await open(driver);
    for (let id = 0; id < 3; id++) await write(db, id);
    await empty(driver);
    const other = await open(driver, 60_000, 2);
    const flush = write(db, 3).catch((error: unknown) => error);
    expect(await flush).toMatchObject({ code: 'COMMIT_OUTCOME_UNKNOWN', cause: { code: 'DATABASE_REPLACED' } });
    expect((await keysOf(driver)).filter((key) => key.includes('committed/'))).toEqual([]);
    for (let id = 10; id < 20; id++) await write(other, id);
    expect(await other.query(notes).count()).toBe(10);
    await db.stop();
    expect(existsSync(root)).toBe(true);
  });
});
