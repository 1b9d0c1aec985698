/** Reads the rows of a table from the bytes of a file. */
import type { TypeId } from '../../format/types.ts';
import type { SchemaDefinition } from '../../schema/schema.ts';
import { AnyColumns, columnNames, Columns, hasPlainNames, readValue } from './columns.ts';
import type { Column, ColumnFinder, ColumnOptions } from './columns.ts';
import { CsvParser } from './csv-parser.ts';
import type { CsvRecord, QuoteRule } from './csv-parser.ts';
import { BadLines, textPieces } from './encodings.ts';
import type { EncodingName } from './encodings.ts';
import { isTooDeep, parseExactly, linesOf, objectsOf } from './json-parser.ts';
import type { JsonPart } from './json-parser.ts';
import { dateFormatOf, noDateFormats, jsonReader, textReader } from './field-values.ts';
import type { DateFormats, ValueOptions, ValueReader } from './field-values.ts';
import { LineError, maxLineBytes } from './line-error.ts';
import { parquetReader, plainOf } from './parquet-values.ts';

export const inputFormats = ['ndjson', 'json', 'csv', 'tsv', 'parquet'] as const;
export type InputFormat = (typeof inputFormats)[number];

/** Derives the format from the name of a file; undefined if the name does not show it. */
export function inputFormatOf(file: string | undefined): InputFormat | undefined {
  // Parquet is compressed internally, and has no further ending.
  if (/\.(?:parquet|pq)$/i.test(file ?? '')) return 'parquet';
  const [, ending] = /\.(csv|tsv|tab|ndjson|jsonl|json)(?:\.(?:gz|zst))?$/i.exec(file ?? '') ?? [];
  switch (ending?.toLowerCase()) {
    case 'csv':
      return 'csv';
    case 'tsv':
    case 'tab':
      return 'tsv';
    case undefined:
      return undefined;
    default:
      return 'ndjson';
  }
}

export interface ReadOptions {
  readonly format: InputFormat;
  /** Undefined: by the byte order mark, else UTF-8. */
  readonly encoding?: EncodingName | undefined;
  /** Undefined: a comma, or the separator of the first line. */
  readonly delimiter?: string | undefined;
  readonly quotes?: QuoteRule;
  /** Texts that stand for null without quotes, in addition to the empty one. */
  readonly nulls?: readonly string[];
  /** Whether the first record of CSV names the columns. */
  readonly hasHead?: boolean;
  readonly columns?: ColumnOptions;
  readonly values?: ValueOptions;
  readonly dates?: DateFormats;
  /** Whether bad bytes are an error of their row only. Default: reading stops at them. */
  readonly skipsBadBytes?: boolean;
  readonly maxBytes?: number;
}

/** A row, or the problem with it. */
export interface RowRecord {
  /** The line on which it ends, counted from 1. */
  readonly line: number;
  readonly document: Record<string, unknown>;
  /** The row's text in the file. */
  readonly text: string;
  readonly problem?: LineError;
}

const allColumns: ColumnOptions = { columns: undefined, renames: new Map(), ignoreExtra: false };
const usualValues: ValueOptions = { largeIntegers: 'refuse', timeUnit: undefined };

interface Written {
  readonly line: number;
  readonly text: string;
}

/** Returns the row that `read` returns, or a record with the `LineError` that it throws. */
function recordOf({ line, text }: Written, read: () => Record<string, unknown>): RowRecord {
  try {
    return { line, text, document: read() };
  } catch (error) {
    if (!(error instanceof LineError)) throw error;
    return { line, text, document: {}, problem: error };
  }
}

/** Returns the error of the first bad bytes in the lines of a record; undefined for none. */
function problemOf({ line, text }: Written, badLines: BadLines): LineError | undefined {
  if (!text.includes('\ufffd')) return undefined;
  const problem = badLines.within(line - (text.split('\n').length - 1), line);
  if (problem === undefined || !badLines.areCountedOtherwise) return problem;
  return new LineError(line, problem.message);
}

