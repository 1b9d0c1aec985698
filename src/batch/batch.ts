/**
 * Batches: the changes that an application makes, collected in memory until they are flushed.
 *
 * A document is checked and encoded by the call that adds it. A call that fails adds nothing; its error is in the
 * promise that it returns and, for callers that ignore that, rejects one flush. Mutations enter the batch in the order
 * of their calls, each followed by the mutations that its triggers add.
 */
import { BatchStateError, CommitOutcomeUnknownError, TriggerDepthError } from '../base/errors.ts';
import type { Environment } from '../base/env.ts';
import { signalOptions } from '../base/options.ts';
import { describeValue } from '../base/messages.ts';
import type {
  ConditionOf,
  DocumentOf,
  IncrementsOf,
  KeyFields,
  KeyOf,
  NewDocumentOf,
  RowKeyOf,
  SchemaDefinition,
} from '../schema/schema.ts';
import type { Overlay, QueryHost, ReadThrough } from '../query/planner/query-host.ts';
import { advised } from '../schema/field-kinds.ts';
import type { FieldKinds } from '../schema/field-kinds.ts';
import { keyOfDocument } from '../schema/key-documents.ts';
import { tableName } from '../schema/table-ref.ts';
import type { TableRef } from '../schema/table-ref.ts';
import type { TableShape } from '../schema/table-shape.ts';
import type { TableState } from '../view/table-state.ts';
import { firesFor } from '../schema/registered-functions.ts';
import type { RegisteredTrigger, TriggerOperation } from '../schema/registered-functions.ts';
import { captureDocument, CapturedMutation, triggerEnded, TriggerReads } from './mutation.ts';
import type { DescribedMutation } from './mutation.ts';
import type { NewBlob } from './blob-changes.ts';
import { Operation, checkKeyless, conditionOf, updatedFields, upsertKind } from './table-operations.ts';
import type { TableOperations, UpsertOptions } from './table-operations.ts';
import { OperationSet } from './operation-set.ts';

/**
 * A document to insert: any of the fields. The primary key and the required fields must be there, unless they have a default.
 */
export type InsertDocument<T extends TableRef> = T extends SchemaDefinition ? NewDocumentOf<T> : object;
/** The key that a row is looked up by: a value of the primary key's type where the table is given by its definition. */
export type KeyFor<T extends TableRef> = T extends SchemaDefinition ? KeyOf<T> : unknown;
/** A document to update with: the primary key, and the fields that change. */
export type UpdateDocument<T extends TableRef> = T extends SchemaDefinition
  ? DocumentOf<T> & Required<Pick<DocumentOf<T>, KeyFields<T> & keyof DocumentOf<T>>>
  : object;

/** The key that identifies a row: the type of the primary key where the table is given by its definition. */
export type PrimaryKeyOf<T extends TableRef> = T extends SchemaDefinition ? RowKeyOf<T> : unknown;

/** Values that fields of a row must have: null asks for a field without one. Fields of types json and blob are compared with nothing. */
export type RowCondition<T extends TableRef> = T extends SchemaDefinition ? ConditionOf<T> : object;

/** The numbers to add to fields of a row. 64-bit integers take bigints and safe integers. */
export type Increments<T extends TableRef> = T extends SchemaDefinition ? IncrementsOf<T> : object;

/** Options of `Batch.update()`, `Batch.increment()` and `Batch.delete()`. */
export interface ChangeOptions<T extends TableRef> {
  /**
   * The change is made only if the row has these values, `{ version: 3 }` say; otherwise the flush is rejected with
   * `ConditionFailedError`. It is decided when the batch is committed, in the order of the log, and not when the call is made.
   */
  readonly if?: RowCondition<T>;
}

/** Options of `Batch.flush()`. */
export interface FlushOptions {
  /** Gives the flush up. If it had begun to commit, the outcome is then unknown. */
  readonly signal?: AbortSignal;
}

