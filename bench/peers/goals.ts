/** What StoreDb is to reach. */

/** As a share of what another contender reaches in the same run. */
export interface Goal {
  readonly workload: string;
  readonly contender: string;
  /** StoreDb's units a second over the other's, at least. */
  readonly ratio: number;
}

/** At 1,000,000 rows. */
export const goals: readonly Goal[] = [
  { workload: 'get', contender: 'lmdb', ratio: 1.3 },
  { workload: 'get-cached', contender: 'lmdb', ratio: 1.3 },
  { workload: 'get-cached-popular', contender: 'lmdb', ratio: 1.5 },
  { workload: 'ycsb-c', contender: 'lmdb', ratio: 1.5 },
  { workload: 'query-key', contender: 'better-sqlite3', ratio: 3 },
  { workload: 'country-all', contender: 'better-sqlite3', ratio: 3 },
  { workload: 'sorted-country-all', contender: 'better-sqlite3', ratio: 3 },
  { workload: 'country-100', contender: 'better-sqlite3', ratio: 5 },
  { workload: 'sorted-country-100', contender: 'better-sqlite3', ratio: 5 },
  { workload: 'population-100', contender: 'better-sqlite3', ratio: 2.5 },
  { workload: 'population-20', contender: 'better-sqlite3', ratio: 5 },
  { workload: 'population-20-desc', contender: 'better-sqlite3', ratio: 5 },
  { workload: 'scan-number', contender: 'duckdb', ratio: 1 },
  { workload: 'scan-string', contender: 'duckdb', ratio: 1 },
  { workload: 'south-20', contender: 'duckdb', ratio: 1 },
  { workload: 'load-batches', contender: 'better-sqlite3', ratio: 2.5 },
  { workload: 'load-bulk', contender: 'duckdb', ratio: 1 },
  { workload: 'ycsb-c', contender: 'better-sqlite3', ratio: 6 },
  { workload: 'ycsb-b', contender: 'better-sqlite3', ratio: 2 },
  { workload: 'mix-1000', contender: 'better-sqlite3', ratio: 2 },
  // A commit may take twice as long.
  { workload: 'commit', contender: 'better-sqlite3', ratio: 1 / 2 },
];

/** A figure on an object store, with a goal of its own. */
export interface StoreFigure {
  readonly workload: string;
  readonly title: string;
  readonly most?: number;
  readonly least?: number;
}

/** With 20 ms added to every request, at 1,000,000 rows. */
export const storeFigures: readonly StoreFigure[] = [
  { workload: 'store-open-requests', title: 'open and read a row: requests', most: 3 },
  { workload: 'store-open-ms', title: 'the same in a process that has done it before, ms', most: 70 },
  { workload: 'store-open-cold-ms', title: 'the same in a new process, ms', most: 70 },
  { workload: 'store-indexed-requests', title: 'open, read a row, and one row by an index: requests', most: 5 },
  { workload: 'store-commit-ms', title: 'durable update of one row, ms', most: 45 },
  { workload: 'store-ycsb-b', title: 'YCSB-B, ops/s', least: 15_000 },
  { workload: 'store-update-requests', title: 'requests of an update of one row, alone, until it is merged', most: 5 },
  { workload: 'store-row-requests', title: 'of each of 100, one after the other', most: 2 },
  { workload: 'store-burst-requests', title: 'of each of 100 at once', most: 2 },
];
