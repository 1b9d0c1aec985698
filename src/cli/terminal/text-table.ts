/** Prints tables with aligned columns. They have borders in a terminal only. */
import { withoutControls } from '../../base/messages.ts';
import { cutToWidth, displayWidth } from './terminal.ts';
import type { Style, Terminal } from './terminal.ts';

export interface Column {
  readonly name: string;
  readonly align?: 'left' | 'right';
}

/** A part of a text, as `slice()` takes it. */
interface Mark {
  readonly start: number;
  readonly end: number;
}

/** A cell of a table: a text, or a text with a style, or with parts that are marked. */
export type Cell =
  | string
  | { readonly text: string; readonly style: Style | undefined; readonly marks?: readonly Mark[] };

interface PrintableCell {
  readonly text: string;
  readonly style: Style | undefined;
  readonly marks?: readonly Mark[];
}

function printableCell(cell: Cell): PrintableCell {
  if (typeof cell === 'string') return { text: printable(cell), style: undefined };
  const { text, style, marks = [] } = cell;
  if (marks.length === 0) return { text: printable(text), style };
  // Part by part: a control character becomes several others.
  let shown = '';
  let at = 0;
  const placed = marks.map(({ start, end }) => {
    shown += printable(text.slice(at, start));
    const from = shown.length;
    shown += printable(text.slice(start, end));
    at = end;
    return { start: from, end: shown.length };
  });
  return { text: shown + printable(text.slice(at)), style, marks: placed };
}

/** The width down to which a column is cut if the lines are too long, the widest column first. */
const minWidth = 8;
/** The number of rows from which the column widths of a long table follow. */
const measuredRows = 1000;
/** Text is written in pieces of about this many characters. */
const pieceLength = 64 * 1024;

/** Replaces control characters of a text from the database, which could move the cursor or change colours. */
export function printable(text: string): string {
  return withoutControls(text.replaceAll('\n', '\u23ce').replaceAll('\t', ' '));
}

/** Returns column widths that fit into a line, by cutting the widest columns. */
function widthsFor(cells: readonly (readonly PrintableCell[])[], columns: number | undefined): number[] {
  const widths = (cells[0] ?? []).map((_, i) =>
    cells.reduce((widest, row) => Math.max(widest, displayWidth(row[i]?.text ?? '')), 0),
  );
  if (columns === undefined) return widths;
  const room = columns - widths.length * 3 - 1;
  for (let over = sum(widths) - room; over > 0; ) {
    const widest = widths.indexOf(Math.max(...widths));
    const width = widths[widest] as number;
    if (width <= minWidth) break;
    const next = Math.max(minWidth, width - Math.min(over, Math.max(1, width >> 3)));
    over -= width - next;
    widths[widest] = next;
  }
  return widths;
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}

/**
 * Prints a table of any length row by row. The first 1,000 rows determine the widths of its columns: a wider value further down is cut
 * in a terminal, and elsewhere shifts the rest of its line. A terminal that is too narrow for the columns gets one field per line.
 */
export class TableWriter {
  readonly #terminal: Terminal;
  readonly #columns: readonly Column[];
  readonly #names: readonly string[];
  /** Rows to determine the widths from; undefined once the head is printed. */
  #measured: PrintableCell[][] | undefined = [];
  #widths: number[] = [];
  #isNarrow = false;
  #rows = 0;
  #piece = '';

  constructor(terminal: Terminal, columns: readonly Column[]) {
    this.#terminal = terminal;
    this.#columns = columns;
    this.#names = columns.map(({ name }) => printable(name));
  }

