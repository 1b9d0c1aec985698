/** A bundle of a table whose rows expire: the reader hides them by its own clock. */
import { expect, it } from 'vitest';
import { realEnvironment, sleep } from '../../../src/base/env.ts';
import { StoreDb, Types } from '../../../src/index.ts';
import { MemoryDriver } from '../../../src/storage/memory-driver.ts';
import { BundleServer } from './published.ts';

it('a reader hides rows that have expired since they were published', async () => {
  const db = StoreDb({ driver: new MemoryDriver(), dbPrefix: 'db', nodeId: 1, logLevel: 'silent' });
  const table = {
    name: 'notes',
    version: 1,
    fields: { id: { typeId: Types.int32 }, end: { typeId: Types.timestamp } },
    primaryKey: 'id',
    indexes: ['end'],
    expireAfter: { field: 'end', seconds: 0 },
  } as const;
  db.registerSchema(table);
  await db.start();
  const batch = db.batch();
  const endMs = Date.now() + 300;
  for (let id = 0; id < 10; id++) await batch.insert(table, { id, end: new Date(id < 5 ? endMs : endMs + 1e9) });
  await batch.flush();
  const server = new BundleServer();
  await db.publish(server.place);
  await db.stop();
  const reader = await server.open();
  await sleep(realEnvironment, endMs - Date.now() + 5);
  expect(await reader.query('notes').count()).toBe(5);
  expect(await reader.get('notes', 1)).toBeUndefined();
  expect(await reader.query('notes').execute()).toHaveLength(5);
  reader.close();
});
