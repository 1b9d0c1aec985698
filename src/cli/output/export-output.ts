/** The targets of exports: a file, a pipe, a device or standard output, compressed or not; and the rows of Parquet files. */
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
  /** Writes a part, and waits while the target is full. Rejects with `OutputError`. */
  readonly write: (part: string | Uint8Array) => Promise<void>;
  /** Completes the target. Without this, a file is not created or replaced. */
  readonly keep: () => Promise<void>;
  readonly discard: () => Promise<void>;
}

/** Opens a file, pipe or device by its name. Throws `UsageError`. */
async function fileOutput(file: string, signal: AbortSignal): Promise<ExportOutput> {
  const { stream, keep, discard } = await openTarget(file, signal);
  const orTold = async (work: Promise<unknown>): Promise<void> => {
    try {
      await work;
    } catch (error) {
      throw new OutputError(file, error as Error);
    }
  };
  // The next write reports the error, or `keep`.
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

/** Writes the output of the compressor to the target, as fast as the target takes it. */
async function passOn(gzip: Gzip, to: ExportOutput): Promise<void> {
  try {
    for await (const part of gzip) await to.write(part as Buffer);
  } catch (error) {
    // So that no write waits for room in the compressor any more.
    gzip.destroy(error as Error);
    throw error;
  }
}

/** Wraps an output to compress its parts. */
function compressed(to: ExportOutput): ExportOutput {
  const gzip = createGzip();
  gzip.on('error', () => undefined);
  const passed = passOn(gzip, to);
  // The next write reports its error, or `keep`.
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
  /** Undefined: standard output. */
  readonly file: string | undefined;
  readonly gzip: boolean;
  /** Whether the format is text, which a terminal can show. */
  readonly isText: boolean;
  readonly signal: AbortSignal;
}

/** Opens the output of an export. Throws `UsageError`. */
export async function exportOutput(
  terminal: Terminal,
  { file, gzip, isText, signal }: OutputOptions,
): Promise<ExportOutput> {
  if (file === undefined && terminal.output.isTTY === true && (gzip || !isText)) {
    throw new UsageError(
      'The export would not be text, and could control the terminal: name a file, or redirect it to a pipe.',
    );
  }
  const output = file === undefined ? terminalOutput(terminal) : await fileOutput(file, signal);
  return gzip ? compressed(output) : output;
}

/** A file, which gets its name when it is complete, or a pipe or device. */
export interface WritableTarget {
  readonly stream: WriteStream;
  /** Completes the target. Without this, a file is not created or replaced. */
  readonly keep: () => Promise<void>;
  readonly discard: () => Promise<void>;
}

/** The length of a chain of links that is followed, as in operating systems. */
const maxLinks = 40;

/** Returns the file that a name leads to through links, whether or not it exists. */
async function behindLinks(file: string): Promise<string> {
  let at = path.resolve(file);
  for (let link = 0; link < maxLinks; link++) {
    let to: string;
    try {
      to = await readlink(at);
    } catch (error) {
      // Not a link, or no file yet.
      if (['EINVAL', 'ENOENT', 'UNKNOWN'].includes((error as NodeJS.ErrnoException).code ?? '')) return at;
      throw error;
    }
    at = path.resolve(path.dirname(at), to);
  }
  throw new UsageError(`${file} is a link that leads to itself.`);
}

async function readStatus(file: string): Promise<Stats | undefined> {
  try {
    return await stat(file);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}

const pollMs = 50;

/**
 * Waits until a process reads a named pipe: opening it earlier would block a thread, and this process, until then. Resolves to a
 * handle, which the caller must keep open until it has opened the pipe, so that the reader does not see an end.
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

/** Opens a pipe or device. Throws `UsageError` for a folder or socket. */
async function openDirectly(file: string, status: Stats, signal: AbortSignal): Promise<WritableTarget> {
  if (status.isDirectory()) throw new UsageError(`${file} is a folder: name a file in it.`);
  if (status.isSocket()) throw new UsageError(`${file} is a socket: name a file, a pipe or a device.`);
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
 * Opens a file, pipe or device. A file is written under another name in its folder, and renamed when it is complete, so that an export
 * replaces it as a whole. A link to it stays. Throws `UsageError`.
 */
export async function openTarget(named: string, signal: AbortSignal): Promise<WritableTarget> {
  const status = await readStatus(named);
  if (status !== undefined && !status.isFile()) return openDirectly(named, status, signal);
  const file = await behindLinks(named);
  const partial = `${file}.partial`;
  // Removes the remains of an earlier export. With 'wx' the file must be new, so that a link put there is not followed.
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

/** The maximum number of rows in a group of a Parquet file. */
const maxRows = 100_000;
/** The approximate maximum size of the values of a group, unless a single row is larger. */
const maxBytes = 16 * 1024 * 1024;

type Kind = Omit<SchemaElement, 'name'>;

function integer(bitWidth: 8 | 16 | 32 | 64, isSigned: boolean): Kind {
  return {
    type: bitWidth === 64 ? 'INT64' : 'INT32',
    // Other readers refuse the integer width in the logical types of the writer.
    converted_type: `${isSigned ? '' : 'U'}INT_${bitWidth}`,
  };
}

const uuid: Kind = { type: 'FIXED_LEN_BYTE_ARRAY', type_length: 16, logical_type: { type: 'UUID' } };

/** The Parquet type of each type, which holds all of its values exactly. */
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

/** Estimates the size of a value in bytes. */
function sizeOf(value: unknown): number {
  return typeof value === 'string' || isBytes(value) ? value.length : 8;
}

/** A Parquet writer, whose output is taken piece by piece. */
interface Sink {
  readonly write: (columns: ColumnSource[], rows: number) => void;
  readonly finish: () => void;
  /** Returns the bytes written since the last call. */
  readonly take: () => Uint8Array;
}

/** Makes a Parquet writer. `key`: the fields that are never null. */
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
  // JSON comes as bytes: the writer must not encode it a second time. The footer gets the real types in `finish`.
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
      // No need to wait, since it writes to memory.
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

/** Writes rows as a Parquet file, with one group of rows in memory at a time. */
export class ParquetOutput implements RowOutput {
  /** Spreadsheets run no formulas of Parquet files. */
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
      // A dictionary would not distinguish 0 from -0.
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
