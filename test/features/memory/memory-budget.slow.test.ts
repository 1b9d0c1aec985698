/** Many databases in one process that share a budget of memory: that it is kept, whom it goes to, and that it is given back. */
import { afterEach, describe, expect, it, vi } from 'vitest';
import { InvalidOptionError, MemoryBudget, MemoryBudgetError, StoreDb, Types } from '../../../src/index.ts';
import type { Database, StoreDbOptions } from '../../../src/index.ts';
import { MemoryDriver } from '../../../src/storage/index.ts';
import type { StorageDriver } from '../../../src/storage/index.ts';
import { SeededRandom } from '../../../src/testing/seeded-random.ts';

const mebibyte = 1024 * 1024;

const notes = {
  name: 'notes',
  version: 1,
  fields: { id: { typeId: Types.int32 }, group: { typeId: Types.int32 }, text: { typeId: Types.varchar } },
  primaryKey: 'id',
  indexes: ['group'],
} as const;

const running = new Set<Database>();

afterEach(async () => {
  for (const db of running) await db.stop();
  running.clear();
});

async function start(driver: StorageDriver, i: number, options: Partial<StoreDbOptions> = {}): Promise<Database> {
  const quiet = { nodeId: 0, logLevel: 'silent', writeForwardInterval: 86_400_000, blockSizeBytes: 4096 } as const;
  const db = StoreDb({ dbPrefix: `tenant-${i}`, driver, polling: 'onDemand', ...quiet, ...options });
  db.registerSchema(notes);
  await db.start();
  running.add(db);
  return db;
}

function textOf(tenant: number, id: number): string {
  return `note ${id} of ${tenant} `.repeat(8);
}

async function write(db: Database, tenant: number, first: number, count: number): Promise<void> {
  const batch = db.batch();
  for (let id = first; id < first + count; id++) {
    void batch.insert(notes, { id, group: id % 10, text: textOf(tenant, id) });
  }
  await batch.flush();
}

/** Databases of so many rows each, of some 150 bytes, merged; they are not running any more. */
async function makeTenants(driver: StorageDriver, count: number, rows: number): Promise<void> {
  for (let i = 0; i < count; i++) {
    const db = await start(driver, i);
    await write(db, i, 0, rows);
    await db.checkpoint();
    await db.stop();
    running.delete(db);
  }
}

async function startAll(driver: StorageDriver, count: number, options: Partial<StoreDbOptions>): Promise<Database[]> {
  const tenants: Database[] = [];
  for (let i = 0; i < count; i++) tenants.push(await start(driver, i, options));
  return tenants;
}

function heldBytes(memory: MemoryBudget): number {
  const { leafBytes, innerBytes, committedBytes, scratchBytes } = memory.stats();
  return leafBytes + innerBytes + committedBytes + scratchBytes;
}

/** Reads of the store for blocks, by all. */
function missesOf(tenants: readonly Database[]): number {
  return tenants.reduce((sum, db) => sum + db.stats().cache.misses, 0);
}

