/** Reads the rows of a file of any format. */
import type { Readable } from 'node:stream';
import type { SchemaDefinition } from '../../schema/schema.ts';
import { parquetRows, pathOf } from './parquet-file.ts';
import { bytesOf } from './input-files.ts';
import type { InputFile } from './input-files.ts';
import { readRows } from './row-reader.ts';
import type { ReadOptions, RowRecord } from './row-reader.ts';

/** As `readRows`. Calls `onRead` with the number of bytes of the file that were read. Throws `UsageError` and `LineError`. */
export function rowsOf(
  file: InputFile,
  input: Readable,
  schema: SchemaDefinition | undefined,
  options: ReadOptions,
  onRead: (bytes: number) => void,
): AsyncGenerator<RowRecord[], void, undefined> {
  if (options.format === 'parquet') return parquetRows(pathOf(file), schema, options, onRead);
  return readRows(bytesOf(file, input, onRead), schema, options);
}
