/** The errors that a bad network, a lost race or the end of an instance may cause. Any other error is a defect. */
export const allowedErrors: ReadonlySet<string> = new Set([
  'STORAGE',
  'COMMIT_OUTCOME_UNKNOWN',
  'DEADLINE_EXCEEDED',
  'ABORTED',
  'CONTENTION',
  'TRANSACTION_CONFLICT',
  'BACKPRESSURE',
  'SNAPSHOT_EXPIRED',
  'NOT_STARTED',
  'INSUFFICIENT_FUNDS',
]);
