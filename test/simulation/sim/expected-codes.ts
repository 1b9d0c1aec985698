/** The errors that the engine may report to an application whose store, network and process fail: no violation by themselves. */
export const expectedCodes: ReadonlySet<string> = new Set([
  'STORAGE',
  'COMMIT_OUTCOME_UNKNOWN',
  'CONTENTION',
  'DUPLICATE_KEY',
  'ROW_NOT_FOUND',
  'DEADLINE_EXCEEDED',
  'ABORTED',
  'NOT_STARTED',
  'BACKPRESSURE',
  'TRANSACTION_CONFLICT',
  'UNIQUE_INDEX',
]);
