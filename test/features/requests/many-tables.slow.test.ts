/** The requests of a database of thousands of tables: writes and reads follow the changes, not the number of tables. */
import { beforeAll, describe, expect, it } from 'vitest';
import { createDatabase } from '../../../src/api/database.ts';
import type { Database } from '../../../src/api/database.ts';
import { Types } from '../../../src/format/types.ts';
import { MemoryDriver } from '../../../src/storage/memory-driver.ts';
import type { ObservedRequest } from '../../../src/storage/wrap/observed-driver.ts';
import type { SchemaDefinition } from '../../../src/schema/schema.ts';
import { VirtualEnvironment } from '../../../src/testing/virtual-environment.ts';

const tables = 3000;
const schemas = Array.from({ length: tables }, (_, i): SchemaDefinition => {
  return {
    name: `customers_of_tenant_${i}`,
    version: 1,
    fields: {
      id: { typeId: Types.uint32 },
      name: { typeId: Types.varchar },
      email: { typeId: Types.varchar, maxLength: 200 },
      createdAt: { typeId: Types.timestamp },
      balance: { typeId: Types.int64 },
    },
    primaryKey: 'id',
    indexes: ['email'],
  };
});

let environment: VirtualEnvironment;
let store: MemoryDriver;
let requests: string[] = [];
let written = 0;

function make(nodeId = 0): Database {
  const onRequest = ({ kind, key, status, bytes }: ObservedRequest): void => {
    if (kind === 'put') written += bytes;
    requests.push(`${kind} ${key.replace(/^db\//, '').replace(/\/.*/, '')} ${status}`);
  };
  const options = { dbPrefix: 'db', nodeId, logLevel: 'silent', polling: 'onDemand', onRequest } as const;
  const db = createDatabase({ ...options, driver: environment.connect(store) }, environment);
  for (const schema of schemas) db.registerSchema(schema);
  return db;
}

function rowOf(id: number): Record<string, unknown> {
  const email = `customer-${id}@example.com`;
  return { id, name: `Customer ${id}`, email, createdAt: new Date(1_700_000_000_000 + id), balance: BigInt(id) };
}

/** What one call asks of the store, and how many bytes it writes. */
async function bill(call: () => Promise<unknown>): Promise<{ requests: string[]; written: number }> {
  requests = [];
  written = 0;
  await environment.run(call());
  return { requests, written };
}

beforeAll(async () => {
  environment = new VirtualEnvironment();
  store = new MemoryDriver({ environment });
  const db = make();
  await environment.run(db.start());
  const batch = db.batch();
  for (const { name } of schemas) for (let id = 0; id < 3; id++) void batch.insert(name, rowOf(id));
  await environment.run(batch.flush());
  await environment.run(db.checkpoint());
  await environment.run(db.stop());
}, 600_000);

async function change(db: Database, table: number, id: number): Promise<void> {
  const batch = db.batch();
  await batch.upsert(`customers_of_tenant_${table}`, rowOf(id));
  await batch.flush();
  await db.checkpoint();
}

describe(`a database of ${tables} tables`, () => {
  it('is opened, and a first row read, with four requests', async () => {
    const db = make();
    const { requests: seen } = await bill(async () => {
      await db.start();
      expect(await db.get('customers_of_tenant_1234', 1)).toEqual(rowOf(1));
    });
    expect(seen.toSorted()).toEqual(['get block0 found', 'get committed missing', 'get data found', 'get data found']);
    await environment.run(db.stop());
  });

  it('writes only the blocks that a commit and its merge change', async () => {
    const db = make();
    await environment.run(db.start());
    const bills: number[] = [];
    const catalogues: number[] = [];
    let puts = 0;
    for (let i = 0; i < 130; i++) {
      const { requests: seen, written: bytes } = await bill(() => change(db, 7 * i, 4));
      bills.push(bytes);
      puts += seen.filter((request) => request.startsWith('put ')).length;
      if (bytes > 70_000) catalogues.push(i);
    }
    expect(Math.max(...bills)).toBeLessThanOrEqual(100_000);
    expect(catalogues.length).toBeLessThanOrEqual(3);
    const average = bills.reduce((sum, bytes) => sum + bytes, 0) / bills.length;
    expect(average).toBeLessThan(45_000);
    // The commit, Block 0, and the roots of the table and its index: with them, or once a new catalogue has no room for them.
    expect(puts).toBeLessThanOrEqual(130 * 4);
    await environment.run(db.stop());
  });

  it('writes little where one table changes again and again', async () => {
    const db = make();
    await environment.run(db.start());
    await bill(() => change(db, 1, 4));
    const first = await bill(() => change(db, 1, 5));
    for (let i = 0; i < 20; i++) {
      const { written: bytes } = await bill(() => change(db, 1, 5 + i));
      expect(bytes).toBeLessThan(first.written + 5000);
    }
    await environment.run(db.stop());
  });

  it('lets others follow with a look at Block 0, and with one read more for a new catalogue', async () => {
    const [db, other] = [make(1), make(2)];
    await environment.run(db.start());
    await environment.run(other.start());
    let looks = 0;
    for (let i = 0; i < 70; i++) {
      await environment.run(change(db, 1000 + i, 4));
      const { requests: seen } = await bill(() => other.refresh());
      const reads = seen.filter((request) => request === 'get data found').length;
      expect(reads).toBeLessThanOrEqual(1);
      looks += reads;
      const row = await environment.run(other.get(`customers_of_tenant_${1000 + i}`, 4));
      expect(row).toEqual(rowOf(4));
    }
    expect(looks).toBeGreaterThanOrEqual(1);
    expect(looks).toBeLessThanOrEqual(2);
    await environment.run(db.stop());
    await environment.run(other.stop());
  });
});
