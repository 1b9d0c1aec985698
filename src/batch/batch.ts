/**
 * Batches: what an application wants to change, collected in memory until it is flushed.
 *
 * A document is checked and encoded by the call that adds it. A call that fails adds nothing; its error is in the
 * promise that it returns and, for callers that ignore that, rejects one flush.
 */
import { CommitOutcomeUnknownError } from '../base/errors.ts';
import type { Environment } from '../base/env.ts';
import type { RowOf, SchemaDefinition } from '../table/schema.ts';
import type { Overlay } from '../table/query-host.ts';
import type { TableShape } from '../table/table-shape.ts';
import type { TableState } from '../table/table-state.ts';
import { Operation, TableOperations } from './operations.ts';
import { overlayLayer } from './prepare.ts';

/** A table: its name, or its schema definition, which lets TypeScript check the rows. */
export type TableRef = string | SchemaDefinition;
/** A document to insert: any of the fields, the primary key included. */
export type InsertDocument<T extends TableRef> = T extends SchemaDefinition ? Partial<RowOf<T>> : object;
/** A document to update with: the primary key, and the fields that change. */
export type UpdateDocument<T extends TableRef> = T extends SchemaDefinition
  ? Partial<RowOf<T>> & Pick<RowOf<T>, T['primaryKey'] & keyof RowOf<T>>
  : object;

export interface FlushOptions {
  /** Gives the flush up. If it had begun to commit, the outcome is then unknown. */
  readonly signal?: AbortSignal;
}

/** What a batch needs of the database that it belongs to. */
export interface BatchHost {
  readonly environment: Environment;
  /** Throws `NotStartedError` unless the database is running; `what` names the call. */
  checkStarted(what: string): void;
  /** Throws `SchemaNotFoundError`. */
  requireShape(table: string): TableShape;
  /** Commits the operations as one. */
  commit(operations: readonly TableOperations[], options: FlushOptions): Promise<void>;
  /** Whether a commit whose outcome was unknown was applied. */
  resolveCommit(commitId: string, slot: number, options: FlushOptions): Promise<boolean>;
}

/** Name of a table given by name or by its schema. */
export function tableName(table: TableRef): string {
  return typeof table === 'string' ? table : table.name;
}

interface Undecided {
  readonly error: CommitOutcomeUnknownError;
  readonly operations: ReadonlyMap<string, TableOperations>;
}

const done: Promise<void> = Promise.resolve();

/**
 * Changes that are committed together. A root batch (`db.batch()`) commits with {@link flush}; a sub-batch
 * (`batch.subBatch()`) hands its operations to its parent.
 */
export class Batch implements Overlay {
  readonly #host: BatchHost;
  readonly #parent: Batch | undefined;
  #operations = new Map<string, TableOperations>();
  /** Errors of calls that added nothing, until a flush has reported them. */
  #failures: unknown[] = [];
  #undecided: Undecided | undefined;
  #flushing: Promise<void> = done;

  constructor(host: BatchHost, parent?: Batch) {
    this.#host = host;
    this.#parent = parent;
  }

