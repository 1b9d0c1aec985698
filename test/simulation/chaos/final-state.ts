/** The initial data of a run, and the state that a fresh instance finds in the end. */
import { StoreDb } from '../../../src/index.ts';
import type { Database } from '../../../src/index.ts';
import { openStore } from '../crash/crash-store.ts';
import type { CrashStore } from '../crash/crash-store.ts';
import { persistently } from '../crash/database-chain.ts';
import { readBalances, readTransfers } from './bank-workload.ts';
import type { Anomaly, Balances, FinalState } from './history.ts';
import { readFields } from './lane-workers.ts';
import { elementOf } from './list-workload.ts';
import { readPapers } from './paper-workload.ts';
import {
  accounts,
  banks,
  databaseOptions,
  entries,
  fences,
  lists,
  marks,
  openingBalances,
  shared,
  sharedRows,
  tables,
} from './tables.ts';

/** An instance of the parent's own, which takes hardly any turns. */
async function withDatabase<T>(store: CrashStore, dbPrefix: string, call: (db: Database) => Promise<T>): Promise<T> {
  const driver = openStore(store);
  const db = StoreDb({ ...databaseOptions, dbPrefix, nodeId: 200, driver, writeForwardInterval: 60_000 });
  for (const table of tables) db.registerSchema(table);
  await persistently(
    () => db.start(),
    () => undefined,
  );
  try {
    return await call(db);
  } finally {
    await db.stop();
  }
}

export function prepareDatabase(store: CrashStore, dbPrefix: string): Promise<void> {
  return withDatabase(store, dbPrefix, async (db) => {
    const batch = db.batch();
    for (const bank of banks) {
      for (const [id, balance] of Object.entries(openingBalances(bank)))
        void batch.insert(accounts, { id, bank, balance, version: 0 });
    }
    for (const id of sharedRows) void batch.insert(shared, { id, a: 0, b: 0, c: 0, d: 0 });
    await batch.flush();
  });
}

export const openings: Readonly<Record<string, Balances>> = Object.fromEntries(
  banks.map((bank) => [bank, openingBalances(bank)]),
);

export interface Ending {
  readonly final: FinalState;
  readonly anomalies: readonly Anomaly[];
  /** Commits in the log since the database was made. */
  readonly commits: number;
}

/** Reads everything, collects garbage and looks everything over. */
export function endDatabase(store: CrashStore, dbPrefix: string): Promise<Ending> {
  return withDatabase(store, dbPrefix, async (db) => {
    // What killed processes sent last can only land in the next slot: once that is taken, it has landed or never will.
    const batch = db.batch();
    void batch.insert(fences, { id: 'end' });
    await batch.flush();
    const final = await readFinalState(db);
    await db.checkpoint();
    const { failed } = await db.gc({ loopGraceMs: 0, graceMs: 0, logRetentionMs: 0 });
    const { ok, findings } = await db.verify({ deep: true });
    const anomalies: Anomaly[] = failed.map(({ name }) => ({ kind: 'gc', message: `${name} could not be deleted` }));
    if (!ok || findings.length > 0)
      anomalies.push({ kind: 'verify', message: JSON.stringify(findings.slice(0, 10), undefined, 2) });
    if (JSON.stringify(await readFinalState(db)) !== JSON.stringify(final))
      anomalies.push({ kind: 'gc', message: 'what is read is not the same after everything was merged and collected' });
    return { final, anomalies, commits: db.stats().log?.tail ?? 0 };
  });
}

async function readFinalState(db: Database): Promise<FinalState> {
  const found: Record<string, string[]> = {};
  for (const { id, items } of await db.query(lists).execute()) found[id] = items as string[];
  for (const { id, list } of await db.query(entries).orderBy('list', 'asc').orderBy('position', 'asc').execute())
    (found[list as string] ??= []).push(elementOf(id));
  const banksFound: Record<string, FinalState['banks'][string]> = {};
  for (const bank of banks)
    banksFound[bank] = { balances: await readBalances(db, bank), transfers: await readTransfers(db, bank) };
  const fields = { ...(await readFields(db)), ...(await readPapers(db)) };
  const marked = await db.query(marks).execute();
  return { lists: found, banks: banksFound, marks: marked.map(({ id }) => id), fields };
}
