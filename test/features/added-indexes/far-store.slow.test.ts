/**
 * An index that is added on a store that is far away: its entries come in another order than the rows, so that each chunk writes most of the
 * index again. Chunks must not shrink because of that: the smaller they are, the more there are of them.
 */
import { expect, it } from 'vitest';
import { createDatabase } from '../../../src/api/database.ts';
import type { Database } from '../../../src/api/database.ts';
import { sleep } from '../../../src/base/env.ts';
import type { Environment } from '../../../src/base/env.ts';
import type { SchemaDefinition } from '../../../src/schema/schema.ts';
import type { GetOptions, GetResult, PutBody, PutOptions, PutResult } from '../../../src/storage/contract/driver.ts';
import { MemoryDriver } from '../../../src/storage/memory-driver.ts';
import { WrappedDriver } from '../../../src/storage/wrap/wrapped-driver.ts';
import { VirtualEnvironment } from '../../../src/testing/virtual-environment.ts';
import { booksWith, plain } from './shelf.ts';

const rows = 20_000;

/** A store that takes 50 ms for a read, and 200 for a write. */
class FarStore extends WrappedDriver {
  readonly #environment: Environment;
  writes = 0;

  constructor(driver: MemoryDriver, environment: Environment) {
    super(driver);
    this.#environment = environment;
  }

  override async get(key: string, options?: GetOptions): Promise<GetResult> {
    await sleep(this.#environment, 50);
    return super.get(key, options);
  }

  override async put(key: string, body: PutBody, options: PutOptions): Promise<PutResult> {
    this.writes++;
    await sleep(this.#environment, 200);
    return super.put(key, body, options);
  }
}

it('takes less than two writes for each block of the table and the index', async () => {
  const environment = new VirtualEnvironment();
  const memory = new MemoryDriver({ environment });
  const store = new FarStore(memory, environment);
  const open = async (nodeId: number, schema: SchemaDefinition): Promise<Database> => {
    const options = { dbPrefix: 'db', nodeId, logLevel: 'silent', polling: 'interval', blockSizeBytes: 1024 } as const;
    const db = createDatabase({ ...options, driver: environment.connect(store) }, environment);
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
  store.writes = 0;
  const db = await open(1, booksWith('author'));
  const isReady = async (): Promise<boolean> => (await db.indexes('books')).every(({ state }) => state === 'ready');
  while (!(await environment.run(isReady())) && store.writes < 20_000) await environment.advance(1000);
  const { writes } = store;
  const { tables } = await environment.run(db.verify());
  const blocks = tables[0]?.blocks as number;
  expect(tables[0]?.indexes).toEqual([{ name: 'author', entries: rows }]);
  expect(writes).toBeLessThan(2 * blocks);
  await environment.run(db.stop());
});
