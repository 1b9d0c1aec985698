/**
 * Batches whose keys lie where no rows are: nothing is looked up for them. Wherever there is a row among them, or was, they
 * are rejected or not as any others are.
 */
import { describe, expect, it } from 'vitest';
import { defineSchema, Types } from '../../../src/index.ts';
import type { Batch, Database } from '../../../src/index.ts';
import { openDatabase } from '../values/open-database.ts';

const items = defineSchema({
  name: 'items',
  version: 1,
  fields: { id: { typeId: Types.uint32 }, name: { typeId: Types.varchar } },
  primaryKey: 'id',
});

function inserts(db: Database, from: number, to: number, step = 1): Batch {
  const batch = db.batch();
  for (let id = from; id < to; id += step) void batch.insert(items, { id, name: `row ${id}` });
  return batch;
}

/** The flush must be rejected with this code, for this key. */
async function rejected(batch: Batch, code: 'DUPLICATE_KEY' | 'ROW_NOT_FOUND', primaryKey: number): Promise<void> {
  await expect(batch.flush()).rejects.toMatchObject({ code, primaryKey });
}

/** Where the rows are that a batch meets: in a block, in a commit that is not merged, or below a newer one. */
const places: Readonly<Record<string, (db: Database) => Promise<void>>> = {
  'in blocks': (db) => db.checkpoint(),
  'in a commit that waits': async () => {},
  'below other commits that wait': (db) => inserts(db, 50_000, 50_100).flush(),
};

describe('a batch of many rows', () => {
  for (const [place, settle] of Object.entries(places)) {
    it(`is rejected for an existing key, ${place}`, async () => {
      const db = await openDatabase([items]);
      await inserts(db, 0, 10_000, 100).flush();
      await settle(db);
      for (const taken of [0, 100, 5000, 9900]) {
        const [from, to] = [Math.max(0, taken - 5), taken + 6];
        await rejected(inserts(db, from, to), 'DUPLICATE_KEY', taken);
        // At either end of the keys, too.
        await rejected(inserts(db, taken, taken + 8), 'DUPLICATE_KEY', taken);
        if (taken > 0) await rejected(inserts(db, taken - 8, taken + 1), 'DUPLICATE_KEY', taken);
      }
      await inserts(db, 1, 100).flush();
      await inserts(db, 9901, 9990).flush();
      await rejected(inserts(db, 1, 100), 'DUPLICATE_KEY', 1);
      expect(await db.query(items).where('id', '<', 10_000).count()).toBe(100 + 99 + 89);
    });
  }

  it('of deleted keys is committed, and keys that it deletes itself are not inserted', async () => {
    const db = await openDatabase([items]);
    await inserts(db, 0, 100).flush();
    await db.checkpoint();
    const deletion = db.batch();
    for (let id = 20; id < 40; id++) void deletion.delete(items, id);
    await deletion.flush();
    const again = inserts(db, 22, 30);
    void again.delete(items, 25);
    await again.flush();
    expect(await db.query(items).count()).toBe(100 - 20 + 7);
    const free = inserts(db, 1000, 1010);
    void free.delete(items, 1003);
    void free.delete(items, 1005);
    await free.flush();
    expect(await db.query(items).where('id', '>=', 1000).count()).toBe(8);
  });

  it('is rejected for an update among them of a row that is not there, and for a key that it inserts twice', async () => {
    const db = await openDatabase([items]);
    await inserts(db, 0, 10).flush();
    await db.checkpoint();
    const batch = inserts(db, 100, 110);
    void batch.update(items, { id: 105, name: 'changed' });
    void batch.update(items, { id: 107, name: 'changed' });
    await batch.flush();
    expect(await db.get(items, 107)).toMatchObject({ name: 'changed' });
    const missing = inserts(db, 200, 210);
    void missing.update(items, { id: 205, name: 'changed' });
    void missing.update(items, { id: 211, name: 'not there' });
    await rejected(missing, 'ROW_NOT_FOUND', 211);
    const twice = inserts(db, 300, 310);
    void twice.insert(items, { id: 304, name: 'again' });
    await rejected(twice, 'DUPLICATE_KEY', 304);
    expect(await db.query(items).count()).toBe(20);
  });
});
