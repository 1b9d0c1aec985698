/** What an export writes to: a file or the output, as it is or compressed. */
import { once } from 'node:events';
import { constants, createWriteStream } from 'node:fs';
import type { Stats, WriteStream } from 'node:fs';
import { open, readlink, rename, rm, stat } from 'node:fs/promises';
import type { FileHandle } from 'node:fs/promises';
import path from 'node:path';
import { finished } from 'node:stream/promises';
import { setTimeout as wait } from 'node:timers/promises';
import { createGzip } from 'node:zlib';
import type { Gzip } from 'node:zlib';
import type { SchemaElement } from 'hyparquet';
import type { ColumnSource } from 'hyparquet-writer';
import { isBytes } from '../../base/brands.ts';
import { Types } from '../../format/types.ts';
import type { TypeId } from '../../format/types.ts';
import type { AnswerColumn } from '../language/asked-query.ts';
import { OutputError, UsageError } from '../terminal/exit-code.ts';
import type { Terminal } from '../terminal/terminal.ts';
import type { RowOutput } from './records.ts';

export interface ExportOutput {
  /** Takes a part, and waits while there is no room for more. Rejects with `OutputError`. */
  readonly write: (part: string | Uint8Array) => Promise<void>;
  /** Keeps what was written; without it nothing stays in a file. */
  readonly keep: () => Promise<void>;
  readonly discard: () => Promise<void>;
}

/** A file, or what else a name stands for. Throws `UsageError`. */
async function fileOutput(file: string, signal: AbortSignal): Promise<ExportOutput> {
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
    write: async (part) => {
      if (stream.errored !== null) throw new OutputError(file, stream.errored);
      if (!stream.write(part)) await orTold(once(stream, 'drain'));
    },
    keep: () => orTold(keep()),
    discard,
  };
}

function terminalOutput(terminal: Terminal): ExportOutput {
  const nothing = async (): Promise<void> => undefined;
  return {
    write: async (part) => {
      if (typeof part === 'string') terminal.write(part);
      else terminal.writeBytes(part);
      await terminal.drained();
    },
    keep: nothing,
    discard: nothing,
  };
}

/** Passes on what the compressor has made, as fast as it is taken. */
async function passOn(gzip: Gzip, to: ExportOutput): Promise<void> {
  try {
    for await (const part of gzip) await to.write(part as Buffer);
  } catch (error) {
    // Nobody waits for room in it any more.
    gzip.destroy(error as Error);
    throw error;
  }
}

/** Compresses what is written. */
function compressed(to: ExportOutput): ExportOutput {
  const gzip = createGzip();
  gzip.on('error', () => undefined);
  const passed = passOn(gzip, to);
  // Its error is that of the next write, or of the end.
  passed.catch(() => undefined);
  return {
    write: async (part) => {
      if (gzip.destroyed) await passed;
      if (!gzip.write(part)) await Promise.race([once(gzip, 'drain'), passed]);
    },
    keep: async () => {
      gzip.end();
      await passed;
      await to.keep();
    },
    discard: async () => {
      gzip.destroy();
      await passed.catch(() => undefined);
      await to.discard();
    },
  };
}

export interface OutputOptions {
  /** Undefined: the output. */
  readonly file: string | undefined;
  readonly gzip: boolean;
  /** Whether text is written, which a terminal can show. */
  readonly isText: boolean;
  readonly signal: AbortSignal;
}

/** Throws `UsageError`. */
export async function exportOutput(
  terminal: Terminal,
  { file, gzip, isText, signal }: OutputOptions,
): Promise<ExportOutput> {
  if (file === undefined && terminal.output.isTTY === true && (gzip || !isText)) {
    throw new UsageError(
      'The export would not be text, and a terminal may obey it: name a file, or send it into a pipe.',
    );
  }
  const output = file === undefined ? terminalOutput(terminal) : await fileOutput(file, signal);
  return gzip ? compressed(output) : output;
}

// Where an export goes: a file that has its name once it is whole, or what only takes bytes: a pipe, a device, the output.

export interface WritableTarget {
  readonly stream: WriteStream;
  /** Keeps what was written; without it nothing stays in a file. */
  readonly keep: () => Promise<void>;
  readonly discard: () => Promise<void>;
}

/** Links that lead to links, as many as systems follow. */
const maxLinks = 40;

