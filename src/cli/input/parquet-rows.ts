/** The rows of Parquet files, for imports and drafts. */
import type { DecodedArray } from 'hyparquet';
import type { TypeId } from '../../format/types.ts';
import type { SchemaDefinition } from '../../schema/schema.ts';
import { readValue } from './columns.ts';
import type { Column } from './columns.ts';
import { LargeInteger } from './exact-json.ts';
import type { InputFile } from './input-files.ts';
import { LineError } from './line-error.ts';
import { findColumns } from './row-reader.ts';
import type { ReadOptions, RowRecord } from './row-reader.ts';
import { jsonText } from '../terminal/json-text.ts';
import { ValueError } from '../values/row-values.ts';
import { ParquetFile } from './parquet-file.ts';
import { fieldTypeOf, plainOf, readingOf } from './parquet-values.ts';

/** Rows that are handed on together. */
const rowsPerBlock = 1000;

interface ReadColumn {
  readonly name: string;
  readonly column: Column;
  /** Throws `ValueError`. */
  readonly read: (stored: unknown) => unknown;
  /** Of the group of rows that is read. */
  readonly values: DecodedArray;
}

/** As the row is written where it is left out. */
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

  /** `at`: which of the values of the columns are the row's. */
  constructor(line: number, columns: readonly ReadColumn[], at: number) {
    this.line = line;
    this.#columns = columns;
    this.#at = at;
    try {
      for (const { column, read, values } of columns) {
        // Both steps may find that it is no value of the field.
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

/** A column that gives null for NaN. */
function withoutNaN(read: (stored: unknown) => unknown): (stored: unknown) => unknown {
  return (stored) => {
    const value = read(stored);
    return Number.isNaN(value) ? null : value;
  };
}

/** The fields that hold the columns of a file, by what the file says of them. Throws `LineError`. */
export async function parquetTypes(path: string): Promise<ReadonlyMap<string, TypeId>> {
  await using file = await ParquetFile.open(path);
  return new Map(file.columns.map((tree) => [tree.element.name, fieldTypeOf(tree)]));
}

/**
 * The rows of a Parquet file, in blocks; as lines they have their numbers. Without a schema every column is a field. A group of rows
 * is in memory at once. `onRead` is told how many bytes were read. Throws `LineError` where nothing more can be read.
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
    // Rows that are handed on keep those that they are of.
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

/** Refuses what cannot be read from its end. Throws `LineError`. */
export function pathOf({ path, name }: InputFile): string {
  if (path !== undefined) return path;
  throw new LineError(0, `${name} is read from its end: Parquet comes in files`);
}
