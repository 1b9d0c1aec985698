/** An instance whose database is restored under it gets an error, and does nothing more. */
import { cp, mkdtemp, rename, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { restoreBackup, StoreDb, Types } from '../../../src/index.ts';
import type { Database, Logger } from '../../../src/index.ts';
import { FileDriver } from '../../../src/storage/index.ts';

const notes = {
  name: 'notes',
  version: 1,
  fields: { id: { typeId: Types.uint32 }, text: { typeId: Types.varchar } },
  primaryKey: 'id',
} as const;

const intervalMs = 60;
let root: string;
let running: Database[];
let errors: string[];

beforeEach(async () => {
  root = await mkdtemp(path.join(tmpdir(), 'store-db-replaced-'));
  running = [];
  errors = [];
});
afterEach(async () => {
  await Promise.all(running.map((db) => db.stop()));
  await rm(root, { recursive: true, force: true });
});

function driverOf(folder: string): FileDriver {
  return new FileDriver({ path: path.join(root, folder), durability: 'none' });
}

async function open(nodeId: number, role: 'writer' | 'replica', polling: 'interval' | 'onDemand'): Promise<Database> {
  const quiet = (): void => {};
  const logger: Logger = { debug: quiet, info: quiet, warn: quiet, error: (message) => void errors.push(message) };
  const driver = driverOf('live');
  const db = StoreDb({ dbPrefix: 'db', nodeId, driver, role, polling, logger, writeForwardInterval: intervalMs });
  db.registerSchema(notes);
  await db.start();
  running.push(db);
  return db;
}

async function write(db: Database, from: number, count: number): Promise<void> {
  const batch = db.batch();
  for (let id = from; id < from + count; id++) void batch.upsert(notes, { id, text: `text ${id}` });
  await batch.flush();
}

const ways = {
  'from a backup': async () => {
    await restoreBackup({
      from: { driver: driverOf('b'), prefix: 'b' },
      to: { driver: driverOf('live'), prefix: 'db' },
    });
  },
  'by an older copy of the folder': () => cp(path.join(root, 'old'), path.join(root, 'live'), { recursive: true }),
  'by an older copy that others have written on': async () => {
    await ways['by an older copy of the folder']();
    const other = await open(9, 'writer', 'onDemand');
    for (let round = 0; round < 12; round++) {
      await write(other, 1000 + round, 1);
      await other.checkpoint();
    }
    await other.stop();
  },
} as const;
type Way = keyof typeof ways;

const cases = Object.keys(ways).flatMap((way) => [
  ['writer', 'interval', way as Way] as const,
  ['replica', 'onDemand', way as Way] as const,
]);

describe('a database that is restored under a running instance', () => {
  it.each(cases)('a %s (polling: %s) stops for it: %s', async (role, polling, way) => {
    const first = await open(1, 'writer', 'onDemand');
    await write(first, 0, 10);
    await first.checkpoint();
    await first.backup({ driver: driverOf('b'), prefix: 'b' });
    await first.stop();
    await cp(path.join(root, 'live'), path.join(root, 'old'), { recursive: true });
    await first.start();
    await write(first, 20, 10);
    await first.checkpoint();
    const db = await open(2, role, polling);
    expect(await db.query(notes).count()).toBe(20);
    await first.stop();
    await rename(path.join(root, 'live'), path.join(root, 'gone'));
    await ways[way]();
    await wait(3 * intervalMs);
    const replaced = { code: 'DATABASE_REPLACED', message: expect.stringMatching(/open the database again/) as string };
    await expect(db.refresh()).rejects.toMatchObject(replaced);
    // And it stays so, whatever others do.
    const other = await open(3, 'writer', 'onDemand');
    const found = await other.query(notes).count();
    for (let round = 0; round < 3; round++) {
      await write(other, 2000 + round, 1);
      await other.checkpoint();
    }
    await expect(db.refresh()).rejects.toMatchObject(replaced);
    await expect(db.query(notes).count()).rejects.toMatchObject(replaced);
    const refusal = { code: role === 'writer' ? 'DATABASE_REPLACED' : 'READ_ONLY' };
    await expect(write(db, 60, 1)).rejects.toMatchObject(refusal);
    await expect(db.checkpoint()).rejects.toMatchObject(refusal);
    await expect(db.gc()).rejects.toMatchObject(refusal);
    // Logged once, and not at every turn; on demand there need not be any.
    await wait(3 * intervalMs);
    expect(errors.length).toBeLessThanOrEqual(1);
    expect(errors.length > 0 || polling === 'onDemand').toBe(true);
    await db.stop();
    // It can be opened again, and has left nothing in what was restored.
    await db.start();
    expect(await db.query(notes).count()).toBe(found + 3);
    expect(await db.verify({ deep: true })).toMatchObject({ ok: true });
  });
});
