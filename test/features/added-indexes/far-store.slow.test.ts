/**
 * An index that is added on a store that is far away: its entries come in another order than the rows, so that each chunk writes most of the
 * index again. Chunks must not shrink because of that: the smaller they are, the more there are of them.
 */
import { expect, it } from 'vitest';
import { createDatabase } from '../../../src/api/database.ts';
import type { Database } from '../../../src/api/database.ts';
import type { SchemaDefinition } from '../../../src/schema/schema.ts';
import { MemoryDriver } from '../../../src/storage/memory-driver.ts';
import type { ObservedRequest } from '../../../src/storage/wrap/observed-driver.ts';
import { FaultyDriver } from '../../../src/testing/faulty-driver.ts';
import { VirtualEnvironment } from '../../../src/testing/virtual-environment.ts';
import { booksWith, plain } from './shelf.ts';

const rows = 20_000;

it('takes less than two writes for each block of the table and the index', async () => {
  const environment = new VirtualEnvironment();
  // Each way takes 100 ms.
  const store = new FaultyDriver(new MemoryDriver({ environment }), { environment, faults: { latencyMs: [100, 100] } });
  const seen = { writes: 0 };
  const onRequest = ({ kind }: ObservedRequest): void => {
    if (kind === 'put') seen.writes++;
  };
  const open = async (nodeId: number, schema: SchemaDefinition): Promise<Database> => {
    const options = { dbPrefix: 'db', nodeId, logLevel: 'silent', polling: 'interval', blockSizeBytes: 1024 } as const;
    const db = createDatabase({ ...options, driver: environment.connect(store), onRequest }, environment);
    db.registerSchema(schema);
    await environment.run(db.start());
    return db;
  };
  const first = await open(0, plain);
  const batch = first.batch();
  for (let id = 0; id < rows; id++) {
    void batch.insert('books', { id, title: '', author: (id * 7919) % 20_011, pages: id % 7 });
  }
  await environment.run(batch.flush());
  await environment.run(first.checkpoint());
  await environment.run(first.stop());
  seen.writes = 0;
  const db = await open(1, booksWith('author'));
  const isReady = async (): Promise<boolean> => (await db.indexes('books')).every(({ state }) => state === 'ready');
  while (!(await environment.run(isReady())) && seen.writes < 20_000) await environment.advance(1000);
  const { writes } = seen;
  const { tables } = await environment.run(db.verify());
  const blocks = tables[0]?.blocks as number;
  expect(tables[0]?.indexes).toEqual([{ name: 'author', entries: rows }]);
  expect(writes).toBeLessThan(2 * blocks);
  await environment.run(db.stop());
});
