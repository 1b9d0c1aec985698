import path from 'node:path';
import { checksum, encodeUtf8 } from '../../base/bytes.ts';
import { defined } from '../../base/options.ts';
import { toStoredSchema } from '../../schema/schema.ts';
import type { SchemaDefinition } from '../../schema/schema.ts';
import type { ArgumentsOf } from '../arguments/options.ts';
import { command, confirmed, yesOption } from '../database/command.ts';
import type { Command, Session } from '../database/command.ts';
import { newPlaceOf } from '../database/open-database.ts';
import type { OpenDatabase } from '../database/open-database.ts';
import {
  draftTable,
  KeptFiles,
  jsonOf,
  printDraft,
  tellOfHead,
  typeScriptOf,
  draftingOptions,
  sampleOf,
} from '../draft/draft-files.ts';
import type { Draft } from '../draft/drafted-table.ts';
import { TargetDatabase, defaultDatabase, isDatabaseUrl, newTableOf, scratchDatabase } from '../draft/new-table.ts';
import { blobFieldsOf } from '../input/columns.ts';
import { canLoad } from '../input/loaded-rows.ts';
import { parseDateFormats } from '../input/field-values.ts';
import { inputFiles } from '../input/input-files.ts';
import type { InputFile } from '../input/input-files.ts';
import { LineError, Rejects, describePosition } from '../input/line-error.ts';
import { readingOptions, readOptionsOf } from '../input/reading-options.ts';
import { badRowRules, ImportStopped, modes, nothingDone, RowImport } from '../input/row-import.ts';
import type { ImportOptions, Imported } from '../input/row-import.ts';
import type { ReadOptions } from '../input/row-reader.ts';
import { ExitCode, UsageError } from '../terminal/exit-code.ts';
import { plural } from '../terminal/figures.ts';
import { readSchemaFile } from '../values/schema-file.ts';

const positionals = {
  database: { type: 'string', describe: 'URL of the database: file:./data or s3://bucket/prefix' },
  into: { type: 'string', describe: 'Name of the table, unless --table gives it' },
  files: {
    type: 'string',
    array: true,
    describe: 'Files to read, or patterns in quotes; -, and the default: standard input',
  },
} as const;

const options = {
  create: {
    type: 'boolean',
    default: false,
    describe: `Create the table from the contents of the files, by default in ${defaultDatabase}; creates the database too if there is none`,
  },
  ...draftingOptions,
  ...yesOption,
  ...readingOptions,
  schema: { type: 'string', describe: 'File with the schema as JSON, for a table that does not exist yet' },
  mode: { choices: modes, default: 'insert', describe: 'How to write each row' },
  'on-bad-row': {
    choices: badRowRules,
    default: 'refuse',
    describe: 'refuse: check all files before writing anything; stop: write the rows before it; skip: leave it out',
  },
  rejects: { type: 'string', describe: 'File for the rows that are left out and their errors, as NDJSON' },
  'from-file': { type: 'string', describe: 'Skip the files before this one' },
  'from-line': { type: 'number', default: 1, describe: 'Skip the rows that end before this line of the first file' },
  'rows-per-flush': {
    type: 'number',
    describe:
      'Rows that are committed together. Default: all if they were checked before and are only inserted; otherwise 10000',
  },
  resume: {
    type: 'boolean',
    default: false,
    describe:
      'Keep what is stored if the import is interrupted or killed: the same command then goes on behind these rows. All rows become one commit',
  },
  blobs: { type: 'string', describe: 'Folder with the blobs, as export saved them' },
} as const;

type Arguments = ArgumentsOf<typeof positionals> & ArgumentsOf<typeof options>;

async function openTarget(session: Session, url: string, schema: SchemaDefinition | undefined): Promise<OpenDatabase> {
  if (schema === undefined) return session.open(url, 'writer');
  const place = await session.place(url).catch((error: unknown) => {
    if (!(error instanceof UsageError)) throw error;
    return newPlaceOf(url);
  });
  return session.openAt(place, 'writer', { create: true });
}

/** Returns the files from the named one on. Throws `UsageError`. */
function filesFrom(files: readonly InputFile[], name: string | undefined): readonly InputFile[] {
  if (name === undefined) return files;
  const at = files.findIndex((file) => file.name === name);
  if (at !== -1) return files.slice(at);
  throw new UsageError(`--from-file ${name} is none of the files: ${files.map((file) => file.name).join(', ')}.`);
}

