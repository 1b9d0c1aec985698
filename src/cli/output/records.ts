/** Rows as lines of text, as exports write them. */
import { defined } from '../../base/options.ts';
import { Types } from '../../format/types.ts';
import type { TypeId } from '../../format/types.ts';
import { UsageError } from '../terminal/exit-code.ts';
import { headName } from '../input/columns.ts';
import { jsonText } from '../terminal/figures.ts';
import type { AnswerColumn } from '../language/asked-query.ts';
import { toJson, toText } from '../values/row-values.ts';

export const outputFormats = ['ndjson', 'json', 'csv', 'tsv', 'parquet'] as const;
type OutputFormat = (typeof outputFormats)[number];
export type TextFormat = Exclude<OutputFormat, 'parquet'>;

/** The file of a command line; undefined for the input or the output, for which `-` stands too. It comes here as an empty text. */
export function namedFile(file: string | undefined): string | undefined {
  return file === '' || file === '-' ? undefined : file;
}

/** How a file is written. */
export interface FileKind {
  readonly format: OutputFormat;
  readonly gzip: boolean;
}

const endings: Readonly<Record<string, OutputFormat>> = {
  csv: 'csv',
  tsv: 'tsv',
  tab: 'tsv',
  ndjson: 'ndjson',
  jsonl: 'ndjson',
  json: 'json',
  parquet: 'parquet',
  pq: 'parquet',
};

/** What the name of a file says of it; undefined where it says nothing. Throws `UsageError` for endings of other formats. */
export function kindOf(file: string | undefined): Partial<FileKind> {
  if (file === undefined) return {};
  const [, ending, compressed] = /\.([a-z0-9]+?)(?:\.(gz|zst|bz2|xz|zip|br))?$/i.exec(file) ?? [];
  if (compressed !== undefined && compressed.toLowerCase() !== 'gz') {
    throw new UsageError(`${file} ends with .${compressed}, and an export is compressed with gzip: name it .gz.`);
  }
  const format = endings[(ending ?? '').toLowerCase()];
  return { ...defined({ format }), ...(/\.gz$/i.test(file) && { gzip: true }) };
}

/** As people read what texts that spreadsheets take for formulas begin with. */
export const formulaStarts = '= + - @';
const formula = /^[=+\-@\t\r]/;

export interface WriterOptions {
  /** Whether texts in CSV that spreadsheets take for formulas get a ' before them. They are not given back exactly then. */
  readonly defusesFormulas?: boolean;
}

/** Takes rows, and gives what is to be written. */
export interface RowOutput {
  /** How many texts there were that spreadsheets take for formulas. */
  readonly formulas: number;
  /** Takes a row. Gives what is to be written before the next; undefined while it gathers more. */
  add(row: Readonly<Record<string, unknown>>): string | Uint8Array | undefined;
  /** What comes at the end. */
  end(): string | Uint8Array;
}

/** What is written is gathered into pieces of about that many characters. */
const pieceLength = 64 * 1024;

/** Rows as lines that an import gives back exactly. */
export class TextOutput implements RowOutput {
  readonly #format: TextFormat;
  readonly #columns: readonly AnswerColumn[];
  readonly #defusesFormulas: boolean;
  #piece: string;
  #formulas = 0;
  #lines = 0;

  constructor(format: TextFormat, columns: readonly AnswerColumn[], { defusesFormulas = false }: WriterOptions = {}) {
    this.#format = format;
    this.#columns = columns;
    this.#defusesFormulas = defusesFormulas;
    this.#piece = this.#head;
  }

  /** JSON has none. */
  get formulas(): number {
    return this.#formulas;
  }

  add(row: Readonly<Record<string, unknown>>): string | undefined {
    this.#piece += this.#line(row);
    return this.#piece.length < pieceLength ? undefined : this.#taken();
  }

  end(): string {
    if (this.#format === 'json') this.#piece += '\n]\n';
    return this.#taken();
  }

  #taken(): string {
    const piece = this.#piece;
    this.#piece = '';
    return piece;
  }

  /** The character between cells; undefined where there are objects. */
  get #delimiter(): string | undefined {
    if (this.#format === 'csv') return ',';
    return this.#format === 'tsv' ? '\t' : undefined;
  }

  /** What comes before the first row. */
  get #head(): string {
    if (this.#format === 'json') return '[';
    const delimiter = this.#delimiter;
    if (delimiter === undefined) return '';
    const names = this.#columns.map(({ name }) => this.#text(Types.varchar, headName(name)));
    return cellLine(names, delimiter);
  }

  #line(row: Readonly<Record<string, unknown>>): string {
    const delimiter = this.#delimiter;
    if (delimiter !== undefined) {
      const cells = this.#columns.map(({ from, typeId }) => {
        return row[from] === null ? null : this.#text(typeId, toText(typeId, row[from]));
      });
      return cellLine(cells, delimiter);
    }
    const entries = this.#columns.map(({ name, from, typeId }) => [name, toJson(typeId, row[from])] as const);
    const text = jsonText(Object.fromEntries(entries));
    if (this.#format === 'ndjson') return `${text}\n`;
    return this.#lines++ === 0 ? `\n${text}` : `,\n${text}`;
  }

  /** Only text holds formulas: a number is one, also below zero. */
  #text(typeId: TypeId, text: string): string {
    if (typeId !== Types.varchar || !formula.test(text)) return text;
    this.#formulas++;
    return this.#defusesFormulas ? `'${text}` : text;
  }
}

function cellLine(cells: readonly (string | null)[], delimiter: string): string {
  const quote = (text: string | null): string => {
    if (text === null) return '';
    const isQuoted = text === '' || text.includes(delimiter) || /["\r\n]|^\s|\s$/.test(text);
    return isQuoted ? `"${text.replaceAll('"', '""')}"` : text;
  };
  // A line of nothing would be skipped as an empty one.
  const [only] = cells;
  if (cells.length === 1 && only === null) return '""\n';
  return `${cells.map(quote).join(delimiter)}\n`;
}
