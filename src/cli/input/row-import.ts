/** Imports the rows of files into a table: checks all of them first, stops at a bad row, or leaves bad rows out. */
import path from 'node:path';
import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import type { Database } from '../../api/database.ts';
import { messageOf } from '../../base/brands.ts';
import { realEnvironment } from '../../base/env.ts';
import { UniqueIndexError, StoreDbError } from '../../base/errors.ts';
import { defined } from '../../base/options.ts';
import type { Batch } from '../../batch/batch.ts';
import { Operation, TableOperations } from '../../batch/table-operations.ts';
import { isUuid } from '../../format/values.ts';
import { toStoredSchema } from '../../schema/schema.ts';
import type { SchemaDefinition } from '../../schema/schema.ts';
import { shapeOf } from '../../schema/table-shape.ts';
import type { Session } from '../database/command.ts';
import { formatBytes, plural } from '../terminal/figures.ts';
import { Progress } from '../terminal/progress.ts';
import { readContentType } from './blob-files.ts';
import { blobFieldsOf } from './columns.ts';
import type { InputFile } from './input-files.ts';
import { LikelySet, RowKeys, toldKey, uniqueKeysOf, StoredUniques } from './key-check.ts';
import { asLineError, LineError } from './line-error.ts';
import type { Rejects } from './line-error.ts';
import { canLoad, loadRows } from './loaded-rows.ts';
import type { RecordBlock } from './loaded-rows.ts';
import type { ReadOptions, RowRecord } from './row-reader.ts';
import type { Readable } from 'node:stream';
import { parquetRows, pathOf } from './parquet-file.ts';
import { bytesOf } from './input-files.ts';
import { readRows } from './row-reader.ts';

export const modes = ['insert', 'upsert', 'update', 'skip-existing'] as const;
export type Mode = (typeof modes)[number];
export const badRowRules = ['refuse', 'stop', 'skip'] as const;
export type BadRowRule = (typeof badRowRules)[number];

export interface ImportOptions {
  readonly session: Session;
  readonly db: Database;
  readonly schema: SchemaDefinition;
  readonly files: readonly InputFile[];
  readonly readOptions: (file: InputFile) => ReadOptions;
  readonly mode: Mode;
  readonly onBadRow: BadRowRule;
  readonly rejects: Rejects;
  /** The rows that are committed together; undefined: all that were checked before and are only inserted, or {@link rowsOfFlush}. */
  readonly rowsPerFlush: number | undefined;
  /** The line of the first file to start at. */
  readonly fromLine: number;
  /** The rows, if all of them were checked before by another import. */
  readonly checked?: number | undefined;
  readonly blobs: string | undefined;
  /** The name of the load, if the import can be resumed. */
  readonly resume?: string | undefined;
}

/** The progress of an import: all rows up to a line are in the database, and none after it. */
export interface Imported {
  readonly rows: number;
  /** The number of rows that the table had already, with `skip-existing`. */
  readonly skipped: number;
  /** The last imported line; undefined before the first. */
  readonly last: Position | undefined;
}

export const nothingDone: Imported = { rows: 0, skipped: 0, last: undefined };

/** Thrown when an import cannot continue. The cause is the error, `file` the file that was read. */
export class ImportStopped extends Error {
  readonly done: Imported;
  readonly file: InputFile | undefined;

  constructor(done: Imported, file: InputFile | undefined, cause: unknown) {
    super((cause as Error).message, { cause });
    this.done = done;
    this.file = file;
  }
}

/** A way to collect and commit rows. */
interface Taking {
  /** Adds a row, or records that it is bad. Throws, or rejects with, `LineError` for a row that ends the import. */
  readonly add: (file: InputFile, record: RowRecord) => void | Promise<void>;
  /** Returns the number of rows that are not committed yet. */
  readonly count: () => number;
  /** Commits these rows. */
  readonly flush: () => Promise<void>;
  /** Returns the progress of the import. */
  readonly done: () => Imported;
}

/** A row with its file and line. */
interface Placed {
  readonly file: InputFile;
  readonly line: number;
  readonly row: Record<string, unknown>;
  /** The row's text in the file. */
  readonly source: Pick<RowRecord, 'text'>;
}