/** Replaces rows with bad bytes by their errors. */
async function* withoutBadLines(
  blocks: AsyncGenerator<RowRecord[], void, undefined>,
  badLines: BadLines,
): AsyncGenerator<RowRecord[], void, undefined> {
  for await (const records of blocks) {
    yield records.map((record) => {
      const { line, text } = record;
      const problem = problemOf(record, badLines);
      return problem === undefined ? record : { line, text, document: {}, problem };
    });
  }
}

function parseObject({ text, line }: JsonPart): object {
  if (isTooDeep(text)) throw new LineError(line, 'it is nested too deeply for a row');
  let parsed: unknown;
  try {
    parsed = parseExactly(text);
  } catch (error) {
    const hint = line === 1 && !/^\s*[{["]/.test(text) ? ' (--format csv reads CSV)' : '';
    throw new LineError(line, `it is not JSON: ${(error as Error).message}${hint}`);
  }
  if (typeof parsed !== 'object' || parsed === null || Array.isArray(parsed)) {
    throw new LineError(line, 'it is JSON, but not an object');
  }
  return parsed;
}

/** Detects whether a text begins with an array. `all`: all pieces, including the ones read for that. */
async function beginsArray(pieces: AsyncGenerator<string>): Promise<{ isArray: boolean; all: AsyncIterable<string> }> {
  let head = '';
  for (;;) {
    const piece: IteratorResult<string, unknown> = await pieces.next();
    if (piece.done !== true) head += piece.value;
    if (piece.done !== true && head.length < 4096 && head.trimStart() === '') continue;
    const all = async function* (): AsyncGenerator<string> {
      yield head;
      yield* pieces;
    };
    return { isArray: head.trimStart().startsWith('['), all: all() };
  }
}

async function* readJson(
  pieces: AsyncGenerator<string>,
  columns: ColumnFinder,
  { format }: ReadOptions,
  maxBytes: number,
): AsyncGenerator<RowRecord[], void, undefined> {
  const { isArray, all } = await beginsArray(pieces);
  for await (const parts of isArray || format === 'json' ? objectsOf(all, maxBytes) : linesOf(all, maxBytes)) {
    yield parts.map((part) =>
      recordOf(part, () => {
        const entries: [string, unknown][] = [];
        for (const [name, value] of Object.entries(parseObject(part))) {
          const column = columns.named(name, part.line);
          if (column !== undefined) entries.push([column.field, readValue(column, value, part.line)]);
        }
        return Object.fromEntries(entries);
      }),
    );
  }
}

/** A line before the names that declares the separator for spreadsheets. */
const separatorLine = /^sep=([^\w"])$/i;

/** Detects the separator of the names in the first line. */
function sniffDelimiter(text: string): string {
  const [first = ''] = text.split(/[\r\n]/, 1);
  const [, told] = separatorLine.exec(first) ?? [];
  if (told !== undefined) return told;
  if (first.includes(',')) return ',';
  return [';', '\t', '|'].find((candidate) => first.includes(candidate)) ?? ',';
}

function withoutSeparator(records: CsvRecord[]): CsvRecord[] {
  const [first] = records;
  return first?.line === 1 && separatorLine.test(first.text.trimEnd()) ? records.slice(1) : records;
}

/** Parses the records of CSV, in blocks. */
async function* csvRecords(
  pieces: AsyncGenerator<string>,
  { format, delimiter, quotes = 'strict', nulls = [] }: ReadOptions,
  maxLength: number,
  badLines: BadLines | undefined,
): AsyncGenerator<CsvRecord[], void, undefined> {
  let parser: CsvParser | undefined;
  for await (const piece of pieces) {
    const separator = delimiter ?? (format === 'tsv' ? '\t' : undefined);
    parser ??= new CsvParser({ delimiter: separator ?? sniffDelimiter(piece), quotes, nulls, maxLength });
    const records = parser.push(piece);
    if (badLines !== undefined) badLines.areCountedOtherwise = parser.endsWithReturns;
    yield withoutSeparator(records);
  }
  if (parser !== undefined) yield withoutSeparator(parser.end());
}

/** Returns the function that makes a row from a record. */
function rowMaker(columns: readonly (Column | undefined)[], isNamed: boolean): (record: CsvRecord) => RowRecord {
  const isPlain = hasPlainNames(columns);
  return (record) =>
    recordOf(record, () => {
      const { line, cells, problem } = record;
      if (problem !== undefined) throw problem;
      if (cells.length !== columns.length) {
        const named = isNamed ? `the first line names ${columns.length}` : `there are ${columns.length} columns`;
        throw new LineError(line, `it has ${cells.length} fields, but ${named}`);
      }
      const document: Record<string, unknown> = {};
      for (let i = 0; i < columns.length; i++) {
        const column = columns[i];
        if (column === undefined) continue;
        const text = cells[i] as string | null;
        const value = text === null ? null : readValue(column, text, line);
        if (isPlain) document[column.field] = value;
        else Object.defineProperty(document, column.field, { value, enumerable: true, writable: true });
      }
      return document;
    });
}

async function* readCsv(
  pieces: AsyncGenerator<string>,
  columns: ColumnFinder,
  options: ReadOptions,
  maxBytes: number,
  given: readonly string[] | undefined,
  badLines: BadLines | undefined,
): AsyncGenerator<RowRecord[], void, undefined> {
  const { hasHead = true } = options;
  let make = hasHead || given === undefined ? undefined : rowMaker(columns.atHead(given, 1), false);
  for await (const block of csvRecords(pieces, options, maxBytes, badLines)) {
    const [first] = block;
    if (first === undefined) continue;
    let records: readonly CsvRecord[] = block;
    if (make === undefined) {
      const problem = first.problem ?? (hasHead && badLines !== undefined ? problemOf(first, badLines) : undefined);
      if (problem !== undefined) throw problem;
      // Without a head and a table, columns are named by their positions.
      const names = columnNames(hasHead ? first.cells : first.cells.map(() => null), (name) => columns.isFree(name));
      make = rowMaker(columns.atHead(names, first.line), hasHead);
      if (hasHead) records = block.slice(1);
    }
    yield records.map(make);
  }
}

const valueReaders = { csv: textReader, tsv: textReader, json: jsonReader, ndjson: jsonReader, parquet: parquetReader };

/** Returns the finder for the columns of a file. */
export function findColumns(schema: SchemaDefinition | undefined, options: ReadOptions): ColumnFinder {
  const { format, columns = allColumns, values = usualValues, dates = noDateFormats } = options;
  if (schema === undefined) return new AnyColumns(columns, format === 'parquet' ? plainOf : undefined);
  const reader = valueReaders[format];
  return new Columns(schema, columns, (typeId, field): ValueReader => {
    return reader(typeId as TypeId, { ...values, dateFormat: dateFormatOf(dates, field) });
  });
}

/**
 * Reads the rows of a stream of bytes, in blocks. A bad row is returned with its problem. Without a schema, every column is a field and
 * values are unchanged: texts and null, or values of JSON. Throws `LineError` if the rest of the file cannot be read.
 */
export function readRows(
  bytes: AsyncIterable<Uint8Array>,
  schema: SchemaDefinition | undefined,
  options: ReadOptions,
): AsyncGenerator<RowRecord[], void, undefined> {
  const { format, encoding, maxBytes = maxLineBytes, skipsBadBytes = false } = options;
  const badLines = skipsBadBytes ? new BadLines() : undefined;
  const pieces = textPieces(bytes, encoding, maxBytes, badLines);
  const columns = findColumns(schema, options);
  const given = options.columns?.columns ?? (schema && Object.keys(schema.fields));
  const isCsv = format === 'csv' || format === 'tsv';
  const rows = isCsv
    ? readCsv(pieces, columns, options, maxBytes, given, badLines)
    : readJson(pieces, columns, options, maxBytes);
  return badLines === undefined ? rows : withoutBadLines(rows, badLines);
}