describe('a shared budget', () => {
  it('is kept under a random load of many databases, and each of them is right', { timeout: 120_000 }, async () => {
    const driver = new MemoryDriver();
    const [count, rows] = [24, 1200];
    await makeTenants(driver, count, rows);
    const memory = new MemoryBudget(4 * mebibyte);
    const tenants = await startAll(driver, count, { memory });
    const written = tenants.map(() => rows);
    let most = 0;
    const check = (): void => {
      const { leafBytes, innerBytes, cacheLimitBytes } = memory.stats();
      expect(leafBytes + innerBytes).toBeLessThanOrEqual(cacheLimitBytes);
      most = Math.max(most, heldBytes(memory));
    };
    /** Does one of several things, and tells what it found and what it should have. */
    const act = async (db: Database, i: number, kind: number, id: number): Promise<[unknown, unknown]> => {
      if (kind < 4) return [(await db.get(notes, id))?.text, textOf(i, id)];
      if (kind < 6) {
        const found = await db.query(notes).where('group', '=', kind).orderBy('text').limit(50).execute();
        return [found.length, 50];
      }
      if (kind < 7) return [await db.query(notes).where('text', '!=', null).count(), written[i]];
      if (kind < 9) {
        await write(db, i, written[i] as number, 60);
        (written[i] as number) += 60;
        return [db.stats().role, 'writer'];
      }
      await db.stop();
      await db.start();
      return [memory.stats().instances > 0, true];
    };
    /** Of four that work at the same time, each on databases of its own, since it stops and starts them as well. */
    const work = async (worker: number): Promise<void> => {
      const random = new SeededRandom(worker);
      const pick = (below: number): number => Math.floor(random.next() * below);
      for (let step = 0; step < 100; step++) {
        const i = pick(count / 4) * 4 + worker;
        const db = tenants[i] as Database;
        const [found, expected] = await act(db, i, pick(10), pick(rows));
        expect(found).toBe(expected);
        check();
      }
    };
    await Promise.all([0, 1, 2, 3].map(work));
    await Promise.all(tenants.map((db) => db.query(notes).orderBy('text').limit(20).execute()));
    check();
    expect(most).toBeLessThanOrEqual(memory.maxBytes);
    expect(most).toBeGreaterThan(memory.maxBytes / 4);
    expect(memory.stats()).toMatchObject({ maxBytes: 4 * mebibyte, instances: count, scratchBytes: 0 });
    const parts = tenants.map((db) => db.stats());
    const sum = (of: (part: (typeof parts)[number]) => number): number =>
      parts.reduce((total, part) => total + of(part), 0);
    const { leafBytes, innerBytes, committedBytes } = memory.stats();
    expect(sum(({ cache }) => cache.sizeBytes)).toBe(leafBytes + innerBytes);
    expect(sum(({ log }) => log?.pendingBytes ?? 0)).toBe(committedBytes);
    expect(parts[0]?.memory).toMatchObject({ maxBytes: memory.maxBytes, budget: memory.stats() });
  });

  it('goes to the databases in use: a working set stays in memory while those that are idle lose theirs', async () => {
    const driver = new MemoryDriver();
    const [count, rows] = [12, 1500];
    await makeTenants(driver, count, rows);
    const memory = new MemoryBudget(3 * mebibyte);
    const tenants = await startAll(driver, count, { memory });
    const readAll = async (i: number): Promise<void> => {
      for (let id = 0; id < rows; id++) await (tenants[i] as Database).get(notes, id);
    };
    await readAll(0);
    await readAll(0);
    const hot = [tenants[0] as Database];
    let before = 0;
    // All others come by once, one after the other, together with the one that is in use.
    for (let i = 1; i < count; i++) {
      // By then memory is full, and it is known which blocks are asked for again.
      if (i === 8) before = missesOf(hot);
      for (let id = 0; id < rows; id++) {
        await (tenants[i] as Database).get(notes, id);
        await (tenants[0] as Database).get(notes, id);
      }
    }
    expect(missesOf(hot)).toBe(before);
    const held = tenants.map((db) => db.stats().cache.sizeBytes);
    expect(held[0]).toBeGreaterThan(200_000);
    // The first of the others are long idle, and what they had went to the later ones.
    expect(Math.max(...held.slice(1, 4))).toBeLessThan((held[count - 1] as number) / 2);
    // Once the first is idle, its blocks go as well.
    for (let round = 0; round < 3; round++) for (let i = 1; i < 8; i++) await readAll(i);
    expect(tenants[0]?.stats().cache.sizeBytes).toBeLessThan((held[0] as number) / 2);
    expect(heldBytes(memory)).toBeLessThanOrEqual(memory.maxBytes / 2);
  });

  it('is given back by stop(), also where a start fails, and by queries that ended with an error', async () => {
    const driver = new MemoryDriver();
    const rows = 12_000;
    await makeTenants(driver, 3, rows);
    const memory = new MemoryBudget(2 * mebibyte);
    const nothing = { instances: 0, leafBytes: 0, innerBytes: 0, committedBytes: 0, scratchBytes: 0 };
    expect(memory.stats()).toMatchObject(nothing);
    for (let round = 0; round < 2; round++) {
      const tenants = await startAll(driver, 3, { memory });
      const [first, second, third] = tenants as [Database, Database, Database];
      await write(first, 0, rows + round * 100, 50);
      expect(await second.query(notes).where('text', '!=', null).count()).toBe(rows);
      // More than the budget in one answer: several smaller ones may come one after the other.
      const refused: unknown = await third
        .query(notes)
        .orderBy('text')
        .execute()
        .catch((error: unknown) => error);
      expect(refused).toBeInstanceOf(MemoryBudgetError);
      expect(refused).toMatchObject({ maxMemoryBytes: 2 * mebibyte });
      expect(memory.stats()).toMatchObject({ instances: 3, scratchBytes: 0 });
      expect(memory.stats().committedBytes).toBeGreaterThan(5000);
      expect(memory.stats().leafBytes).toBeGreaterThan(50_000);
      await first.stop();
      expect(memory.stats()).toMatchObject({ instances: 2, committedBytes: 0 });
      // A read that is under way when the database stops.
      const late = second.query(notes).where('text', '!=', null).execute();
      late.catch(() => undefined);
      await Promise.all([second.stop(), third.stop()]);
      await late.catch(() => undefined);
      expect(memory.stats()).toMatchObject(nothing);
    }
    const empty = new MemoryDriver();
    const reading = StoreDb({
      dbPrefix: 'none',
      nodeId: 1,
      role: 'replica',
      driver: empty,
      logLevel: 'silent',
      memory,
    });
    await expect(reading.start()).rejects.toThrow(/no database/i);
    expect(memory.stats()).toMatchObject(nothing);
  });

  it('leaves an instance with a limit of its own within it, and others the rest', async () => {
    const driver = new MemoryDriver();
    await makeTenants(driver, 2, 6000);
    const memory = new MemoryBudget(8 * mebibyte);
    const bound = await start(driver, 0, { memory, maxMemoryBytes: mebibyte });
    const free = await start(driver, 1, { memory });
    for (const db of [bound, free]) for (let id = 0; id < 6000; id += 3) await db.get(notes, id);
    expect(bound.stats().cache.sizeBytes).toBeLessThanOrEqual(mebibyte / 2);
    expect(free.stats().cache.sizeBytes).toBeGreaterThan(mebibyte / 2);
    expect(bound.stats().memory).toMatchObject({ maxBytes: mebibyte });
    await expect(bound.query(notes).orderBy('text').execute()).rejects.toThrow(/maxMemoryBytes \(1048576\)/);
    expect(await free.query(notes).orderBy('text').execute()).toHaveLength(6000);
  });

  it('merges the pending commits of all databases if they are too much, idle ones first', async () => {
    const driver = new MemoryDriver();
    const memory = new MemoryBudget(2 * mebibyte);
    const lazy = { memory, mergePolicy: { minCommits: 2000, maxWaitMs: 86_400_000 } } as const;
    const tenants = await startAll(driver, 6, lazy);
    let most = 0;
    for (let round = 0; round < 12; round++) {
      for (const [i, db] of tenants.entries()) {
        if (i > 0 && round > 2) continue;
        await write(db, i, round * 200, 200);
        most = Math.max(most, memory.stats().committedBytes);
      }
    }
    expect(most).toBeGreaterThan(mebibyte / 8);
    expect(most).toBeLessThan(mebibyte * 0.7);
    await vi.waitFor(() => expect(memory.stats().committedBytes).toBeLessThanOrEqual(mebibyte / 4));
    const merges = tenants.map((db) => db.stats().merges?.merges ?? 0);
    expect(merges.filter((count) => count > 0).length).toBeGreaterThan(2);
    for (const [i, db] of tenants.entries()) expect(await db.query(notes).count()).toBe(i === 0 ? 2400 : 600);
  });
});

