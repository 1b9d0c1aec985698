/** The class `Database`, the public API. It checks arguments and delegates to the other parts. */
import type { Environment } from '../base/env.ts';
import { InvalidOptionError } from '../base/errors.ts';
import { describeValue } from '../base/messages.ts';
import { Later } from '../base/later.ts';
import { signalOptions } from '../base/options.ts';
import { gets, startOfWork } from '../base/tracing.ts';
import { Batch } from '../batch/batch.ts';
import type { DropTableOptions } from '../batch/drop-table.ts';
import type { LoadOptions, LoadReport } from '../load/load.ts';
import type { ResumableSource } from '../load/row-source.ts';
import type { UnfinishedLoad } from '../load/unfinished.ts';
import type { InsertDocument, KeyFor, TriggerHandler } from '../batch/batch.ts';
import { tableName } from '../schema/table-ref.ts';
import type { TableRef } from '../schema/table-ref.ts';
import { BlobReference } from '../blob/blob-reference.ts';
import type { BlobStore } from '../blob/blob-store.ts';
import { BlobValue } from '../blob/blob-value.ts';
import type { BlobData, BlobOptions } from '../blob/blob-value.ts';
import { registeredDefinitions, storedDefinitions } from '../catalog/registry.ts';
import { changesOptions } from '../instance/change-feed.ts';
import type { ChangeFeed, ChangesOptions } from '../instance/change-feed.ts';
import { Instance } from '../instance/instance.ts';
import {
  checkCommit,
  checkSnapshotOptions,
  isTime,
  refreshOptions,
  startOptions,
  checkOptions,
} from '../instance/options.ts';
import type {
  CallOptions,
  RefreshOptions,
  SnapshotOptions,
  StartOptions,
  EphemeralOptions,
  StoreDbOptions,
} from '../instance/options.ts';
import type { RowFor, TriggerApi, TriggerRow } from '../instance/trigger-api.ts';
import type { CommitRef } from '../log/commit-outcome.ts';
import type { BackupReport, CopyOptions } from '../maintenance/backup/backup.ts';
import { copyOptions, placeOptions, rewriteOptions } from '../maintenance/backup/copy-options.ts';
import type { RestoreReport } from '../maintenance/backup/restore.ts';
import type { StorePlace } from '../maintenance/backup/state-copy.ts';
import { publishOptions } from '../maintenance/publish/publish-options.ts';
import type { PublishOptions, PublishReport } from '../maintenance/publish/publish-options.ts';
import { readBlobRecord } from '../maintenance/blob-record.ts';
import type { StoreReport } from '../maintenance/store-report.ts';
import type { GcReport } from '../maintenance/gc/collector.ts';
import { checkGcOptions } from '../maintenance/gc/gc-options.ts';
import type { GcOptions } from '../maintenance/gc/gc-options.ts';
import type { RewriteOptions, RewriteReport } from '../maintenance/backup/rewrite.ts';
import type { BlockInfo } from '../maintenance/inspect/block.ts';
import { blockOptions, logOptions, objectsOptions } from '../maintenance/inspect/inspect-options.ts';
import type { BlockOptions, LogOptions, ObjectsOptions } from '../maintenance/inspect/inspect-options.ts';
import type { CommitInfo } from '../maintenance/inspect/log-list.ts';
import type { ObjectGroup } from '../maintenance/inspect/stored-objects.ts';
import { snapshotInfo } from '../maintenance/snapshots/held-snapshot.ts';
import type { SnapshotInfo } from '../maintenance/snapshots/held-snapshot.ts';
import type { DatabaseHealth } from '../maintenance/health.ts';
import type { DatabaseStats } from '../maintenance/stats.ts';
import type { RepairReport } from '../maintenance/verify/repair.ts';
import { checkRepairOptions, verifyOptions } from '../maintenance/verify/verify-options.ts';
import type { RepairOptions, VerifyOptions } from '../maintenance/verify/verify-options.ts';
import type { VerifyReport } from '../maintenance/verify/verify.ts';
import type { IndexesOptions, IndexStatus } from '../migration/index-status.ts';
import type { MigrationStatus } from '../migration/migration-status.ts';
import type { FinishOptions, SetTargetSchemaVersionOptions } from '../migration/migrations.ts';
import { RowGetter } from '../query/row-getter.ts';
import { Query } from '../query/query.ts';
import type { TriggerOperation } from '../schema/registered-functions.ts';
import type { SchemaDefinition } from '../schema/schema.ts';
import { environmentDriver } from '#environment-driver';
import { runTransaction } from '../transaction/run-transaction.ts';
import type { TransactionFunction, TransactionOptions } from '../transaction/run-transaction.ts';
import { Snapshot } from './snapshot.ts';

