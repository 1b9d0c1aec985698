/** How many objects a database consists of, and their size, by what they are. */
import { block0Name, folders } from '../../format/keys.ts';
import { listAll } from '../../storage/contract/list-all.ts';
import type { Place } from './open-database.ts';

export interface ObjectCount {
  readonly kind: string;
  readonly objects: number;
  readonly bytes: number;
}

const kinds = Object.entries(folders);

/** Lists everything under the prefix: a request for every 1,000 objects. */
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
