/** Options and arguments of calls, and their checks. */
import { isDate } from '../base/brands.ts';
import { defined } from '../base/defined.ts';
import { describeValue } from '../base/describe-value.ts';
import { InvalidOptionError } from '../base/errors.ts';
import { kinds, OptionTable, wrongOption } from '../base/option-checks.ts';
import type { OptionKind } from '../base/option-checks.ts';
import type { CommitRef } from '../log/commit-outcome.ts';
import type { ExpectedState } from '../engine/open-database.ts';
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

/** Options of `db.start()`. */
export interface StartOptions {
  /**
   * The least state that may be opened. A database that is older, since somebody put an older Block 0 or bucket back, or that is
   * not there at all, rejects, and nothing is created. Remember `db.stats().log.revision` where the bucket's owner cannot write.
   * Default: whatever is stored is opened.
   */
  readonly expectAtLeast?: ExpectedState;
}

/** A position in the log. */
export const positionKind: OptionKind = {
  ...kinds.whole(0),
  allowed: 'a position: a whole number >= 0, such as db.position',
};

export const refreshOptions: OptionTable<RefreshOptions> = new OptionTable({
  atLeast: positionKind,
  signal: kinds.signal,
});

const expectedState = new OptionTable<ExpectedState>({ revision: kinds.whole(0), generation: kinds.whole(0) });

const stateKind: OptionKind = {
  ...kinds.options(expectedState),
  allowed: '{ revision }, { generation } or both',
};

export const startOptions: OptionTable<StartOptions> = new OptionTable({
  expectAtLeast: {
    ...stateKind,
    look: (what, path, value) => {
      const { revision, generation } = expectedState.check(what, value as ExpectedState, path);
      if (revision === undefined && generation === undefined) throw wrongOption(what, path, value, stateKind);
    },
  },
});

const longestExpiryMs = 30 * 86_400_000;

const snapshotOptions = new OptionTable<SnapshotOptions>({
  expiresAfterMs: kinds.milliseconds(1000, longestExpiryMs),
  signal: kinds.signal,
});

/** Throws `InvalidOptionError`. */
export function checkSnapshotOptions(
  what: string,
  options: SnapshotOptions,
): { timeToLiveMs: number; signal: AbortSignal | undefined } {
  const { expiresAfterMs = 3_600_000, signal } = snapshotOptions.check(what, options);
  return { timeToLiveMs: expiresAfterMs, signal };
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