/** Rows that are committed together where all of them cannot be. */
const rowsOfFlush = 10_000;
/** The number of keys in one query. */
const keysPerQuery = 500;

export class RowImport {
  readonly #options: ImportOptions;
  readonly #blobFields: readonly string[];
  readonly #keys: RowKeys;
  readonly #uniques: StoredUniques;
  /** The file that is being read. */
  #file: InputFile | undefined;
  /** A batch that is never flushed: rows are encoded into it to check them. */
  #scratch: Batch;
  /** Checks single rows by encoding them, each over the last; undefined until the scratch batch has taken some. */
  #tried: TableOperations | undefined;
  #checked: number | undefined;

  constructor(options: ImportOptions) {
    this.#options = options;
    this.#checked = options.checked;
    this.#blobFields = blobFieldsOf(options.schema);
    this.#keys = new RowKeys(options.schema);
    this.#uniques = new StoredUniques(options.db, options.schema);
    this.#scratch = options.db.batch();
  }

  /** Reads all files and writes nothing, to find bad rows in advance. Resolves to the number of rows. Rejects with {@link ImportStopped}. */
  async check(): Promise<number> {
    try {
      const areUnique = this.#options.mode === 'insert' ? await this.#checkRows() : await this.#checkRows(false);
      if (!areUnique) await this.#nameDuplicate();
      return this.#checked ?? 0;
    } catch (error) {
      throw new ImportStopped(nothingDone, this.#file, error);
    }
  }

  /** Checks all rows. Resolves to false if two keys are likely to be equal: only their hashes are kept. Rejects with `LineError`. */
  async #checkRows(withKeys = true): Promise<boolean> {
    const { schema, db, session } = this.#options;
    const isEmpty = !withKeys || (await db.query(schema.name).first({ signal: session.signal })) === undefined;
    const keys = withKeys ? uniqueKeysOf(schema).map((key) => ({ key, seen: new LikelySet() })) : [];
    let areUnique = true;
    let waiting: Placed[] = [];
    let count = 0;
    const lookUp = async (): Promise<void> => {
      const [existing] = await this.#existing(waiting);
      const [conflict] = existing === undefined ? await this.#uniques.conflicts(waiting, false, session.signal) : [];
      waiting = [];
      if (existing !== undefined) {
        this.#file = existing.file;
        throw this.#taken(existing);
      }
      if (conflict === undefined) return;
      this.#file = conflict.placed.file;
      throw new LineError(conflict.placed.line, conflict.message);
    };
    using progress = this.#progress('checking');
    for await (const { file, records } of this.#blocks(progress)) {
      await this.#tryOut(records);
      count += records.length;
      for (const record of records) {
        const { document } = record;
        for (const { key, seen } of keys) {
          const text = key.textOf(document);
          if (text !== undefined && !seen.add(text)) areUnique = false;
        }
        if (!isEmpty) waiting.push({ file, line: record.line, row: document, source: record });
      }
      if (waiting.length >= keysPerQuery) await lookUp();
    }
    await lookUp();
    this.#checked = count;
    return areUnique;
  }

  /** Reads the files again to find keys that come twice, by their full texts. Rejects with `LineError` if one does. */
  async #nameDuplicate(): Promise<void> {
    for (const { label, fields, textOf } of uniqueKeysOf(this.#options.schema)) {
      // Keeps only the texts that are likely to come twice.
      const likely = new LikelySet();
      const twice = new Set<string>();
      using first = this.#progress('checking keys of');
      for await (const { records } of this.#blocks(first)) {
        for (const { document } of records) {
          const text = textOf(document);
          if (text !== undefined && !likely.add(text)) twice.add(text);
        }
      }
      const seen = new Map<string, string>();
      using second = this.#progress('checking keys of');
      for await (const { file, records } of this.#blocks(second)) {
        for (const { line, document } of records) {
          const text = textOf(document);
          if (text === undefined || !twice.has(text)) continue;
          const before = seen.get(text);
          if (before !== undefined)
            throw new LineError(line, `${label} ${toldKey(fields, text)} is in ${before} already`);
          seen.set(text, `line ${line} of ${file.name}`);
        }
      }
    }
  }

