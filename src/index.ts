/** The entry of the package `store-db`: its functions, and the exports of other files. */
import { realEnvironment } from './base/env.ts';
import { namingAborts } from './base/abort.ts';
import { Later } from './base/later.ts';
import type { BackupInfo } from './maintenance/backup/backup.ts';
import type { BackupsReport, InspectBackupsOptions, RewriteBackupsOptions } from './maintenance/backup/backup-keys.ts';
import {
  checkInspectBackups,
  checkPrune,
  checkRestore,
  checkRewriteBackups,
  placeOptions,
} from './maintenance/backup/copy-options.ts';
import type { PruneOptions, PruneReport } from './maintenance/backup/prune.ts';
import type { RestoreOptions, RestoreReport } from './maintenance/backup/restore.ts';
import type { StorePlace } from './maintenance/backup/state-copy.ts';
import type { RewriteReport } from './maintenance/backup/rewrite.ts';
import { createDatabase } from './api/database.ts';
import type { Database } from './api/database.ts';
import { visitDatabases } from './api/for-each-database.ts';
import type { DatabasesReport, ForEachDatabaseOptions } from './api/for-each-database.ts';
import type { EphemeralOptions, StoreDbOptions } from './instance/options.ts';

const listing = new Later('backups', () => import('./maintenance/backup/backup.ts'));
const restoring = new Later('restoring backups', () => import('./maintenance/backup/restore.ts'));
const pruning = new Later('pruning backups', () => import('./maintenance/backup/prune.ts'));
const inspecting = new Later('inspecting backups', () => import('./maintenance/backup/backup-keys.ts'));

/**
 * Creates a database instance. It does nothing until `start()` is called. Throws `InvalidOptionError` for a missing, unknown
 * or wrong option.
 */
export function StoreDb(options: StoreDbOptions | EphemeralOptions): Database {
  return createDatabase(options, realEnvironment);
}

/**
 * Opens databases, a few at a time, calls `run` with each, and stops it: to migrate, check or maintain the databases of all tenants. `run`
 * may register schemas. If one database fails, it continues with the others, and lists the failures in `failed` of the report. Databases
 * share one driver and one `MemoryBudget`. Rejects with `InvalidOptionError` before any database is opened.
 */
export async function forEachDatabase<T>(
  prefixes: Iterable<string>,
  run: (db: Database, prefix: string) => T | Promise<T>,
  options: ForEachDatabaseOptions = {},
): Promise<DatabasesReport<T>> {
  return visitDatabases(realEnvironment, prefixes, run, options);
}

/** Lists the backups at a place, oldest first. Rejects with `InvalidOptionError` and `StorageError`. */
export async function listBackups(place: StorePlace, signal?: AbortSignal): Promise<BackupInfo[]> {
  const checked = placeOptions.check('listBackups()', place, 'place');
  const { backupsAt } = await listing.get();
  return backupsAt(checked, signal);
}

/**
 * Restores a backup that `db.backup()` made, to a database with a new id at an empty place. Objects that an interrupted attempt has
 * copied are not copied again. Rejects with `InvalidOptionError`, `CorruptionError` and `StorageError`: then there is no database yet.
 */
export async function restoreBackup(options: RestoreOptions): Promise<RestoreReport> {
  const checked = checkRestore(options);
  return namingAborts('restoreBackup()', checked.signal, async () => {
    const { restoreFrom } = await restoring.get();
    return restoreFrom(realEnvironment, checked);
  });
}

/**
 * Removes the backups of a place that no rule keeps, and the objects that only they need. The newest backup is always kept. Safe while
 * backups are being made: then the objects are left for the next run. Rejects with `InvalidOptionError`, also if there is no rule; with
 * `CorruptionError`, having deleted nothing, if a backup that is kept cannot be read; with `StorageError`; and with `ContentionError` if
 * this process was suspended for hours.
 */
export async function pruneBackups(options: PruneOptions): Promise<PruneReport> {
  const checked = checkPrune(options);
  return namingAborts('pruneBackups()', checked.signal, async () => {
    const { prune } = await pruning.get();
    return prune(realEnvironment, checked);
  });
}

/**
 * Reports the keys that the backups of a place need, and the objects that are not encrypted. It reads the inner nodes of every backup, and
 * checks each object once. Rejects with `InvalidOptionError` and `StorageError`. A backup that cannot be read is reported with its
 * problem.
 */
export async function inspectBackups(options: InspectBackupsOptions): Promise<BackupsReport> {
  const checked = checkInspectBackups(options);
  return namingAborts('inspectBackups()', checked.signal, async () => {
    const { inspect } = await inspecting.get();
    return inspect(realEnvironment, checked);
  });
}

/**
 * Rewrites the objects of a place's backups that are not encrypted with the current key or not compressed as the options ask: after a key
 * was replaced, or when encryption is turned on or off. Every object is replaced in place, so that each backup can be restored at every
 * moment with all keys. Safe while backups are being made. An object that cannot be read stays unchanged, and is in the report. Rejects
 * with `InvalidOptionError` and `StorageError`; the next call continues.
 */
