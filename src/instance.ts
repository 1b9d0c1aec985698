/**
 * A running (or stopped) instance: what is registered, the engine while it runs, and what batches and queries need of
 * the two. The facade (database.ts) puts the public calls on top of it.
 */
import { Deadline } from './base/deadline.ts';
import type { Environment } from './base/env.ts';
import { AbortedError, BlobNotFoundError, NotStartedError, StorageError } from './base/errors.ts';
import { filteredLogger } from './base/logger.ts';
import type { Logger } from './base/logger.ts';
import { tableName } from './batch/batch.ts';
import type { Batch, BatchHost, FlushOptions, TableRef } from './batch/batch.ts';
import type { OperationSet } from './batch/operation-set.ts';
import { prepareMember } from './batch/prepare.ts';
import { BlobStore } from './blob/blob-store.ts';
import { blobsSchema, checkBlobRecord } from './blob/blob-tables.ts';
import type { BlobRecord } from './blob/blob-tables.ts';
import { Query } from './query/builder.ts';
import { readStats } from './care/stats.ts';
import type { DatabaseStats } from './care/stats.ts';
import { examineStore } from './care/doctor.ts';
import type { StoreReport } from './care/doctor.ts';
import { verifyDatabase } from './care/verify.ts';
import type { VerifyReport } from './care/verify.ts';
import type { Undecided } from './cluster/append.ts';
import { Engine } from './cluster/engine.ts';
import { isUuid } from './format/values.ts';
import { checkNodes } from './options.ts';
import type { CheckedOptions } from './options.ts';
import { ObservedDriver } from './storage/observed.ts';
import { harmlessHook } from './storage/request-hook.ts';
import { RetryingDriver } from './storage/retry.ts';
import type { StorageDriver } from './storage/driver.ts';
import type { QueryHost } from './table/query-host.ts';
import { Registry } from './table/registry.ts';
import type { RowOf, SchemaDefinition } from './table/schema.ts';
import type { TableShape } from './table/table-shape.ts';
import type { TableState } from './table/table-state.ts';

/** The rows of a table: typed where it is given by its schema definition. */
export type RowFor<T extends TableRef> = T extends SchemaDefinition ? RowOf<T> : Record<string, unknown>;

/** What a trigger reads with: the database, and on top of it the writes of the batch that the trigger fires in. */
export class TriggerApi {
  readonly #instance: Instance;
  readonly #batch: Batch;

  /** @internal Triggers are given one. */
  constructor(instance: Instance, batch: Batch) {
    this.#instance = instance;
    this.#batch = batch;
  }

  /** A query that sees the batch's own writes. */
  query<T extends TableRef>(table: T): Query<RowFor<T>> {
    return new Query<RowFor<T>>(this.#instance, tableName(table)).overlay(this.#batch);
  }

  /** The row with a primary key, the batch's own writes included; undefined if there is none. */
  async get<T extends TableRef>(table: T, primaryKey: unknown): Promise<RowFor<T> | undefined> {
    const { name } = this.#instance.registry.requireShape(tableName(table)).primaryKey;
    return this.query(table).where(name, '=', primaryKey).first();
  }
}

/** What a flush may hold in its commit itself; more goes into staged runs. */
const maxCommitBytes = 8 * 1024 * 1024;

/** Far beyond what looking at a store takes, which ends by itself. */
const doctorTimeoutMs = 300_000;

interface Transition {
  readonly kind: 'start' | 'stop';
  readonly done: Promise<void>;
}

const stopped: Transition = { kind: 'stop', done: Promise.resolve() };

export class Instance implements BatchHost, QueryHost {
  readonly environment: Environment;
  readonly registry: Registry;
  /** The user's driver, counted. */
  readonly observed: ObservedDriver;
  readonly blobs: BlobStore;
  readonly #options: CheckedOptions;
  readonly #logger: Logger;
  readonly #driver: StorageDriver;
  readonly #createdMs: number;
  /** Flushes that were told that their outcome is unknown ask for it again, also after a restart. */
  readonly #undecided = new Map<string, Undecided>();
  #engine: Engine | undefined;
  /** The last start or stop that was asked for; each begins when the one before it has ended. */
  #last: Transition = stopped;

