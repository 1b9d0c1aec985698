/**
 * The process that `database-kill.slow.test.ts` kills: writes batch after batch, takes snapshots and collects garbage, and
 * tells what it is about to do and what was acknowledged. `node <this file, bundled> <folder> <number of the first batch>`
 */
import { writeSync } from 'node:fs';
import type { StorageDriver } from '../../../src/storage/contract/driver.ts';
import { StoreDb } from '../../../src/index.ts';
import { FileDriver } from '../../../src/storage/index.ts';
import type { Snapshot } from '../../../src/api/snapshot.ts';
import { databaseOptions, workload } from './database-chain.ts';
import {
  addPapers,
  addTo,
  apply,
  batchOf,
  nextPapers,
  papers,
  papersText,
  readPapers,
  readState,
  stateText,
  tables,
} from './database-workload.ts';

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
for (const table of [...tables, papers]) db.registerSchema(table);
await db.start();
let state = await readState(db);
let present = await readPapers(db);
/** Of the states that are held, what was in them. */
const held: { readonly snapshot: Snapshot; readonly text: string }[] = [];
tell('ready');

async function textOf(shown: typeof db | Snapshot): Promise<string> {
  return `${stateText(await readState(shown))}\n${papersText(await readPapers(shown))}`;
}

async function checkOldest(): Promise<void> {
  const oldest = held.shift();
  if (oldest === undefined) return;
  if ((await textOf(oldest.snapshot)) !== oldest.text) throw new Error('A snapshot shows what it did not before');
  await oldest.snapshot.release();
}

for (let number = Number(first); ; number++) {
  const operations = batchOf(workload, number, state);
  const next = nextPapers(present, number);
  const batch = db.batch();
  addTo(batch, operations);
  addPapers(db, batch, present, next);
  tell(`flush ${number}`);
  await batch.flush();
  tell(`flushed ${number}`);
  state = apply(state, operations);
  present = next;
  // Sometimes at once, besides the turns that come by themselves.
  if (number % 7 === 0) await db.checkpoint();
  if (number % 5 === 0) held.push({ snapshot: await db.snapshot(), text: await textOf(db) });
  if (held.length > 2) await checkOldest();
  if (number % 3 !== 0) continue;
  tell('gc');
  const { failed } = await db.gc({ loopGraceMs: 0, graceMs: 0, logRetentionMs: 0 });
  tell('collected');
  if (failed.length > 0) throw new Error(`gc could not delete ${failed[0]?.name}`);
}
