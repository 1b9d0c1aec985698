/**
 * `db.load()`, without a thread and with one, beside batches of 10,000 rows, into an empty table with two indexes, one of them unique:
 * `npm run bench:load [-- <rows>]`. The rows come in the order of the keys, and in no order. Each way is run twice, in turns, and the faster run counts. Where the
 * benchmark's peers are installed (`npm run bench` does that), DuckDB's appender loads the same rows.
 */
import { createRequire } from 'node:module';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import CliTable from 'cli-table3';
import { defineSchema, StoreDb, Types } from 'store-db';
import type { Database } from 'store-db';
import { FileDriver } from 'store-db/lib/storage';

const people = defineSchema({
  name: 'people',
  version: 1,
  fields: {
    id: { typeId: Types.uint32 },
    email: { typeId: Types.varchar },
    city: { typeId: Types.varchar },
    score: { typeId: Types.float64 },
  },
  primaryKey: 'id',
  indexes: [{ fields: ['email'], unique: true }, 'city'],
});

interface Person {
  readonly id: number;
  readonly email: string;
  readonly city: string;
  readonly score: number;
}

const count = Number(process.argv[2] ?? 1_000_000);
const rowsOfBatch = 10_000;
/** A prime that divides no round number: each row comes once. */
const step = 700_001;

function* rows(isSorted: boolean): Generator<Person, void, undefined> {
  for (let i = 0; i < count; i++) {
    const id = isSorted ? i : (i * step) % count;
    const mixed = (Math.imul(id, 2_654_435_761) >>> 0).toString(36);
    yield { id, email: `${mixed}.${id}@example.com`, city: `city ${id % 5003}`, score: id / 7 };
  }
}

interface Measured {
  readonly durableMs: number;
  readonly mergedMs: number;
  readonly longestMs: number;
}

async function batches(db: Database, isSorted: boolean): Promise<void> {
  let batch = db.batch();
  for (const row of rows(isSorted)) {
    void batch.insert(people, row);
    if (batch.size < rowsOfBatch) continue;
    await batch.flush();
    batch = db.batch();
  }
  await batch.flush();
}

async function load(db: Database, isSorted: boolean): Promise<void> {
  await db.load(people, rows(isSorted));
}

async function loadWithThread(db: Database, isSorted: boolean): Promise<void> {
  await db.load(people, rows(isSorted), { thread: true });
}

/** Runs one way in a folder of its own. */
async function inFolder<T>(run: (folder: string) => Promise<T>): Promise<T> {
  const folder = await mkdtemp(path.join(tmpdir(), 'store-db-load-'));
  try {
    return await run(folder);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

function measure(write: (db: Database, isSorted: boolean) => Promise<void>, isSorted: boolean): Promise<Measured> {
  return inFolder(async (folder) => {
    await using db = StoreDb({ driver: new FileDriver(folder), dbPrefix: 'db', nodeId: 0, logLevel: 'error' });
    db.registerSchema(people);
    await db.start();
    const delays = monitorEventLoopDelay({ resolution: 1 });
    delays.enable();
    const startMs = performance.now();
    await write(db, isSorted);
    const durableMs = performance.now() - startMs;
    await db.checkpoint();
    const mergedMs = performance.now() - startMs;
    delays.disable();
    if ((await db.query(people).count()) !== count) throw new Error('Rows are missing');
    return { durableMs, mergedMs, longestMs: delays.max / 1e6 };
  });
}

/** What is used of @duckdb/node-api. */
interface DuckDb {
  readonly DuckDBInstance: {
    create(file: string): Promise<{
      connect(): Promise<{
        run(sql: string): Promise<unknown>;
        createAppender(table: string): Promise<{ appendDataChunk(chunk: unknown): void; closeSync(): void }>;
        closeSync(): void;
      }>;
      closeSync(): void;
    }>;
  };
  readonly DuckDBDataChunk: { create(types: readonly unknown[]): { setColumns(columns: unknown[][]): void } };
  readonly INTEGER: unknown;
  readonly VARCHAR: unknown;
  readonly DOUBLE: unknown;
}

/** DuckDB's appender, with whole columns, and the same key and indexes. Undefined where it is not installed. */
async function duckDbMs(isSorted: boolean): Promise<number | undefined> {
  let duckdb: DuckDb;
  try {
    duckdb = createRequire(new URL('peers/package.json', import.meta.url))('@duckdb/node-api') as DuckDb;
  } catch {
    return undefined;
  }
  return inFolder(async (folder) => {
    const instance = await duckdb.DuckDBInstance.create(path.join(folder, 'duck.db'));
    const connection = await instance.connect();
    const fields = 'id INTEGER PRIMARY KEY, email VARCHAR UNIQUE, city VARCHAR, score DOUBLE';
    await connection.run(`CREATE TABLE people (${fields})`);
    await connection.run('CREATE INDEX cities ON people (city)');
    const startMs = performance.now();
    const appender = await connection.createAppender('people');
    await connection.run('BEGIN');
    let chunk: Person[] = [];
    const append = (): void => {
      const made = duckdb.DuckDBDataChunk.create([duckdb.INTEGER, duckdb.VARCHAR, duckdb.VARCHAR, duckdb.DOUBLE]);
      made.setColumns([
        chunk.map(({ id }) => id),
        chunk.map(({ email }) => email),
        chunk.map(({ city }) => city),
        chunk.map(({ score }) => score),
      ]);
      appender.appendDataChunk(made);
      chunk = [];
    };
    for (const row of rows(isSorted)) if (chunk.push(row) === 2048) append();
    if (chunk.length > 0) append();
    appender.closeSync();
    await connection.run('COMMIT');
    await connection.run('CHECKPOINT');
    const tookMs = performance.now() - startMs;
    connection.closeSync();
    instance.closeSync();
    return tookMs;
  });
}

const table = new CliTable({ head: ['Rows', 'Way', 'Durable', 'Merged', 'Longest turn'] });
for (const isSorted of [true, false]) {
  const best = new Map<string, Measured>();
  for (let round = 0; round < 2; round++) {
    for (const [name, write] of [
      ['batches', batches],
      ['load', load],
      ['load with a thread', loadWithThread],
    ] as const) {
      const now = await measure(write, isSorted);
      const before = best.get(name);
      if (before === undefined || now.mergedMs < before.mergedMs) best.set(name, now);
    }
  }
  const order = isSorted ? 'in order' : 'in no order';
  const seconds = (ms: number): string => `${(ms / 1000).toFixed(1)} s`;
  for (const [name, { durableMs, mergedMs, longestMs }] of best) {
    table.push([order, name, seconds(durableMs), seconds(mergedMs), `${longestMs.toFixed(0)} ms`]);
  }
  const duckMs = await duckDbMs(isSorted);
  if (duckMs !== undefined) table.push([order, "DuckDB's appender", seconds(duckMs), seconds(duckMs), '']);
}
console.log(`${count} rows\n${table.toString()}`);