  /** Operations that the batch holds. */
  get size(): number {
    let size = 0;
    for (const operations of this.#operations.values()) size += operations.count;
    return size;
  }

  /**
   * Adds an insert. If the primary key exists already when the batch is flushed, the flush is rejected with
   * `DuplicateKeyError`. Rejects with `EncodeError` for a bad value.
   */
  insert<T extends TableRef>(table: T, document: InsertDocument<T>): Promise<void> {
    return this.#addDocument(Operation.insert, table, document);
  }

  /** Adds an insert, or a replacement of the whole row if the primary key exists. */
  upsert<T extends TableRef>(table: T, document: InsertDocument<T>): Promise<void> {
    return this.#addDocument(Operation.upsert, table, document);
  }

  /**
   * Adds an update: the given fields replace those of the stored row, the others stay. If there is no such row when the
   * batch is flushed, the flush is rejected with `RowNotFoundError`.
   */
  update<T extends TableRef>(table: T, document: UpdateDocument<T>): Promise<void> {
    return this.#addDocument(Operation.update, table, document);
  }

  /** Adds a deletion by primary key. Deleting a row that does not exist is no error. */
  delete(table: TableRef, primaryKey: unknown): Promise<void> {
    return this.#add('batch.delete()', table, (operations) => operations.addDelete(primaryKey));
  }

  /** A batch whose `flush()` adds its operations to this one. If it is not flushed, it takes no part. */
  subBatch(): Batch {
    return new Batch(this.#host, this);
  }

  /** Drops all operations, and errors that no flush has reported yet. */
  clear(): void {
    this.#operations = new Map();
    this.#failures = [];
    this.#undecided = undefined;
  }

  /**
   * Root batch: commits all operations, atomically; resolves once they are durable and visible to this instance. If it
   * rejects, nothing was written and the batch keeps its operations, to be flushed again or dropped with
   * {@link clear}; only after `CommitOutcomeUnknownError` it is open whether they were applied, and the next flush
   * settles that first. Sub-batch: moves the operations into the parent.
   */
  flush(options: FlushOptions = {}): Promise<void> {
    const flushed = this.#flushing.then(() =>
      this.#parent === undefined ? this.#flushRoot(options) : this.#flushSub(),
    );
    this.#flushing = flushed.catch(() => undefined);
    return flushed;
  }

  /** The state of a table with this batch's writes on top, and below them those of the batches that it is part of. */
  async overlayOn(state: TableState): Promise<TableState> {
    const below = this.#parent === undefined ? state : await this.#parent.overlayOn(state);
    let overlaid = below;
    for (const operations of [this.#undecided?.operations, this.#operations]) {
      const list = operations?.get(state.shape.name);
      if (list === undefined || list.count === 0) continue;
      const layer = await overlayLayer(list, overlaid, this.#host.environment);
      if (layer !== undefined) overlaid = overlaid.withLayer(layer);
    }
    return overlaid;
  }

  #addDocument(kind: Operation, table: TableRef, document: unknown): Promise<void> {
    return this.#add('a batch', table, (operations) => operations.addDocument(kind, document));
  }

  #add(what: string, table: TableRef, add: (operations: TableOperations) => void): Promise<void> {
    try {
      this.#host.checkStarted(what);
      add(this.#list(tableName(table)));
      return done;
    } catch (error) {
      this.#failures.push(error);
      const failed = Promise.reject(error as Error);
      // Callers may ignore the promise: the next flush reports the error.
      failed.catch(() => undefined);
      return failed;
    }
  }

  #list(table: string): TableOperations {
    const shape = this.#host.requireShape(table);
    let list = this.#operations.get(table);
    if (list === undefined) {
      list = new TableOperations(shape, this.#host.environment);
      this.#operations.set(table, list);
    }
    return list;
  }

  #reportFailures(): void {
    if (this.#failures.length === 0) return;
    const first = this.#failures[0] as Error;
    this.#failures = [];
    throw first;
  }

  async #flushSub(): Promise<void> {
    this.#host.checkStarted('batch.flush()');
    this.#reportFailures();
    const operations = this.#operations;
    this.#operations = new Map();
    (this.#parent as Batch).#append(operations);
  }

  #append(added: ReadonlyMap<string, TableOperations>): void {
    for (const [table, list] of added) {
      const own = this.#operations.get(table);
      if (own === undefined) this.#operations.set(table, list);
      else own.append(list);
    }
  }

  async #flushRoot(options: FlushOptions): Promise<void> {
    this.#host.checkStarted('batch.flush()');
    this.#reportFailures();
    await this.#settleUndecided(options);
    const operations = this.#operations;
    const lists = [...operations.values()].filter(({ count }) => count > 0);
    if (lists.length === 0) return;
    // What is added from now on belongs to the next flush.
    this.#operations = new Map();
    try {
      await this.#host.commit(lists, options);
    } catch (error) {
      if (error instanceof CommitOutcomeUnknownError) this.#undecided = { error, operations };
      else this.#restore(operations);
      throw error;
    }
  }

  /** Puts operations back in front of those that were added meanwhile. */
  #restore(operations: Map<string, TableOperations>): void {
    const later = this.#operations;
    this.#operations = operations;
    this.#append(later);
  }

  async #settleUndecided(options: FlushOptions): Promise<void> {
    if (this.#undecided === undefined) return;
    const { error, operations } = this.#undecided;
    const applied = await this.#host.resolveCommit(error.commitId, error.slot, options);
    this.#undecided = undefined;
    if (!applied) this.#restore(new Map(operations));
  }
}
