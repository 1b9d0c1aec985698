/**
 * The process that `database-kill.test.ts` kills: writes batch after batch, and tells what it is about to do and what was
 * acknowledged. `node <this file, bundled> <folder> <number of the first batch>`
 */
import { writeSync } from 'node:fs';
import type { StorageDriver } from '../../src/storage/driver.ts';
import { StoreDb } from '../../src/index.ts';
import { FileDriver } from '../../src/storage/index.ts';
import { databaseOptions, workload } from './database-chain.ts';
import { addTo, apply, batchOf, readState, tables } from './database-workload.ts';

/** Tells the parent at once: what was written when the process is killed has been told. */
function tell(line: string): void {
  writeSync(1, `${line}\n`);
}

/** A driver that tells when a merge writes its first block, and when Block 0 has been replaced. */
function announcing(driver: StorageDriver): StorageDriver {
  let merging = false;
  return {
    name: driver.name,
    get: (key, options) => driver.get(key, options),
    delete: (keys, options) => driver.delete(keys, options),
    list: (prefix, options) => driver.list(prefix, options),
    async put(key, body, options) {
      if (!merging && (key.includes('/data/') || key.includes('/indexes/'))) {
        merging = true;
        tell('merge');
      }
      const result = await driver.put(key, body, options);
      if (merging && key.endsWith('/block0')) {
        merging = false;
        tell('merged');
      }
      return result;
    },
  };
}

const [folder, first] = process.argv.slice(2) as [string, string];
const db = StoreDb({ ...databaseOptions, driver: announcing(new FileDriver(folder)) });
for (const table of tables) db.registerSchema(table);
await db.start();
let state = await readState(db);
tell('ready');
for (let number = Number(first); ; number++) {
  const operations = batchOf(workload, number, state);
  const batch = db.batch();
  addTo(batch, operations);
  tell(`flush ${number}`);
  await batch.flush();
  tell(`flushed ${number}`);
  state = apply(state, operations);
  // Sometimes at once, besides the turns that come by themselves.
  if (number % 7 === 0) await db.checkpoint();
}