const backingUp = new Later('backups', () => import('../maintenance/backup/backup.ts'));
const cloning = new Later('clones', () => import('../maintenance/backup/restore.ts'));

/** A database, as returned by `StoreDb()`. */
export class Database {
  readonly #instance: Instance;
  readonly #rows: RowGetter;

  /** @internal Use `StoreDb()`. */
  constructor(instance: Instance) {
    this.#instance = instance;
    this.#rows = new RowGetter(instance);
  }

  /**
   * Opens the database, or creates it if it does not exist, and starts the write-forward loop. Required before any
   * operation; calling it again changes nothing. `registerSchema()`, `registerFunction()` and `registerTrigger()` may come before or
   * after. Rejects with `InvalidSchemaError` if a table is stored with another definition of the newest version that is registered here, or
   * if that version is retired, with `NotADatabaseError` if there are other objects under the prefix, with `UnsafeStoreError` if the store is not safe
   * for a new database, with `DeadlineExceededError` if it cannot be reached, and with `BackpressureError` if the pending commits exceed
   * the memory and cannot be merged. With polling `'onDemand'` it does not wait to read the log, and errors of that, such as damage, are
   * reported by the calls that need the log. With `expectAtLeast` it rejects with `DatabaseReplacedError` if the stored database is older
   * or does not exist, and with `InvalidOptionError`.
   */
  async start(options: StartOptions = {}): Promise<void> {
    await this.#instance.start(startOptions.check('db.start()', options).expectAtLeast);
  }

  /**
   * Stops the write-forward loop, waits for flushes and merges under way, and releases all resources. It does not merge: flushed commits
   * are durable already. The instance leaves the list of nodes that share write authority, with one write. A stopped instance can be
   * started again. It leaves no timers or sockets behind.
   */
  async stop(): Promise<void> {
    await this.#instance.stop();
  }

  /** Stops the database, as {@link stop} does. */
  close(): Promise<void> {
    return this.stop();
  }

  /** Stops the instance at the end of a block with `await using db = StoreDb(...)`. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }

  /**
   * Registers a table in one version; must come before any use of the table. If several versions are registered, this instance uses
   * the newest. The fields and the primary key of a version never change. New indexes of the definition are added to the stored table in
   * the background, and `indexes()` shows their progress. Stored indexes that the definition lacks stay. Throws `InvalidSchemaError`.
   */
  registerSchema(schema: SchemaDefinition): void {
    this.#instance.registry.registerSchema(schema, this.#instance.engine?.view);
    this.#instance.maintenance.schemaRegistered();
  }

  /**
   * Starts the migration of a table to another version of its schema, which this instance must have registered. Resolves when the target
   * is in Block 0. The rows are migrated in the background, by instances that have registered the version, while instances with the old
   * version continue to read and write. Once all rows are migrated the table switches; the old version stays until
   * `finishMigration()` is called. `migrationStatus()` shows the progress. Calling it again retries a blocked migration, and changes
   * only the options that are given. For the active version it does nothing, or goes back to it. A table without rows is created in the
   * version.
   *
   * Rejects with `InvalidSchemaError` if the version is not registered here or the table cannot be migrated to it, with
   * `MigrationActiveError` while the table is being migrated to another version, with `InvalidOptionError`, also for a version lower than
   * the active one, and with `ReadOnlyError` on a replica.
   */
  async setTargetSchemaVersion(
    table: TableRef,
    version: number,
    options: SetTargetSchemaVersionOptions = {},
  ): Promise<void> {
    const migrations = await this.#instance.maintenance.migrations('db.setTargetSchemaVersion()');
    await migrations.setTarget(table, version, options);
  }

