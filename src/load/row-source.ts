/** Reads the rows of a load from its source, checks and encodes them as inserts, and sorts them, one buffer at a time. */
import { untilAborted } from '../base/abort.ts';
import { isPromise } from '../base/brands.ts';
import { compareBytes } from '../base/bytes.ts';
import type { Environment } from '../base/env.ts';
import { EncodeError, InvalidOptionError } from '../base/errors.ts';
import { describeValue } from '../base/messages.ts';
import type { Pacer } from '../base/pacer.ts';
import { duplicateKey } from '../batch/folded-changes.ts';
import { Operation, TableOperations } from '../batch/table-operations.ts';
import { documentValue } from '../format/row-encode.ts';
import type { RowSource } from '../format/row-layout.ts';
import type { RowValidator } from '../schema/row-validator.ts';
import type { TableShape } from '../schema/table-shape.ts';
import type { ChangeStream } from '../tree/write.ts';

/** The rows of a load, in any order. */
export type LoadSource<T> = Iterable<T> | AsyncIterable<T>;

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
}

/** Rows in the order of their keys, which all differ. */
export interface SortedRows {
  readonly rows: TableOperations;
  readonly order: Uint32Array;
}

/** Rows between two looks at the clock. */
const rowsInStep = 32;

/** Iterates over a source in either form. Throws `InvalidOptionError` for a value that is no source. */
function iteratorOf(source: unknown): AsyncIterator<unknown> | Iterator<unknown> {
  if (typeof source === 'object' && source !== null) {
    const { [Symbol.asyncIterator]: later, [Symbol.iterator]: atOnce } = source as Partial<
      AsyncIterable<unknown> & Iterable<unknown>
    >;
    if (typeof later === 'function') return later.call(source);
    if (typeof atOnce === 'function') return atOnce.call(source);
  }
  const message = `db.load() takes an iterable or async iterable of rows, not ${describeValue(source)}.`;
  throw new InvalidOptionError('source', message);
}

/** The source of a load. */
export class RowReader {
  readonly #shape: TableShape;
  readonly #options: RowSourceOptions;
  readonly #iterator: AsyncIterator<unknown> | Iterator<unknown>;
  /** Whether the source has no more rows. */
  isOver = false;
  /** The rows that were read. */
  count = 0;

  constructor(shape: TableShape, source: unknown, options: RowSourceOptions) {
    this.#shape = shape;
    this.#options = options;
    this.#iterator = iteratorOf(source);
  }

  /** Reads the next buffer of rows; undefined at the end. Rejects with `EncodeError`, `ValidationError`,
   * `DuplicateKeyError` or the error of the source. */
  async next(): Promise<SortedRows | undefined> {
    const { pacer, signal, told, validator } = this.#options;
    if (this.isOver) return undefined;
    const rows = await untilAborted(this.#fill(), signal);
    if (rows.count === 0) return undefined;
    if (validator !== undefined) await untilAborted(this.#validate(rows, validator), signal);
    const order = await rows.order(pacer);
    const { keys } = rows;
    for (let i = 1; i < order.length; i++) {
      const [before, at] = [order[i - 1] as number, order[i] as number];
      if (keys.compare(before, at) === 0) throw duplicateKey(this.#shape, keys.key(at));
      if ((i & 0xfff) === 0 && pacer.due()) await pacer.pause();
    }
    told(this.count);
    return { rows, order };
  }

  async #fill(): Promise<TableOperations> {
    const { environment, pacer, signal, bufferBytes } = this.#options;
    const rows = new TableOperations(this.#shape, environment);
    while (rows.sizeBytes < bufferBytes) {
      const answer = this.#iterator.next();
      const result: IteratorResult<unknown, unknown> = isPromise(answer) ? await answer : answer;
      if (result.done === true) {
        this.isOver = true;
        break;
      }
      this.#add(rows, result.value);
      if (++this.count % rowsInStep === 0 && pacer.due()) await pacer.pause();
      signal.throwIfAborted();
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

/** One sorted run of rows: buffers for as long as each begins behind the last key of the one before. */
export class RowRun implements ChangeStream {
  readonly #reader: RowReader;
  #buffer: SortedRows;
  #at = 0;
  done = false;
  keyStart = 0;
  keyEnd = 0;
  base = 0;
  readonly remove = false;
  /** The buffer that the next run begins with; undefined if the source has no more rows. */
  next: SortedRows | undefined;
  readonly firstKey: Uint8Array;
  lastKey: Uint8Array;

  constructor(reader: RowReader, first: SortedRows) {
    this.#reader = reader;
    this.#buffer = first;
    this.firstKey = keyAt(first, 0);
    this.lastKey = keyAt(first, first.order.length - 1);
    this.#take();
  }

  get key(): Uint8Array {
    return this.#buffer.rows.keys.bytes;
  }

  get source(): RowSource {
    return this.#buffer.rows.arena;
  }

  advance(): void | Promise<void> {
    if (++this.#at >= this.#buffer.order.length) return this.#refill();
    this.#take();
    return undefined;
  }

  #take(): void {
    const { rows, order } = this.#buffer;
    const i = order[this.#at] as number;
    this.keyStart = rows.keys.start(i);
    this.keyEnd = rows.keys.endOf(i);
    this.base = rows.base(i);
  }

  async #refill(): Promise<void> {
    const buffer = await this.#reader.next();
    if (buffer === undefined || compareBytes(keyAt(buffer, 0), this.lastKey) <= 0) {
      this.next = buffer;
      this.done = true;
      return;
    }
    this.#buffer = buffer;
    this.#at = 0;
    this.lastKey = keyAt(buffer, buffer.order.length - 1);
    this.#take();
  }
}

function keyAt({ rows, order }: SortedRows, position: number): Uint8Array {
  return rows.keys.key(order[position] as number);
}
