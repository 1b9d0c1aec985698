import { createRequire } from 'node:module';
import { join } from 'node:path';
import type { City, Contender } from './contender.ts';

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

export function openSqlite(folder: string): Contender {
  const SQLite = createRequire(import.meta.url)('better-sqlite3') as new (file: string) => Sqlite;
  const db = new SQLite(join(folder, 'bench.sqlite'));
  db.pragma('journal_mode = WAL');
  // Durable like the others: a commit is on disk when it returns.
  db.pragma('synchronous = FULL');
  db.exec(
    'CREATE TABLE cities (id INTEGER PRIMARY KEY, name TEXT, country TEXT, admin TEXT, lat REAL, lng REAL);' +
      'CREATE INDEX by_country ON cities (country);',
  );
  const insert = db.prepare('INSERT INTO cities VALUES (@id, @name, @country, @admin, @lat, @lng)');
  const get = db.prepare('SELECT * FROM cities WHERE id = ?');
  const byCountry = db.prepare('SELECT * FROM cities WHERE country = ? ORDER BY id');
  const northOf = db.prepare('SELECT count(*) FROM cities WHERE lat > ?').pluck();
  const named = db.prepare('SELECT count(*) FROM cities WHERE name = ?').pluck();
  const southernmost = db.prepare('SELECT * FROM cities ORDER BY lat, id LIMIT ?');
  const update = db.prepare('UPDATE cities SET lat = ? WHERE id = ?');
  return {
    name: 'better-sqlite3',
    load(cities: readonly City[], batchRows: number): void {
      const insertAll = db.transaction((batch: readonly City[]) => {
        for (const city of batch) insert.run(city);
      });
      for (let from = 0; from < cities.length; from += batchRows) insertAll(cities.slice(from, from + batchRows));
    },
    get: (id) => get.get(id),
    byCountry: (country) => byCountry.all(country),
    countNorthOf: (lat) => northOf.get(lat) as number,
    countNamed: (name) => named.get(name) as number,
    southernmost: (limit) => southernmost.all(limit),
    updateOne(id, lat): void {
      update.run(lat, id);
    },
    close(): void {
      db.close();
    },
  };
}
