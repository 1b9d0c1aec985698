import { mkdir } from 'node:fs/promises';
import path from 'node:path';
import { once } from 'node:events';
import { pipeline } from 'node:stream/promises';
import { Types } from '../../format/types.ts';
import type { Snapshot } from '../../snapshot.ts';
import type { SchemaDefinition } from '../../table/schema.ts';
import { command, databasePositional, tablePositional } from '../command.ts';
import type { Command, Session } from '../command.ts';
import { ExitCode, OutputError } from '../exit-code.ts';
import { openTarget } from '../export-target.ts';
import { plural } from '../figures.ts';
import { Progress } from '../progress.ts';
import { formatOf, formats, formulaStarts, namedFile, RecordWriter } from '../records.ts';

/** What is written is gathered into pieces of about that many characters. */
const pieceLength = 64 * 1024;

interface ExportTarget {
  readonly isOutput: boolean;
  readonly write: (text: string) => Promise<void>;
  /** Keeps what was written; without it nothing stays. */
  readonly keep: () => Promise<void>;
  readonly discard: () => Promise<void>;
}

async function fileTarget(file: string, signal: AbortSignal): Promise<ExportTarget> {
  const { stream, keep, discard } = await openTarget(file, signal);
  const orTold = async (work: Promise<unknown>): Promise<void> => {
    try {
      await work;
    } catch (error) {
      throw new OutputError(file, error as Error);
    }
  };
  // Told by the next write, or at the end.
  stream.on('error', () => undefined);
  return {
    isOutput: false,
    write: async (text) => {
      if (stream.errored !== null) throw new OutputError(file, stream.errored);
      if (!stream.write(text)) await orTold(once(stream, 'drain'));
    },
    keep: () => orTold(keep()),
    discard,
  };
}

function outputTarget({ terminal }: Session): ExportTarget {
  const nothing = async (): Promise<void> => undefined;
  return {
    isOutput: true,
    write: async (text) => {
      terminal.write(text);
      await terminal.drained();
    },
    keep: nothing,
    discard: nothing,
  };
}

/** Copies the blobs of a row into a folder, each under its reference. */
async function saveBlobs(
  snapshot: Snapshot,
  references: readonly unknown[],
  folder: string,
  signal: AbortSignal,
): Promise<void> {
  for (const reference of references) {
    if (typeof reference !== 'string') continue;
    const file = path.join(folder, reference);
    const blob = snapshot.getBlob(reference).stream(undefined, undefined, { signal });
    const target = await openTarget(file, signal);
    try {
      await pipeline(blob, target.stream, { signal });
      await target.keep();
    } catch (error) {
      await target.discard();
      throw error;
    }
  }
}

interface Exported {
  readonly rows: number;
  readonly blobs: number;
  /** Texts that a spreadsheet takes for formulas. */
  readonly formulas: number;
}

async function copyRows(
  session: Session,
  snapshot: Snapshot,
  schema: SchemaDefinition,
  { writer, target, blobs }: { writer: RecordWriter; target: ExportTarget; blobs: string | undefined },
): Promise<Exported> {
  const { terminal, signal } = session;
  const blobFields = Object.entries(schema.fields).flatMap(([name, { typeId }]) =>
    typeId === Types.blob ? [name] : [],
  );
  const total = await snapshot.query(schema.name).count({ signal });
  using progress = new Progress(terminal, { what: `exporting ${schema.name}`, total, hidden: target.isOutput });
  let piece = writer.head;
  let rows = 0;
  let saved = 0;
  for await (const row of snapshot.query(schema.name)) {
    signal.throwIfAborted();
    const fields = row;
    const references = blobFields.map((name) => fields[name]).filter((reference) => reference !== null);
    if (blobs !== undefined) await saveBlobs(snapshot, references, blobs, signal);
    saved += references.length;
    piece += writer.line(fields);
    rows++;
    if (piece.length < pieceLength) continue;
    await target.write(piece);
    piece = '';
    progress.set(rows);
  }
  await target.write(piece);
  return { rows, blobs: saved, formulas: writer.formulas };
}

/** `export`: a table as a file, as it is at one moment. */
export const exportTable: Command = command({
  name: 'export',
  summary: 'Write a table as NDJSON or CSV, as it is at one moment',
  positionals: {
    ...databasePositional,
    ...tablePositional,
    file: { type: 'string', describe: 'File to write; default, and -: the output', coerce: namedFile },
  },
  options: {
    format: { choices: formats, describe: 'Default: by the name of the file, else ndjson' },
    blobs: { type: 'string', describe: 'Folder for the blobs, each in a file named by its reference' },
    'defuse-formulas': {
      type: 'boolean',
      default: false,
      describe: "Put ' before texts in CSV that spreadsheets take for formulas; import then reads it as a part of them",
    },
  },
  examples: [['export file:./data cities cities.csv', 'all rows, in the order of their primary keys']],
  run: async (session, { database, table, file, format = formatOf(file) ?? 'ndjson', blobs, ...more }) => {
    const { terminal, signal } = session;
    const defusesFormulas = more['defuse-formulas'];
    await using opened = await session.open(database, 'writer');
    const schema = opened.table(table);
    if (blobs !== undefined) await mkdir(blobs, { recursive: true });
    await using snapshot = await opened.db.snapshot({ signal });
    const target = file === undefined ? outputTarget(session) : await fileTarget(file, signal);
    try {
      const writer = new RecordWriter(format, schema, { defusesFormulas });
      const exported = await copyRows(session, snapshot, schema, { writer, target, blobs });
      await target.keep();
      if (terminal.json && file !== undefined) terminal.printJson(exported);
      else {
        const where = file === undefined ? '' : ` to ${file}`;
        terminal.tell(`${plural(exported.rows, 'row')} exported${where}.`);
        if (exported.formulas > 0 && !defusesFormulas) {
          terminal.tell(
            `A spreadsheet would take ${plural(exported.formulas, 'text')} for formulas, as ${formulaStarts} begin them, and ` +
              "run them: --defuse-formulas puts ' before each.",
          );
        }
        if (exported.blobs > 0 && blobs === undefined) {
          terminal.tell(
            `Of ${plural(exported.blobs, 'blob')} only the references: --blobs <folder> saves what they hold.`,
          );
        }
      }
      return ExitCode.done;
    } catch (error) {
      await target.discard();
      throw error;
    }
  },
});
