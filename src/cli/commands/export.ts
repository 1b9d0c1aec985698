import { mkdir } from 'node:fs/promises';
import path from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { defaultContentType } from '../../blob/blob-value.ts';
import { Types } from '../../format/types.ts';
import type { Snapshot } from '../../api/snapshot.ts';
import { keyNamesOf } from '../../schema/schema.ts';
import { command, databasePositional, tablePositional } from '../database/command.ts';
import type { Command, Session } from '../database/command.ts';
import { ExitCode, UsageError } from '../terminal/exit-code.ts';
import { exportOutput, openTarget, ParquetOutput } from '../output/export-output.ts';
import type { ExportOutput } from '../output/export-output.ts';
import { typeFileOf } from '../input/blob-files.ts';
import { plural } from '../terminal/figures.ts';
import { queryFrom, queryOptions } from '../language/asked-query.ts';
import type { AskedQuery, QueryArguments } from '../language/asked-query.ts';
import { Progress } from '../terminal/progress.ts';
import { formulaStarts, kindOf, namedFile, outputFormats, refuseOtherFormat, TextOutput } from '../output/records.ts';
import type { RowOutput } from '../output/records.ts';

/** The number of rows between updates of the progress bar. */
const rowsPerStep = 1000;

/** Writes a file as a whole. */
async function writeWhole(file: string, content: Readable, signal: AbortSignal): Promise<void> {
  const target = await openTarget(file, signal);
  try {
    await pipeline(content, target.stream, { signal });
    await target.keep();
  } catch (error) {
    await target.discard();
    throw error;
  }
}

/** Copies the blobs of a row into a folder, each under its reference, with its media type beside it. */
async function saveBlobs(
  snapshot: Snapshot,
  references: readonly unknown[],
  folder: string,
  signal: AbortSignal,
): Promise<void> {
  for (const reference of references) {
    if (typeof reference !== 'string') continue;
    const file = path.join(folder, reference);
    const record = await snapshot.query('_blobs').where('id', '=', reference).first({ signal });
    const contentType = record?.['contentType'] ?? defaultContentType;
    if (typeof contentType === 'string' && contentType !== defaultContentType)
      await writeWhole(typeFileOf(file), Readable.from([contentType]), signal);
    await writeWhole(file, snapshot.getBlob(reference).stream(undefined, undefined, { signal }), signal);
  }
}

interface Exported {
  readonly rows: number;
  readonly blobs: number;
  /** The number of texts that a spreadsheet would run as formulas. */
  readonly formulas: number;
}

interface Copying {
  readonly asked: AskedQuery;
  readonly output: ExportOutput;
  readonly writer: RowOutput;
  readonly progress: Progress;
  readonly blobs: string | undefined;
}

async function copyRows(
  { signal }: Session,
  snapshot: Snapshot,
  { asked, output, writer, progress, blobs }: Copying,
): Promise<Exported> {
  const blobFields = asked.columns.flatMap(({ from, typeId }) => (typeId === Types.blob ? [from] : []));
  let rows = 0;
  let saved = 0;
  for await (const row of asked.answers(signal)) {
    signal.throwIfAborted();
    if (blobFields.length > 0) {
      const references = blobFields.map((name) => row[name]).filter((reference) => reference !== null);
      if (blobs !== undefined) await saveBlobs(snapshot, references, blobs, signal);
      saved += references.length;
    }
    const piece = writer.add(row);
    if (piece !== undefined) await output.write(piece);
    if (++rows % rowsPerStep === 0) progress.set(rows);
  }
  await output.write(writer.end());
  return { rows, blobs: saved, formulas: writer.formulas };
}

/** Starts a progress bar. With a condition, the number of rows is not known in advance. */
async function progressOf(
  session: Session,
  asked: AskedQuery,
  args: QueryArguments,
  hidden: boolean,
): Promise<Progress> {
  const { terminal, signal } = session;
  const isKnown = (args.where ?? []).length === 0 && terminal.showsProgress && !hidden;
  const total = isKnown ? await asked.query.count({ signal }) : undefined;
  return new Progress(terminal, { what: `exporting ${asked.schema.name}`, total, unit: 'rows', hidden });
}

