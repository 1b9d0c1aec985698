/**
 * Makes a new database from a state: of a backup (restore), or of a database that stays (clone). It gets a new id, so that
 * the two cannot be confused, and its log begins where the state ended.
 *
 * Invariant: Block 0 is written last, and only if there is none. Until then there is no database. The next attempt does not copy
 * again the objects that were copied.
 */
import { compareBytes } from '../../base/bytes.ts';
import { defined } from '../../base/options.ts';
import type { Environment } from '../../base/env.ts';
import { InvalidOptionError } from '../../base/errors.ts';
import { newId, randomUuid } from '../../base/ids.ts';
import { encodeBlock0 } from '../../format/block0.ts';
import type { Block0 } from '../../format/block0.ts';
import { block0Name, folders, probePrefix } from '../../format/object-names.ts';
import { BlockCache } from '../../cache/block-cache.ts';
import { listAll } from '../../storage/contract/driver.ts';
import type { StorageDriver } from '../../storage/contract/driver.ts';
import { isSameStore } from '../../storage/wrap/envelope-driver.ts';
import { ViewContext } from '../../view/view.ts';
import { StoredBlocks } from '../../tree/stored-blocks.ts';
import { protectionOf } from '../../storage/wrap/encryption-options.ts';
import type { Compression, EncryptionOptions } from '../../storage/wrap/encryption-options.ts';
import { backupsAt, readBackup } from './backup.ts';
import type { CopyOptions } from './backup.ts';
import { copyState, patiently, protectedPlace } from './state-copy.ts';
import type { CopyCounts, ProtectedPlace, StorePlace } from './state-copy.ts';

/** The result of a restore or a clone. */
export interface RestoreReport extends CopyCounts {
  /** Id of the new database. */
  readonly databaseId: string;
  /** Its generation: the generation of the state. */
  readonly generation: number;
}

/** Options of `restoreBackup()`. */
export interface RestoreOptions extends CopyOptions {
  /** Where the backups are. */
  readonly from: StorePlace;
  /** The place for the database. It must be empty. */
  readonly to: StorePlace;
  /** Id of the backup. Default: the newest. */
  readonly backup?: string;
  /** The keys of the backup; the new database is encrypted with the current one. Default: none, as for `StoreDb()`. */
  readonly encryption?: EncryptionOptions;
  /** How the new database is compressed. Default: not at all, as for `StoreDb()`. */
  readonly compression?: Compression;
}

/** Memory for inner nodes during the search for blocks, in bytes. */
const cacheBytes = 32 * 1024 * 1024;

/** Throws if a place holds anything but the remains of an earlier attempt. */
async function checkEmpty({ driver, prefix }: StorePlace, signal: AbortSignal | undefined): Promise<void> {
  const own = [folders.data, folders.indexes, folders.blobs, probePrefix];
  for await (const { key } of listAll(driver, `${prefix}/`, defined({ signal }))) {
    const name = key.slice(prefix.length + 1);
    if (own.some((folder) => name.startsWith(folder))) continue;
    const what = name === block0Name ? 'There is a database' : `There are objects (for instance ${key})`;
    throw new InvalidOptionError('to', `${what} under ${prefix}/: choose a prefix where nothing is.`);
  }
}

/** The first Block 0 of the new database. */
function firstBlock0(environment: Environment, state: Block0): Block0 {
  return {
    ...state,
    databaseId: randomUuid(environment),
    revision: 1,
    nonce: newId(environment, 12),
    // The log of the other database is not copied: the changes of its commits are in the blocks.
    logFloor: state.appliedSeq,
    applied: [],
    // Of earlier generations, only the blocks that this one shares with them were copied.
    collected: state.generation,
    history: null,
    snapshots: [],
    migrations: state.migrations.map((migration) => ({ ...migration, users: [] })),
    nodes: [],
  };
}

export interface CloneSource {
  readonly environment: Environment;
  readonly place: StorePlace;
  /** The driver of the place as the user passed it, to recognise two places in one store. */
  readonly store: StorageDriver;
  readonly context: ViewContext;
  /** The state, which must be held until the clone is there. */
  readonly block0: Block0;
}

/** Makes a database from a state at an empty place. */
export async function makeDatabase(
  { environment, place: from, store, context, block0: state }: CloneSource,
  target: ProtectedPlace,
  { signal, onProgress }: CopyOptions,
): Promise<RestoreReport> {
  const to = patiently(target, environment);
  await checkEmpty(to, signal);
  const isOneStore = isSameStore(target.driver, store);
  const { counts } = await copyState(state, { environment, from, to, isOneStore, context, signal, onProgress });
  const block0 = firstBlock0(environment, state);
  const key = `${to.prefix}/${block0Name}`;
  const bytes = encodeBlock0(block0);
  for (let attempt = 1; ; attempt++) {
    try {
      const put = await to.driver.put(key, bytes, { if: 'absent', ...defined({ signal }) });
      if (put.status === 'written') break;
    } catch (error) {
      if (attempt >= 3 || signal?.aborted === true) throw error;
      continue;
    }
    // Somebody else has put a Block 0, or an earlier attempt of this call whose answer was lost.
    const found = await to.driver.get(key, defined({ signal }));
    if (found.status === 'found' && compareBytes(found.bytes, bytes) === 0) break;
    throw new InvalidOptionError('to', `A database was created under ${to.prefix}/ meanwhile: choose another prefix.`);
  }
  return { databaseId: block0.databaseId, generation: block0.generation, ...counts };
}

/** Restores a backup to an empty place. */
export async function restoreFrom(environment: Environment, options: RestoreOptions): Promise<RestoreReport> {
  const protection = protectionOf(options.encryption, options.compression);
  const from = patiently(protectedPlace(environment, options.from, protection), environment);
  const to = protectedPlace(environment, options.to, protection);
  const { backup, signal } = options;
  const id = backup ?? (await backupsAt(from, signal)).at(-1)?.id;
  if (id === undefined) throw new InvalidOptionError('from', `There are no backups under ${from.prefix}/.`);
  const block0 = await readBackup(from, id, signal);
  const context = new ViewContext(new StoredBlocks(from.driver, from.prefix, new BlockCache(cacheBytes)));
  return makeDatabase({ environment, place: from, store: options.from.driver, context, block0 }, to, options);
}
