/** `forEachDatabase()`: opens many databases, a few at a time, and runs the same function on each, as for all tenants. */
import { forEachOf } from '../base/pacer.ts';
import { defined, kinds, OptionTable } from '../base/options.ts';
import type { Environment } from '../base/env.ts';
import { DatabaseReplacedError, InvalidOptionError, NotADatabaseError } from '../base/errors.ts';
import { createDatabase } from './database.ts';
import type { Database } from './database.ts';
import { describeValue } from '../base/messages.ts';
import { MemoryBudget } from '../cache/memory-budget.ts';
import { checkOptions, storeDbKinds } from '../instance/options.ts';
import type { StoreDbOptions } from '../instance/options.ts';
import { environmentDriver } from '#environment-driver';

/** The progress of `forEachDatabase()`. */
export interface DatabasesProgress {
  /** The prefix of the database that was just completed. */
  readonly prefix: string;
  /** The number of databases completed so far, including failed ones. */
  readonly done: number;
  /** The number of databases that failed. */
  readonly failed: number;
  /** The number of all databases. */
  readonly total: number;
}

/**
 * Options of `forEachDatabase()`: its own, and the options of `StoreDb()` except `dbPrefix`, for all databases. By default `nodeId` is
 * `'auto'`, `polling` is `'onDemand'`, and all databases share a `MemoryBudget` of `maxMemoryBytes`.
 */
export interface ForEachDatabaseOptions extends Omit<StoreDbOptions, 'dbPrefix' | 'nodeId'> {
  /** Default `'auto'`. */
  readonly nodeId?: StoreDbOptions['nodeId'];
  /** The number of databases that are open at the same time, 1 to 256. Default 8. */
  readonly concurrency?: number;
  /** Whether to create a database that does not exist. Default false: that is a failure. */
  readonly create?: boolean;
  /** Once it is aborted, no other database is opened. Running calls are awaited: pass the signal to the calls in `run` as well. */
  readonly signal?: AbortSignal;
  /** Called after each database. */
  readonly onProgress?: (progress: DatabasesProgress) => void;
}

const mebibyte = 1024 * 1024;
const defaultConcurrency = 8;
const maxAtOnce = 256;

const { dbPrefix: _, waitUntil: __, ...commonKinds } = storeDbKinds;

const databasesOptions = new OptionTable<ForEachDatabaseOptions>({
  ...commonKinds,
  role: kinds.choice('writer', 'replica'),
  concurrency: kinds.whole(1, maxAtOnce),
  create: kinds.flag,
  signal: kinds.signal,
  onProgress: kinds.callback,
});

/** The results of `forEachDatabase()`. */
export interface DatabasesReport<T> {
  /** The results of `run` by prefix, for the databases that did not fail. */
  readonly results: ReadonlyMap<string, T>;
  /** The databases that could not be opened or stopped, or for which `run` failed, in the order of the prefixes. */
  readonly failed: readonly { readonly prefix: string; readonly error: unknown }[];
  /** The prefixes of the databases that were not opened because `signal` was aborted. */
  readonly skipped: readonly string[];
}

/** `forEachDatabase()` with an environment. */
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
  if (typeof run !== 'function') refuse('run', run, 'a function that takes each database');
  const { memory = new MemoryBudget(common.maxMemoryBytes ?? 100 * mebibyte) } = common;
  const driver = common.driver ?? environmentDriver();
  const shared = { nodeId: 'auto', polling: 'onDemand', ...common, memory, ...defined({ driver }) } as const;

  const visit = async (dbPrefix: string): Promise<T> => {
    const db = createDatabase({ ...shared, dbPrefix }, environment);
    await db.start(create ? {} : { expectAtLeast: { revision: 1 } }).catch((error: unknown) => {
      throw error instanceof DatabaseReplacedError ? noDatabase(dbPrefix) : error;
    });
    let result: T;
    try {
      result = await run(db, dbPrefix);
    } catch (error) {
      // The first error is the one to report.
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

function noDatabase(dbPrefix: string): NotADatabaseError {
  return new NotADatabaseError(
    `There is no database under ${dbPrefix}/, and none was created. Check the prefix, or set option create of forEachDatabase() to true.`,
  );
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

/** Returns the prefixes without repetitions, and checks the options. Throws `InvalidOptionError`. */
function checkPrefixes(given: Iterable<string>, common: object): string[] {
  if (
    typeof given === 'string' ||
    typeof (given as Partial<Iterable<string>> | null)?.[Symbol.iterator] !== 'function'
  ) {
    refuse('prefixes', given, 'a list of dbPrefixes');
  }
  const prefixes = [...new Set(given)];
  for (const dbPrefix of prefixes.length === 0 ? ['none'] : prefixes) {
    checkOptions({ nodeId: 'auto', ...common, dbPrefix }, environmentDriver);
  }
  return prefixes;
}

function refuse(option: string, value: unknown, allowed: string): never {
  throw new InvalidOptionError(option, `Option ${option} is ${describeValue(value)}; it must be ${allowed}.`);
}
