/** What StoreDb is to reach, as a share of what another contender reaches in the same run. */
export interface Goal {
  readonly workload: string;
  readonly contender: string;
  /** StoreDb's units a second over the other's, at least. */
  readonly ratio: number;
}

export const goals: readonly Goal[] = [
  { workload: 'load-batches', contender: 'better-sqlite3', ratio: 2 },
  { workload: 'load-bulk', contender: 'duckdb', ratio: 1 },
  { workload: 'get', contender: 'lmdb', ratio: 1.2 },
  { workload: 'query-key', contender: 'better-sqlite3', ratio: 3 },
  { workload: 'country-all', contender: 'better-sqlite3', ratio: 3 },
  { workload: 'country-100', contender: 'better-sqlite3', ratio: 5 },
  { workload: 'population-100', contender: 'better-sqlite3', ratio: 2.5 },
  { workload: 'population-20', contender: 'better-sqlite3', ratio: 4 },
  { workload: 'scan-number', contender: 'duckdb', ratio: 1 },
  { workload: 'scan-string', contender: 'duckdb', ratio: 1 },
  { workload: 'south-20', contender: 'duckdb', ratio: 1 },
  { workload: 'ycsb-c', contender: 'better-sqlite3', ratio: 6 },
  { workload: 'ycsb-b', contender: 'better-sqlite3', ratio: 2 },
  // A commit may take three times as long.
  { workload: 'commit', contender: 'better-sqlite3', ratio: 1 / 3 },
];
