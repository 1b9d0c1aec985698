/**
 * All errors that StoreDb raises. The `code` is part of the API and never changes; messages may. An error has its own class only
 * if a caller would act differently on it. No error ever holds a key of encryption.
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
  /** Name of the option or argument, after the name of the option that contains it: `mergePolicy.minCommits`. */
  readonly option: string;
  constructor(option: string, message: string) {
    super('INVALID_OPTION', message);
    this.option = option;
  }
}

/** The database was used before `start()` resolved or after `stop()` was called. */
export class NotStartedError extends StoreDbError {
  constructor(callName: string) {
    super(
      'NOT_STARTED',
      `${callName} needs a started database: call and await db.start() first (and not after db.stop()).`,
    );
  }
}

/** A table was read or written before its schema was registered, or is not in the bundle that is read. */
export class SchemaNotFoundError extends StoreDbError {
  /** Name of the table. */
  readonly table: string;
  /** `advice`: the rest of the message, from the end of the first sentence on. */
  constructor(table: string, advice: string = '.') {
    super('SCHEMA_NOT_FOUND', `Schema not found for table ${table}${advice}`);
    this.table = table;
  }
}

/** There is no table of this name, so it cannot be dropped. */
export class TableNotFoundError extends StoreDbError {
  /** Name of the table. */
  readonly table: string;
  constructor(table: string, message: string) {
    super('TABLE_NOT_FOUND', message);
    this.table = table;
  }
}

/**
 * A table was dropped after its schema was registered here, so nothing can be written to it. The whole flush was rejected; the batch keeps
 * its operations, and the flush stays refused until they are dropped with `clear()`.
 */
export class TableDroppedError extends StoreDbError {
  /** Name of the table. */
  readonly table: string;
  /** Position of the commit that dropped it; undefined if that is not known any more. */
  readonly position: number | undefined;
  constructor(table: string, position: number | undefined, message: string) {
    super('TABLE_DROPPED', message);
    this.table = table;
    this.position = position;
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

/** The version of a table that this instance has registered cannot be used before the migration has made all of its rows. */
export class MigrationPendingError extends StoreDbError {
  /** Name of the table. */
  readonly table: string;
  constructor(table: string, message: string) {
    super('MIGRATION_PENDING', message);
    this.table = table;
  }
}

/** Another migration of the table is under way, or it has gone too far for the call. Nothing was changed. */
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
    // Loggers write enumerable properties, and this value may be secret or large.
    Object.defineProperty(this, 'value', { enumerable: false });
  }
}

