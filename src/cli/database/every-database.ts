/** Runs one task on every database of a store, or of a folder in it: `tend --all`, `migrate --all`. */
import { forEachOf } from '../../base/pacer.ts';
import { messageOf } from '../../base/brands.ts';
import { messageText } from '../../base/messages.ts';
import { MemoryBudget } from '../../cache/memory-budget.ts';
import { ObservedDriver } from '../../storage/wrap/observed-driver.ts';
import { confirmed } from './command.ts';
import type { Session } from './command.ts';
import { locate, findDatabases, describePlace } from './open-database.ts';
import type { Place } from './open-database.ts';
import { ExitCode, UsageError } from '../terminal/exit-code.ts';
import { plural } from '../terminal/figures.ts';
import { Progress } from '../terminal/progress.ts';

const mebibyte = 1024 * 1024;
const maxAtOnce = 256;

export const everyOptions = {
  all: {
    type: 'boolean',
    default: false,
    describe: 'Run on every database in the store, or under the prefix of the URL',
  },
  concurrency: { type: 'number', default: 8, describe: 'With --all: how many databases are open at the same time' },
} as const;

/** One of the databases. */
export interface Each {
  readonly place: Place;
  /** The URL, for messages. */
  readonly name: string;
  /** The budget that all databases share. */
  readonly memory: MemoryBudget;
}

/** The task to run on each database. */
export interface EachTask<T> {
  /** The label of the progress bar: `migrating notes`. */
  readonly what: string;
  /** How many are open at the same time. */
  readonly concurrency: number;
  /**
   * Returns the question to ask before the task starts, about `3 databases in s3://bucket/tenants`. Absent for tasks that change
   * nothing: then nothing is asked.
   */
  readonly question?: (databases: string) => string;
  /** Whether the question is answered with yes already. */
  readonly yes: boolean;
  /** Prints details before the question. Not called with `yes`. */
  readonly prepare?: (places: readonly Place[]) => Promise<void>;
  readonly run: (each: Each) => Promise<{ readonly result: T; readonly isFailure: boolean }>;
  /** Prints a result as text. With `--json` the result is printed unchanged, with the name of the database. */
  readonly print: (each: Each, result: T) => void;
}

/** A driver that many databases share. `close()` does nothing, so that a database that stops does not close it for the others. */
class SharedDriver extends ObservedDriver {
  override async close(): Promise<void> {
    // `placesOf` made the driver inside, and closes it.
  }
}

interface Found extends AsyncDisposable {
  /** The store or folder that was searched, for messages. */
  readonly where: string;
  readonly places: readonly Place[];
}

/** Finds the databases that the URL means. Throws `UsageError` if there are none. */
async function placesOf(session: Session, url: string): Promise<Found> {
  const { driver: own, store, storeId, prefix: under } = locate(url);
  const { prefixes } = await findDatabases(own, session.signal, { under, patient: true });
  const where = under === undefined ? store : describePlace({ store, prefix: under });
  if (prefixes.length === 0) throw new UsageError(`There is no database in ${where}.`);
  const driver = new SharedDriver(own);
  const { storage } = session;
  const places = prefixes.map((prefix): Place => ({ driver, store, storeId, prefix, storage }));
  return { where, places, [Symbol.asyncDispose]: async () => own.close?.() };
}

/**
 * Runs the task on every database, a few at a time. If it fails on one, it still runs on the others, and the exit status is 1. Results
 * are printed as they come. Throws `UsageError` if there is no database.
 */
export async function doToEvery<T extends object>(session: Session, url: string, task: EachTask<T>): Promise<ExitCode> {
  const { terminal, signal } = session;
  const { what, concurrency, yes } = task;
  if (!Number.isInteger(concurrency) || concurrency < 1 || concurrency > maxAtOnce) {
    throw new UsageError(`--concurrency is ${concurrency}; it must be an integer from 1 to ${maxAtOnce}.`);
  }
  await using found = await placesOf(session, url);
  const { where, places } = found;
  if (!yes) await task.prepare?.(places);
  const question = task.question?.(`${plural(places.length, 'database')} in ${where}`);
  if (question !== undefined && !(await confirmed(session, question, yes))) return ExitCode.interrupted;
  const memory = new MemoryBudget(100 * mebibyte);
  let [done, failed] = [0, 0];
  using progress = new Progress(terminal, { what, total: places.length });
  const visit = async (each: Each): Promise<() => void> => {
    const { name } = each;
    try {
      const { result, isFailure } = await task.run(each);
      if (isFailure) failed++;
      return () => (terminal.json ? terminal.printJson({ database: name, ...result }) : task.print(each, result));
    } catch (error) {
      failed++;
      const message = messageText(messageOf(error));
      return () =>
        terminal.json ? terminal.printJson({ database: name, error: message }) : terminal.tell(`${name}: ${message}`);
    }
  };
  await forEachOf(places, concurrency, async (place) => {
    if (signal.aborted) return;
    const print = await visit({ place, name: describePlace(place), memory });
    // A database whose task was interrupted has not failed.
    if (signal.aborted) return;
    progress.behind(print);
    progress.set(++done);
  });
  signal.throwIfAborted();
  if (failed > 0) progress.behind(() => terminal.tell(`${failed} of ${plural(places.length, 'database')} failed.`));
  return failed > 0 ? ExitCode.found : ExitCode.done;
}
