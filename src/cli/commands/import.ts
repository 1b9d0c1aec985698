import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import path from 'node:path';
import type { Readable } from 'node:stream';
import { StoreDbError } from '../../base/errors.ts';
import type { Batch } from '../../batch/batch.ts';
import type { Database } from '../../database.ts';
import { Types } from '../../format/types.ts';
import { isUuid } from '../../format/values.ts';
import type { SchemaDefinition } from '../../table/schema.ts';
import { command, databasePositional, tablePositional } from '../command.ts';
import type { Command, Session } from '../command.ts';
import { ExitCode, UsageError } from '../exit-code.ts';
import { formatBytes, plural } from '../figures.ts';
import { LineError } from '../line-reader.ts';
import { newPlaceOf } from '../open-database.ts';
import type { OpenDatabase } from '../open-database.ts';
import { Progress } from '../progress.ts';
import { formatOf, formats, namedFile, readRecords } from '../records.ts';
import type { Format, RowRecord } from '../records.ts';
import { readSchemaFile } from '../schema-text.ts';

const modes = ['insert', 'upsert', 'update'] as const;
type Mode = (typeof modes)[number];

interface ImportOptions {
  readonly session: Session;
  readonly db: Database;
  readonly schema: SchemaDefinition;
  readonly file: string | undefined;
  readonly format: Format;
  readonly mode: Mode;
  readonly rowsPerFlush: number;
  readonly fromLine: number;
  readonly blobs: string | undefined;
}

/** How far an import is: everything up to a line is in the database, and nothing after it. */
interface Imported {
  readonly rows: number;
  /** The last line that is imported; 0 before the first. */
  readonly line: number;
}

/** Where an import ended that could not go on. */
class ImportStopped extends Error {
  readonly done: Imported;
  readonly line: number | undefined;

  constructor(done: Imported, line: number | undefined, cause: unknown) {
    super((cause as Error).message, { cause });
    this.done = done;
    this.line = line;
  }
}

class Import {
  readonly #options: ImportOptions;
  readonly #blobFields: readonly string[];

  constructor(options: ImportOptions) {
    this.#options = options;
    const fields = Object.entries(options.schema.fields);
    this.#blobFields = fields.flatMap(([name, { typeId }]) => (typeId === Types.blob ? [name] : []));
  }

  /** Reads all lines and writes nothing, so that a bad one is found before. Rejects with `LineError`. */
  async check(): Promise<number> {
    const { db, session } = this.#options;
    const batch = db.batch();
    let rows = 0;
    using progress = await this.#progress('checking');
    for await (const record of this.#records(progress)) {
      session.signal.throwIfAborted();
      await this.#add(batch, record, false);
      if (++rows % 1000 === 0) batch.clear();
    }
    batch.clear();
    return rows;
  }

  /** Rejects with {@link ImportStopped}. */
  async run(): Promise<Imported> {
    const { db, session, rowsPerFlush } = this.#options;
    let done: Imported = { rows: 0, line: 0 };
    let batch = db.batch();
    let last = 0;
    let line: number | undefined;
    const flush = async (): Promise<void> => {
      if (batch.size === 0) return;
      const { size } = batch;
      await flushPatiently(db, batch);
      done = { rows: done.rows + size, line: last };
      batch = db.batch();
    };
    using progress = await this.#progress('importing');
    try {
      for await (const record of this.#records(progress)) {
        // Between flushes, so that what is done is known.
        session.signal.throwIfAborted();
        line = record.line;
        await this.#add(batch, record, true);
        last = record.line;
        line = undefined;
        if (batch.size >= rowsPerFlush) await flush();
      }
      await flush();
      return done;
    } catch (error) {
      throw new ImportStopped(done, error instanceof LineError ? error.line : line, error);
    }
  }

  async #progress(what: string): Promise<Progress> {
    const { session, file, schema } = this.#options;
    const total = file === undefined ? 0 : (await stat(file)).size;
    return new Progress(session.terminal, { what: `${what} ${schema.name}`, total, format: formatBytes });
  }

  async *#records(progress: Progress): AsyncGenerator<RowRecord, void, undefined> {
    const { session, file, format, schema, fromLine } = this.#options;
    const input =
      file === undefined ? (session.terminal.input as Readable) : createReadStream(file, { highWaterMark: 256 * 1024 });
    let read = 0;
    input.on('data', (chunk: Uint8Array) => progress.set((read += chunk.length)));
    // Whoever iterates decides when there is more.
    input.pause();
    for await (const record of readRecords(input, format, schema)) if (record.line >= fromLine) yield record;
  }

  /** Rejects with `LineError` where the row is none of the table's. */
  async #add(batch: Batch, { line, document }: RowRecord, withBlobs: boolean): Promise<void> {
    const { schema, mode, blobs, db } = this.#options;
    const row = { ...document };
    for (const name of this.#blobFields) {
      const reference = row[name];
      if (typeof reference !== 'string') continue;
      if (blobs === undefined) {
        throw new LineError(line, `field ${name} refers to a blob: --blobs says in which folder what it holds is`);
      }
      if (!isUuid(reference)) throw new LineError(line, `field ${name}: ${JSON.stringify(reference)} is no reference`);
      const file = path.join(blobs, reference);
      await stat(file).catch(() => {
        throw new LineError(line, `field ${name}: there is no file ${file}`);
      });
      row[name] = withBlobs ? db.Blob(createReadStream(file)) : null;
    }
    try {
      await batch[mode](schema.name, row);
    } catch (error) {
      if (error instanceof StoreDbError && error.code === 'ENCODE') throw new LineError(line, error.message);
      throw error;
    }
  }
}