/** Checks that all rows can become one commit, and can be read again. Throws `UsageError`. */
function checkResume({ create, mode, blobs, 'on-bad-row': onBadRow, 'rows-per-flush': rowsPerFlush }: Arguments): void {
  const wrong = [
    create && '--create, which makes a new table each time',
    mode !== 'insert' && `--mode ${mode}`,
    onBadRow !== 'refuse' && `--on-bad-row ${onBadRow}`,
    rowsPerFlush !== undefined && '--rows-per-flush',
    blobs !== undefined && '--blobs',
  ].find((found) => found !== false);
  if (wrong === undefined) return;
  throw new UsageError(
    `--resume makes one commit of rows that are checked before and are only inserted: leave out ${wrong}.`,
  );
}

/** Returns the name of the load of an import: the same command has the same. */
function loadNameOf(table: string, files: readonly InputFile[]): string {
  const names = files.map(({ name }) => path.basename(name)).join(' ');
  const text = `import ${names} into ${table}`;
  if (encodeUtf8(text).length <= 200) return text;
  return `import of ${plural(files.length, 'file')}, ${checksum(encodeUtf8(text)).toString(16)}`;
}

/** Checks the arguments that do not depend on the table. Throws `UsageError`. */
function checkArguments(args: Arguments): void {
  const rowsPerFlush = args['rows-per-flush'];
  if (rowsPerFlush !== undefined && (!Number.isSafeInteger(rowsPerFlush) || rowsPerFlush < 1))
    throw new UsageError('--rows-per-flush must be at least 1.');
  if (args.rejects !== undefined && args['on-bad-row'] !== 'skip') {
    throw new UsageError('--rejects needs --on-bad-row skip.');
  }
  if (args.resume) checkResume(args);
  const forNew = ['key', 'sample'].find((name) => args[name as 'key'] !== undefined);
  if (!args.create && forNew !== undefined) throw new UsageError(`--${forNew} needs --create.`);
}

type WithoutTarget = Omit<ImportOptions, 'db' | 'schema' | 'files' | 'readOptions'>;

function commonOf(session: Session, args: Arguments, rejects: Rejects): WithoutTarget {
  const { mode, blobs, 'on-bad-row': onBadRow, 'from-line': fromLine, 'rows-per-flush': rowsPerFlush } = args;
  return { session, mode, blobs, onBadRow, fromLine, rowsPerFlush, rejects };
}

/** Returns the words of the command line. Throws `UsageError` if a database comes later than first. */
function wordsOf({ database, into, files = [] }: Arguments): string[] {
  const words = [database, into, ...files].filter((word) => word !== undefined);
  const late = words.slice(1).find(isDatabaseUrl);
  if (late === undefined) return words;
  throw new UsageError(`${late} is a database and must come first: store-db import ${late} <table> <files..>`);
}

/** Returns the name of the load by which rows are imported. Throws `UsageError` if they cannot be, or cannot be read again. */
function resumedLoad(schema: SchemaDefinition, files: readonly InputFile[]): string {
  if (!files.every(({ isRegular }) => isRegular)) {
    throw new UsageError('--resume reads the files again: name files, not standard input or pipes.');
  }
  if (blobFieldsOf(schema).length > 0)
    throw new UsageError(`--resume takes no table with blobs, as ${schema.name} is.`);
  if (!canLoad(schema)) {
    throw new UsageError(`--resume takes no table with an index that has a condition, as ${schema.name} is.`);
  }
  return loadNameOf(schema.name, files);
}

/** Says what an import that was interrupted has stored. */
async function adviceOf({ db }: OpenDatabase, load: string): Promise<string | undefined> {
  const found = (await db.unfinishedLoads().catch(() => [])).find(({ name }) => name === load);
  if (found === undefined) return undefined;
  return (
    `${plural(found.rows, 'row')} are stored for later: the same command goes on behind them, ` +
    `and store-db loads discard deletes them.`
  );
}