/**
 * Called for a mutation when it is added to a batch. A promise that it returns is awaited.
 *
 * @param row For an insert, the row as it will be stored; for an update, the whole row after it; for a delete, the row
 *   before it, or only the primary key where no such row is known. A blob field holds the `db.Blob()` value while it is
 *   new, and the reference otherwise.
 * @param batch Mutations that are added here follow the mutation and are committed with it. Its `flush()` throws.
 * @param dbApi Reads with the writes of the batch on top.
 * @param operation The kind of the mutation. An upsert is reported as the insert or the update that it will be.
 * @param before The row before an update or a delete, if it is known. Undefined for an insert.
 */
export type TriggerHandler<Api, Row = Record<string, unknown>> = (
  row: Row,
  batch: Batch,
  dbApi: Api,
  operation: TriggerOperation,
  before: Row | undefined,
) => unknown;

/** Triggers may fire each other this deep. */
const maxTriggerDepth = 32;

/** The owner of a batch: a database instance, or a transaction. */
export interface BatchOwner {
  readonly environment: Environment;
  /** The database instance. */
  readonly owner: object;
  /** The source of the owner's queries: the owner, or the transaction. */
  readonly source: object;
  /** The fields of each table that are more than their type. Absent: none. */
  readonly kinds?: ReadonlyMap<string, FieldKinds> | undefined;
  /** Records a row that the batch's view of a table depends on. Only transactions record rows. */
  rowRead?(shape: TableShape, key: Uint8Array): void;
  /** Admits a call, which `callName` names. Throws `NotStartedError` unless the database is running. */
  admit(callName: string): BatchHost;
}

/** The host of admitted calls. They go on with it while the database is being stopped. */
export interface BatchHost extends BatchOwner, QueryHost {
  /** Has `db.stop()` wait for a flush. */
  waitFor(work: Promise<unknown>): void;
  /** Shape of a table that may be written to. Throws `SchemaNotFoundError`. */
  writableShape(table: string): TableShape;
  /** Triggers of a table that fire for an operation, in the order of their registration. */
  triggers(table: string): readonly RegisteredTrigger[];
  /** The `dbApi` of triggers, for the batch that they fire in. */
  triggerApi(batch: Batch): unknown;
  /** Commits the operations as one, unless `check` throws before they are written. */
  commit(operations: OperationSet, options: FlushOptions, check: () => void): Promise<void>;
  /** Whether a commit whose outcome was unknown was applied. */
  resolveCommit(commit: CommitOutcomeUnknownError, options: FlushOptions): Promise<boolean>;
}

/** A query whose rows can be deleted: `db.query(...)`. */
export interface DeletableQuery {
  /** Name of the table. */
  readonly table: string;
  /**
   * Returns whether the query reads this source: a database instance, a snapshot or a transaction.
   *
   * @hidden
   */
  reads(source: object): boolean;
  /**
   * Runs the query with the writes of a batch laid over the stored rows, for the rows' primary keys only.
   *
   * @hidden
   */
  keysUnder(batch: Overlay, host: QueryHost, keyNames: readonly string[]): Promise<readonly object[]>;
}

/** A query whose rows can be updated: `db.query(...)`. */
export interface UpdatableQuery<R> extends DeletableQuery {
  /** Returns the first row that it finds. Its type tells the fields of the rows. */
  first(): Promise<R | undefined>;
}

/** A flush whose commit may or may not have been applied. */
interface FlushInDoubt {
  readonly error: CommitOutcomeUnknownError;
  readonly operations: OperationSet;
}

/** A trigger that has ended: on which table, in which root batch, and in which of its rounds. */
interface TriggerEnd {
  readonly trigger: string;
  readonly root: Batch;
  readonly round: number;
}

/** A flush of a root batch under way. */
interface UnderWay {
  readonly firstRound: number;
  readonly flush: Promise<void>;
  /** Error of the first call of an ended trigger whose mutation it writes. */
  tooLate: Error | undefined;
}

const done: Promise<void> = Promise.resolve();

/**
 * Changes that are committed together. A root batch (`db.batch()`) commits with {@link flush}; a sub-batch
 * (`batch.subBatch()`) hands its operations to its parent.
 */
