/** Looks at a store before, while or after a database is open on it: whether it is safe, and what is there. */
import { Deadline } from '../base/deadline.ts';
import type { Environment } from '../base/env.ts';
import { CorruptionError, NotSupportedError, UnknownFormatError } from '../base/errors.ts';
import { messageText } from '../base/message-text.ts';
import { untilAborted } from '../base/until-aborted.ts';
import { findStrayObject } from '../engine/open-database.ts';
import type { Role } from '../coordination/role.ts';
import type { Block0 } from '../format/block0.ts';
import { block0Name } from '../format/keys.ts';
import type { Certification, StoreCheck } from '../storage/certify/certification.ts';
import { certifyStore } from '../storage/certify/certify.ts';
import { Block0Reader } from '../block0/block0-reader.ts';
import type { StorageDriver } from '../storage/contract/driver.ts';
import { adviceFor } from './advice.ts';

/** What lies under a prefix. */
export interface StoredDatabase {
  /**
   * `found`: a database. `none`: nothing, so that `start()` creates one. `other objects`: there are objects, and no
   * Block 0. `damaged`, `unknown format`: a Block 0 that cannot be used. `unreadable`: it could not be read.
   */
  readonly status: 'found' | 'none' | 'other objects' | 'damaged' | 'unknown format' | 'unreadable';
  /** The same in words, with what is wrong. */
  readonly detail: string;
  /** Id of the database; undefined unless it was found, as are the others. */
  readonly databaseId: string | undefined;
  /** Version of the format that it is stored in. */
  readonly formatVersion: number | undefined;
  /** How often Block 0 was written. */
  readonly revision: number | undefined;
  /** How often commits were merged into blocks. */
  readonly generation: number | undefined;
}

/** What `db.doctor()` found. */
export interface StoreReport extends Certification {
  /** Name of the driver. */
  readonly driver: string;
  /** What lies under the database's prefix. */
  readonly database: StoredDatabase;
  /** What to do about everything that is not as it should be, most important first; empty if nothing is to be done. */
  readonly recommendations: readonly string[];
}

export interface ExamineOptions {
  readonly driver: StorageDriver;
  readonly prefix: string;
  readonly environment: Environment;
  /** What the instance is that asks: a replica needs no permission to write. */
  readonly role: Role;
  readonly signal?: AbortSignal | undefined;
}

const lookTimeoutMs = 20_000;

/** Rejects only if the signal is aborted. */
export async function examineStore({
  driver,
  prefix,
  environment,
  role,
  signal,
}: ExamineOptions): Promise<StoreReport> {
  const deadline = new Deadline(environment, 'Looking at the store', lookTimeoutMs, signal);
  try {
    const [{ certification }, database, presigning] = await Promise.all([
      certifyStore({ driver, prefix, environment, signal }),
      findDatabase(driver, prefix, deadline.signal),
      checkPresigning(driver, prefix, deadline.signal),
    ]);
    const checks = [...certification.checks, presigning];
    const { permissions } = certification;
    const recommendations = adviceFor({ checks, permissions, prefix, role, database: database.status });
    return { ...certification, checks, driver: driver.name, database, recommendations };
  } finally {
    deadline.clear();
  }
}

function stored(status: StoredDatabase['status'], detail: string, block0?: Block0): StoredDatabase {
  return {
    status,
    detail,
    databaseId: block0?.databaseId,
    formatVersion: block0?.format,
    revision: block0?.revision,
    generation: block0?.generation,
  };
}

async function findDatabase(driver: StorageDriver, prefix: string, signal: AbortSignal): Promise<StoredDatabase> {
  try {
    return await untilAborted(look(driver, prefix, signal), signal);
  } catch (error) {
    const { message } = error as Error;
    if (error instanceof CorruptionError) return stored('damaged', message);
    if (error instanceof UnknownFormatError) return stored('unknown format', message);
    return stored('unreadable', `Block 0 could not be read: ${message}`);
  }
}

async function look(driver: StorageDriver, prefix: string, signal: AbortSignal): Promise<StoredDatabase> {
  const found = await new Block0Reader(driver, prefix).read({ signal });
  if (typeof found === 'object') {
    const { block0 } = found;
    const { format, revision, generation } = block0;
    const numbers = `format ${format}, revision ${revision}, generation ${generation}`;
    return stored('found', `A database is under ${prefix}/: ${numbers}.`, block0);
  }
  const stray = await findStrayObject(driver, prefix, signal);
  if (stray === undefined) return stored('none', `There is nothing under ${prefix}/: start() creates a database.`);
  return stored('other objects', `There are objects under ${prefix}/ (for instance ${stray}), and no Block 0.`);
}

async function checkPresigning(driver: StorageDriver, prefix: string, signal: AbortSignal): Promise<StoreCheck> {
  const name = 'presigning';
  if (driver.presign === undefined) {
    return { name, status: 'skipped', detail: 'The driver makes no URLs, so blobs cannot be downloaded by link.' };
  }
  try {
    await untilAborted(driver.presign(`${prefix}/${block0Name}`, { expiresInSeconds: 60 }), signal);
    return { name, status: 'ok', detail: 'URLs for downloads can be made. Whether they work was not tried.' };
  } catch (error) {
    if (error instanceof NotSupportedError) return { name, status: 'skipped', detail: error.message };
    return { name, status: 'warning', detail: `No URL for a download could be made: ${(error as Error).message}` };
  }
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

function safety({ safe, findings }: StoreReport): string {
  if (safe) return 'yes';
  return findings.length > 0 ? 'NO' : 'could not be told';
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

/** Rows with all columns but the last padded to the longest of them. Names in the store and its answers may hold anything. */
function aligned(given: readonly (readonly string[])[]): string {
  const rows = given.map((row) => row.map(messageText));
  const widthOf = (column: number): number => Math.max(...rows.map((row) => (row[column] ?? '').length));
  return rows
    .map((row) =>
      row.map((text, column) => (column === row.length - 1 ? text : text.padEnd(widthOf(column)))).join('  '),
    )
    .join('\n');
}
