/** Rows that expire: what shows them, what takes their places, and when they are deleted. */
import { beforeEach, describe, expect, it } from 'vitest';
import { createDatabase } from '../../../src/api/database.ts';
import type { Database } from '../../../src/api/database.ts';
import { sleep } from '../../../src/base/env.ts';
import { Types } from '../../../src/format/types.ts';
import type { StoreDbOptions } from '../../../src/instance/options.ts';
import { defineSchema } from '../../../src/schema/define-schema.ts';
import { MemoryDriver } from '../../../src/storage/memory-driver.ts';
import { VirtualEnvironment } from '../../../src/testing/virtual-environment.ts';

const minuteMs = 60_000;
const sessions = defineSchema({
  name: 'sessions',
  version: 1,
  fields: {
    id: { typeId: Types.int32 },
    user: { typeId: Types.varchar },
    seen: { typeId: Types.timestamp },
    hits: { typeId: Types.int32 },
    photo: { typeId: Types.blob },
  },
  primaryKey: 'id',
  indexes: ['seen', 'user'],
  expireAfter: { field: 'seen', seconds: 600 },
});

let clock: VirtualEnvironment;
let store: MemoryDriver;
let db: Database;

async function open(nodeId = 1, options: Partial<StoreDbOptions> = {}, skewMs = 0): Promise<Database> {
  const environment = clock.fork({ seed: `node ${nodeId}` });
  environment.skewMs = skewMs;
  const driver = environment.connect(store);
  const given = { dbPrefix: 'db', nodeId, logLevel: 'silent', driver, writeForwardInterval: 5000, ...options } as const;
  const opened = createDatabase(given, environment);
  opened.registerSchema(sessions);
  await clock.run(opened.start());
  return opened;
}

/** A time some minutes from now. */
function inMinutes(minutes: number): Date {
  return new Date(clock.now() + minutes * minuteMs);
}

async function put(on: Database, rows: readonly { id: number; user?: string; seen?: Date | null }[]): Promise<void> {
  const batch = on.batch();
  for (const row of rows) void batch.upsert(sessions, { user: 'ann', hits: 1, ...row });
  await clock.run(batch.flush());
}

/** The ids of the rows that are stored, expired or not, as the log tells. */
async function storedIds(): Promise<number[]> {
  const raw = createDatabase(
    { dbPrefix: 'db', nodeId: 99, logLevel: 'silent', driver: store, role: 'replica' },
    clock.fork({ seed: 'raw', startMs: 0 }),
  );
  raw.registerSchema(sessions);
  await clock.run(raw.start());
  const rows = await clock.run(raw.query(sessions).execute());
  await clock.run(raw.stop());
  return rows.map(({ id }) => id);
}

beforeEach(async () => {
  clock = new VirtualEnvironment({ seed: 'store' });
  store = new MemoryDriver({ environment: clock });
  db = await open(1, { blockSizeBytes: 2048 });
});

