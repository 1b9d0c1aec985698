/** What became of transactions, for `db.stats()`. */
export interface TransactionStats {
  /** Transactions that succeeded, those that only read included. */
  committed: number;
  /** Attempts that had to be given up because others had changed what was read. */
  conflicts: number;
  /** Transactions that failed, whatever the reason. */
  failed: number;
}