  /** Imports all rows. Rejects with {@link ImportStopped}. */
  async run(): Promise<Imported> {
    const { mode, onBadRow } = this.#options;
    const isLookedUp = mode === 'skip-existing' || (onBadRow === 'skip' && mode !== 'upsert');
    const isTriedOut = onBadRow === 'skip' || isLookedUp;
    if (!isTriedOut && this.#blobFields.length === 0) {
      const loaded = this.#isLoad ? await this.#runAsLoad() : undefined;
      if (loaded !== undefined) return loaded;
      const rows = DirectRows.on(this.#options.db, this.#options.schema.name, Operation[this.#operation]);
      if (rows !== undefined) return this.#runDirectly(rows);
    }
    return this.#runPlaced(isLookedUp, isTriedOut);
  }

  /** Whether all rows become one commit: they were checked, are only inserted, and are more than a batch should have. */
  get #isLoad(): boolean {
    const { mode, rowsPerFlush, schema, resume } = this.#options;
    if (resume !== undefined) return true;
    return mode === 'insert' && rowsPerFlush === undefined && (this.#checked ?? 0) > rowsOfFlush && canLoad(schema);
  }

  /** Imports all rows as one commit. Undefined if the table takes batches only. */
  async #runAsLoad(): Promise<Imported | undefined> {
    const { db, schema, session, resume } = this.#options;
    await this.#tellOfStored();
    using progress = this.#progress('importing');
    try {
      const blocks = (): AsyncGenerator<RecordBlock, void, undefined> => this.#blocks(progress);
      const onRefused = (file: InputFile): void => {
        this.#file = file;
      };
      const loaded = await loadRows({ db, schema, signal: session.signal, blocks, onRefused, resume });
      if (loaded === undefined) return undefined;
      const done = { ...loaded, skipped: 0 };
      if (loaded.rows < (this.#checked ?? 0) && session.signal.aborted) {
        throw new ImportStopped(done, this.#file, session.signal.reason);
      }
      return done;
    } catch (error) {
      throw error instanceof ImportStopped ? error : new ImportStopped(nothingDone, this.#file, error);
    }
  }

  /** Says how many rows an earlier import has stored. */
  async #tellOfStored(): Promise<void> {
    const { db, session, resume } = this.#options;
    if (resume === undefined) return;
    const found = (await db.unfinishedLoads({ signal: session.signal })).find(({ name }) => name === resume);
    if (found?.expiresAt === undefined) return;
    session.terminal.tell(`${plural(found.rows, 'row')} are stored already: the import goes on behind them.`);
  }

  /** Imports without looking rows up or checking them in advance. */
  #runDirectly(rows: DirectRows): Promise<Imported> {
    let done = nothingDone;
    const flush = async (): Promise<void> => {
      const { count } = rows;
      const last = await rows.flush((file) => (this.#file = file));
      done = { ...done, rows: done.rows + count, last: last ?? done.last };
    };
    const add = (file: InputFile, record: RowRecord): void => rows.add(file, record);
    return this.#take({ add, count: () => rows.count, flush, done: () => done });
  }

  /** Imports rows that are looked up or checked in advance, or that have blobs. */
  #runPlaced(isLookedUp: boolean, isTriedOut: boolean): Promise<Imported> {
    const { mode, onBadRow } = this.#options;
    let done = nothingDone;
    let rows: Placed[] = [];
    const flush = async (): Promise<void> => {
      const last = rows.at(-1);
      if (last === undefined) return;
      const written = await this.#flush(rows, isLookedUp);
      done = { rows: done.rows + written, skipped: done.skipped, last };
      if (mode === 'skip-existing') done = { ...done, skipped: done.skipped + rows.length - written };
      rows = [];
    };
    const add = async (file: InputFile, record: RowRecord): Promise<void> => {
      try {
        if (record.problem !== undefined) throw record.problem;
        if (isTriedOut) await this.#tryOut([record]);
        else if (this.#blobFields.length > 0) await this.#withBlobs(record, false);
        rows.push({ file, line: record.line, row: record.document, source: record });
      } catch (error) {
        if (onBadRow !== 'skip' || !(error instanceof LineError)) throw error;
        await this.#options.rejects.add(file.name, error, record.text);
      }
    };
    return this.#take({ add, count: () => rows.length, flush, done: () => done });
  }

  /** Adds all rows, and flushes when enough are collected. Rejects with {@link ImportStopped}. */
  async #take({ add, count, flush, done }: Taking): Promise<Imported> {
    const { session, rowsPerFlush = rowsOfFlush } = this.#options;
    using progress = this.#progress('importing');
    try {
      for await (const { file, records } of this.#blocks(progress)) {
        for (const record of records) {
          const added = add(file, record);
          // Awaits only rows that returned a promise, which saves time.
          if (added !== undefined) await added;
          if (count() < rowsPerFlush) continue;
          // Stops only between flushes, so that the progress is known.
          session.signal.throwIfAborted();
          await flush();
        }
        session.signal.throwIfAborted();
      }
      await flush();
      return done();
    } catch (error) {
      throw new ImportStopped(done(), this.#file, error);
    }
  }

  /** The operation by which the mode writes rows. */
  get #operation(): 'insert' | 'update' | 'upsert' {
    const { mode } = this.#options;
    return mode === 'skip-existing' ? 'insert' : mode;
  }

  #progress(what: string): Progress {
    const { session, files, schema } = this.#options;
    const total = files.reduce((sum, { size }) => sum + size, 0);
    return new Progress(session.terminal, { what: `${what} ${schema.name}`, total, format: formatBytes });
  }

  async *#blocks(progress: Progress): AsyncGenerator<RecordBlock, void, undefined> {
    const { session, files, readOptions, schema, fromLine } = this.#options;
    let before = 0;
    for (const file of files) {
      this.#file = file;
      const start = before;
      const onRead = (read: number): void => progress.set(start + read);
      for await (const records of rowsOf(file, session.terminal.input, schema, readOptions(file), onRead)) {
        session.signal.throwIfAborted();
        const isLeftOut = file === files[0] && fromLine > 1 && (records[0]?.line ?? fromLine) < fromLine;
        yield { file, records: isLeftOut ? records.filter(({ line }) => line >= fromLine) : records };
      }
      before += file.size;
    }
  }

