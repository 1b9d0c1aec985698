/** Opens the database under a prefix, or creates it where there is nothing at all (docs/protocol.md, "Opening"). */
import type { Environment } from '../base/env.ts';
import { NotADatabaseError } from '../base/errors.ts';
import { randomUuid } from '../base/ids.ts';
import type { Block0 } from '../format/block0.ts';
import { probePrefix } from '../format/keys.ts';
import { block0FormatVersion } from '../format/version.ts';
import type { Block0Register, VersionedBlock0 } from '../root/block0-register.ts';
import type { StorageDriver } from '../storage/driver.ts';

export interface OpeningOptions {
  readonly environment: Environment;
  readonly driver: StorageDriver;
  readonly prefix: string;
  readonly register: Block0Register;
  readonly nodeId: number;
}

export async function openOrCreate(options: OpeningOptions, signal: AbortSignal): Promise<VersionedBlock0> {
  const { register } = options;
  const opened = await register.open(signal);
  if (opened !== undefined) return opened;
  const stray = await findObject(options, signal);
  // Asked again: the database may have been created since, and what was listed may be its own.
  const created = await register.open(signal);
  if (created !== undefined) return created;
  if (stray !== undefined) {
    throw new NotADatabaseError(
      `There are objects under ${options.prefix}/ (for instance ${stray}) but no Block 0. If a database was here, ` +
        'restore its block0 object; otherwise choose another dbPrefix, or empty this one.',
    );
  }
  return register.create(emptyDatabase(options), signal);
}

/** Some object under the prefix that is not a probe. */
async function findObject({ driver, prefix }: OpeningOptions, signal: AbortSignal): Promise<string | undefined> {
  const folder = `${prefix}/`;
  for (let after: string | undefined; ; ) {
    const page = await driver.list(folder, { signal, ...(after === undefined ? {} : { after }) });
    const found = page.entries.find(({ key }) => !key.startsWith(folder + probePrefix));
    if (found !== undefined) return found.key;
    if (!page.more) return undefined;
    after = page.entries[page.entries.length - 1]?.key;
  }
}

function emptyDatabase({ environment, register, nodeId }: OpeningOptions): Block0 {
  return {
    format: block0FormatVersion,
    databaseId: randomUuid(environment),
    revision: 1,
    generation: 0,
    nonce: register.newNonce(),
    appliedSeq: 0,
    logFloor: 0,
    applied: [],
    tables: [],
    inlined: [],
    snapshots: [],
    migrations: [],
    nodes: [nodeId],
    writer: { nodeId, atMs: environment.now() },
  };
}
