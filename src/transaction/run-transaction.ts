/** Runs a transaction: attempt after attempt, each on a newer view, until one of them is committed. */
import { Later } from '../base/later.ts';
import { defined, kinds, OptionTable } from '../base/options.ts';
import type { Backoff } from '../base/env.ts';
import { sleep, pauseMs } from '../base/env.ts';
import { InvalidOptionError, TransactionConflictError } from '../base/errors.ts';
import { abortedError } from '../base/abort.ts';
import { Batch } from '../batch/batch.ts';
import type { TransactionStats } from '../maintenance/stats.ts';
import type { Engine } from '../engine/engine.ts';
import type { EngineHost } from '../instance/engine-host.ts';
import { describeValue } from '../base/messages.ts';
import type { Instance } from '../instance/instance.ts';
import type { Transaction, TransactionHost } from './transaction.ts';

/** Options of `db.transaction()`. */
export interface TransactionOptions {
  /** After how many attempts it rejects with `TransactionConflictError`: an integer from 1 to 1,000. Default 16. */
  readonly maxAttempts?: number;
  /**
   * Whether the transaction begins with everything that was committed before the call, for two reads more. Default true. With
   * false it begins with the view of this instance, at most two intervals old: its reads are still checked before its writes are
   * committed, but not where it throws, or returns without a write.
   */
  readonly fresh?: boolean;
  /**
   * Gives the transaction up: it rejects with `AbortedError`, or with `CommitOutcomeUnknownError` if it had begun to
   * commit. The function is not interrupted, but can read and write nothing any more.
   */
  readonly signal?: AbortSignal;
}

/** The function that a transaction runs. Called once for each attempt. */
export type TransactionFunction<T> = (tx: Transaction) => Promise<T> | T;

const transacting = new Later('transactions', () => import('./transaction.ts'));
const transactionCall = 'db.transaction()';

const defaultMaxAttempts = 16;
const betweenAttempts: Backoff = { firstMs: 20, maxMs: 2000, jitter: 'around' };

const transactionOptions = new OptionTable<TransactionOptions>({
  maxAttempts: kinds.whole(1, 1000),
  fresh: kinds.flag,
  signal: kinds.signal,
});

/** Runs `run` in a transaction; see `db.transaction()`. */
export async function runTransaction<T>(
  instance: Instance,
  run: TransactionFunction<T>,
  given: TransactionOptions,
): Promise<T> {
  const options = transactionOptions.check('db.transaction()', given);
  if (typeof run !== 'function') {
    throw new InvalidOptionError(
      'run',
      `${transactionCall} takes a function (tx) => value, not ${describeValue(run)}.`,
    );
  }
  const { maxAttempts = defaultMaxAttempts } = options;
  const { transactions } = instance;
  try {
    const host = instance.admit(transactionCall);
    const committed = attemptUntilCommitted(host, run, { ...options, maxAttempts }, transactions);
    host.waitFor(committed);
    return await committed;
  } catch (error) {
    transactions.failed++;
    throw error;
  }
}

async function attemptUntilCommitted<T>(
  instance: EngineHost,
  run: TransactionFunction<T>,
  options: TransactionOptions & { readonly maxAttempts: number },
  transactions: TransactionStats,
): Promise<T> {
  const { engine, environment } = instance;
  const { maxAttempts } = options;
  for (let attempt = 1; ; attempt++) {
    instance.admit(transactionCall);
    await freshen(engine, attempt > 1 || options.fresh !== false, options.signal);
    const code = transacting.loaded ?? (await transacting.load());
    const host = new code.TransactionHost(instance, attempt);
    try {
      const value = await makeAttempt(engine, host, (batch) => new code.Transaction(host, batch), run, options.signal);
      transactions.committed++;
      return value;
    } catch (error) {
      if (host.conflict === undefined) throw error;
      transactions.conflicts++;
      if (attempt >= maxAttempts) throw givenUp(attempt, host.conflict);
    } finally {
      host.end();
    }
    const signal = engine.untilClosed(options.signal);
    const delayMs = pauseMs(betweenAttempts, attempt, environment.random());
    await engine.withSignal(transactionCall, options.signal, () => sleep(environment, delayMs, signal));
  }
}

/** Makes the view fresh enough for an attempt: with everything that was committed before it, or at most two intervals old. */
async function freshen(engine: Engine, always: boolean, signal: AbortSignal | undefined): Promise<void> {
  engine.asked();
  if (always) await engine.withDeadline(transactionCall, signal, (deadline) => engine.refresh(deadline.signal));
  else if (engine.isStale)
    await engine.withDeadline(transactionCall, signal, (deadline) => engine.freshen(deadline.signal));
  if (signal?.aborted === true) throw abortedError(transactionCall, signal.reason);
}

async function makeAttempt<T>(
  engine: Engine,
  host: TransactionHost,
  begin: (batch: Batch) => Transaction,
  run: TransactionFunction<T>,
  signal: AbortSignal | undefined,
): Promise<T> {
  const batch = new Batch(host);
  const tx = begin(batch);
  let value: T;
  try {
    // An error that it throws at once is its failure too.
    value = await engine.withSignal(transactionCall, signal, async () => run(tx));
  } finally {
    tx.end();
  }
  // Rejects with the conflict if there was one already, even if the function went on as if nothing were the matter.
  await batch.flush(defined({ signal }));
  return value;
}

function givenUp(attempts: number, conflict: TransactionConflictError): TransactionConflictError {
  const message =
    `The transaction was given up after ${attempts} ${attempts === 1 ? 'attempt' : 'attempts'}, since others changed ` +
    'what it had read before each could be committed. Nothing of it was applied: try it again, read less in it, or let ' +
    'one instance write what all of them change.';
  return new TransactionConflictError(attempts, message, { cause: conflict });
}
