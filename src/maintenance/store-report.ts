/** The report of `db.doctor()`, and the report as text. */
import { messageText } from '../base/messages.ts';
import type { Certification } from '../storage/certify/certification.ts';

/** The content found under a prefix. */
export interface StoredDatabase {
  /**
   * `found`: a database. `none`: nothing, so that `start()` creates one. `other objects`: there are objects, and no
   * Block 0. `damaged`, `unknown format`: a Block 0 that cannot be used. `unreadable`: it could not be read.
   */
  readonly status: 'found' | 'none' | 'other objects' | 'damaged' | 'unknown format' | 'unreadable';
  /** The result in words, with the problem if there is one. */
  readonly detail: string;
  /** Id of the database. This and the next fields are undefined unless a database was found. */
  readonly databaseId: string | undefined;
  /** Version of the format that it is stored in. */
  readonly formatVersion: number | undefined;
  /** How often Block 0 was written. */
  readonly revision: number | undefined;
  /** How often commits were merged into blocks. */
  readonly generation: number | undefined;
}

/** The result of `db.doctor()`. */
export interface StoreReport extends Certification {
  /** Name of the driver. */
  readonly driver: string;
  /** The content found under the database's prefix. */
  readonly database: StoredDatabase;
  /** Advice for every problem, most important first; empty if there is nothing to do. */
  readonly recommendations: readonly string[];
}

/** The report as text for people, in aligned columns. */
export function formatStoreReport(report: StoreReport): string {
  const { driver, dialect, database, permissions, checks, recommendations, requests, clockSkewMs } = report;
  const facts: string[][] = [
    ['driver', driver],
    ...Object.entries(dialect),
    ['database', database.detail],
    ['safe', safety(report)],
    [
      'allowed',
      Object.entries(permissions)
        .map((entry) => entry.join(': '))
        .join(', '),
    ],
    ['latency', latencyText(report)],
    ['clock', clockSkewMs === undefined ? 'not known' : `${clockSkewMs} ms from this machine's`],
    ['requests', String(requests)],
  ];
  const parts = [aligned(facts), aligned(checks.map(({ name, status, detail }) => [status, name, detail]))];
  if (recommendations.length > 0) parts.push(recommendations.map((text) => `- ${messageText(text)}`).join('\n'));
  return `${parts.join('\n\n')}\n`;
}

function safety({ safe, problems }: StoreReport): string {
  if (safe) return 'yes';
  return problems.length > 0 ? 'NO' : 'could not be told';
}

function latencyText({ latency }: StoreReport): string {
  const texts = Object.entries(latency).flatMap(([kind, figures]) => {
    return figures === undefined
      ? []
      : [`${kind} ${tenths(figures.medianMs)} ms (at most ${tenths(figures.maxMs)} ms)`];
  });
  return texts.length === 0 ? 'not known' : texts.join(', ');
}

function tenths(ms: number): string {
  return String(Math.round(ms * 10) / 10);
}

/** Aligns columns, and makes texts safe to print: names in the store and its answers may hold anything. */
function aligned(given: readonly (readonly string[])[]): string {
  const rows = given.map((row) => row.map(messageText));
  const widthOf = (column: number): number => Math.max(...rows.map((row) => (row[column] ?? '').length));
  return rows
    .map((row) =>
      row.map((text, column) => (column === row.length - 1 ? text : text.padEnd(widthOf(column)))).join('  '),
    )
    .join('\n');
}
