/** Checks the options of calls that copy or rewrite a database, or work on backups. */
import { InvalidOptionError } from '../../base/errors.ts';
import { kinds, OptionTable } from '../../base/options.ts';
import type { OptionKind, KindsOf } from '../../base/options.ts';
import { driverKind, placePrefixKind } from '../../storage/contract/requests.ts';
import { compressionKind, encryptionKind } from '../../storage/wrap/encryption-options.ts';
import type { InspectBackupsOptions, RewriteBackupsOptions } from './backup-keys.ts';
import type { CopyOptions } from './backup.ts';
import type { BackupRetention, PruneOptions } from './prune.ts';
import type { RestoreOptions } from './restore.ts';
import type { StorePlace } from './state-copy.ts';
import type { RewriteOptions } from './rewrite.ts';

export const rewriteKinds: KindsOf<RewriteOptions> = {
  dryRun: kinds.flag,
  onProgress: kinds.callback,
  signal: kinds.signal,
};

/** Checks a place to copy databases to. */
export const placeOptions: OptionTable<StorePlace> = new OptionTable({
  driver: kinds.required(driverKind),
  prefix: kinds.required(placePrefixKind),
});

const place = kinds.required(kinds.options(placeOptions));
const protection: { readonly encryption: OptionKind; readonly compression: OptionKind } = {
  encryption: encryptionKind,
  compression: compressionKind,
};

export const copyOptions: OptionTable<CopyOptions> = new OptionTable({
  onProgress: kinds.callback,
  signal: kinds.signal,
});

const restoreOptions = new OptionTable<RestoreOptions>({
  from: place,
  to: place,
  backup: kinds.text('the id of a backup', () => true),
  ...protection,
  ...copyOptions.kinds,
});

/** Checks the value of each rule. */
const retentionKinds: KindsOf<BackupRetention> = {
  keepLast: kinds.whole(0),
  keepWithinMs: kinds.milliseconds(0),
  keepDaily: kinds.whole(0),
  keepWeekly: kinds.whole(0),
  keepMonthly: kinds.whole(0),
};

/** Throws `InvalidOptionError` if there is no rule: nobody wants to delete all backups without saying so. */
function checkAnyRule(given: BackupRetention): void {
  const rules = Object.keys(retentionKinds);
  if (rules.some((rule) => given[rule as keyof BackupRetention] !== undefined)) return;
  throw new InvalidOptionError('keepLast', `Say which backups are to be kept, by any of ${rules.join(', ')}.`);
}

const pruneOptions = new OptionTable<PruneOptions>({
  from: place,
  ...retentionKinds,
  dryRun: kinds.flag,
  graceMs: kinds.milliseconds(0),
  ...protection,
  onProgress: kinds.callback,
  signal: kinds.signal,
});

const inspectOptions = new OptionTable<InspectBackupsOptions>({ from: place, ...protection, signal: kinds.signal });

const rewriteBackupsOptions = new OptionTable<RewriteBackupsOptions>({ from: place, ...protection, ...rewriteKinds });

/** Throws `InvalidOptionError`. */
export function checkRestore(options: RestoreOptions): RestoreOptions {
  return restoreOptions.check('restoreBackup()', options);
}

/** Throws `InvalidOptionError`. */
export function checkPrune(options: PruneOptions): PruneOptions {
  const checked = pruneOptions.check('pruneBackups()', options);
  checkAnyRule(checked);
  return checked;
}

/** Throws `InvalidOptionError`. */
export function checkInspectBackups(options: InspectBackupsOptions): InspectBackupsOptions {
  return inspectOptions.check('inspectBackups()', options);
}

/** Throws `InvalidOptionError`. */
export function checkRewriteBackups(options: RewriteBackupsOptions): RewriteBackupsOptions {
  return rewriteBackupsOptions.check('rewriteBackups()', options);
}

export const rewriteOptions: OptionTable<RewriteOptions> = new OptionTable(rewriteKinds);
