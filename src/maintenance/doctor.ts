/** Examines a store, with or without an open database on it: whether it is safe, and which objects are under the prefix. */
import { Deadline, untilAborted } from '../base/abort.ts';
import type { Environment } from '../base/env.ts';
import { CorruptionError, NotSupportedError, UnknownFormatError } from '../base/errors.ts';
import { Block0Reader } from '../block0/block0-reader.ts';
import type { Role } from '../coordination/membership.ts';
import { findStrayObject } from '../engine/open-or-create.ts';
import type { Block0 } from '../format/block0.ts';
import { block0Name, probePrefix } from '../format/object-names.ts';
import type { Certification, StoreCheck } from '../storage/certify/certification.ts';
import { certifyStore } from '../storage/certify/certify.ts';
import type { StorageDriver } from '../storage/contract/driver.ts';
import type { StoredDatabase, StoreReport } from './store-report.ts';

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
