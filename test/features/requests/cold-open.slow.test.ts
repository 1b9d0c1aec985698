/** Opening a database of a million rows with an empty cache, and the first read. */
import { beforeAll, describe, expect, it } from 'vitest';
import { createDatabase } from '../../../src/api/database.ts';
import type { Database } from '../../../src/api/database.ts';
import { Types } from '../../../src/format/types.ts';
import { MemoryDriver } from '../../../src/storage/memory-driver.ts';
import type { ObservedRequest } from '../../../src/storage/wrap/observed-driver.ts';
import { VirtualEnvironment } from '../../../src/testing/virtual-environment.ts';

const readings = {
  name: 'readings',
  version: 1,
  fields: {
    id: { typeId: Types.uint32 },
    sensor: { typeId: Types.uint16 },
    minute: { typeId: Types.uint32 },
    value: { typeId: Types.float64 },
  },
  primaryKey: 'id',
  indexes: ['sensor', 'minute'],
} as const;
const rows = 1_000_000;

let environment: VirtualEnvironment;
let store: MemoryDriver;

function make(onRequest?: (request: ObservedRequest) => void): Database {
  const options = { dbPrefix: 'db', nodeId: 0, logLevel: 'silent', polling: 'onDemand' } as const;
  const hook = onRequest === undefined ? {} : { onRequest };
  const db = createDatabase({ ...options, ...hook, driver: environment.connect(store) }, environment);
  db.registerSchema(readings);
  return db;
}

function rowOf(id: number): { id: number; sensor: number; minute: number; value: number } {
  return { id, sensor: (id * 7919) % 60_000, minute: id >> 4, value: id / 8 };
}

beforeAll(async () => {
  environment = new VirtualEnvironment();
  store = new MemoryDriver({ environment });
  const db = make();
  await environment.run(db.start());
  // In one batch: that goes as well.
  const batch = db.batch();
  for (let id = 0; id < rows; id++) void batch.insert(readings, rowOf(id));
  await environment.run(batch.flush());
  await environment.run(db.checkpoint());
  await environment.run(db.stop());
}, 600_000);

/** A process that has never seen the database, and what it asks for. */
function cold(): { db: Database; requests: string[] } {
  const requests: string[] = [];
  const db = make(({ kind, key, status }) => {
    requests.push(`${kind} ${key.replace(/^db\//, '').replace(/\/.*/, '')} ${status}`);
  });
  return { db, requests };
}

describe('a database of a million rows', () => {
  it.each([0, 1, 123_456, 500_000, rows - 1])('is opened, and row %i read, with three reads', async (id) => {
    const { db, requests } = cold();
    await environment.run(db.start());
    expect(await environment.run(db.get(readings, id))).toEqual(rowOf(id));
    expect(requests).toEqual(['get block0 found', 'get committed missing', 'get data found']);
    await environment.run(db.stop());
  });

  it('is opened, and a row that is not there looked for, with three reads', async () => {
    const { db, requests } = cold();
    await environment.run(db.start());
    expect(await environment.run(db.get(readings, rows))).toBeUndefined();
    expect(requests).toHaveLength(3);
  });

  it('is opened, a row read, and others found through an index, with five', async () => {
    const { db, requests } = cold();
    await environment.run(db.start());
    expect(await environment.run(db.get(readings, 5))).toEqual(rowOf(5));
    const minute = 40_000;
    const found = await environment.run(db.query(readings).where('minute', '=', minute).execute());
    expect(found).toEqual(Array.from({ length: 16 }, (_, i) => rowOf(minute * 16 + i)));
    expect(requests).toEqual([
      'get block0 found',
      'get committed missing',
      'get data found',
      'get indexes found',
      'get data found',
    ]);
    await environment.run(db.stop());
  });

  it('is opened and counted with two', async () => {
    const { db, requests } = cold();
    await environment.run(db.start());
    expect(await environment.run(db.query(readings).count())).toBe(rows);
    expect(requests).toHaveLength(2);
  });

  it('is opened, and rows found through an index, with a read for each block that holds some', async () => {
    const { db, requests } = cold();
    await environment.run(db.start());
    const found = await environment.run(db.query(readings).where('sensor', '=', 4711).execute());
    expect(found.length).toBeGreaterThan(10);
    expect(requests.filter((request) => request === 'get indexes found').length).toBeLessThanOrEqual(2);
    expect(requests.filter((request) => request === 'get data found').length).toBeLessThanOrEqual(found.length);
    expect(requests.filter((request) => request.startsWith('list'))).toEqual([]);
  });
});

describe('updating one row of a million', () => {
  /** An instance that has just been opened, and is registered; and what it has asked for since. */
  async function writer(): Promise<{ db: Database; requests: string[] }> {
    const { db, requests } = cold();
    await environment.run(db.start());
    await environment.advance(10_000);
    requests.length = 0;
    return { db, requests };
  }

  async function update(db: Database, id: number, value: number): Promise<void> {
    const batch = db.batch();
    void batch.update(readings, { id, value });
    await batch.flush();
  }

  it('takes five requests until it is merged, where nothing of the row is in memory', async () => {
    const { db, requests } = await writer();
    await environment.run(update(db, 777_777, 1));
    expect(requests).toEqual(['get data found', 'put committed written', 'get block0 unchanged']);
    await environment.advance(70_000);
    expect(db.stats().log).toMatchObject({ pendingCommits: 0 });
    // No look before the merge: the flush was one, and there is no other node.
    expect(requests.slice(3)).toEqual(['put data written', 'put block0 written']);
    await environment.run(db.stop());
  });

  it('takes two on average in a burst of a hundred, and their merge', async () => {
    const { db, requests } = await writer();
    const ids = Array.from({ length: 100 }, (_, i) => (i * 611_953) % rows);
    await environment.run(Promise.all(ids.map((id) => update(db, id, 2))));
    await environment.advance(70_000);
    expect(db.stats().log).toMatchObject({ pendingCommits: 0 });
    expect(requests.filter((request) => request === 'put committed written').length).toBeLessThanOrEqual(3);
    // The leaf of each row is read, and written anew; few of them have a leaf in common.
    expect(requests.length).toBeLessThanOrEqual(200);
    await environment.run(db.stop());
  });
});
