/** Flushes that are given up, and resolved or not. */
import type { Batch } from '../../../src/batch/batch.ts';

export interface Patience {
  /** How long a flush is waited for, in milliseconds. */
  readonly ms: number;
  /** Whether a flush whose outcome is unknown is flushed again, which settles it. Otherwise it stays unknown. */
  readonly settles: boolean;
}

const maxSettling = 4;
/** Errors that come only once it is settled what became of an earlier attempt. */
const verdicts: ReadonlySet<unknown> = new Set(['DUPLICATE_KEY', 'ROW_NOT_FOUND', 'CONTENTION']);

/** Flushes a batch. Rejects with `CommitOutcomeUnknownError` if it stays unknown; any other error is definite. */
export async function flushOnce(batch: Batch, { ms, settles }: Patience): Promise<void> {
  let unknown: unknown;
  for (let attempt = 0; ; attempt++) {
    try {
      await batch.flush({ signal: AbortSignal.timeout(ms * 2 ** attempt) });
      return;
    } catch (error) {
      const { code } = error as { code?: string };
      if (code === 'COMMIT_OUTCOME_UNKNOWN') unknown = error;
      // That it was given up, or that the instance is stopped, says nothing of what was put before.
      else throw unknown === undefined || verdicts.has(code) ? error : unknown;
      if (!settles || attempt >= maxSettling) throw error;
    }
  }
}
