/** The options of calls that copy a database, checked. */
import { encodeUtf8 } from '../base/bytes.ts';
import { InvalidOptionError } from '../base/errors.ts';
import { withOwnSignal } from '../base/signals.ts';
import { describeValue } from '../format/values.ts';
import { checkRetention } from './backup-retention.ts';
import type { InspectBackupsOptions, RewriteBackupsOptions } from './backup-keys.ts';
import { checkKind, checkNames } from './option-checks.ts';
import type { PruneOptions } from './prune.ts';
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

/** Throws `InvalidOptionError`. */
export function checkPrune(options: PruneOptions): PruneOptions {
  checkPlace('from', options.from);
  checkRetention(options);
  const checked = checkCopy(options);
  const { dryRun, graceMs } = checked;
  checkKind('dryRun', dryRun, 'boolean');
  if (graceMs === undefined || (Number.isSafeInteger(graceMs) && graceMs >= 0)) return checked;
  const allowed = 'whole milliseconds >= 0';
  throw new InvalidOptionError('graceMs', `Option graceMs is ${describeValue(graceMs)}; it must be ${allowed}.`);
}

/** Throws `InvalidOptionError`. */
export function checkInspectBackups(options: InspectBackupsOptions): InspectBackupsOptions {
  checkNames(options, ['from', 'encryption', 'compression', 'signal']);
  checkPlace('from', options.from);
  return withOwnSignal('inspectBackups()', options);
}

/** Throws `InvalidOptionError`. */
export function checkRewriteBackups(options: RewriteBackupsOptions): RewriteBackupsOptions {
  checkNames(options, ['from', 'encryption', 'compression', 'dryRun', 'onProgress', 'signal']);
  checkPlace('from', options.from);
  checkKind('dryRun', options.dryRun, 'boolean');
  return checkCopy(options);
}

/** Throws `InvalidOptionError`. */
export function checkCopy<T extends { readonly onProgress?: unknown; readonly signal?: AbortSignal }>(options: T): T {
  checkKind('onProgress', options.onProgress, 'function');
  return withOwnSignal('a copy', options);
}
