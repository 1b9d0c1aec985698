/** The channels of `node:diagnostics_channel`: what is told, in which order, with which payload, and what is not. */
import { AsyncLocalStorage } from 'node:async_hooks';
import { subscribe, tracingChannel, unsubscribe } from 'node:diagnostics_channel';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { StoreDb, Types } from '../../../src/index.ts';
import type { Database, StoreDbOptions } from '../../../src/index.ts';
import { FileDriver, MemoryDriver } from '../../../src/storage/index.ts';
import type { StorageDriver } from '../../../src/storage/index.ts';

const fields = { id: { typeId: Types.uint32 }, text: { typeId: Types.varchar } };
const notes = { name: 'notes', version: 1, fields, primaryKey: 'id' } as const;
const names = ['flush', 'query', 'get', 'merge', 'gc', 'migration', 'request'] as const;
type Name = (typeof names)[number];

/** An event: the name of the channel, that of the event, and the payload. */
type Event = readonly [name: string, event: string, payload: Record<string, unknown>];

const closing: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close();
});

/** Listens to channels until the test ends. */
function listen(...heard: readonly Name[]): Event[] {
  const events: Event[] = [];
  for (const name of heard) {
    const on = (event: string) => (payload: object) =>
      void events.push([name, event, payload as Record<string, unknown>]);
    const listeners = {
      start: on('start'),
      end: on('end'),
      asyncStart: on('asyncStart'),
      asyncEnd: on('asyncEnd'),
      error: on('error'),
    };
    const channel = tracingChannel(`store-db:${name}`);
    channel.subscribe(listeners);
    closing.push(() => channel.unsubscribe(listeners));
  }
  return events;
}

async function opened(driver: StorageDriver = new MemoryDriver(), options: Partial<StoreDbOptions> = {}) {
  const quiet = { dbPrefix: 'app', nodeId: 0, logLevel: 'silent', writeForwardInterval: 86_400_000 } as const;
  const db = StoreDb({ driver, ...quiet, ...options });
  db.registerSchema(notes);
  await db.start();
  closing.push(() => db.stop());
  return db;
}

async function write(db: Database, from: number, to: number): Promise<void> {
  const batch = db.batch();
  for (let id = from; id < to; id++) void batch.upsert(notes, { id, text: `note ${id} `.repeat(20) });
  await batch.flush();
}

/** A database whose rows are in blocks, and of which nothing is in memory. */
async function cold(driver: StorageDriver): Promise<Database> {
  const first = await opened(driver);
  await write(first, 0, 3000);
  await first.checkpoint();
  await first.stop();
  return opened(driver);
}

function payloads(events: readonly Event[], name: Name, event = 'start'): Record<string, unknown>[] {
  return events.filter(([of, kind]) => of === name && kind === event).map(([, , payload]) => payload);
}

