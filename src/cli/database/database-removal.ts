/** Deletes whole databases, and refuses to while nodes are registered. */
import { setTimeout as wait } from 'node:timers/promises';
import type { Block0 } from '../../format/block0.ts';
import { block0Name, folders, probePrefix } from '../../format/object-names.ts';
import { listAll } from '../../storage/contract/driver.ts';
import { UsageError } from '../terminal/exit-code.ts';
import { describePlace } from './open-database.ts';
import type { Place } from './open-database.ts';

export interface Removal {
  /** Objects that were deleted. */
  readonly deleted: number;
  /** Some of the objects that the store did not delete, with its messages. */
  readonly failed: readonly { readonly name: string; readonly message: string }[];
  /** Objects under the prefix that belong to no database, or to another one. They stay. */
  readonly others: number;
}

/** Keys in one deletion. */
const batchKeys = 1000;
/** How often the listing is repeated: a running instance may still put objects there until it sees that Block 0 is gone. */
const maxPasses = 5;
const pauseMs = 200;
const maxNamed = 10;

const ownFolders: readonly string[] = [...Object.values(folders), probePrefix];

function isOwn(name: string): boolean {
  return name === block0Name || ownFolders.some((folder) => name.startsWith(folder));
}

/** Throws `UsageError` if nodes are registered. `doing`: the verb of the action, such as `delete`. */
export function refuseNodes(place: Place, { nodes }: Pick<Block0, 'nodes'>, doing: string): void {
  if (nodes.length === 0) return;
  const [who, them] = nodes.length === 1 ? ['Node', 'it'] : ['Nodes', 'them'];
  throw new UsageError(
    `${who} ${nodes.join(', ')} may be running on ${describePlace(place)}: stop ${them} first. ` +
      `A node that was killed stays registered: if none runs, --force will ${doing} it anyway.`,
  );
}

class Deletion {
  deleted = 0;
  failed: { readonly name: string; readonly message: string }[] = [];
  readonly #place: Place;
  readonly #signal: AbortSignal;
  readonly #onDeleted: (deleted: number) => void;

  constructor(place: Place, signal: AbortSignal, onDeleted: (deleted: number) => void) {
    this.#place = place;
    this.#signal = signal;
    this.#onDeleted = onDeleted;
  }

  async of(names: readonly string[]): Promise<void> {
    const { driver, prefix } = this.#place;
    const keys = names.map((name) => `${prefix}/${name}`);
    const { failed } = await driver.delete(keys, { signal: this.#signal });
    this.deleted += names.length - failed.length;
    this.#onDeleted(this.deleted);
    for (const { key, message } of failed) {
      if (this.failed.length < maxNamed) this.failed.push({ name: key.slice(prefix.length + 1), message });
    }
  }
}

/**
 * Deletes a database, Block 0 first: instances stop writing once they see that it is gone, and no database can be created in the
 * objects that are left. So the deletion can be interrupted at any point and continued later.
 */
export async function removeDatabase(
  place: Place,
  signal: AbortSignal,
  onDeleted: (deleted: number) => void,
): Promise<Removal> {
  const { driver, prefix } = place;
  const deletion = new Deletion(place, signal, onDeleted);
  const root = `${prefix}/${block0Name}`;
  const { entries } = await driver.list(root, { limit: 1, signal });
  if (entries[0]?.key === root) await deletion.of([block0Name]);
  let others = 0;
  for (let pass = 1; deletion.failed.length === 0; pass++) {
    others = 0;
    let found = 0;
    let names: string[] = [];
    for await (const { key } of listAll(driver, `${prefix}/`, { signal })) {
      const name = key.slice(prefix.length + 1);
      if (!isOwn(name)) {
        others++;
        continue;
      }
      found++;
      if (names.push(name) < batchKeys) continue;
      await deletion.of(names);
      names = [];
    }
    if (names.length > 0) await deletion.of(names);
    if (found === 0) break;
    if (pass === maxPasses) deletion.failed.push({ name: prefix, message: 'a process keeps writing there' });
    await wait(pauseMs, undefined, { signal });
  }
  return { deleted: deletion.deleted, failed: deletion.failed, others };
}

/** Counts the objects under the prefix that belong to a database. */
export function ownObjects(counts: readonly { readonly kind: string; readonly objects: number }[]): number {
  return counts.reduce((sum, { kind, objects }) => (kind === 'other' ? sum : sum + objects), 0);
}

/** The number and size of the objects of one kind in a database. */
export interface ObjectCount {
  readonly kind: string;
  readonly objects: number;
  readonly bytes: number;
}

const kinds = Object.entries(folders);

/** Counts the objects under the prefix by kind, with one list request for every 1,000 objects. */
export async function countObjects({ driver, prefix }: Place, signal: AbortSignal): Promise<ObjectCount[]> {
  const counts = new Map<string, { objects: number; bytes: number }>();
  for await (const { key, sizeBytes } of listAll(driver, `${prefix}/`, { signal })) {
    const name = key.slice(prefix.length + 1);
    const kind =
      name === block0Name ? block0Name : (kinds.find(([, folder]) => name.startsWith(folder))?.[0] ?? 'other');
    const count = counts.get(kind) ?? { objects: 0, bytes: 0 };
    count.objects++;
    count.bytes += sizeBytes;
    counts.set(kind, count);
  }
  return [...counts].map(([kind, count]) => ({ kind, objects: count.objects, bytes: count.bytes }));
}

export function totalOf(counts: readonly ObjectCount[]): { readonly objects: number; readonly bytes: number } {
  return {
    objects: counts.reduce((sum, { objects }) => sum + objects, 0),
    bytes: counts.reduce((sum, { bytes }) => sum + bytes, 0),
  };
}
