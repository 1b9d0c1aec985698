/**
 * Makes, lists and reads backups. A place for backups holds states of one database: a manifest for each, and their blocks and
 * blobs. An object that several backups share is stored once. There is no Block 0, so such a place is not taken for a database.
 *
 * Invariant: a manifest is written after all objects that it refers to. So every backup that is listed can be restored.
 */
import { defined, signalOptions } from '../../base/options.ts';
import { sleep } from '../../base/env.ts';
import type { Environment } from '../../base/env.ts';
import { ContentionError, CorruptionError, InvalidOptionError } from '../../base/errors.ts';
import { newId } from '../../base/ids.ts';
import { namingAborts, untilAborted } from '../../base/abort.ts';
import { encodeBlock0 } from '../../format/block0.ts';
import type { Block0 } from '../../format/block0.ts';
import {
  backupFolder,
  backupName,
  block0Name,
  parseBackupName,
  parseMadeName,
  rootId,
} from '../../format/object-names.ts';
import { Block0Reader } from '../../block0/block0-reader.ts';
import { listAll } from '../../storage/contract/driver.ts';
import type { RequestOptions, StorageDriver } from '../../storage/contract/driver.ts';
import { isSameStore } from '../../storage/wrap/envelope-driver.ts';
import { putRepeatedly } from '../../storage/contract/retries.ts';
import type { ViewContext } from '../../view/view.ts';
import { BackupClaim, vouch, vouchedUntil } from './backup-claim.ts';
import { formsOf, copyState, patiently, isStoredAs } from './state-copy.ts';
import type { CopyCounts, CopyProgress, ProtectedPlace, StorePlace } from './state-copy.ts';

/** Options of calls that copy a database. */
export interface CopyOptions {
  /** Called after every object. */
  readonly onProgress?: (progress: CopyProgress) => void;
  /** Gives the call up. Objects copied until then stay, and the next call does not copy them again. */
  readonly signal?: AbortSignal;
}

/** The result of `db.backup()`. */
export interface BackupReport extends CopyCounts {
  /** Id of the backup, to pass to `restoreBackup()`. */
  readonly id: string;
  /** The generation of the database that the backup holds. */
  readonly generation: number;
  /**
   * Whether earlier backups there have further objects that are encrypted with another key than the current one, or not at all.
   * `rewriteBackups()` rewrites these.
   */
  readonly hasOutdated: boolean;
}

/** A backup, as `listBackups()` reports it. */
export interface BackupInfo {
  /** Id of the backup, to pass to `restoreBackup()`. */
  readonly id: string;
  /** The generation of the database that the backup holds. */
  readonly generation: number;
  /** When it was finished, by the clock of the store. */
  readonly createdAt: Date;
}

export interface BackupSource {
  readonly environment: Environment;
  readonly place: StorePlace;
  /** The driver of the place as the user passed it, to recognise two places in one store. */
  readonly store: StorageDriver;
  readonly context: ViewContext;
  /** The state, which must be held until the backup is there. */
  readonly block0: Block0;
}

/** Lists the backups of a place, oldest first. */
export async function backupsAt(place: StorePlace, signal?: AbortSignal): Promise<BackupInfo[]> {
  const callName = 'listBackups()';
  const options = signalOptions.check(callName, defined({ signal }));
  return namingAborts(callName, signal, () => untilAborted(findBackups(place, options), signal));
}

async function findBackups({ driver, prefix }: StorePlace, options: RequestOptions): Promise<BackupInfo[]> {
  const manifests = new Map<string, { readonly generation: number; readonly putMs: number }>();
  const made = new Map<string, number>();
  for await (const { key, lastModifiedMs } of listAll(driver, `${prefix}/${backupFolder}`, options)) {
    const name = key.slice(prefix.length + 1);
    const manifest = parseBackupName(name);
    const kept = parseMadeName(name);
    if (manifest !== undefined) {
      manifests.set(manifest.id, { generation: manifest.generation, putMs: lastModifiedMs });
    } else if (kept !== undefined) made.set(kept.id, Math.min(kept.madeMs, made.get(kept.id) ?? Infinity));
  }
  const found = [...manifests].map(([id, { generation, putMs }]): BackupInfo => {
    return { id, generation, createdAt: new Date(made.get(id) ?? putMs) };
  });
  // By time first: after a restore from an older backup, generations are used again.
  return found.toSorted((a, b) => a.createdAt.getTime() - b.createdAt.getTime() || a.generation - b.generation);
}

/** Reads the manifest of a backup, the Block 0 of its state. Throws `CorruptionError`. */
export async function readBackup({ driver, prefix }: StorePlace, id: string, signal?: AbortSignal): Promise<Block0> {
  const name = backupName(id);
  // A text that is not an id must not become the name of another object.
  const found = parseBackupName(name) && (await driver.get(`${prefix}/${name}`, defined({ signal })));
  if (found?.status !== 'found') throw new InvalidOptionError('backup', `There is no backup ${id} under ${prefix}/.`);
  try {
    return await new Block0Reader(driver, prefix).decode(found.bytes, defined({ signal }));
  } catch (cause) {
    if (!(cause instanceof CorruptionError)) throw cause;
    throw new CorruptionError(name, 'The manifest of the backup is damaged', { cause });
  }
}

