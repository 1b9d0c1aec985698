/** Rows in files: NDJSON and CSV, read with the numbers of their lines. */
import type { Readable } from 'node:stream';
import type { FieldDefinition, SchemaDefinition } from '../table/schema.ts';
import { LineError, linesOf, maxLineBytes } from './line-reader.ts';
import { withoutControls } from '../base/message-text.ts';
import { Types } from '../format/types.ts';
import type { TypeId } from '../format/types.ts';
import { jsonText } from './json-text.ts';
import { fromJson, fromText, toJson, toText, ValueError } from './row-values.ts';

export const formats = ['ndjson', 'csv'] as const;
export type Format = (typeof formats)[number];

/** The file of a command line; undefined for the input or the output, for which `-` stands too. It comes here as an empty text. */
export function namedFile(file: string | undefined): string | undefined {
  return file === '' || file === '-' ? undefined : file;
}

/** A row that was read. */
export interface RowRecord {
  /** The line on which it ends, counted from 1. */
  readonly line: number;
  readonly document: Record<string, unknown>;
}

/** The format that a file's name says; undefined where it says none. */
export function formatOf(file: string | undefined): Format | undefined {
  if (file === undefined) return undefined;
  if (/\.csv$/i.test(file)) return 'csv';
  return /\.(ndjson|jsonl|json)$/i.test(file) ? 'ndjson' : undefined;
}

function fieldOf(schema: SchemaDefinition, name: string, line: number): FieldDefinition {
  const field = Object.hasOwn(schema.fields, name) ? schema.fields[name] : undefined;
  if (field !== undefined) return field;
  throw new LineError(line, `table ${schema.name} has no field ${JSON.stringify(name)}`);
}

/** The field that a name at the head of a file stands for; the name itself where there is none. */
function namedAtHead(schema: SchemaDefinition, text: string): string {
  if (Object.hasOwn(schema.fields, text)) return text;
  const names = Object.keys(schema.fields);
  // As it is, with spaces at its ends that were left out, or as the head of an export has it.
  const alike = names.filter(
    (name) => headName(name).trim() === text || headName(name).replace(/^(?=[=+\-@])/, "'") === text,
  );
  return alike.length === 1 ? (alike[0] as string) : text;
}

function valueAt<T>(line: number, name: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (error instanceof ValueError) throw new LineError(line, `field ${name}: ${error.message}`);
    throw error;
  }
}

/** A key named __proto__ is a field like any other, or none, and never a prototype. */
function plainObject(entries: readonly (readonly [string, unknown])[]): Record<string, unknown> {
  return Object.fromEntries(entries);
}

/** Lines of that length can do no harm by how deep they are. */
const shallowLength = 100_000;
/** JSON in a row is less deep, in its field of the row. */
const maxDepth = 520;

/** Whether so many brackets are open at once that the parser would take up all memory before anybody looks at the value. */
function isTooDeep(text: string): boolean {
  let depth = 0;
  let isText = false;
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i);
    if (isText) {
      if (unit === 0x5c) i++;
      else if (unit === 0x22) isText = false;
    } else if (unit === 0x22) isText = true;
    else if (unit === 0x5b || unit === 0x7b) {
      if (++depth > maxDepth) return true;
    } else if (unit === 0x5d || unit === 0x7d) depth--;
  }
  return false;
}

function parseObject(text: string, line: number): [string, unknown][] {
  let parsed: unknown;
  if (text.length > shallowLength && isTooDeep(text)) throw new LineError(line, 'it is nested deeper than any row');
  try {
    parsed = JSON.parse(text);
  } catch (error) {
    throw new LineError(line, `it is not JSON: ${(error as Error).message}`);
  }
  if (typeof parsed !== 'object' || parsed === null || Array.isArray(parsed)) {
    throw new LineError(line, 'it is JSON, and not an object');
  }
  return Object.entries(parsed);
}

async function* readNdjson(
  input: Readable,
  schema: SchemaDefinition,
  maxBytes: number,
): AsyncGenerator<RowRecord, void, undefined> {
  for await (const { number, text } of linesOf(input as AsyncIterable<Uint8Array>, maxBytes)) {
    if (text.trim() === '') continue;
    const entries = parseObject(text, number).map(([name, value]) => {
      const { typeId } = fieldOf(schema, name, number);
      return [name, valueAt(number, name, () => fromJson(typeId, value))] as const;
    });
    yield { line: number, document: plainObject(entries) };
  }
}

/** A field of CSV: without quotes, one without characters is null. */
interface Cell {
  readonly text: string;
  readonly isNull: boolean;
}

