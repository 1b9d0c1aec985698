/** Opens Parquet files, and reads their columns one group of rows after the other. */
import { open } from 'node:fs/promises';
import type { FileHandle } from 'node:fs/promises';
import * as zlib from 'node:zlib';
import type * as ParquetModule from 'hyparquet';
import type { AsyncBuffer, Compressors, DecodedArray, FileMetaData, RowGroup, SchemaTree } from 'hyparquet';
import { messageOf } from '../../base/brands.ts';
import { LineError } from './line-error.ts';
import { parsers, schemaForDecoder } from './parquet-values.ts';

type Parquet = typeof ParquetModule;

/** Rows that the file keeps together, column by column. */
export interface ParquetGroup {
  readonly rows: number;
  /** Bytes that it takes in the file. */
  readonly bytes: number;
  /** The values of a column, as `readingOf` reads them. Rejects with `LineError`. */
  readonly read: (column: string) => Promise<DecodedArray>;
}

/** What is wrong with a file, of what the decoder says. */
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

/** Parts of a file. */
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

async function zstdDecompressor(): Promise<(input: Uint8Array, length: number) => Uint8Array> {
  const { zstdDecompressSync } = zlib as unknown as { zstdDecompressSync?: (input: Uint8Array) => Uint8Array };
  if (zstdDecompressSync !== undefined) return (input) => zstdDecompressSync(input);
  const { ZSTDDecoder } = await import('zstddec');
  const decoder = new ZSTDDecoder();
  await decoder.init();
  return (input, length) => decoder.decode(input, length);
}

/** What decompresses the columns of a file. Throws `LineError` for a way that nothing here knows. */
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

/** Throws `LineError` where a file does not end as Parquet does, so that nobody tells of a footer. */
async function checkEnd(handle: FileHandle, size: number): Promise<void> {
  const end = Buffer.alloc(4);
  if (size >= 12) await handle.read(end, 0, 4, size - 4);
  const mark = end.toString('latin1');
  if (mark === 'PARE') throw new LineError(0, 'it is encrypted, and such Parquet files are not read');
  if (mark !== 'PAR1') throw new LineError(0, 'it is not Parquet, or its end is missing: it does not end with PAR1');
}

export class ParquetFile implements AsyncDisposable {
  /** Its columns, in their order. */
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

  /** Rejects with `LineError` where it is no Parquet file, or one that cannot be read. */
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
        // As the decoder takes groups, and with the types that the file has.
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
        // Of this group alone: the decoder keeps what it has read of one.
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

/** A tree whose leaves have the types that a file has for them. `elements`: those, in the order of the tree. */
function withTypesOf(root: SchemaTree, elements: FileMetaData['schema']): SchemaTree {
  let at = 0;
  const visit = (tree: SchemaTree): SchemaTree => {
    const element = elements[at++] as SchemaTree['element'];
    const children = tree.children.map(visit);
    return { ...tree, children, element: children.length === 0 ? element : tree.element };
  };
  return visit(root);
}
