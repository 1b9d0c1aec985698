/** A database that is updated for long and collected regularly takes no more space than its contents. */
import { expect, it } from 'vitest';
import { defineSchema, StoreDb, Types } from '../../../src/index.ts';
import { MemoryDriver } from '../../../src/storage/index.ts';
import { SeededRandom } from '../../../src/testing/seeded-random.ts';
import { superfluousNames } from './reachable.ts';

const rows = 10_000;
const updates = 100_000;
const updatesPerRun = 1000;

const counters = defineSchema({
  name: 'counters',
  version: 1,
  fields: { id: { typeId: Types.uint32 }, count: { typeId: Types.uint32 }, text: { typeId: Types.varchar } },
  primaryKey: 'id',
  indexes: ['count'],
});

async function sizeOf(store: MemoryDriver): Promise<{ objects: number; bytes: number }> {
  let objects = 0;
  let bytes = 0;
  for (let after: string | undefined; ; ) {
    const { entries, more } = await store.list('db/', after === undefined ? {} : { after });
    objects += entries.length;
    for (const { sizeBytes } of entries) bytes += sizeBytes;
    after = entries.at(-1)?.key;
    if (!more) return { objects, bytes };
  }
}

it(`${updates} updates of ${rows} rows leave no more than the live set`, { timeout: 120_000 }, async ({ annotate }) => {
  const store = new MemoryDriver();
  const db = StoreDb({
    dbPrefix: 'db',
    nodeId: 0,
    driver: store,
    blockSizeBytes: 16_384,
    writeForwardInterval: 86_400_000,
    logLevel: 'silent',
  });
  db.registerSchema(counters);
  await db.start();
  const load = db.batch();
  const expected = new Uint32Array(rows);
  for (let id = 0; id < rows; id++) void load.insert(counters, { id, count: 0, text: `text of row ${id}` });
  await load.flush();
  await db.checkpoint();
  await db.gc({ loopGraceMs: 0, logRetentionMs: 0 });
  const live = await sizeOf(store);
  const random = new SeededRandom('growth');
  let deleted = 0;
  let most = 0;
  for (let done = 0; done < updates; done += updatesPerRun) {
    const batch = db.batch();
    for (let i = 0; i < updatesPerRun; i++) {
      const id = random.integer(0, rows - 1);
      expected[id] = (expected[id] as number) + 1;
      void batch.update(counters, { id, count: expected[id] });
    }
    await batch.flush();
    await db.checkpoint();
    deleted += (await db.gc({ loopGraceMs: 0, logRetentionMs: 0 })).deletedCount;
    expect(await superfluousNames(store, 'db')).toEqual([]);
    most = Math.max(most, (await sizeOf(store)).bytes);
  }
  const left = await sizeOf(store);
  await annotate(JSON.stringify({ live, left, most, deleted }));
  // Blocks that are rewritten again and again are not always as full as those of a load.
  expect(most).toBeLessThan(live.bytes * 1.7);
  expect(left.objects).toBeLessThan(live.objects * 2);
  expect(deleted).toBeGreaterThan(2000);
  const stored = await db.query(counters).execute();
  expect(stored.map(({ count }) => count)).toEqual([...expected]);
  expect(await db.verify()).toMatchObject({ ok: true });
  await db.stop();
});