  /**
   * Retires the old version of a table, once all rows are migrated. From then on, instances that use the old version are refused before
   * they write anything, and so is their `start()`. Resolves when the old version is removed, which may take any time where many rows have
   * changed. If the call is aborted before that, or nothing moves for a minute, it rejects, and a recorded request goes on in the
   * background. `migrationStatus()` shows the instances that use the old version. Without a migration it does nothing.
   *
   * Before the request is recorded, rows that have changed are migrated again. Rejects with `MigrationActiveError`, and records nothing,
   * while instances are known to use the old version (pass `force` if they were killed), before the table has switched, and while rows
   * cannot be migrated, which it names: either version can still correct them. Rejects with it also if rows that come later cannot be
   * migrated: once the new version has replaced them, the old one goes without another call. Rejects with `InvalidSchemaError` if the table
   * is registered here, but not in the new version, or with another `migrate`; and with `ReadOnlyError` on a replica.
   */
  async finishMigration(table: TableRef, options: FinishOptions = {}): Promise<void> {
    const migrations = await this.#instance.maintenance.migrations('db.finishMigration()');
    await migrations.finish(table, options);
  }

  /**
   * Goes back to the old version of a table that is being migrated or has switched. The rows of the new version are dropped, and values
   * that only the new version has are lost. Without a migration it does nothing. Rejects with `MigrationActiveError` once the old version
   * is retired, and with `ReadOnlyError` on a replica.
   */
  async cancelMigration(table: TableRef, options: CallOptions = {}): Promise<void> {
    const callName = 'db.cancelMigration()';
    const migrations = await this.#instance.maintenance.migrations(callName);
    await migrations.cancel(table, signalOptions.check(callName, options).signal);
  }

  /**
   * Returns the progress of a table's migration. The table need not be registered. Rejects with `SchemaNotFoundError` if it is not stored
   * either.
   */
  async migrationStatus(table: TableRef, options: CallOptions = {}): Promise<MigrationStatus> {
    return this.#instance.maintenance.migrationStatus(table, signalOptions.check('db.migrationStatus()', options));
  }

  /**
   * Returns the indexes of a table's active version, including indexes that are being added, and whether queries use them. A table of
   * which nothing is stored has none. The table need not be registered. With `sizes: true` it returns the size of each as well, for which
   * it reads the inner blocks that are not in memory, and no others.
   */
  async indexes(table: TableRef, options: IndexesOptions = {}): Promise<IndexStatus[]> {
    return this.#instance.maintenance.indexes('db.indexes()', tableName(table), options);
  }

  /**
   * Drops an index of a table by its name, also one that is being added. Registering a definition without the index does not drop it.
   * The definition that is registered here must not have the index, unless adding it has failed: then it is added again from the start.
   * Other processes whose definition has the index add it again. A unique index is not checked any more. `gc()` deletes its blocks.
   *
   * Rejects with `InvalidOptionError` if there is no such table or index, with `InvalidSchemaError` if the index is in the
   * definition, with `MigrationActiveError` while a migration of the table is under way, and with `ReadOnlyError` on a replica.
   */
  async dropIndex(table: TableRef, index: string, options: CallOptions = {}): Promise<void> {
    const callName = 'db.dropIndex()';
    const { signal } = signalOptions.check(callName, options);
    await this.#instance.maintenance.dropIndex(callName, tableName(table), index, signal);
  }

  /**
   * Drops a table: its schema, rows, indexes and blobs are gone with one commit, everywhere and in every version, also while the table is
   * being migrated. The table need not be registered here. Snapshots, the history and backups still show the table as it was, and `gc()`
   * deletes what none of them needs. Resolves once that is durable, to whether there was such a table.
   *
   * Registrations from before the drop no longer count, here and on other instances: reads show no rows, and writes reject with
   * `TableDroppedError`, also those of batches that were filled before. `registerSchema()` after the drop, or a new start, creates the
   * table again, with any definition.
   *
   * Rejects with `TableNotFoundError` if there is no such table, unless `ifExists` is true; with `InvalidOptionError` for system tables,
   * whose names begin with `_`; with `ReadOnlyError` on a replica; and with `ContentionError` and `CommitOutcomeUnknownError` as
   * `batch.flush()` does.
   */
  async dropTable(table: TableRef, options: DropTableOptions = {}): Promise<boolean> {
    return this.#instance.admit('db.dropTable()').dropTable(tableName(table), options);
  }

  /**
   * Registers a function of whole rows for use in `where(name, '=', value)`, in queries on every table. Its result is
   * compared with `===`. It must be synchronous, pure and without side effects. It hides a field of the same name.
   * A second function of the same name replaces the first. `version`: any number, which must change when the function returns other
   * results; without it, indexes on the function are not used. Throws `InvalidOptionError`.
   */
  registerFunction(name: string, fn: (row: Record<string, unknown>) => unknown, version?: number): void {
    this.#instance.registry.registerFunction(name, fn, version);
    this.#instance.maintenance.functionRegistered();
  }

