/** The options of calls that copy a database, checked. */
import { encodeUtf8 } from '../../base/bytes.ts';
import { InvalidOptionError } from '../../base/errors.ts';
import { withOwnSignal } from '../../base/signals.ts';
import { describeValue } from '../../base/describe-value.ts';
import { checkRetention } from './backup-retention.ts';
import type { InspectBackupsOptions, RewriteBackupsOptions } from './backup-keys.ts';
import { checkKind } from '../rewrite/option-checks.ts';
import type { PruneOptions } from './prune.ts';
import type { RestoreOptions } from './restore.ts';
import type { StorePlace } from './state-copy.ts';

const methods = ['get', 'put', 'delete', 'list'] as const;

/** Throws `InvalidOptionError`. */
export function checkPlace(option: string, place: unknown): StorePlace {
  const { driver, prefix } = (place ?? {}) as Partial<Record<keyof StorePlace, unknown>>;
  const isDriver = methods.every(
    (name) => typeof (driver as Record<string, unknown> | undefined)?.[name] === 'function',
  );
  if (!isDriver) {
    throw new InvalidOptionError(
      `${option}.driver`,
      `Option ${option}.driver must be a storage driver, not ${describeValue(driver)}.`,
    );
  }
  const isPrefix =
    typeof prefix === 'string' &&
    prefix.isWellFormed() &&
    encodeUtf8(prefix).length <= 512 &&
    prefix.split('/').every((part) => part !== '' && part !== '.' && part !== '..');
  if (!isPrefix) {
    const allowed = 'a string of 1 to 512 UTF-8 bytes that neither begins nor ends with /, as dbPrefix';
    throw new InvalidOptionError(
      `${option}.prefix`,
      `Option ${option}.prefix is ${describeValue(prefix)}; it must be ${allowed}.`,
    );
  }
  return { driver, prefix } as StorePlace;
}

const pruneNames: readonly (keyof PruneOptions)[] = [
  'from',
  'keepLast',
  'keepWithinMs',
  'keepDaily',
  'keepWeekly',
  'keepMonthly',
  'dryRun',
  'graceMs',
  'encryption',
  'compression',
  'onProgress',
  'signal',
];

/** Throws `InvalidOptionError`. */
export function checkRestore(options: RestoreOptions): RestoreOptions {
  const names = ['from', 'to', 'backup', 'encryption', 'compression', 'onProgress', 'signal'] as const;
  const checked = checkCopy('restoreBackup()', options, names);
  checkPlace('from', options.from);
  checkPlace('to', options.to);
  return checked;
}

/** Throws `InvalidOptionError`. */
export function checkPrune(options: PruneOptions): PruneOptions {
  const checked = checkCopy('pruneBackups()', options, pruneNames);
  checkPlace('from', options.from);
  checkRetention(options);
  const { dryRun, graceMs } = checked;
  checkKind('dryRun', dryRun, 'boolean');
  if (graceMs === undefined || (Number.isSafeInteger(graceMs) && graceMs >= 0)) return checked;
  const allowed = 'whole milliseconds >= 0';
  throw new InvalidOptionError('graceMs', `Option graceMs is ${describeValue(graceMs)}; it must be ${allowed}.`);
}

/** Throws `InvalidOptionError`. */
export function checkInspectBackups(options: InspectBackupsOptions): InspectBackupsOptions {
  const checked = withOwnSignal('inspectBackups()', options, ['from', 'encryption', 'compression', 'signal']);
  checkPlace('from', options.from);
  return checked;
}

/** Throws `InvalidOptionError`. */
export function checkRewriteBackups(options: RewriteBackupsOptions): RewriteBackupsOptions {
  const names = ['from', 'encryption', 'compression', 'dryRun', 'onProgress', 'signal'] as const;
  const checked = checkCopy('rewriteBackups()', options, names);
  checkPlace('from', options.from);
  checkKind('dryRun', options.dryRun, 'boolean');
  return checked;
}

/** Throws `InvalidOptionError`. */
export function checkCopy<T extends { readonly onProgress?: unknown; readonly signal?: AbortSignal }>(
  what: string,
  options: T,
  names: readonly (keyof T & string)[],
): T {
  const checked = withOwnSignal(what, options, names);
  checkKind('onProgress', options.onProgress, 'function');
  return checked;
}
