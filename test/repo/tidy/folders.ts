/**
 * The folders of `src/`, from the ground up, and what is in each. A folder imports only from those before it in the list, so no
 * two can import each other. ARCHITECTURE.md shows the list as a table: `npm run docs:folders` writes it.
 */

/** A folder of `src/`, and what it holds. The published entry is a file of its own. */
export interface Folder {
  readonly path: string;
  readonly holds: string;
}

export const folders: readonly Folder[] = [
  { path: 'platform', holds: 'What differs by platform, a module for each: Node.js, and browsers and Workers' },
  { path: 'base', holds: 'The environment (clock, timers, randomness), errors, order, bytes, checksums, invariants' },
  { path: 'format', holds: 'Bytes, without I/O: names of objects, keys, rows, blocks, commits, Block 0' },
  { path: 'text', holds: 'Values and lines of rows as text and as JSON, for people and for files' },
  { path: 'search', holds: 'Words of texts, their ranks, and the text of a search' },
  { path: 'live-wire', holds: 'Results of live queries as the events that carry them to browsers' },
  {
    path: 'storage/contract',
    holds: 'The contract of a storage driver, and what all drivers use: retries, ranges, clocks',
  },
  {
    path: 'storage/wrap',
    holds: 'Drivers around a driver: retries, encryption and compression, read-only access, request counts',
  },
  { path: 'storage/file', holds: 'The driver for a folder' },
  { path: 'storage/http', holds: 'HTTP requests of drivers: connections that stay open, proxies, limits' },
  {
    path: 'storage/s3',
    holds: 'The driver for S3 and other object stores, and the driver that the process’s settings name',
  },
  { path: 'storage/azure', holds: 'The driver for Azure Blob Storage' },
  { path: 'storage/google', holds: 'The driver for Google Cloud Storage' },
  { path: 'storage/r2', holds: 'The driver for Cloudflare R2, by its binding in Workers' },
  { path: 'storage/certify', holds: 'Checks that a store keeps the promises that StoreDb depends on' },
  {
    path: 'storage',
    holds:
      'The driver for memory, the driver for plain GETs, the cache on disk, prices of requests, and the published entry for drivers',
  },
  { path: 'cache', holds: 'One budget of memory for cached blocks, pending commits and queries; external caches' },
  { path: 'tree', holds: 'Copy-on-write B+Trees: reading, writing, cursors, read-ahead' },
  { path: 'blob', holds: 'Blobs, references to them, and the system tables that list them' },
  { path: 'schema', holds: 'Definitions of tables, and the layout, keys and indexes that follow from them' },
  {
    path: 'view',
    holds: 'The tables of one state of the database: trees, and layers of commits that are not merged yet',
  },
  { path: 'catalog', holds: 'Which tables, versions and indexes are registered and stored' },
  { path: 'block0', holds: 'Block 0: reading it, replacing it on condition, the ids of nodes in it' },
  { path: 'log', holds: 'The commit log: winning a slot, following it, the outcome of a commit' },
  { path: 'merge', holds: 'Applying the commits of the log to the trees' },
  {
    path: 'coordination',
    holds: 'Whose turn it is to merge, how often an instance looks at the log, how fresh a read is',
  },
  { path: 'engine', holds: 'An instance’s engine: opens the database, follows the log, merges when it is its turn' },
  {
    path: 'migration',
    holds: 'Rows of one version of a table as rows of another, and the work that builds versions and indexes',
  },
  {
    path: 'query/conditions',
    holds: 'Conditions of queries, the ranges of keys that they mean, and tests of rows for them',
  },
  { path: 'query/planner', holds: 'Ways to the rows of a query, their cost, and the choice between them' },
  { path: 'query/operators', holds: 'Executing a plan: scans, look-ups, intersections, unions, sorting' },
  { path: 'query/search', holds: 'Finding and ranking the rows with some words by an index on texts' },
  { path: 'query', holds: 'The query builder, runs of queries, aggregates, pages, explanations' },
  { path: 'batch', holds: 'Collecting changes, firing triggers, and making a commit of them' },
  { path: 'live', holds: 'Watched queries: which commits can change a result, and what has changed in it' },
  { path: 'load', holds: 'Loading rows that do not fit into a batch, as one commit' },
  { path: 'maintenance/snapshots', holds: 'Snapshots that are kept' },
  { path: 'maintenance/gc', holds: 'Garbage collection' },
  {
    path: 'maintenance/backup',
    holds: 'Backups, restoring and pruning them; writing stored objects again in another form',
  },
  { path: 'maintenance/publish', holds: 'Publishing a state as a bundle, for readers with nothing but `fetch`' },
  { path: 'maintenance/verify', holds: 'Verification and repair' },
  { path: 'maintenance/inspect', holds: 'How a database is stored: commits of the log, blocks, objects' },
  { path: 'maintenance', holds: 'Statistics, and a check-up with advice' },
  { path: 'instance', holds: 'A running instance: its options, and what its calls go through' },
  { path: 'transaction', holds: 'Transactions on an instance' },
  { path: 'api', holds: 'What an application holds: the database, and snapshots' },
  { path: 'reader', holds: 'Reading a bundle, without any of the code that writes' },
  { path: 'reader.ts', holds: 'The published entry for readers, in browsers too' },
  { path: 'live-client', holds: 'Live queries in the browser: stores of their data, and the connection behind them' },
  { path: 'live-client.ts', holds: 'The published entry for live queries in the browser' },
  { path: 'tanstack.ts', holds: 'The published entry for live queries in TanStack DB' },
  { path: 'react.ts', holds: 'The published entry for live queries in React' },
  { path: 'index.ts', holds: 'The published entry: the list of what is exported' },
  { path: 'workers.ts', holds: 'The published entry for Workers: drivers that need no Node.js' },
  {
    path: 'testing',
    holds: 'The published test kit: driver conformance, a driver that fails on demand, a virtual clock',
  },
  { path: 'web', holds: 'Answers to HTTP requests, for handlers that applications mount' },
  { path: 'live-server', holds: 'Live queries for browsers: who may ask for which, and the streams of their results' },
  { path: 'live-server.ts', holds: 'The published entry for live queries that an application serves' },
  { path: 'otel', holds: 'Spans and metrics for OpenTelemetry, of what the channels tell' },
  { path: 'otel.ts', holds: 'The published entry for OpenTelemetry' },
  { path: 'studio', holds: 'Studio: the calls of its page, and who may make them' },
  { path: 'studio.ts', holds: 'The published entry for Studio, to mount in an application' },
  { path: 'cli/terminal', holds: 'The terminal: tables, progress, the pager, errors and exit codes' },
  { path: 'cli/arguments', holds: 'Command lines: options, help and completion' },
  { path: 'cli/database', holds: 'The database that a command works on: its URL, keys, opening it' },
  { path: 'cli/values', holds: 'Values, rows and schemas as text' },
  { path: 'cli/language', holds: 'The language of conditions and queries' },
  { path: 'cli/input', holds: 'Files that are imported: encodings, CSV, JSON, Parquet' },
  { path: 'cli/output', holds: 'Answers, explanations and exported files' },
  { path: 'cli/draft', holds: 'Schemas drafted from files' },
  { path: 'cli/shell', holds: 'The interactive shell' },
  { path: 'cli/commands', holds: 'The commands, those of one subject in a file' },
  { path: 'cli', holds: 'The command `store-db`' },
];

/** The table of ARCHITECTURE.md, from the top down, as one reads a house. */
export function foldersTable(): string {
  const rows = folders.toReversed().map(({ path, holds }) => {
    const name = path.endsWith('.ts') ? `\`${path}\`` : `\`${path}/\``;
    return `| ${name} | ${holds} |`;
  });
  return ['| Folder | What it holds |', '| --- | --- |', ...rows].join('\n');
}
