import { createRequire } from 'node:module';
import type { City, Contender } from './contender.ts';

/** What is used of lmdb, which is installed only for the benchmark. */
interface Store<V, K> {
  get(key: K): V | undefined;
  put(key: K, value: V): Promise<boolean>;
  getRange(): Iterable<{ key: K; value: V }>;
  getValues(key: K): Iterable<V>;
}
interface Root {
  openDB<V, K>(options: object): Store<V, K>;
  transaction(run: () => void): Promise<void>;
  readonly flushed: Promise<unknown>;
  close(): Promise<void>;
}

/** LMDB has no queries: scans go over all rows, and the index on country is a second database kept by hand. */
export function openLmdb(folder: string): Contender {
  const lmdb = createRequire(import.meta.url)('lmdb') as { open(options: object): Root };
  const root = lmdb.open({ path: folder, maxDbs: 2 });
  const rows = root.openDB<City, number>({ name: 'cities' });
  const byCountry = root.openDB<number, string>({ name: 'by-country', dupSort: true, encoding: 'ordered-binary' });
  const count = (matches: (city: City) => boolean): number => {
    let found = 0;
    for (const { value } of rows.getRange()) if (matches(value)) found++;
    return found;
  };
  return {
    name: 'lmdb',
    async load(cities: readonly City[], batchRows: number): Promise<void> {
      for (let from = 0; from < cities.length; from += batchRows) {
        await root.transaction(() => {
          for (const city of cities.slice(from, from + batchRows)) {
            void rows.put(city.id, city);
            void byCountry.put(city.country, city.id);
          }
        });
      }
      await root.flushed;
    },
    get: (id) => rows.get(id),
    byCountry: (country) => [...byCountry.getValues(country)].map((id) => rows.get(id)),
    countNorthOf: (lat) => count((city) => city.lat > lat),
    countNamed: (name) => count((city) => city.name === name),
    southernmost: (limit) =>
      [...rows.getRange()]
        .map(({ value }) => value)
        .toSorted((a, b) => a.lat - b.lat || a.id - b.id)
        .slice(0, limit),
    async updateOne(id, lat): Promise<void> {
      const city = rows.get(id);
      if (city !== undefined) await rows.put(id, { ...city, lat });
      await root.flushed;
    },
    close: () => root.close(),
  };
}
