/** Transactions: the object that the function of `db.transaction()` works with, and one attempt at it. */
import { searching } from '../query/searching.ts';
import { isPromise } from '../base/brands.ts';
import type { Environment } from '../base/env.ts';
import { BatchStateError, ContentionError, TransactionConflictError } from '../base/errors.ts';
import { defined } from '../base/options.ts';
import { Pacer } from '../base/pacer.ts';
import type {
  Batch,
  BatchHost,
  FlushOptions,
  ChangeOptions,
  DeletableQuery,
  Increments,
  InsertDocument,
  PrimaryKeyOf,
  KeyFor,
  UpdatableQuery,
  UpdateDocument,
} from '../batch/batch.ts';
import { tableName } from '../schema/table-ref.ts';
import type { TableRef } from '../schema/table-ref.ts';
import type { UpsertOptions } from '../batch/table-operations.ts';
import type { OperationSet } from '../batch/operation-set.ts';
import { BlobReference } from '../blob/blob-reference.ts';
import type { BlobStore } from '../blob/blob-store.ts';
import type { BlobRecord } from '../blob/blob-rows.ts';
import { UnstoredBlob } from '../blob/unstored-blob.ts';
import type { Engine } from '../engine/engine.ts';
import type { CommitMember } from '../format/commit.ts';
import { isUuid } from '../format/values.ts';
import type { EngineHost } from '../instance/engine-host.ts';
import { TriggerApi } from '../instance/trigger-api.ts';
import type { RowFor } from '../instance/trigger-api.ts';
import type { CommitRef } from '../log/commit-outcome.ts';
import type { EngineEvents } from '../log/engine-events.ts';
import { sizeOf } from '../log/log-follower.ts';
import { readBlobRecord } from '../maintenance/blob-record.ts';
import { Query } from '../query/query.ts';
import { byKey } from '../query/row-getter.ts';
import type { FieldKinds } from '../schema/field-kinds.ts';
import type { RegisteredFunction, RegisteredTrigger } from '../schema/registered-functions.ts';
import { isSameShape } from '../schema/same-shape.ts';
import type { TableShape } from '../schema/table-shape.ts';
import type { PriceTable } from '../storage/prices.ts';
import { BlockGone } from '../tree/block-source.ts';
import type { QueryHost, QueryTrace, QueryRead, QueryMemory } from '../query/planner/query-host.ts';
import type { TableState } from '../view/table-state.ts';
import { changesByTable } from '../view/view.ts';
import type { View, LoggedCommit } from '../view/view.ts';
import { ReadSet } from './read-set.ts';

const transactionCall = 'db.transaction()';

/** Names the call in errors. */
/**
 * One attempt at a transaction: the view that it reads, its read set, and the conflict that stands in its way.
 *
 * Invariants:
 * - Every read comes from one view, the one in force when the attempt began.
 * - A read is noted before it is made; nothing is read once the commit has begun.
 * - The attempt is committed only directly after a state in which every read would have the same result.
 */
export class TransactionHost implements BatchHost, QueryHost {
  readonly environment: Environment;
  readonly #host: EngineHost;
  readonly #engine: Engine;
  readonly #attempt: number;
  /** For the whole attempt, so that a row does not expire between two of its reads. */
  readonly expiryMs: number;
  readonly #view: View;
  readonly #watch: CommitWatch;
  readonly #reads = new ReadSet();
  /** Up to this slot no commit has changed anything that was read. */
  #validatedTail: number;
  #conflict: TransactionConflictError | undefined;
  #sealed = false;

  constructor(host: EngineHost, attempt: number) {
    const { engine, environment } = host;
    this.environment = environment;
    this.expiryMs = environment.now();
    this.#host = host;
    this.#engine = engine;
    this.#attempt = attempt;
    this.#view = engine.view;
    this.#watch = new CommitWatch(engine.events);
    this.#validatedTail = this.#view.tail;
  }

  get prices(): PriceTable {
    return this.#host.prices;
  }

  get owner(): object {
    return this.#host.owner;
  }

  get trace(): QueryTrace | undefined {
    return this.#host.trace;
  }

  get queryMemory(): QueryMemory {
    return this.#host.queryMemory;
  }

  get source(): this {
    return this;
  }

  get databaseId(): string {
    return this.#host.databaseId;
  }

  get blobs(): BlobStore {
    return this.#host.blobs;
  }

  /** The reason why the attempt must be made again. It has committed nothing. */
  get conflict(): TransactionConflictError | undefined {
    return this.#conflict;
  }

