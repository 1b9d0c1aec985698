import { createWriteStream, rmSync } from 'node:fs';
import type { WriteStream } from 'node:fs';
import { mkdir, rename, rm } from 'node:fs/promises';
import path from 'node:path';
import { once } from 'node:events';
import { finished, pipeline } from 'node:stream/promises';
import { Types } from '../../format/types.ts';
import type { Snapshot } from '../../snapshot.ts';
import type { SchemaDefinition } from '../../table/schema.ts';
import { command, databasePositional, tablePositional } from '../command.ts';
import type { Command, Session } from '../command.ts';
import { ExitCode } from '../exit-code.ts';
import { plural } from '../figures.ts';
import { Progress } from '../progress.ts';
import { formatOf, formats, namedFile, RecordWriter } from '../records.ts';
import type { Format } from '../records.ts';

/** What is written is gathered into pieces of about that many characters. */
const pieceLength = 64 * 1024;

interface ExportTarget {
  readonly isOutput: boolean;
  readonly write: (text: string) => Promise<void>;
  /** Keeps what was written; without it nothing stays. */
  readonly keep: () => Promise<void>;
  readonly discard: () => Promise<void>;
}

/** A new file, and not what a link leads to that somebody has put there. What an export before left behind is gone. */
function createNew(file: string): WriteStream {
  rmSync(file, { force: true });
  return createWriteStream(file, { flags: 'wx' });
}

/** A file that has its name only once it is whole. */
function fileTarget(file: string): ExportTarget {
  const partial = `${file}.partial`;
  const stream = createNew(partial);
  const failed = once(stream, 'error').then(([error]) => {
    throw error;
  });
  failed.catch(() => undefined);
  return {
    isOutput: false,
    write: async (text) => {
      if (!stream.write(text)) await Promise.race([once(stream, 'drain'), failed]);
    },
    keep: async () => {
      stream.end();
      await finished(stream);
      await rename(partial, file);
    },
    discard: async () => {
      stream.destroy();
      await rm(partial, { force: true });
    },
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
    await pipeline(blob, createNew(`${file}.partial`), { signal });
    await rename(`${file}.partial`, file);
  }
}

interface Exported {
  readonly rows: number;
  readonly blobs: number;
}

async function copyRows(
  session: Session,
  snapshot: Snapshot,
  schema: SchemaDefinition,
  { format, target, blobs }: { format: Format; target: ExportTarget; blobs: string | undefined },
): Promise<Exported> {
  const { terminal, signal } = session;
  const blobFields = Object.entries(schema.fields).flatMap(([name, { typeId }]) =>
    typeId === Types.blob ? [name] : [],
  );
  const total = await snapshot.query(schema.name).count({ signal });
  using progress = new Progress(terminal, { what: `exporting ${schema.name}`, total, hidden: target.isOutput });
  const writer = new RecordWriter(format, schema);
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
  return { rows, blobs: saved };
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
  },
  examples: [['export file:./data cities cities.csv', 'all rows, in the order of their primary keys']],
  run: async (session, { database, table, file, format = formatOf(file) ?? 'ndjson', blobs }) => {
    const { terminal, signal } = session;
    await using opened = await session.open(database, 'writer');
    const schema = opened.table(table);
    if (blobs !== undefined) await mkdir(blobs, { recursive: true });
    await using snapshot = await opened.db.snapshot({ signal });
    const target = file === undefined ? outputTarget(session) : fileTarget(file);
    try {
      const exported = await copyRows(session, snapshot, schema, { format, target, blobs });
      await target.keep();
      if (terminal.json && file !== undefined) terminal.printJson(exported);
      else {
        const where = file === undefined ? '' : ` to ${file}`;
        terminal.tell(`${plural(exported.rows, 'row')} exported${where}.`);
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