  /**
   * Registers a trigger: `handler` is called for every change of the table when it is added to a batch, in the order of
   * registration. Operations that it adds to `batch` are committed with the change. If it rejects, the change is not added, and
   * one flush is rejected with its error. `'*'` means all three operations. Triggers fire in this instance only.
   * Throws `InvalidOptionError`.
   */
  registerTrigger<T extends TableRef>(
    table: T,
    operation: TriggerOperation | '*',
    handler: TriggerHandler<TriggerApi, TriggerRow<T>>,
  ): void {
    this.#instance.registry.registerTrigger(table, operation, handler);
  }

  /** Returns a new, empty root batch. */
  batch(): Batch {
    return new Batch(this.#instance);
  }

  /**
   * Runs `run` as a transaction: its reads and writes through `tx` take effect at one point in the order of all commits,
   * on all nodes. All of its reads are of one state, with its own writes on top. Its writes are committed when it has
   * returned, if nothing that it read was changed by others; otherwise `run` is called again on a newer state. So it
   * may run several times, and must have no other effects. Resolves to the result of `run`. If `run` throws, nothing is written, and
   * the transaction rejects with that error.
   *
   * Rejects with `TransactionConflictError` after too many attempts, with `DuplicateKeyError`, `RowNotFoundError` and
   * `CommitOutcomeUnknownError` as `batch.flush()` does, and with `InvalidOptionError`. A transaction without writes commits
   * nothing: it reads a state that may be up to two intervals old, unless `db.refresh()` came before it.
   */
  transaction<T>(run: TransactionFunction<T>, options: TransactionOptions = {}): Promise<T> {
    return runTransaction(this.#instance, run, options);
  }

  /**
   * Inserts rows that need not fit into memory, as one commit: all of them appear at once, on all nodes, or none. `source`: the rows, as an
   * iterable or async iterable of rows or of arrays of rows, in any order; rows in the order of the primary key take the least work. Each row is checked as
   * `batch.insert()` checks it, and gets the same defaults. Resolves once all rows are durable, to how many there are.
   *
   * Rejects as `batch.insert()` and `batch.flush()` do, with the error of the source, with `AbortedError`, with `NotSupportedError` if a
   * trigger of this instance fires for inserts, and with `MigrationActiveError` while the table is being migrated. Blobs are refused with
   * `EncodeError`. Nothing was written then, except that the outcome is unknown after `CommitOutcomeUnknownError`: `resolveCommit()`
   * tells it.
   *
   * With option `resume`, what is stored stays, and the next call with the same name goes on behind it. The source is then the same rows in
   * the same order, or a function that gives the rows behind a position. Rejects with `LoadResumeError` if that cannot be, or if another
   * call has taken the load over.
   */
  async load<T extends TableRef>(
    table: T,
    source: ResumableSource<InsertDocument<T>>,
    options: LoadOptions = {},
  ): Promise<LoadReport> {
    return this.#instance.admit('db.load()').load(tableName(table), source, options);
  }

  /** Lists the loads with option `resume` that are not finished, of all instances, ordered by name: interrupted ones, and those under way. */
  async unfinishedLoads(options: CallOptions = {}): Promise<UnfinishedLoad[]> {
    const { signal } = signalOptions.check('db.unfinishedLoads()', options);
    return this.#instance.admit('db.unfinishedLoads()').unfinishedLoads(signal);
  }

  /**
   * Gives up the unfinished load with a name, and deletes its rows, which nobody has seen. A call of `db.load()` that works on it rejects
   * with `LoadResumeError`. Returns false if there is none. Rejects with `ReadOnlyError` on a replica.
   */
  async discardLoad(name: string, options: CallOptions = {}): Promise<boolean> {
    const { signal } = signalOptions.check('db.discardLoad()', options);
    if (typeof name !== 'string') {
      throw new InvalidOptionError('name', `The name of the load is ${describeValue(name)}; it must be a text.`);
    }
    return this.#instance.admit('db.discardLoad()').discardLoad(name, signal);
  }

  /** Starts a query on a table, which is given by name or, for typed rows, by its schema definition. */
  query<T extends TableRef>(table: T): Query<RowFor<T>> {
    return new Query<RowFor<T>>(this.#instance, tableName(table));
  }

  /**
   * Returns the row with a primary key, as a new plain object; undefined if there is none. This is the fastest way to read one row.
   * Rejects with `SchemaNotFoundError` if the table is not registered, and with `InvalidQueryError` for a key of another type. For a uuid
   * key, a text that is not a UUID finds no row.
   */
  get<T extends TableRef>(table: T, primaryKey: KeyFor<T>): Promise<RowFor<T> | undefined> {
    try {
      this.#instance.running('db.get()');
      if (gets.isWatched) return this.#getTold(tableName(table), primaryKey) as Promise<RowFor<T> | undefined>;
      return this.#rows.get(tableName(table), primaryKey) as Promise<RowFor<T> | undefined>;
    } catch (cause) {
      return rejected(cause);
    }
  }

  /** As {@link get}; what needs more than memory is told. */
  async #getTold(table: string, primaryKey: unknown): Promise<object | undefined> {
    const host = this.#instance.admit('db.get()');
    const known = this.#rows.getCached(host.stateInMemory(table), primaryKey);
    if (known !== undefined) return known ?? undefined;
    return gets.tell({ database: this.#instance.prefix, startedMs: startOfWork(), table }, () =>
      this.#rows.get(table, primaryKey),
    );
  }

  /**
   * Returns the row with a primary key from memory, as a new plain object: null if there is no such row, and undefined if that is not
   * known without the store, so that `get()` must find out. Returns without a promise, and makes no request. Counts as a read for
   * `polling`, so that the view stays fresh. Shows the state that `get()` shows. Returns undefined for a key of another type, for which
   * `get()` rejects, and while the view is older than two intervals. Throws `NotStartedError` and `SchemaNotFoundError`.
   */
  getCached<T extends TableRef>(table: T, primaryKey: KeyFor<T>): RowFor<T> | null | undefined {
    const state = this.#instance.admit('db.getCached()').stateInMemory(tableName(table));
    return this.#rows.getCached(state, primaryKey) as RowFor<T> | null | undefined;
  }

  /**
   * Wraps data for a blob field. The data is stored as a separate object when the batch is flushed, and the row holds its
   * reference. Strings are stored as UTF-8 and buffers are copied at once; streams are read once, by the flush.
   * Throws `InvalidOptionError` for anything else.
   */
  Blob(data: BlobData, options?: BlobOptions): BlobValue {
    return new BlobValue(data, options);
  }

  /**
   * Returns a stored blob by its reference, the UUID in a row's blob field. It reads nothing yet: the methods of the result
   * reject if there is no such blob.
   */
  getBlob(reference: string): BlobReference {
    if (typeof reference !== 'string') {
      throw new InvalidOptionError('reference', `A blob reference is a UUID string, not ${describeValue(reference)}.`);
    }
    const blobs = (): BlobStore => this.#instance.blobs;
    return new BlobReference(reference, blobs, async (id) => {
      this.#instance.running('Reading a blob');
      return readBlobRecord(this.#instance, id);
    });
  }

  /**
   * The position of this instance in the log: the slot of the newest commit that it shows, 0 before the first. It only increases.
   * After `flush()` it is at least the position of the flushed commit, so that another instance can catch up with it by
   * `refresh({ atLeast })`. With polling `'onDemand'`, until the first call that reads or writes, it may be the position of the last
   * merged commit. Throws `NotStartedError`.
   */
  get position(): number {
    return this.#instance.running('db.position').view.tail;
  }

  /**
   * Catches up with all commits of all instances before the call, or with a position. Later queries see them.
   * Rejects with `DeadlineExceededError` if that takes longer than a minute, and with `InvalidOptionError`.
   */
  async refresh(options: RefreshOptions = {}): Promise<void> {
    const { atLeast, signal: outer } = refreshOptions.check('db.refresh()', options);
    const engine = this.#instance.running('db.refresh()');
    await engine.withDeadline('db.refresh()', outer, ({ signal }) => {
      return atLeast === undefined ? engine.refresh(signal) : engine.reach(atLeast, signal);
    });
  }

  /**
   * Returns the commits of all instances: an endless iterable in the order of the log, each with its changes. It
   * returns every commit exactly once, and can be continued after any of them. It ends when the loop is left with `break`. It
   * rejects with `AbortedError`, with `NotStartedError` when this instance is stopped, and with `ChangesExpiredError` if
   * the log begins after the position, or, with `before`, if the rows before the changes are not kept. While the store cannot be
   * reached it waits. Throws `NotStartedError` and `InvalidOptionError`.
   */
  changes(options: ChangesOptions = {}): ChangeFeed {
    return this.#instance.changes(changesOptions.check('db.changes()', options));
  }

  /**
   * Returns whether a commit with an unknown outcome took effect: pass the `CommitOutcomeUnknownError`, or its `commitId` and `slot`,
   * also in another process or on a replica. True: it took effect, and this instance shows it. False: it did not, and never
   * will. Rejects with `CommitOutcomeUnknownError` while the outcome cannot be determined, and with `InvalidOptionError`, also for a
   * commit to another database. If you still have the batch, flush it again: this resolves the outcome too, and commits the batch if it
   * was not committed.
   */
  async resolveCommit(commit: CommitRef, options: CallOptions = {}): Promise<boolean> {
    const callName = 'db.resolveCommit()';
    return this.#instance.resolveCommit(checkCommit(commit), signalOptions.check(callName, options), callName);
  }

  /**
   * Merges all pending commits into blocks now, instead of at the next turn of write authority: for example after a
   * large import. Rejects with `ContentionError` if other instances keep merging.
   */
  async checkpoint(options: CallOptions = {}): Promise<void> {
    await this.#instance.writing('db.checkpoint()').checkpoint(signalOptions.check('db.checkpoint()', options).signal);
  }

  /**
   * Reads and checks the whole database: trees, counts, indexes against rows, checksums; with `deep` also
   * blobs, snapshots, history and the list of all objects. Problems are in the report. It rejects only if the store
   * cannot be read, with `ContentionError` if garbage collection keeps deleting the blocks that it reads, and with `InvalidOptionError`.
   * It takes as long as reading all of the data.
   */
  async verify(options: VerifyOptions = {}): Promise<VerifyReport> {
    return this.#instance.maintenance.verify(verifyOptions.check('db.verify()', options));
  }

  /**
   * Checks the database as {@link verify} with `deep` does, and rebuilds indexes that are damaged, missing or wrong from the
   * rows of their tables. Damage that cannot be repaired is in the report, and stays: no row, blob or snapshot is ever
   * changed. Other nodes may continue to read, write and merge. Rejects with `ContentionError` if they merge before every
   * attempt, and with `InvalidOptionError`.
   */
  async repair(options: RepairOptions = {}): Promise<RepairReport> {
    return this.#instance.maintenance.repair(checkRepairOptions(options));
  }

  /**
   * Takes a snapshot of the present state: everything that was committed before the call. Pending commits are merged for it.
   * Rejects with `InvalidOptionError`, and with `ContentionError` if there are 1,000 snapshots already.
   */
  async snapshot(options: SnapshotOptions = {}): Promise<Snapshot> {
    const { timeToLiveMs, signal } = checkSnapshotOptions('db.snapshot()', options);
    const held = await this.#instance.takeSnapshot(timeToLiveMs, signal);
    return new Snapshot(this.#instance, held, this.#instance.environment.now());
  }

  /**
   * Takes a snapshot of an earlier state: the state of a generation, as snapshots and `db.stats()` return it, or the state
   * at a time, by the clocks of the nodes that merged. The present state is always available; earlier states only while the option
   * `history` keeps them. Commits count from the time of their merge. A replica cannot pin the state: its snapshot ends once `gc()` has
   * removed blocks of the state. Rejects with `SnapshotExpiredError` if the state is not kept, and with `InvalidOptionError`.
   */
  async at(state: number | Date, options: SnapshotOptions = {}): Promise<Snapshot> {
    const isState = typeof state === 'number' ? Number.isSafeInteger(state) && state >= 0 : isTime(state);
    if (!isState) {
      throw new InvalidOptionError('state', `The state is ${describeValue(state)}; it must be a generation or a Date.`);
    }
    const { timeToLiveMs, signal } = checkSnapshotOptions('db.at()', options);
    const held = await this.#instance.takeEarlier(state, timeToLiveMs, signal);
    // Rows that have expired since are shown, as they were.
    const expiryMs = typeof state === 'number' ? held.view.block0.changedMs : state.getTime();
    return new Snapshot(this.#instance, held, Math.min(expiryMs, this.#instance.environment.now()));
  }

  /** Lists the snapshots that are held now, by all instances. */
  async snapshots(options: CallOptions = {}): Promise<SnapshotInfo[]> {
    const { signal: outer } = signalOptions.check('db.snapshots()', options);
    const engine = this.#instance.running('db.snapshots()');
    const block0 = await engine.withDeadline('db.snapshots()', outer, async ({ signal }) => {
      await engine.refresh(signal);
      return engine.register.current.block0;
    });
    return block0.snapshots.map(snapshotInfo);
  }

  /**
   * Ends a snapshot of any instance by its id. For its holder it has then expired. Use it for snapshots whose holder is gone, which would
   * otherwise stay until they expire. Returns false if there is no snapshot with that id. Rejects with `ReadOnlyError` on a replica.
   */
  async releaseSnapshot(id: string, options: CallOptions = {}): Promise<boolean> {
    const callName = 'db.releaseSnapshot()';
    const { signal: outer } = signalOptions.check(callName, options);
    const engine = this.#instance.writing(callName);
    return engine.withDeadline(callName, outer, async ({ signal }) => {
      await engine.refresh(signal);
      if (!engine.register.current.block0.snapshots.some((snapshot) => snapshot.id === id)) return false;
      await engine.pins.release(id, signal);
      return true;
    });
  }

  /**
   * Returns the definitions of all stored tables, ordered by name, without system tables: for tools, which can register them. Each is in
   * its active version; once a migration has switched, in the new version, unless that needs a `migrate` function.
   */
  async tables(options: CallOptions = {}): Promise<SchemaDefinition[]> {
    const { signal: outer } = signalOptions.check('db.tables()', options);
    const engine = this.#instance.running('db.tables()');
    await engine.withDeadline('db.tables()', outer, ({ signal }) => engine.refresh(signal));
    return storedDefinitions(engine.view);
  }

  /**
   * Returns the definitions that are registered here, in the newest version of each table, ordered by name: for tools. Tables that were
   * dropped since are left out. They have no `migrate` functions. It makes no request, and may be called while the database is stopped.
   */
  registeredSchemas(): SchemaDefinition[] {
    return registeredDefinitions(this.#instance.registry);
  }

  /**
   * Lists the newest commits that the log still holds, newest first, without their rows: for tools. `gc()` deletes merged commits after a
   * while. Each merged commit takes a request. `changes()` gives the rows. Rejects with `InvalidOptionError` and `CorruptionError`.
   */
  async log(options: LogOptions = {}): Promise<CommitInfo[]> {
    const checked = logOptions.check('db.log()', options);
    return (await this.#instance.maintenance.inspection('db.log()')).log('db.log()', checked);
  }

  /**
   * Adds up the stored objects by what they hold, the largest groups first: for tools. It lists all objects of the database, with a
   * request for a thousand of them. Rejects with `InvalidOptionError`.
   */
  async objects(options: ObjectsOptions = {}): Promise<ObjectGroup[]> {
    const checked = objectsOptions.check('db.objects()', options);
    return (await this.#instance.maintenance.inspection('db.objects()')).objects('db.objects()', checked);
  }

  /**
   * Returns a block of the B+tree of a table or of one of its indexes, decoded: for tools that show how rows are stored. Begin at the
   * root, and pass the `name` of a child to go down. Commits that are not merged yet are in no block. Returns null if nothing was merged
   * into the tree. Rejects with `InvalidOptionError`, also for a table that is not stored and for a block that was deleted meanwhile, and
   * with `CorruptionError`.
   */
  async block(table: TableRef, options: BlockOptions = {}): Promise<BlockInfo | null> {
    const checked = blockOptions.check('db.block()', options);
    const name = tableName(table);
    return (await this.#instance.maintenance.inspection('db.block()')).block('db.block()', name, checked);
  }

  /**
   * Deletes the objects that nothing needs any more: blocks that neither the present state nor a snapshot reaches, blobs of deleted
   * rows, leftovers of crashed processes, and merged commits of the log. Safe at any moment, on any number of nodes
   * at once. Without it the store only grows: run it for example once a day. Rejects with `CorruptionError`, having
   * deleted nothing, if any state that must be kept cannot be read, and with `InvalidOptionError`.
   */
  async gc(options: GcOptions = {}): Promise<GcReport> {
    return this.#instance.maintenance.collect(checkGcOptions(options));
  }

  /**
   * Copies the present state, with everything that was committed before the call, to a place for backups: another store or another
   * prefix. Objects of earlier backups are not copied again. `restoreBackup()` creates a database from it.
   * Rejects with `InvalidOptionError`, `CorruptionError` and `StorageError`: then no backup was added.
   */
  async backup(to: StorePlace, options: CopyOptions = {}): Promise<BackupReport> {
    const callName = 'db.backup()';
    const checked = copyOptions.check(callName, options);
    const place = placeOptions.check(callName, to, 'to');
    return this.#instance.maintenance.copy(callName, place, checked, async (...given) => {
      const { backUp } = await backingUp.get();
      return backUp(...given);
    });
  }

  /**
   * Creates an independent database from the present state, with a new id, at an empty place. Within one store that can copy
   * objects, no data passes through this process. Rejects as {@link backup} does.
   */
  async clone(to: StorePlace, options: CopyOptions = {}): Promise<RestoreReport> {
    const callName = 'db.clone()';
    const checked = copyOptions.check(callName, options);
    const place = placeOptions.check(callName, to, 'to');
    return this.#instance.maintenance.copy(callName, place, checked, async (...given) => {
      const { makeDatabase } = await cloning.get();
      return makeDatabase(...given);
    });
  }

  /**
   * Publishes the present state of some tables at another place, as a bundle that `openReader()` of `store-db/reader` reads, in a browser
   * too, from any server of static files. Blocks that an earlier bundle there has are shared, and not written again. The new bundle takes
   * the place of the one before at once, and never that of a newer state. A bundle is not encrypted, and can be read by everyone who can
   * read the place. It holds the chosen rows and fields, the primary keys, the definitions of these fields and of indexes on them, and
   * nothing else.
   *
   * Rejects with `InvalidOptionError`, also for unknown tables and fields, and for a place with a database or with bundles of another
   * one; with `InvalidQueryError`; with `ReadOnlyError` on a replica; with `ContentionError` if other processes publish there again and
   * again; with `CorruptionError` and `StorageError`. Readers then see the bundle before.
   */
  async publish(to: StorePlace, options: PublishOptions = {}): Promise<PublishReport> {
    const callName = 'db.publish()';
    const checked = publishOptions.check(callName, options);
    return this.#instance.maintenance.publish(placeOptions.check(callName, to, 'to'), checked);
  }

  /**
   * Rewrites every object that is not encrypted with the current key or not compressed as the options `encryption` and
   * `compression` ask: after a key was replaced, or when encryption is turned on or off. Safe while any number of instances
   * read, write, merge and collect garbage, as long as all of them have the keys. With `dryRun` it reports the keys that are still
   * needed. Rejects with `InvalidOptionError` if neither option was given, and with `ReadOnlyError` on a replica.
   */
  async rewrite(options: RewriteOptions = {}): Promise<RewriteReport> {
    return this.#instance.maintenance.rewrite(rewriteOptions.check('db.rewrite()', options));
  }

  /**
   * Tests the store, with random keys that it deletes again, and checks the objects under the prefix: whether conditional writes
   * are safe, the permissions of the credentials, the latency and the clock of the store. It makes about a hundred
   * requests. It may be called before `start()`, after `stop()` and when `start()` fails. An unsafe or unreachable store is
   * reported, and no error: it rejects only with `AbortedError`, and with `InvalidOptionError`.
   */
  async doctor(options: CallOptions = {}): Promise<StoreReport> {
    return this.#instance.doctor(signalOptions.check('db.doctor()', options).signal);
  }

  /**
   * Returns figures about this instance: the requests and their cost since it was created; the cache, the log and merges since
   * `start()`. It makes no requests.
   */
  stats(): DatabaseStats {
    return this.#instance.stats();
  }

  /**
   * Returns how this instance is, `ok`, `degraded` or `failing`, and the reasons. It makes no requests, so that a probe may ask each
   * second, and may be called before `start()` and after `stop()`. The option `health` of `StoreDb()` sets the thresholds.
   */
  health(): DatabaseHealth {
    return this.#instance.health();
  }
}

async function rejected(cause: unknown): Promise<never> {
  throw cause;
}

/** Creates a database whose clock, timers and randomness come from `environment`: the factory behind `StoreDb()`, also for simulators. */
export function createDatabase(options: StoreDbOptions | EphemeralOptions, environment: Environment): Database {
  return new Database(new Instance(checkOptions(options, environmentDriver), environment));
}
