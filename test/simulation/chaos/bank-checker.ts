/**
 * Checks a history of transfers between accounts: no money comes into being or vanishes, in any read; every transfer that
 * was acknowledged is noted once and has changed the balances once, and none that failed.
 */
import type { Anomaly, Balances, History, Operation, StoredTransfer } from './history.ts';

function sumOf(balances: Balances): number {
  return Object.values(balances).reduce((sum, balance) => sum + balance, 0);
}

function textOf(balances: Balances): string {
  return Object.entries(balances)
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([account, balance]) => `${account}=${balance}`)
    .join(' ');
}

export function applyTransfers(opening: Balances, transfers: Iterable<StoredTransfer>): Balances {
  const balances = { ...opening };
  for (const { from, to, amount } of transfers) {
    balances[from] = (balances[from] ?? 0) - amount;
    balances[to] = (balances[to] ?? 0) + amount;
  }
  return balances;
}

export function checkBanks(history: History): Anomaly[] {
  return Object.entries(history.opening).flatMap(([bank, opening]) => {
    const own = history.operations.filter(({ asked }) => 'bank' in asked && asked.bank === bank);
    return checkReads(bank, opening, own).concat(checkTransfers(bank, history, own));
  });
}

function checkReads(bank: string, opening: Balances, operations: readonly Operation[]): Anomaly[] {
  const total = sumOf(opening);
  return operations.flatMap(({ id, shown }) => {
    const found: Anomaly[] = [];
    const { balances, implied } = shown ?? {};
    if (balances === undefined) return found;
    const seen = `${id} saw ${bank}: ${textOf(balances)}`;
    if (sumOf(balances) !== total) found.push({ kind: 'wrong sum', message: `${seen}, in sum not ${total}` });
    if (Object.values(balances).some((balance) => balance < 0)) found.push({ kind: 'negative balance', message: seen });
    if (implied !== undefined && textOf(balances) !== textOf(implied))
      found.push({ kind: 'balances without transfers', message: `${seen}; its transfers give ${textOf(implied)}` });
    return found;
  });
}

function checkTransfers(bank: string, history: History, operations: readonly Operation[]): Anomaly[] {
  const found: Anomaly[] = [];
  const report = (kind: string, message: string): unknown => found.push({ kind, message });
  const { balances, transfers } = history.final.banks[bank] ?? { balances: {}, transfers: {} };
  const asked = new Set<string>();
  for (const { id, outcome, asked: what } of operations) {
    if (what.kind !== 'transfer') continue;
    asked.add(what.transfer);
    const stored = transfers[what.transfer];
    if (outcome === 'ok' && stored === undefined) report('lost transfer', `${id} was acknowledged and is not noted`);
    if (outcome === 'failed' && stored !== undefined)
      report('failed transfer shows up', `${id} had failed and is noted`);
    if (stored === undefined) continue;
    const isSame = stored.from === what.from && stored.to === what.to && stored.amount === what.amount;
    if (!isSame) report('wrong transfer', `${id} is noted as ${JSON.stringify(stored)}, not ${JSON.stringify(what)}`);
  }
  for (const transfer of Object.keys(transfers))
    if (!asked.has(transfer)) report('unknown transfer', `nobody asked for transfer ${transfer}`);
  const expected = applyTransfers(history.opening[bank] as Balances, Object.values(transfers));
  if (textOf(balances) !== textOf(expected))
    report('lost update', `${bank} has ${textOf(balances)}; its transfers give ${textOf(expected)}`);
  return found;
}
