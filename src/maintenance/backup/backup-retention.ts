/** Which backups are kept and which are not. */
import { InvalidOptionError } from '../../base/errors.ts';
import { kinds } from '../../base/option-checks.ts';
import type { KindsOf } from '../../base/option-checks.ts';
import type { BackupInfo } from './backup.ts';

/** Rules for what is kept: a backup that any of them keeps. The newest is always kept. */
export interface BackupRetention {
  /** The newest so many. */
  readonly keepLast?: number;
  /** Those that are at most so many milliseconds older than the newest. */
  readonly keepWithinMs?: number;
  /** The last one of each of the newest so many days, in UTC, that have backups. */
  readonly keepDaily?: number;
  /** The same for weeks, which begin with Monday. */
  readonly keepWeekly?: number;
  /** The same for months. */
  readonly keepMonthly?: number;
}

const dayMs = 86_400_000;

/** What every rule may be. */
export const retentionKinds: KindsOf<BackupRetention> = {
  keepLast: kinds.whole(0),
  keepWithinMs: kinds.milliseconds(0),
  keepDaily: kinds.whole(0),
  keepWeekly: kinds.whole(0),
  keepMonthly: kinds.whole(0),
};

/** Throws `InvalidOptionError` where there is no rule: nobody wants to delete all backups without saying so. */
export function checkAnyRule(given: BackupRetention): void {
  const rules = Object.keys(retentionKinds);
  if (rules.some((rule) => given[rule as keyof BackupRetention] !== undefined)) return;
  throw new InvalidOptionError('keepLast', `Say which backups are to be kept, by any of ${rules.join(', ')}.`);
}

/** Days since 1970, in which weeks begin with the fourth day: that was a Monday. */
const periods: Readonly<Record<'keepDaily' | 'keepWeekly' | 'keepMonthly', (time: Date) => number>> = {
  keepDaily: (time) => Math.floor(time.getTime() / dayMs),
  keepWeekly: (time) => Math.floor((time.getTime() / dayMs - 4) / 7),
  keepMonthly: (time) => time.getUTCFullYear() * 12 + time.getUTCMonth(),
};

/** The ids of those that are kept. `backups` are in the order of their age, the oldest first. */
export function keptBackups(backups: readonly BackupInfo[], retention: BackupRetention): ReadonlySet<string> {
  const newestFirst = backups.toReversed();
  const { keepLast = 0, keepWithinMs } = retention;
  const [newest] = newestFirst;
  if (newest === undefined) return new Set();
  const kept = new Set(newestFirst.slice(0, Math.max(1, keepLast)).map(({ id }) => id));
  for (const { id, createdAt } of newestFirst) {
    if (keepWithinMs !== undefined && newest.createdAt.getTime() - createdAt.getTime() <= keepWithinMs) kept.add(id);
  }
  for (const [rule, periodOf] of Object.entries(periods)) {
    const seen = new Set<number>();
    for (const { id, createdAt } of newestFirst) {
      const period = periodOf(createdAt);
      if (seen.has(period) || seen.size >= (retention[rule as keyof typeof periods] ?? 0)) continue;
      seen.add(period);
      kept.add(id);
    }
  }
  return kept;
}