/** `export`: writes the rows of a table at one moment to a file. */
export const exportTable: Command = command({
  name: 'export',
  summary: 'Write a table as NDJSON, JSON, CSV, TSV or Parquet, as it is at one moment',
  positionals: {
    ...databasePositional,
    ...tablePositional,
    file: { type: 'string', describe: 'File to write; -, and the default: standard output', coerce: namedFile },
  },
  options: {
    format: { choices: outputFormats, describe: 'Format of the file; default: by the file name, else ndjson' },
    gzip: { type: 'boolean', describe: 'Compress the file; default: if its name ends with .gz' },
    columns: { type: 'string', describe: 'Fields to write, separated by commas; default: all' },
    ...queryOptions,
    blobs: {
      type: 'string',
      describe: 'Folder for the blobs, each in a file named by its reference, and media types beside them',
    },
    'defuse-formulas': {
      type: 'boolean',
      default: false,
      describe:
        "Put ' before CSV texts that spreadsheets would run as formulas; import reads the ' as part of the text",
    },
  },
  examples: [
    ['export file:./data cities cities.csv', 'all rows, in the order of their primary keys'],
    [`export file:./data cities large.json.gz --columns id,name --where "people > 1000000"`, 'some rows, as an array'],
  ],
  run: async (session, { database, table, file, blobs, columns, ...args }) => {
    const { terminal, signal } = session;
    const named = kindOf(file);
    if (args.format === undefined && named.format === undefined) refuseOtherFormat(file);
    const format = args.format ?? named.format ?? 'ndjson';
    const isText = format !== 'parquet';
    const gzip = args.gzip ?? named.gzip ?? false;
    if (gzip && !isText)
      throw new UsageError('Parquet is compressed internally: leave out --gzip, and .gz at the end of the name.');
    const defusesFormulas = args['defuse-formulas'];
    await using opened = await session.open(database, 'writer');
    const schema = opened.table(table);
    await using snapshot = await opened.db.snapshot({ signal });
    const { where, order, limit, offset } = args;
    const query = { where, order, limit, offset, fields: columns };
    const asked = queryFrom(opened, schema.name, query, (name) => snapshot.query(name));
    if (blobs !== undefined) await mkdir(blobs, { recursive: true });
    const output = await exportOutput(terminal, { file, gzip, isText, signal });
    try {
      const writer = isText
        ? new TextOutput(format, asked.columns, { defusesFormulas })
        : await ParquetOutput.for(asked.columns, keyNamesOf(schema));
      using progress = await progressOf(session, asked, query, file === undefined);
      const exported = await copyRows(session, snapshot, { asked, output, writer, progress, blobs });
      await output.keep();
      reportDone(session, exported, { file, blobs, defusesFormulas });
      return ExitCode.done;
    } catch (error) {
      await output.discard();
      throw error;
    }
  },
});

function reportDone(
  { terminal }: Session,
  exported: Exported,
  { file, blobs, defusesFormulas }: { file: string | undefined; blobs: string | undefined; defusesFormulas: boolean },
): void {
  if (terminal.json && file !== undefined) {
    terminal.printJson(exported);
    return;
  }
  const where = file === undefined ? '' : ` to ${file}`;
  terminal.tell(`${plural(exported.rows, 'row')} exported${where}.`);
  if (exported.formulas > 0 && !defusesFormulas) {
    terminal.tell(
      `A spreadsheet would run ${plural(exported.formulas, 'text')} as formulas, since they begin with one of ${formulaStarts}: ` +
        "--defuse-formulas puts ' before each.",
    );
  }
  if (exported.blobs > 0 && blobs === undefined) {
    terminal.tell(
      `Only the references of ${plural(exported.blobs, 'blob')} were exported: --blobs <folder> saves the blobs.`,
    );
  }
}
