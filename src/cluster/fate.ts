/** What becomes of a commit that was put, and the errors that say so. */
import { CommitOutcomeUnknownError, StorageError } from '../base/errors.ts';
import type { Block0 } from '../format/block0.ts';

/** Whether a commit has its slot. */
export type Fate = 'applied' | 'lost' | 'unknown';

/** A failure of the first put of a commit that certainly had no effect. */
export class DefiniteFailure extends StorageError {
  constructor(cause: StorageError) {
    super(cause.key, 'none', `${cause.message} Nothing was committed.`, { cause });
    // What users see is an ordinary failure of the store.
    this.name = 'StorageError';
  }
}

/** A put that was refused for certain has lost its slot; any other failure says nothing. */
export function lostForCertain(error: unknown): Fate {
  return error instanceof DefiniteFailure ? 'lost' : 'unknown';
}

/** Nobody knows, and the batch finds out when it is flushed again. */
export function outcomeUnknown(of: { commitId: string; slot: number }, cause?: unknown): CommitOutcomeUnknownError {
  const message =
    `Whether commit ${of.commitId} (slot ${of.slot}) was applied is not known. ` +
    'Flush the batch again: it settles the old commit first and never applies it twice.';
  return new CommitOutcomeUnknownError(of.commitId, of.slot, message, { cause });
}

/** The dead-slot rule: at or under the floor only the list of applied commits tells, if it reaches that far. */
export function deadSlotFate(block0: Block0, slot: number, commitId: string): Fate {
  const entry = block0.applied.find(({ seq }) => seq === slot);
  if (entry === undefined) return 'unknown';
  return entry.id === commitId ? 'applied' : 'lost';
}