/** A row does not meet the `validate` of its table, or the check of a field. Nothing was written. */
export class ValidationError extends StoreDbError {
  /** Name of the table. */
  readonly table: string;
  /** Primary key of the row. */
  readonly primaryKey: unknown;
  /** The problems, each with its message and its path: names of fields and positions in lists. */
  readonly issues: readonly { readonly message: string; readonly path: readonly PropertyKey[] }[];
  constructor(table: string, primaryKey: unknown, issues: ValidationError['issues'], message: string) {
    super('VALIDATION', message);
    this.table = table;
    this.primaryKey = primaryKey;
    this.issues = issues;
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
  /** The operator that was passed. */
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

/** An insert of a primary key that exists already, or two rows of a load with one key. Nothing was written; a batch keeps its operations. */
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
 * A row does not meet the `if` of an update or a deletion. The whole flush was rejected; the batch keeps its operations.
 * Conditions are checked in the order of the log, so commits of other instances that come first count.
 */
export class ConditionFailedError extends StoreDbError {
  /** Name of the table. */
  readonly table: string;
  /** Primary key of the row. */
  readonly primaryKey: unknown;
  /** Name of the first field whose value differs. */
  readonly field: string;
  /** The value that the condition expects. */
  readonly expected: unknown;
  /** The value that the field has; undefined if a deletion finds no row. */
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
 * A batch was used in a way it does not allow: flushed by a trigger, used to write to a system table, or flushed with a blob
 * whose stream had already been read.
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

/** All node ids are taken, so an instance with `nodeId: 'auto'` could not start. */
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
  /**
   * The budget that would be exceeded, in bytes: the option `maxMemoryBytes`, or a `MemoryBudget` that several instances share.
   */
  readonly maxMemoryBytes: number;
  constructor(maxMemoryBytes: number, message: string) {
    super('MEMORY_BUDGET', message);
    this.maxMemoryBytes = maxMemoryBytes;
  }
}

/** Before every attempt to commit a transaction, other commits changed rows that it had read. No part of it was applied. */
export class TransactionConflictError extends StoreDbError {
  /** Number of attempts. */
  readonly attempts: number;
  constructor(attempts: number, message: string, options?: { cause?: unknown }) {
    super('TRANSACTION_CONFLICT', message, options);
    this.attempts = attempts;
  }
}

/** The commit may or may not have been applied, and the store no longer shows which. Do not treat it as a failure. */
export class CommitOutcomeUnknownError extends StoreDbError {
  /** Id of the commit. */
  readonly commitId: string;
  /** The slot in the log that the commit may have taken. */
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

/** Stored bytes are damaged or missing, or do not match the name of their object. No row was made from them. */
export class CorruptionError extends StoreDbError {
  /** Name of the damaged object, or of the object that contains the damage. */
  readonly key: string;
  constructor(key: string, message: string, options?: { cause?: unknown }) {
    super('CORRUPTION', `${message} (object ${key})`, options);
    this.key = key;
  }
}

/** The stored data has a format that this version of StoreDb cannot read. */
export class UnknownFormatError extends StoreDbError {
  /** Name of the object that cannot be read. */
  readonly key: string;
  constructor(key: string, message: string) {
    super('UNKNOWN_FORMAT', `${message} (object ${key})`);
    this.key = key;
  }
}

/** Whether an object was found but cannot be read: damaged, or of an unknown format, which damage can look like. */
export function isUnreadable(error: unknown): error is CorruptionError | UnknownFormatError {
  return error instanceof CorruptionError || error instanceof UnknownFormatError;
}

/** The store no longer holds the database that was opened: its id differs, or an older state was restored. */
export class DatabaseReplacedError extends StoreDbError {
  constructor(message: string) {
    super('DATABASE_REPLACED', message);
  }
}

/** A call that writes was made on a replica. Nothing was written. */
export class ReadOnlyError extends StoreDbError {
  /** `callName` names the call in errors. */
  constructor(callName: string) {
    super(
      'READ_ONLY',
      `${callName} has to write, and this instance is a replica, which only reads. Nothing was written: call it on an ` +
        "instance with role 'writer', with credentials that may write.",
    );
  }
}

/**
 * There is no Block 0 under the prefix: it holds objects of another application, which are never overwritten, or nothing at all.
 */
export class NotADatabaseError extends StoreDbError {
  constructor(message: string) {
    super('NOT_A_DATABASE', message);
  }
}

/** Whether a request that failed may have had an effect. */
export type RequestOutcome = 'unknown' | 'none';

/**
 * The reason for a failed request, if it suggests a remedy: permissions are missing; the store throttles requests; the store or
 * the network is unavailable, maybe for a short time; the store is full.
 */
export type StorageFailure = 'forbidden' | 'throttled' | 'unavailable' | 'full';

/** A request to the store failed. */
export class StorageError extends StoreDbError {
  /** Name of the object of the request; for a list, the prefix. */
  readonly key: string;
  /** `none`: the request definitely had no effect. `unknown`: it may have had an effect, or may still have one. */
  readonly outcome: RequestOutcome;
  /** The reason, if it is known. */
  readonly reason: StorageFailure | undefined;
  /** For drivers: a request for `key` failed, with `outcome`. `cause` is the error behind this one. */
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

/** The store does not honour conditional writes, so commits could be lost. StoreDb refuses to use it. */
export class UnsafeStoreError extends StoreDbError {
  /** The conditions that the store ignored or got wrong, one sentence each. */
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

/** A call was given up because its `signal` was aborted; a load also because of `db.stop()`. */
export class AbortedError extends StoreDbError {
  constructor(message: string, options?: { cause?: unknown }) {
    super('ABORTED', message, options);
  }
}

/**
 * Why a load cannot be resumed: `taken`, another call has taken it over or given it up; `table`, its name belongs to a load into another
 * table; `schema`, the table has another version than its stored rows; `source`, the source does not begin with its stored rows.
 */
export type LoadResumeReason = 'taken' | 'table' | 'schema' | 'source';

/** A load with option `resume` cannot go on where it was interrupted, or must not. This call has written no row of it. */
export class LoadResumeError extends StoreDbError {
  /** The name of the load. */
  readonly load: string;
  /** Name of the table. */
  readonly table: string;
  /** Why it cannot go on. */
  readonly reason: LoadResumeReason;
  constructor(load: string, table: string, reason: LoadResumeReason, message: string) {
    super('LOAD_RESUME', message);
    this.load = load;
    this.table = table;
    this.reason = reason;
  }
}

/** The state that a snapshot or stream showed is gone from the store. Run the query again. */
export class SnapshotExpiredError extends StoreDbError {
  constructor(message: string, options?: { cause?: unknown }) {
    super('SNAPSHOT_EXPIRED', message, options);
  }
}

/** The changes requested are no longer in the log. Read the tables again, and follow the log from their position. */
export class ChangesExpiredError extends StoreDbError {
  /** The position after which changes were requested. */
  readonly position: number;
  /** The last position that is gone: the log begins after it. */
  readonly floor: number;
  constructor(position: number, floor: number, options?: { cause?: unknown; rowsBefore?: boolean }) {
    const isGone =
      options?.rowsBefore === true
        ? `The rows before the changes after position ${position} are not kept: they are merged up to position ${floor}, and no ` +
          'snapshot and no history has the state before.'
        : `The changes after position ${position} are gone: the log begins after position ${floor}.`;
    const remedy =
      options?.rowsBefore === true
        ? "For earlier states, set the option history, for instance to '2d'."
        : 'For a log that reaches further back, give db.gc() a longer logRetentionMs.';
    super(
      'CHANGES_EXPIRED',
      `${isGone} Note db.position, read the tables again, and follow from there. ${remedy}`,
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

/** The driver or this runtime does not support the call. */
export class NotSupportedError extends StoreDbError {
  constructor(message: string, options?: ErrorOptions) {
    super('NOT_SUPPORTED', message, options);
  }
}

/** A part of the package's code could not be loaded when it was first needed. `cause` is the error of the runtime. */
export class CodeNotLoadedError extends StoreDbError {
  constructor(part: string, cause: unknown) {
    super(
      'CODE_NOT_LOADED',
      `The code for ${part} could not be loaded. If the package was updated meanwhile, start the process again. A bundler must include all ` +
        'files of the package.',
      { cause },
    );
  }
}

/** An invariant of the code does not hold: a defect in StoreDb. Nothing further is written. */
export class InvariantError extends StoreDbError {
  constructor(message: string) {
    super('INVARIANT', `${message}. This is a defect in StoreDb: please report it.`);
  }
}

/** Throws {@link InvariantError} unless `condition` holds; in production too. */
export function invariant(condition: boolean, message: string): asserts condition {
  if (!condition) throw new InvariantError(message);
}

/**
 * An object is encrypted and cannot be decrypted with the keys that were passed: there is none, none with its id, or a different
 * key under that id.
 */
export class EncryptionKeyError extends StoreDbError {
  /** Name of the object. */
  readonly key: string;
  /** Id of the key that the object is encrypted with. */
  readonly keyId: string;
  constructor(key: string, keyId: string, message: string) {
    super('ENCRYPTION_KEY', `${message} (object ${key})`);
    this.key = key;
    this.keyId = keyId;
  }
}

/** Encryption was requested, but the database is not encrypted. None of its data was used. */
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

/** The bookmark given to `query.page()` is damaged, or of another query or version of the table. Begin again without it. */
export class BookmarkError extends StoreDbError {
  constructor(message: string, options?: { cause?: unknown }) {
    super('BOOKMARK', message, options);
  }
}

/** A query needs more than its budget. */
export class BudgetExceededError extends StoreDbError {
  /** The limit that the query exceeds. */
  readonly limit: 'requests' | 'bytes' | 'ms';
  /** The requests, bytes and milliseconds that the query had used when it was ended. */
  readonly used: { readonly requests: number; readonly bytes: number; readonly ms: number };
  constructor(limit: BudgetExceededError['limit'], used: BudgetExceededError['used'], message: string) {
    super('BUDGET_EXCEEDED', message);
    this.limit = limit;
    this.used = used;
  }
}

/** Two rows that would have the same value in a unique index. */
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
  /** The value that both rows would have: an array if the index is on several fields. */
  readonly value: unknown;
  /** Primary key of a row that the flush writes. */
  readonly primaryKey: unknown;
  /** Primary key of the other row, which exists already or is written by the same flush. */
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