  /** Checks rows by encoding them. Rejects with `LineError` for the first that does not fit the table. */
  async #tryOut(records: readonly RowRecord[]): Promise<void> {
    if (this.#tried !== undefined) return this.#tryEach(this.#tried, records);
    const bad = records.find(({ problem }) => problem !== undefined);
    this.#scratch.clear();
    await this.#addAll(this.#scratch, bad === undefined ? records : records.slice(0, records.indexOf(bad)), false);
    if (bad?.problem !== undefined) throw bad.problem;
    this.#scratch.clear();
    if (this.#blobFields.length > 0 || records.length === 0) return;
    this.#tried = new TableOperations(shapeOf(toStoredSchema(this.#options.schema)), realEnvironment);
  }

  #tryEach(tried: TableOperations, records: readonly RowRecord[]): void {
    const kind = Operation[this.#operation];
    for (const { line, document, problem } of records) {
      if (problem !== undefined) throw problem;
      try {
        tried.tryDocument(kind, document);
      } catch (error) {
        throw asLineError(error, line);
      }
    }
  }

  /** Replaces the blob references of a row by the blobs. Rejects with `LineError` if there is no file for a reference. */
  async #withBlobs(
    { line, document }: Pick<RowRecord, 'line' | 'document'>,
    isRead: boolean,
  ): Promise<Record<string, unknown>> {
    const { blobs, db } = this.#options;
    const row = { ...document };
    for (const name of this.#blobFields) {
      const reference = row[name];
      if (typeof reference !== 'string') continue;
      if (blobs === undefined) {
        throw new LineError(line, `field ${name} refers to a blob: name the folder with the blobs by --blobs`);
      }
      if (!isUuid(reference)) {
        throw new LineError(line, `field ${name}: ${JSON.stringify(reference)} is no blob reference`);
      }
      const file = path.join(blobs, reference);
      await stat(file).catch(() => {
        throw new LineError(line, `field ${name}: there is no file ${file}`);
      });
      const contentType = await readContentType(file).catch((error: unknown) => {
        throw new LineError(line, `field ${name}: ${messageOf(error)}`);
      });
      row[name] = isRead ? db.Blob(createReadStream(file), defined({ contentType })) : null;
    }
    return row;
  }

