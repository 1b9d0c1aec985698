/**
 * Prunes backups: removes the manifests of the backups that no rule keeps, and then the objects that no backup refers to.
 *
 * Invariant: an object is deleted only after all manifests that refer to it are gone, and while no backup is under way that
 * may rely on it. So every backup that is listed can be restored, whenever a run ends. The next run finds the objects left behind.
 */
import type { Environment } from '../../base/env.ts';
import { EncryptionKeyError, InvalidOptionError, StorageError, isUnreadable } from '../../base/errors.ts';
import { defined } from '../../base/options.ts';
import { Pacer } from '../../base/pacer.ts';
import { BlockCache } from '../../cache/block-cache.ts';
import { backupFolder, backupName, blobName, folders, parseMadeName } from '../../format/object-names.ts';
import { listAll } from '../../storage/contract/driver.ts';
import type { ListEntry } from '../../storage/contract/driver.ts';
import { protectionOf } from '../../storage/wrap/encryption-options.ts';
import type { Compression, EncryptionOptions } from '../../storage/wrap/encryption-options.ts';
import { StoredBlocks } from '../../tree/stored-blocks.ts';
import { ViewContext } from '../../view/view.ts';
import { ReachableBlocks } from '../gc/gc-store.ts';
import { BackupClaim } from './backup-claim.ts';
import { holdsDatabase, backupsAt, readBackup } from './backup.ts';
import type { BackupInfo } from './backup.ts';
import { blobsOf, patiently, protectedPlace } from './state-copy.ts';
import type { StorePlace } from './state-copy.ts';

/** Options of `pruneBackups()`. */
export interface PruneOptions extends BackupRetention {
  /** Where the backups are. */
  readonly from: StorePlace;
  /** Deletes nothing and writes nothing, and reports the deletions that a run would make. Default: false. */
  readonly dryRun?: boolean;
  /**
   * How long objects that never belonged to a backup are left alone, in milliseconds. They come from interrupted backups, which
   * the next backup continues. Default: 86,400,000 (a day).
   */
  readonly graceMs?: number;
  /** The keys of the backups. Default: none, as for `StoreDb()`. */
  readonly encryption?: EncryptionOptions;
  /** As for `StoreDb()`. Needed if the backups are compressed, even if only as `'none'`. Default: not compressed. */
  readonly compression?: Compression;
  /** Called after each deletion of objects. */
  readonly onProgress?: (progress: PruneProgress) => void;
  /** Gives the call up. Objects deleted until then stay deleted; the next run continues. */
  readonly signal?: AbortSignal;
}

/** Progress of `pruneBackups()`. */
export interface PruneProgress {
  /** Number of objects deleted so far. */
  readonly done: number;
  /** Number of objects to delete. */
  readonly total: number;
}

/** The result of `pruneBackups()`; with `dryRun`, the result that a run would have. */
export interface PruneReport {
  /** The backups that are kept, oldest first. */
  readonly kept: readonly BackupInfo[];
  /** The backups that are removed, oldest first. */
  readonly removed: readonly BackupInfo[];
  /** Number of objects that were deleted, not counting manifests. */
  readonly deletedObjects: number;
  /** Their size in bytes. */
  readonly freedBytes: number;
  /** Whether backups were under way, so that objects were left for the next run. */
  readonly isPostponed: boolean;
}

const dayMs = 86_400_000;
const keysAtOnce = 1000;
/** Memory for inner nodes during the search for blocks, in bytes. */
const cacheBytes = 32 * 1024 * 1024;

type CheckedPruneOptions = PruneOptions & { readonly graceMs: number };

class Pruning {
  readonly #environment: Environment;
  readonly #place: StorePlace;
  readonly #options: CheckedPruneOptions;
  readonly #pacer: Pacer;

  constructor(environment: Environment, options: CheckedPruneOptions) {
    this.#environment = environment;
    const protection = protectionOf(options.encryption, options.compression);
    this.#place = patiently(protectedPlace(environment, options.from, protection), environment);
    this.#options = options;
    this.#pacer = new Pacer(environment);
  }

