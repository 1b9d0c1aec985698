/**
 * Imports rows as one load (`db.load()`): all of them are one commit, and their number is not limited by memory. The rows have been
 * checked before. If the import is interrupted, the rows that were read by then are committed; if it can be resumed, they are kept for that.
 */
import type { Database } from '../../api/database.ts';
import { MigrationActiveError, StoreDbError } from '../../base/errors.ts';
import type { SchemaDefinition } from '../../schema/schema.ts';
import type { InputFile } from './input-files.ts';
import { RowKeys } from './key-check.ts';
import { LineError } from './line-error.ts';
import type { RowRecord } from './row-reader.ts';

/** Rows of a file, as they were read together. */
export interface RecordBlock {
  readonly file: InputFile;
  readonly records: readonly RowRecord[];
}

/** A row's place in the files. */
interface Position {
  readonly file: InputFile;
  readonly line: number;
}

export interface LoadedRowsOptions {
  readonly db: Database;
  readonly schema: SchemaDefinition;
  /** Ends the source early. */
  readonly signal: AbortSignal;
  /** Reads the files from the beginning. */
  readonly blocks: () => AsyncGenerator<RecordBlock, void, undefined>;
  /** Called with the file of a row that was refused. */
  readonly onRefused: (file: InputFile) => void;
  /** The name of the load, if it can be resumed. It then ends when it is interrupted, and commits nothing. */
  readonly resume?: string | undefined;
}

/** Whether the database can tell all rows that it refuses by their primary keys, which are in the files. */
export function canLoad({ indexes = [] }: SchemaDefinition): boolean {
  // Only a commit finds rows that agree within the condition of an index. Batches can name the lines of these.
  return !indexes.some((index) => typeof index === 'object' && 'where' in index && index.where !== undefined);
}

/**
 * Loads all rows. Resolves to their number and the place of the last; undefined if the table takes no load now. If a row is refused,
 * nothing is written, and it rejects with `LineError` if a line of the files has its key.
 */
export async function loadRows(
  options: LoadedRowsOptions,
): Promise<{ readonly rows: number; readonly last: Position | undefined } | undefined> {
  const { db, schema, resume, signal } = options;
  for (let attempt = 1; ; attempt++) {
    const source = new RecordSource(options);
    try {
      // A row that is in memory is not worth a promise, which the types of iterators do not know.
      const given = source as unknown as AsyncIterable<Record<string, unknown>>;
      const { rows } = await db.load(schema.name, given, resume === undefined ? {} : { resume, signal });
      return { rows, last: source.last };
    } catch (error) {
      if (error instanceof MigrationActiveError && resume === undefined) return undefined;
      if (attempt === 1 && error instanceof StoreDbError && error.code === 'BACKPRESSURE') {
        await db.checkpoint();
        continue;
      }
      throw (await refusedLine(options, error)) ?? error;
    }
  }
}

/** Reads the files again for the row that the database has refused. */
async function refusedLine(
  { schema, signal, blocks, onRefused }: LoadedRowsOptions,
  error: unknown,
): Promise<LineError | undefined> {
  const { primaryKey } = error as { readonly primaryKey?: unknown };
  if (primaryKey === undefined || primaryKey === null || signal.aborted) return undefined;
  const keys = new RowKeys(schema);
  const refused = keys.textOfKey(primaryKey);
  for await (const { file, records } of blocks()) {
    const record = records.findLast(({ document }) => keys.textOf(document) === refused);
    if (record === undefined) continue;
    onRefused(file);
    return new LineError(record.line, (error as Error).message);
  }
  return undefined;
}

/** The rows of the files, one by one: with a promise only where more must be read. */
class RecordSource {
  readonly #signal: AbortSignal;
  readonly #isResumed: boolean;
  readonly #blocks: AsyncGenerator<RecordBlock, void, undefined>;
  #block: RecordBlock | undefined;
  #at = 0;

  constructor({ signal, blocks, resume }: LoadedRowsOptions) {
    this.#signal = signal;
    this.#isResumed = resume !== undefined;
    this.#blocks = blocks();
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  /** The place of the row that was returned last. */
  get last(): Position | undefined {
    const line = this.#block?.records[this.#at - 1]?.line;
    return line === undefined || this.#block === undefined ? undefined : { file: this.#block.file, line };
  }

  next(): IteratorResult<Record<string, unknown>, undefined> | Promise<IteratorResult<unknown, undefined>> {
    const record = this.#block?.records[this.#at];
    if (record === undefined) return this.#read();
    this.#at++;
    if (record.problem !== undefined) throw record.problem;
    return { done: false, value: record.document };
  }

  async #read(): Promise<IteratorResult<unknown, undefined>> {
    while (!this.#signal.aborted) {
      const { done, value } = await this.#blocks.next().catch((error: unknown) => {
        if (this.#signal.aborted) return { done: true, value: undefined } as const;
        throw error;
      });
      if (this.#isResumed) this.#signal.throwIfAborted();
      if (done === true || value === undefined) break;
      if (value.records.length === 0) continue;
      this.#block = value;
      this.#at = 0;
      return this.next();
    }
    if (this.#isResumed) this.#signal.throwIfAborted();
    return { done: true, value: undefined };
  }

  async return(): Promise<IteratorResult<unknown, undefined>> {
    await this.#blocks.return();
    return { done: true, value: undefined };
  }
}
