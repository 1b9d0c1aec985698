/** Parses CSV, TSV and similar text into records of cells. */
import { LineError } from './line-error.ts';

export const quoteRules = ['strict', 'lenient', 'none'] as const;
/**
 * The treatment of quotes. `strict`: a quote encloses a whole cell, and must be doubled inside; others are errors. `lenient`: other
 * quotes are text. `none`: all quotes are text.
 */
export type QuoteRule = (typeof quoteRules)[number];

export interface CsvRecord {
  /** The line on which it ends, counted from 1. */
  readonly line: number;
  /** Null: a cell without quotes that is empty, or that stands for null. */
  readonly cells: readonly (string | null)[];
  /** The record's text in the file. */
  readonly text: string;
  /** The error of a bad record. */
  readonly problem?: LineError;
}

export interface CsvOptions {
  readonly delimiter: string;
  readonly quotes: QuoteRule;
  /** Texts that stand for null without quotes, in addition to the empty one. */
  readonly nulls: readonly string[];
  /** The maximum length of a record. */
  readonly maxLength: number;
}

/** A record, and the index at which the next begins. */
interface Found {
  readonly cells: (string | null)[];
  readonly next: number;
  readonly problem?: { readonly message: string; readonly at: number };
}

/** Splits text that comes in pieces. */
export class CsvParser {
  readonly #options: CsvOptions;
  readonly #nulls: ReadonlySet<string>;
  readonly #longestNull: number;
  /** The end of records: a line feed, maybe after a carriage return; in old files a carriage return alone. */
  #newline: '\n' | '\r' | undefined;
  /** The text of an incomplete record. */
  #pending: string[] = [];
  #length = 0;
  /** The length at which the pending text is parsed again. It doubles each time, so that a long record takes no quadratic time. */
  #lookAgainAt = 0;
  #line = 0;

  constructor(options: CsvOptions) {
    this.#options = options;
    this.#nulls = new Set(['', ...options.nulls]);
    this.#longestNull = Math.max(...[...this.#nulls].map((text) => text.length));
  }

