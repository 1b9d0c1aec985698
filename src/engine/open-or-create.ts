/** Opens the database under a prefix, or creates it where there is nothing at all (docs/protocol.md, "Opening"). */
import { isError } from '../base/brands.ts';
import { defined } from '../base/options.ts';
import type { Environment } from '../base/env.ts';
import { DatabaseReplacedError, NotADatabaseError, StorageError, UnsafeStoreError } from '../base/errors.ts';
import { randomUuid } from '../base/ids.ts';
import { Later } from '../base/later.ts';
import type { Logger } from '../base/logger.ts';
import type { Block0 } from '../format/block0.ts';
import { probePrefix } from '../format/object-names.ts';
import { block0FormatVersion } from '../format/version.ts';
import type { VersionedBlock0 } from '../block0/block0-reader.ts';
import type { Block0Register } from '../block0/block0-register.ts';
import { ensureCertified } from '../storage/certify/certificate.ts';
import type { CertifiedStore } from '../storage/certify/certify.ts';
import type { StorageDriver } from '../storage/contract/driver.ts';
import type { StoreClock } from '../storage/contract/store-clock.ts';
import { withNodes } from '../block0/node-identity.ts';
import type { NodeIdentity } from '../block0/node-identity.ts';
import type { Role } from '../coordination/membership.ts';

const certifying = new Later('certifying a store', () => import('../storage/certify/certify.ts'));

export interface OpeningOptions {
  readonly environment: Environment;
  readonly driver: StorageDriver;
  /** The driver as its user gave it. */
  readonly given: StorageDriver;
  readonly prefix: string;
  readonly register: Block0Register;
  readonly logger: Logger;
  readonly node: NodeIdentity;
  readonly role: Role;
  readonly clock: StoreClock;
  /** The least state that may be opened; undefined: any, or none yet. */
  readonly expectAtLeast?: ExpectedState | undefined;
}

/** A state that a database has had. */
export interface ExpectedState {
  /** The revision of its Block 0, from `db.stats()` or `store-db stats`. */
  readonly revision?: number;
  /** Its generation, from a backup or a snapshot. */
  readonly generation?: number;
}

export async function openOrCreate(options: OpeningOptions, signal: AbortSignal): Promise<VersionedBlock0> {
  const { register, expectAtLeast } = options;
  const opened = await register.open(signal);
  if (opened !== undefined) {
    checkExpected(options, opened.block0);
    return opened;
  }
  if (expectAtLeast !== undefined) {
    throw new DatabaseReplacedError(
      `There is no database under ${options.prefix}/, and one of at least ${stateText(expectAtLeast)} was expected ` +
        '(expectAtLeast). None was created: restore it from a backup, or correct dbPrefix or the driver.',
    );
  }
  if (options.role === 'replica') {
    throw new NotADatabaseError(
      `There is no database under ${options.prefix}/, and this instance is a replica, which creates none. Start an ` +
        "instance with role 'writer' there first, or correct dbPrefix or the driver.",
    );
  }
  const stray = await findStrayObject(options.driver, options.prefix, signal);
  // Read again: the database may have been created since, and the listed object may be its own.
  const created = await register.open(signal);
  if (created !== undefined) return created;
  if (stray !== undefined) {
    throw new NotADatabaseError(
      `There are objects under ${options.prefix}/ (for instance ${stray}) but no Block 0. If a database was here, ` +
        'restore its block0 object; otherwise choose another dbPrefix, or empty this one.',
    );
  }
  // An instance that creates a database sees to it that the store is fit for one; an instance that finds one relies on that.
  const { driver, given, environment } = options;
  if (driver.certified !== true) {
    await ensureCertified({ driver, given, environment, signal }, () => certify(options, signal));
  }
  return register.create(emptyDatabase(options), signal);
}

function stateText({ revision, generation }: ExpectedState): string {
  const parts = [
    ...(revision === undefined ? [] : [`revision ${revision}`]),
    ...(generation === undefined ? [] : [`generation ${generation}`]),
  ];
  return parts.join(' and ');
}

