/** Who takes part, and where the database is. */
import type { Contender, OpenOptions } from './contender.ts';
import { openClassicLevel } from './classic-level.ts';
import { openDuckDb } from './duckdb.ts';
import { openLmdb } from './lmdb.ts';
import { openSqlite } from './sqlite.ts';
import { openStoreDb } from './store-db.ts';

export const openers: Readonly<Record<string, (options: OpenOptions) => Contender | Promise<Contender>>> = {
  StoreDb: openStoreDb,
  'better-sqlite3': openSqlite,
  lmdb: openLmdb,
  duckdb: openDuckDb,
  'classic-level': openClassicLevel,
};