/** Whether a place holds a database. */
export async function holdsDatabase({ driver, prefix }: StorePlace, signal: AbortSignal | undefined): Promise<boolean> {
  const range = { start: 0, end: 0 };
  const block0 = await driver.get(`${prefix}/${block0Name}`, { range, ...defined({ signal }) });
  return block0.status === 'found';
}

/** Throws if a place holds a database, or backups of another database. */
async function checkTarget(target: ProtectedPlace, databaseId: string, signal: AbortSignal | undefined): Promise<void> {
  const { prefix } = target;
  if (await holdsDatabase(target, signal)) {
    throw new InvalidOptionError('to', `There is a database under ${prefix}/: back up to a prefix of its own.`);
  }
  const last = (await backupsAt(target, signal)).at(-1);
  if (last === undefined) return;
  if (target.protection?.acceptsUnencrypted === false) {
    for await (const { form } of formsOf(target, [backupName(last.id)], signal)) {
      if (form.kind !== 'plain' && form.kind !== 'compressed') continue;
      throw new InvalidOptionError(
        'to',
        `The backups under ${prefix}/ are not encrypted, and the database is: encrypt them with rewriteBackups(), or back ` +
          'up to a prefix of its own.',
      );
    }
  }
  const held = await readBackup(target, last.id, signal);
  if (held.databaseId === databaseId) return;
  throw new InvalidOptionError(
    'to',
    `Under ${prefix}/ are backups of another database (id ${held.databaseId}): back this one up to a prefix of its own.`,
  );
}

/** How often at first, and for how long, a backup checks whether a pruning has ended, in milliseconds. */
const lookAgainMs = 500;
const maxWaitMs = 600_000;

async function untilNothingIsPruned(
  claim: BackupClaim,
  { environment, prefix }: { readonly environment: Environment; readonly prefix: string },
  signal: AbortSignal | undefined,
): Promise<void> {
  const untilMs = environment.monotonicMs() + maxWaitMs;
  for (let pauseMs = lookAgainMs; await claim.sees('prune', signal); pauseMs *= 1.5) {
    if (environment.monotonicMs() >= untilMs) {
      throw new ContentionError(
        `Backups under ${prefix}/ are being pruned. Try again later; a pruning that was killed counts for an hour.`,
      );
    }
    await sleep(environment, Math.min(pauseMs, 10_000), signal);
  }
}

/** Backs up a state: copies the objects that are not at the place yet, and writes the manifest. */
export async function backUp(source: BackupSource, to: ProtectedPlace, options: CopyOptions): Promise<BackupReport> {
  const { environment, block0 } = source;
  const { signal } = options;
  const target = patiently(to, environment);
  await checkTarget(target, block0.databaseId, signal);
  const claim = await BackupClaim.put(environment, target, 'backup', signal);
  const writing = { mayBeWritten: false };
  try {
    // Before the objects there are listed: from then on the backup relies on them.
    await untilNothingIsPruned(claim, { environment, prefix: target.prefix }, signal);
    return await copyAndList(
      source,
      { target, isOneStore: isSameStore(to.driver, source.store), claim, writing },
      options,
    );
  } finally {
    // If the manifest may still be written, it needs its objects. Then the claim stays, so that no pruning deletes them.
    if (!writing.mayBeWritten) await claim.remove();
  }
}

interface BackupTarget {
  readonly target: ProtectedPlace;
  readonly isOneStore: boolean;
  readonly claim: BackupClaim;
  readonly writing: { mayBeWritten: boolean };
}

async function copyAndList(
  { environment, place: from, context, block0 }: BackupSource,
  { target, isOneStore, claim, writing }: BackupTarget,
  { signal, onProgress }: CopyOptions,
): Promise<BackupReport> {
  const check = (): Promise<void> => claim.check(signal);
  const vouchedUntilMs = await vouchedUntil(target, signal);
  const copying = { environment, from, to: target, vouchedUntilMs, isOneStore, context, signal, onProgress, check };
  const { counts, unknown } = await copyState(block0, copying);
  const hasOutdated = await areOutdated(target, unknown, claim, signal);
  const { generation } = block0;
  const id = rootId(generation, newId(environment, 8));
  const manifest = encodeBlock0({ ...block0, snapshots: [], nodes: [], history: null });
  const key = `${target.prefix}/${backupName(id)}`;
  await claim.check(signal);
  writing.mayBeWritten = true;
  await putRepeatedly(environment, target.driver, key, manifest, { if: 'absent', ...defined({ signal }) });
  writing.mayBeWritten = false;
  // Up to the time before anything was examined. If this fails, the next backup only has more objects to examine.
  if (!hasOutdated) await vouch(target, claim.storeMs, signal).catch(() => undefined);
  return { id, generation, hasOutdated, ...counts };
}

/** Whether any object of earlier backups is stored in another form than new objects. Stops at the first one. */
async function areOutdated(
  target: ProtectedPlace,
  unknown: readonly string[],
  claim: BackupClaim,
  signal: AbortSignal | undefined,
): Promise<boolean> {
  const { protection } = target;
  if (protection?.hasKeys !== true) return false;
  const manifests = (await backupsAt(target, signal)).map(({ id }) => backupName(id));
  for await (const { form } of formsOf(target, [...manifests, ...unknown], signal)) {
    await claim.check(signal);
    if (!isStoredAs(form, protection)) return true;
  }
  return false;
}
