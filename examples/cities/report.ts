/** What the demo prints: tables, and what each step took in time and in requests to the store. */
import CliTable from 'cli-table3';
import type { Database } from 'store-db';

/** A step that was carried out: what came of it, and what it cost, in words. */
export interface Measured<T> {
  readonly value: T;
  readonly milliseconds: number;
  readonly requests: string;
}

/** Carries out a step and measures it. Requests of the background loop that fall into it are counted too. */
export async function measure<T>(db: Database, step: () => Promise<T>): Promise<Measured<T>> {
  const before = db.stats().requests;
  const startedMs = performance.now();
  const value = await step();
  const milliseconds = performance.now() - startedMs;
  return { value, milliseconds, requests: describeRequests(before, db.stats().requests) };
}

type Requests = ReturnType<Database['stats']>['requests'];

function describeRequests(before: Requests, after: Requests): string {
  const count = (name: keyof Requests): number => after[name] - before[name];
  const gets = count('get') + count('getMissing') + count('getUnchanged');
  const puts = count('put') + count('putLost');
  const parts = [
    [gets, `${gets} GET`],
    [puts, `${puts} PUT`],
    [count('list'), `${count('list')} LIST`],
    [count('bytesRead'), `${formatBytes(count('bytesRead'))} read`],
    [count('bytesWritten'), `${formatBytes(count('bytesWritten'))} written`],
  ] as const;
  const said = parts.filter(([number]) => number > 0).map(([, text]) => text);
  return said.length === 0 ? 'no requests' : said.join(', ');
}

export function heading(text: string): void {
  console.log(`\n${text}\n${'-'.repeat(text.length)}`);
}

/** Prints a table of steps and their costs. */
export function printSteps(steps: readonly (readonly [what: string, result: string, Measured<unknown>])[]): void {
  printTable(
    ['Step', 'Result', 'Time', 'Requests'],
    steps.map(([what, result, { milliseconds, requests }]) => [what, result, formatTime(milliseconds), requests]),
    [2],
  );
}

type Cell = string | number | null;

/** Prints the rows that a step returned, under what it was and what it cost. */
export function printRows(
  what: string,
  { value: rows, milliseconds, requests }: Measured<readonly Readonly<Record<string, Cell>>[]>,
): void {
  console.log(`\n${what}\n  ${formatTime(milliseconds)}, ${requests}`);
  const first = rows[0];
  if (first === undefined) {
    console.log('  no rows');
    return;
  }
  const names = Object.keys(first);
  const numeric = names.flatMap((name, i) => (typeof first[name] === 'number' ? [i] : []));
  const cells = rows.map((row) => names.map((name) => formatCell(row[name] ?? null)));
  printTable(names, cells, numeric);
}

function printTable(head: string[], rows: string[][], alignedRight: readonly number[]): void {
  const table = new CliTable({
    head,
    colAligns: head.map((_, i) => (alignedRight.includes(i) ? 'right' : 'left')),
    style: { head: [], border: [], compact: true },
  });
  table.push(...rows);
  console.log(table.toString());
}

const grouped = new Intl.NumberFormat('en-US');

/** An integer with separators: `150,000`. */
export function formatCount(count: number): string {
  return grouped.format(count);
}

function formatCell(value: Cell): string {
  if (typeof value !== 'number') return value ?? 'null';
  return Number.isInteger(value) ? String(value) : value.toFixed(5);
}

export function formatTime(milliseconds: number): string {
  if (milliseconds >= 1000) return `${(milliseconds / 1000).toFixed(2)} s`;
  if (milliseconds >= 10) return `${milliseconds.toFixed(0)} ms`;
  return milliseconds >= 0.1 ? `${milliseconds.toFixed(1)} ms` : `${(milliseconds * 1000).toFixed(0)} µs`;
}

function formatBytes(bytes: number): string {
  return bytes >= 1e6 ? `${(bytes / 1e6).toFixed(1)} MB` : `${formatCount(Math.ceil(bytes / 1000))} KB`;
}