describe('reads of a table whose rows expire', () => {
  it.each(['log', 'trees'])('do not show a row that has expired, from the %s', async (place) => {
    await put(db, [
      { id: 1, seen: inMinutes(-9) },
      { id: 2, seen: inMinutes(5) },
      { id: 3, seen: null },
    ]);
    if (place === 'trees') await clock.run(db.checkpoint());
    expect(await clock.run(db.get(sessions, 1))).toMatchObject({ id: 1 });
    expect(await clock.run(db.query(sessions).count())).toBe(3);
    await clock.advance(2 * minuteMs);

    const all = db.query(sessions);
    expect(await clock.run(db.get(sessions, 1))).toBeUndefined();
    expect(db.getCached(sessions, 1)).toBeNull();
    expect(db.getCached(sessions, 2)).toMatchObject({ id: 2 });
    expect(await clock.run(all.where('id', '=', 1).execute())).toEqual([]);
    expect(await clock.run(all.where('id', 'IN', [1, 2]).count())).toBe(1);
    expect((await clock.run(all.execute())).map(({ id }) => id)).toEqual([2, 3]);
    expect(await clock.run(all.count())).toBe(2);
    expect(await clock.run(all.where('user', '=', 'ann').count())).toBe(2);
    expect(await clock.run(all.where('seen', '!=', null).count())).toBe(1);
    expect(await clock.run(all.min('seen'))).toEqual(inMinutes(3));
    expect(await clock.run(all.min('id'))).toBe(2);
    expect(await clock.run(all.aggregate({ rows: 'count', hits: { sum: 'hits' } }))).toEqual({ rows: 2, hits: 2 });
    expect(await clock.run(all.groupBy('user').aggregate({ rows: 'count' }))).toEqual([{ user: 'ann', rows: 2 }]);
    expect((await clock.run(all.orderBy('seen', 'desc').limit(5).execute())).map(({ id }) => id)).toEqual([2, 3]);
    const first = await clock.run(all.page({ size: 1 }));
    expect(first.rows.map(({ id }) => id)).toEqual([2]);
    await clock.advance(minuteMs);
    const next = await clock.run(all.page({ size: 1, after: first.next }));
    expect(next.rows.map(({ id }) => id)).toEqual([3]);
    const explained = await clock.run(all.where('user', '=', 'ann').explain());
    expect(explained.filters).toContain('seen');
  });

  it('count by the index of the field, and read a small part of the table', async () => {
    await put(
      db,
      Array.from({ length: 3000 }, (_, id) => ({ id, seen: inMinutes(id < 2000 ? -9 : 100) })),
    );
    await clock.run(db.checkpoint());
    await clock.advance(2 * minuteMs);
    expect(await clock.run(db.query(sessions).count())).toBe(1000);
    const cold = await open(2, { blockSizeBytes: 2048 });
    const before = cold.stats().requests.get;
    expect(await clock.run(cold.query(sessions).count())).toBe(1000);
    expect(cold.stats().requests.get - before).toBeLessThan(5);
    expect(await clock.run(cold.query(sessions).execute())).toHaveLength(1000);
    expect(cold.stats().requests.get - before).toBeGreaterThan(50);
    await clock.run(cold.stop());
  });

  it('hide a row by the clock of the instance that reads', async () => {
    const fast = await open(2, {}, 3 * minuteMs);
    await put(db, [{ id: 1, seen: inMinutes(-8) }]);
    await clock.run(fast.refresh());
    expect(await clock.run(fast.get(sessions, 1))).toBeUndefined();
    expect(await clock.run(db.get(sessions, 1))).toMatchObject({ id: 1 });
    await clock.run(fast.stop());
  });

  it('show in a snapshot and in a transaction what had not expired when it began', async () => {
    await put(db, [{ id: 1, seen: inMinutes(-9) }]);
    const beganAt = new Date(clock.now());
    const snapshot = await clock.run(db.snapshot());
    const inTransaction = await clock.run(
      db.transaction(async (tx) => {
        const before = await tx.get(sessions, 1);
        await sleep(clock, 2 * minuteMs);
        return [before?.id, (await tx.get(sessions, 1))?.id];
      }),
    );
    expect(inTransaction).toEqual([1, 1]);
    expect(await clock.run(snapshot.get(sessions, 1))).toMatchObject({ id: 1 });
    expect(await clock.run(db.get(sessions, 1))).toBeUndefined();
    const earlier = await clock.run(db.at(beganAt));
    expect(await clock.run(earlier.query(sessions).count())).toBe(1);
    await clock.run(snapshot.release());
    await clock.run(earlier.release());
  });
});

describe('writes to a table whose rows expire', () => {
  beforeEach(async () => {
    const batch = db.batch();
    void batch.insert(sessions, { id: 1, user: 'old', hits: 7, seen: inMinutes(-9), photo: db.Blob('picture') });
    await clock.run(batch.flush());
    await clock.advance(2 * minuteMs);
  });

  it('insert a row in the place of an expired one, whose blob goes', async () => {
    const photos = await clock.run(db.query('_blobs').count());
    expect(photos).toBe(1);
    const batch = db.batch();
    void batch.insert(sessions, { id: 1, user: 'new', seen: inMinutes(0) });
    await clock.run(batch.flush());
    expect(await clock.run(db.get(sessions, 1))).toMatchObject({ user: 'new', hits: null, photo: null });
    expect(await clock.run(db.query('_blobs').count())).toBe(0);
    expect(await clock.run(db.query(sessions).where('user', '=', 'old').count())).toBe(0);
  });

  it('refuse to update an expired row, or to add to it', async () => {
    const update = db.batch();
    void update.update(sessions, { id: 1, seen: inMinutes(0) });
    await expect(clock.run(update.flush())).rejects.toMatchObject({ code: 'ROW_NOT_FOUND' });
    const increment = db.batch();
    void increment.increment(sessions, 1, { hits: 1 });
    await expect(clock.run(increment.flush())).rejects.toMatchObject({ code: 'ROW_NOT_FOUND' });
  });

  it('take an upsert for that of a new row', async () => {
    const batch = db.batch();
    void batch.upsert(sessions, { id: 1, seen: inMinutes(0) });
    expect(await clock.run(db.query(sessions).overlay(batch).execute())).toMatchObject([{ id: 1, user: null }]);
    await clock.run(batch.flush());
    expect(await clock.run(db.get(sessions, 1))).toMatchObject({ user: null, hits: null });
  });

  it('tell triggers of an insert, not of an update', async () => {
    const seen: unknown[] = [];
    db.registerTrigger(sessions, '*', (_, __, ___, operation, before) => void seen.push([operation, before]));
    const batch = db.batch();
    void batch.upsert(sessions, { id: 1, seen: inMinutes(0) });
    await clock.run(batch.flush());
    expect(seen).toEqual([['insert', undefined]]);
  });
});

