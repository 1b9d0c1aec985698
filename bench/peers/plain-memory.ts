/**
 * What JavaScript itself allows: the same work on a Map and on sorted arrays in memory, behind the same kind of calls, with a
 * fresh object for each row. Nothing is decoded, merged or shared with others, and what is written is synced to a file for each
 * commit. No database that is called like StoreDb can do better by much. In tables it is the column `limit`.
 */
import { mkdirSync } from 'node:fs';
import { byPopulation } from './first-rows.ts';
import { folderOf } from './contender.ts';
import type { City, Contender, OpenOptions } from './contender.ts';
import { CommitFile, RowFile } from './commit-files.ts';

/** Of what is it a limit: scans over objects are slow. */
export const limitedWorkloads: readonly string[] = [
  'get',
  'get-cached',
  'get-cached-popular',
  'get-many',
  'query-key',
  'country-all',
  'country-100',
  'population-100',
  'population-20',
  'population-20-desc',
  'ycsb-c',
  'ycsb-b',
  'mix-1000',
  'ycsb-b-alone',
  'commit',
  'load-batches',
  'load-bulk',
];

/** Where the first one that is not below `least` stands. */
function firstFrom(cities: readonly City[], least: number): number {
  let low = 0;
  let high = cities.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((cities[middle] as City).population < least) low = middle + 1;
    else high = middle;
  }
  return low;
}

function copies(cities: readonly City[], from: number, limit: number): City[] {
  const copied: City[] = [];
  const end = Math.min(cities.length, from + limit);
  for (let i = from; i < end; i++) copied.push({ ...(cities[i] as City) });
  return copied;
}

export function openPlainMemory({ place }: OpenOptions): Contender {
  const folder = folderOf(place);
  mkdirSync(folder, { recursive: true });
  const commits = new CommitFile(folder);
  const cities = new Map<number, City>();
  const countries = new Map<string, City[]>();
  let populations: City[] = [];
  let committing: Promise<void> | undefined;
  const group: (() => void)[] = [];

  const index = (): void => {
    populations = [...cities.values()].toSorted(byPopulation);
    countries.clear();
    for (const city of cities.values()) {
      const others = countries.get(city.country);
      if (others === undefined) countries.set(city.country, [city]);
      else others.push(city);
    }
  };
  const commit = async (): Promise<void> => {
    // Whoever comes in the same turn goes with it.
    await new Promise((resolve) => {
      setImmediate(resolve);
    });
    committing = undefined;
    const done = group.splice(0);
    commits.commit();
    for (const resolve of done) resolve();
  };
  const get = async (id: number): Promise<City | undefined> => {
    const city = cities.get(id);
    return city && { ...city };
  };
  return {
    loader(kind) {
      const file = new RowFile(folder);
      return {
        add(rows) {
          for (const city of rows) cities.set(city.id, { ...city });
          file.add(rows);
          if (kind === 'batches') file.sync();
        },
        finish() {
          file.close();
          index();
        },
      };
    },
    get,
    getCached(id) {
      const city = cities.get(id);
      return city && { ...city };
    },
    queryKey: async (id) => [await get(id)],
    byCountry: async (country, limit = Infinity) => copies(countries.get(country) ?? [], 0, limit),
    fromPopulation: async (least, limit) => copies(populations, firstFrom(populations, least), limit),
    mostPopulous: async (limit) => copies(populations, Math.max(0, populations.length - limit), limit).toReversed(),
    changes() {
      const changed: City[] = [];
      return {
        upsert: (row) => void changed.push({ ...row }),
        commit() {
          for (const row of changed) cities.set(row.id, row);
          commits.commit();
        },
      };
    },
    countNorthOf: () => 0,
    countNamed: () => 0,
    southernmost: () => [],
    async update(id, lat) {
      const city = cities.get(id);
      if (city !== undefined) (city as { lat: number }).lat = lat;
      await new Promise<void>((resolve) => {
        group.push(resolve);
        committing ??= commit();
      });
    },
    settle: () => committing,
    close: () => commits.close(),
  };
}
