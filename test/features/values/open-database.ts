/** Databases for tests through the public API, and the states that rows go through in one. */
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach } from 'vitest';
import { StoreDb } from '../../../src/index.ts';
import type { Batch, Database, Logger, SchemaDefinition, StoreDbOptions } from '../../../src/index.ts';
import type { StorageDriver } from '../../../src/storage/index.ts';
import { newDriver } from './driver-under-test.ts';

export type Row = Record<string, unknown>;
export type AnyQuery = ReturnType<Database['query']>;

export const prefix = 'db';

/** No turn of write authority comes by itself within a test: what is merged, a test merges. */
const quietIntervalMs = 86_400_000;

const opened: Database[] = [];

afterEach(async () => {
  await Promise.all(opened.splice(0).map((db) => db.stop()));
});

/** An instance that is not started. It is stopped after the test. */
export function makeDatabase(
  schemas: readonly SchemaDefinition[],
  driver: StorageDriver = newDriver(),
  options: Partial<StoreDbOptions> = {},
): Database {
  const given = { logLevel: 'silent', writeForwardInterval: quietIntervalMs, ...options } as const;
  const db = StoreDb({ dbPrefix: prefix, nodeId: 0, driver, ...given });
  for (const schema of schemas) db.registerSchema(schema);
  opened.push(db);
  return db;
}

export async function openDatabase(
  schemas: readonly SchemaDefinition[],
  driver?: StorageDriver,
  options?: Partial<StoreDbOptions>,
): Promise<Database> {
  const db = makeDatabase(schemas, driver, options);
  await db.start();
  return db;
}

export type Stage = 'in the batch' | 'flushed' | 'merged' | 'reopened';

/** What a check is given: queries of the rows in their present stage. */
export interface Staged {
  readonly stage: Stage;
  readonly db: Database;
  readonly query: (table: string) => AnyQuery;
  /** By primary key. */
  readonly get: (table: string, key: unknown) => Promise<Row | undefined>;
}

/** Adds rows and runs a check on them in the batch, flushed, merged, and read by another instance. */
export async function throughStages(
  schemas: readonly SchemaDefinition[],
  add: (batch: Batch) => void | Promise<void>,
  check: (staged: Staged) => Promise<void>,
  options: { readonly driver?: StorageDriver; readonly database?: Partial<StoreDbOptions> } = {},
): Promise<void> {
  const { driver = newDriver(), database } = options;
  const db = await openDatabase(schemas, driver, database);
  const batch = db.batch();
  await add(batch);
  const nameOfKey = (table: string): string => schemas.find(({ name }) => name === table)?.primaryKey as string;
  const overlaid = (table: string): AnyQuery => db.query(table).overlay(batch);
  await check({
    stage: 'in the batch',
    db,
    query: overlaid,
    get: (table, key) => overlaid(table).where(nameOfKey(table), '=', key).first(),
  });
  await batch.flush();
  const stored = {
    db,
    query: (table: string) => db.query(table),
    get: (table: string, key: unknown) => db.get(table, key),
  };
  await check({ stage: 'flushed', ...stored });
  await db.checkpoint();
  await check({ stage: 'merged', ...stored });
  await db.stop();
  const again = await openDatabase(schemas, driver, { ...database, nodeId: 1 });
  await check({
    stage: 'reopened',
    db: again,
    query: (table) => again.query(table),
    get: (table, key) => again.get(table, key),
  });
}

/** The error that a promise rejects with. */
export function failure(promise: Promise<unknown>): Promise<unknown> {
  return promise.then(
    () => {
      throw new Error('it did not fail');
    },
    (error: unknown) => error,
  );
}

/** What a call throws. */
export function thrown(call: () => unknown): unknown {
  try {
    call();
  } catch (error) {
    return error;
  }
  throw new Error('it did not throw');
}

/** Flushes a batch of its own. */
export async function flushed(db: Database, add: (batch: Batch) => void): Promise<void> {
  const batch = db.batch();
  add(batch);
  await batch.flush();
}

/** Values of one field, in the order of the rows. */
export function column(rows: readonly object[], field: string): unknown[] {
  return rows.map((row) => (row as Row)[field]);
}

/** A logger that keeps its lines. */
export class LoggedLines implements Logger {
  readonly lines: { level: string; message: string }[] = [];
  debug(message: string): void {
    this.lines.push({ level: 'debug', message });
  }
  info(message: string): void {
    this.lines.push({ level: 'info', message });
  }
  warn(message: string): void {
    this.lines.push({ level: 'warn', message });
  }
  error(message: string): void {
    this.lines.push({ level: 'error', message });
  }
}

const unhandled: unknown[] = [];
const keep = (reason: unknown): void => {
  unhandled.push(reason);
};

/** Promises that were rejected while this ran without anybody looking. Vitest's own listeners stand aside meanwhile. */
export async function unhandledDuring(run: () => Promise<void>): Promise<readonly unknown[]> {
  const others = process.listeners('unhandledRejection');
  process.removeAllListeners('unhandledRejection');
  process.on('unhandledRejection', keep);
  unhandled.length = 0;
  try {
    await run();
    // Rejections are reported once the microtasks are through; triggers and drivers may take some turns more.
    for (let turn = 0; turn < 5; turn++) await sleep(2);
    return [...unhandled];
  } finally {
    process.removeListener('unhandledRejection', keep);
    for (const listener of others) process.on('unhandledRejection', listener);
  }
}
