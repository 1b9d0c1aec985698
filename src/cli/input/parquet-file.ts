/** Reads the rows of Parquet files, one group of rows at a time, for imports and drafts. */
import { open } from 'node:fs/promises';
import type { FileHandle } from 'node:fs/promises';
import * as zlib from 'node:zlib';
import type * as ParquetModule from 'hyparquet';
import type { AsyncBuffer, Compressors, DecodedArray, FileMetaData, RowGroup, SchemaTree } from 'hyparquet';
import { messageOf } from '../../base/brands.ts';
import type { TypeId } from '../../format/types.ts';
import type { SchemaDefinition } from '../../schema/schema.ts';
import { jsonText } from '../terminal/figures.ts';
import { ValueError } from '../../text/cell-values.ts';
import { readValue } from './columns.ts';
import type { Column } from './columns.ts';
import type { InputFile } from './input-files.ts';
import { LargeInteger } from './json-parser.ts';
import { LineError } from './line-error.ts';
import { parsers, schemaForDecoder, fieldTypeOf, plainOf, readingOf } from './parquet-values.ts';
import { findColumns } from './row-reader.ts';
import type { ReadOptions, RowRecord } from './row-reader.ts';

type Parquet = typeof ParquetModule;

/** A group of rows of the file, stored column by column. */
export interface ParquetGroup {
  readonly rows: number;
  /** The size of the group in the file. */
  readonly bytes: number;
  /** Reads the values of a column, for `readingOf`. Rejects with `LineError`. */
  readonly read: (column: string) => Promise<DecodedArray>;
}

/** Turns an error of the decoder into an error of the file. */
function damage(error: unknown): LineError {
  const message = messageOf(error).replace(/^parquet (?:file )?/, '');
  return new LineError(0, `it cannot be read as Parquet, and may be damaged: ${message}`);
}

async function orDamaged<T>(work: () => T | Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw error instanceof LineError ? error : damage(error);
  }
}

/** Reads parts of a file for the decoder. */
function bufferOf(handle: FileHandle, byteLength: number): AsyncBuffer {
  return {
    byteLength,
    slice: async (start, end = byteLength) => {
      const length = end - start;
      if (start < 0 || length < 0 || end > byteLength) throw new Error('a part of it would be outside of the file');
      const part = new Uint8Array(length);
      for (let at = 0; at < length; ) {
        const { bytesRead } = await handle.read(part, at, length - at, start + at);
        if (bytesRead === 0) throw new Error('the file ends too early');
        at += bytesRead;
      }
      return part.buffer;
    },
  };
}

async function zstdDecompressor(): Promise<(input: Uint8Array) => Uint8Array> {
  const { zstdDecompressSync } = zlib as unknown as { zstdDecompressSync?: (input: Uint8Array) => Uint8Array };
  if (zstdDecompressSync !== undefined) return (input) => zstdDecompressSync(input);
  const { decompress } = await import('fzstd');
  return (input) => decompress(input);
}

/** Returns the decompressors for the columns of a file. Throws `LineError` for an unknown compression. */
async function compressorsFor({ row_groups: groups }: FileMetaData): Promise<Compressors> {
  const codecs = new Set(groups.flatMap(({ columns }) => columns.map(({ meta_data: data }) => data?.codec)));
  const known: ReadonlySet<string> = new Set(['UNCOMPRESSED', 'SNAPPY', 'GZIP', 'BROTLI', 'ZSTD']);
  const unknown = [...codecs].find((codec) => codec !== undefined && !known.has(codec));
  if (unknown !== undefined) {
    throw new LineError(
      0,
      `it is compressed with ${unknown}: write it with Snappy, zstd, gzip, Brotli or no compression`,
    );
  }
  return {
    GZIP: (input) => zlib.gunzipSync(input),
    BROTLI: (input) => zlib.brotliDecompressSync(input),
    ...(codecs.has('ZSTD') && { ZSTD: await zstdDecompressor() }),
  };
}