async function* readCsv(
  input: Readable,
  schema: SchemaDefinition,
  maxBytes: number,
): AsyncGenerator<RowRecord, void, undefined> {
  const { parse, CsvError } = await import('csv-parse');
  const parser = input.pipe(
    parse({
      bom: true,
      info: true,
      relax_column_count: true,
      skip_empty_lines: true,
      max_record_size: maxBytes,
      cast: (text, { quoting }): Cell => ({ text, isNull: text === '' && !quoting }),
    }),
  );
  input.on('error', (error) => parser.destroy(error));
  let names: string[] | undefined;
  try {
    for await (const parsed of parser) {
      const { record, info } = parsed as { readonly record: Cell[]; readonly info: { readonly lines: number } };
      const line = info.lines;
      if (names === undefined) {
        names = record.map(({ text }) => namedAtHead(schema, text.trim()));
        for (const name of names) fieldOf(schema, name, line);
        if (new Set(names).size < names.length) throw new LineError(line, 'it names a field twice');
        continue;
      }
      if (record.length !== names.length) {
        throw new LineError(line, `it has ${record.length} fields, and the first line names ${names.length}`);
      }
      const entries = names.map((name, i) => {
        const { text, isNull } = record[i] as Cell;
        const { typeId } = fieldOf(schema, name, line);
        return [name, isNull ? null : valueAt(line, name, () => fromText(typeId, text))] as const;
      });
      yield { line, document: plainObject(entries) };
    }
  } catch (error) {
    if (!(error instanceof CsvError)) throw error;
    throw new LineError(error['lines'] as number, error.message);
  }
}

/** The rows of a stream of bytes. Throws `LineError` at the first that is none of the table's. */
export function readRecords(
  input: Readable,
  format: Format,
  schema: SchemaDefinition,
  maxBytes: number = maxLineBytes,
): AsyncGenerator<RowRecord, void, undefined> {
  return format === 'csv' ? readCsv(input, schema, maxBytes) : readNdjson(input, schema, maxBytes);
}

/** As people read what texts that spreadsheets take for formulas begin with. */
export const formulaStarts = '= + - @';
const formula = /^[=+\-@\t\r]/;

export interface WriterOptions {
  /** Whether texts in CSV that spreadsheets take for formulas get a ' before them. They are not given back exactly then. */
  readonly defusesFormulas?: boolean;
}

/** Rows as lines that {@link readRecords} gives back exactly. */
export class RecordWriter {
  readonly #format: Format;
  readonly #fields: readonly (readonly [name: string, FieldDefinition])[];
  readonly #defusesFormulas: boolean;
  #formulas = 0;

  constructor(format: Format, schema: SchemaDefinition, { defusesFormulas = false }: WriterOptions = {}) {
    this.#format = format;
    this.#fields = Object.entries(schema.fields);
    this.#defusesFormulas = defusesFormulas;
  }

  /** How many texts there were that spreadsheets take for formulas. NDJSON has none. */
  get formulas(): number {
    return this.#formulas;
  }

  /** What comes before the first row. */
  get head(): string {
    return this.#format === 'csv'
      ? csvLine(this.#fields.map(([name]) => this.#text(Types.varchar, headName(name))))
      : '';
  }

  line(row: Readonly<Record<string, unknown>>): string {
    if (this.#format === 'csv') {
      const cells = this.#fields.map(([name, { typeId }]) => {
        return row[name] === null ? null : this.#text(typeId, toText(typeId, row[name]));
      });
      return csvLine(cells);
    }
    const entries = this.#fields.map(([name, { typeId }]) => [name, toJson(typeId, row[name])] as const);
    return `${jsonText(Object.fromEntries(entries))}\n`;
  }

  /** Only text holds formulas: a number is one, also below zero. */
  #text(typeId: TypeId, text: string): string {
    if (typeId !== Types.varchar || !formula.test(text)) return text;
    this.#formulas++;
    return this.#defusesFormulas ? `'${text}` : text;
  }
}

/** A field's name at the head of a file: text of one line that does nothing to a terminal. */
function headName(name: string): string {
  return withoutControls(name);
}

function csvLine(cells: readonly (string | null)[]): string {
  const quote = (text: string | null): string => {
    if (text === null) return '';
    return text === '' || /[",\r\n]|^\s|\s$/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  // A line of nothing would be skipped as an empty one.
  const [only] = cells;
  if (cells.length === 1 && only === null) return '""\n';
  return `${cells.map(quote).join(',')}\n`;
}
