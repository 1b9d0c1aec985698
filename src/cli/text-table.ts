/** Tables that line up, for people; where the output is no terminal they have no lines around them. */
import CliTable from 'cli-table3';
import type { Terminal } from './terminal.ts';

export interface Column {
  readonly name: string;
  readonly align?: 'left' | 'right';
}

/** The widest column gives way where the lines would not fit. */
const leastWidth = 8;

// eslint-disable-next-line no-control-regex
const controls = /[\u0000-\u001f\u007f-\u009f]/g;

/** Text from the database must not move the cursor, or colour what follows. */
export function printable(text: string): string {
  return text.replace(controls, (character) => {
    if (character === '\n') return '\u23ce';
    if (character === '\t') return ' ';
    return `\\x${character.charCodeAt(0).toString(16).padStart(2, '0')}`;
  });
}

function cut(text: string, width: number): string {
  return text.length <= width ? text : `${text.slice(0, Math.max(0, width - 1))}\u2026`;
}

/** Widths that fit into a line, by cutting the widest. */
function widthsFor(cells: readonly (readonly string[])[], columns: number | undefined): number[] {
  const widths = (cells[0] ?? []).map((_, i) => Math.max(...cells.map((row) => (row[i] ?? '').length)));
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

/** Prints rows of texts under the names of their columns. */
export function printTable(terminal: Terminal, columns: readonly Column[], rows: readonly (readonly string[])[]): void {
  const head = columns.map(({ name }) => name);
  const cells = [head, ...rows.map((row) => row.map(printable))];
  const widths = widthsFor(cells, terminal.columns);
  const fitted = cells.map((row) => row.map((cell, i) => cut(cell, widths[i] as number)));
  const plain = terminal.columns === undefined;
  const table = new CliTable({
    head: (fitted[0] as string[]).map((name) => terminal.style('bold', name)),
    colAligns: columns.map(({ align = 'left' }) => align),
    style: { head: [], border: [], compact: true, 'padding-left': plain ? 0 : 1, 'padding-right': plain ? 2 : 1 },
    ...(plain && { chars: noLines }),
  });
  table.push(...fitted.slice(1));
  for (const line of table.toString().split('\n')) terminal.print(plain ? line.trimEnd() : line);
}

const noLines = Object.fromEntries(
  ['top', 'top-mid', 'top-left', 'top-right', 'bottom', 'bottom-mid', 'bottom-left', 'bottom-right']
    .concat(['left', 'left-mid', 'mid', 'mid-mid', 'right', 'right-mid', 'middle'])
    .map((place) => [place, '']),
);

/** Prints names and what belongs to them, one in a line. */
export function printFacts(terminal: Terminal, facts: readonly (readonly [name: string, value: string])[]): void {
  const width = Math.max(...facts.map(([name]) => name.length));
  for (const [name, value] of facts)
    terminal.print(`${terminal.style('bold', name.padEnd(width))}  ${printable(value)}`);
}
