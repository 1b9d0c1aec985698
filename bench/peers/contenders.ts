/** Who takes part. */
import { openClassicLevel } from './classic-level.ts';
import type { Contender, OpenOptions, StoreContender } from './contender.ts';
import { openDuckDb } from './duckdb.ts';
import { openLanceDb } from './lancedb.ts';
import { openLmdb } from './lmdb.ts';
import { openPlainMemory } from './plain-memory.ts';
import { openS3Db } from './s3db.ts';
import { openSlateDb } from './slatedb.ts';
import { openSqlite } from './sqlite.ts';
import { openStoreDb } from './store-db.ts';

type Opener<Opened> = (options: OpenOptions) => Opened | Promise<Opened>;

/** Not a database: what the machine and the language allow. */
export const limitName = 'limit';

/** In a folder. */
export const openers: Readonly<Record<string, Opener<Contender>>> = {
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
export const storeOpeners: Readonly<Record<string, Opener<StoreContender>>> = {
  StoreDb: openStoreDb,
  lancedb: openLanceDb,
  slatedb: openSlateDb,
  's3db.js': openS3Db,
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
  's3db.js': 's3db.js/lite',
};

/** Who is left out where there are more rows than this, and why. */
export const leftOut: Readonly<Record<string, { readonly maxRows: number; readonly reason: string }>> = {
  's3db.js': {
    maxRows: 10_000,
    reason:
      'left out: it makes five requests for each row, so that 100,000 take half an hour to load. See the table of 5,000 rows.',
  },
};
