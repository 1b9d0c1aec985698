/** What a search costs on a store where each request takes a while, in an instance that has read nothing but Block 0. */
import { setTimeout as sleep } from 'node:timers/promises';
import path from 'node:path';
import { StoreDb } from 'store-db';
import { FileDriver } from 'store-db/lib/storage';
import { searched } from './contenders.ts';
import { wantedRows } from './searches.ts';
import type { BenchSearch } from './searches.ts';

export interface Cold {
  /** The requests of the search. */
  readonly requests: number;
  /** How many rounds of requests came one after the other: the time, in units of the time of a request. */
  readonly rounds: number;
}

const latencyMs = 20;

class SlowDriver extends FileDriver {
  reads = 0;

  override async get(...call: Parameters<FileDriver['get']>): ReturnType<FileDriver['get']> {
    this.reads++;
    await sleep(latencyMs);
    return super.get(...call);
  }
}

export async function coldSearch(folder: string, { text, match, prefix }: BenchSearch): Promise<Cold> {
  const driver = new SlowDriver(path.join(folder, 'searched'));
  await using db = StoreDb({ driver, dbPrefix: 'db', nodeId: 1, logLevel: 'error', polling: 'onDemand' });
  db.registerSchema(searched);
  await db.start();
  // The code for searches is loaded by the first one.
  await db.query(searched).search('').limit(1).execute();
  const before = driver.reads;
  const startedMs = performance.now();
  await db.query(searched).search(text, { match, prefix }).limit(wantedRows).execute();
  return { requests: driver.reads - before, rounds: (performance.now() - startedMs) / latencyMs };
}
