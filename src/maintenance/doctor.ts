/** Examines a store, with or without an open database on it: whether it is safe, and which objects are under the prefix. */
import { Deadline, untilAborted } from '../base/abort.ts';
import type { Environment } from '../base/env.ts';
import { CorruptionError, NotSupportedError, UnknownFormatError } from '../base/errors.ts';
import { messageText } from '../base/messages.ts';
import { Block0Reader } from '../block0/block0-reader.ts';
import type { Role } from '../coordination/membership.ts';
import { findStrayObject } from '../engine/open-or-create.ts';
import type { Block0 } from '../format/block0.ts';
import { block0Name, probePrefix } from '../format/object-names.ts';
import type { Certification, StoreCheck } from '../storage/certify/certification.ts';
import { certifyStore } from '../storage/certify/certify.ts';
import type { StorageDriver } from '../storage/contract/driver.ts';

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

export interface ExamineOptions {
  readonly driver: StorageDriver;
  readonly prefix: string;
  readonly environment: Environment;
  /** Role of the instance that asks: a replica needs no permission to write. */
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

/** The findings about a store that advice is given for. */
export interface Findings {
  readonly checks: readonly StoreCheck[];
  readonly permissions: Certification['permissions'];
  readonly prefix: string;
  /** Role of the instance that asks. */
  readonly role: Role;
  /** Whether a database was found, as `StoredDatabase.status` says. */
  readonly database: string;
}

const conditions =
  'Do not keep a database in this store as it is. Use one that keeps conditional writes, or newer software for it; ' +
  'docs/drivers.md says what must hold.';
const freshness =
  'Reads and lists must show the last write at once: go around caches, proxies and replicas between here and the store, ' +
  'or switch the store to strong consistency.';

const failed: Readonly<Record<string, string>> = {
  'create-only put': conditions,
  'condition that holds': conditions,
  'stale ETag': conditions,
  'missing key': conditions,
  'streamed put': conditions,
  'race of creates': conditions,
  'race of updates': conditions,
  reads: freshness,
  lists: freshness,
  ETags: 'ETags must arrive unchanged: look for a proxy that changes them, as some do that compress.',
  ranges: 'Look for a proxy that changes or ignores ranges, or tell the maintainer of the driver.',
  'order of lists': 'Tell the maintainer of the driver: pages of lists must follow the order of names.',
};

const warned: Readonly<Record<string, string>> = {
  'conditional reads': 'Expect higher costs: every look for news reads all of Block 0.',
  clock: "Set this machine's clock, best by NTP.",
  presigning: 'To make links for downloads, use credentials that can sign.',
};

/** For each kind of request, the permission that it needs, by its name in S3. */
const grants: Readonly<Record<keyof Findings['permissions'], string>> = {
  read: 'read objects (s3:GetObject)',
  write: 'write objects (s3:PutObject); an instance that never flushes does without',
  list: 'list objects (s3:ListBucket)',
  delete: 'delete objects (s3:DeleteObject); until then, remove what is under',
};

const databases: Readonly<Record<string, string>> = {
  damaged: 'Restore the object block0 from a copy: start() will refuse this one.',
  'unknown format': 'Upgrade store-db: start() will refuse what a newer version wrote.',
  'other objects':
    'Choose another dbPrefix, or restore the object block0: start() will refuse to create a database here.',
};

const untoldOnReplica =
  'Nothing is to be done for a replica. Whether the store keeps conditional writes can only be told by one that may ' +
  'write: run doctor() where writers run.';

/** Returns advice in sentences, most important first, without repetitions. */
function adviceFor({ checks, permissions, prefix, role, database }: Findings): string[] {
  const advice = new Set<string>();
  const add = (text: string | undefined): void => {
    if (text !== undefined) advice.add(text);
  };
  for (const { name, status } of checks) if (status === 'failed') add(failed[name]);
  add(databases[database]);
  const isReplica = role === 'replica';
  if (isReplica && database === 'none')
    add("Start an instance with role 'writer' first: a replica creates no database.");
  for (const permission of ['read', 'write', 'list', 'delete'] as const) {
    if (permissions[permission] !== 'forbidden') continue;
    if (isReplica && (permission === 'write' || permission === 'delete')) continue;
    const place = permission === 'delete' ? ` ${prefix}/${probePrefix} yourself` : '';
    add(`Allow the credentials to ${grants[permission]}${place}.`);
  }
  for (const { name, status } of checks) if (status === 'warning') add(warned[name]);
  const isUntold = checks.some(({ name, status }) => status === 'skipped' && name in failed);
  if (isUntold && advice.size === 0) {
    const isAsMeant = isReplica && permissions.write === 'forbidden';
    add(isAsMeant ? untoldOnReplica : 'Try again when the store answers: too many requests failed to tell.');
  }
  return [...advice];
}
