/** Writes the rows of an export as text: NDJSON, JSON, CSV or TSV. */
import { defined } from '../../base/options.ts';
import { Types } from '../../format/types.ts';
import type { TypeId } from '../../format/types.ts';
import { UsageError } from '../terminal/exit-code.ts';
import { headName } from '../input/columns.ts';
import { jsonText } from '../terminal/figures.ts';
import type { AnswerColumn } from '../language/asked-query.ts';
import { toJson, toText } from '../../text/cell-values.ts';
import { cellLine } from '../../text/cell-lines.ts';

export const outputFormats = ['ndjson', 'json', 'csv', 'tsv', 'parquet'] as const;
type OutputFormat = (typeof outputFormats)[number];
export type TextFormat = Exclude<OutputFormat, 'parquet'>;

/** Returns the file name; undefined for `-`, which means standard input or output. Yargs passes `-` as an empty text. */
export function namedFile(file: string | undefined): string | undefined {
  return file === '' || file === '-' ? undefined : file;
}

/** The format and compression of a file. */
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

/** Derives format and compression from the name of a file, as far as its endings say. Throws `UsageError` for other compressions. */
export function kindOf(file: string | undefined): Partial<FileKind> {
  if (file === undefined) return {};
  const [, ending, compressed] = /\.([a-z0-9]+?)(?:\.(gz|zst|bz2|xz|zip|br))?$/i.exec(file) ?? [];
  if (compressed !== undefined && compressed.toLowerCase() !== 'gz') {
    throw new UsageError(`${file} ends with .${compressed}, but exports are compressed with gzip: name it .gz.`);
  }
  const format = endings[(ending ?? '').toLowerCase()];
  return { ...defined({ format }), ...(/\.gz$/i.test(file) && { gzip: true }) };
}

/** Refuses the name of a file in a format that exports cannot have. Throws `UsageError`. */
export function refuseOtherFormat(file: string | undefined): void {
  const [, ending] = /\.(xlsx?|ods|xml|html?|sql|ya?ml|avro|arrow|feather|orc|db|sqlite3?)$/i.exec(file ?? '') ?? [];
  if (ending === undefined) return;
  throw new UsageError(
    `${file} ends with .${ending}, which is no format of exports: name it .csv, .tsv, .json, .ndjson or .parquet, or give --format.`,
  );
}

/** The characters at the beginning of a formula, for messages. */
export const formulaStarts = '= + - @';
const formula = /^[=+\-@\t\r]/;

export interface WriterOptions {
  /** Whether to put a ' before CSV texts that spreadsheets would run as formulas. An import then does not restore them exactly. */
  readonly defusesFormulas?: boolean;
}

/** Encodes rows for an export. */
export interface RowOutput {
  /** The number of texts so far that spreadsheets would run as formulas. */
  readonly formulas: number;
  /** Adds a row. Returns the next part of the file once enough is gathered; undefined before. */
  add(row: Readonly<Record<string, unknown>>): string | Uint8Array | undefined;
  /** Returns the rest of the file. */
  end(): string | Uint8Array;
}

/** Lines are gathered into pieces of about this many characters. */
const pieceLength = 64 * 1024;

/** Writes rows as lines that an import restores exactly. */
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

  /** Always 0 for JSON. */
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

  /** The separator of cells; undefined for JSON and NDJSON. */
  get #delimiter(): string | undefined {
    if (this.#format === 'csv') return ',';
    return this.#format === 'tsv' ? '\t' : undefined;
  }

  /** The text before the first row. */
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

  /** Only texts are formulas: a negative number is not one. */
  #text(typeId: TypeId, text: string): string {
    if (typeId !== Types.varchar || !formula.test(text)) return text;
    this.#formulas++;
    return this.#defusesFormulas ? `'${text}` : text;
  }
}