/** Where more commits wait than there is memory for, they are merged first. */
async function flushPatiently(db: Database, batch: Batch): Promise<void> {
  try {
    await batch.flush();
  } catch (error) {
    if (!(error instanceof StoreDbError) || error.code !== 'BACKPRESSURE') throw error;
    await db.checkpoint();
    await batch.flush();
  }
}

function report({ terminal, signal }: Session, { done, line, cause }: ImportStopped, fromLine: number): void {
  const { message } = cause as Error;
  const where = line === undefined ? '' : `Line ${line}: `;
  const next = Math.max(fromLine, done.line + 1);
  if (terminal.json) {
    terminal.printJson({
      rows: done.rows,
      importedToLine: done.line,
      badLine: line ?? null,
      message,
      resumeFromLine: next,
    });
    return;
  }
  if (signal.aborted) terminal.tell('Interrupted.');
  else terminal.tell(`${terminal.styleMessage('red', 'error')}: ${where}${message}`);
  const state =
    done.rows === 0
      ? 'Nothing was imported.'
      : `${plural(done.rows, 'row')} up to line ${done.line} are imported, and nothing after it.`;
  terminal.tell(done.rows === 0 ? state : `${state} Go on with --from-line ${next}.`);
}

async function openTarget(session: Session, url: string, schema: SchemaDefinition | undefined): Promise<OpenDatabase> {
  if (schema === undefined) return session.open(url, 'writer');
  const place = await session.place(url).catch((error: unknown) => {
    if (!(error instanceof UsageError)) throw error;
    return newPlaceOf(url);
  });
  return session.openAt(place, 'writer', { create: true });
}

/** Whether a file can be read again: what came out of a pipe is gone. Throws `UsageError`. */
async function isRegular(file: string): Promise<boolean> {
  try {
    return (await stat(file)).isFile();
  } catch (error) {
    throw new UsageError(`${file} cannot be read: ${(error as Error).message}`);
  }
}

/** `import`: rows of a file into a table. */
export const importTable: Command = command({
  name: 'import',
  summary: 'Read rows from NDJSON or CSV into a table; a bad line is named, and nothing is lost',
  positionals: {
    ...databasePositional,
    ...tablePositional,
    file: { type: 'string', describe: 'File to read; default, and -: the input', coerce: namedFile },
  },
  options: {
    format: { choices: formats, describe: 'Default: by the name of the file, else ndjson' },
    schema: { type: 'string', describe: 'File with the schema as JSON, where the table does not exist yet' },
    mode: { choices: modes, default: 'insert', describe: 'What is done with each row' },
    'from-line': { type: 'number', default: 1, describe: 'Leave out what ends before this line' },
    'rows-per-flush': { type: 'number', default: 10_000, describe: 'Rows that are committed together' },
    blobs: { type: 'string', describe: 'Folder with the blobs, as export saved them' },
    check: {
      type: 'boolean',
      default: true,
      describe: 'Read the whole file first, and write only if every line is good',
    },
  },
  examples: [['import file:./data#shop cities cities.csv --schema cities.json', 'into a table that is made for it']],
  run: async (session, args) => {
    const { database, table, file, mode, blobs, check, 'from-line': fromLine, 'rows-per-flush': rowsPerFlush } = args;
    const { terminal } = session;
    if (!Number.isSafeInteger(rowsPerFlush) || rowsPerFlush < 1)
      throw new UsageError('--rows-per-flush must be at least 1.');
    const canReadTwice = file !== undefined && (await isRegular(file));
    const written = args.schema === undefined ? undefined : await readSchemaFile(args.schema);
    if (written !== undefined && written.name !== table) {
      throw new UsageError(`The schema in ${args.schema as string} is of table ${written.name}, not of ${table}.`);
    }
    await using opened = await openTarget(session, database, written);
    if (written !== undefined) opened.db.registerSchema(written);
    const schema = written ?? opened.table(table);
    const format = args.format ?? formatOf(file) ?? 'ndjson';
    const work = new Import({ session, db: opened.db, schema, file, format, mode, rowsPerFlush, fromLine, blobs });
    try {
      if (check && canReadTwice) {
        await work.check().catch((error: unknown) => {
          throw new ImportStopped({ rows: 0, line: 0 }, error instanceof LineError ? error.line : undefined, error);
        });
      }
      const done = await work.run();
      await opened.db.checkpoint();
      if (terminal.json) terminal.printJson({ rows: done.rows });
      else terminal.print(`${plural(done.rows, 'row')} imported into ${table}.`);
      return ExitCode.done;
    } catch (error) {
      if (!(error instanceof ImportStopped)) throw error;
      report(session, error, fromLine);
      if (session.signal.aborted) return ExitCode.interrupted;
      return error.cause instanceof LineError ? ExitCode.found : ExitCode.failed;
    }
  },
});
