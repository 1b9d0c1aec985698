/** With memory for a small part of a table, each of its blocks is read once if once is enough, also during merges and gc. */
import { beforeEach, describe, expect, it } from 'vitest';
import type { Database, StoreDbOptions } from '../../../src/index.ts';
import { Types } from '../../../src/index.ts';
import { MemoryDriver } from '../../../src/storage/memory-driver.ts';
import { createDatabase, VirtualEnvironment } from '../../../src/testing/index.ts';

const rows = {
  name: 'rows',
  version: 1,
  fields: { id: { typeId: Types.uint32 }, place: { typeId: Types.uint32 }, text: { typeId: Types.varchar } },
  primaryKey: 'id',
  indexes: ['place', 'text'],
} as const;

const count = 3000;
let environment: VirtualEnvironment;
let driver: MemoryDriver;
/** How often the instance that is watched has read blocks, by their names. */
let reads: Map<string, number>;
/** What each of these reads waits for. */
let beforeRead: () => Promise<void> | undefined;

/** The store as the instance that is watched has it. */
function watched(): MemoryDriver {
  const get: MemoryDriver['get'] = async (key, options) => {
    if (/\/(data|indexes)\//.test(key)) {
      reads.set(key, (reads.get(key) ?? 0) + 1);
      await beforeRead();
    }
    return driver.get(key, options);
  };
  return new Proxy(driver, {
    get: (target, name) => {
      if (name === 'get') return get;
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === 'function' ? (value as () => unknown).bind(target) : value;
    },
  });
}

async function open(options: Partial<StoreDbOptions> = {}): Promise<Database> {
  const given = { dbPrefix: 'db', nodeId: 0, driver: watched(), logLevel: 'silent', ...options } as const;
  const small = { writeForwardInterval: 86_400_000, blockSizeBytes: 2048, maxMemoryBytes: 1024 * 1024 };
  const db = createDatabase({ ...small, ...given }, environment);
  db.registerSchema(rows);
  await environment.run(db.start());
  return db;
}

/** Writes all rows, so that afterwards no block is as it was. Their places and texts are in another order than their keys. */
async function writeAll(db: Database, text: string): Promise<void> {
  for (let from = 0; from < count; from += 500) {
    const batch = db.batch();
    for (let id = from; id < from + 500; id++)
      void batch.upsert(rows, { id, place: (id * 7919) % count, text: `${(id * 31) % 97}${text.repeat(300)}${id}` });
    await batch.flush();
  }
  await db.checkpoint();
}

/** Block reads of a call, in all and per folder. */
async function readsOf(call: () => Promise<unknown>): Promise<{ all: number; blocks: number; data: number }> {
  reads = new Map();
  await environment.run(call());
  const sum = (counts: Iterable<number>): number => [...counts].reduce((total, each) => total + each, 0);
  const data = [...reads].filter(([key]) => key.includes('/data/')).map(([, times]) => times);
  return { all: sum(reads.values()), blocks: reads.size, data: sum(data) };
}

beforeEach(() => {
  environment = new VirtualEnvironment({ seed: 1 });
  driver = new MemoryDriver({ environment });
  reads = new Map();
  beforeRead = () => undefined;
});

describe('verify()', () => {
  it('reads each block once, however many indexes are compared with their rows', async () => {
    const db = await open();
    await environment.run(writeAll(db, 'a'));
    const { all, blocks, data } = await readsOf(async () => expect((await db.verify()).findings).toEqual([]));
    expect(data).toBeGreaterThan(500);
    expect(all).toBe(blocks);
    await environment.run(db.stop());
  });

  it('goes on with its state while others merge', async () => {
    const db = await open();
    const other = await open({ nodeId: 1, driver });
    await environment.run(writeAll(db, 'a'));
    const alone = await readsOf(() => db.verify());
    let merges = 0;
    let at = 0;
    beforeRead = () => {
      if (++at % 40 !== 0) return undefined;
      merges++;
      return (async () => {
        const batch = other.batch();
        void batch.upsert(rows, { id: at % count, place: 1, text: 'b' });
        await batch.flush();
        await other.checkpoint();
      })();
    };
    const nextVersion = await readsOf(async () => expect((await db.verify()).findings).toEqual([]));
    expect(merges).toBeGreaterThan(10);
    expect(nextVersion.all).toBe(nextVersion.blocks);
    expect(nextVersion.all).toBeLessThan(1.05 * alone.all);
    for (const each of [db, other]) await environment.run(each.stop());
  });

  it('begins again as soon as it finds its state collected, and pins the next one', async () => {
    const db = await open();
    const other = await open({ nodeId: 1, driver });
    await environment.run(writeAll(db, 'a'));
    const alone = await readsOf(() => db.verify());
    let at = 0;
    beforeRead = () => {
      at++;
      if (at !== 100 && at !== 500) return undefined;
      return (async () => {
        const batch = other.batch();
        // A row of a block that is not read ahead yet.
        void batch.upsert(rows, { id: 6 * (at + 20), place: 1, text: 'b' });
        await batch.flush();
        await other.checkpoint();
        await other.gc({ loopGraceMs: 0 });
      })();
    };
    const nextVersion = await readsOf(async () => expect((await db.verify()).findings).toEqual([]));
    expect(at).toBeGreaterThan(alone.all);
    // Apart from what was read up to the first block that was gone.
    expect(nextVersion.all).toBeLessThan(1.3 * alone.all);
    for (const each of [db, other]) await environment.run(each.stop());
  });
});

describe('deleteWhere()', () => {
  it('reads entries of an index alone, and no rows', async () => {
    const db = await open();
    await environment.run(writeAll(db, 'a'));
    const batch = db.batch();
    const { all, blocks, data } = await readsOf(async () => {
      expect(await batch.deleteWhere(db.query(rows).where('place', '<', 2000))).toBe(2000);
    });
    expect(data).toBe(0);
    expect(all).toBe(blocks);
    await environment.run(batch.flush());
    expect(await environment.run(db.query(rows).count())).toBe(1000);
    await environment.run(db.stop());
  });

  it('holds keys alone, of rows that memory has no room for', async () => {
    const db = await open();
    await environment.run(writeAll(db, 'a'));
    const batch = db.batch();
    const { all, blocks } = await readsOf(async () => {
      expect(await batch.deleteWhere(db.query(rows).where('text', '!=', 'b').select('text'))).toBe(count);
    });
    expect(all).toBe(blocks);
    await environment.run(batch.flush());
    expect(await environment.run(db.query(rows).count())).toBe(0);
    await environment.run(db.stop());
  });
});
