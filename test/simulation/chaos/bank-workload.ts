/** Transfers between accounts, and looks at all accounts of a bank. */
import type { Database } from '../../../src/api/database.ts';
import type { SeededRandom } from '../../../src/testing/seeded-random.ts';
import type { Snapshot } from '../../../src/api/snapshot.ts';
import { applyTransfers } from './bank-checker.ts';
import type { Patience } from './flush.ts';
import { changeGuarded, Refusal } from './guarded-change.ts';
import type { VersionedRow } from './guarded-change.ts';
import type { Balances, Shown, StoredTransfer, TransferAsked } from './history.ts';
import { accounts, openingBalances, transfers } from './tables.ts';

interface AccountRow extends VersionedRow {
  readonly balance: number;
}

export function chooseTransfer(random: SeededRandom, bank: string, id: string): TransferAsked {
  const [from = '', to = ''] = random.shuffled(Object.keys(openingBalances(bank)));
  return { kind: 'transfer', bank, transfer: id, from, to, amount: random.integer(10, 90) };
}

export async function transferGuarded(
  db: Database,
  { bank, transfer, from, to, amount }: TransferAsked,
  patience: Patience,
  onRetry: () => void,
): Promise<undefined> {
  await changeGuarded<AccountRow, void>(
    db,
    {
      table: 'accounts',
      ids: [from, to],
      change: (rows, batch, versionOf) => {
        const balanceOf = (id: string): number => (rows.get(id) as AccountRow).balance;
        if (balanceOf(from) < amount) throw new Refusal('INSUFFICIENT_FUNDS');
        void batch.update(accounts, { id: from, balance: balanceOf(from) - amount, version: versionOf(from) });
        void batch.update(accounts, { id: to, balance: balanceOf(to) + amount, version: versionOf(to) });
        void batch.insert(transfers, { id: transfer, bank, source: from, target: to, amount });
      },
    },
    patience,
    onRetry,
  );
}

export async function readBalances(state: Database | Snapshot, bank: string): Promise<Balances> {
  const rows = await state.query(accounts).where('bank', '=', bank).execute();
  return Object.fromEntries(rows.map(({ id, balance }) => [id, balance as number]));
}

export async function readTransfers(state: Database | Snapshot, bank: string): Promise<Record<string, StoredTransfer>> {
  const rows = await state.query(transfers).where('bank', '=', bank).execute();
  const stored = rows.map(({ id, source, target, amount }): [string, StoredTransfer] => {
    return [id, { from: source as string, to: target as string, amount: amount as number }];
  });
  return Object.fromEntries(stored);
}

/** Of a snapshot, the balances and what its transfers make of the opening ones. */
export async function addUp(snapshot: Snapshot, bank: string): Promise<Shown> {
  const balances = await readBalances(snapshot, bank);
  const stored = Object.values(await readTransfers(snapshot, bank));
  return { balances, implied: applyTransfers(openingBalances(bank), stored) };
}

export async function audit(db: Database, bank: string): Promise<Shown> {
  const snapshot = await db.snapshot();
  try {
    return await addUp(snapshot, bank);
  } finally {
    await snapshot.release().catch(() => undefined);
  }
}
