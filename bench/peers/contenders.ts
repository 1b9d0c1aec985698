/** Who takes part. */
import { openClassicLevel } from './classic-level.ts';
import type { Contender, OpenOptions } from './contender.ts';
import { openDuckDb } from './duckdb.ts';
import { openLanceDb } from './lancedb.ts';
import { openLmdb } from './lmdb.ts';
import { openPlainMemory } from './plain-memory.ts';
import { openSlateDb } from './slatedb.ts';
import { openSqlite } from './sqlite.ts';
import { openStoreDb } from './store-db.ts';

type Opener = (options: OpenOptions) => Contender | Promise<Contender>;

/** Not a database: what the machine and the language allow. */
export const limitName = 'limit';

/** In a folder. */
export const openers: Readonly<Record<string, Opener>> = {
  StoreDb: openStoreDb,
  'better-sqlite3': openSqlite,
  lmdb: openLmdb,
  duckdb: openDuckDb,
  'classic-level': openClassicLevel,
  lancedb: openLanceDb,
  slatedb: openSlateDb,
  [limitName]: openPlainMemory,
};

/** On an object store. */
export const storeOpeners: Readonly<Record<string, Opener>> = {
  StoreDb: openStoreDb,
  lancedb: openLanceDb,
  slatedb: openSlateDb,
};

/** What is installed for a contender, or what StoreDb itself needs. */
export const packages: Readonly<Record<string, string>> = {
  StoreDb: '@aws-sdk/client-s3',
  'better-sqlite3': 'better-sqlite3',
  lmdb: 'lmdb',
  duckdb: '@duckdb/node-api',
  'classic-level': 'classic-level',
  lancedb: '@lancedb/lancedb',
  slatedb: '@slatedb/uniffi',
};

/** Who was asked for, and cannot take part. */
export const absent: Readonly<Record<string, string>> = {
  's3db.js':
    'npm cannot install 21.6.2: of the packages that it depends on, cli-args-parser, recker 1.0.103 and tuiuiu.js 1.0.63 were not to be had on 2026-11-22.',
};
