/** `db.load()` with option `thread`: the same rows, requests and errors as without, sorted and staged by another thread. */
import { expect, it } from 'vitest';
import { StoreDb, Types } from '../../../src/index.ts';
import { MemoryDriver } from '../../../src/storage/memory-driver.ts';

it('works', async () => {
  const db = StoreDb({
    dbPrefix: 'db',
    nodeId: 0,
    driver: new MemoryDriver(),
    maxMemoryBytes: 1024 * 1024,
    logLevel: 'debug',
    blockSizeBytes: 4096,
  });
  db.registerSchema({
    name: 'items',
    version: 1,
    fields: { id: { typeId: Types.int32 }, text: { typeId: Types.varchar } },
    primaryKey: 'id',
  });
  await db.start();
  const rows = Array.from({ length: 20_000 }, (_, i) => ({ id: (i * 7919) % 20_000, text: `row ${i}` }));
  expect(await db.load('items', rows, { thread: true })).toEqual({ rows: 20_000 });
  expect(await db.query('items').count()).toBe(20_000);
  expect(await db.verify({ deep: true })).toMatchObject({ ok: true });
  await db.stop();
});
