/**
 * The process that the kill tests kill: writes batch after batch, and tells what it is about to do and what was
 * acknowledged. `node <this file, bundled> <its task as JSON>`
 */
import { writeSync } from 'node:fs';
import type { StorageDriver } from '../../../src/storage/contract/driver.ts';
import { StoreDb } from '../../../src/index.ts';
import { isRemote, openStore } from './crash-store.ts';
import { databaseOptions, fences, persistently, workload } from './database-chain.ts';
import type { ChildTask } from './database-chain.ts';
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

const { store, dbPrefix, first } = JSON.parse(process.argv[2] as string) as ChildTask;
const remote = isRemote(store);

/** In a folder nothing may fail. */
function attempt<T>(call: () => Promise<T>): Promise<T> {
  return remote ? persistently(call, (code) => tell(`failed ${code}`)) : call();
}

/** How long a flush is waited for: mostly long enough. It is given up otherwise, and settled by the next one. */
function patience(number: number, attempts: number): { signal?: AbortSignal } {
  const ms = [2000, 300, 1000, 100][number % 4] as number;
  return remote ? { signal: AbortSignal.timeout(ms * 2 ** attempts) } : {};
}

const db = StoreDb({ ...databaseOptions, dbPrefix, driver: announcing(openStore(store)) });
for (const table of [...tables, fences]) db.registerSchema(table);
await attempt(() => db.start());
let state = await attempt(() => readState(db));
tell('ready');
for (let number = first; ; number++) {
  const operations = batchOf(workload, number, state);
  const batch = db.batch();
  addTo(batch, operations);
  tell(`flush ${number}`);
  let attempts = 0;
  await attempt(() => batch.flush(patience(number, attempts++)));
  tell(`flushed ${number}`);
  state = apply(state, operations);
  // Sometimes at once, besides the turns that come by themselves.
  if (number % 7 === 0) await attempt(() => db.checkpoint());
}