  constructor(options: CheckedOptions, environment: Environment) {
    this.environment = environment;
    this.#options = options;
    this.#logger = filteredLogger(options.logger, options.logLevel);
    this.registry = new Registry(this.#logger);
    const onRequest = options.onRequest && harmlessHook(options.onRequest, this.#logger);
    this.observed = new ObservedDriver(options.driver, { environment, ...(onRequest && { onRequest }) });
    this.#createdMs = environment.monotonicMs();
    this.#driver = new RetryingDriver(this.observed, environment);
    this.blobs = new BlobStore(this.#driver, options.dbPrefix);
  }

  /** The engine from `start()` to `stop()`. */
  get engine(): Engine | undefined {
    return this.#engine;
  }

  start(): Promise<void> {
    if (this.#last.kind === 'start') return this.#last.done;
    // How it was stopped is told to whoever stopped it.
    const ended = this.#last.done.catch(() => undefined);
    return this.#become(
      'start',
      ended.then(() => this.#open()),
    );
  }

  async #open(): Promise<void> {
    const { writeForwardInterval, dbPrefix, nodes } = this.#options;
    const engine = new Engine({
      ...this.#options,
      environment: this.environment,
      driver: this.#driver,
      prefix: dbPrefix,
      logger: this.#logger,
      undecided: this.#undecided,
      intervalMs: writeForwardInterval,
      nodes: async () => (typeof nodes === 'function' ? checkNodes(await nodes()) : nodes),
    });
    await engine.open();
    this.#engine = engine;
  }

  stop(): Promise<void> {
    if (this.#last.kind === 'stop') return this.#last.done;
    const running = this.#engine;
    // Calls are refused from now on.
    this.#engine = undefined;
    const started = this.#last.done.catch(() => undefined);
    return this.#become(
      'stop',
      started.then(() => this.#close(running)),
    );
  }

  #become(kind: Transition['kind'], done: Promise<void>): Promise<void> {
    const transition: Transition = { kind, done };
    this.#last = transition;
    // One that failed can be asked for again.
    done.catch(() => {
      if (this.#last === transition) this.#last = stopped;
    });
    return done;
  }

  async #close(running: Engine | undefined): Promise<void> {
    const engine = running ?? this.#engine;
    this.#engine = undefined;
    if (engine === undefined) return;
    try {
      await engine.close();
    } finally {
      await this.#driver.close?.();
    }
  }

  checkStarted(what: string): void {
    this.running(what);
  }

  stats(): DatabaseStats {
    const uptimeMs = this.environment.monotonicMs() - this.#createdMs;
    return readStats(this.observed.snapshot(), this.#options.prices, uptimeMs, this.#engine);
  }

  /** Checks what is stored. */
  async verify(signal: AbortSignal | undefined): Promise<VerifyReport> {
    const engine = this.running('db.verify()');
    const { dbPrefix: prefix, maxMemoryBytes } = this.#options;
    const cacheBytes = Math.floor(maxMemoryBytes / 4);
    const { environment } = this;
    const options = { environment, driver: this.#driver, prefix, register: engine.register, cacheBytes };
    return engine.withSignal('db.verify()', signal, (inner) => verifyDatabase(options, inner));
  }

  /** Looks at the store, started or not. */
  async doctor(signal: AbortSignal | undefined): Promise<StoreReport> {
    const { environment } = this;
    const deadline = new Deadline(environment, 'db.doctor()', doctorTimeoutMs, signal);
    try {
      const options = { environment, driver: this.#driver, prefix: this.#options.dbPrefix };
      return await examineStore({ ...options, signal: deadline.signal });
    } finally {
      deadline.clear();
      // Nobody else closes what was opened for this. How that goes is no news about the store.
      if (this.#last.kind === 'stop') await this.#driver.close?.().catch(() => undefined);
    }
  }

  /** The engine; throws `NotStartedError` unless the database is running. `what` names the call. */
  running(what: string): Engine {
    if (this.#engine === undefined) throw new NotStartedError(what);
    return this.#engine;
  }

  shapeOf(table: string): TableShape | undefined {
    const shape = this.registry.shape(table);
    // Of two that are equal the view's own: what is compiled for it is recognised by the plans of its states.
    const stored = this.#engine?.view.table(table)?.shape;
    return stored !== undefined && stored.canonical === shape?.canonical ? stored : shape;
  }

  registeredFunction(name: string): ReturnType<Registry['registeredFunction']> {
    return this.registry.registeredFunction(name);
  }

  tableState(table: string): TableState | Promise<TableState> {
    const engine = this.running('A query');
    engine.asked();
    if (!engine.isStale) return this.registry.stateOf(table, engine.view);
    return engine
      .withDeadline('A query', undefined, ({ signal }) => engine.refresh(signal))
      .then(() => this.registry.stateOf(table, engine.view));
  }

  async viewMovedOn(state: TableState): Promise<boolean> {
    const engine = this.running('A query');
    await engine.refresh();
    return engine.view.table(state.shape.name)?.tree.ref !== state.tree.ref;
  }

  async commit(operations: OperationSet, options: FlushOptions): Promise<void> {
    const engine = this.running('batch.flush()');
    const { blockSizeBytes, dbPrefix: prefix } = this.#options;
    const prepareOptions = {
      environment: this.environment,
      driver: this.#driver,
      prefix,
      blockSizeBytes,
      maxCommitBytes,
    };
    const lists = operations.lists;
    // Before the commit that refers to them.
    await this.#uploadBlobs(operations, options.signal);
    const commit = ({ signal }: Deadline): Promise<void> =>
      engine.append({
        signal,
        sizeBytes: lists.reduce((bytes, { sizeBytes }) => bytes + sizeBytes, 0),
        prepare: (view) => {
          return prepareMember(
            lists,
            operations.blobs,
            ({ shape }) => this.registry.stateOf(shape.name, view),
            prepareOptions,
          );
        },
      });
    await engine.withDeadline('batch.flush()', options.signal, commit);
  }

  async #uploadBlobs(operations: OperationSet, signal: AbortSignal | undefined): Promise<void> {
    for (const blob of operations.blobs.values()) {
      // A stream that failed is refused where a row still holds it (BlobChanges): the batch can be repaired.
      if (blob.record !== undefined || blob.value.isSpent) continue;
      try {
        blob.record = await this.blobs.upload(blob.reference, blob.value, signal);
      } catch (error) {
        if (signal?.aborted !== true || !(error instanceof StorageError)) throw error;
        throw new AbortedError('batch.flush() was given up because its signal was aborted', { cause: error });
      }
    }
  }

  /** Size, content type and checksums of a blob. Rejects with `BlobNotFoundError`. */
  async blobRecord(reference: string): Promise<BlobRecord> {
    if (!isUuid(reference))
      throw new BlobNotFoundError(reference, `'${reference}' is no blob reference: those are UUIDs.`);
    const query = new Query<Record<string, unknown>>(this, blobsSchema.name);
    const row = await query.where('id', '=', reference).first();
    if (row !== undefined) return checkBlobRecord(reference, row);
    throw new BlobNotFoundError(
      reference,
      `There is no blob ${reference}: its row was deleted, or its field was given another value.`,
    );
  }

  writableShape(table: string): TableShape {
    return this.registry.writableShape(table);
  }

  triggers(table: string): ReturnType<Registry['triggers']> {
    return this.registry.triggers(table);
  }

  triggerApi(batch: Batch): TriggerApi {
    return new TriggerApi(this, batch);
  }

  resolveCommit(commitId: string, slot: number, options: FlushOptions): Promise<boolean> {
    const engine = this.running('batch.flush()');
    return engine.withDeadline('batch.flush()', options.signal, ({ signal }) =>
      engine.resolveCommit(commitId, slot, signal),
    );
  }
}