describe.each(['memory', 'folder'])('the channels of a database in %s', (kind) => {
  async function driver(): Promise<StorageDriver> {
    if (kind === 'memory') return new MemoryDriver();
    const folder = await mkdtemp(path.join(tmpdir(), 'channels-'));
    closing.push(() => rm(folder, { recursive: true, force: true }));
    return new FileDriver(folder);
  }

  it('tell flushes, merges and gc with their payloads', async () => {
    const db = await opened(await driver());
    const events = listen('flush', 'merge', 'gc');
    await write(db, 0, 3);
    expect(events.map(([name, event]) => `${name} ${event}`)).toEqual([
      'flush start',
      'flush end',
      'flush asyncStart',
      'flush asyncEnd',
    ]);
    expect(payloads(events, 'flush')).toMatchObject([{ database: 'app', tables: ['notes'] }]);
    expect(payloads(events, 'flush')[0]?.['sizeBytes']).toBeGreaterThan(100);
    await db.checkpoint();
    expect(payloads(events, 'merge')).toMatchObject([{ database: 'app', commits: 1, position: 1, result: true }]);
    const report = await db.gc({ dryRun: true });
    expect(payloads(events, 'gc', 'asyncEnd')).toMatchObject([{ database: 'app', dryRun: true, result: report }]);
  });

  it('tell queries, gets beyond memory, and each request', async () => {
    const db = await cold(await driver());
    const events = listen('query', 'get', 'request');
    expect(await db.get(notes, 1500)).toMatchObject({ id: 1500 });
    expect(payloads(events, 'get')).toMatchObject([{ database: 'app', table: 'notes' }]);
    const [request] = payloads(events, 'request');
    expect(request).toMatchObject({ database: 'app', kind: 'get', result: { status: 'found' } });
    expect(request?.['key']).toMatch(/^app\/data\/notes\//);
    const before = db.stats().requests.get;
    expect(await db.get(notes, 1500)).toMatchObject({ id: 1500 });
    expect(await db.get(notes, 9999).then(() => payloads(events, 'get').length)).toBeLessThanOrEqual(2);
    expect(await db.query(notes).where('id', '<', 3).execute()).toHaveLength(3);
    expect(payloads(events, 'query')).toMatchObject([{ database: 'app', table: 'notes' }]);
    const requested = payloads(events, 'request').filter(({ kind: asked }) => asked === 'get').length;
    expect(requested).toBe(db.stats().requests.get - before + 1);
  });
});

it('tell nothing of a get from memory', async () => {
  const db = await opened();
  await write(db, 0, 3);
  const events = listen('get', 'query', 'request');
  expect(await db.get(notes, 1)).toMatchObject({ id: 1 });
  expect(await db.get(notes, 7)).toBeUndefined();
  expect(events).toEqual([]);
});

it('tell who listens to the end alone only of queries that waited', async () => {
  const db = await cold(new MemoryDriver());
  const heard: Record<string, unknown>[] = [];
  const listener = (payload: unknown): void => void heard.push(payload as Record<string, unknown>);
  const ending = 'tracing:store-db:query:asyncEnd';
  subscribe(ending, listener);
  closing.push(() => unsubscribe(ending, listener));
  for (let time = 0; time < 2; time++) {
    expect(await db.query(notes).where('id', '=', 5).execute()).toHaveLength(1);
    expect(heard).toMatchObject([{ database: 'app', table: 'notes', waited: true }]);
  }
  unsubscribe(ending, listener);
  const events = listen('query');
  await db.query(notes).where('id', '=', 5).execute();
  expect(payloads(events, 'query', 'asyncEnd')).toMatchObject([{ waited: false }]);
});

it('tell of queries of transactions and snapshots, and of the flush of a transaction', async () => {
  const db = await opened();
  await write(db, 0, 3);
  const events = listen('flush', 'query');
  await db.transaction(async (tx) => {
    await tx.query(notes).where('text', '=', 'none').execute();
    await tx.upsert(notes, { id: 9, text: 'nine' });
  });
  expect(payloads(events, 'query')).toHaveLength(1);
  expect(payloads(events, 'flush')).toMatchObject([{ tables: ['notes'] }]);
  const snapshot = await db.snapshot();
  await snapshot.query(notes).count();
  expect(payloads(events, 'query')).toHaveLength(2);
  await snapshot.release();
});

it('tell the error of work that fails, which is the error that the caller gets', async () => {
  const db = await opened();
  await write(db, 0, 3);
  const events = listen('flush');
  const batch = db.batch();
  void batch.insert(notes, { id: 1, text: 'twice' });
  const error = await batch.flush().catch((caught: unknown) => caught);
  expect(error).toMatchObject({ code: 'DUPLICATE_KEY' });
  expect(events.map(([, event]) => event)).toEqual(['start', 'end', 'error', 'asyncStart', 'asyncEnd']);
  expect(payloads(events, 'flush', 'error')[0]?.['error']).toBe(error);
});

it('tell the portions of a migration', async () => {
  const store = new MemoryDriver();
  const db = await opened(store, { writeForwardInterval: 20 });
  await write(db, 0, 3);
  await db.checkpoint();
  db.registerSchema({ ...notes, version: 2, fields: { ...fields, more: { typeId: Types.varchar } } });
  const events = listen('migration');
  await db.setTargetSchemaVersion('notes', 2);
  await expect.poll(async () => (await db.migrationStatus('notes')).state, { timeout: 20_000 }).toBe('switched');
  expect(payloads(events, 'migration')[0]).toMatchObject({ database: 'app', work: 'A migration' });
});

it('run the work of a timer outside of the call that has set it', async () => {
  const calls = new AsyncLocalStorage<string>();
  const contexts: (string | undefined)[] = [];
  const channel = tracingChannel('store-db:request');
  const listeners = { start: () => void contexts.push(calls.getStore()), asyncEnd: () => undefined };
  channel.subscribe(listeners as never);
  closing.push(() => channel.unsubscribe(listeners as never));
  const db = await calls.run('a call', () =>
    opened(new MemoryDriver(), { writeForwardInterval: 20, polling: 'interval' }),
  );
  await calls.run('a call', () => db.refresh());
  expect(contexts.length).toBeGreaterThan(0);
  expect(new Set(contexts)).toEqual(new Set(['a call']));
  await expect.poll(() => contexts.includes(undefined), { timeout: 20_000 }).toBe(true);
});
