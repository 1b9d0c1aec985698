/** Options and arguments of calls, and their checks. */
import { isDate } from '../base/brands.ts';
import { defined } from '../base/defined.ts';
import { InvalidOptionError } from '../base/errors.ts';
import { checkNames } from '../base/known-names.ts';
import { withOwnSignal } from '../base/signals.ts';
import type { CommitRef } from '../log/commit-outcome.ts';
import type { ExpectedState } from '../engine/open-database.ts';
import { describeValue } from '../base/describe-value.ts';
import { isUuid } from '../format/values.ts';

/** Options of calls that reach the store. */
export interface CallOptions {
  /** Gives the call up. */
  readonly signal?: AbortSignal;
}

/** Options of `db.refresh()`. */
export interface RefreshOptions extends CallOptions {
  /**
   * A position, such as `db.position` of the instance that wrote. Where this instance shows it already, nothing is
   * asked of the store; where it does not, it is waited for, up to a minute. Default: whatever was committed before the call.
   */
  readonly atLeast?: number;
}

/** Options of `db.snapshot()`. */
export interface SnapshotOptions extends CallOptions {
  /**
   * After how long others may take the snapshot for abandoned, in milliseconds, if its holder has not renewed it: it does so
   * by itself as long as it runs. Default 3,600,000 (an hour).
   */
  readonly expiresAfterMs?: number;
}

export function checkPosition(option: string, value: unknown): void {
  if (Number.isSafeInteger(value) && (value as number) >= 0) return;
  throw new InvalidOptionError(
    option,
    `Option ${option} is ${describeValue(value)}; it must be a position: a whole number >= 0, such as db.position.`,
  );
}

/** Options of `db.start()`. */
export interface StartOptions {
  /**
   * The least state that may be opened. A database that is older, since somebody put an older Block 0 or bucket back, or that is
   * not there at all, rejects, and nothing is created. Remember `db.stats().log.revision` where the bucket's owner cannot write.
   * Default: whatever is stored is opened.
   */
  readonly expectAtLeast?: ExpectedState;
}

/** Throws `InvalidOptionError`. */
export function checkStartOptions(options: StartOptions): ExpectedState | undefined {
  checkNames('db.start()', options, ['expectAtLeast']);
  const { expectAtLeast } = options;
  if (expectAtLeast === undefined) return undefined;
  const isObject = typeof expectAtLeast === 'object' && (expectAtLeast as unknown) !== null;
  const numbers = isObject ? Object.entries(expectAtLeast) : [];
  const isState = numbers.every(([name, value]) => {
    return (name === 'revision' || name === 'generation') && Number.isSafeInteger(value) && (value as number) >= 0;
  });
  if (numbers.length > 0 && isState) return expectAtLeast;
  throw new InvalidOptionError(
    'expectAtLeast',
    `Option expectAtLeast is ${describeValue(expectAtLeast)}; it must be { revision }, { generation } or both, whole numbers >= 0.`,
  );
}

export function checkCommit(commit: unknown): CommitRef {
  const { commitId, slot, databaseId } = Object(commit) as Partial<Record<keyof CommitRef, unknown>>;
  const isOfDatabase = databaseId === undefined || (typeof databaseId === 'string' && isUuid(databaseId));
  const isCommit = typeof commitId === 'string' && isUuid(commitId) && isOfDatabase;
  if (isCommit && Number.isSafeInteger(slot) && (slot as number) > 0) {
    return { commitId, slot: slot as number, ...defined({ databaseId }) };
  }
  throw new InvalidOptionError(
    'commit',
    `The commit is ${describeValue(commit)}; it must be a CommitOutcomeUnknownError, or an object with its commitId ` +
      'and slot.',
  );
}

export function isTime(value: unknown): boolean {
  return isDate(value) && !Number.isNaN(value.getTime());
}

export function checkSnapshotOptions(options: SnapshotOptions): {
  timeToLiveMs: number;
  signal: AbortSignal | undefined;
} {
  const { expiresAfterMs = 3_600_000, signal } = withOwnSignal('A snapshot', options, ['expiresAfterMs', 'signal']);
  if (Number.isInteger(expiresAfterMs) && expiresAfterMs >= 1000 && expiresAfterMs <= 2_592_000_000) {
    return { timeToLiveMs: expiresAfterMs, signal };
  }
  const allowed = 'whole milliseconds from 1,000 to 2,592,000,000 (30 days)';
  throw new InvalidOptionError(
    'expiresAfterMs',
    `Option expiresAfterMs is ${describeValue(expiresAfterMs)}; it must be ${allowed}.`,
  );
}
