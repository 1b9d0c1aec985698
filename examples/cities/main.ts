/**
 * The demo, `npm run demo [-- <folder>]`: a database of all the cities that GeoNames knows, in a folder. It loads them,
 * queries and changes them, closes the database, and opens it again in another process.
 */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { StoreDb } from 'store-db';
import type { Database } from 'store-db';
import { FileDriver } from 'store-db/lib/storage';
import { cities } from './cities.ts';
import { dbPrefix, prepareFolder } from './demo-folder.ts';
import { loadCities } from './load.ts';
import { changeRows, readByKey, runQueries, showOverlay } from './queries.ts';
import { showStored } from './reopen.ts';
import { formatTime, heading } from './report.ts';

const defaultFolder = 'data/cities';
const reopenFlag = '--reopen';

function createDatabase(folder: string): Database {
  const db = StoreDb({ dbPrefix, nodeId: 0, driver: new FileDriver(folder) });
  db.registerSchema(cities);
  return db;
}

async function runDemo(folder: string): Promise<void> {
  const startedMs = performance.now();
  await prepareFolder(folder);
  const total = await fillDatabase(folder);

  heading('Open the folder in another process, where nothing is in memory yet');
  // One of the rows was deleted.
  const child = fork(fileURLToPath(import.meta.url), [reopenFlag, folder, String(total - 1)]);
  const [code] = (await once(child, 'exit')) as [number | null];
  if (code !== 0) throw new Error('The other process did not find what was stored.');
  console.log(
    `\nDone in ${formatTime(performance.now() - startedMs)}. The database is in ${folder}. Look at it in the browser:`,
  );
  console.log(`  npx tsx src/cli/main.ts studio file:${folder}`);
}

/** Loads, queries and changes the cities; returns how many were loaded. */
async function fillDatabase(folder: string): Promise<number> {
  const db = createDatabase(folder);
  await db.start();
  try {
    heading(`Load the cities into ${folder}`);
    const total = await loadCities(db);
    heading('Read rows by primary key');
    await readByKey(db, total);
    heading('Query');
    await runQueries(db);
    heading('See the writes of a batch before it is flushed');
    await showOverlay(db);
    heading('Update and delete');
    await changeRows(db);
    return total;
  } finally {
    // Without this the write-forward loop would keep the process alive.
    await db.stop();
  }
}

async function reopen(folder: string, expectedRows: number): Promise<void> {
  const db = createDatabase(folder);
  try {
    await showStored(db, expectedRows);
  } finally {
    await db.stop();
  }
}

const [first, ...rest] = process.argv.slice(2);
try {
  if (first === reopenFlag) await reopen(rest[0] as string, Number(rest[1]));
  else await runDemo(path.normalize(first ?? defaultFolder));
} catch (error) {
  console.error(`\nThe demo failed: ${error instanceof Error ? error.message : String(error)}`);
  process.exitCode = 1;
}