  /** Ends the attempt: nothing can be read or written through it any more. */
  end(): void {
    this.#sealed = true;
    this.#watch.stop();
  }

  admit(call: string): this {
    this.#host.admit(call);
    if (this.#conflict !== undefined) throw this.#conflict;
    if (this.#sealed) throw transactionEnded();
    return this;
  }

  /** `db.stop()` waits for the transaction as a whole. */
  waitFor(): void {}

  readonly searching: typeof searching = searching;

  registeredShape(table: string): TableShape | undefined {
    return this.#host.registry.shape(table);
  }

  shapeOf(table: string): TableShape | undefined {
    const shape = this.#host.registry.shape(table);
    const stored = this.#view.table(table)?.shape;
    return stored !== undefined && shape !== undefined && isSameShape(stored, shape) ? stored : shape;
  }

  get functions(): ReadonlyMap<string, RegisteredFunction> {
    return this.#host.functions;
  }

  get kinds(): ReadonlyMap<string, FieldKinds> {
    return this.#host.registry.kinds;
  }

  tableState(table: string): TableState | Promise<TableState> {
    this.admit('A query');
    const state = this.#host.bridge.stateOf(this.#view, table);
    return isPromise(state) ? state.catch((error: unknown) => this.#refuse(error)) : state;
  }

  async #refuse(error: unknown): Promise<never> {
    // An outdated view has an error of its own.
    if (error instanceof BlockGone) await this.viewMovedOn();
    throw error;
  }

  /** A block of the view is gone: the attempt is lost if garbage was collected past it, and the block is if not. */
  async viewMovedOn(): Promise<boolean> {
    this.admit('A query');
    await this.#engine.refresh();
    if (!this.#isOutdated(this.#engine.view)) return false;
    if (!this.#sealed) this.#conflict ??= this.#conflictOver('what it reads was collected as garbage meanwhile');
    throw this.#conflict ?? this.#conflictOver('it has ended');
  }

  #isOutdated(view: View): boolean {
    return view.block0.generation > this.#view.block0.generation;
  }

  keeperOf(): undefined {
    return undefined;
  }

  queried(shape: TableShape, read: QueryRead): void {
    this.#reads.addQuery(shape, read);
  }

  rowRead(shape: TableShape, key: Uint8Array): void {
    this.#reads.addRow(shape, key);
  }

  writableShape(table: string): TableShape {
    return this.#host.writableShape(table);
  }

  triggers(table: string): readonly RegisteredTrigger[] {
    return this.#host.triggers(table);
  }

  triggerApi(batch: Batch): TriggerApi {
    return new TriggerApi(this, (table) => this.#host.registry.requireShape(table), batch);
  }

  async commit(operations: OperationSet, options: FlushOptions, check: () => void): Promise<void> {
    this.admit(transactionCall);
    this.#sealed = true;
    const validate = (view: View, earlier: readonly CommitMember[]): Promise<void> => this.#validate(view, earlier);
    try {
      await this.#validateEarly();
      this.#host.admit(transactionCall);
      const { expiryMs } = this;
      await this.#host.commit(operations, options, check, { callName: transactionCall, expiryMs, validate });
    } catch (error) {
      // Only the outcome of the commit counts: while it waited for others, it may have been rejected and accepted again.
      if (error instanceof TransactionConflictError) this.#conflict = error;
      else if (error instanceof ContentionError) this.#conflict = this.#conflictOver('others won every slot', error);
      throw error;
    }
  }

  resolveCommit(commit: CommitRef, options: FlushOptions): Promise<boolean> {
    return this.#host.resolveCommit(commit, options);
  }

  /** Rejects before blobs are uploaded for nothing, if the transaction already has a conflict. */
  async #validateEarly(): Promise<void> {
    try {
      await this.#validate(this.#engine.view, []);
    } catch (error) {
      // The commit finds out whether a block was collected or lost.
      if (!(error instanceof BlockGone)) throw error;
    }
  }

  /** Rejects if a read would have another result in a view, whose last changes are the members in `earlier`. */
  async #validate(view: View, earlier: readonly CommitMember[]): Promise<void> {
    if (this.#reads.isEmpty) return;
    const commits = this.#watch.between(this.#validatedTail, view.tail);
    if (commits === undefined) throw this.#conflictOver('more was committed meanwhile than could be followed');
    const given = this.#reads.shapes.find((shape) => isGivenUp(shape, this.#view, view));
    if (given !== undefined) throw this.#conflictOver(`version ${given.version} of table '${given.name}' was given up`);
    const pacer = new Pacer(this.environment);
    for (const { slot, commit } of commits) {
      for (const member of commit.members) await this.#validateAgainst(member, view, pacer);
      this.#validatedTail = slot;
    }
    // The next attempt may have other members before it.
    for (const member of earlier) await this.#validateAgainst(member, view, pacer);
  }

  async #validateAgainst(member: CommitMember, view: View, pacer: Pacer): Promise<void> {
    const dropped = member.drops?.find(({ table }) => this.#reads.concerns(table));
    if (dropped !== undefined) throw this.#conflictOver(`others have dropped table '${dropped.table}'`);
    for (const [table, changes] of changesByTable(member)) {
      if (!this.#reads.concerns(table)) continue;
      let conflict: string | undefined;
      try {
        const before = await this.#host.bridge.stateOf(this.#view, table);
        conflict = await this.#reads.conflictWith(changes, before, pacer);
      } catch (error) {
        if (!(error instanceof BlockGone) || !this.#isOutdated(view)) throw error;
        conflict = 'something, and what it read was collected as garbage meanwhile';
      }
      if (conflict !== undefined) throw this.#conflictOver(`others have changed ${conflict}`);
    }
  }

  #conflictOver(reason: string, cause?: unknown): TransactionConflictError {
    const message = `Attempt ${this.#attempt} at the transaction cannot be committed: ${reason}. It is made again.`;
    return new TransactionConflictError(this.#attempt, message, defined({ cause }));
  }
}

/** The migration by which a view has a next version. */
function migrationIn(view: View, table: string): number | 'new' | undefined {
  const nextVersion = view.nextVersion(table);
  return nextVersion === undefined ? undefined : (nextVersion.migration?.birth ?? 'new');
}

/**
 * Whether a next version that was read is gone: its migration was cancelled since. No commit says so. Once the
 * active version is another one, the old one was retired, which changes nothing that is shown.
 */
function isGivenUp({ name, version }: TableShape, before: View, view: View): boolean {
  const active = before.table(name)?.shape.version;
  if (active === undefined || active === version || view.table(name)?.shape.version !== active) return false;
  const migration = migrationIn(before, name);
  return migration !== undefined && migrationIn(view, name) !== migration;
}

/** A transaction was used after its function had returned, or after an attempt at it had failed. */
function transactionEnded(): BatchStateError {
  return new BatchStateError(
    'The transaction has ended: its function must await all reads and writes through it before it returns.',
  );
}

/** The most bytes of commits that a transaction keeps; with more it keeps none. Transactions share them, so this bounds all together. */
const maxBytes = 16 * 1024 * 1024;

/**
 * The commits over which the view moves while a transaction runs. The view itself forgets a commit once it is merged, and a validation
 * of the reads must still see it.
 */
class CommitWatch {
  /** Ascending by slot. */
  #commits: LoggedCommit[] = [];
  #sizeBytes = 0;
  /** Ends the watch. */
  readonly stop: () => void;

  constructor(events: EngineEvents) {
    this.stop = events.committed.on((news) => news.forEach((logged) => this.#note(logged)));
  }

  #note(logged: LoggedCommit): void {
    this.#sizeBytes += sizeOf(logged.commit);
    if (this.#sizeBytes <= maxBytes) this.#commits.push(logged);
    else this.#commits = [];
  }

  /** The commits of the slots after `after`, up to `tail`; undefined if not all of them are known. */
  between(after: number, tail: number): LoggedCommit[] | undefined {
    const commits = this.#commits.filter(({ slot }) => slot > after && slot <= tail);
    return commits.length === tail - after ? commits : undefined;
  }
}

/**
 * The transaction that the function of `db.transaction()` receives. It reads one state of the database, with its own writes on top.
 * Its writes are committed when the function has returned, unless another commit has changed anything that it read. After that, and
 * between two attempts, every call rejects with `BatchStateError`.
 */
export class Transaction {
  readonly #host: TransactionHost;
  readonly #batch: Batch;
  #ended = false;

  /** @internal Functions given to `db.transaction()` are handed one. */
  constructor(host: TransactionHost, batch: Batch) {
    this.#host = host;
    this.#batch = batch;
  }

  /**
   * Begins a query on a table, which sees the transaction's own writes. All rows that it could have found count as read, even
   * beyond `limit()`.
   */
  query<T extends TableRef>(table: T): Query<RowFor<T>> {
    return new Query<RowFor<T>>(this.#host, tableName(table)).overlay(this.#batch);
  }

  /** The row with a primary key, the transaction's own writes included; undefined if there is none. */
  async get<T extends TableRef>(table: T, primaryKey: KeyFor<T>): Promise<RowFor<T> | undefined> {
    const { shape } = await this.#host.tableState(tableName(table));
    return byKey(this.query(table), shape, primaryKey).first();
  }

  /**
   * A blob that a row of the transaction's state refers to, also if the row is another one by now. The blobs that the transaction
   * itself adds can be read too, except streams and download URLs: these reject with `BlobNotFoundError` until it is committed.
   */
  getBlob(reference: string): BlobReference {
    const own = (): UnstoredBlob | undefined => {
      const blob = isUuid(reference) ? this.#batch.newBlob(reference.toLowerCase()) : undefined;
      return blob && new UnstoredBlob(reference, blob.value);
    };
    const lookup = async (id: string): Promise<BlobRecord> => {
      this.#host.admit('Reading a blob');
      return own()?.record ?? readBlobRecord(this.#host, id);
    };
    return new BlobReference(reference, () => own() ?? this.#host.blobs, lookup);
  }

  /** Adds an insert, as `batch.insert()` does. If the primary key exists, the transaction rejects with `DuplicateKeyError`. */
  insert<T extends TableRef>(table: T, document: InsertDocument<T>): Promise<PrimaryKeyOf<T>> {
    return this.#add((batch) => batch.insert(table, document));
  }

  /** Adds an insert, or a replacement of the whole row, as `batch.upsert()` does. Nothing counts as read for it. */
  upsert<T extends TableRef>(table: T, document: InsertDocument<T>, options?: UpsertOptions): Promise<PrimaryKeyOf<T>> {
    return this.#add((batch) => batch.upsert(table, document, options));
  }

  /**
   * Adds an update of the given fields, as `batch.update()` does: the others stay as they are then, and nothing counts as
   * read for it. If there is no such row, the transaction rejects with `RowNotFoundError`, and if it is not as `options.if` wants it,
   * with `ConditionFailedError`.
   */
  update<T extends TableRef>(table: T, document: UpdateDocument<T>, options?: ChangeOptions<T>): Promise<void> {
    return this.#add((batch) => batch.update(table, document, options));
  }

  /**
   * Adds numbers to fields of a row, as `batch.increment()` does. Nothing counts as read for it, unless the row is read after it:
   * increments of others are no conflict.
   */
  increment<T extends TableRef>(
    table: T,
    primaryKey: KeyFor<T>,
    fields: Increments<T>,
    options?: ChangeOptions<T>,
  ): Promise<void> {
    return this.#add((batch) => batch.increment(table, primaryKey, fields, options));
  }

  /** Adds a deletion by primary key, as `batch.delete()` does. Deleting a row that does not exist is no error. */
  delete<T extends TableRef>(table: T, primaryKey: KeyFor<T>, options?: ChangeOptions<T>): Promise<void> {
    return this.#add((batch) => batch.delete(table, primaryKey, options));
  }

  /** Adds a deletion of every row that a query of this transaction finds. Resolves to how many there are. */
  deleteWhere(query: DeletableQuery): Promise<number> {
    return this.#foreign('deleteWhere()', query) ?? this.#add((batch) => batch.deleteWhere(query));
  }

  /** Adds an update of every row that a query of this transaction finds. Resolves to how many there are. */
  updateWhere<R>(query: UpdatableQuery<R>, fields: Partial<NoInfer<R>>): Promise<number> {
    return this.#foreign('updateWhere()', query) ?? this.#add((batch) => batch.updateWhere(query, fields));
  }

  /** A rejection for a query that is not of this transaction; undefined for one that is. */
  #foreign(callName: string, query: DeletableQuery): Promise<never> | undefined {
    const given = query as Partial<DeletableQuery> | null | undefined;
    if (given?.reads?.(this.#host) === true) return undefined;
    const message = `${callName} of a transaction takes a query of its own: make it with tx.query().`;
    return Promise.reject(new BatchStateError(message));
  }

  /** @internal Ends the handle: the function has returned. Writes that it has begun still end. */
  end(): void {
    this.#ended = true;
  }

  #add<T>(add: (batch: Batch) => Promise<T>): Promise<T> {
    // Nothing else would report that it is lost: no flush comes after it.
    return this.#ended ? Promise.reject(transactionEnded()) : add(this.#batch);
  }
}