async function importInto(session: Session, args: Arguments): Promise<ExitCode> {
  const fromLine = args['from-line'];
  const [database, ...rest] = wordsOf(args);
  const table = args.table ?? rest.shift();
  if (database === undefined || table === undefined) {
    throw new UsageError(
      'Name the database and the table: store-db import <database> <table> [files..]. To create the table from the files, pass --create.',
    );
  }
  const named = filesFrom(await inputFiles(rest), args['from-file']);
  const written = args.schema === undefined ? undefined : await readSchemaFile(args.schema);
  if (written !== undefined && written.name !== table) {
    throw new UsageError(`The schema in ${args.schema as string} is of table ${written.name}, not of ${table}.`);
  }
  const readOptions = readOptionsOf(args, args['on-bad-row'] === 'skip');
  // Parquet is read from its end, so it cannot come from a pipe.
  const isKept = named.some((file) => readOptions(file).format === 'parquet');
  await using kept = await KeptFiles.keep(isKept ? named : [], session);
  const files = isKept ? kept.files : named;
  await using opened = await openTarget(session, database, written);
  if (written !== undefined) opened.db.registerSchema(written);
  const schema = written ?? opened.table(table);
  await using rejects = new Rejects(args.rejects);
  const resume = args.resume ? resumedLoad(schema, files) : undefined;
  const work = new RowImport({
    ...commonOf(session, args, rejects),
    db: opened.db,
    schema,
    files,
    readOptions,
    resume,
  });
  try {
    if (args['on-bad-row'] === 'refuse' && files.every(({ isRegular }) => isRegular)) await work.check();
    const done = await work.run();
    await opened.db.checkpoint();
    reportDone(session, done, rejects.count, table);
    return rejects.count > 0 ? ExitCode.found : ExitCode.done;
  } catch (error) {
    if (!(error instanceof ImportStopped)) throw error;
    const advice = resume === undefined ? undefined : await adviceOf(opened, resume);
    return reportStop(session, error, { files, fromLine, advice });
  }
}

/** Drafts the table from the files. Rejects with {@link ImportStopped} for a bad row. */
async function drafted(
  session: Session,
  args: Arguments,
  { table, files }: { readonly table: string; readonly files: readonly InputFile[] },
): Promise<Draft> {
  const { key, 'on-bad-row': onBadRow } = args;
  let current: InputFile | undefined;
  const dates = parseDateFormats(args['date-format'] ?? []);
  const wanted = {
    table,
    key,
    dates,
    sample: sampleOf(args),
    files,
    readOptions: readOptionsOf(args, args['on-bad-row'] === 'skip'),
  };
  try {
    const leaveOut = (_: InputFile, problem: LineError): void => {
      if (onBadRow !== 'skip') throw problem;
    };
    return await draftTable(session, { ...wanted, onBadRow: leaveOut }, (file) => (current = file));
  } catch (error) {
    throw error instanceof LineError ? new ImportStopped(nothingDone, current, error) : error;
  }
}

/** Returns the options for reading the files of a draft again, with the columns of the draft. */
function readAsDrafted(args: Arguments, { columns }: Draft): (file: InputFile) => ReadOptions {
  const { header, columns: given } = args;
  const names = header || given !== undefined ? given : columns.map((_, i) => `column${i + 1}`).join(',');
  return readOptionsOf({ ...args, columns: names, 'scalars-as-text': true }, args['on-bad-row'] === 'skip');
}

async function importAsDrafted(
  session: Session,
  args: Arguments,
  { target, draft, files }: { target: TargetDatabase; draft: Draft; files: readonly InputFile[] },
): Promise<ExitCode> {
  const { schema } = draft;
  await using rejects = new Rejects(args.rejects);
  const common = { ...commonOf(session, args, rejects), schema, files, readOptions: readAsDrafted(args, draft) };
  let checked: number | undefined;
  if (args['on-bad-row'] === 'refuse') {
    await using scratch = await scratchDatabase(schema);
    checked = await new RowImport({ ...common, db: scratch }).check();
  }
  await using opened = await target.open();
  opened.db.registerSchema(schema);
  const done = await new RowImport({ ...common, checked, db: opened.db }).run();
  await opened.db.checkpoint();
  reportDone(session, done, rejects.count, schema.name, {
    database: target.name,
    table: schema.name,
    schema: jsonOf(draft),
  });
  return rejects.count > 0 ? ExitCode.found : ExitCode.done;
}

async function importAndCreate(session: Session, args: Arguments): Promise<ExitCode> {
  const { terminal } = session;
  for (const name of ['schema', 'blobs', 'from-file'] as const)
    if (args[name] !== undefined) throw new UsageError(`--create makes a table from the files: leave out --${name}.`);
  if (args['from-line'] !== 1 || args.mode === 'update') {
    const word = args.mode === 'update' ? '--mode update' : '--from-line';
    throw new UsageError(`--create makes a table from all rows of the files: leave out ${word}.`);
  }
  const { url, table, files: named } = await newTableOf(wordsOf(args), args.table);
  const target = await TargetDatabase.at(url, session);
  await target.refuseTaken(table);
  await using kept = await KeptFiles.keep(named, session);
  const { files } = kept;
  let draft: Draft | undefined;
  try {
    draft = await drafted(session, args, { table, files });
    toStoredSchema(draft.schema);
    if (!terminal.json) {
      tellOfHead(terminal, draft, args.header);
      printDraft(terminal, draft, files.map(({ name }) => name).join(', '));
      terminal.printLines(`\n${typeScriptOf(draft)}\n`);
    }
    const question = `Create table ${table} in ${target.name}, and import ${plural(draft.rows, 'row')}?`;
    if (!(await confirmed(session, question, args.yes))) return ExitCode.interrupted;
    const status = await importAsDrafted(session, args, { target, draft, files });
    if (!terminal.json) terminal.tell(`Look at it with: npx store-db query ${url} ${table}`);
    return status;
  } catch (error) {
    if (!(error instanceof ImportStopped)) throw error;
    const isSampled = draft !== undefined && draft.sampled < draft.rows && error.cause instanceof LineError;
    const advice = isSampled
      ? `The types are drafted from the first ${plural(draft?.sampled ?? 0, 'row')}: leave out --sample to draft them from all rows.`
      : undefined;
    return reportStop(session, error, { files, fromLine: 1, advice, without: ', and without --create' });
  }
}