/** Throws `DatabaseReplacedError` for an older state than is expected. */
function checkExpected({ prefix, expectAtLeast }: OpeningOptions, { revision, generation }: Block0): void {
  if (expectAtLeast === undefined) return;
  if (revision >= (expectAtLeast.revision ?? 0) && generation >= (expectAtLeast.generation ?? 0)) return;
  throw new DatabaseReplacedError(
    `The database under ${prefix}/ is of ${stateText({ revision, generation })}, and at least ${stateText(expectAtLeast)} was ` +
      'expected (expectAtLeast): an older state was put back, by somebody who can write there or by the store. Nothing was ' +
      'opened. Find out who did it; to go on with the older state, expect less.',
  );
}

/** Tries the store out, and throws unless it keeps every rule that data depends on. */
async function certify(options: OpeningOptions, signal: AbortSignal): Promise<void> {
  const { driver, prefix, environment, logger } = options;
  const { certifyStore } = await certifying.get();
  const startedMs = environment.monotonicMs();
  const certified = await certifyStore({ driver, prefix, environment, signal });
  const { safe, problems, checks, requests } = certified.certification;
  if (problems.length > 0) {
    throw new UnsafeStoreError(
      `The store (driver ${driver.name}) is not safe for a database, and none was created under ${prefix}/. ` +
        `${problems.join(' ')} Commits could be lost there. Use a store that keeps conditional writes; ` +
        'db.doctor() tells more.',
      problems,
    );
  }
  if (!safe) throw uncertified(options, certified);
  for (const { name, status, detail } of checks) {
    if (status === 'warning') logger.warn(`Trying out the store, ${name}: ${detail}`);
  }
  const durationMs = Math.round(environment.monotonicMs() - startedMs);
  logger.info(`Certified the store (driver ${driver.name}) for a new database in ${durationMs} ms`, {
    durationMs,
    requests,
  });
}

/** Why a store that did nothing wrong could not be certified. */
function uncertified({ driver, prefix }: OpeningOptions, { certification, failure }: CertifiedStore): StorageError {
  const { permissions, checks } = certification;
  const needed = ['read', 'write', 'list'] as const;
  const forbidden = needed.filter((permission) => permissions[permission] === 'forbidden');
  const untold = checks.find(({ status }) => status === 'skipped')?.detail ?? '';
  const why = isError(failure) ? failure.message : untold;
  const what =
    forbidden.length > 0
      ? `the credentials are not allowed to ${forbidden.join(' and ')} there`
      : 'too many requests failed to tell whether it keeps conditional writes';
  return new StorageError(
    `${prefix}/${probePrefix}`,
    'none',
    `The store (driver ${driver.name}) could not be tried out, and no database was created under ${prefix}/: ${what}. ${why}`,
    { cause: failure, ...(forbidden.length > 0 ? { reason: 'forbidden' } : {}) },
  );
}

/** Some object under the prefix that is not a probe. */
export async function findStrayObject(
  driver: StorageDriver,
  prefix: string,
  signal: AbortSignal,
): Promise<string | undefined> {
  const folder = `${prefix}/`;
  for (let after: string | undefined; ; ) {
    const page = await driver.list(folder, { signal, ...defined({ after }) });
    const found = page.entries.find(({ key }) => !key.startsWith(folder + probePrefix));
    if (found !== undefined) return found.key;
    if (!page.more) return undefined;
    after = page.entries[page.entries.length - 1]?.key;
  }
}

function emptyDatabase({ environment, register, node, clock, role }: OpeningOptions): Block0 {
  const list = role === 'ephemeral' ? { nodes: [] } : node.entering({ nodes: [] }, [], clock.now());
  const empty: Block0 = {
    format: block0FormatVersion,
    databaseId: randomUuid(environment),
    revision: 1,
    generation: 0,
    changedMs: Math.floor(clock.now()),
    nonce: register.newNonce(),
    appliedSeq: 0,
    logFloor: 0,
    applied: [],
    tables: [],
    inlined: [],
    collected: 0,
    history: null,
    snapshots: [],
    migrations: [],
    nodes: [],
    writer: { nodeId: node.id, atMs: environment.now() },
  };
  return withNodes(empty, list);
}
