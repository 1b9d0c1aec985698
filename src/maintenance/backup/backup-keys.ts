/**
 * Reports which keys backups need, and rewrites objects that are not encrypted with the current key. Backups share objects, so a
 * backup may need both the old and the new key after a key was replaced.
 */
import { defined } from '../../base/options.ts';
import { EncryptionKeyError, InvalidOptionError, isUnreadable } from '../../base/errors.ts';
import type { Environment } from '../../base/env.ts';
import { Pacer } from '../../base/pacer.ts';
import type { Block0 } from '../../format/block0.ts';
import {
  backupFolder,
  backupName,
  blobName,
  folders,
  madeName,
  parseBackupName,
  parseMadeName,
} from '../../format/object-names.ts';
import { BlockCache } from '../../cache/block-cache.ts';
import { EnvelopeDriver } from '../../storage/wrap/envelope-driver.ts';
import { listAll } from '../../storage/contract/driver.ts';
import { protectionOf } from '../../storage/wrap/encryption-options.ts';
import type { Compression, EncryptionOptions } from '../../storage/wrap/encryption-options.ts';
import { putRepeatedly } from '../../storage/contract/retries.ts';
import { RetryingDriver } from '../../storage/wrap/retrying-driver.ts';
import { ViewContext } from '../../view/view.ts';
import { StoredBlocks } from '../../tree/stored-blocks.ts';
import { BackupClaim, vouch } from './backup-claim.ts';
import { holdsDatabase, backupsAt, readBackup } from './backup.ts';
import type { BackupInfo } from './backup.ts';
import { formsOf, KeyCounts, blobsOf, patiently, protectedPlace } from './state-copy.ts';
import type { ProtectedPlace, StorePlace, ObjectForm } from './state-copy.ts';
import { ReachableBlocks } from '../gc/gc-store.ts';
import { rewriteObjects } from './rewrite.ts';
import type { RewriteOptions, RewriteReport } from './rewrite.ts';

/** Options of `inspectBackups()`. */
export interface InspectBackupsOptions {
  /** Where the backups are. */
  readonly from: StorePlace;
  /** The keys of the backups. If a key that a backup needs is missing, the report has a `problem` for it. Default: none. */
  readonly encryption?: EncryptionOptions;
  /** As for `StoreDb()`. Needed if the backups are compressed, even if only as `'none'`. Default: not compressed. */
  readonly compression?: Compression;
  /** Gives the call up. */
  readonly signal?: AbortSignal;
}

/** Options of `rewriteBackups()`. */
export interface RewriteBackupsOptions extends RewriteOptions {
  /** Where the backups are. */
  readonly from: StorePlace;
  /** All keys of the backups, including the current key to encrypt them with. Default: none, as for `StoreDb()`. */
  readonly encryption?: EncryptionOptions;
  /** How to compress blocks, as for `StoreDb()`. Default: not at all. */
  readonly compression?: Compression;
}

/** Numbers of objects by the key that they need. */
export interface KeyNeeds {
  /** Number of objects that need each key, by the key's id. */
  readonly keys: Readonly<Record<string, number>>;
  /** Number of objects that are not encrypted. */
  readonly unencrypted: number;
}

/** A backup, as `inspectBackups()` reports it. */
export interface InspectedBackup extends BackupInfo, KeyNeeds {
  /** Number of its objects, including its manifest. */
  readonly objects: number;
  /** Why not all of its objects are known: a key was not passed, or something is damaged. Then only its manifest is counted. */
  readonly problem?: string;
}

/** The result of `inspectBackups()`. */
export interface BackupsReport extends KeyNeeds {
  /** The backups, the oldest first. */
  readonly backups: readonly InspectedBackup[];
  /** Number of objects at the place, including objects that no backup refers to. `keys` and `unencrypted` count all of them. */
  readonly objects: number;
}

/** Memory for inner nodes during the search for blocks, in bytes. */
const cacheBytes = 32 * 1024 * 1024;
const backupFolders = [folders.data, folders.indexes, folders.blobs, backupFolder];

class Inspection {
  readonly #environment: Environment;
  readonly #place: ProtectedPlace;
  readonly #signal: AbortSignal | undefined;
  readonly #forms = new Map<string, ObjectForm>();
  readonly #context: ViewContext;

  constructor(environment: Environment, { from, encryption, compression, signal }: InspectBackupsOptions) {
    const given = protectionOf(encryption, compression);
    // The report must count objects that are not encrypted. Nothing is taken from them.
    const isRefusing = encryption !== undefined && given?.acceptsUnencrypted === false;
    const protection = isRefusing ? protectionOf({ ...encryption, acceptUnencrypted: true }, compression) : given;
    this.#environment = environment;
    this.#place = patiently(protectedPlace(environment, from, protection), environment);
    this.#signal = signal;
    this.#context = new ViewContext(
      new StoredBlocks(this.#place.driver, this.#place.prefix, new BlockCache(cacheBytes)),
    );
  }

