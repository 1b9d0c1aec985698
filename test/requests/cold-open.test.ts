/** Opening a database of a million rows with an empty cache, and the first read. */
import { beforeAll, describe, expect, it } from 'vitest';
import { createDatabase } from '../../src/create.ts';
import type { Database } from '../../src/database.ts';
import { Types } from '../../src/format/types.ts';
import { MemoryDriver } from '../../src/storage/memory.ts';
import type { ObservedRequest } from '../../src/storage/observed.ts';
import { VirtualEnvironment } from '../../src/testing/virtual-environment.ts';

const readings = {
  name: 'readings',
  version: 1,
  fields: { id: { typeId: Types.uint32 }, sensor: { typeId: Types.uint16 }, value: { typeId: Types.float64 } },
  primaryKey: 'id',
  indexes: ['sensor'],
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

beforeAll(async () => {
  environment = new VirtualEnvironment();
  store = new MemoryDriver({ environment });
  const db = make();
  await environment.run(db.start());
  for (let from = 0; from < rows; from += 100_000) {
    const batch = db.batch();
    for (let id = from; id < from + 100_000; id++) {
      void batch.insert(readings, { id, sensor: (id * 7919) % 60_000, value: id / 8 });
    }
    await environment.run(batch.flush());
  }
  await environment.run(db.checkpoint());
  await environment.run(db.stop());
}, 120_000);

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
    expect(await environment.run(db.get(readings, id))).toEqual({ id, sensor: (id * 7919) % 60_000, value: id / 8 });
    expect(requests).toEqual(['get block0 found', 'get committed missing', 'get data found']);
    await environment.run(db.stop());
  });

  it('is opened, and a row that is not there looked for, with three reads', async () => {
    const { db, requests } = cold();
    await environment.run(db.start());
    expect(await environment.run(db.get(readings, rows))).toBeUndefined();
    expect(requests).toHaveLength(3);
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