/** `import`: writes the rows of files into a table. */
export const importTable: Command = command({
  name: 'import',
  summary: 'Import rows from CSV, NDJSON, JSON or Parquet into a table; names bad lines, and loses nothing',
  positionals,
  options,
  examples: [
    ['import cities.csv --create', `a new table cities in ${defaultDatabase}, with the rows of the file`],
    ['import file:./data#shop cities cities.csv --schema cities.json', 'into a new table with this schema'],
    ['import file:./data cities "2026/*.csv.gz" --mode upsert --encoding windows-1252', 'many files'],
  ],
  run: (session, args) => {
    checkArguments(args);
    return args.create ? importAndCreate(session, args) : importInto(session, args);
  },
});

/** Returns the file and the line at which an import can continue. */
function nextOf(done: Imported, files: readonly InputFile[], fromLine: number): { file: InputFile; line: number } {
  const { last } = done;
  return { file: last?.file ?? (files[0] as InputFile), line: last === undefined ? fromLine : last.line + 1 };
}

interface StopContext {
  readonly files: readonly InputFile[];
  readonly fromLine: number;
  /** A sentence of advice about the bad row; undefined for none. */
  readonly advice?: string | undefined;
  /** The options to leave out when the import continues, such as ` and without --create`. */
  readonly without?: string;
}

function print({ terminal, signal }: Session, { done, file, cause }: ImportStopped, context: StopContext): void {
  const { files, fromLine, advice, without = '' } = context;
  const { message } = cause as Error;
  const next = nextOf(done, files, fromLine);
  if (terminal.json) {
    const position =
      cause instanceof LineError ? { badLine: cause.line, badColumn: cause.column ?? null } : { badLine: null };
    terminal.printJson({
      rows: done.rows,
      importedToLine: done.last?.line ?? 0,
      file: file?.name ?? null,
      ...position,
      message,
      ...defined({ advice }),
      resumeFromFile: next.file.name,
      resumeFromLine: next.line,
    });
    return;
  }
  const where = cause instanceof LineError && file !== undefined ? `${describePosition(file.name, cause)}: ` : '';
  if (signal.aborted) terminal.tell('Interrupted.');
  else terminal.tell(`${terminal.styleMessage('red', 'error')}: ${where}${message}`);
  if (advice !== undefined) terminal.tell(advice);
  if (done.last === undefined) {
    terminal.tell('Nothing was imported.');
    return;
  }
  const of = files.length > 1 ? ` of ${next.file.name}` : '';
  const more = files.length > 1 ? ` --from-file ${next.file.name}` : '';
  terminal.tell(
    `${plural(done.rows, 'row')} up to line ${done.last.line}${of} are imported, and nothing after it. Continue with${more} --from-line ${next.line}${without}.`,
  );
}

/** Prints why an import stopped and where it can continue. Throws a `UsageError` that stopped it. */
function reportStop(session: Session, stopped: ImportStopped, context: StopContext): ExitCode {
  const { cause } = stopped;
  if (cause instanceof UsageError) throw cause;
  print(session, stopped, context);
  if (session.signal.aborted) return ExitCode.interrupted;
  return cause instanceof LineError ? ExitCode.found : ExitCode.failed;
}

/** Prints how many rows were imported. `more`: further properties of the JSON. */
function reportDone({ terminal }: Session, done: Imported, rejected: number, table: string, more = {}): void {
  if (terminal.json) {
    terminal.printJson({ rows: done.rows, skipped: done.skipped, rejected, ...more });
    return;
  }
  terminal.print(`${plural(done.rows, 'row')} imported into ${table}.`);
  if (done.skipped > 0) terminal.tell(`${plural(done.skipped, 'row')} left out: the table has them already.`);
  if (rejected > 0) terminal.tell(`${plural(rejected, 'bad row')} left out.`);
}
