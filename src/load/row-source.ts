/** Reads the rows of a load from its source, and checks and encodes them as inserts, one buffer at a time. */
import { untilAborted } from '../base/abort.ts';
import { isPromise } from '../base/brands.ts';
import { checksum, compareBytes } from '../base/bytes.ts';
import type { Environment } from '../base/env.ts';
import { EncodeError, InvalidOptionError, LoadResumeError } from '../base/errors.ts';
import { describeValue } from '../base/messages.ts';
import type { Pacer } from '../base/pacer.ts';
import { Operation, TableOperations } from '../batch/table-operations.ts';
import { documentValue } from '../format/row-encode.ts';
import type { RowValidator } from '../schema/row-validator.ts';
import type { TableShape } from '../schema/table-shape.ts';

/** The rows of a load, in any order: one by one, or in arrays, so that an async iterable needs no promise for each row. */
export type LoadSource<T> = Iterable<T | readonly T[]> | AsyncIterable<T | readonly T[]>;

/** The place in the source at which a load goes on. */
export interface LoadPosition {
  /** Rows of the source that are stored already: the source must begin behind them. 0 if the load begins. */
  readonly rows: number;
  /** Primary key of the last of these rows, in the order of the source: an array if it has several fields; undefined if the load begins. */
  readonly lastKey: unknown;
}

/** The rows of a load that can be resumed: all of them, in the same order each time, or a function that gives those behind a position. */
export type ResumableSource<T> = LoadSource<T> | ((position: LoadPosition) => LoadSource<T>);

/** A place behind some rows of a source. */
export interface SourcePlace {
  readonly rows: number;
  /** A checksum of the keys of these rows. */
  readonly keys: number;
  /** The key of the last one. */
  readonly lastKey: Uint8Array;
}

/** Of a load that can be resumed. */
export interface ResumeSource {
  /** The place up to which rows are stored; undefined if there are none. */
  readonly from: SourcePlace | undefined;
  /** The name of the load. */
  readonly load: string;
  /** A buffer ends after so many milliseconds, however few rows have come. */
  readonly maxFillMs: number;
}

export interface RowSourceOptions {
  readonly environment: Environment;
  readonly pacer: Pacer;
  readonly signal: AbortSignal;
  /** Bytes of the rows that are sorted at once. */
  readonly bufferBytes: number;
  /** Called with the number of rows read so far, after each buffer. */
  readonly told: (rows: number) => void;
  /** The checks of the rows; undefined if the table has none. */
  readonly validator: RowValidator | undefined;
  /** Undefined if the load cannot be resumed. */
  readonly resume?: ResumeSource | undefined;
}

/** One buffer of rows, checked and encoded, in the order of the source. */
export interface FilledRows {
  readonly rows: TableOperations;
  /** The place in the source behind these rows. */
  readonly end: SourcePlace;
}

/** Rows between two looks at the clock. */
const rowsInStep = 32;

/** Calls a source that is a function. Throws `InvalidOptionError` unless the load can be resumed. */
function givenSource(source: unknown, shape: TableShape, resume: ResumeSource | undefined): unknown {
  if (typeof source !== 'function') return source;
  if (resume === undefined) {
    const message =
      'db.load() takes a function that returns rows only with option resume, as it is called with a position. Without, pass an ' +
      'iterable or async iterable: call the function yourself.';
    throw new InvalidOptionError('source', message);
  }
  const { rows = 0, lastKey } = resume.from ?? {};
  const position: LoadPosition = { rows, lastKey: lastKey && shape.keyValue(lastKey) };
  return (source as (position: LoadPosition) => unknown)(position);
}

/** Whether a row without a value for its key gets another key each time. */
function makesKeys({ defaults, keyPlaces }: TableShape): boolean {
  return defaults.some(({ field, stored }) => 'generated' in stored && (keyPlaces[field.index] as number) >= 0);
}

/** Iterates over a source in either form. Throws `InvalidOptionError` for a value that is no source. */
function iteratorOf(source: unknown): AsyncIterator<unknown> | Iterator<unknown> {
  if (typeof source === 'object' && source !== null) {
    const { [Symbol.asyncIterator]: later, [Symbol.iterator]: atOnce } = source as Partial<
      AsyncIterable<unknown> & Iterable<unknown>
    >;
    if (typeof later === 'function') return later.call(source);
    if (typeof atOnce === 'function') return atOnce.call(source);
  }
  const message = `db.load() takes an iterable or async iterable of rows, or of arrays of rows, not ${describeValue(source)}.`;
  throw new InvalidOptionError('source', message);
}

/** The source of a load. */
export class RowReader {
  readonly #shape: TableShape;
  readonly #options: RowSourceOptions;
  readonly #iterator: AsyncIterator<unknown> | Iterator<unknown>;
  /** Whether the source has no more rows. */
  isOver = false;
  /** The rows that were read, those that an earlier call has stored included. */
  count = 0;
  /** The rows that the source gives again although they are stored. */
  #skipped = 0;
  #keys = 0;
  /** The array of rows that the source gave last, and how many of them were read. */
  #given: readonly unknown[] = [];
  #taken = 0;
  #steps = 0;

