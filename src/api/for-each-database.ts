/** Opens many databases one after the other, some at a time, and does the same with each: for the databases of all tenants. */
import { forEachOf } from '../base/pacer.ts';
import { defined, kinds, OptionTable } from '../base/options.ts';
import type { Environment } from '../base/env.ts';
import { InvalidOptionError } from '../base/errors.ts';
import { createDatabase } from './database.ts';
import type { Database } from './database.ts';
import { describeValue } from '../base/messages.ts';
import { MemoryBudget } from '../cache/memory-budget.ts';
import { checkOptions, storeDbKinds } from '../instance/options.ts';
import type { StoreDbOptions } from '../instance/options.ts';
import { driverFromProcess } from '../storage/s3/driver-from-env.ts';

/** How far `forEachDatabase()` is. */
export interface DatabasesProgress {
  /** The database that has just been dealt with. */
  readonly prefix: string;
  /** Databases that were dealt with so far. */
  readonly done: number;
  /** How many of those failed. */
  readonly failed: number;
  /** Databases in all. */
  readonly total: number;
}

/**
 * Options of `forEachDatabase()`: those of `StoreDb()`, but for `dbPrefix`, which all databases are opened with, and its own. Unless
 * they say otherwise, `nodeId` is `'auto'` and `polling` `'onDemand'`, and all share a `MemoryBudget` of `maxMemoryBytes`.
 */
export interface ForEachDatabaseOptions extends Omit<StoreDbOptions, 'dbPrefix' | 'nodeId'> {
  /** Default `'auto'`. */
  readonly nodeId?: StoreDbOptions['nodeId'];
  /** How many databases are open at the same time, 1 to 256. Default 8. */
  readonly concurrency?: number;
  /** Whether a database is created where there is none. Default false: that is a failure. */
  readonly create?: boolean;
  /** Begins with no other database once it is aborted. What is under way is waited for: hand it to the calls in `run` as well. */
  readonly signal?: AbortSignal;
  /** Called after each database. */
  readonly onProgress?: (progress: DatabasesProgress) => void;
}

const mebibyte = 1024 * 1024;
const defaultConcurrency = 8;
const maxAtOnce = 256;

const { dbPrefix: _, ...commonKinds } = storeDbKinds;

const databasesOptions = new OptionTable<ForEachDatabaseOptions>({
  ...commonKinds,
  nodeId: { ...commonKinds.nodeId, isRequired: false },
  concurrency: kinds.whole(1, maxAtOnce),
  create: kinds.flag,
  signal: kinds.signal,
  onProgress: kinds.callback,
});

/** What became of the databases. */
export interface DatabasesReport<T> {
  /** What `run` gave, by the prefix of the database, of those that were opened, dealt with and stopped. */
  readonly results: ReadonlyMap<string, T>;
  /** Those that could not be opened or stopped, or for which `run` failed, in the order of the prefixes. */
  readonly failed: readonly { readonly prefix: string; readonly error: unknown }[];
  /** Prefixes of those that were not begun with, since `signal` was aborted. */
  readonly skipped: readonly string[];
}

/** {@link forEachDatabase} in an environment. */
export async function visitDatabases<T>(
  environment: Environment,
  given: Iterable<string>,
  run: (db: Database, prefix: string) => T | Promise<T>,
  options: ForEachDatabaseOptions,
): Promise<DatabasesReport<T>> {
  const {
    concurrency = defaultConcurrency,
    create = false,
    signal,
    onProgress,
    ...common
  } = databasesOptions.check('forEachDatabase()', options);
  const prefixes = checkPrefixes(given, common);
  if (typeof run !== 'function') refuse('run', run, 'a function that is given each database');
  const { memory = new MemoryBudget(common.maxMemoryBytes ?? 100 * mebibyte) } = common;
  const driver = common.driver ?? driverFromProcess();
  const shared = { nodeId: 'auto', polling: 'onDemand', ...common, memory, ...defined({ driver }) } as const;

  const visit = async (dbPrefix: string): Promise<T> => {
    const db = createDatabase({ ...shared, dbPrefix }, environment);
    await db.start(create ? {} : { expectAtLeast: { revision: 1 } });
    let result: T;
    try {
      result = await run(db, dbPrefix);
    } catch (error) {
      // What went wrong first is what matters.
      await db.stop().catch(() => undefined);
      throw error;
    }
    await db.stop();
    return result;
  };

  const outcomes = new Map<string, { readonly result: T } | { readonly error: unknown }>();
  let failed = 0;
  await forEachOf(prefixes, concurrency, async (prefix) => {
    if (signal?.aborted === true) return;
    try {
      outcomes.set(prefix, { result: await visit(prefix) });
    } catch (error) {
      failed++;
      outcomes.set(prefix, { error });
    }
    onProgress?.({ prefix, done: outcomes.size, failed, total: prefixes.length });
  });
  return reportOf(prefixes, outcomes);
}

function reportOf<T>(
  prefixes: readonly string[],
  outcomes: ReadonlyMap<string, { readonly result: T } | { readonly error: unknown }>,
): DatabasesReport<T> {
  const results = new Map<string, T>();
  const failed: { prefix: string; error: unknown }[] = [];
  const skipped: string[] = [];
  for (const prefix of prefixes) {
    const outcome = outcomes.get(prefix);
    if (outcome === undefined) skipped.push(prefix);
    else if ('error' in outcome) failed.push({ prefix, error: outcome.error });
    else results.set(prefix, outcome.result);
  }
  return { results, failed, skipped };
}

/** The prefixes, each once. Options that no database can have are told before any is opened. */
function checkPrefixes(given: Iterable<string>, common: object): string[] {
  if (
    typeof given === 'string' ||
    typeof (given as Partial<Iterable<string>> | null)?.[Symbol.iterator] !== 'function'
  ) {
    refuse('prefixes', given, 'a list of dbPrefixes');
  }
  const prefixes = [...new Set(given)];
  for (const dbPrefix of prefixes.length === 0 ? ['none'] : prefixes) {
    checkOptions({ nodeId: 'auto', ...common, dbPrefix }, driverFromProcess);
  }
  return prefixes;
}

function refuse(option: string, value: unknown, allowed: string): never {
  throw new InvalidOptionError(option, `Option ${option} is ${describeValue(value)}; it must be ${allowed}.`);
}
