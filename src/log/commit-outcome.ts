/** What becomes of a commit that was put, and the errors that say so. */
import { defined } from '../base/defined.ts';
import { CommitOutcomeUnknownError, StorageError } from '../base/errors.ts';
import type { Block0 } from '../format/block0.ts';
import type { Commit } from '../format/commit.ts';
import type { CommitLog } from './commit-log.ts';
import type { Block0Register } from '../block0/block0-register.ts';

/** Whether a commit has its slot. */
export type Fate = 'applied' | 'lost' | 'unknown';

/** A commit that was put, and whose outcome is not known yet. */
export interface Undecided {
  readonly slot: number;
  readonly commit: Commit;
  readonly bytes: Uint8Array;
  /** Its first put and what follows from it, as long as that is under way. */
  settling: Promise<Fate> | undefined;
  /** What went wrong last. */
  failure?: StorageError;
}

/** A failure of the first put of a commit that certainly had no effect. */
export class DefiniteFailure extends StorageError {
  constructor(cause: StorageError) {
    super(cause.key, 'none', `${cause.message} Nothing was committed.`, {
      cause,
      ...defined({ reason: cause.reason }),
    });
    // What users see is an ordinary failure of the store.
    this.name = 'StorageError';
  }
}

/** A put that was refused for certain has lost its slot; any other failure says nothing. */
export function lostForCertain(error: unknown): Fate {
  return error instanceof DefiniteFailure ? 'lost' : 'unknown';
}

/** A commit and the slot that it was put at. */
export interface CommitRef {
  /** Id of the commit. */
  readonly commitId: string;
  /** The place in the log that the commit may have taken. */
  readonly slot: number;
  /** Id of the database that the commit was for. Where it is given, another database is not asked. */
  readonly databaseId?: string;
}

/** The same as text. */
export function refKey({ commitId, slot }: CommitRef): string {
  return `${slot}/${commitId}`;
}

/** Nobody knows, and the batch finds out when it is flushed again. */
export function outcomeUnknown(commit: Required<CommitRef>, cause?: unknown): CommitOutcomeUnknownError {
  const { commitId, slot } = commit;
  const message =
    `Whether commit ${commitId} (slot ${slot}) was applied is not known. Flush the batch again: it settles the old ` +
    'commit first and never applies it twice. Where the batch is gone, ask db.resolveCommit() later.';
  return new CommitOutcomeUnknownError(commit, message, { cause });
}

/** What became of a commit as far as the store tells: nothing is written for it, so that whoever reads may ask. */
export async function readFate(
  { commitId, slot }: CommitRef,
  log: CommitLog,
  register: Block0Register,
  signal: AbortSignal | undefined,
): Promise<Fate> {
  const stored = await log.read(slot, signal);
  const { block0 } = await register.refresh(signal);
  if (block0.logFloor >= slot) return deadSlotFate(block0, slot, commitId);
  // A repair of the log went on without it, whatever lies in the slot.
  if (block0.applied.some(({ seq, givenUp }) => seq === slot && givenUp === true)) return 'lost';
  // A missing slot is no "no": a delayed put may still land.
  if (stored === undefined) return 'unknown';
  return stored.commitId === commitId ? 'applied' : 'lost';
}

/** The dead-slot rule: at or under the floor only the list of applied commits tells, if it reaches that far. */
export function deadSlotFate(block0: Block0, slot: number, commitId: string): Fate {
  const entry = block0.applied.find(({ seq }) => seq === slot);
  if (entry === undefined) return 'unknown';
  return entry.id === commitId ? 'applied' : 'lost';
}