  /** Adds rows with their blobs to a batch. Rejects with `LineError` for the first that does not fit the table. */
  async #addAll(
    batch: Batch,
    rows: readonly Pick<RowRecord, 'line' | 'document'>[],
    areBlobsRead: boolean,
    onRow?: (i: number) => void,
  ): Promise<void> {
    const { schema } = this.#options;
    const add = (row: Record<string, unknown>): Promise<unknown> => batch[this.#operation](schema.name, row);
    const hasBlobs = this.#blobFields.length > 0;
    // Awaits all rows together: awaiting each takes longer than encoding it.
    const added = hasBlobs ? [] : rows.map(({ document }) => add(document));
    const areGood =
      !hasBlobs &&
      (await Promise.all(added).then(
        () => true,
        () => false,
      ));
    if (areGood) return;
    for (const [i, record] of rows.entries()) {
      onRow?.(i);
      try {
        await (added[i] ?? add(await this.#withBlobs(record, areBlobsRead)));
      } catch (error) {
        throw asLineError(error, record.line);
      }
    }
  }

  /** Returns the rows whose keys are in the table. */
  async #existing(rows: readonly Placed[]): Promise<Placed[]> {
    const { db, schema, session } = this.#options;
    const { names } = this.#keys;
    const found: Placed[] = [];
    const withKey = rows.filter(({ row }) => this.#keys.textOf(row) !== undefined);
    for (let at = 0; at < withKey.length; at += keysPerQuery) {
      const some = withKey.slice(at, at + keysPerQuery);
      const query = db.query(schema.name).where(
        names,
        'IN',
        some.map(({ row }) => this.#keys.valuesOf(row)),
      );
      const there = await query.select(...names).execute({ signal: session.signal });
      const keys = new Set(there.map((row) => this.#keys.textOf(row)));
      found.push(...some.filter(({ row }) => keys.has(this.#keys.textOf(row))));
    }
    return found;
  }

  #taken({ line, row }: Placed): LineError {
    const key = this.#keys.textOf(row);
    return new LineError(
      line,
      `there is a row with key ${toldKey(this.#keys.names, key)} already: choose another --mode to replace or skip it`,
    );
  }

  /** Leaves out the rows that the mode does not write: existing or missing ones, and repetitions. */
  async #taking(rows: readonly Placed[]): Promise<readonly Placed[]> {
    const { mode, rejects } = this.#options;
    const existing = new Set(await this.#existing(rows));
    const keys = new Set<string>();
    const taken: Placed[] = [];
    for (const placed of rows) {
      const key = this.#keys.textOf(placed.row);
      const isThere = existing.has(placed) || (mode !== 'update' && key !== undefined && keys.has(key));
      if (key !== undefined) keys.add(key);
      if (isThere === (mode === 'update')) taken.push(placed);
      else if (mode !== 'skip-existing') {
        const missing = new LineError(
          placed.line,
          `there is no row with key ${toldKey(this.#keys.names, key)} to update`,
        );
        await rejects.add(placed.file.name, isThere ? this.#taken(placed) : missing, placed.source.text);
      }
    }
    return mode === 'insert' || mode === 'skip-existing' ? this.#withoutConflicts(taken) : taken;
  }

  /** Leaves out rows that violate a unique index, if bad rows are to be skipped. */
  async #withoutConflicts(rows: readonly Placed[]): Promise<readonly Placed[]> {
    const { onBadRow, rejects, session } = this.#options;
    if (onBadRow !== 'skip') return rows;
    const bad = new Set<Placed>();
    for (const { placed, message } of await this.#uniques.conflicts(rows, true, session.signal)) {
      bad.add(placed);
      await rejects.add(placed.file.name, new LineError(placed.line, message), placed.source.text);
    }
    return rows.filter((placed) => !bad.has(placed));
  }

  /** Commits rows together. Resolves to the number written. */
  async #flush(rows: readonly Placed[], isLookedUp: boolean): Promise<number> {
    const { onBadRow, rejects } = this.#options;
    let taken = isLookedUp ? await this.#taking(rows) : rows;
    while (taken.length > 0) {
      const bad = await this.#commit(taken);
      if (bad === undefined) break;
      if (onBadRow !== 'skip' || !bad.isUniqueIndex) throw new LineError(bad.placed.line, bad.message);
      const { placed, message } = bad;
      await rejects.add(placed.file.name, new LineError(placed.line, message), placed.source.text);
      taken = taken.filter((other) => other !== placed);
    }
    return taken.length;
  }

  /** Commits rows. If the flush is rejected because of a row, nothing is written, and it resolves to that row; else to undefined. */
  async #commit(
    taken: readonly Placed[],
  ): Promise<{ readonly placed: Placed; readonly message: string; readonly isUniqueIndex: boolean } | undefined> {
    const { db } = this.#options;
    const batch = db.batch();
    const records = taken.map(({ line, row }) => ({ line, document: row }));
    await this.#addAll(batch, records, true, (i) => {
      this.#file = taken[i]?.file;
    });
    this.#file = taken.at(-1)?.file;
    try {
      await flushPatiently(db, batch);
      return undefined;
    } catch (error) {
      const key = this.#keys.textOfKey((error as { primaryKey?: unknown }).primaryKey);
      const placed = taken.findLast(({ row }) => this.#keys.textOf(row) === key);
      if (key === undefined || placed === undefined) throw error;
      this.#file = placed.file;
      return { placed, message: (error as Error).message, isUniqueIndex: error instanceof UniqueIndexError };
    }
  }
}

/** The file and line of a row. */
interface Position {
  readonly file: InputFile;
  readonly line: number;
}

/** Collects the rows of one flush after another. Rows are encoded at once, and kept in no other form. */
class DirectRows {
  readonly #db: Database;
  readonly #table: string;
  readonly #kind: Operation;
  readonly #batch: Batch;
  #operations: TableOperations;
  /** The line of each row. */
  #lines: number[] = [];
  /** The files, each with the index of its first row. */
  #files: { readonly file: InputFile; readonly from: number }[] = [];

  private constructor(db: Database, table: string, kind: Operation, batch: Batch, operations: TableOperations) {
    this.#db = db;
    this.#table = table;
    this.#kind = kind;
    this.#batch = batch;
    this.#operations = operations;
  }

  /** Returns undefined for a table whose rows cannot be collected in this way. */
  static on(db: Database, table: string, kind: Operation): DirectRows | undefined {
    const batch = db.batch();
    const operations = batch.operationsOn(table);
    return operations && new DirectRows(db, table, kind, batch, operations);
  }

  /** The number of rows that are not committed yet. */
  get count(): number {
    return this.#lines.length;
  }

  /** Adds a row. Throws `LineError` if it does not fit the table. */
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

  /** Returns the file and line of a row; undefined if there is no such row. */
  #placeOf(row: number): Position | undefined {
    const line = this.#lines[row];
    const file = this.#files.findLast(({ from }) => from <= row)?.file;
    return line === undefined || file === undefined ? undefined : { file, line };
  }

  /**
   * Commits the rows together, and resolves to the file and line of the last one. If one of them is refused, nothing is written: it calls
   * `onRefused` with the file of that row, and rejects with `LineError`.
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

/** Flushes a batch. If too many commits are pending for that, merges them first. */
async function flushPatiently(db: Database, batch: Batch): Promise<void> {
  try {
    await batch.flush();
  } catch (error) {
    if (!(error instanceof StoreDbError) || error.code !== 'BACKPRESSURE') throw error;
    await db.checkpoint();
    await batch.flush();
  }
}

/** As `readRows`. Calls `onRead` with the number of bytes of the file that were read. Throws `UsageError` and `LineError`. */
export function rowsOf(
  file: InputFile,
  input: Readable,
  schema: SchemaDefinition | undefined,
  options: ReadOptions,
  onRead: (bytes: number) => void,
): AsyncGenerator<RowRecord[], void, undefined> {
  if (options.format === 'parquet') return parquetRows(pathOf(file), schema, options, onRead);
  return readRows(bytesOf(file, input, onRead), schema, options);
}
