/** What to do about what was found in a store. */
import type { Certification, StoreCheck } from '../storage/certify/certification.ts';
import type { Role } from '../coordination/role.ts';
import { probePrefix } from '../format/keys.ts';

export interface Findings {
  readonly checks: readonly StoreCheck[];
  readonly permissions: Certification['permissions'];
  readonly prefix: string;
  /** Of the instance that asks. */
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
  ETags: 'ETags must be those of the store: look for a proxy that changes them, as some do that compress.',
  ranges: 'Look for a proxy that changes or ignores ranges, or tell whoever maintains the driver.',
  'order of lists': 'Tell whoever maintains the driver: pages of lists must follow the order of names.',
};

const warned: Readonly<Record<string, string>> = {
  'conditional reads': 'Expect higher costs: every look for news reads all of Block 0.',
  clock: "Set this machine's clock, best by NTP.",
  presigning: 'To make links for downloads, use credentials that can sign.',
};

/** What S3 calls the permission for requests of a kind. */
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

/** Sentences, most important first, none twice. */
export function adviceFor({ checks, permissions, prefix, role, database }: Findings): string[] {
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
