/** The facade: what an application holds. It wires the parts together and does nothing else itself. */
import { InvalidOptionError } from './base/errors.ts';
import { ByteWriter } from './base/bytes.ts';
import { Batch, tableName } from './batch/batch.ts';
import type { TableRef, TriggerHandler } from './batch/batch.ts';
import { normalizeKey } from './batch/operations.ts';
import type { StoreReport } from './care/doctor.ts';
import type { VerifyReport } from './care/verify.ts';
import { BlobReference } from './blob/blob-reference.ts';
import type { BlobStore } from './blob/blob-store.ts';
import { BlobValue } from './blob/blob-value.ts';
import type { BlobData, BlobOptions } from './blob/blob-value.ts';
import { describeValue } from './format/values.ts';
import type { TriggerOperation } from './table/trigger.ts';
import { decodeRow } from './format/row-decode.ts';
import { FieldProblem } from './format/row-encode.ts';
import type { Instance, RowFor, TriggerApi } from './instance.ts';
import { Query } from './query/builder.ts';
import type { SchemaDefinition } from './table/schema.ts';
import type { TableShape } from './table/table-shape.ts';
import type { TableState } from './table/table-state.ts';
import { BlockGone } from './tree/block-source.ts';
import type { RowHit } from './tree/tree.ts';
import type { DatabaseStats } from './care/stats.ts';

/** Options of calls that reach the store. */
export interface CallOptions {
  /** Gives the call up. */
  readonly signal?: AbortSignal;
}

/** A database, as returned by `StoreDb()`. */
export class Database {
  readonly #instance: Instance;
  readonly #key = new ByteWriter(64);

  /** @internal Use `StoreDb()`. */
  constructor(instance: Instance) {
    this.#instance = instance;
  }

  /**
   * Opens the database, or creates it where there is none, and starts the write-forward loop. Required before any
   * operation; calling it again changes nothing. `registerSchema()` and its like may come before or after. Rejects with
   * `NotADatabaseError` if there are other objects under the prefix, with `UnsafeStoreError` if the store is not safe
   * for a new database, and with `DeadlineExceededError` if it cannot be reached.
   */
  async start(): Promise<void> {
    await this.#instance.start();
  }

  /**
   * Stops the write-forward loop, waits for flushes and merges under way and releases what the instance holds. Nothing
   * is merged for it: what was flushed is durable as it is. A stopped instance can be started again. It leaves
   * no timers or sockets behind.
   */
  async stop(): Promise<void> {
    await this.#instance.stop();
  }

  /** The same as {@link stop}. */
  close(): Promise<void> {
    return this.stop();
  }

  /** Stops the instance at the end of a block with `await using db = StoreDb(...)`. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }

  /**
   * Registers a table in one version; must come before any use of the table. Of several versions, this instance uses
   * the newest. Throws `InvalidSchemaError`.
   */
  registerSchema(schema: SchemaDefinition): void {
    this.#instance.registry.registerSchema(schema, this.#instance.engine?.view);
  }

  /**
   * Registers a function of whole rows for use in `where(name, '=', value)`, in queries of every table. Its result is
   * compared with `===`. It must be synchronous, pure and without side effects. A field of the same name is hidden by it.
   * A second function of the same name replaces the first. `version` is for your own use: nothing depends on it.
   * Throws `InvalidOptionError`.
   */
  registerFunction(name: string, fn: (row: Record<string, unknown>) => unknown, version?: number): void {
    this.#instance.registry.registerFunction(name, fn, version);
  }

  /**
   * Registers a trigger: `handler` is called for every mutation of the table when it is added to a batch, in the order of
   * registration. What it adds to `batch` is committed with the mutation; if it rejects, the mutation is not added and
   * one flush is rejected with its error. `'*'` stands for all three operations. Triggers fire in this instance only.
   * Throws `InvalidOptionError`.
   */
  registerTrigger(table: string, operation: TriggerOperation | '*', handler: TriggerHandler<TriggerApi>): void {
    this.#instance.registry.registerTrigger(table, operation, handler);
  }

