/** Adds up the stored objects by what they hold. */
import { defined } from '../../base/options.ts';
import { isCatalogueName } from '../../format/catalogue.ts';
import { block0Name, folders, unescapeSegment } from '../../format/object-names.ts';
import type { ListEntry, StorageDriver } from '../../storage/contract/driver.ts';
import type { ObjectsOptions } from './inspect-options.ts';

/**
 * The content of stored objects: `root`: Block 0, the root of the database, and lists of tables that belong to it; `rows` and `index`:
 * blocks of a table and of an index; `blobs`; `log`: commits, merged ones included; `staged`: rows of large commits; `states`: roots of
 * snapshots and of history; `other`: objects that belong to no database.
 */
export type ObjectKind = 'root' | 'rows' | 'index' | 'blobs' | 'log' | 'staged' | 'states' | 'other';

/** Objects of one kind, as `db.objects()` returns them. */
export interface ObjectGroup {
  /** The content of the objects. */
  readonly kind: ObjectKind;
  /** The table of `rows` and `index`. */
  readonly table?: string;
  /** The index of `index`. */
  readonly index?: string;
  /** Number of objects. */
  readonly objects: number;
  /** Their size as stored, that is compressed and encrypted, in bytes. */
  readonly sizeBytes: number;
}

const kindsOfFolders: readonly (readonly [folder: string, kind: ObjectKind])[] = [
  [folders.commits, 'log'],
  [folders.staged, 'staged'],
  [folders.blobs, 'blobs'],
  [folders.roots, 'states'],
  [folders.history, 'states'],
];

/** Returns what an object holds, by its name. */
function groupOf(name: string): Pick<ObjectGroup, 'kind' | 'table' | 'index'> {
  const [folder, table = '', third = ''] = name.split('/');
  if (`${folder}/` === folders.data) return { kind: 'rows', table: unescapeSegment(table) };
  if (`${folder}/` === folders.indexes)
    return { kind: 'index', table: unescapeSegment(table), index: unescapeSegment(third) };
  if (name === block0Name || isCatalogueName(name)) return { kind: 'root' };
  return { kind: kindsOfFolders.find(([start]) => name.startsWith(start))?.[1] ?? 'other' };
}

/** Lists all objects under a prefix, and adds them up. The largest groups come first. */
export async function groupObjects(
  driver: StorageDriver,
  prefix: string,
  { onProgress }: Pick<ObjectsOptions, 'onProgress'>,
  signal: AbortSignal | undefined,
): Promise<ObjectGroup[]> {
  const groups = new Map<string, ObjectGroup>();
  const add = ({ key, sizeBytes }: ListEntry): void => {
    const group = groupOf(key.slice(prefix.length + 1));
    const id = JSON.stringify([group.kind, group.table, group.index]);
    const before = groups.get(id) ?? { ...group, objects: 0, sizeBytes: 0 };
    groups.set(id, { ...before, objects: before.objects + 1, sizeBytes: before.sizeBytes + sizeBytes });
  };
  let objects = 0;
  for (let after: string | undefined; ; ) {
    const { entries, more } = await driver.list(`${prefix}/`, defined({ after, signal }));
    for (const entry of entries) add(entry);
    objects += entries.length;
    onProgress?.({ objects });
    after = entries.at(-1)?.key;
    if (!more || after === undefined) break;
  }
  return [...groups.values()].toSorted((a, b) => b.sizeBytes - a.sizeBytes);
}
