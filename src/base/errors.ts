/**
 * Every error that StoreDb raises. The `code` is part of the API and never changes; messages may.
 * A class of its own exists only where a caller would act differently.
 */
import { messageText } from './messages.ts';

/** Base class of all errors raised by StoreDb. */
export class StoreDbError extends Error {
  /** Stable, machine-readable name of the kind of error, for instance `DUPLICATE_KEY`. */
  readonly code: string;

  /** For StoreDb itself; `cause` is the error behind this one. */
  constructor(code: string, message: string, options?: { cause?: unknown }) {
    super(messageText(message), options);
    this.code = code;
    this.name = new.target.name;
  }
}

/** An option of a call is not known, missing, of the wrong kind or out of range, or an argument is. Nothing was done. */
export class InvalidOptionError extends StoreDbError {
  /** Name of the option or argument, with that of the option that it is in: `mergePolicy.minCommits`. */
  readonly option: string;
  constructor(option: string, message: string) {
    super('INVALID_OPTION', message);
    this.option = option;
  }
}

/** The database was used before `start()` resolved or after `stop()` was called. */
export class NotStartedError extends StoreDbError {
  constructor(what: string) {
    super(
      'NOT_STARTED',
      `${what} needs a started database: call and await db.start() first (and not after db.stop()).`,
    );
  }
}

/** A table was read or written before its schema was registered. */
export class SchemaNotFoundError extends StoreDbError {
  /** Name of the table. */
  readonly table: string;
  constructor(table: string) {
    super('SCHEMA_NOT_FOUND', `Schema not found for table ${table}`);
    this.table = table;
  }
}

/** A schema definition that cannot be registered. */
export class InvalidSchemaError extends StoreDbError {
  /** Name of the table; empty if the definition has none. */
  readonly table: string;
  constructor(table: string, message: string) {
    super('INVALID_SCHEMA', message);
    this.table = table;
  }
}

/** A row cannot be shown in the version of its table that this instance has registered. */
export class MigrationError extends StoreDbError {
  /** Name of the table. */
  readonly table: string;
  /** Primary key of the row. */
  readonly primaryKey: unknown;
  constructor(table: string, primaryKey: unknown, message: string, options?: { cause?: unknown }) {
    super('MIGRATION', message, options);
    this.table = table;
    this.primaryKey = primaryKey;
  }
}

/** The version of a table that this instance has registered cannot be used before all of its rows are made. */
export class MigrationPendingError extends StoreDbError {
  /** Name of the table. */
  readonly table: string;
  constructor(table: string, message: string) {
    super('MIGRATION_PENDING', message);
    this.table = table;
  }
}

/** Another migration of the table is under way, or has gone too far for what was asked. Nothing was changed. */
export class MigrationActiveError extends StoreDbError {
  /** Name of the table. */
  readonly table: string;
  constructor(table: string, message: string) {
    super('MIGRATION_ACTIVE', message);
    this.table = table;
  }
}

/** A value does not fit the field that it was given for. Nothing was written. */
export class EncodeError extends StoreDbError {
  /** Name of the table. */
  readonly table: string;
  /** Name of the field. */
  readonly field: string;
  /** The value that was refused. Not enumerable, so that it is not logged by chance. */
  readonly value: unknown;
  constructor(table: string, field: string, value: unknown, message: string) {
    super('ENCODE', message);
    this.table = table;
    this.field = field;
    this.value = value;
    // Loggers write down what they can enumerate, and this may be a secret of a row, or large.
    Object.defineProperty(this, 'value', { enumerable: false });
  }
}

/** A query that makes no sense: an unknown field, a value of the wrong kind, a negative limit. */
export class InvalidQueryError extends StoreDbError {
  constructor(message: string, options?: { cause?: unknown }) {
    super('INVALID_QUERY', message, options);
  }
}

/** An unknown operator, or one that the field does not take. */
export class InvalidOperatorError extends StoreDbError {
  /** What was given as the operator. */
  readonly operator: unknown;
  constructor(operator: unknown, message: string) {
    super('INVALID_OPERATOR', message);
    this.operator = operator;
  }
}

/** A registered function threw, or returned a promise. */
export class FunctionError extends StoreDbError {
  /** Name of the registered function. */
  readonly functionName: string;
  /** Primary key of the row that it was called with. */
  readonly primaryKey: unknown;
  constructor(functionName: string, primaryKey: unknown, message: string, options?: { cause?: unknown }) {
    super('FUNCTION', message, options);
    this.functionName = functionName;
    this.primaryKey = primaryKey;
  }
}