/** Throws `LineError` if a file does not end as Parquet does. The message of the decoder would speak of a footer. */
async function checkEnd(handle: FileHandle, size: number): Promise<void> {
  const end = Buffer.alloc(4);
  if (size >= 12) await handle.read(end, 0, 4, size - 4);
  const mark = end.toString('latin1');
  if (mark === 'PARE') throw new LineError(0, 'it is encrypted, and encrypted Parquet files cannot be read');
  if (mark !== 'PAR1') throw new LineError(0, 'it is not Parquet, or its end is missing: it does not end with PAR1');
}

class ParquetFile implements AsyncDisposable {
  /** The columns of the file, in order. */
  readonly columns: readonly SchemaTree[];
  readonly #handle: FileHandle;
  readonly #file: AsyncBuffer;
  readonly #parquet: Parquet;
  readonly #metadata: FileMetaData;
  readonly #compressors: Compressors;

  private constructor(
    handle: FileHandle,
    file: AsyncBuffer,
    parquet: Parquet,
    { metadata, root, compressors }: { metadata: FileMetaData; root: SchemaTree; compressors: Compressors },
  ) {
    this.#handle = handle;
    this.#file = file;
    this.#parquet = parquet;
    this.#metadata = metadata;
    this.#compressors = compressors;
    this.columns = root.children;
  }

  /** Opens a file. Rejects with `LineError` if it is not a Parquet file, or cannot be read. */
  static async open(path: string): Promise<ParquetFile> {
    const parquet = await import('hyparquet');
    const handle = await open(path);
    try {
      const { size } = await handle.stat();
      await checkEnd(handle, size);
      const file = bufferOf(handle, size);
      return await orDamaged(async () => {
        const found = await parquet.parquetMetadataAsync(file, { geoparquet: false });
        const schema = schemaForDecoder(parquet.parquetSchema(found));
        // The tree has the groups as the decoder takes them, and the types that the file declares.
        const root = withTypesOf(parquet.parquetSchema({ schema }), found.schema);
        const metadata = { ...found, schema };
        return new ParquetFile(handle, file, parquet, { metadata, root, compressors: await compressorsFor(found) });
      });
    } catch (error) {
      await handle.close();
      throw error;
    }
  }

  *groups(): Generator<ParquetGroup, void, undefined> {
    for (const group of this.#metadata.row_groups) {
      const bytes = group.columns.reduce(
        (sum, { meta_data: data }) => sum + Number(data?.total_compressed_size ?? 0),
        0,
      );
      const rows = Number(group.num_rows);
      yield { rows, bytes, read: (column) => this.#read(group, rows, column) };
    }
  }

  #read(group: RowGroup, rows: number, column: string): Promise<DecodedArray> {
    return orDamaged(async () => {
      const scan = await this.#parquet.parquetScan({
        file: this.#file,
        // Metadata with this group only, so that the decoder does not keep data of other groups.
        metadata: { ...this.#metadata, row_groups: [group], num_rows: group.num_rows },
        columns: [column],
        compressors: this.#compressors,
        parsers,
        utf8: false,
        useOffsetIndex: false,
      });
      const values = await scan.readColumn({ column, rowStart: 0, rowEnd: rows });
      if (values.length !== rows) throw new Error(`column ${column} has ${values.length} of ${rows} values`);
      return values;
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#handle.close();
  }
}

/** Returns a tree whose leaves have the types that the file declares. `elements`: the schema of the file, in the order of the tree. */
function withTypesOf(root: SchemaTree, elements: FileMetaData['schema']): SchemaTree {
  let at = 0;
  const visit = (tree: SchemaTree): SchemaTree => {
    const element = elements[at++] as SchemaTree['element'];
    const children = tree.children.map(visit);
    return { ...tree, children, element: children.length === 0 ? element : tree.element };
  };
  return visit(root);
}

/** The number of rows in a block. */
const rowsPerBlock = 1000;

interface ReadColumn {
  readonly name: string;
  readonly column: Column;
  /** Decodes a stored value. Throws `ValueError`. */
  readonly read: (stored: unknown) => unknown;
  /** The stored values of the present group. */
  readonly values: DecodedArray;
}

/** Returns the text of a row for the file of rejected rows. */
function textOf(columns: readonly Omit<ReadColumn, 'column'>[], at: number): string {
  const entries = columns.map(({ name, read, values }) => {
    try {
      const value = plainOf(read(values[at]));
      return [name, value instanceof LargeInteger ? value.digits : value];
    } catch (error) {
      if (error instanceof ValueError) return [name, null];
      throw error;
    }
  });
  return jsonText(Object.fromEntries(entries));
}

class ParquetRow implements RowRecord {
  readonly line: number;
  readonly document: Record<string, unknown> = {};
  readonly problem?: LineError;
  readonly #columns: readonly Omit<ReadColumn, 'column'>[];
  readonly #at: number;

