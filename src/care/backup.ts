/**
 * Backups: a place that holds states of one database, each as a manifest, and the blocks and blobs that they consist of. What
 * two of them share is there once. There is no Block 0, so that nobody takes such a place for a database.
 *
 * Invariant: a manifest is written when all that it refers to is there. So whatever is listed can be restored.
 */
import type { Environment } from '../base/env.ts';
import { CorruptionError, InvalidOptionError } from '../base/errors.ts';
import { newId } from '../base/ids.ts';
import { decodeBlock0, encodeBlock0 } from '../format/block0.ts';
import type { Block0 } from '../format/block0.ts';
import { backupFolder, backupName, block0Name, parseBackupName, rootId } from '../format/keys.ts';
import { listAll } from '../storage/list-all.ts';
import { putRepeatedly } from '../storage/put-repeatedly.ts';
import type { ViewContext } from '../table/view.ts';
import { copyState } from './state-copy.ts';
import type { CopyCounts, CopyProgress, StorePlace } from './state-copy.ts';

/** Options of calls that copy a database. */
export interface CopyOptions {
  /** Called after every object. */
  readonly onProgress?: (progress: CopyProgress) => void;
  /** Gives the call up. What was copied until then stays, and is not copied again by the next. */
  readonly signal?: AbortSignal;
}

/** What `db.backup()` did. */
export interface BackupReport extends CopyCounts {
  /** Id of the backup, by which it is restored. */
  readonly id: string;
  /** The generation of the database that it holds. */
  readonly generation: number;
}

/** A backup, as `listBackups()` tells it. */
export interface BackupInfo {
  /** By which it is restored. */
  readonly id: string;
  /** The generation of the database that it holds. */
  readonly generation: number;
  /** When it was finished, by the clock of the store. */
  readonly createdAt: Date;
}

export interface BackupSource {
  readonly environment: Environment;
  readonly place: StorePlace;
  readonly context: ViewContext;
  /** The state, which must be held until the backup is there. */
  readonly block0: Block0;
}

/** The backups of a place, the oldest first. */
export async function listBackups(place: StorePlace, signal?: AbortSignal): Promise<BackupInfo[]> {
  const { driver, prefix } = place;
  const found: BackupInfo[] = [];
  for await (const { key, lastModifiedMs } of listAll(driver, `${prefix}/${backupFolder}`, signal && { signal })) {
    const parsed = parseBackupName(key.slice(prefix.length + 1));
    if (parsed !== undefined) found.push({ ...parsed, createdAt: new Date(lastModifiedMs) });
  }
  // By name the lower generation comes first; after a restore, generations may begin anew.
  return found.toSorted((a, b) => a.createdAt.getTime() - b.createdAt.getTime() || a.generation - b.generation);
}

/** Block 0 of a backed up state. Throws `CorruptionError`. */
export async function readBackup({ driver, prefix }: StorePlace, id: string, signal?: AbortSignal): Promise<Block0> {
  const name = backupName(id);
  // What is no id names no object of a backup, and must not become one of others.
  const found = parseBackupName(name) && (await driver.get(`${prefix}/${name}`, signal && { signal }));
  if (found?.status !== 'found') throw new InvalidOptionError('backup', `There is no backup ${id} under ${prefix}/.`);
  try {
    return decodeBlock0(found.bytes);
  } catch (cause) {
    if (!(cause instanceof CorruptionError)) throw cause;
    throw new CorruptionError(name, 'The manifest of the backup is damaged', { cause });
  }
}

/** Refuses a place that holds a database, or backups of another one. */
async function checkTarget(target: StorePlace, databaseId: string, signal: AbortSignal | undefined): Promise<void> {
  const { driver, prefix } = target;
  const range = { start: 0, end: 0 };
  const block0 = await driver.get(`${prefix}/${block0Name}`, { range, ...(signal && { signal }) });
  if (block0.status === 'found') {
    throw new InvalidOptionError('to', `There is a database under ${prefix}/: back up to a prefix of its own.`);
  }
  const last = (await listBackups(target, signal)).at(-1);
  if (last === undefined) return;
  const held = await readBackup(target, last.id, signal);
  if (held.databaseId === databaseId) return;
  throw new InvalidOptionError(
    'to',
    `Under ${prefix}/ are backups of another database (id ${held.databaseId}): back this one up to a prefix of its own.`,
  );
}

/** Copies a state to a place for backups: what is not there yet. */
export async function backUp(source: BackupSource, target: StorePlace, options: CopyOptions): Promise<BackupReport> {
  const { environment, place: from, context, block0 } = source;
  const { signal, onProgress } = options;
  await checkTarget(target, block0.databaseId, signal);
  const counts = await copyState(block0, { environment, from, to: target, context, signal, onProgress });
  const { generation } = block0;
  const id = rootId(generation, newId(environment, 8));
  const manifest = encodeBlock0({ ...block0, snapshots: [], nodes: [], history: null });
  const key = `${target.prefix}/${backupName(id)}`;
  await putRepeatedly(target.driver, key, manifest, { if: 'absent', ...(signal && { signal }) });
  return { id, generation, ...counts };
}