/** An insert of a primary key that exists already. The whole flush was rejected; the batch keeps its operations. */
export class DuplicateKeyError extends StoreDbError {
  /** Name of the table. */
  readonly table: string;
  /** The primary key that exists already. */
  readonly primaryKey: unknown;
  constructor(table: string, primaryKey: unknown, message: string) {
    super('DUPLICATE_KEY', message);
    this.table = table;
    this.primaryKey = primaryKey;
  }
}

/** The facts of a {@link ConditionFailedError}. */
export interface FailedCondition {
  readonly table: string;
  readonly primaryKey: unknown;
  readonly field: string;
  readonly expected: unknown;
  readonly actual: unknown;
}

/**
 * A row is not as the `if` of an update or a deletion wants it. The whole flush was rejected; the batch keeps its operations. It is
 * decided in the order of the log, so what another instance has committed first counts.
 */
export class ConditionFailedError extends StoreDbError {
  /** Name of the table. */
  readonly table: string;
  /** Primary key of the row. */
  readonly primaryKey: unknown;
  /** Name of the first field whose value is another one. */
  readonly field: string;
  /** The value that it was to have. */
  readonly expected: unknown;
  /** The value that it has; undefined where a deletion finds no row. */
  readonly actual: unknown;
  constructor({ table, primaryKey, field, expected, actual }: FailedCondition, message: string) {
    super('CONDITION_FAILED', message);
    this.table = table;
    this.primaryKey = primaryKey;
    this.field = field;
    this.expected = expected;
    this.actual = actual;
  }
}

/** An update of a row that does not exist. The whole flush was rejected; the batch keeps its operations. */
export class RowNotFoundError extends StoreDbError {
  /** Name of the table. */
  readonly table: string;
  /** The primary key that does not exist. */
  readonly primaryKey: unknown;
  constructor(table: string, primaryKey: unknown, message: string) {
    super('ROW_NOT_FOUND', message);
    this.table = table;
    this.primaryKey = primaryKey;
  }
}

/**
 * A batch was used in a way it does not allow: flushed by a trigger, used to write to a system table, or flushed with a
 * blob whose stream was read already.
 */
export class BatchStateError extends StoreDbError {
  constructor(message: string) {
    super('BATCH_STATE', message);
  }
}

/** Other writers won every attempt. The commit was definitely not applied: flush again. */
export class ContentionError extends StoreDbError {
  constructor(message: string, options?: { cause?: unknown }) {
    super('CONTENTION', message, options);
  }
}

/** All ids of nodes are taken, so that an instance with `nodeId: 'auto'` could not start. */
export class NoFreeNodeIdError extends StoreDbError {
  constructor(count: number, staleMinutes: number) {
    super(
      'NO_FREE_NODE_ID',
      `All ${count} node ids of the database are taken, so that none is left for nodeId 'auto'. Stop instances that need not ` +
        `write, or open them with role 'replica'; the id of one that died is free again after ${staleMinutes} minutes.`,
    );
  }
}

/** More commits wait to be merged than there is memory for, and they cannot be merged. Nothing was written. */
export class BackpressureError extends StoreDbError {
  constructor(message: string, options?: { cause?: unknown }) {
    super('BACKPRESSURE', message, options);
  }
}

/** A query would collect more than there is memory for. Nothing was returned. */
export class MemoryBudgetError extends StoreDbError {
  /** What is exceeded, in bytes: the option `maxMemoryBytes`, or a `MemoryBudget` that several instances share. */
  readonly maxMemoryBytes: number;
  constructor(maxMemoryBytes: number, message: string) {
    super('MEMORY_BUDGET', message);
    this.maxMemoryBytes = maxMemoryBytes;
  }
}

/** What a transaction had read was changed by others before every attempt to commit it. Nothing of it was applied. */
export class TransactionConflictError extends StoreDbError {
  /** How often it was tried. */
  readonly attempts: number;
  constructor(attempts: number, message: string, options?: { cause?: unknown }) {
    super('TRANSACTION_CONFLICT', message, options);
    this.attempts = attempts;
  }
}

/** The commit may or may not have been applied, and the store can no longer tell. Never a plain failure. */
export class CommitOutcomeUnknownError extends StoreDbError {
  /** Id of the commit. */
  readonly commitId: string;
  /** The place in the log that the commit may have taken. */
  readonly slot: number;
  /** Id of the database that the commit was for. */
  readonly databaseId: string;
  constructor(
    { commitId, slot, databaseId }: { commitId: string; slot: number; databaseId: string },
    message: string,
    options?: { cause?: unknown },
  ) {
    super('COMMIT_OUTCOME_UNKNOWN', message, options);
    this.commitId = commitId;
    this.slot = slot;
    this.databaseId = databaseId;
  }
}

