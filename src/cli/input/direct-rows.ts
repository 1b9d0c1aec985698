/** Rows that are taken as they come: encoded at once, and not kept otherwise until they are committed. */
import { StoreDbError } from '../../base/errors.ts';
import type { Batch } from '../../batch/batch.ts';
import type { Operation, TableOperations } from '../../batch/operations.ts';
import type { Database } from '../../api/database.ts';
import type { InputFile } from './input-files.ts';
import { asLineError, LineError } from './line-error.ts';
import type { RowRecord } from './row-reader.ts';

/** Where a row comes from. */
export interface Position {
  readonly file: InputFile;
  readonly line: number;
}

/** The rows of one flush after the other. */
export class DirectRows {
  readonly #db: Database;
  readonly #table: string;
  readonly #kind: Operation;
  readonly #batch: Batch;
  #operations: TableOperations;
  /** By row. */
  #lines: number[] = [];
  /** Where the rows of each file begin. */
  #files: { readonly file: InputFile; readonly from: number }[] = [];

  private constructor(db: Database, table: string, kind: Operation, batch: Batch, operations: TableOperations) {
    this.#db = db;
    this.#table = table;
    this.#kind = kind;
    this.#batch = batch;
    this.#operations = operations;
  }

  /** Undefined for a table whose rows cannot be taken so. */
  static on(db: Database, table: string, kind: Operation): DirectRows | undefined {
    const batch = db.batch();
    const operations = batch.operationsOn(table);
    return operations && new DirectRows(db, table, kind, batch, operations);
  }

  /** How many wait to be committed. */
  get count(): number {
    return this.#lines.length;
  }

  /** Throws `LineError` for a row that is none of the table's. */
  add(file: InputFile, { line, document, problem }: RowRecord): void {
    if (problem !== undefined) throw problem;
    try {
      this.#operations.addDocument(this.#kind, document);
    } catch (error) {
      throw asLineError(error, line);
    }
    if (this.#files.at(-1)?.file !== file) this.#files.push({ file, from: this.#lines.length });
    this.#lines.push(line);
  }

  /** Where a row comes from; undefined where there is none. */
  #placeOf(row: number): Position | undefined {
    const line = this.#lines[row];
    const file = this.#files.findLast(({ from }) => from <= row)?.file;
    return line === undefined || file === undefined ? undefined : { file, line };
  }

  /**
   * Commits the rows as one, and resolves to where the last of them comes from. Rejects with `LineError` where one of them is
   * refused, after `onRefused` was told of its file; nothing was written then.
   */
  async flush(onRefused: (file: InputFile) => void): Promise<Position | undefined> {
    const last = this.#placeOf(this.#lines.length - 1);
    try {
      await flushPatiently(this.#db, this.#batch);
    } catch (error) {
      const { primaryKey } = error as { primaryKey?: unknown };
      if (primaryKey === undefined || primaryKey === null) throw error;
      // The batch has kept its rows.
      const refused = this.#placeOf(this.#batch.operationsOn(this.#table)?.lastOn(primaryKey) ?? -1);
      if (refused === undefined) throw error;
      onRefused(refused.file);
      throw new LineError(refused.line, (error as Error).message);
    }
    this.#operations = this.#batch.operationsOn(this.#table) ?? this.#operations;
    this.#lines = [];
    this.#files = [];
    return last;
  }
}

/** Where more commits wait than there is memory for, they are merged first. */
export async function flushPatiently(db: Database, batch: Batch): Promise<void> {
  try {
    await batch.flush();
  } catch (error) {
    if (!(error instanceof StoreDbError) || error.code !== 'BACKPRESSURE') throw error;
    await db.checkpoint();
    await batch.flush();
  }
}
