/** Outcomes of a commit that was put, and their errors. */
import { defined } from '../base/options.ts';
import { CommitOutcomeUnknownError, StorageError } from '../base/errors.ts';
import type { Block0 } from '../format/block0.ts';
import type { Commit } from '../format/commit.ts';
import type { CommitLog } from './commit-log.ts';
import type { Block0Register } from '../block0/block0-register.ts';

/** The outcome of a commit. `committed`: it won its slot. `lost`: it did not, and never will. */
export type CommitOutcome = 'committed' | 'lost' | 'unknown';

/** A commit that was put, and whose outcome is not known yet. */
export interface InDoubtCommit {
  readonly slot: number;
  readonly commit: Commit;
  readonly bytes: Uint8Array;
  /** The first put of the commit and the requests that learn its outcome, as long as they are under way. */
  resolving: Promise<CommitOutcome> | undefined;
  /** The last failure of a request for its outcome. */
  failure?: StorageError;
}

/** A failure of the first put of a commit that certainly had no effect. */
export class NotCommittedError extends StorageError {
  constructor(cause: StorageError) {
    super(cause.key, 'none', `${cause.message} Nothing was committed.`, {
      cause,
      ...defined({ reason: cause.reason }),
    });
    // Users see an ordinary failure of the store.
    this.name = 'StorageError';
  }
}

/** Returns the outcome of a failed put: `lost` if it certainly had no effect; `unknown` after any other failure. */
export function outcomeOfFailure(error: unknown): CommitOutcome {
  return error instanceof NotCommittedError ? 'lost' : 'unknown';
}

/** A commit and the slot that it was put at. */
export interface CommitRef {
  /** Id of the commit. */
  readonly commitId: string;
  /** The place in the log that the commit may have taken. */
  readonly slot: number;
  /** Id of the database that the commit was for. If it is given, a call on another database is refused. */
  readonly databaseId?: string;
}

/** A commit and its slot as text, for use as a key. */
export function refKey({ commitId, slot }: CommitRef): string {
  return `${slot}/${commitId}`;
}

/** The error for a commit whose outcome is not known; the batch finds out when it is flushed again. */
export function outcomeUnknown(commit: Required<CommitRef>, cause?: unknown): CommitOutcomeUnknownError {
  const { commitId, slot } = commit;
  const message =
    `Whether commit ${commitId} (slot ${slot}) was applied is not known. Flush the batch again: that resolves the old ` +
    'commit first and never applies it twice. If the batch is gone, call db.resolveCommit() later.';
  return new CommitOutcomeUnknownError(commit, message, { cause });
}

/** Returns the outcome of a commit, as far as reads of the store show it. It writes nothing, so a replica may ask too. */
export async function readOutcome(
  { commitId, slot }: CommitRef,
  log: CommitLog,
  register: Block0Register,
  signal: AbortSignal | undefined,
): Promise<CommitOutcome> {
  const stored = await log.read(slot, signal);
  const { block0 } = await register.refresh(signal);
  if (block0.logFloor >= slot) return deadSlotOutcome(block0, slot, commitId);
  const known = outcomeInBlock0(block0, slot, commitId);
  if (known !== undefined) return known;
  // An empty slot does not mean that the commit is lost: a delayed put may still land.
  if (stored === undefined) return 'unknown';
  return stored.commitId === commitId ? 'committed' : 'lost';
}

/**
 * Returns the outcome of a commit whose slot is at or under the log floor: a dead slot. Its object may be gone, or put again by a late
 * writer, so only the list of applied commits in Block 0 shows the outcome, if it reaches that far.
 */
export function deadSlotOutcome(block0: Block0, slot: number, commitId: string): CommitOutcome {
  return outcomeInBlock0(block0, slot, commitId) ?? 'unknown';
}

/**
 * Returns the outcome that Block 0 records for a slot that it has applied; undefined if it records none. Block 0 decides even if the
 * slot holds something else: where a commit went missing, a repair of the log applies an empty commit in its place, and the slot
 * itself stays free.
 */
export function outcomeInBlock0(
  { applied, appliedSeq }: Block0,
  slot: number,
  commitId: string,
): 'committed' | 'lost' | undefined {
  if (appliedSeq < slot) return undefined;
  const found = applied.find(({ seq }) => seq === slot);
  return found && (found.id === commitId && found.givenUp !== true ? 'committed' : 'lost');
}