/** Stored bytes are damaged, missing or not what their name says. No row was made from them. */
export class CorruptionError extends StoreDbError {
  /** Name of the damaged object, or of what holds it. */
  readonly key: string;
  constructor(key: string, message: string, options?: { cause?: unknown }) {
    super('CORRUPTION', `${message} (object ${key})`, options);
    this.key = key;
  }
}

/** The stored data was written by a version of StoreDb that this one cannot read. */
export class UnknownFormatError extends StoreDbError {
  /** Name of the object that cannot be read. */
  readonly key: string;
  constructor(key: string, message: string) {
    super('UNKNOWN_FORMAT', `${message} (object ${key})`);
    this.key = key;
  }
}

/** Whether an object was there and its bytes say nothing: damaged, or of a version that is not known, as damage can make it seem. */
export function isUnreadable(error: unknown): error is CorruptionError | UnknownFormatError {
  return error instanceof CorruptionError || error instanceof UnknownFormatError;
}

/** What is stored is no longer the database that was opened: another id, or an older state that was restored. */
export class DatabaseReplacedError extends StoreDbError {
  constructor(message: string) {
    super('DATABASE_REPLACED', message);
  }
}

/** Something that writes was asked of a replica. Nothing was written. */
export class ReadOnlyError extends StoreDbError {
  /** `what` names the call. */
  constructor(what: string) {
    super(
      'READ_ONLY',
      `${what} has to write, and this instance is a replica, which only reads. Nothing was written: call it on an ` +
        "instance with role 'writer', with credentials that may write.",
    );
  }
}

/** There is no Block 0 where a database was looked for: objects of others, which are never overwritten, or nothing at all. */
export class NotADatabaseError extends StoreDbError {
  constructor(message: string) {
    super('NOT_A_DATABASE', message);
  }
}

/** Whether a request that failed may have had an effect. */
export type RequestOutcome = 'unknown' | 'none';

/**
 * Why a request failed, where that tells what to do: permissions are missing; the store asks to go slower; the store, or the
 * way to it, is away, and may be back soon; there is no room.
 */
export type StorageFailure = 'forbidden' | 'throttled' | 'unavailable' | 'full';

/** A request to the store failed. */
export class StorageError extends StoreDbError {
  /** Name of the object that the request was about; for a list, the prefix. */
  readonly key: string;
  /** `none`: the request definitely had no effect. `unknown`: it may have had, or may still have. */
  readonly outcome: RequestOutcome;
  /** Why, where that is known. */
  readonly reason: StorageFailure | undefined;
  /** For drivers: a request about `key` failed, with `outcome`. `cause` is the error behind this one. */
  constructor(
    key: string,
    outcome: RequestOutcome,
    message: string,
    options: { readonly cause?: unknown; readonly reason?: StorageFailure } = {},
  ) {
    super('STORAGE', message, options);
    this.key = key;
    this.outcome = outcome;
    this.reason = options.reason;
  }
}

/** The store does not honour the conditions of writes, so that commits could be lost there: refused. */
export class UnsafeStoreError extends StoreDbError {
  /** What the store ignored or got wrong, one sentence each. */
  readonly problems: readonly string[];
  constructor(message: string, problems: readonly string[]) {
    super('UNSAFE_STORE', message);
    this.problems = problems;
  }
}

/** A call did not finish before its deadline. */
export class DeadlineExceededError extends StoreDbError {
  constructor(message: string, options?: { cause?: unknown }) {
    super('DEADLINE_EXCEEDED', message, options);
  }
}

/** A call was given up because its `signal` was aborted. */
export class AbortedError extends StoreDbError {
  constructor(message: string, options?: { cause?: unknown }) {
    super('ABORTED', message, options);
  }
}

/** The state that a snapshot or stream showed is gone from the store. Run the query again. */
export class SnapshotExpiredError extends StoreDbError {
  constructor(message: string, options?: { cause?: unknown }) {
    super('SNAPSHOT_EXPIRED', message, options);
  }
}

/** Changes that were asked for are not in the log any more. Read the tables anew, and follow from where they are. */
export class ChangesExpiredError extends StoreDbError {
  /** The position after which changes were asked for. */
  readonly position: number;
  /** The last position that is gone: the log begins after it. */
  readonly floor: number;
  constructor(position: number, floor: number, options?: { cause?: unknown }) {
    super(
      'CHANGES_EXPIRED',
      `The changes after position ${position} are gone: the log begins after position ${floor}. Note db.position, read ` +
        'the tables anew, and follow from there. For a log that reaches further back, give db.gc() a longer ' +
        'logRetentionMs.',
      options,
    );
    this.position = position;
    this.floor = floor;
  }
}

