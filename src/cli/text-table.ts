/** Tables that line up, for people; where the output is no terminal they have no lines around them. */
import { withoutControls } from '../base/message-text.ts';
import { cutToWidth, displayWidth } from './display-width.ts';
import type { Terminal } from './terminal.ts';

export interface Column {
  readonly name: string;
  readonly align?: 'left' | 'right';
}

/** The widest column gives way where the lines would not fit. */
const leastWidth = 8;
/** Rows that say how wide the columns of a long table are. */
const measuredRows = 1000;
/** Text is written in pieces of about that many characters. */
const pieceLength = 64 * 1024;

/** Text from the database must not move the cursor, or colour what follows. */
export function printable(text: string): string {
  return withoutControls(text.replaceAll('\n', '\u23ce').replaceAll('\t', ' '));
}

/** Widths that fit into a line, by cutting the widest. */
function widthsFor(cells: readonly (readonly string[])[], columns: number | undefined): number[] {
  const widths = (cells[0] ?? []).map((_, i) =>
    cells.reduce((widest, row) => Math.max(widest, displayWidth(row[i] ?? '')), 0),
  );
  if (columns === undefined) return widths;
  const room = columns - widths.length * 3 - 1;
  for (let over = sum(widths) - room; over > 0; ) {
    const widest = widths.indexOf(Math.max(...widths));
    const width = widths[widest] as number;
    if (width <= leastWidth) break;
    const next = Math.max(leastWidth, width - Math.min(over, Math.max(1, width >> 3)));
    over -= width - next;
    widths[widest] = next;
  }
  return widths;
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}

/**
 * Prints a table row by row, however long it is. The first rows say how wide its columns are: a wider value further down is
 * cut in a terminal, and moves the rest of its line elsewhere.
 */
export class TableWriter {
  readonly #terminal: Terminal;
  readonly #columns: readonly Column[];
  /** Rows from which the widths will follow, the head first; undefined once the head is printed. */
  #measured: string[][] | undefined;
  #widths: number[] = [];
  #piece = '';

  constructor(terminal: Terminal, columns: readonly Column[]) {
    this.#terminal = terminal;
    this.#columns = columns;
    this.#measured = [columns.map(({ name }) => printable(name))];
  }

  get #isPlain(): boolean {
    return this.#terminal.columns === undefined;
  }

  /** Takes a row, and waits while the output is full. */
  async add(row: readonly string[]): Promise<void> {
    this.#take(row, measuredRows);
    if (this.#piece.length < pieceLength) return;
    this.#writePiece();
    await this.#terminal.drained();
  }

  /** Takes all rows that there are: their widths are those of the table. */
  addAll(rows: readonly (readonly string[])[]): void {
    for (const row of rows) this.#take(row, Number.POSITIVE_INFINITY);
  }

  /** Prints what is left, and the last line. */
  end(): void {
    this.#begin();
    if (!this.#isPlain) this.#rule('\u2514', '\u2534', '\u2518');
    this.#writePiece();
  }

  #take(row: readonly string[], most: number): void {
    const cells = row.map(printable);
    if (this.#measured === undefined) {
      this.#line(cells);
      return;
    }
    this.#measured.push(cells);
    if (this.#measured.length > most) this.#begin();
  }

  /** Prints the head and the rows that were measured, if that was not done. */
  #begin(): void {
    if (this.#measured === undefined) return;
    const [head = [], ...rows] = this.#measured;
    this.#widths = widthsFor(this.#measured, this.#terminal.columns);
    this.#measured = undefined;
    if (!this.#isPlain) this.#rule('\u250c', '\u252c', '\u2510');
    this.#line(head, (text) => this.#terminal.style('bold', text));
    if (!this.#isPlain) this.#rule('\u251c', '\u253c', '\u2524');
    for (const row of rows) this.#line(row);
  }

  #rule(left: string, middle: string, right: string): void {
    this.#piece += `${left}${this.#widths.map((width) => '\u2500'.repeat(width + 2)).join(middle)}${right}\n`;
  }

  #line(cells: readonly string[], styled = (text: string): string => text): void {
    const isPlain = this.#isPlain;
    const fitted = cells.map((cell, i) => {
      const width = this.#widths[i] ?? 0;
      const text = isPlain ? cell : cutToWidth(cell, width);
      const pad = ' '.repeat(Math.max(0, width - displayWidth(text)));
      return this.#columns[i]?.align === 'right' ? `${pad}${styled(text)}` : `${styled(text)}${pad}`;
    });
    this.#piece += isPlain ? `${fitted.join('  ').trimEnd()}\n` : `\u2502 ${fitted.join(' \u2502 ')} \u2502\n`;
  }

  #writePiece(): void {
    if (this.#piece !== '') this.#terminal.printLines(this.#piece.slice(0, -1));
    this.#piece = '';
  }
}

/** Prints rows of texts under the names of their columns. */
export function printTable(terminal: Terminal, columns: readonly Column[], rows: readonly (readonly string[])[]): void {
  const table = new TableWriter(terminal, columns);
  table.addAll(rows);
  table.end();
}

/** Prints names and what belongs to them, one in a line. */
export function printFacts(terminal: Terminal, facts: readonly (readonly [name: string, value: string])[]): void {
  const width = Math.max(...facts.map(([name]) => name.length));
  for (const [name, value] of facts)
    terminal.print(`${terminal.style('bold', name.padEnd(width))}  ${printable(value)}`);
}
