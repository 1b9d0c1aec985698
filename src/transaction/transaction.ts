/** What the function that `db.transaction()` is given works with. */
import { BatchStateError } from '../base/errors.ts';
import { BlobReference } from '../blob/blob-reference.ts';
import type { BlobRecord } from '../blob/blob-tables.ts';
import { readBlobRecord } from '../maintenance/blob-record.ts';
import { tableName } from '../batch/batch.ts';
import type {
  Batch,
  ChangeOptions,
  DeletableQuery,
  Increments,
  InsertDocument,
  PrimaryKeyOf,
  KeyFor,
  TableRef,
  UpdatableQuery,
  UpdateDocument,
} from '../batch/batch.ts';
import type { UpsertOptions } from '../batch/change-options.ts';
import { Query } from '../query/query.ts';
import type { RowFor } from '../instance/trigger-api.ts';
import { transactionEnded } from './transaction-host.ts';
import type { TransactionHost } from './transaction-host.ts';

/**
 * A transaction, as the function that `db.transaction()` is given gets it. All that it reads is of one state of the
 * database, with its own writes on top. What it writes is committed when the function has returned, if nobody has changed
 * what was read. After that, and between two attempts, every call rejects with `BatchStateError`.
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
   * A query on a table, which sees the transaction's own writes. Whatever it could have found counts as read, also
   * beyond `limit()`.
   */
  query<T extends TableRef>(table: T): Query<RowFor<T>> {
    return new Query<RowFor<T>>(this.#host, tableName(table)).overlay(this.#batch);
  }

  /** The row with a primary key, the transaction's own writes included; undefined if there is none. */
  async get<T extends TableRef>(table: T, primaryKey: KeyFor<T>): Promise<RowFor<T> | undefined> {
    const { shape } = await this.#host.tableState(tableName(table));
    return this.query(table)
      .where(shape.keyNames as string, '=', primaryKey)
      .first();
  }

  /** A blob that a row of the transaction's state refers to, also if the row is another one by now. */
  getBlob(reference: string): BlobReference {
    const lookup = (id: string): Promise<BlobRecord> => readBlobRecord(this.#host, id);
    return new BlobReference(reference, () => this.#host.blobs, lookup);
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
  #foreign(what: string, query: DeletableQuery): Promise<never> | undefined {
    const given = query as Partial<DeletableQuery> | null | undefined;
    if (given?.reads?.(this.#host) === true) return undefined;
    const message = `${what} of a transaction takes a query of its own: make it with tx.query().`;
    return Promise.reject(new BatchStateError(message));
  }

  /** @internal The function has returned. What it has begun to write still ends. */
  end(): void {
    this.#ended = true;
  }

  #add<T>(add: (batch: Batch) => Promise<T>): Promise<T> {
    // Nobody else would tell that it is lost: no flush comes after it.
    return this.#ended ? Promise.reject(transactionEnded()) : add(this.#batch);
  }
}
