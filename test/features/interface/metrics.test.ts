/** The figures of an instance: statistics on demand, and a hook that is called after every request. */
import { describe, expect, it, vi } from 'vitest';
import { costOf, StoreDb, Types } from '../../../src/index.ts';
import type { CacheDriver, Database, StoreDbOptions } from '../../../src/index.ts';
import { MemoryDriver } from '../../../src/storage/index.ts';
import type { ObservedRequest } from '../../../src/storage/index.ts';

const notes = {
  name: 'notes',
  version: 1,
  fields: { id: { typeId: Types.int32 }, text: { typeId: Types.varchar } },
  primaryKey: 'id',
} as const;
/** Larger than what Block 0 can hold, so that there are blocks. */
const rows = 3000;

async function started(options: Partial<StoreDbOptions> = {}): Promise<Database> {
  const quiet = { dbPrefix: 'app', nodeId: 0, logLevel: 'silent', writeForwardInterval: 86_400_000 } as const;
  const db = StoreDb({ driver: new MemoryDriver(), ...quiet, ...options });
  db.registerSchema(notes);
  await db.start();
  return db;
}

async function load(db: Database): Promise<void> {
  const batch = db.batch();
  for (let id = 0; id < rows; id++) void batch.insert(notes, { id, text: `note ${id} `.repeat(10) });
  await batch.flush();
  await db.checkpoint();
}

describe('the requests in stats()', () => {
  it('equals their price on S3', async () => {
    const db = await started();
    await load(db);
    const { requests, dollars, uptimeMs } = db.stats();
    expect(requests.put).toBeGreaterThan(2);
    expect(dollars).toBe(costOf(requests));
    expect(dollars).toBeGreaterThan(requests.put * 0.000005);
    expect(uptimeMs).toBeGreaterThan(0);
    await db.stop();
    expect(db.stats().uptimeMs).toBeGreaterThanOrEqual(uptimeMs);
    // It has left the list of nodes, with one write.
    expect(db.stats().dollars).toBeCloseTo(dollars + 0.000005, 10);
  });

  it('follows the price table of the options', async () => {
    const prices = { per1000Writes: 1000, per1000Reads: 0, per1000Lists: 0, per1000Deletes: 0, perGigabyteRead: 0 };
    const db = await started({ prices });
    await load(db);
    const { requests, dollars } = db.stats();
    expect(dollars).toBe(requests.put);
    await db.stop();
  });
});

describe('the tables in stats()', () => {
  it('have the requests for their blocks and those of their indexes', async () => {
    const seen: ObservedRequest[] = [];
    const db = await started({ onRequest: (request) => void seen.push(request) });
    const odd = { ...notes, name: 'ta/ble %', indexes: ['text'] };
    db.registerSchema(odd);
    await load(db);
    const batch = db.batch();
    for (let id = 0; id < rows; id++) void batch.insert(odd, { id, text: `note ${id} `.repeat(10) });
    await batch.flush();
    await db.checkpoint();
    const { tables, requests } = db.stats();
    expect(tables.map(({ table }) => table)).toEqual(['ta/ble %', 'notes']);
    const ofNotes = seen.filter(({ key }) => key.startsWith('app/data/notes/'));
    const sum = (parts: readonly ObservedRequest[]): number => parts.reduce((all, { bytes }) => all + bytes, 0);
    expect(tables[1]).toEqual({
      table: 'notes',
      reads: ofNotes.filter(({ kind }) => kind === 'get').length,
      writes: ofNotes.filter(({ kind }) => kind === 'put').length,
      bytes: sum(ofNotes),
    });
    expect(tables[0]?.writes).toBeGreaterThan(tables[1]?.writes ?? 0);
    expect(tables.reduce((all, { writes }) => all + writes, 0)).toBeLessThan(requests.put);
    await db.stop();
  });
});

