/** Rows as lines of text, as exports write them. */
import { Types } from '../format/types.ts';
import type { TypeId } from '../format/types.ts';
import type { FieldDefinition, SchemaDefinition } from '../table/schema.ts';
import { headName } from './input/columns.ts';
import { jsonText } from './json-text.ts';
import { toJson, toText } from './row-values.ts';

export const formats = ['ndjson', 'csv'] as const;
export type Format = (typeof formats)[number];

/** The file of a command line; undefined for the input or the output, for which `-` stands too. It comes here as an empty text. */
export function namedFile(file: string | undefined): string | undefined {
  return file === '' || file === '-' ? undefined : file;
}

/** The format that a file's name says; undefined where it says none. */
export function formatOf(file: string | undefined): Format | undefined {
  if (file === undefined) return undefined;
  if (/\.csv$/i.test(file)) return 'csv';
  return /\.(ndjson|jsonl|json)$/i.test(file) ? 'ndjson' : undefined;
}

/** As people read what texts that spreadsheets take for formulas begin with. */
export const formulaStarts = '= + - @';
const formula = /^[=+\-@\t\r]/;

export interface WriterOptions {
  /** Whether texts in CSV that spreadsheets take for formulas get a ' before them. They are not given back exactly then. */
  readonly defusesFormulas?: boolean;
}

/** Rows as lines that an import gives back exactly. */
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
