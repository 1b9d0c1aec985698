/** Transactions over lists: they read some, and append to some of these. */
import type { Database } from '../../../src/api/database.ts';
import type { SeededRandom } from '../../../src/testing/seeded-random.ts';
import type { Patience } from './flush.ts';
import { changeGuarded } from './guarded-change.ts';
import type { VersionedRow } from './guarded-change.ts';
import type { ListsAsked, Shown } from './history.ts';
import { entries, lists } from './tables.ts';

/**
 * What a key begins with tells how its list is stored and changed: `g`, a row, changed under guards by plain batches; `r`,
 * a row, changed in transactions; `e`, a row for each element, found by an index, changed in transactions.
 */
export type ListKind = 'g' | 'r' | 'e';

/** For so long the same lists are appended to, in milliseconds: otherwise they would grow without end. */
const seasonMs = 8000;
const keysOfSeason = 3;

/** Keys of one kind that are in use at a time, by all lanes. */
export function keysAt(ms: number, kind: ListKind): string[] {
  const season = Math.floor(ms / seasonMs);
  return Array.from({ length: keysOfSeason }, (_, i) => `${kind}${season}-${i}`);
}

export interface ListRow extends VersionedRow {
  readonly items: readonly string[] | null;
}

/** Some of the lists of now, and now and then of the season before. */
export function chooseKeys(random: SeededRandom, ms: number, kinds: readonly ListKind[]): string[] {
  const present = kinds.flatMap((kind) => keysAt(ms, kind));
  const all = random.chance(0.2) ? [...present, ...kinds.flatMap((kind) => keysAt(ms - seasonMs, kind))] : present;
  return random.shuffled(all).slice(0, random.integer(1, 3));
}

/** Appends to all that is read: only then do the guards make sure that nothing was missed. */
export function appendGuarded(
  db: Database,
  asked: ListsAsked,
  patience: Patience,
  onRetry: () => void,
): Promise<Shown> {
  return changeGuarded<ListRow, Shown>(
    db,
    {
      table: 'lists',
      ids: asked.reads,
      change: (rows, batch, versionOf) => {
        const shown = Object.fromEntries(asked.reads.map((key) => [key, rows.get(key)?.items ?? []]));
        for (const key of asked.reads) {
          const own = asked.appends.filter(([to]) => to === key).map(([, element]) => element);
          const items = [...(shown[key] ?? []), ...own];
          void batch.upsert(lists, { id: key, items, version: versionOf(key) });
        }
        return { lists: shown };
      },
    },
    patience,
    onRetry,
  );
}

/** Reads lists in one query, and so at one moment. They are all stored as rows, or all as entries. */
export async function readLists(db: Pick<Database, 'query'>, keys: readonly string[]): Promise<Shown> {
  const found: Record<string, string[]> = Object.fromEntries(keys.map((key) => [key, []]));
  if (keys[0]?.startsWith('e') === true) {
    const rows = await db
      .query(entries)
      .where('list', 'IN', [...keys])
      .orderBy('position', 'asc')
      .execute();
    for (const { id, list } of rows) found[list as string]?.push(elementOf(id));
  } else {
    const rows = (await db
      .query(lists)
      .where('id', 'IN', [...keys])
      .execute()) as unknown as ListRow[];
    for (const { id, items } of rows) found[id] = [...(items ?? [])];
  }
  return { lists: found };
}

/** Of the row of an entry: `key element`. */
export function elementOf(id: string): string {
  return id.slice(id.indexOf(' ') + 1);
}
