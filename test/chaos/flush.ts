/** Flushes that are given up, and settled or not. */
import type { Batch } from '../../src/batch/batch.ts';

export interface Patience {
  /** How long a flush is waited for, in milliseconds. */
  readonly ms: number;
  /** Whether a flush whose outcome is unknown is flushed again, which settles it. Otherwise it stays unknown. */
  readonly settles: boolean;
}

const maxSettling = 4;

/** Flushes a batch. Rejects with `CommitOutcomeUnknownError` if it stays unknown; any other error is definite. */
export async function flushOnce(batch: Batch, { ms, settles }: Patience): Promise<void> {
  for (let attempt = 0; ; attempt++) {
    try {
      await batch.flush({ signal: AbortSignal.timeout(ms * 2 ** attempt) });
      return;
    } catch (error) {
      const isUnknown = (error as { code?: string }).code === 'COMMIT_OUTCOME_UNKNOWN';
      if (!isUnknown || !settles || attempt >= maxSettling) throw error;
    }
  }
}