  /** Parses a piece of text. Returns the records that end in it. Throws `LineError` for a record that is too long. */
  push(piece: string): CsvRecord[] {
    this.#pending.push(piece);
    this.#length += piece.length;
    if (this.#length < this.#lookAgainAt) return this.#checkLength([]);
    return this.#checkLength(this.#read(false));
  }

  /** Whether lines end with a carriage return alone, as in old files. */
  get endsWithReturns(): boolean {
    return this.#newline === '\r';
  }

  /** Returns the remaining records. The last need not end with a line end. */
  end(): CsvRecord[] {
    return this.#read(true);
  }

  #checkLength(records: CsvRecord[]): CsvRecord[] {
    const { maxLength } = this.#options;
    if (this.#length <= maxLength) return records;
    throw new LineError(this.#line + 1, `it is longer than ${Math.floor(maxLength / 1048576)} MiB`);
  }

  #read(isEnd: boolean): CsvRecord[] {
    const text = this.#pending.join('');
    this.#newline ??= text.includes('\n') || !/\r./s.test(text) ? '\n' : '\r';
    const newline = this.#newline;
    const records: CsvRecord[] = [];
    let quote = this.#nextQuote(text, 0);
    let at = 0;
    while (at < text.length) {
      const found = text.indexOf(newline, at);
      if (found === -1 && !isEnd) break;
      const lineEnd = found === -1 ? text.length : found;
      if (quote < at) quote = this.#nextQuote(text, at);
      if (quote >= lineEnd) {
        // The usual case: no quotes until the end of the line.
        this.#line++;
        const stop = newline === '\n' && lineEnd > at && text.charCodeAt(lineEnd - 1) === 0x0d ? lineEnd - 1 : lineEnd;
        const line = stop > at ? text.slice(at, stop) : '';
        if (line !== '') records.push({ line: this.#line, cells: this.#plain(line), text: line });
        at = lineEnd + 1;
        continue;
      }
      const record = this.#quoted(text, at, isEnd);
      if (record === undefined) break;
      records.push(this.#finished(text, at, record));
      at = record.next;
    }
    this.#pending = at < text.length ? [text.slice(at)] : [];
    this.#length = Math.max(0, text.length - at);
    this.#lookAgainAt = this.#length * 2;
    return records;
  }

  #nextQuote(text: string, from: number): number {
    const at = this.#options.quotes === 'none' ? -1 : text.indexOf('"', from);
    return at === -1 ? Infinity : at;
  }

  #plain(line: string): (string | null)[] {
    const cells: (string | null)[] = line.split(this.#options.delimiter);
    for (let i = 0; i < cells.length; i++) if (this.#isNull(cells[i] as string)) cells[i] = null;
    return cells;
  }

  /** Compares lengths first, since most cells are longer than all of these texts, and a lookup in the set is slow. */
  #isNull(cell: string): boolean {
    return cell.length <= this.#longestNull && this.#nulls.has(cell);
  }

  /** Completes a record: counts its lines, and finds the position of its problem. */
  #finished(text: string, begin: number, { cells, next, problem }: Found): CsvRecord {
    const newline = this.#newline as string;
    const first = this.#line + 1;
    let lines = 1;
    for (let at = text.indexOf(newline, begin); at !== -1 && at < next - 1; at = text.indexOf(newline, at + 1)) lines++;
    this.#line += lines;
    const record = text.slice(begin, next).replace(/\r?[\r\n]$/, '');
    if (problem === undefined) return { line: this.#line, cells, text: record };
    const lineBegin = problem.at === 0 ? 0 : text.lastIndexOf(newline, problem.at - 1) + 1;
    const line = first + text.slice(begin, problem.at).split(newline).length - 1;
    const error = new LineError(line, problem.message, problem.at - lineBegin + 1);
    return { line: this.#line, cells: [], text: record, problem: error };
  }

  /** Parses a record with quotes; undefined if it is incomplete. */
  #quoted(text: string, begin: number, isEnd: boolean): Found | undefined {
    const { delimiter } = this.#options;
    const newline = this.#newline as string;
    const cells: (string | null)[] = [];
    for (let at = begin; ; ) {
      if (text[at] === '"') {
        const cell = this.#quotedCell(text, at, isEnd);
        if (cell === undefined) return undefined;
        if ('problem' in cell) return this.#skipped(text, cell.problem, isEnd);
        cells.push(cell.text);
        at = cell.end;
      } else {
        const lineEnd = text.indexOf(newline, at);
        if (lineEnd === -1 && !isEnd) return undefined;
        const border = text.indexOf(delimiter, at);
        const end = lineEnd === -1 ? text.length : lineEnd;
        let stop = border !== -1 && border < end ? border : end;
        if (stop === end && newline === '\n' && stop > at && text[stop - 1] === '\r') stop--;
        const cell = text.slice(at, stop);
        const stray = this.#options.quotes === 'strict' ? cell.indexOf('"') : -1;
        if (stray !== -1) {
          const message = 'a quote is within a text that does not begin with one';
          return this.#skipped(text, { message: `${message}${advice}`, at: at + stray }, isEnd);
        }
        cells.push(this.#isNull(cell) ? null : cell);
        at = stop;
      }
      if (text.startsWith(delimiter, at)) at += delimiter.length;
      else return { cells, next: at + (text[at] === '\r' && newline === '\n' ? 2 : 1) };
    }
  }

  /** Parses a cell in quotes: its text, and the index at which it ends; undefined if it is incomplete. */
  #quotedCell(
    text: string,
    begin: number,
    isEnd: boolean,
  ): { readonly text: string; readonly end: number } | Required<Pick<Found, 'problem'>> | undefined {
    for (let at = text.indexOf('"', begin + 1); ; at = text.indexOf('"', at)) {
      if (at === -1) {
        const message = `the quote here is never closed${advice}`;
        return isEnd ? { problem: { message, at: begin } } : undefined;
      }
      if (text[at + 1] === '"') {
        at += 2;
        continue;
      }
      const rest = text.length - at - 1;
      if (!isEnd && rest < Math.max(2, this.#options.delimiter.length)) return undefined;
      if (rest === 0 || this.#endsCell(text, at + 1)) {
        return { text: text.slice(begin + 1, at).replaceAll('""', '"'), end: at + 1 };
      }
      if (this.#options.quotes === 'strict') {
        return { problem: { message: `text follows the quote that closes a field${advice}`, at } };
      }
      at++;
    }
  }

  #endsCell(text: string, at: number): boolean {
    const newline = this.#newline as string;
    if (text.startsWith(this.#options.delimiter, at) || text.startsWith(newline, at)) return true;
    return newline === '\n' && text[at] === '\r' && (text[at + 1] === '\n' || at + 1 === text.length);
  }

  /** Skips the rest of the line with a problem. */
  #skipped(text: string, problem: NonNullable<Found['problem']>, isEnd: boolean): Found | undefined {
    const lineEnd = text.indexOf(this.#newline as string, problem.at);
    if (lineEnd === -1 && !isEnd) return undefined;
    return { cells: [], next: lineEnd === -1 ? text.length : lineEnd + 1, problem };
  }
}

const advice = ' (--quotes lenient reads stray quotes as text, --quotes none all quotes)';
