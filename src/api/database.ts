/** The facade: what an application holds. It wires the parts together and does nothing else itself. */
import type { Environment } from '../base/env.ts';
import { InvalidOptionError } from '../base/errors.ts';
import { describeValue } from '../base/messages.ts';
import { signalOptions } from '../base/options.ts';
import { Batch, tableName } from '../batch/batch.ts';
import type { KeyFor, TableRef, TriggerHandler } from '../batch/batch.ts';
import { BlobReference } from '../blob/blob-reference.ts';
import type { BlobStore } from '../blob/blob-store.ts';
import { BlobValue } from '../blob/blob-value.ts';
import type { BlobData, BlobOptions } from '../blob/blob-value.ts';
import { storedDefinitions } from '../catalog/registry.ts';
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
  StoreDbOptions,
} from '../instance/options.ts';
import type { RowFor, TriggerApi, TriggerRow } from '../instance/trigger-api.ts';
import type { CommitRef } from '../log/commit-outcome.ts';
import { backUp } from '../maintenance/backup/backup.ts';
import type { BackupReport, CopyOptions } from '../maintenance/backup/backup.ts';
import { copyOptions, placeOptions } from '../maintenance/backup/copy-options.ts';
import { makeDatabase } from '../maintenance/backup/restore.ts';
import type { RestoreReport } from '../maintenance/backup/restore.ts';
import type { StorePlace } from '../maintenance/backup/state-copy.ts';
import { readBlobRecord } from '../maintenance/blob-record.ts';
import type { StoreReport } from '../maintenance/doctor.ts';
import type { GcReport } from '../maintenance/gc/collector.ts';
import { checkGcOptions } from '../maintenance/gc/gc-options.ts';
import type { GcOptions } from '../maintenance/gc/gc-options.ts';
import { rewriteOptions } from '../maintenance/rewrite/rewrite-options.ts';
import type { RewriteOptions, RewriteReport } from '../maintenance/rewrite/rewrite.ts';
import { snapshotInfo } from '../maintenance/snapshots/held-snapshot.ts';
import type { SnapshotInfo } from '../maintenance/snapshots/held-snapshot.ts';
import type { DatabaseStats } from '../maintenance/stats.ts';
import type { RepairReport } from '../maintenance/verify/repair.ts';
import { checkRepairOptions, verifyOptions } from '../maintenance/verify/verify-options.ts';
import type { RepairOptions, VerifyOptions } from '../maintenance/verify/verify-options.ts';
import type { VerifyReport } from '../maintenance/verify/verify.ts';
import { withSizes } from '../migration/index-sizes.ts';
import { indexesIn, indexesOptions } from '../migration/index-status.ts';
import type { IndexesOptions, IndexStatus } from '../migration/index-status.ts';
import type { MigrationStatus } from '../migration/migration-status.ts';
import type { FinishOptions, SetTargetSchemaVersionOptions } from '../migration/migrations.ts';
import { RowGetter } from '../query/row-getter.ts';
import { Query } from '../query/query.ts';
import type { TriggerOperation } from '../schema/registered-functions.ts';
import type { SchemaDefinition } from '../schema/schema.ts';
import { driverFromProcess } from '../storage/s3/driver-from-env.ts';
import { runTransaction } from '../transaction/run-transaction.ts';
import type { TransactionFunction, TransactionOptions } from '../transaction/run-transaction.ts';
import { Snapshot } from './snapshot.ts';

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
   * Opens the database, or creates it where there is none, and starts the write-forward loop. Required before any
   * operation; calling it again changes nothing. `registerSchema()` and its like may come before or after. Rejects with
   * `NotADatabaseError` if there are other objects under the prefix, with `UnsafeStoreError` if the store is not safe
   * for a new database, with `DeadlineExceededError` if it cannot be reached, and with `BackpressureError` if more commits
   * wait to be merged than there is memory for, and cannot be. With polling `'onDemand'` it does not wait for the look at the
   * log, and what is found there, be it damage, is told by the calls that need it. With `expectAtLeast` it rejects with
   * `DatabaseReplacedError` if what is stored is older, or nothing, and with `InvalidOptionError`.
   */
  async start(options: StartOptions = {}): Promise<void> {
    await this.#instance.start(startOptions.check('db.start()', options).expectAtLeast);
  }

  /**
   * Stops the write-forward loop, waits for flushes and merges under way and releases what the instance holds. Nothing
   * is merged for it: what was flushed is durable as it is. The instance leaves the list of nodes that share write
   * authority, with one write. A stopped instance can be started again. It leaves no timers or sockets behind.
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
   * Registers a table in one version; must come before any use of the table. Of several versions, this instance uses
   * the newest. The fields and the primary key of a version never change. It may be registered with more indexes than are stored:
   * those are added in the background, and `indexes()` tells how far they are. With fewer, those that are stored stay.
   * Throws `InvalidSchemaError`.
   */
  registerSchema(schema: SchemaDefinition): void {
    this.#instance.registry.registerSchema(schema, this.#instance.engine?.view);
    this.#instance.maintenance.schemaRegistered();
  }

  /**
   * Asks that a table go to another version of its schema, which this instance has registered. Resolves when that is in
   * Block 0; the rows are made in the background, by instances that have registered the version, while instances with the old
   * one read and write on. Once all rows are there the table switches; the old version stays until `finishMigration()` is
   * called. `migrationStatus()` tells how far it is. Called again for a migration that is blocked, it tries again. For
   * the version in force it does nothing, or goes back to it. A table without any rows yet is made in the version.
   *
   * Rejects with `InvalidSchemaError` if the version is not registered here or the table cannot go there, with
   * `MigrationActiveError` while it is on its way to another version, with `InvalidOptionError`, also for a version lower than
   * the one in force, and with `ReadOnlyError` on a replica.
   */
  async setTargetSchemaVersion(
    table: TableRef,
    version: number,
    options: SetTargetSchemaVersionOptions = {},
  ): Promise<void> {
    const migrations = this.#instance.maintenance.migrations('db.setTargetSchemaVersion()');
    await migrations.setTarget(table, version, options);
  }

  /**
   * Has the old version of a table go, once all rows are there in the new one: what still uses it is refused from then on,
   * before anything is written, and so is its `start()`. Resolves when the old version has gone; given up before that, the rest
   * follows in the background. `migrationStatus()` shows who uses it. Without a migration it does nothing.
   *
   * Rejects with `MigrationActiveError` while instances are known to use the old version (pass `force` where they are gone
   * without a word), before the table has switched, and while rows cannot be migrated; with `InvalidSchemaError` if the
   * table is registered here, but not in the new version, or with another `migrate`, and with `ReadOnlyError` on a replica.
   */
  async finishMigration(table: TableRef, options: FinishOptions = {}): Promise<void> {
    await this.#instance.maintenance.migrations('db.finishMigration()').finish(table, options);
  }

  /**
   * Goes back to the old version of a table that is on its way to a new one, or has switched to it: what was made for the new
   * version is dropped, and what only the new version knew is lost. Without a migration it does nothing. Rejects with
   * `MigrationActiveError` once the old version is retired, and with `ReadOnlyError` on a replica.
   */
  async cancelMigration(table: TableRef, options: CallOptions = {}): Promise<void> {
    const what = 'db.cancelMigration()';
    await this.#instance.maintenance.migrations(what).cancel(table, signalOptions.check(what, options).signal);
  }

  /** How far the migration of a table is. The table need not be registered. */
  async migrationStatus(table: TableRef, options: CallOptions = {}): Promise<MigrationStatus> {
    return this.#instance.maintenance.migrationStatus(table, signalOptions.check('db.migrationStatus()', options));
  }

  /**
   * The indexes of a table, those that are being added included: which there are, and whether queries use them. They are those of
   * the version of the table that is in force, and none where nothing is stored of it yet. The table need not be registered. With
   * `sizes: true` it tells the bytes of each as well, for which it reads the inner blocks that are not in memory, and no others.
   */
  async indexes(table: TableRef, options: IndexesOptions = {}): Promise<IndexStatus[]> {
    const what = 'db.indexes()';
    const { signal, sizes } = indexesOptions.check(what, options);
    const engine = this.#instance.running(what);
    await engine.withDeadline(what, signal, ({ signal: inner }) => engine.refresh(inner));
    const { view } = engine;
    const { registry } = this.#instance;
    const name = tableName(table);
    const found = indexesIn(view, name, registry);
    return sizes === true
      ? await engine.withSignal(what, signal, (inner) => withSizes(view, name, registry, found, inner))
      : found;
  }

  /**
   * Drops an index of a table, by its name, or one that is being added. Registering a definition without an index does not do that.
   * The index must not be in the definition that is registered here, unless it has failed: then it is begun anew. Other processes whose
   * definition has it add it again. From then on, what a unique index held is checked no more. `gc()` deletes its blocks.
   *
   * Rejects with `InvalidOptionError` if there is no such table or index, with `InvalidSchemaError` if the index is in the
   * definition, with `MigrationActiveError` while a migration of the table is under way, and with `ReadOnlyError` on a replica.
   */
  async dropIndex(table: TableRef, index: string, options: CallOptions = {}): Promise<void> {
    const what = 'db.dropIndex()';
    const { signal } = signalOptions.check(what, options);
    await this.#instance.maintenance.dropIndex(what, tableName(table), index, signal);
  }

  /**
   * Registers a function of whole rows for use in `where(name, '=', value)`, in queries of every table. Its result is
   * compared with `===`. It must be synchronous, pure and without side effects. A field of the same name is hidden by it.
   * A second function of the same name replaces the first. `version`: any number, which tells what the function returns from
   * what another one of the name did; without it, indexes on the function are not used. Throws `InvalidOptionError`.
   */
  registerFunction(name: string, fn: (row: Record<string, unknown>) => unknown, version?: number): void {
    this.#instance.registry.registerFunction(name, fn, version);
    this.#instance.maintenance.functionRegistered();
  }

  /**
   * Registers a trigger: `handler` is called for every mutation of the table when it is added to a batch, in the order of
   * registration. What it adds to `batch` is committed with the mutation; if it rejects, the mutation is not added and
   * one flush is rejected with its error. `'*'` stands for all three operations. Triggers fire in this instance only.
   * Throws `InvalidOptionError`.
   */
  registerTrigger<T extends TableRef>(
    table: T,
    operation: TriggerOperation | '*',
    handler: TriggerHandler<TriggerApi, TriggerRow<T>>,
  ): void {
    this.#instance.registry.registerTrigger(table, operation, handler);
  }

  /** A new, empty root batch. */
  batch(): Batch {
    return new Batch(this.#instance);
  }

  /**
   * Runs `run` as a transaction: what it reads and writes through `tx` takes effect at one point in the order of all commits,
   * on all nodes. All of its reads are of one state, with its own writes on top. What it wrote is committed when it has
   * returned, if nothing that it read has been changed by others; if it has, `run` is called again, on a newer state. So it
   * may run several times and must have no other effects. Resolves to what it returns. If it throws, nothing is written, and
   * the transaction rejects with that.
   *
   * Rejects with `TransactionConflictError` after too many attempts, with `DuplicateKeyError`, `RowNotFoundError` and
   * `CommitOutcomeUnknownError` as `batch.flush()` does, and with `InvalidOptionError`. One that writes nothing commits
   * nothing: it shows a state that may be up to two intervals old, unless `db.refresh()` came before it.
   */
  transaction<T>(run: TransactionFunction<T>, options: TransactionOptions = {}): Promise<T> {
    return runTransaction(this.#instance, run, options);
  }

  /** A query on a table, given by name or, for typed rows, by its schema definition. */
  query<T extends TableRef>(table: T): Query<RowFor<T>> {
    return new Query<RowFor<T>>(this.#instance, tableName(table));
  }

  /**
   * The row with a primary key, as a fresh plain object; undefined if there is none. The fast way to one row. Rejects
   * with `SchemaNotFoundError` if the table is not registered, and with `InvalidQueryError` for a key of another kind. A text
   * that is no UUID is the key of no row.
   */
  get<T extends TableRef>(table: T, primaryKey: KeyFor<T>): Promise<RowFor<T> | undefined> {
    try {
      this.#instance.running('db.get()');
      return this.#rows.get(tableName(table), primaryKey) as Promise<RowFor<T> | undefined>;
    } catch (cause) {
      return rejected(cause);
    }
  }

  /**
   * Wraps data for a blob field. It is stored as an object of its own when the batch is flushed, and the row holds its
   * reference. Strings are stored as UTF-8 and buffers are copied at once; streams are read once, by the flush.
   * Throws `InvalidOptionError` for anything else.
   */
  Blob(data: BlobData, options?: BlobOptions): BlobValue {
    return new BlobValue(data, options);
  }

  /**
   * A stored blob by its reference, the UUID that a row's blob field holds. Nothing is read yet: whether there is such a
   * blob is told by the methods of what is returned.
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
   * Where this instance is in the log: the slot of the newest commit that it shows, 0 before the first. It only goes up.
   * After `flush()` it is at least that of the flushed commit, so that another instance can be brought up to it
   * (`refresh({ atLeast })`). With polling `'onDemand'`, until the first call that reads or writes, it may be that of what was
   * merged. Throws `NotStartedError`.
   */
  get position(): number {
    return this.#instance.running('db.position').view.tail;
  }

  /**
   * Catches up with everything that was committed anywhere before the call, or with a position. Later queries see it.
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
   * What is committed, by whichever instance: an endless loop over commits in the order of the log, each with its changes. It
   * gives every commit exactly once, and can be taken up again after any of them. It ends when `break` leaves it; it
   * rejects with `AbortedError`, with `NotStartedError` when this instance is stopped, and with `ChangesExpiredError` if
   * the log begins after the position. While the store cannot be reached it waits. Throws `NotStartedError` and
   * `InvalidOptionError`.
   */
  changes(options: ChangesOptions = {}): ChangeFeed {
    const { after, signal } = changesOptions.check('db.changes()', options);
    return this.#instance.changes(after, signal);
  }

  /**
   * What became of a commit whose outcome was unknown: pass the `CommitOutcomeUnknownError`, or its `commitId` and `slot`,
   * also in another process or on a replica. True: it was applied, and this instance shows it. False: it was not, and never
   * will be. Rejects with `CommitOutcomeUnknownError` while that cannot be told, and with `InvalidOptionError`, also for a
   * commit to another database. Where the batch is still at hand, flushing it again asks as well, and commits it if it was
   * not.
   */
  async resolveCommit(commit: CommitRef, options: CallOptions = {}): Promise<boolean> {
    const what = 'db.resolveCommit()';
    return this.#instance.resolveCommit(checkCommit(commit), signalOptions.check(what, options), what);
  }

  /**
   * Merges all pending commits into blocks now, instead of at the next turn of write authority: for instance after a
   * large load. Rejects with `ContentionError` if other instances merge all the time.
   */
  async checkpoint(options: CallOptions = {}): Promise<void> {
    await this.#instance.writing('db.checkpoint()').checkpoint(signalOptions.check('db.checkpoint()', options).signal);
  }

  /**
   * Reads everything that is stored and checks it: trees, counts, indexes against rows, checksums, with `deep` also
   * blobs, snapshots, history and the list of all objects. What is wrong is in the report; it rejects only if the store
   * cannot be read, or with `ContentionError` if garbage is collected past what it reads again and again. It takes as long
   * as reading all that does. Rejects with `InvalidOptionError`.
   */
  async verify(options: VerifyOptions = {}): Promise<VerifyReport> {
    return this.#instance.maintenance.verify(verifyOptions.check('db.verify()', options));
  }

  /**
   * Checks everything as {@link verify} with `deep` does, and makes indexes that are damaged, missing or wrong anew from the
   * rows of their tables. What cannot be repaired is in the report, and stays as it is: no row, blob or snapshot is ever
   * changed. Other nodes may go on reading, writing and merging. Rejects with `ContentionError` if they merge before every
   * attempt, and with `InvalidOptionError`.
   */
  async repair(options: RepairOptions = {}): Promise<RepairReport> {
    return this.#instance.maintenance.repair(checkRepairOptions(options));
  }

  /**
   * Holds on to the present state: everything that was committed before the call. What is pending is merged for it.
   * Rejects with `InvalidOptionError`, and with `ContentionError` if there are 1,000 snapshots already.
   */
  async snapshot(options: SnapshotOptions = {}): Promise<Snapshot> {
    const { timeToLiveMs, signal } = checkSnapshotOptions('db.snapshot()', options);
    return new Snapshot(this.#instance, await this.#instance.takeSnapshot(timeToLiveMs, signal));
  }

  /**
   * Holds on to an earlier state: that of a generation, as snapshots and `db.stats()` tell it, or the one that was in force
   * at a time, by the clocks of the nodes that merged. The present one can always be had; earlier ones only while option
   * `history` keeps them. Commits count from when they were merged. Rejects with `SnapshotExpiredError` if the state is not
   * kept, and with `InvalidOptionError`.
   */
  async at(state: number | Date, options: SnapshotOptions = {}): Promise<Snapshot> {
    const isState = typeof state === 'number' ? Number.isSafeInteger(state) && state >= 0 : isTime(state);
    if (!isState) {
      throw new InvalidOptionError('state', `The state is ${describeValue(state)}; it must be a generation or a Date.`);
    }
    const { timeToLiveMs, signal } = checkSnapshotOptions('db.at()', options);
    return new Snapshot(this.#instance, await this.#instance.takeEarlier(state, timeToLiveMs, signal));
  }

  /** The snapshots that are held now, by whichever instance. */
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
   * Ends a snapshot by its id, whichever instance holds it: to its holder it has expired then. For snapshots whose holder is gone,
   * and which would else stay until they expire. False if there is none of that id. Rejects with `ReadOnlyError` on a replica.
   */
  async releaseSnapshot(id: string, options: CallOptions = {}): Promise<boolean> {
    const what = 'db.releaseSnapshot()';
    const { signal: outer } = signalOptions.check(what, options);
    const engine = this.#instance.writing(what);
    return engine.withDeadline(what, outer, async ({ signal }) => {
      await engine.refresh(signal);
      if (!engine.register.current.block0.snapshots.some((snapshot) => snapshot.id === id)) return false;
      await engine.pins.release(id, signal);
      return true;
    });
  }

  /**
   * The definitions of all tables that are stored, ordered by name, each in the version in force (once a migration has switched,
   * the new one, unless a `migrate` function makes its rows): what a tool registers that has none of its own. The database's own tables are left out.
   */
  async tables(options: CallOptions = {}): Promise<SchemaDefinition[]> {
    const { signal: outer } = signalOptions.check('db.tables()', options);
    const engine = this.#instance.running('db.tables()');
    await engine.withDeadline('db.tables()', outer, ({ signal }) => engine.refresh(signal));
    return storedDefinitions(engine.view);
  }

  /**
   * Deletes what nothing needs any more: blocks that neither the present state nor a snapshot reaches, blobs of deleted
   * rows, what crashed processes left behind, and the log where it is merged. Safe at any moment, on any number of nodes
   * at once. Without it the store only grows: run it once a day, for instance. Rejects with `CorruptionError`, having
   * deleted nothing, if any state that must be kept cannot be read, and with `InvalidOptionError`.
   */
  async gc(options: GcOptions = {}): Promise<GcReport> {
    return this.#instance.maintenance.collect(checkGcOptions(options));
  }

  /**
   * Copies the present state to a place for backups, with another driver or under another prefix: everything that was committed
   * before the call. What is there already from earlier backups is not copied again. `restoreBackup()` makes a database of it.
   * Rejects with `InvalidOptionError`, `CorruptionError` and `StorageError`: then no backup was added.
   */
  async backup(to: StorePlace, options: CopyOptions = {}): Promise<BackupReport> {
    const what = 'db.backup()';
    const checked = copyOptions.check(what, options);
    return this.#instance.maintenance.copy(what, placeOptions.check(what, to, 'to'), checked, backUp);
  }

  /**
   * Makes a database of its own out of the present state, with a new id, at a place where nothing is. Within one store that can
   * copy, nothing is moved through this process. Rejects as {@link backup} does.
   */
  async clone(to: StorePlace, options: CopyOptions = {}): Promise<RestoreReport> {
    const what = 'db.clone()';
    const checked = copyOptions.check(what, options);
    return this.#instance.maintenance.copy(what, placeOptions.check(what, to, 'to'), checked, makeDatabase);
  }

  /**
   * Stores anew every object that is not encrypted with the current key, or not compressed, as the options `encryption` and
   * `compression` say: after a key was replaced, or when encryption is turned on or off. Safe while any number of instances
   * read, write, merge and collect garbage, as long as all of them have the keys. With `dryRun` it tells which keys are still
   * needed. Rejects with `InvalidOptionError` where neither option was given, and with `ReadOnlyError` on a replica.
   */
  async rewrite(options: RewriteOptions = {}): Promise<RewriteReport> {
    return this.#instance.maintenance.rewrite(rewriteOptions.check('db.rewrite()', options));
  }

  /**
   * Tries the store out, under random keys that are deleted again, and looks what is under the prefix: whether writes
   * keep their conditions, what the credentials allow, how fast and how far off in time the store is. About a hundred
   * requests. May be called before `start()`, after `stop()` and when `start()` fails. An unsafe store, or one that is
   * out of reach, is no error but in the report; it rejects only with `AbortedError`, and with `InvalidOptionError`.
   */
  async doctor(options: CallOptions = {}): Promise<StoreReport> {
    return this.#instance.doctor(signalOptions.check('db.doctor()', options).signal);
  }

  /**
   * Figures about this instance: requests, and what they cost, since it was created; its cache, the log and merges since
   * `start()`. Costs nothing.
   */
  stats(): DatabaseStats {
    return this.#instance.stats();
  }
}

async function rejected(cause: unknown): Promise<never> {
  throw cause;
}

// Makes instances: the factory behind `StoreDb()`, which simulators call with an environment of their own.

/** A database whose clock, timers and randomness come from `environment`. */
export function createDatabase(options: StoreDbOptions, environment: Environment): Database {
  return new Database(new Instance(checkOptions(options, driverFromProcess), environment));
}