  constructor(shape: TableShape, source: unknown, options: RowSourceOptions) {
    this.#shape = shape;
    this.#options = options;
    const { resume } = options;
    this.#iterator = iteratorOf(givenSource(source, shape, resume));
    if (resume?.from === undefined) return;
    if (typeof source === 'function') {
      this.count = resume.from.rows;
      this.#keys = resume.from.keys;
    } else this.#skipped = resume.from.rows;
  }

  /** Reads the next buffer of rows; undefined at the end. Rejects with `EncodeError`, `ValidationError` or the error of the source. */
  async fill(): Promise<FilledRows | undefined> {
    const { signal, told, validator } = this.#options;
    if (this.#skipped > 0) await this.#skip();
    if (this.isOver) return undefined;
    const rows = await untilAborted(this.#fill(), signal);
    if (rows.count === 0) return undefined;
    if (validator !== undefined) await untilAborted(this.#validate(rows, validator), signal);
    told(this.count);
    const end = { rows: this.count, keys: this.#note(rows), lastKey: rows.keys.key(rows.count - 1) };
    return { rows, end };
  }

  /** Continues the checksum of the keys, if the load can be resumed. */
  #note({ keys }: TableOperations): number {
    const { resume } = this.#options;
    if (resume !== undefined) this.#keys = checksum(keys.bytes.subarray(0, keys.sizeBytes), this.#keys);
    return this.#keys;
  }

  /** Passes over the rows that are stored. Rejects with `LoadResumeError` if they are not the first rows of the source. */
  async #skip(): Promise<void> {
    const { signal, told, resume } = this.#options;
    const { load, from } = resume as ResumeSource;
    const { rows, keys, lastKey } = from as SourcePlace;
    while (this.#skipped > 0 && !this.isOver) {
      const some = await untilAborted(this.#fill(this.#skipped), signal);
      this.#skipped -= some.count;
      this.#note(some);
      const isLast = this.#skipped === 0 && some.count > 0;
      const isSame = compareBytes(isLast ? some.keys.key(some.count - 1) : lastKey, lastKey) === 0;
      if (isLast && !makesKeys(this.#shape) && (this.#keys !== keys || !isSame)) {
        throw otherSource(load, this.#shape.name, `the keys of its first ${rows} rows are others`);
      }
      told(this.count);
    }
    if (this.#skipped > 0) throw otherSource(load, this.#shape.name, `it has only ${this.count} of the ${rows} rows`);
    this.#keys = keys;
  }

  /** Reads rows, `most` of them at most. */
  async #fill(most: number = Number.POSITIVE_INFINITY): Promise<TableOperations> {
    const { environment, pacer, signal, bufferBytes, resume } = this.#options;
    const rows = new TableOperations(this.#shape, environment);
    const endMs = resume && environment.monotonicMs() + resume.maxFillMs;
    while (rows.sizeBytes < bufferBytes && rows.count < most) {
      let isLater = false;
      if (this.#taken < this.#given.length) this.#add(rows, this.#given[this.#taken++]);
      else {
        const answer = this.#iterator.next();
        isLater = isPromise(answer);
        const result: IteratorResult<unknown, unknown> = isPromise(answer) ? await answer : answer;
        if (result.done === true) {
          this.isOver = true;
          break;
        }
        this.#take(rows, result.value);
      }
      if (++this.#steps % rowsInStep === 0 && pacer.due()) await pacer.pause();
      signal.throwIfAborted();
      if (endMs !== undefined && isLater && rows.count > 0 && environment.monotonicMs() >= endMs) break;
    }
    return rows;
  }

  async #validate(rows: TableOperations, validator: RowValidator): Promise<void> {
    const { pacer } = this.#options;
    for (let i = 0; i < rows.count; i++) {
      const checked = validator.check(rows.arena, rows.base(i));
      if (isPromise(checked)) await checked;
      if (pacer.due()) await pacer.pause();
    }
  }

  /** Takes a row, or an array of rows, from the source. */
  #take(rows: TableOperations, value: unknown): void {
    if (!Array.isArray(value)) {
      this.#add(rows, value);
      return;
    }
    this.#given = value;
    this.#taken = 0;
  }

  #add(rows: TableOperations, document: unknown): void {
    const { blobFields, name } = this.#shape;
    if (blobFields.length > 0 && typeof document === 'object' && document !== null) {
      for (const field of blobFields) {
        const value = documentValue(document, field);
        if (value === undefined || value === null) continue;
        const message = `Cannot load field '${field.name}' of table '${name}': db.load() takes no blobs. Insert this row with a batch.`;
        throw new EncodeError(name, field.name, value, message);
      }
    }
    rows.addDocument(Operation.insert, document);
    this.count++;
  }

  /** Tells the source that no more rows are read, if it has not ended. */
  close(): void {
    if (this.isOver) return;
    this.isOver = true;
    try {
      const closing = this.#iterator.return?.();
      if (isPromise(closing)) closing.catch(() => undefined);
    } catch {
      // The load has failed with an error of its own.
    }
  }
}

function otherSource(load: string, table: string, why: string): LoadResumeError {
  const message =
    `db.load() cannot resume the load '${load}' into table '${table}': the source does not begin with the rows that are stored: ${why}. ` +
    'Nothing was changed: pass the same rows in the same order, or give the load up with db.discardLoad().';
  return new LoadResumeError(load, table, 'source', message);
}