export class Batch implements Overlay {
  readonly #host: BatchOwner;
  readonly #parent: Batch | undefined;
  /** The depth of triggers: how many triggers fired one inside the other until this batch was made. */
  readonly #depth: number;
  /** Whether this is the handle that a trigger is given, which cannot be flushed. */
  readonly #isTriggers: boolean;
  #operations: OperationSet;
  /** Errors of calls that added nothing, until a flush has reported them. */
  #failures: unknown[] = [];
  #inDoubt: FlushInDoubt | undefined;
  /** The operations that a flush under way commits: an overlay shows them until the view does. */
  #committing: OperationSet | undefined;
  #flushing: Promise<void> = done;
  /** The mutations that wait for triggers before them, or for their own; undefined if there are none. */
  #waiting: Promise<void> | undefined;
  /** Incremented by {@link clear}: a mutation of an earlier epoch is not added any more. */
  #epoch = 0;
  #reads: TriggerReads;
  /** Of a root batch: the number of the round that is being filled. A flush ends it, and so does {@link clear}. */
  #round = 0;
  /** The first round whose operations are still to be flushed: an earlier one than the present, if a flush was rejected. */
  #firstRound = 0;
  #underWay: UnderWay | undefined;
  /** Of the handle that a trigger was given: that it has ended. */
  #endedIn: TriggerEnd | undefined;

  /** @internal Use `db.batch()` or `batch.subBatch()`. */
  constructor(host: BatchOwner, parent?: Batch, triggerDepth?: number) {
    this.#host = host;
    this.#parent = parent;
    this.#depth = triggerDepth ?? (parent === undefined ? 0 : parent.#depth);
    this.#isTriggers = triggerDepth !== undefined;
    this.#operations = new OperationSet(host.environment);
    this.#reads = new TriggerReads();
  }

  /** How many operations the batch holds. */
  get size(): number {
    return this.#operations.count;
  }

  /**
   * Adds an insert. If the primary key exists already when the batch is flushed, the flush is rejected with
   * `DuplicateKeyError`. Fields that are left out get their default, or null. The document is taken as it is now:
   * changing it afterwards changes nothing. Resolves to the primary key of the row, as it is read back: the one that was made, if
   * the document has none. Rejects with `EncodeError` for a value that does not fit its field or a field that does not exist, and
   * with the error of a trigger; such a call adds nothing.
   */
  insert<T extends TableRef>(table: T, document: InsertDocument<T>): Promise<PrimaryKeyOf<T>> {
    return this.#addRow(Operation.insert, table, document);
  }

  /**
   * Adds an insert, or a replacement of the whole row if the primary key exists: fields that are left out get their
   * default, or null. With `{ partial: true }`, a row that exists keeps the fields that are left out. A row that is there as it is
   * given is not written: a flush of nothing else makes no commit. Resolves and rejects as {@link insert} does.
   */
  upsert<T extends TableRef>(table: T, document: InsertDocument<T>, options?: UpsertOptions): Promise<PrimaryKeyOf<T>> {
    let kind: Operation;
    try {
      kind = upsertKind(options);
    } catch (error) {
      return this.#failed(error);
    }
    return this.#addRow(kind, table, document);
  }