/** Triggers fired each other more than 32 levels deep. */
export class TriggerDepthError extends StoreDbError {
  constructor(message: string) {
    super('TRIGGER_DEPTH', message);
  }
}

/** A blob reference that belongs to another row. */
export class BlobReferenceError extends StoreDbError {
  /** The reference that was refused. */
  readonly reference: string;
  constructor(reference: string, message: string) {
    super('BLOB_REFERENCE', message);
    this.reference = reference;
  }
}

/** No blob has this reference. */
export class BlobNotFoundError extends StoreDbError {
  /** The reference that was looked for. */
  readonly reference: string;
  constructor(reference: string, message: string) {
    super('BLOB_NOT_FOUND', message);
    this.reference = reference;
  }
}

/** The driver, or this runtime, cannot do what was asked. */
export class NotSupportedError extends StoreDbError {
  constructor(message: string) {
    super('NOT_SUPPORTED', message);
  }
}

/** A promise that the code makes to itself was broken: a defect in StoreDb. Nothing further is written. */
export class InvariantError extends StoreDbError {
  constructor(message: string) {
    super('INVARIANT', `${message}. This is a defect in StoreDb: please report it.`);
  }
}

// Promises that the code makes to itself, asserted in production too.

/** Throws {@link InvariantError} unless `condition` holds. */
export function invariant(condition: boolean, message: string): asserts condition {
  if (!condition) throw new InvariantError(message);
}

// Errors about keys and encryption, beside those of errors.ts. None of them ever holds a key.

/** An object is encrypted, and cannot be opened with the keys that were given: none, not this one, or another one of that id. */
export class EncryptionKeyError extends StoreDbError {
  /** Name of the object. */
  readonly key: string;
  /** Id of the key that the object needs. */
  readonly keyId: string;
  constructor(key: string, keyId: string, message: string) {
    super('ENCRYPTION_KEY', `${message} (object ${key})`);
    this.key = key;
    this.keyId = keyId;
  }
}

/** Encryption was asked for, and the database is stored without it. Nothing of it was believed. */
export class NotEncryptedError extends StoreDbError {
  /** Name of the object that is not encrypted. */
  readonly key: string;
  constructor(key: string) {
    super(
      'NOT_ENCRYPTED',
      'The database is not encrypted, and the option encryption says that it is. To move it over, set ' +
        `acceptUnencrypted until db.rewrite() has encrypted everything (object ${key})`,
    );
    this.key = key;
  }
}

// Errors that only queries raise, beside those of errors.ts.

/** The bookmark given to `query.page()` is damaged, or of another query or version of the table. Begin again without it. */
export class BookmarkError extends StoreDbError {
  constructor(message: string, options?: { cause?: unknown }) {
    super('BOOKMARK', message, options);
  }
}

/** A query needs more than the budget that it was given. */
export class BudgetExceededError extends StoreDbError {
  /** What there is not enough of. */
  readonly limit: 'requests' | 'bytes' | 'ms';
  /** What the query had used when it was given up: requests, bytes and milliseconds. */
  readonly used: { readonly requests: number; readonly bytes: number; readonly ms: number };
  constructor(limit: BudgetExceededError['limit'], used: BudgetExceededError['used'], message: string) {
    super('BUDGET_EXCEEDED', message);
    this.limit = limit;
    this.used = used;
  }
}

// The error of a flush that a unique index stands against.

/** Two rows that would agree. */
export interface UniqueConflict {
  readonly value: unknown;
  readonly primaryKey: unknown;
  readonly otherKey: unknown;
}

/** Two rows would agree in the fields of a unique index. The whole flush was rejected; the batch keeps its operations. */
export class UniqueIndexError extends StoreDbError {
  /** Name of the table. */
  readonly table: string;
  /** Name of the index. */
  readonly index: string;
  /** What both rows would have there: a value, or an array of them if the index is on several fields. */
  readonly value: unknown;
  /** Primary key of a row that the flush writes. */
  readonly primaryKey: unknown;
  /** Primary key of the other row: one that is there, or that the flush writes as well. */
  readonly otherKey: unknown;
  constructor(table: string, index: string, { value, primaryKey, otherKey }: UniqueConflict, message: string) {
    super('UNIQUE_INDEX', message);
    this.table = table;
    this.index = index;
    this.value = value;
    this.primaryKey = primaryKey;
    this.otherKey = otherKey;
  }
}