describe('the option memory', () => {
  it('takes a budget of another copy of the package', async () => {
    vi.resetModules();
    const other = await import('../../../src/index.ts');
    expect(other.MemoryBudget).not.toBe(MemoryBudget);
    const memory = new other.MemoryBudget(2 * mebibyte);
    const driver = new MemoryDriver();
    const db = await start(driver, 0, { memory });
    await write(db, 0, 0, 2000);
    await db.checkpoint();
    for (let id = 0; id < 2000; id++) await db.get(notes, id);
    expect(memory.stats()).toMatchObject({ instances: 1, leafBytes: db.stats().memory?.leafBytes });
    expect(memory.stats().leafBytes).toBeGreaterThan(100_000);
    await db.stop();
    expect(memory.stats()).toMatchObject({ instances: 0, leafBytes: 0 });
  });

  it.each([undefined, null, '256 MB', 0, -1, 1.5, 1000, 1024 * 1024 - 1, Number.NaN, Infinity, 100n])(
    'refuses a budget of %s bytes, and names the limits',
    (bytes) => {
      const make = (): MemoryBudget => new MemoryBudget(bytes as number);
      expect(make).toThrow(InvalidOptionError);
      expect(make).toThrow(/^new MemoryBudget\(\) was given .*an integer of at least 1048576 \(1 MiB\)/);
    },
  );

  it('refuses a bound of an instance above the budget', () => {
    const memory = new MemoryBudget(mebibyte);
    const make = (): Database =>
      StoreDb({ dbPrefix: 'app', nodeId: 0, driver: new MemoryDriver(), memory, maxMemoryBytes: mebibyte + 1 });
    expect(make).toThrow(InvalidOptionError);
    expect(make).toThrow(
      /`maxMemoryBytes` of StoreDb\(\) is 1048577; it must be at most 1048576, all that the MemoryBudget/,
    );
  });
});