/** The file that a name stands for, through links, whether or not it is there. */
async function behindLinks(file: string): Promise<string> {
  let at = path.resolve(file);
  for (let link = 0; link < maxLinks; link++) {
    let to: string;
    try {
      to = await readlink(at);
    } catch (error) {
      // No link, or nothing yet.
      if (['EINVAL', 'ENOENT', 'UNKNOWN'].includes((error as NodeJS.ErrnoException).code ?? '')) return at;
      throw error;
    }
    at = path.resolve(path.dirname(at), to);
  }
  throw new UsageError(`${file} is a link that leads to itself.`);
}

async function statusOf(file: string): Promise<Stats | undefined> {
  try {
    return await stat(file);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}

const pollMs = 50;

/**
 * Waits until somebody reads a named pipe: opening it before would hold a thread, and this process, for as long. Gives a handle
 * that keeps the reader from taking its close for the end.
 */
async function untilRead(pipe: string, signal: AbortSignal): Promise<FileHandle> {
  for (;;) {
    try {
      return await open(pipe, constants.O_WRONLY | constants.O_NONBLOCK);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENXIO') throw error;
      await wait(pollMs, undefined, { signal });
    }
  }
}

/** Opens what is no regular file, as it is. */
async function openDirectly(file: string, status: Stats, signal: AbortSignal): Promise<WritableTarget> {
  if (status.isDirectory()) throw new UsageError(`${file} is a folder: name a file in it.`);
  if (status.isSocket()) throw new UsageError(`${file} is a socket, and an export takes a file, a pipe or a device.`);
  const held = status.isFIFO() ? await untilRead(file, signal) : undefined;
  const stream = createWriteStream(file, { flags: 'w' });
  try {
    await once(stream, 'open');
  } finally {
    await held?.close();
  }
  return {
    stream,
    keep: async () => {
      stream.end();
      await finished(stream);
    },
    discard: async () => {
      stream.destroy();
    },
  };
}

/**
 * Opens what a name stands for. A regular file, or one that is not there, is written beside its place, and takes it when it is
 * whole: behind a link, which stays. Everything else is written to. Throws `UsageError`.
 */
export async function openTarget(named: string, signal: AbortSignal): Promise<WritableTarget> {
  const status = await statusOf(named);
  if (status !== undefined && !status.isFile()) return openDirectly(named, status, signal);
  const file = await behindLinks(named);
  const partial = `${file}.partial`;
  // A new file, and not what a link leads to that somebody has put there. What an export before left behind is gone.
  await rm(partial, { force: true });
  const stream = createWriteStream(partial, { flags: 'wx' });
  try {
    await once(stream, 'open');
  } catch (error) {
    const isMissing = (error as NodeJS.ErrnoException).code === 'ENOENT';
    throw isMissing
      ? new UsageError(`There is no folder ${path.dirname(file)} for ${named}: make it first.`)
      : new OutputError(named, error as Error);
  }
  return {
    stream,
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

// Writes rows as a Parquet file.

/** Rows that are written together are no more than that. */
const maxRows = 100_000;
/** And their values take no more than about so many bytes, but for a single row. */
const maxBytes = 16 * 1024 * 1024;

type Kind = Omit<SchemaElement, 'name'>;

function integer(bitWidth: 8 | 16 | 32 | 64, isSigned: boolean): Kind {
  return {
    type: bitWidth === 64 ? 'INT64' : 'INT32',
    // The writer's logical types of integers have a width that other readers refuse.
    converted_type: `${isSigned ? '' : 'U'}INT_${bitWidth}`,
  };
}

const uuid: Kind = { type: 'FIXED_LEN_BYTE_ARRAY', type_length: 16, logical_type: { type: 'UUID' } };

/** How values of a type are stored: every type has one in Parquet that holds it exactly. */
const kinds: Readonly<Record<TypeId, Kind>> = {
  [Types.uint8]: integer(8, false),
  [Types.uint16]: integer(16, false),
  [Types.uint32]: integer(32, false),
  [Types.uint64]: integer(64, false),
  [Types.int8]: integer(8, true),
  [Types.int16]: integer(16, true),
  [Types.int32]: integer(32, true),
  [Types.int64]: integer(64, true),
  [Types.float64]: { type: 'DOUBLE' },
  [Types.float32]: { type: 'FLOAT' },
  [Types.varchar]: { type: 'BYTE_ARRAY', converted_type: 'UTF8', logical_type: { type: 'STRING' } },
  [Types.boolean]: { type: 'BOOLEAN' },
  [Types.timestamp]: {
    type: 'INT64',
    converted_type: 'TIMESTAMP_MILLIS',
    logical_type: { type: 'TIMESTAMP', isAdjustedToUTC: true, unit: 'MILLIS' },
  },
  [Types.json]: { type: 'BYTE_ARRAY', converted_type: 'JSON', logical_type: { type: 'JSON' } },
  [Types.uuid]: uuid,
  [Types.blob]: uuid,
  [Types.bytes]: { type: 'BYTE_ARRAY' },
};

/** About how many bytes a value takes. */
function sizeOf(value: unknown): number {
  return typeof value === 'string' || isBytes(value) ? value.length : 8;
}

/** What comes out of a writer, piece by piece. */
interface Sink {
  readonly write: (columns: ColumnSource[], rows: number) => void;
  readonly finish: () => void;
  /** What was written since the last time. */
  readonly take: () => Uint8Array;
}

/** `key`: the fields that are never null. */
async function sinkFor(columns: readonly AnswerColumn[], key: readonly string[]): Promise<Sink> {
  const { ByteWriter, ParquetWriter } = await import('hyparquet-writer');
  const bytes = new ByteWriter();
  const fields = columns.map(({ name, from, typeId }): SchemaElement => {
    return {
      name,
      ...kinds[typeId],
      repetition_type: from !== undefined && key.includes(from) ? 'REQUIRED' : 'OPTIONAL',
    };
  });
  const root = { name: 'root', num_children: fields.length };
  // JSON comes as bytes, which the writer is not to take for values that it makes JSON of.
  const written = fields.map((field): SchemaElement => {
    const { converted_type: converted, logical_type: _, ...stored } = field;
    return converted === 'JSON' ? stored : field;
  });
  const writer = new ParquetWriter({
    writer: bytes,
    schema: [root, ...written],
    codec: 'SNAPPY',
    createdBy: 'store-db',
  });
  return {
    write: (columnData, rows) => {
      // Nothing waits: it is written to memory.
      void writer.write({ columnData, rowGroupSize: rows });
    },
    finish: () => {
      writer.schema = [root, ...fields];
      void writer.finish();
    },
    take: () => {
      const taken = bytes.getBytes().slice();
      bytes.index = 0;
      return taken;
    },
  };
}

/** Rows in groups: one is in memory at once. */
export class ParquetOutput implements RowOutput {
  /** Nothing runs what is in such a file. */
  readonly formulas = 0;
  readonly #columns: readonly AnswerColumn[];
  readonly #sink: Sink;
  #values: unknown[][];
  #rows = 0;
  #bytes = 0;

  private constructor(columns: readonly AnswerColumn[], sink: Sink) {
    this.#columns = columns;
    this.#sink = sink;
    this.#values = columns.map(() => []);
  }

  static async for(columns: readonly AnswerColumn[], key: readonly string[]): Promise<ParquetOutput> {
    return new ParquetOutput(columns, await sinkFor(columns, key));
  }

  add(row: Readonly<Record<string, unknown>>): Uint8Array | undefined {
    this.#columns.forEach(({ from, typeId }, i) => {
      const found = row[from] ?? null;
      const value = typeId === Types.json && found !== null ? Buffer.from(JSON.stringify(found)) : found;
      this.#values[i]?.push(value);
      this.#bytes += sizeOf(value);
    });
    this.#rows++;
    return this.#rows >= maxRows || this.#bytes >= maxBytes ? this.#group() : undefined;
  }

  end(): Uint8Array {
    const last = this.#rows > 0 ? this.#group() : new Uint8Array();
    this.#sink.finish();
    return Buffer.concat([last, this.#sink.take()]);
  }

  #group(): Uint8Array {
    const columns = this.#columns.map(({ name, typeId }, i): ColumnSource => {
      // A dictionary would take zeros of either sign for one value.
      const isFloat = typeId === Types.float64 || typeId === Types.float32;
      const data = this.#values[i] as unknown[];
      return { name, data, ...(isFloat && { encoding: 'PLAIN' }), ...(typeId === Types.json && { statistics: false }) };
    });
    this.#sink.write(columns, this.#rows);
    this.#values = this.#columns.map(() => []);
    this.#rows = 0;
    this.#bytes = 0;
    return this.#sink.take();
  }
}
