/** The database of functions that are frozen and killed: a row for each commit, and a counter that each commit adds one to. */
import { StoreDb, Types } from '../../../src/index.ts';
import type { Database } from '../../../src/api/database.ts';
import type { StorageDriver } from '../../../src/storage/contract/driver.ts';

const id = { typeId: Types.int32 };
const entries = { name: 'entries', version: 1, primaryKey: 'id', fields: { id } } as const;
const counters = {
  name: 'counters',
  version: 1,
  primaryKey: 'id',
  fields: { id, count: { typeId: Types.int32 } },
} as const;

/** A view is old after two of these, in milliseconds. */
export const intervalMs = 500;

export async function openFunction(driver: StorageDriver): Promise<Database> {
  const db = StoreDb({
    dbPrefix: 'db',
    role: 'ephemeral',
    driver,
    writeForwardInterval: intervalMs,
    logLevel: 'silent',
  });
  db.registerSchema(entries);
  db.registerSchema(counters);
  await db.start();
  return db;
}

/** Inserts a row and counts it, in one commit. */
export async function add(db: Database, number: number): Promise<void> {
  const batch = db.batch();
  void batch.insert(entries, { id: number });
  if (number === 0) void batch.insert(counters, { id: 0, count: 1 });
  else void batch.increment(counters, 0, { count: 1 });
  await batch.flush();
}

export interface Contents {
  readonly ids: readonly number[];
  readonly count: number;
}

export async function contents(db: Database): Promise<Contents> {
  const ids: number[] = [];
  for await (const row of db.query(entries).orderBy('id')) ids.push(row.id);
  const counter = await db.get(counters, 0);
  return { ids, count: counter?.count as number };
}