  async run(): Promise<PruneReport> {
    const { signal, dryRun = false } = this.#options;
    const { prefix } = this.#place;
    if (await holdsDatabase(this.#place, signal)) {
      throw new InvalidOptionError('from', `There is a database under ${prefix}/, and not backups.`);
    }
    if (dryRun) return this.#prune(undefined);
    const claim = await BackupClaim.put(this.#environment, this.#place, 'prune', signal);
    try {
      return await this.#prune(claim);
    } finally {
      await claim.remove();
    }
  }

  /** Without a claim nothing is deleted. */
  async #prune(claim: BackupClaim | undefined): Promise<PruneReport> {
    const { signal } = this.#options;
    // First look for other claims, then list the backups: a backup that ends between the two is in the list.
    const isPostponed = (await claim?.sees('backup', signal)) === true;
    const backups = await backupsAt(this.#place, signal);
    const keptIds = keptBackups(backups, this.#options);
    const kept = backups.filter(({ id }) => keptIds.has(id));
    const removed = backups.filter(({ id }) => !keptIds.has(id));
    // Before anything is deleted: if something cannot be read, the run fails without a change.
    const garbage = isPostponed ? [] : await this.#garbage(kept, removed, claim);
    if (claim !== undefined) {
      await claim.check(signal);
      await this.#delete(removed.map(({ id }) => backupName(id)));
      await this.#delete(await this.#timesWithout(keptIds));
      for (let at = 0; at < garbage.length; at += keysAtOnce) {
        await claim.check(signal);
        await this.#delete(
          garbage.slice(at, at + keysAtOnce).map(({ key }) => key.slice(this.#place.prefix.length + 1)),
        );
        this.#options.onProgress?.({ done: Math.min(at + keysAtOnce, garbage.length), total: garbage.length });
      }
    }
    const freedBytes = garbage.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
    return { kept, removed, deletedObjects: garbage.length, freedBytes, isPostponed };
  }

  /** Names of the objects that store the times of backups that are not kept. */
  async #timesWithout(keptIds: ReadonlySet<string>): Promise<string[]> {
    const { signal } = this.#options;
    const { driver, prefix } = this.#place;
    const names: string[] = [];
    for await (const { key } of listAll(driver, `${prefix}/${backupFolder}`, defined({ signal }))) {
      const name = key.slice(prefix.length + 1);
      const made = parseMadeName(name);
      if (made !== undefined && !keptIds.has(made.id)) names.push(name);
    }
    return names;
  }

  /** Objects that only removed backups refer to, and old objects that no backup refers to. */
  async #garbage(
    kept: readonly BackupInfo[],
    removed: readonly BackupInfo[],
    claim: BackupClaim | undefined,
  ): Promise<ListEntry[]> {
    const { signal, graceMs } = this.#options;
    const { driver, prefix } = this.#place;
    const needed = await this.#namesOf(kept, claim);
    // The objects of removed backups need no grace period. If a removed backup cannot be read, its objects get one.
    const given = await this.#namesOf(removed, claim).catch((error: unknown) => {
      signal?.throwIfAborted();
      const isKeyMissing = error instanceof EncryptionKeyError;
      if (!(isKeyMissing || isUnreadable(error) || error instanceof InvalidOptionError)) throw error;
      return new Set<string>();
    });
    const unneeded: ListEntry[] = [];
    // Without a claim, the newest object gives the time of the store.
    let nowMs = claim?.storeMs ?? Math.max(0, ...[...kept, ...removed].map(({ createdAt }) => createdAt.getTime()));
    for (const folder of [folders.data, folders.indexes, folders.blobs]) {
      for await (const entry of listAll(driver, `${prefix}/${folder}`, defined({ signal }))) {
        nowMs = Math.max(nowMs, entry.lastModifiedMs);
        if (!needed.has(entry.key.slice(prefix.length + 1))) unneeded.push(entry);
      }
    }
    return unneeded.filter(({ key, lastModifiedMs }) => {
      return given.has(key.slice(prefix.length + 1)) || nowMs - lastModifiedMs >= graceMs;
    });
  }