  /** A new, empty root batch. */
  batch(): Batch {
    return new Batch(this.#instance);
  }

  /** A query on a table, given by name or, for typed rows, by its schema definition. */
  query<T extends TableRef>(table: T): Query<RowFor<T>> {
    return new Query<RowFor<T>>(this.#instance, tableName(table));
  }

  /**
   * The row with a primary key, as a fresh plain object; undefined if there is none. The fast way to one row. Rejects
   * with `SchemaNotFoundError` if the table is not registered, and with `InvalidQueryError` for a key of another kind.
   */
  get<T extends TableRef>(table: T, primaryKey: unknown): Promise<RowFor<T> | undefined> {
    try {
      this.#instance.running('db.get()');
      const state = this.#instance.tableState(tableName(table));
      if (state instanceof Promise) return state.then((fresh) => this.#getIn<T>(fresh, primaryKey));
      return this.#getIn<T>(state, primaryKey);
    } catch (cause) {
      return rejected(cause);
    }
  }

  #getIn<T extends TableRef>(state: TableState, primaryKey: unknown): Promise<RowFor<T> | undefined> {
    const { shape } = state;
    const key = this.#key;
    key.length = 0;
    try {
      shape.writeKey(key, normalizeKey(shape.primaryKey, primaryKey));
    } catch (error) {
      if (!(error instanceof FieldProblem)) throw error;
      // A value that no key can have: a query tells one that is only out of range from one of another kind.
      const query = new Query<RowFor<T>>(this.#instance, shape.name);
      return query.where(shape.primaryKey.name, '=', primaryKey).first();
    }
    const found = state.lookup(key.bytes, key.length);
    if (found instanceof Promise) return this.#getSlowly<T>(state, found, key.finish());
    return Promise.resolve(decodeHit(shape, found) as RowFor<T> | undefined);
  }

  async #getSlowly<T extends TableRef>(
    state: TableState,
    first: Promise<RowHit | undefined>,
    key: Uint8Array,
  ): Promise<RowFor<T> | undefined> {
    let found = first;
    for (let present = state; ; ) {
      try {
        return decodeHit(present.shape, await found) as RowFor<T> | undefined;
      } catch (error) {
        if (!(error instanceof BlockGone) || !(await this.#instance.viewMovedOn(present))) throw error;
        present = await this.#instance.tableState(present.shape.name);
        found = Promise.resolve(present.lookup(key));
      }
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
      return this.#instance.blobRecord(id);
    });
  }

  /** Catches up with everything that was committed anywhere before the call. Later queries see it. */
  async refresh(options: CallOptions = {}): Promise<void> {
    const engine = this.#instance.running('db.refresh()');
    await engine.withDeadline('db.refresh()', options.signal, ({ signal }) => engine.refresh(signal));
  }

  /**
   * Merges all pending commits into blocks now, instead of at the next turn of write authority: for instance after a
   * large load. Rejects with `ContentionError` if other instances merge all the time.
   */
  async checkpoint(options: CallOptions = {}): Promise<void> {
    await this.#instance.running('db.checkpoint()').checkpoint(options.signal);
  }

  /**
   * Reads everything that is stored and checks it: trees, counts, indexes against rows, checksums. What is wrong is in
   * the report; it rejects only if the store cannot be read. It takes as long as reading all blocks does.
   */
  verify(options: CallOptions = {}): Promise<VerifyReport> {
    return this.#instance.verify(options.signal);
  }

  /**
   * Tries the store out, under random keys that are deleted again, and looks what is under the prefix: whether writes
   * keep their conditions, what the credentials allow, how fast and how far off in time the store is. About a hundred
   * requests. May be called before `start()`, after `stop()` and when `start()` fails. An unsafe store, or one that is
   * out of reach, is no error but in the report; it rejects only with `AbortedError`.
   */
  doctor(options: CallOptions = {}): Promise<StoreReport> {
    return this.#instance.doctor(options.signal);
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

function decodeHit(shape: TableShape, hit: RowHit | undefined): Record<string, unknown> | undefined {
  return hit === undefined ? undefined : decodeRow(shape.layout, hit.source, hit.base);
}
