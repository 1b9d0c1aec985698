/** The transactions of the workload: appends to lists that are stored in either way, and transfers. */
import { CommitOutcomeUnknownError } from '../../../src/base/errors.ts';
import type { Database } from '../../../src/api/database.ts';
import type { Transaction } from '../../../src/transaction/transaction.ts';
import type { SeededRandom } from '../../../src/testing/seeded-random.ts';
import type { Patience } from './flush.ts';
import { Refusal } from './guarded-change.ts';
import type { Balances, ListsAsked, Shown, TransferAsked } from './history.ts';
import { elementOf } from './list-workload.ts';
import { accounts, entries, lists, transfers } from './tables.ts';

/** How long it is waited for an answer to what became of a commit. */
const settlingMs = 10_000;

/** How a transaction reads what it reads: each way has a kind of its own in what is validated. */
type Reading = 'key' | 'index' | 'range';

export interface TransactionManner {
  readonly reading: Reading;
  /** Whether lists are read again after the appends. */
  readonly looksAgain: boolean;
  /** `settles`: whether it is asked what became of a commit whose outcome is unknown. Otherwise it stays unknown. */
  readonly patience: Patience;
}

export function chooseManner(random: SeededRandom, patience: Patience): TransactionManner {
  const reading = random.pick(['key', 'index', 'range'] as const);
  return { reading, looksAgain: random.chance(0.3), patience };
}

/** Runs a transaction, and tells whenever it is begun anew. */
async function transact<T>(
  db: Database,
  { patience }: TransactionManner,
  onRetry: () => void,
  run: (tx: Transaction) => Promise<T>,
): Promise<T> {
  const attempts: Promise<T>[] = [];
  const counted = (tx: Transaction): Promise<T> => {
    if (attempts.length > 0) onRetry();
    const attempt = run(tx);
    attempts.push(attempt);
    return attempt;
  };
  try {
    return await db.transaction(counted, { signal: AbortSignal.timeout(patience.ms) });
  } catch (error) {
    if (!(error instanceof CommitOutcomeUnknownError) || !patience.settles) throw error;
    let isApplied: boolean;
    try {
      isApplied = await db.resolveCommit(error, { signal: AbortSignal.timeout(settlingMs) });
    } catch {
      throw error;
    }
    if (!isApplied) throw new Refusal('CONTENTION');
    return await (attempts.at(-1) as Promise<T>);
  }
}

/** All that follows a list's name and a blank, and nothing else: the next character after the blank is `!`. */
function rangeOf(key: string): readonly [string, string] {
  return [`${key} `, `${key}!`];
}

async function readList(tx: Transaction, key: string, reading: Reading): Promise<string[]> {
  const [from, to] = rangeOf(key);
  if (key.startsWith('e')) {
    const query = tx.query(entries);
    const chosen =
      reading === 'range' ? query.where('id', '>=', from).where('id', '<', to) : query.where('list', '=', key);
    const rows = await chosen.orderBy('position', 'asc').execute();
    return rows.map(({ id }) => elementOf(id));
  }
  if (reading === 'key') return (((await tx.get(lists, key))?.items as string[] | null) ?? []).slice();
  const rows = await tx
    .query(lists)
    .where('id', reading === 'index' ? 'IN' : '=', reading === 'index' ? [key] : key)
    .execute();
  return ((rows[0]?.items as string[] | null) ?? []).slice();
}

async function append(tx: Transaction, key: string, before: readonly string[], element: string): Promise<void> {
  if (key.startsWith('e')) {
    await tx.insert(entries, { id: `${key} ${element}`, list: key, position: before.length });
    return;
  }
  const row = { id: key, items: [...before, element] };
  // Of two that find none only one may insert it, and the other begins anew.
  await (before.length === 0 ? tx.insert(lists, row) : tx.update(lists, row));
}

export function appendInTransaction(
  db: Database,
  { reads, appends }: ListsAsked,
  manner: TransactionManner,
  onRetry: () => void,
): Promise<Shown> {
  return transact(db, manner, onRetry, async (tx) => {
    const seen: Record<string, string[]> = {};
    const after: Record<string, string[]> = {};
    for (const key of reads) seen[key] = await readList(tx, key, manner.reading);
    for (const [key, element] of appends) await append(tx, key, seen[key] as string[], element);
    if (!manner.looksAgain) return { lists: seen };
    for (const key of reads) after[key] = await readList(tx, key, manner.reading);
    return { lists: seen, after };
  });
}

/**
 * What counts as read is, with `key`, the two accounts; with `index`, all of the bank; with `range`, those that hold
 * enough and not much more: others change all the time whether one does.
 */
export function transferInTransaction(
  db: Database,
  { bank, transfer, from, to, amount }: TransferAsked,
  manner: TransactionManner,
  onRetry: () => void,
): Promise<Shown | undefined> {
  return transact(db, manner, onRetry, async (tx) => {
    const read = async (id: string): Promise<number> => (await tx.get(accounts, id))?.balance as number;
    const seen: Balances =
      manner.reading === 'key'
        ? { [from]: await read(from), [to]: await read(to) }
        : manner.reading === 'index'
          ? await readBank(tx, bank)
          : { [to]: await read(to), ...(await readBank(tx, bank, [amount, amount + 50])) };
    const balance = seen[from];
    if (balance === undefined || balance < amount) throw new Refusal('INSUFFICIENT_FUNDS');
    await tx.update(accounts, { id: from, balance: balance - amount });
    await tx.update(accounts, { id: to, balance: (seen[to] as number) + amount });
    await tx.insert(transfers, { id: transfer, bank, source: from, target: to, amount });
    return manner.reading === 'index' ? { balances: seen } : undefined;
  });
}

/** The accounts that hold at least `least` and less than `most`. */
async function readBank(
  tx: Transaction,
  bank: string,
  [least, most] = [0, Number.MAX_SAFE_INTEGER],
): Promise<Balances> {
  const all = tx.query(accounts).where('bank', '=', bank);
  const rows = await (least === 0 ? all : all.where('balance', '>=', least).where('balance', '<', most)).execute();
  return Object.fromEntries(rows.map(({ id, balance }) => [id, balance as number]));
}