  async run(): Promise<BackupsReport> {
    const signal = this.#signal;
    const { driver, prefix } = this.#place;
    const names: string[] = [];
    for (const folder of backupFolders) {
      for await (const { key } of listAll(driver, `${prefix}/${folder}`, defined({ signal }))) {
        const name = key.slice(prefix.length + 1);
        if (parseMadeName(name) === undefined) names.push(name);
      }
    }
    const all = new KeyCounts();
    for await (const { name, form } of formsOf(this.#place, names, signal)) {
      this.#forms.set(name, form);
      all.add(form);
    }
    const backups: InspectedBackup[] = [];
    for (const info of await backupsAt(this.#place, signal)) backups.push(await this.#inspect(info));
    return { backups, objects: this.#forms.size, keys: all.keys, unencrypted: all.unencrypted };
  }

  async #inspect(info: BackupInfo): Promise<InspectedBackup> {
    const names = [backupName(info.id)];
    let problem: string | undefined;
    try {
      names.push(...(await this.#namesOf(await readBackup(this.#place, info.id, this.#signal))));
    } catch (error) {
      const isTold = isUnreadable(error) || error instanceof EncryptionKeyError || error instanceof InvalidOptionError;
      if (!isTold) throw error;
      problem = error.message;
    }
    const counts = new KeyCounts();
    for (const name of names) {
      const form = this.#forms.get(name);
      if (form !== undefined) counts.add(form);
      else problem ??= `Object ${name} is missing.`;
    }
    const { keys, unencrypted } = counts;
    return { ...info, objects: names.length, keys, unencrypted, ...defined({ problem }) };
  }

  async #namesOf(block0: Block0): Promise<string[]> {
    const pacer = new Pacer(this.#environment);
    const reach = new ReachableBlocks(this.#context, pacer);
    await reach.add(block0, this.#signal);
    for (const { name } of block0.inlined) reach.names.delete(name);
    const blobs = await blobsOf(this.#context, block0, pacer, this.#signal);
    return [...reach.names.keys(), ...blobs.map(({ reference }) => blobName(reference))];
  }
}

/** Runs `inspectBackups()`. */
export function inspect(environment: Environment, options: InspectBackupsOptions): Promise<BackupsReport> {
  return new Inspection(environment, options).run();
}

/** Reads the media types of the blobs of all backups, by reference: the store keeps them for blobs that are not encrypted. */
async function contentTypes(
  environment: Environment,
  place: ProtectedPlace,
  backups: readonly BackupInfo[],
  signal: AbortSignal | undefined,
): Promise<ReadonlyMap<string, string>> {
  const types = new Map<string, string>();
  const context = new ViewContext(new StoredBlocks(place.driver, place.prefix, new BlockCache(cacheBytes)));
  for (const { id } of backups) {
    const blobs = await blobsOf(context, await readBackup(place, id, signal), new Pacer(environment), signal);
    for (const { reference, record } of blobs) {
      if (record.contentType !== undefined) types.set(reference, record.contentType);
    }
  }
  return types;
}

/** Runs `rewriteBackups()`. */
export async function rewriteBackupsAt(
  environment: Environment,
  { from, encryption, compression, ...options }: RewriteBackupsOptions,
): Promise<RewriteReport> {
  const { signal, dryRun = false } = options;
  const protection = protectionOf(encryption, compression);
  if (protection === undefined) {
    throw new InvalidOptionError(
      'encryption',
      'Backups are stored anew as the options encryption and compression say, and neither was given.',
    );
  }
  const inside = new RetryingDriver(from.driver, environment);
  const driver = new EnvelopeDriver({ driver: inside, prefix: from.prefix, protection, environment });
  const place: ProtectedPlace = { driver, prefix: from.prefix, bare: inside, protection };
  const { prefix } = place;
  if (await holdsDatabase(place, signal)) {
    throw new InvalidOptionError('from', `There is a database under ${prefix}/, and not backups: use db.rewrite().`);
  }
  const claim = dryRun ? undefined : await BackupClaim.put(environment, place, 'backup', signal);
  try {
    // This reads the time of the store.
    await claim?.sees('prune', signal);
    const startedMs = claim?.storeMs;
    const backups = await backupsAt(place, signal);
    const madeMs = new Map(backups.map(({ id, createdAt }) => [id, createdAt.getTime()]));
    const isDecrypting = protection.current === undefined && protection.hasKeys && !dryRun;
    const types = isDecrypting ? await contentTypes(environment, place, backups, signal) : undefined;
    const beforeReplacing = async (name: string): Promise<void> => {
      await claim?.check(signal);
      const id = parseBackupName(name)?.id;
      const made = id === undefined ? undefined : madeMs.get(id);
      if (id === undefined || made === undefined) return;
      // Not encrypted: its name says everything, and no key is needed to read the time of a backup.
      const empty = new Uint8Array();
      const key = `${prefix}/${madeName(id, made)}`;
      await putRepeatedly(environment, inside, key, empty, { if: 'any', ...defined({ signal }) });
    };
    const contentTypeOf = async (blob: string): Promise<string | undefined> => types?.get(blob);
    const context = { environment, driver, prefix, rewriteBlock0: undefined, beforeReplacing, contentTypeOf };
    const report = await rewriteObjects(context, options);
    const isWhole = report.failed.length === 0 && startedMs !== undefined;
    // The next backup then examines only the objects that were rewritten just now.
    if (isWhole) await vouch(place, startedMs, signal).catch(() => undefined);
    return report;
  } finally {
    await claim?.remove();
  }
}