describe('the deletion of expired rows', () => {
  it('waits for five minutes, and takes their blobs with them', async () => {
    const batch = db.batch();
    void batch.insert(sessions, { id: 1, seen: inMinutes(0), photo: db.Blob('picture') });
    void batch.insert(sessions, { id: 2, seen: inMinutes(60) });
    void batch.insert(sessions, { id: 3, seen: null });
    await clock.run(batch.flush());
    await clock.advance(14.9 * minuteMs);
    expect(await storedIds()).toEqual([1, 2, 3]);
    await clock.advance(minuteMs);
    expect(await storedIds()).toEqual([2, 3]);
    expect(await clock.run(db.query('_blobs').count())).toBe(0);
    expect(await clock.run(db.verify())).toMatchObject({ ok: true });
  });

  it('says so in the changes, fires no triggers, and takes commits of at most 1,000 rows', async () => {
    await put(
      db,
      Array.from({ length: 2500 }, (_, id) => ({ id, seen: inMinutes(0) })),
    );
    const fired: unknown[] = [];
    db.registerTrigger(sessions, '*', () => void fired.push(1));
    const { position } = db;
    await clock.advance(17 * minuteMs);
    expect(await storedIds()).toEqual([]);
    const sizes: number[] = [];
    for await (const commit of db.changes({ after: position })) {
      const changes = await clock.run(commit.toArray());
      expect(changes[0]).toEqual({
        table: 'sessions',
        version: 1,
        operation: 'delete',
        key: changes[0]?.key,
        expired: true,
      });
      sizes.push(changes.length);
      if (sizes.reduce((sum, size) => sum + size, 0) >= 2500) break;
    }
    expect(sizes).toEqual([1000, 1000, 500]);
    expect(fired).toEqual([]);
  });

  it('leaves a row that another instance gives a later time meanwhile', async () => {
    await put(db, [{ id: 1, seen: inMinutes(0) }]);
    await clock.advance(14.9 * minuteMs);
    const slow = await open(2, {}, -5 * minuteMs);
    const batch = slow.batch();
    void batch.update(sessions, { id: 1, seen: inMinutes(0) });
    await clock.run(batch.flush());
    await clock.advance(2 * minuteMs);
    expect(await storedIds()).toEqual([1]);
    expect(await clock.run(db.get(sessions, 1))).toMatchObject({ id: 1 });
    await clock.run(slow.stop());
  });

  it('deletes nothing early by a clock that is less than five minutes ahead', async () => {
    const fast = await open(2, {}, 4.9 * minuteMs);
    await put(db, [{ id: 1, seen: inMinutes(0) }]);
    await clock.advance(10 * minuteMs);
    expect(await storedIds()).toEqual([1]);
    await clock.run(fast.stop());
  });

  it('makes no commit where nothing has expired', async () => {
    await put(db, [{ id: 1, seen: inMinutes(100) }]);
    await clock.advance(minuteMs);
    const { position } = db;
    await clock.advance(60 * minuteMs);
    expect(db.position).toBe(position);
  });

  it('costs an idle instance no request', async () => {
    await put(db, [{ id: 1, seen: inMinutes(1000) }]);
    await clock.advance(30 * minuteMs);
    const before = db.stats().requests;
    await clock.advance(60 * minuteMs);
    const after = db.stats().requests;
    expect(after).toMatchObject({ put: before.put });
  });
});