  /** `at`: the index of the row in the values of the columns. */
  constructor(line: number, columns: readonly ReadColumn[], at: number) {
    this.line = line;
    this.#columns = columns;
    this.#at = at;
    try {
      for (const { column, read, values } of columns) {
        // Both steps may throw `ValueError`.
        const value = readValue({ field: column.field, read: (stored) => column.read(read(stored)) }, values[at], line);
        Object.defineProperty(this.document, column.field, {
          value,
          enumerable: true,
          writable: true,
          configurable: true,
        });
      }
    } catch (error) {
      if (!(error instanceof LineError)) throw error;
      this.document = {};
      this.problem = error;
    }
  }

  get text(): string {
    return textOf(this.#columns, this.#at);
  }
}

/** Wraps a reading to return null for NaN. */
function withoutNaN(read: (stored: unknown) => unknown): (stored: unknown) => unknown {
  return (stored) => {
    const value = read(stored);
    return Number.isNaN(value) ? null : value;
  };
}

/** Returns the type of field that fits each column, by the declarations of the file. Throws `LineError`. */
export async function parquetTypes(path: string): Promise<ReadonlyMap<string, TypeId>> {
  await using file = await ParquetFile.open(path);
  return new Map(file.columns.map((tree) => [tree.element.name, fieldTypeOf(tree)]));
}

/**
 * Reads the rows of a Parquet file, in blocks. Their numbers count as lines. Without a schema every column is a field. One group of rows
 * is in memory at a time. Calls `onRead` with the number of bytes read. Throws `LineError` if the file cannot be read further.
 */
export async function* parquetRows(
  path: string,
  schema: SchemaDefinition | undefined,
  options: ReadOptions,
  onRead: (bytes: number) => void,
): AsyncGenerator<RowRecord[], void, undefined> {
  await using file = await ParquetFile.open(path);
  const names = file.columns.map(({ element }) => element.name);
  const found = findColumns(schema, options).atHead(names, 0);
  const takesNaN = options.nulls?.includes('NaN') === true;
  const columns = file.columns.flatMap((tree, i): Omit<ReadColumn, 'values'>[] => {
    const column = found[i];
    if (column === undefined) return [];
    const read = readingOf(tree);
    return [{ name: tree.element.name, column, read: takesNaN ? withoutNaN(read) : read }];
  });
  let line = 0;
  let bytes = 0;
  for (const group of file.groups()) {
    // A new array for each group, since rows keep a reference to it.
    const held: ReadColumn[] = [];
    for (const { name, column, read } of columns) {
      held.push({ name, column, read, values: await group.read(name) });
    }
    for (let at = 0; at < group.rows; at += rowsPerBlock) {
      const length = Math.min(rowsPerBlock, group.rows - at);
      yield Array.from({ length }, (_, i) => new ParquetRow(line + i + 1, held, at + i));
      line += length;
    }
    onRead((bytes += group.bytes));
  }
}

/** Returns the path of a file. Throws `LineError` for standard input, which cannot be read from its end. */
export function pathOf({ path, name }: InputFile): string {
  if (path !== undefined) return path;
  throw new LineError(0, `${name} cannot be read as Parquet, which is read from its end: name a file`);
}
