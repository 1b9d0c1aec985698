import { databasePositional, command, tablePositional } from '../command.ts';
import type { Command, Session } from '../command.ts';
import { ExitCode, UsageError } from '../exit-code.ts';
import { plural } from '../figures.ts';
import { parseRenames } from '../input/columns.ts';
import { quoteRules } from '../input/csv-parser.ts';
import { encodingNames } from '../input/encodings.ts';
import { largeIntegerRules } from '../input/exact-json.ts';
import { timeUnits } from '../input/field-values.ts';
import { inputFiles } from '../input/input-files.ts';
import type { InputFile } from '../input/input-files.ts';
import { describePosition, LineError } from '../input/line-error.ts';
import { Rejects } from '../input/rejects.ts';
import { badRowRules, ImportStopped, modes, RowImport } from '../input/row-import.ts';
import type { Imported } from '../input/row-import.ts';
import { inputFormatOf, inputFormats } from '../input/row-reader.ts';
import type { ReadOptions } from '../input/row-reader.ts';
import { newPlaceOf } from '../open-database.ts';
import type { OpenDatabase } from '../open-database.ts';
import { readSchemaFile } from '../schema-text.ts';
import type { SchemaDefinition } from '../../table/schema.ts';

/** How files are read. */
const readingOptions = {
  format: { choices: inputFormats, describe: 'Default: by the name of the file, else ndjson' },
  encoding: { choices: encodingNames, describe: 'Default: by the mark at the beginning, else utf-8' },
  delimiter: {
    type: 'string',
    describe: 'What separates fields of CSV; \\t is a tab. Default: a comma, or what the first line has in its place',
  },
  quotes: {
    choices: quoteRules,
    default: 'strict',
    describe: 'Quotes in CSV: strict refuses stray ones, lenient takes those as text, none takes all so',
  },
  header: { type: 'boolean', default: true, describe: 'The first line of CSV names the columns' },
  columns: { type: 'string', describe: 'Columns to take, by commas; without a header: their names, in their order' },
  rename: { type: 'string', array: true, requiresArg: true, describe: 'column=field: which field a column goes to' },
  'ignore-extra': { type: 'boolean', default: false, describe: 'Leave out columns that no field is named like' },
  null: { type: 'string', array: true, requiresArg: true, describe: 'Text without quotes that stands for null in CSV' },
  'time-unit': {
    choices: timeUnits,
    describe: 'What numbers in timestamps count; default: ms, of years from 1973 to 2200',
  },
  'large-integers': {
    choices: largeIntegerRules,
    default: 'refuse',
    describe: 'Integers beyond 2^53 within json: refuse them, keep their digits as text, or round',
  },
} as const;

interface ReadingArguments {
  readonly format: ReadOptions['format'] | undefined;
  readonly encoding: ReadOptions['encoding'];
  readonly delimiter: string | undefined;
  readonly quotes: NonNullable<ReadOptions['quotes']>;
  readonly header: boolean;
  readonly columns: string | undefined;
  readonly rename: readonly string[] | undefined;
  readonly 'ignore-extra': boolean;
  readonly null: readonly string[] | undefined;
  readonly 'time-unit': NonNullable<ReadOptions['values']>['timeUnit'];
  readonly 'large-integers': NonNullable<ReadOptions['values']>['largeIntegers'];
}

/** How each file is read. Throws `UsageError`. */
function readOptionsOf(args: ReadingArguments): (file: InputFile) => ReadOptions {
  const { format, encoding, quotes, header: hasHead, null: nulls = [] } = args;
  const delimiter = args.delimiter?.replaceAll('\\t', '\t');
  if (delimiter !== undefined && (delimiter === '' || /["\r\n]/.test(delimiter))) {
    throw new UsageError('--delimiter takes one character or several, and neither quotes nor line ends.');
  }
  const columns = {
    columns: args.columns?.split(',').map((name) => name.trim()),
    renames: parseRenames(args.rename ?? []),
    ignoreExtra: args['ignore-extra'],
  };
  const values = { largeIntegers: args['large-integers'], timeUnit: args['time-unit'] };
  return ({ path }) => ({
    format: format ?? inputFormatOf(path) ?? 'ndjson',
    encoding,
    delimiter,
    quotes,
    hasHead,
    nulls,
    columns,
    values,
  });
}

/** Where to go on after what is done. */
function nextOf(done: Imported, files: readonly InputFile[], fromLine: number): { file: InputFile; line: number } {
  const { last } = done;
  return { file: last?.file ?? (files[0] as InputFile), line: last === undefined ? fromLine : last.line + 1 };
}

function reportStop(
  { terminal, signal }: Session,
  { done, file, cause }: ImportStopped,
  files: readonly InputFile[],
  fromLine: number,
): void {
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
      resumeFromFile: next.file.name,
      resumeFromLine: next.line,
    });
    return;
  }
  const where = cause instanceof LineError && file !== undefined ? `${describePosition(file.name, cause)}: ` : '';
  if (signal.aborted) terminal.tell('Interrupted.');
  else terminal.tell(`${terminal.styleMessage('red', 'error')}: ${where}${message}`);
  if (done.last === undefined) {
    terminal.tell('Nothing was imported.');
    return;
  }
  const of = files.length > 1 ? ` of ${next.file.name}` : '';
  const more = files.length > 1 ? ` --from-file ${next.file.name}` : '';
  terminal.tell(
    `${plural(done.rows, 'row')} up to line ${done.last.line}${of} are imported, and nothing after it. Go on with${more} --from-line ${next.line}.`,
  );
}

