/**
 * A durable commit of one row, by one client, beside the system calls that it needs: `npm run bench:commit [-- <rounds>]`. All ways
 * take turns, for 50 commits each. Where the benchmark's peers are installed (`npm run bench` does that), better-sqlite3 takes part.
 */
import fs from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import CliTable from 'cli-table3';
import { defineSchema, StoreDb, Types } from 'store-db';
import { FileDriver } from 'store-db/lib/storage';

const rounds = Number(process.argv[2] ?? 60);
const perRound = 50;
const rowCount = 2000;
/** As many bytes as a commit of one row takes. */
const recordBytes = 836;
const syncInPool = promisify(fs.fdatasync);

const cities = defineSchema({
  name: 'cities',
  version: 1,
  fields: {
    id: { typeId: Types.uint32 },
    name: { typeId: Types.varchar, maxLength: 64 },
    country: { typeId: Types.varchar, maxLength: 2 },
    lat: { typeId: Types.float64 },
    population: { typeId: Types.uint32 },
  },
  primaryKey: 'id',
  indexes: ['country', 'population'],
});

interface Way {
  readonly name: string;
  /** Makes commit `i` durable. */
  readonly commit: (i: number) => unknown;
  readonly end?: () => unknown;
}

/** A row that differs each time: an update that changes nothing is no commit. */
function rowOf(i: number): { id: number; name: string; country: string; lat: number; population: number } {
  const id = i % rowCount;
  return { id, name: `city ${id}`, country: 'FR', lat: i / 7, population: id * 3 };
}

/** System calls on one file: an append, or a write over zeros, and a sync here or in the runtime's pool. */
function callsOf(folder: string, name: string, isOverZeros: boolean, isInPool: boolean): Way {
  const file = fs.openSync(path.join(folder, name), 'w');
  const record = Buffer.alloc(recordBytes, 1);
  const length = (rounds + 2) * perRound * recordBytes;
  if (isOverZeros) fs.writeSync(file, Buffer.alloc(length));
  fs.fsyncSync(file);
  const write = (i: number): number => fs.writeSync(file, record, 0, recordBytes, i * recordBytes);
  const commit = isInPool
    ? (i: number): Promise<void> => {
        write(i);
        return syncInPool(file);
      }
    : (i: number): void => {
        write(i);
        fs.fdatasyncSync(file);
      };
  return { name, commit, end: () => fs.closeSync(file) };
}

function putOf(folder: string, name: string, durability: 'fsync' | 'none'): Way {
  const driver = new FileDriver({ path: path.join(folder, name), durability });
  const body = new Uint8Array(recordBytes).fill(1);
  const commit = (i: number): unknown => driver.put(`db/committed/${`${i}`.padStart(16, '0')}`, body, { if: 'absent' });
  return { name, commit, end: () => driver.close() };
}

async function commitOf(folder: string, name: string, durability: 'fsync' | 'none'): Promise<Way> {
  const driver = new FileDriver({ path: path.join(folder, name), durability });
  const db = StoreDb({ driver, dbPrefix: 'db', nodeId: 0, logLevel: 'error' });
  db.registerSchema(cities);
  await db.start();
  const batch = db.batch();
  for (let i = 0; i < rowCount; i++) void batch.insert(cities, rowOf(i));
  await batch.flush();
  await db.checkpoint();
  const commit = async (i: number): Promise<void> => {
    const change = db.batch();
    void change.upsert(cities, rowOf(rowCount + i));
    await change.flush();
  };
  return { name, commit, end: () => db.stop() };
}

/** What is used of better-sqlite3. */
interface Sqlite {
  pragma(text: string): unknown;
  exec(text: string): unknown;
  prepare(text: string): { run(row: object): unknown };
  close(): unknown;
}

/** Undefined where better-sqlite3 is not installed. */
function sqliteOf(folder: string): Way | undefined {
  let SQLite: new (file: string) => Sqlite;
  try {
    SQLite = createRequire(new URL('peers/package.json', import.meta.url))('better-sqlite3') as typeof SQLite;
  } catch {
    return undefined;
  }
  const db = new SQLite(path.join(folder, 'sqlite'));
  db.pragma('journal_mode = WAL');
  db.pragma('synchronous = FULL');
  db.exec('CREATE TABLE cities (id INTEGER PRIMARY KEY, name TEXT, country TEXT, lat REAL, population INTEGER)');
  db.exec('CREATE INDEX countries ON cities (country); CREATE INDEX populations ON cities (population)');
  const upsert = db.prepare('INSERT OR REPLACE INTO cities VALUES (@id, @name, @country, @lat, @population)');
  db.exec('BEGIN');
  for (let i = 0; i < rowCount; i++) upsert.run(rowOf(i));
  db.exec('COMMIT');
  return { name: 'better-sqlite3', commit: (i) => upsert.run(rowOf(rowCount + i)), end: () => db.close() };
}

const folder = fs.mkdtempSync(path.join(tmpdir(), 'store-db-commit-'));
try {
  const sqlite = sqliteOf(folder);
  const ways: Way[] = [
    callsOf(folder, 'append, fdatasync', false, false),
    callsOf(folder, 'append, fdatasync in the pool', false, true),
    callsOf(folder, 'write over zeros, fdatasync', true, false),
    callsOf(folder, 'write over zeros, fdatasync in the pool', true, true),
    ...(sqlite === undefined ? [] : [sqlite]),
    putOf(folder, 'put by FileDriver', 'fsync'),
    putOf(folder, 'put by FileDriver, not synced', 'none'),
    await commitOf(folder, 'commit by StoreDb', 'fsync'),
    await commitOf(folder, 'commit by StoreDb, not synced', 'none'),
  ];
  const took = new Map<Way, number[]>(ways.map((way) => [way, []]));
  // The first round compiles the code, and does not count.
  for (let round = 0; round <= rounds; round++) {
    for (const way of ways) {
      const startMs = performance.now();
      for (let i = 0; i < perRound; i++) await way.commit(round * perRound + i);
      if (round > 0) took.get(way)?.push(((performance.now() - startMs) * 1000) / perRound);
    }
  }
  const table = new CliTable({ head: ['Way', 'Median, µs', 'Quietest eighth', 'Speed, better-sqlite3 = 1'] });
  const at = (way: Way, part: number): number => {
    const sorted = (took.get(way) ?? []).toSorted((a, b) => a - b);
    return sorted[Math.floor(sorted.length * part)] ?? Number.NaN;
  };
  for (const way of ways) {
    const ratio = sqlite === undefined ? '' : (at(sqlite, 0.5) / at(way, 0.5)).toFixed(2);
    table.push([way.name, at(way, 0.5).toFixed(0), at(way, 0.125).toFixed(0), ratio]);
  }
  console.log(table.toString());
  for (const way of ways) await way.end?.();
} finally {
  fs.rmSync(folder, { recursive: true, force: true });
}
