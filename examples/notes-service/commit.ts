import { CommitOutcomeUnknownError } from 'store-db';
import type { Batch } from 'store-db';

/** How long a client is kept waiting for the store. By itself, a flush would try for a minute. */
const patienceMs = 10_000;

/**
 * Commits a batch. If the store did not say whether it took the commit, the same batch is flushed again: that finds out
 * first, and never applies the batch twice.
 */
export async function commit(batch: Batch, timeoutMs = patienceMs): Promise<void> {
  try {
    await batch.flush({ signal: AbortSignal.timeout(timeoutMs) });
  } catch (error) {
    if (!(error instanceof CommitOutcomeUnknownError)) throw error;
    await batch.flush({ signal: AbortSignal.timeout(patienceMs) });
  }
}
