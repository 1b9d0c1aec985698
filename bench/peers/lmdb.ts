import { createRequire } from 'node:module';
import { folderOf } from './contender.ts';
import type { City, Contender, OpenOptions } from './contender.ts';
import { bySouth, FirstRows } from './first-rows.ts';

/** What is used of lmdb, which is installed only for the benchmark. */
interface RangeOptions {
  readonly start?: unknown;
  readonly limit?: number;
  readonly reverse?: boolean;
}
interface Store<V, K> {
  get(key: K): V | undefined;
  put(key: K, value: V): Promise<boolean>;
  remove(key: K, value?: V): Promise<boolean>;
  getRange(options?: RangeOptions): Iterable<{ key: K; value: V }>;
  getValues(key: K, options?: RangeOptions): Iterable<V>;
}
interface Root {
  openDB<V, K>(options: object): Store<V, K>;
  transaction(run: () => void): Promise<void>;
  readonly flushed: Promise<unknown>;
  close(): Promise<void>;
}

/** LMDB has no queries: scans go over all rows, and the indexes are databases of their own, kept by hand. */
export function openLmdb({ place }: OpenOptions): Contender {
  const lmdb = createRequire(import.meta.url)('lmdb') as { open(options: object): Root };
  const root = lmdb.open({ path: folderOf(place), maxDbs: 3, noMemInit: true });
  // lmdb's documentation recommends shared structures for rows with the same fields: gets are three times as fast with them.
  const structures = Symbol.for('structures');
  const rows = root.openDB<City, number>({ name: 'cities', sharedStructuresKey: structures });
  const index = { dupSort: true, encoding: 'ordered-binary' };
  const byCountry = root.openDB<number, string>({ name: 'by-country', ...index });
  const byPopulation = root.openDB<number, number>({ name: 'by-population', ...index });
  const count = (matches: (city: City) => boolean): number => {
    let found = 0;
    for (const { value } of rows.getRange()) if (matches(value)) found++;
    return found;
  };
  return {
    loader: () => ({
      async add(cities: readonly City[]): Promise<void> {
        await root.transaction(() => {
          for (const city of cities) {
            void rows.put(city.id, city);
            void byCountry.put(city.country, city.id);
            void byPopulation.put(city.population, city.id);
          }
        });
        await root.flushed;
      },
      finish: () => root.flushed,
    }),
    get: (id) => rows.get(id),
    byCountry: (country, limit) =>
      Array.from(byCountry.getValues(country, limit === undefined ? {} : { limit }), (id) => rows.get(id)),
    fromPopulation: (least, limit) =>
      Array.from(byPopulation.getRange({ start: least, limit }), ({ value }) => rows.get(value)),
    mostPopulous: (limit) =>
      Array.from(byPopulation.getRange({ reverse: true, limit }), ({ value }) => rows.get(value)),
    changes() {
      let last: Promise<unknown> | undefined;
      return {
        upsert(row): void {
          const old = rows.get(row.id);
          if (old !== undefined && old.country !== row.country) void byCountry.remove(old.country, row.id);
          if (old !== undefined && old.population !== row.population) void byPopulation.remove(old.population, row.id);
          if (old?.country !== row.country) void byCountry.put(row.country, row.id);
          if (old?.population !== row.population) void byPopulation.put(row.population, row.id);
          last = rows.put(row.id, row);
        },
        async commit(): Promise<void> {
          await last;
          await root.flushed;
        },
      };
    },
    countNorthOf: (lat) => count((city) => city.lat > lat),
    countNamed: (name) => count((city) => city.name === name),
    southernmost(limit): City[] {
      const first = new FirstRows(limit, bySouth);
      for (const { value } of rows.getRange()) first.show(value);
      return first.sorted();
    },
    async update(id, lat): Promise<void> {
      const city = rows.get(id);
      if (city !== undefined) await rows.put(id, { ...city, lat });
      await root.flushed;
    },
    close: () => root.close(),
  };
}
