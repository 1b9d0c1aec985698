/** All checks of a history. */
import { allowedErrors } from './allowed-errors.ts';
import { checkBanks } from './bank-checker.ts';
import type { Anomaly, History, Operation } from './history.ts';
import { checkLists } from './list-checker.ts';
import { checkFields, checkMarks } from './row-checker.ts';

/** Whether an operation may have changed anything: only those can end with an unknown outcome. */
export function isWrite({ asked }: Operation): boolean {
  if (asked.kind === 'lists') return asked.appends.length > 0;
  return ['transfer', 'mark', 'unmark', 'field'].includes(asked.kind);
}

function checkErrors({ operations }: History): Anomaly[] {
  return operations
    .filter(({ error }) => error !== undefined && !allowedErrors.has(error))
    .map(({ id, asked, error }) => ({ kind: 'unexpected error', message: `${id} (${asked.kind}): ${error}` }));
}

function checkHolds({ operations }: History): Anomaly[] {
  return operations
    .filter(({ shown }) => shown?.first !== shown?.again)
    .map(({ id, shown }) => {
      const message = `${id} held a snapshot that showed ${shown?.first}, and later ${shown?.again}`;
      return { kind: 'snapshot changed', message };
    });
}

/** What an operation tells by itself, whatever there is in the end. */
export function checkReports(history: History): Anomaly[] {
  return [checkErrors, checkHolds].flatMap((check) => check(history));
}

/** Everything in a history that must not be. */
export function checkHistory(history: History): Anomaly[] {
  const checks = [checkReports, checkLists, checkBanks, checkMarks, checkFields];
  return checks.flatMap((check) => check(history));
}