export async function rewriteBackups(options: RewriteBackupsOptions): Promise<RewriteReport> {
  const checked = checkRewriteBackups(options);
  return namingAborts('rewriteBackups()', checked.signal, async () => {
    const { rewriteBackupsAt } = await inspecting.get();
    return rewriteBackupsAt(realEnvironment, checked);
  });
}

export default StoreDb;

export type { CallOptions, RefreshOptions, SnapshotOptions, StartOptions } from './instance/options.ts';
export type { ExpectedState } from './engine/open-or-create.ts';
export type { Database } from './api/database.ts';
export type { SnapshotInfo } from './maintenance/snapshots/held-snapshot.ts';
export type { Change, ChangeFeed, ChangesOptions, CommittedChanges } from './instance/change-feed.ts';
export type { Snapshot } from './api/snapshot.ts';
export type { Transaction } from './transaction/transaction.ts';
export type { TransactionFunction, TransactionOptions } from './transaction/run-transaction.ts';
export type { BackupInfo, BackupReport, CopyOptions } from './maintenance/backup/backup.ts';
export type {
  BundleRetention,
  PublishOptions,
  PublishProgress,
  PublishReport,
} from './maintenance/publish/publish-options.ts';
export type {
  BackupsReport,
  InspectBackupsOptions,
  InspectedBackup,
  KeyNeeds,
  RewriteBackupsOptions,
} from './maintenance/backup/backup-keys.ts';
export type { BackupRetention } from './maintenance/backup/prune.ts';
export type { PruneOptions, PruneProgress, PruneReport } from './maintenance/backup/prune.ts';
export type { RestoreOptions, RestoreReport } from './maintenance/backup/restore.ts';
export type { RewriteOptions, RewriteProgress, RewriteReport } from './maintenance/backup/rewrite.ts';
export type { CopyCounts, CopyProgress, StorePlace } from './maintenance/backup/state-copy.ts';
export type { GcOptions } from './maintenance/gc/gc-options.ts';
export type { BlockContent, BlockContentEntry } from './maintenance/inspect/block-content.ts';
export type { BlockChild, BlockInfo } from './maintenance/inspect/block.ts';
export type {
  BlockOptions,
  LogOptions,
  ObjectsOptions,
  ObjectsProgress,
} from './maintenance/inspect/inspect-options.ts';
export type { CommitInfo } from './maintenance/inspect/log-list.ts';
export type { ObjectGroup, ObjectKind } from './maintenance/inspect/stored-objects.ts';
export type { GcReport } from './maintenance/gc/collector.ts';
export type { Garbage, GarbageKind } from './maintenance/gc/gc-store.ts';
export type { RowFor, TriggerApi, TriggerRow } from './instance/trigger-api.ts';
export type { TriggerOperation } from './schema/registered-functions.ts';
export type { BlobCallOptions, BlobReference } from './blob/blob-reference.ts';
export type { DownloadUrlOptions } from './blob/blob-reference.ts';
export type { BlobData, BlobOptions, BlobValue } from './blob/blob-value.ts';
export type { Logger, LogLevel } from './base/logger.ts';
export type { EphemeralOptions, StoreDbOptions } from './instance/options.ts';
export type { DatabasesProgress, DatabasesReport, ForEachDatabaseOptions } from './api/for-each-database.ts';
export type {
  Batch,
  ChangeOptions,
  FlushOptions,
  Increments,
  InsertDocument,
  KeyFor,
  PrimaryKeyOf,
  RowCondition,
  TriggerHandler,
  UpdateDocument,
} from './batch/batch.ts';
export type { UpsertOptions } from './batch/table-operations.ts';
export type { DropTableOptions } from './batch/drop-table.ts';
export type { LoadOptions, LoadProgress, LoadReport } from './load/load.ts';
export type { LoadPosition, LoadSource, ResumableSource } from './load/row-source.ts';
export type { UnfinishedLoad } from './load/unfinished.ts';
export type { MemoryStats } from './cache/instance-memory.ts';
export { MemoryBudget } from './cache/memory-budget.ts';
export type { SharedMemoryStats } from './cache/memory-budget.ts';
export type { CacheDriver } from './storage/contract/driver.ts';
export type { CacheStats, DatabaseStats, LogStats } from './maintenance/stats.ts';
export type {
  DatabaseHealth,
  HealthCode,
  HealthReason,
  HealthStatus,
  HealthThreshold,
  HealthThresholds,
} from './maintenance/health.ts';
export type { TableRequests } from './maintenance/table-requests.ts';
export type { PollingStats, TransactionStats } from './maintenance/stats.ts';
export type {
  FunctionIndexDefinition,
  IndexDefinition,
  IndexedPath,
  TextDefinition,
} from './schema/index-definitions.ts';
export type { TextLanguage } from './search/languages.ts';
export type { SearchOptions, TextSpan } from './query/conditions/search-options.ts';
export { snippet, type TextSnippet, type SnippetOptions } from './query/search/snippet.ts';
export type {
  ConditionOf,
  DocumentOf,
  IncrementsOf,
  KeyOf,
  NewDocumentOf,
  FieldDefinition,
  RowOf,
  SchemaDefinition,
} from './schema/schema.ts';
export type { GarbageCount } from './maintenance/verify/object-census.ts';
export type { RepairedIndex } from './maintenance/verify/index-rebuild.ts';
export type { StrandedCommit } from './maintenance/verify/log-check.ts';
export type { RepairReport, RepairedLog } from './maintenance/verify/repair.ts';
export type { RepairOptions, VerifyOptions, VerifyProgress } from './maintenance/verify/verify-options.ts';
export type { VerifiedTable } from './maintenance/verify/table-check.ts';
export type { VerifyReport } from './maintenance/verify/verify.ts';
export { formatStoreReport } from './maintenance/store-report.ts';
export type { StoredDatabase, StoreReport } from './maintenance/store-report.ts';
export type {
  Certification,
  CheckStatus,
  LatencyFigures,
  PermissionStatus,
  StoreCheck,
} from './storage/certify/certification.ts';
export type { Finding } from './tree/check.ts';
export type { JsonValue, TypeId, TypeName } from './format/types.ts';
export type { Operator } from './query/conditions/comparison.ts';
export type { ExplainOptions, Query } from './query/query.ts';
export type { LiveResults, LiveRows, LiveValue } from './query/live-results.ts';
export type { Direction } from './query/planner/query-spec.ts';
export type { Alternative, ExplainedStep, StepCost } from './query/explain.ts';
export type { QueryOptions } from './query/run-on-state.ts';
export type { Aggregate, AggregateRow, Aggregates } from './query/aggregate.ts';
export type { BudgetLimits } from './query/budget.ts';
export type { Clause, Clauses } from './query/conditions/clause.ts';
export type { Groups } from './query/aggregate-queries.ts';
export type { Page, PageOptions } from './query/page-options.ts';
export type { IndexesOptions, IndexStatus } from './migration/index-status.ts';
export type { MigrationStatus, OldVersionUser } from './migration/migration-status.ts';
export type { FinishOptions, SetTargetSchemaVersionOptions } from './migration/migrations.ts';
export type { Explanation } from './query/explain.ts';
export type { MergeStats } from './merge/merge-policy.ts';
export type { MergePolicy } from './merge/merge-policy.ts';
export type { CommitRef } from './log/commit-outcome.ts';
export type { Polling } from './coordination/polling-pace.ts';
export type { Role } from './coordination/membership.ts';
export { costOf, s3StandardPrices, type PriceTable } from './storage/prices.ts';
export { Types } from './format/types.ts';
export type { TableRef } from './schema/table-ref.ts';
export { defineSchema } from './schema/define-schema.ts';
export { json } from './schema/schema.ts';
export { date, decimal, enumOf, formatDecimal, parseDecimal } from './schema/field-kinds.ts';
export type { DateField, DecimalField, EnumField } from './schema/field-kinds.ts';
export { rowSchema } from './schema/row-schema.ts';
export type { EdgeInputOf, EdgeRowOf, RowSchemaOf, RowSchemaOptions } from './schema/row-schema.ts';
export type { RowIssue, StandardIssue, StandardResult, StandardSchema } from './schema/standard-schema.ts';
export type { JsonField } from './schema/schema.ts';
export {
  AbortedError,
  BatchStateError,
  BlobNotFoundError,
  BlobReferenceError,
  ChangesExpiredError,
  CodeNotLoadedError,
  CommitOutcomeUnknownError,
  ConditionFailedError,
  BackpressureError,
  ContentionError,
  CorruptionError,
  DatabaseReplacedError,
  DeadlineExceededError,
  DuplicateKeyError,
  EncodeError,
  FunctionError,
  InvalidOperatorError,
  InvalidOptionError,
  InvalidQueryError,
  InvalidSchemaError,
  InvariantError,
  LoadResumeError,
  MemoryBudgetError,
  MigrationActiveError,
  MigrationError,
  MigrationPendingError,
  NoFreeNodeIdError,
  NotADatabaseError,
  NotStartedError,
  NotSupportedError,
  ReadOnlyError,
  RowNotFoundError,
  SchemaNotFoundError,
  SnapshotExpiredError,
  StorageError,
  StoreDbError,
  TableDroppedError,
  TableNotFoundError,
  TransactionConflictError,
  TriggerDepthError,
  UnknownFormatError,
  UnsafeStoreError,
} from './base/errors.ts';
export { UniqueIndexError, ValidationError } from './base/errors.ts';
export type { LoadResumeReason } from './base/errors.ts';
export { BookmarkError, BudgetExceededError } from './base/errors.ts';
export { EncryptionKeyError, NotEncryptedError } from './base/errors.ts';
export type { Compression, EncryptionOptions } from './storage/wrap/encryption-options.ts';