describe('the polling and the turn in stats()', () => {
  it('are those of the options and of the registered nodes', async () => {
    const driver = new MemoryDriver();
    const db = await started({ driver, polling: 'interval' });
    await load(db);
    expect(db.stats().polling).toEqual({ mode: 'interval', intervalMs: 86_400_000 });
    expect(db.stats().log).toMatchObject({ nodes: [0], turnOf: 0 });
    await db.stop();
    const replica = await started({ driver, role: 'replica' });
    expect(replica.stats()).toMatchObject({ polling: { mode: 'adaptive' }, log: { nodes: [], turnOf: null } });
    await replica.stop();
  });
});

describe('the cache in stats()', () => {
  it('is where blocks were found', async () => {
    const driver = new MemoryDriver();
    const kept = new Map<string, Uint8Array>();
    const second: CacheDriver = {
      get: (key) => kept.get(key),
      set: (key, block) => void kept.set(key, block),
      delete: (key) => void kept.delete(key),
    };
    const writer = await started({ driver });
    await load(writer);
    expect(writer.stats().cache).toMatchObject({ driverHits: 0, misses: 0 });
    await writer.stop();
    expect(writer.stats().cache).toEqual({ blocks: 0, sizeBytes: 0, hits: 0, driverHits: 0, misses: 0 });

    const reader = await started({ driver, cacheDriver: second });
    await reader.get(notes, 1);
    expect(reader.stats().cache).toMatchObject({ blocks: 1, hits: 0, driverHits: 0, misses: 1 });
    await reader.get(notes, 2);
    await reader.get(notes, 3);
    expect(reader.stats().cache).toMatchObject({ hits: 2, misses: 1 });
    const { requests } = reader.stats();
    expect(await reader.query(notes).where('text', '!=', null).execute()).toHaveLength(rows);
    const { hits, misses } = reader.stats().cache;
    expect(hits).toBe(3);
    expect(misses - 1).toBe(reader.stats().requests.get - requests.get);
    await reader.stop();

    const again = await started({ driver, cacheDriver: second });
    await again.get(notes, 1);
    await again.get(notes, 1);
    expect(again.stats().cache).toMatchObject({ hits: 1, driverHits: 1, misses: 0 });
    await again.stop();
  });

  it('counts a root that is no part of Block 0 as well', async () => {
    const driver = new MemoryDriver();
    const options = { driver, blockSizeBytes: 16 * 1024 * 1024 };
    const writer = await started(options);
    await load(writer);
    await writer.stop();
    const reader = await started(options);
    for (let id = 0; id < 5; id++) await reader.get(notes, id);
    expect(reader.stats().cache).toMatchObject({ blocks: 1, hits: 4, misses: 1 });
    await reader.stop();
  });
});

describe('onRequest', () => {
  it('is called for every request', async () => {
    const seen: ObservedRequest[] = [];
    const db = await started({ onRequest: (request) => seen.push(request) });
    await load(db);
    const { requests } = db.stats();
    const ofKind = (kind: ObservedRequest['kind']): number => seen.filter((request) => request.kind === kind).length;
    expect(ofKind('put')).toBe(requests.put);
    expect(ofKind('get')).toBe(requests.get + requests.getMissing + requests.getUnchanged);
    expect(ofKind('list')).toBe(1);
    expect(seen.at(-1)).toMatchObject({ kind: 'put', key: 'app/block0', status: 'written' });
    await db.stop();
  });

  it.each([
    [
      'throws',
      (): void => {
        throw new Error('no metrics');
      },
    ],
    [
      'rejects',
      async (): Promise<void> => {
        throw new Error('no metrics');
      },
    ],
  ])('that %s disturbs nothing, and is logged once', async (_, onRequest) => {
    const warn = vi.fn();
    const none = vi.fn();
    const logger = { debug: none, info: none, warn, error: none };
    const db = await started({ onRequest, logger, logLevel: 'warn' });
    await load(db);
    expect(await db.query(notes).count()).toBe(rows);
    expect(db.stats().requests.errors).toBe(0);
    await db.stop();
    expect(warn).toHaveBeenCalledTimes(1);
    expect(warn.mock.calls[0]).toMatchObject([
      expect.stringContaining('onRequest'),
      { error: { message: 'no metrics' } },
    ]);
  });
});