function reportDone({ terminal }: Session, done: Imported, rejected: number, table: string): void {
  if (terminal.json) {
    terminal.printJson({ rows: done.rows, skipped: done.skipped, rejected });
    return;
  }
  terminal.print(`${plural(done.rows, 'row')} imported into ${table}.`);
  if (done.skipped > 0) terminal.tell(`${plural(done.skipped, 'row')} left out that the table has already.`);
  if (rejected > 0) terminal.tell(`${plural(rejected, 'bad row')} left out.`);
}

async function openTarget(session: Session, url: string, schema: SchemaDefinition | undefined): Promise<OpenDatabase> {
  if (schema === undefined) return session.open(url, 'writer');
  const place = await session.place(url).catch((error: unknown) => {
    if (!(error instanceof UsageError)) throw error;
    return newPlaceOf(url);
  });
  return session.openAt(place, 'writer', { create: true });
}

/** The files from the one on that is named. Throws `UsageError`. */
function filesFrom(files: readonly InputFile[], name: string | undefined): readonly InputFile[] {
  if (name === undefined) return files;
  const at = files.findIndex((file) => file.name === name);
  if (at !== -1) return files.slice(at);
  throw new UsageError(`--from-file ${name} is none of the files: ${files.map((file) => file.name).join(', ')}.`);
}

/** `import`: rows of files into a table. */
export const importTable: Command = command({
  name: 'import',
  summary: 'Read rows from CSV, NDJSON or JSON into a table; a bad line is named, and nothing is lost',
  positionals: {
    ...databasePositional,
    ...tablePositional,
    files: { type: 'string', array: true, describe: 'Files to read, or patterns in quotes; default, and -: the input' },
  },
  options: {
    ...readingOptions,
    schema: { type: 'string', describe: 'File with the schema as JSON, where the table does not exist yet' },
    mode: { choices: modes, default: 'insert', describe: 'What is done with each row' },
    'on-bad-row': {
      choices: badRowRules,
      default: 'refuse',
      describe: 'refuse: check all files before anything is written; stop: write what comes before; skip: leave it out',
    },
    rejects: { type: 'string', describe: 'File for what is wrong with rows that are left out, as NDJSON' },
    'from-file': { type: 'string', describe: 'Leave out the files before this one' },
    'from-line': { type: 'number', default: 1, describe: 'Leave out what ends before this line of the first file' },
    'rows-per-flush': { type: 'number', default: 10_000, describe: 'Rows that are committed together' },
    blobs: { type: 'string', describe: 'Folder with the blobs, as export saved them' },
  },
  examples: [
    ['import file:./data#shop cities cities.csv --schema cities.json', 'into a table that is made for it'],
    ['import file:./data cities "2026/*.csv.gz" --mode upsert --encoding windows-1252', 'many files'],
  ],
  run: async (session, args) => {
    const { database, table, mode, blobs, 'from-line': fromLine, 'rows-per-flush': rowsPerFlush } = args;
    if (!Number.isSafeInteger(rowsPerFlush) || rowsPerFlush < 1)
      throw new UsageError('--rows-per-flush must be at least 1.');
    const onBadRow = args['on-bad-row'];
    if (args.rejects !== undefined && onBadRow !== 'skip') throw new UsageError('--rejects needs --on-bad-row skip.');
    const readOptions = readOptionsOf(args);
    const files = filesFrom(await inputFiles(args.files ?? []), args['from-file']);
    const written = args.schema === undefined ? undefined : await readSchemaFile(args.schema);
    if (written !== undefined && written.name !== table) {
      throw new UsageError(`The schema in ${args.schema as string} is of table ${written.name}, not of ${table}.`);
    }
    await using opened = await openTarget(session, database, written);
    if (written !== undefined) opened.db.registerSchema(written);
    const schema = written ?? opened.table(table);
    await using rejects = new Rejects(args.rejects);
    const common = { session, db: opened.db, schema, files, readOptions, rejects, rowsPerFlush };
    const work = new RowImport({ ...common, mode, onBadRow, fromLine, blobs });
    try {
      if (onBadRow === 'refuse' && files.every(({ isRegular }) => isRegular)) await work.check();
      const done = await work.run();
      await opened.db.checkpoint();
      reportDone(session, done, rejects.count, table);
      return rejects.count > 0 ? ExitCode.found : ExitCode.done;
    } catch (error) {
      if (!(error instanceof ImportStopped)) throw error;
      const { cause } = error;
      if (cause instanceof UsageError) throw cause;
      reportStop(session, error, files, fromLine);
      if (session.signal.aborted) return ExitCode.interrupted;
      return cause instanceof LineError ? ExitCode.found : ExitCode.failed;
    }
  },
});
