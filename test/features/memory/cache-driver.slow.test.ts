/** A second cache behind a whole database: the requests that it saves, and right rows under any behaviour of it. */
import { describe, expect, it } from 'vitest';
import { DiskCacheDriver, MemoryDriver } from '../../../src/storage/index.ts';
import type { CacheDriver, StorageDriver } from '../../../src/storage/index.ts';
import { StoreDb, Types } from '../../../src/index.ts';
import type { Database, StoreDbOptions } from '../../../src/index.ts';
import { newFolder } from '../values/driver-under-test.ts';

const notes = {
  name: 'notes',
  version: 1,
  fields: { id: { typeId: Types.int32 }, text: { typeId: Types.varchar } },
  primaryKey: 'id',
} as const;
const rows = 3000;

async function start(driver: StorageDriver, options: Partial<StoreDbOptions> = {}): Promise<Database> {
  const quiet = { nodeId: 0, logLevel: 'silent', writeForwardInterval: 86_400_000, blockSizeBytes: 4096 } as const;
  const db = StoreDb({ dbPrefix: 'app', driver, ...quiet, ...options });
  db.registerSchema(notes);
  await db.start();
  return db;
}

/** A store with a database whose texts begin with a word. */
async function store(word: string): Promise<MemoryDriver> {
  const driver = new MemoryDriver();
  const db = await start(driver);
  const batch = db.batch();
  for (let id = 0; id < rows; id++) void batch.insert(notes, { id, text: `${word} ${id} `.repeat(40) });
  await batch.flush();
  await db.checkpoint();
  await db.stop();
  return driver;
}

/** Reads everything, checks it, and tells how many blocks came from where. */
async function readAll(db: Database, word: string): Promise<{ driverHits: number; misses: number }> {
  const found = await db.query(notes).where('text', '!=', null).execute();
  expect(found.every(({ id, text }) => text === `${word} ${id} `.repeat(40))).toBe(true);
  expect(found).toHaveLength(rows);
  const { driverHits, misses } = db.stats().cache;
  await db.stop();
  return { driverHits, misses };
}

describe('cacheDriver', () => {
  it('on disk saves all requests for blocks, across restarts and between instances, but not between databases', async () => {
    const path = newFolder();
    const [red, blue] = [await store('red'), await store('blue')];
    const cold = await readAll(await start(red, { cacheDriver: new DiskCacheDriver(path) }), 'red');
    expect(cold).toMatchObject({ driverHits: 0 });
    expect(cold.misses).toBeGreaterThan(30);
    // stop() has waited for what was on its way to the cache; at most so many blocks are.
    const warm = await readAll(await start(red, { cacheDriver: new DiskCacheDriver({ path }) }), 'red');
    expect(warm.driverHits + warm.misses).toBe(cold.misses);
    expect(warm.driverHits).toBeGreaterThan(20);
    const other = await readAll(await start(blue, { cacheDriver: new DiskCacheDriver({ path }) }), 'blue');
    expect(other.driverHits).toBe(0);
  });

  it('that gives the bytes of other blocks, of other times or none at all changes nothing but the number of requests', async () => {
    const driver = await store('right');
    const kept: [string, Uint8Array][] = [];
    let calls = 0;
    const lying: CacheDriver = {
      get: async () => {
        const [, bytes] = kept[(calls * 31) % Math.max(1, kept.length)] ?? [];
        return [bytes, bytes?.slice(0, -1), null, new Uint8Array(20), bytes?.toReversed()][calls++ % 5];
      },
      set: (key, bytes) => void kept.push([key, bytes]),
      delete: () => undefined,
    };
    for (let round = 0; round < 2; round++) {
      const { misses } = await readAll(await start(driver, { cacheDriver: lying }), 'right');
      expect(misses).toBeGreaterThan(30);
    }
    expect(kept.length).toBeGreaterThan(5);
  });

  it('that fails or hangs is no error of a read', async () => {
    const driver = await store('right');
    const failing = (): never => {
      throw new Error('no cache today');
    };
    const hanging = (): Promise<never> => Promise.race<never>([]);
    for (const call of [failing, async () => failing(), hanging]) {
      const cacheDriver = { get: call, set: call, delete: call };
      const { driverHits } = await readAll(await start(driver, { cacheDriver }), 'right');
      expect(driverHits).toBe(0);
    }
  });

  it('is not needed for equal reads at the same time: they share one request', async () => {
    const driver = await store('right');
    const db = await start(driver);
    const before = db.stats().requests.get;
    await Promise.all(Array.from({ length: 20 }, () => db.get(notes, 1500)));
    expect(db.stats().requests.get - before).toBeLessThanOrEqual(2);
    await db.stop();
  });

  it('and a scan of everything leave blocks in memory that are read repeatedly', async () => {
    const driver = await store('right');
    const options = { maxMemoryBytes: 1024 * 1024, cacheBlockSize: 4096 };
    const db = await start(driver, options);
    const hot = [10, 700, 1500, 2200, 2900];
    const readHot = async (): Promise<number> => {
      const { misses } = db.stats().cache;
      for (const id of hot) await db.get(notes, id);
      return db.stats().cache.misses - misses;
    };
    await readHot();
    expect(await readHot()).toBe(0);
    for (let round = 0; round < 3; round++) {
      const { misses } = db.stats().cache;
      await db.query(notes).where('text', '!=', null).count();
      expect(db.stats().cache.misses - misses).toBeGreaterThan(20);
      expect(await readHot()).toBe(0);
    }
    // However often it is done.
    for (let round = 0; round < 8; round++) await db.query(notes).where('text', '!=', null).count();
    expect(await readHot()).toBe(0);
    const { memory } = db.stats();
    expect(memory).toMatchObject({ maxBytes: 1024 * 1024, committedBytes: 0, scratchBytes: 0 });
    expect((memory?.leafBytes ?? 0) + (memory?.innerBytes ?? 0)).toBeLessThanOrEqual(512 * 1024);
    await db.stop();
  });
});