  get #isPlain(): boolean {
    return this.#terminal.columns === undefined;
  }

  /** Adds a row, and waits while the output is full. */
  async add(row: readonly Cell[]): Promise<void> {
    this.#take(row, measuredRows);
    if (this.#piece.length < pieceLength) return;
    this.#writePiece();
    await this.#terminal.drained();
  }

  /** Adds all rows of a table. All of them determine the widths. */
  addAll(rows: readonly (readonly Cell[])[]): void {
    for (const row of rows) this.#take(row, Number.POSITIVE_INFINITY);
  }

  /** Prints the remaining rows and the bottom line. */
  end(): void {
    this.#begin();
    if (!this.#isPlain && !this.#isNarrow) this.#rule('\u2514', '\u2534', '\u2518');
    this.#writePiece();
  }

  #take(row: readonly Cell[], most: number): void {
    const cells = row.map(printableCell);
    if (this.#measured === undefined) {
      this.#row(cells);
      return;
    }
    this.#measured.push(cells);
    if (this.#measured.length >= most) this.#begin();
  }

  /** Prints the head and the measured rows, unless that is done. */
  #begin(): void {
    if (this.#measured === undefined) return;
    const rows = this.#measured;
    const head = this.#names.map((text): PrintableCell => ({ text, style: 'bold' }));
    const { columns } = this.#terminal;
    this.#widths = widthsFor([head, ...rows], columns);
    this.#isNarrow = columns !== undefined && lineWidth(this.#widths) > columns;
    this.#measured = undefined;
    if (this.#isNarrow) this.#widths = [Math.max(0, ...this.#names.map(displayWidth))];
    else {
      if (!this.#isPlain) this.#rule('\u250c', '\u252c', '\u2510');
      this.#line(head);
      if (!this.#isPlain) this.#rule('\u251c', '\u253c', '\u2524');
    }
    for (const row of rows) this.#row(row);
  }

  #row(cells: readonly PrintableCell[]): void {
    if (this.#isNarrow) this.#record(cells);
    else this.#line(cells);
  }

  /** Prints a row with one field per line. */
  #record(cells: readonly PrintableCell[]): void {
    const columns = this.#terminal.columns ?? Number.POSITIVE_INFINITY;
    const longestName = Math.max(1, Math.min(this.#widths[0] ?? 0, columns >> 1));
    const number = `\u2500 ${++this.#rows} `;
    this.#piece += `${this.#terminal.style('dim', number.padEnd(columns, '\u2500'))}\n`;
    cells.forEach((cell, i) => {
      const name = cutToWidth(this.#names[i] ?? '', longestName);
      const padded = name + ' '.repeat(longestName - displayWidth(name));
      const value = cutToWidth(cell.text, Math.max(1, columns - longestName - 2));
      this.#piece += `${this.#terminal.style('bold', padded)}  ${this.#styled(cell, value)}\n`;
    });
  }

  #rule(left: string, middle: string, right: string): void {
    this.#piece += `${left}${this.#widths.map((width) => '\u2500'.repeat(width + 2)).join(middle)}${right}\n`;
  }

  #line(cells: readonly PrintableCell[]): void {
    const isPlain = this.#isPlain;
    const fitted = cells.map((cell, i) => {
      const width = this.#widths[i] ?? 0;
      const text = isPlain ? cell.text : cutToWidth(cell.text, width);
      const pad = ' '.repeat(Math.max(0, width - displayWidth(text)));
      const styled = this.#styled(cell, text);
      return this.#columns[i]?.align === 'right' ? `${pad}${styled}` : `${styled}${pad}`;
    });
    this.#piece += isPlain ? `${fitted.join('  ').trimEnd()}\n` : `\u2502 ${fitted.join(' \u2502 ')} \u2502\n`;
  }

  /** Returns a text with the style of its cell. `text`: the text of the cell, or its beginning and an ellipsis. */
  #styled({ text: whole, style, marks = [] }: PrintableCell, text: string): string {
    if (style !== undefined) return this.#terminal.style(style, text);
    const length = text === whole ? text.length : text.length - 1;
    let shown = '';
    let at = 0;
    for (const { start, end } of marks) {
      if (start >= length) break;
      const until = Math.min(end, length);
      shown += `${text.slice(at, start)}${this.#terminal.style('yellow', text.slice(start, until))}`;
      at = until;
    }
    return shown + text.slice(at);
  }

  #writePiece(): void {
    if (this.#piece !== '') this.#terminal.printLines(this.#piece.slice(0, -1));
    this.#piece = '';
  }
}

/** Returns the width of a line, with the borders of the columns. */
function lineWidth(widths: readonly number[]): number {
  return sum(widths) + widths.length * 3 + 1;
}

/** Prints a whole table. */
export function printTable(terminal: Terminal, columns: readonly Column[], rows: readonly (readonly Cell[])[]): void {
  const table = new TableWriter(terminal, columns);
  table.addAll(rows);
  table.end();
}

/** Prints names with their values, one per line. */
export function printFacts(terminal: Terminal, facts: readonly (readonly [name: string, value: string])[]): void {
  const width = Math.max(...facts.map(([name]) => name.length));
  for (const [name, value] of facts)
    terminal.print(`${terminal.style('bold', name.padEnd(width))}  ${printable(value)}`);
}