  /**
   * Adds an update: the given fields replace those of the stored row, the others stay. If there is no such row when the
   * batch is flushed, the flush is rejected with `RowNotFoundError`, and if the row is not as `options.if` wants it, with
   * `ConditionFailedError`. Rejects as {@link insert} does.
   */
  update<T extends TableRef>(table: T, document: UpdateDocument<T>, options?: ChangeOptions<T>): Promise<void> {
    return this.#add(Operation.update, table, (set, shape) => {
      captureDocument(set, shape, Operation.update, document, conditionOf('batch.update()', options));
    });
  }

  /**
   * Adds numbers to fields of a row, `{ views: 1 }` say; negative ones take away, and a field that is null counts as 0. They are
   * added to the row as it is when the batch is committed, so that the increments of all nodes count, and none of them gets in the
   * way of another. If there is no such row then, the flush is rejected with `RowNotFoundError`; if a sum does not fit its field,
   * with `EncodeError`; and if the row is not as `options.if` wants it, with `ConditionFailedError`. Rejects with `EncodeError` for
   * a field that is no number or does not exist; such a call adds nothing.
   */
  increment<T extends TableRef>(
    table: T,
    primaryKey: KeyFor<T>,
    fields: Increments<T>,
    options?: ChangeOptions<T>,
  ): Promise<void> {
    return this.#add(Operation.increment, table, (set, shape) =>
      set.list(shape).addIncrement(primaryKey, fields, conditionOf('batch.increment()', options)),
    );
  }

  /**
   * Adds a deletion by primary key. Deleting a row that does not exist is no error; with `options.if`, which such a row cannot be
   * like, the flush is rejected with `ConditionFailedError`.
   */
  delete<T extends TableRef>(table: T, primaryKey: KeyFor<T>, options?: ChangeOptions<T>): Promise<void> {
    return this.#add(Operation.delete, table, (set, shape) =>
      set.list(shape).addDelete(primaryKey, conditionOf('batch.delete()', options)),
    );
  }

  /**
   * Adds a deletion of every row that a query finds now, the batch's own writes included. Resolves to how many there
   * are. Rows that are committed later are not deleted, even if they match. Rejects with `BatchStateError`, and deletes
   * nothing, if the query is of another database instance, of a snapshot, or of a transaction that the batch is not part of:
   * the batch would not delete the rows that it finds.
   */
  deleteWhere(query: DeletableQuery): Promise<number> {
    return this.#changeWhere('deleteWhere()', query, (own, row, shape) =>
      own.delete(query.table, keyOfDocument(shape, row)),
    );
  }

  /**
   * Adds an update of every row that a query finds now, the batch's own writes included: the given fields replace those of each.
   * Resolves to how many there are. Rows that are committed later are not updated, even if they match; if one of them is deleted
   * before the flush, that is rejected with `RowNotFoundError`. Rejects as {@link deleteWhere} and {@link update} do, and then
   * updates nothing.
   */
  updateWhere<R>(query: UpdatableQuery<R>, fields: Partial<NoInfer<R>>): Promise<number> {
    let given: object;
    try {
      given = updatedFields(fields);
    } catch (error) {
      return this.#failed(error);
    }
    return this.#changeWhere('updateWhere()', query, (own, row, { schema }) => {
      checkKeyless(query.table, schema.primaryKey, given);
      return own.update(query.table, { ...given, ...row });
    });
  }

  /** Adds a change for every row that a query finds. */
  #changeWhere(
    callName: string,
    query: DeletableQuery,
    change: (own: Batch, key: object, shape: TableShape) => Promise<void>,
  ): Promise<number> {
    const refused = this.#refusalOf(callName, query) ?? this.#late();
    if (refused !== undefined) return refused;
    let host: BatchHost;
    try {
      host = this.#host.admit('A batch');
    } catch (error) {
      return this.#failed(error);
    }
    let count = 0;
    const changeRows = async (): Promise<void> => {
      const shape = host.writableShape(query.table);
      const keys = await query.keysUnder(this, host, shape.schema.primaryKey);
      // All of the rows or, if a trigger refuses one of them, none.
      const own = new Batch(host, this);
      for (const key of keys) await change(own, key, shape);
      await this.#enter(own.#takeOperations());
      count = keys.length;
    };
    const counted = this.#queue(changeRows).then(() => count);
    // As with every mutation, the next flush reports the error to callers that ignore this promise.
    counted.catch(() => undefined);
    return counted;
  }

  /** A rejection for a query that reads something else than this batch writes to; undefined for one of its own. */
  #refusalOf(callName: string, query: DeletableQuery): Promise<never> | undefined {
    const given = query as Partial<DeletableQuery> | null | undefined;
    if (typeof given?.reads !== 'function') {
      return this.#failed(new BatchStateError(`${callName} takes a query, not ${describeValue(query)}.`));
    }
    if (query.reads(this.#host.source)) return undefined;
    return this.#failed(
      new BatchStateError(
        `${callName} was given a query on table '${query.table}' that reads another database instance, a snapshot or a ` +
          `transaction than this batch writes to. Nothing was ${callName === 'deleteWhere()' ? 'deleted' : 'updated'}: make the query where the ` +
          'batch was made, and in a trigger with dbApi.query().',
      ),
    );
  }

  /**
   * Returns whether a database instance made it.
   *
   * @hidden For queries.
   */
  isOf(owner: object): boolean {
    return this.#host.owner === owner;
  }

  /**
   * The operations on a table, for adding many rows without a promise for each; undefined where one would have to be waited for.
   *
   * @internal For imports.
   */
  operationsOn(table: string): TableOperations | undefined {
    const host = this.#host.admit('A batch');
    const shape = host.writableShape(table);
    const mayWait = this.#waiting !== undefined || shape.blobFields.length > 0 || host.triggers(table).length > 0;
    return mayWait ? undefined : this.#operations.list(shape);
  }

  /** A batch whose `flush()` adds its operations to this one. If it is not flushed, it takes no part. */
  subBatch(): Batch {
    return new Batch(this.#host, this);
  }

  /** Drops all operations, and errors that no flush has reported yet. The batch can be used again. */
  clear(): void {
    this.#epoch++;
    this.#firstRound = ++this.#round;
    this.#reads = new TriggerReads();
    this.#operations = new OperationSet(this.#host.environment);
    this.#failures = [];
    this.#inDoubt = undefined;
  }

  /**
   * Root batch: commits all operations, atomically; resolves once they are durable and visible to this instance. If it
   * rejects, nothing was committed and the batch keeps its operations, to be flushed again or dropped with
   * {@link clear}; only after `CommitOutcomeUnknownError` it is open whether they were committed, and the next flush
   * resolves that first. Sub-batch: moves the operations into the parent, where no triggers fire for them again. A flushed
   * batch is empty and can be used again; an empty flush writes nothing.
   */
  flush(given: FlushOptions = {}): Promise<void> {
    const late = this.#late();
    if (late !== undefined) return late;
    let host: BatchHost;
    let options: FlushOptions;
    try {
      options = signalOptions.check('batch.flush()', given);
      host = this.#host.admit('batch.flush()');
    } catch (error) {
      const refusal = error as Error;
      return Promise.reject(refusal);
    }
    const flush = async (): Promise<void> => {
      await this.#late();
      if (this.#isTriggers) {
        throw new BatchStateError(
          'A trigger cannot flush the batch that it was fired by: what it adds is committed with it.',
        );
      }
      await this.#waiting;
      this.#reportFailures();
      await (this.#parent === undefined
        ? this.#flushRoot(host, options)
        : this.#parent.#receive(this.#takeOperations()));
    };
    const flushed = this.#flushing.then(flush);
    this.#flushing = flushed.catch(() => undefined);
    host.waitFor(this.#flushing);
    return flushed;
  }

  /**
   * Returns the state of a table with this batch's writes on top, and below them the writes of its parent batches.
   *
   * @hidden For queries.
   */
  async overlayOn(state: TableState, through?: ReadThrough): Promise<TableState> {
    if (this.#endedIn !== undefined) await this.#late();
    const below = this.#parent === undefined ? state : await this.#parent.overlayOn(state, through);
    let overlaid = below;
    for (const operations of [this.#inDoubt?.operations, this.#committing]) {
      if (operations !== undefined) overlaid = await operations.overlayOn(overlaid, undefined, through);
    }
    return this.#operations.overlayOn(overlaid, this.#host, through);
  }

  /**
   * Returns a rejection for a call through the handle of a trigger that has ended; undefined for every other call. Its mutation
   * would be lost. The flush that the trigger is part of fails, if it is not committed yet; if it is, the rejection is the only
   * sign, and is not silenced.
   */
  #late(): Promise<never> | undefined {
    if (this.#endedIn === undefined) return this.#parent === undefined ? undefined : this.#parent.#late();
    const { trigger, root, round } = this.#endedIn;
    return root.#failLate(round, triggerEnded(trigger));
  }

  /** Fails the flush that a round is part of, and returns the rejection. */
  #failLate(round: number, error: Error): Promise<never> {
    const underWay = this.#underWay;
    if (round >= this.#firstRound) return this.#failed(error);
    if (underWay === undefined || round < underWay.firstRound) return Promise.reject(error);
    underWay.tooLate ??= error;
    const { flush } = underWay;
    const reject = (): never => {
      throw error;
    };
    const rejected = flush.then(reject, reject);
    // If the flush fails, it reports the error. If it could not be stopped any more, this rejection is the only sign.
    flush.catch(() => rejected.catch(() => undefined));
    return rejected;
  }

  get #root(): Batch {
    return this.#parent === undefined ? this : this.#parent.#root;
  }

  /**
   * Throws `BatchStateError` if this is the handle of a trigger that has ended: its writes are not laid over the stored rows any
   * more.
   *
   * @hidden For the `dbApi` of triggers.
   */
  checkOpen(): void {
    if (this.#endedIn === undefined) return;
    this.#late()?.catch(() => undefined);
    throw triggerEnded(this.#endedIn.trigger);
  }

  /** Adds an insert or upsert. Resolves to the row's primary key. */
  #addRow<T extends TableRef>(kind: Operation, table: T, document: unknown): Promise<PrimaryKeyOf<T>> {
    // Not silenced: nothing else may report it.
    const late = this.#late();
    if (late !== undefined) return late;
    let key: unknown;
    const added = this.#add(kind, table, (set, shape) => {
      key = captureDocument(set, shape, kind, document);
    });
    if (added === done) return Promise.resolve(key as PrimaryKeyOf<T>);
    const told = added.then(() => key as PrimaryKeyOf<T>);
    // As with every mutation, the next flush reports the error to callers that ignore this promise.
    told.catch(() => undefined);
    return told;
  }

  /** Adds a mutation: at once, unless it fires triggers or comes after one that does. */
  #add(kind: Operation, table: TableRef, capture: (set: OperationSet, shape: TableShape) => void): Promise<void> {
    const late = this.#late();
    if (late !== undefined) return late;
    try {
      const host = this.#host.admit('A batch');
      const shape = host.writableShape(tableName(table));
      const fires = host.triggers(shape.name).length > 0;
      if (!fires && this.#waiting === undefined) {
        capture(this.#operations, shape);
        return done;
      }
      const captured = new OperationSet(host.environment);
      capture(captured, shape);
      if (!fires) return this.#queue(() => this.#enter(captured));
      const reads = this.#reads;
      reads.add(host, shape, captured.list(shape).keys.key(0));
      return this.#queue(() => {
        reads.turn();
        return this.#fire(host, captured, shape, kind);
      });
    } catch (error) {
      return this.#failed(error);
    }
  }

  /** A call that failed at once: its promise may be ignored, for the next flush reports it. */
  #failed(cause: unknown): Promise<never> {
    const failed = this.#fail(cause);
    failed.catch(() => undefined);
    return failed;
  }

  /** A call that failed. Callers may ignore its promise: the next flush reports the error. */
  async #fail(cause: unknown): Promise<never> {
    const error = advised(cause, this.#host.kinds);
    this.#failures.push(error);
    throw error;
  }

  /** Runs a mutation after the mutations that were called before it. */
  #queue(run: () => Promise<void>): Promise<void> {
    const epoch = this.#epoch;
    const earlier = this.#waiting ?? done;
    const mutate = async (): Promise<void> => {
      await earlier;
      try {
        if (epoch === this.#epoch) await run();
      } catch (error) {
        if (epoch === this.#epoch) this.#failures.push(error);
        throw error;
      }
    };
    const result = mutate();
    const end = async (): Promise<void> => {
      await Promise.allSettled([result]);
      if (this.#waiting === ended) this.#waiting = undefined;
    };
    const ended: Promise<void> = end();
    this.#waiting = ended;
    return result;
  }

  /** Adds the operations of a sub-batch, after the mutations that were called before. */
  #receive(operations: OperationSet): Promise<void> {
    const enter = (): Promise<void> => this.#enter(operations);
    return this.#waiting === undefined ? enter() : this.#queue(enter);
  }

  /** Takes in operations as they are: no triggers fire for them. */
  async #enter(operations: OperationSet): Promise<void> {
    this.#operations.append(operations);
  }

  /** Lets a mutation's triggers add to it, and takes in the whole; or nothing of it, if one of them fails. */
  async #fire(host: BatchHost, captured: OperationSet, shape: TableShape, kind: Operation): Promise<void> {
    const epoch = this.#epoch;
    const depth = this.#depth + 1;
    if (depth > maxTriggerDepth) {
      throw new TriggerDepthError(
        `Triggers fired each other more than ${maxTriggerDepth} levels deep, last on table '${shape.name}'. ` +
          'Is there one that, directly or not, fires itself?',
      );
    }
    // An insert is shown as it was given, even if the row exists.
    if (kind !== Operation.insert) host.rowRead?.(shape, captured.list(shape).keys.key(0));
    const before = await this.overlayOn(await host.tableState(shape.name));
    const mutation = await new CapturedMutation(captured, shape, kind).describe(before, (reference) =>
      this.newBlob(reference),
    );
    const own = new Batch(host, this, depth);
    own.#operations = captured;
    const root = this.#root;
    const ending = { trigger: shape.name, root, round: root.#round };
    for (const trigger of host.triggers(shape.name)) {
      if (firesFor(trigger, mutation.operation)) await own.#callTrigger(host, trigger, mutation, ending);
    }
    if (epoch === this.#epoch) this.#operations.append(own.#takeOperations());
  }

  /** Calls a trigger with a handle on this batch that ends with it, and adds its mutations. */
  async #callTrigger(
    host: BatchHost,
    trigger: RegisteredTrigger,
    { row, operation, before }: DescribedMutation,
    ending: TriggerEnd,
  ): Promise<void> {
    const handle = new Batch(host, this, this.#depth);
    try {
      const api = host.triggerApi(handle);
      await (trigger.handler as TriggerHandler<unknown>)(row, handle, api, operation, before);
      while (handle.#waiting !== undefined) await handle.#waiting;
      handle.#reportFailures();
      this.#operations.append(handle.#takeOperations());
    } catch (error) {
      // The mutations that it began before it failed are dropped.
      handle.#epoch++;
      await handle.#waiting;
      throw error;
    } finally {
      handle.#endedIn = ending;
    }
  }

  /** @internal A blob that this batch, or one that it is part of, brings with it. */
  newBlob(reference: string): NewBlob | undefined {
    const sets = [this.#operations, this.#committing, this.#inDoubt?.operations];
    const holder = sets.find((set) => set?.blobs.has(reference) === true);
    if (holder !== undefined) return holder.blobs.get(reference);
    return this.#parent === undefined ? undefined : this.#parent.newBlob(reference);
  }

  #takeOperations(): OperationSet {
    const operations = this.#operations;
    this.#operations = new OperationSet(this.#host.environment);
    return operations;
  }

  #reportFailures(): void {
    if (this.#failures.length === 0) return;
    const first = this.#failures[0] as Error;
    this.#failures = [];
    throw first;
  }

  async #flushRoot(host: BatchHost, options: FlushOptions): Promise<void> {
    await this.#resolveInDoubt(host, options);
    // Operations that are added from now on belong to the next flush.
    const operations = this.#takeOperations();
    if (operations.count === 0) return;
    const epoch = this.#epoch;
    const firstRound = this.#firstRound;
    this.#firstRound = ++this.#round;
    this.#committing = operations;
    try {
      const flush = host.commit(operations, options, () => {
        if (this.#underWay?.tooLate !== undefined) throw this.#underWay.tooLate;
      });
      this.#underWay = { firstRound, flush, tooLate: undefined };
      await flush;
    } catch (error) {
      // A batch that was cleared meanwhile does not want its operations back.
      if (epoch !== this.#epoch) throw error;
      if (error instanceof CommitOutcomeUnknownError) this.#inDoubt = { error, operations };
      else {
        this.#restore(operations);
        this.#firstRound = firstRound;
      }
      throw error;
    } finally {
      this.#committing = undefined;
      this.#underWay = undefined;
    }
  }

  /** Puts operations back in front of the ones that were added meanwhile. */
  #restore(operations: OperationSet): void {
    operations.append(this.#operations);
    this.#operations = operations;
  }

  async #resolveInDoubt(host: BatchHost, options: FlushOptions): Promise<void> {
    if (this.#inDoubt === undefined) return;
    const { error, operations } = this.#inDoubt;
    const applied = await host.resolveCommit(error, options);
    this.#inDoubt = undefined;
    if (!applied) this.#restore(operations);
  }
}
