import { createRequire } from 'node:module';
import path from 'node:path';
import { folderOf } from './contender.ts';
import type { City, Contender, Loader, LoadKind, OpenOptions } from './contender.ts';

/** What is used of @duckdb/node-api, which is installed only for the benchmark. */
interface Reader {
  getRowObjectsJS(): Record<string, unknown>[];
}
interface Prepared {
  bindInteger(index: number, value: number): void;
  bindDouble(index: number, value: number): void;
  bindVarchar(index: number, value: string): void;
  run(): Promise<unknown>;
  runAndReadAll(): Promise<Reader>;
}
interface Chunk {
  setColumns(columns: readonly (readonly unknown[])[]): void;
}
interface Appender {
  appendDataChunk(chunk: Chunk): void;
  flushSync(): void;
  closeSync(): void;
}
interface Connection {
  run(sql: string): Promise<unknown>;
  prepare(sql: string): Promise<Prepared>;
  createAppender(table: string): Promise<Appender>;
  closeSync(): void;
}
interface DuckDb {
  readonly DuckDBInstance: {
    create(
      path: string,
      options: Record<string, string>,
    ): Promise<{ connect(): Promise<Connection>; closeSync(): void }>;
  };
  readonly DuckDBDataChunk: { create(types: readonly unknown[], rowCount?: number): Chunk };
  readonly INTEGER: unknown;
  readonly VARCHAR: unknown;
  readonly DOUBLE: unknown;
}

/** As many rows as DuckDB keeps in a chunk. */
const chunkRows = 2048;

/** Its fastest way in: the appender, with whole columns. */
async function loaderOf(connection: Connection, duckdb: DuckDb, kind: LoadKind): Promise<Loader> {
  const { INTEGER, VARCHAR, DOUBLE } = duckdb;
  const appender = await connection.createAppender('cities');
  if (kind === 'bulk') await connection.run('BEGIN');
  return {
    async add(cities: readonly City[]): Promise<void> {
      if (kind === 'batches') await connection.run('BEGIN');
      for (let from = 0; from < cities.length; from += chunkRows) {
        const rows = cities.slice(from, from + chunkRows);
        const chunk = duckdb.DuckDBDataChunk.create([INTEGER, VARCHAR, VARCHAR, DOUBLE, DOUBLE, INTEGER]);
        chunk.setColumns([
          rows.map(({ id }) => id),
          rows.map(({ name }) => name),
          rows.map(({ country }) => country),
          rows.map(({ lat }) => lat),
          rows.map(({ lng }) => lng),
          rows.map(({ population }) => population),
        ]);
        appender.appendDataChunk(chunk);
      }
      if (kind === 'bulk') return;
      appender.flushSync();
      await connection.run('COMMIT');
    },
    async finish(): Promise<void> {
      appender.closeSync();
      if (kind === 'bulk') await connection.run('COMMIT');
      await connection.run('CHECKPOINT');
    },
  };
}

/**
 * With a primary key and no other indexes: DuckDB's own advice, since it goes over columns faster than through an index, and
 * since they would slow down the load.
 */
export async function openDuckDb({ place, memoryBytes }: OpenOptions): Promise<Contender> {
  const duckdb = createRequire(import.meta.url)('@duckdb/node-api') as DuckDb;
  const options = { memory_limit: `${Math.max(2048, Math.floor(memoryBytes / 1024 / 1024))}MB` };
  const instance = await duckdb.DuckDBInstance.create(path.join(folderOf(place), 'bench.duckdb'), options);
  const connection = await instance.connect();
  await connection.run(
    'CREATE TABLE IF NOT EXISTS cities (id INTEGER PRIMARY KEY, name VARCHAR, country VARCHAR, lat DOUBLE, lng DOUBLE, population INTEGER)',
  );
  const select = (rest: string): Promise<Prepared> => connection.prepare(`SELECT * FROM cities ${rest}`);
  const get = await select('WHERE id = $1');
  const byCountry = await select('WHERE country = $1 ORDER BY id');
  const someByCountry = await select('WHERE country = $1 ORDER BY id LIMIT $2');
  const fromPopulation = await select('WHERE population >= $1 ORDER BY population, id LIMIT $2');
  const mostPopulous = await select('ORDER BY population DESC, id DESC LIMIT $1');
  const southernmost = await select('ORDER BY lat, id LIMIT $1');
  const northOf = await connection.prepare('SELECT count(*)::INTEGER AS n FROM cities WHERE lat > $1');
  const named = await connection.prepare('SELECT count(*)::INTEGER AS n FROM cities WHERE name = $1');
  const update = await connection.prepare('UPDATE cities SET lat = $1 WHERE id = $2');
  const rowsOf = async (prepared: Prepared): Promise<Record<string, unknown>[]> =>
    (await prepared.runAndReadAll()).getRowObjectsJS();
  // A prepared statement holds its parameters, so runs that overlap must wait for each other.
  let turn: Promise<unknown> = Promise.resolve();
  const inTurn = <T>(work: () => Promise<T>): Promise<T> => {
    const done = turn.then(work);
    turn = done.catch(() => undefined);
    return done;
  };
  return {
    loader: (kind) => loaderOf(connection, duckdb, kind),
    get: (id) =>
      inTurn(async () => {
        get.bindInteger(1, id);
        return (await rowsOf(get))[0];
      }),
    byCountry(country, limit) {
      const prepared = limit === undefined ? byCountry : someByCountry;
      prepared.bindVarchar(1, country);
      if (limit !== undefined) prepared.bindInteger(2, limit);
      return rowsOf(prepared);
    },
    fromPopulation(least, limit) {
      fromPopulation.bindInteger(1, least);
      fromPopulation.bindInteger(2, limit);
      return rowsOf(fromPopulation);
    },
    mostPopulous(limit) {
      mostPopulous.bindInteger(1, limit);
      return rowsOf(mostPopulous);
    },
    async countNorthOf(lat): Promise<number> {
      northOf.bindDouble(1, lat);
      return (await rowsOf(northOf))[0]?.['n'] as number;
    },
    async countNamed(name): Promise<number> {
      named.bindVarchar(1, name);
      return (await rowsOf(named))[0]?.['n'] as number;
    },
    southernmost(limit) {
      southernmost.bindInteger(1, limit);
      return rowsOf(southernmost);
    },
    update: (id, lat) =>
      inTurn(async () => {
        update.bindDouble(1, lat);
        update.bindInteger(2, id);
        await update.run();
      }),
    close(): void {
      connection.closeSync();
      instance.closeSync();
    },
  };
}
