import { createRequire } from 'node:module';
import path from 'node:path';
import { folderOf } from './contender.ts';
import type { City, Contender, Loader, LoadKind, OpenOptions } from './contender.ts';

/** What is used of better-sqlite3, which is installed only for the benchmark. */
interface Statement {
  run(...values: unknown[]): unknown;
  get(...values: unknown[]): unknown;
  all(...values: unknown[]): unknown[];
  pluck(): Statement;
}
interface Sqlite {
  pragma(text: string): unknown;
  exec(text: string): unknown;
  prepare(text: string): Statement;
  transaction<T extends unknown[]>(run: (...values: T) => void): (...values: T) => void;
  close(): unknown;
}

const indexes =
  'CREATE INDEX IF NOT EXISTS by_country ON cities (country);' +
  'CREATE INDEX IF NOT EXISTS by_population ON cities (population);';

function loaderOf(db: Sqlite, kind: LoadKind): Loader {
  const insert = db.prepare('INSERT INTO cities VALUES (@id, @name, @country, @lat, @lng, @population)');
  const addAll = (rows: readonly City[]): void => {
    for (const city of rows) insert.run(city);
  };
  if (kind === 'batches') {
    db.exec(indexes);
    return { add: db.transaction(addAll), finish: () => db.pragma('wal_checkpoint(TRUNCATE)') };
  }
  // One transaction, and indexes at last, when they can be sorted.
  db.exec('BEGIN');
  return {
    add: addAll,
    finish(): void {
      db.exec(`${indexes}COMMIT`);
      db.pragma('wal_checkpoint(TRUNCATE)');
    },
  };
}

export function openSqlite({ place, memoryBytes }: OpenOptions): Contender {
  const SQLite = createRequire(import.meta.url)('better-sqlite3') as new (file: string) => Sqlite;
  const db = new SQLite(path.join(folderOf(place), 'bench.sqlite'));
  db.pragma('journal_mode = WAL');
  // Durable like the others: a commit is on disk when it returns.
  db.pragma('synchronous = FULL');
  db.pragma(`mmap_size = ${4 * 1024 ** 3}`);
  db.pragma(`cache_size = -${Math.floor(memoryBytes / 1024)}`);
  db.exec(
    'CREATE TABLE IF NOT EXISTS cities (id INTEGER PRIMARY KEY, name TEXT, country TEXT, lat REAL, lng REAL, population INTEGER)',
  );
  const get = db.prepare('SELECT * FROM cities WHERE id = ?');
  const byCountry = db.prepare('SELECT * FROM cities WHERE country = ? ORDER BY id');
  const someByCountry = db.prepare('SELECT * FROM cities WHERE country = ? ORDER BY id LIMIT ?');
  const fromPopulation = db.prepare('SELECT * FROM cities WHERE population >= ? ORDER BY population, id LIMIT ?');
  const northOf = db.prepare('SELECT count(*) FROM cities WHERE lat > ?').pluck();
  const named = db.prepare('SELECT count(*) FROM cities WHERE name = ?').pluck();
  const southernmost = db.prepare('SELECT * FROM cities ORDER BY lat, id LIMIT ?');
  const mostPopulous = db.prepare('SELECT * FROM cities ORDER BY population DESC, id DESC LIMIT ?');
  const upsert = db.prepare(
    'INSERT INTO cities VALUES (@id, @name, @country, @lat, @lng, @population) ON CONFLICT (id) DO UPDATE SET ' +
      'name = excluded.name, country = excluded.country, lat = excluded.lat, lng = excluded.lng, population = excluded.population',
  );
  const begin = db.prepare('BEGIN');
  const commit = db.prepare('COMMIT');
  const update = db.prepare('UPDATE cities SET lat = ? WHERE id = ?');
  return {
    loader: (kind) => loaderOf(db, kind),
    get: (id) => get.get(id),
    byCountry: (country, limit) => (limit === undefined ? byCountry.all(country) : someByCountry.all(country, limit)),
    fromPopulation: (least, limit) => fromPopulation.all(least, limit),
    mostPopulous: (limit) => mostPopulous.all(limit),
    changes() {
      begin.run();
      return { upsert: (row) => upsert.run(row), commit: () => commit.run() };
    },
    countNorthOf: (lat) => northOf.get(lat) as number,
    countNamed: (name) => named.get(name) as number,
    southernmost: (limit) => southernmost.all(limit),
    update: (id, lat) => void update.run(lat, id),
    close: () => db.close(),
  };
}