  async #namesOf(backups: readonly BackupInfo[], claim: BackupClaim | undefined): Promise<ReadonlySet<string>> {
    const { signal } = this.#options;
    const { driver, prefix } = this.#place;
    const context = new ViewContext(new StoredBlocks(driver, prefix, new BlockCache(cacheBytes)));
    const reach = new ReachableBlocks(context, this.#pacer);
    const names = new Set<string>();
    for (const { id } of backups) {
      await claim?.check(signal);
      const block0 = await readBackup(this.#place, id, signal);
      await reach.add(block0, signal);
      for (const { reference } of await blobsOf(context, block0, this.#pacer, signal)) names.add(blobName(reference));
    }
    for (const name of reach.names.keys()) names.add(name);
    return names;
  }

  /** Deletes objects. Rejects if any was not deleted. */
  async #delete(names: readonly string[]): Promise<void> {
    if (names.length === 0) return;
    const { signal } = this.#options;
    const { driver, prefix } = this.#place;
    const keys = names.map((name) => `${prefix}/${name}`);
    const { failed } = await driver.delete(keys, defined({ signal }));
    const [first] = failed;
    if (first === undefined) return;
    throw new StorageError(first.key, 'unknown', `The store did not delete ${first.key}: ${first.message}`);
  }
}

/** Prunes the backups of a place. */
export function prune(environment: Environment, options: PruneOptions): Promise<PruneReport> {
  return new Pruning(environment, { ...options, graceMs: options.graceMs ?? dayMs }).run();
}

/** Rules for the backups to keep. A backup is kept if any rule keeps it. The newest is always kept. */
export interface BackupRetention {
  /** Keeps this many of the newest backups. */
  readonly keepLast?: number;
  /** Keeps backups that are at most this many milliseconds older than the newest. */
  readonly keepWithinMs?: number;
  /** Keeps the last backup of each day, for this many of the newest days that have backups. Days are in UTC. */
  readonly keepDaily?: number;
  /** Keeps the last backup of each week, for this many of the newest weeks that have backups. Weeks begin on Monday. */
  readonly keepWeekly?: number;
  /** Keeps the last backup of each month, for this many of the newest months that have backups. */
  readonly keepMonthly?: number;
}

/** The number of the period of a time. Days count from 1970-01-01; weeks from day 4, the first Monday. */
const periods: Readonly<Record<'keepDaily' | 'keepWeekly' | 'keepMonthly', (time: Date) => number>> = {
  keepDaily: (time) => Math.floor(time.getTime() / dayMs),
  keepWeekly: (time) => Math.floor((time.getTime() / dayMs - 4) / 7),
  keepMonthly: (time) => time.getUTCFullYear() * 12 + time.getUTCMonth(),
};

/** The ids of the backups to keep. `backups`: in the order of their age, oldest first. */
export function keptBackups(backups: readonly BackupInfo[], retention: BackupRetention): ReadonlySet<string> {
  const newestFirst = backups.toReversed();
  const { keepLast = 0, keepWithinMs } = retention;
  const [newest] = newestFirst;
  if (newest === undefined) return new Set();
  const kept = new Set(newestFirst.slice(0, Math.max(1, keepLast)).map(({ id }) => id));
  for (const { id, createdAt } of newestFirst) {
    if (keepWithinMs !== undefined && newest.createdAt.getTime() - createdAt.getTime() <= keepWithinMs) kept.add(id);
  }
  for (const [rule, periodOf] of Object.entries(periods)) {
    const seen = new Set<number>();
    for (const { id, createdAt } of newestFirst) {
      const period = periodOf(createdAt);
      if (seen.has(period) || seen.size >= (retention[rule as keyof typeof periods] ?? 0)) continue;
      seen.add(period);
      kept.add(id);
    }
  }
  return kept;
}
