import { createRequire } from 'node:module';
import { folderOf } from './contender.ts';
import type { City, Contender, OpenOptions } from './contender.ts';
import { bySouth, FirstRows } from './first-rows.ts';
import { after, countryKey, idIn, populationKey, rowKey } from './key-order.ts';

/** What is used of classic-level, which is installed only for the benchmark. */
interface Range {
  readonly gte: string;
  readonly lt: string;
  readonly limit?: number;
  readonly reverse?: boolean;
}
interface Level {
  open(): Promise<void>;
  getSync(key: string): City | undefined;
  getMany(keys: readonly string[]): Promise<(City | undefined)[]>;
  put(key: string, value: City, options: { sync: boolean }): Promise<void>;
  batch(operations: readonly object[], options: { sync: boolean }): Promise<void>;
  keys(range: Range): { all(): Promise<string[]> };
  values(range: Range): { nextv(size: number): Promise<City[]>; close(): Promise<void> };
  compactRange(from: string, to: string): Promise<void>;
  close(): Promise<void>;
}

/** So many rows at a time when all are gone over. */
const stride = 1000;

/** LevelDB has keys and values: indexes are kept by hand, and scans go over all rows. */
export async function openClassicLevel({ place, memoryBytes }: OpenOptions): Promise<Contender> {
  const { ClassicLevel } = createRequire(import.meta.url)('classic-level') as {
    ClassicLevel: new (folder: string, options: object) => Level;
  };
  const db = new ClassicLevel(folderOf(place), { valueEncoding: 'json', cacheSize: memoryBytes });
  await db.open();
  const rowsAt = (keys: readonly string[]): Promise<unknown[]> => db.getMany(keys.map((key) => rowKey(idIn(key))));
  const over = async (each: (city: City) => void): Promise<void> => {
    const values = db.values({ gte: 'r', lt: after('r') });
    for (;;) {
      const some = await values.nextv(stride);
      if (some.length === 0) break;
      for (const city of some) each(city);
    }
    await values.close();
  };
  const count = async (matches: (city: City) => boolean): Promise<number> => {
    let found = 0;
    await over((city) => {
      if (matches(city)) found++;
    });
    return found;
  };
  return {
    loader: () => ({
      add: (cities: readonly City[]) =>
        db.batch(
          cities.flatMap((city) => [
            { type: 'put', key: rowKey(city.id), value: city },
            { type: 'put', key: countryKey(city.country, city.id), value: 0 },
            { type: 'put', key: populationKey(city.population, city.id), value: 0 },
          ]),
          { sync: true },
        ),
      finish: () => db.compactRange('a', 'z'),
    }),
    get: (id) => db.getSync(rowKey(id)),
    async byCountry(country, limit) {
      const beginning = `c${country}`;
      const range = { gte: beginning, lt: after(beginning), ...(limit === undefined ? {} : { limit }) };
      return rowsAt(await db.keys(range).all());
    },
    fromPopulation: async (least, limit) =>
      rowsAt(await db.keys({ gte: populationKey(least, 0), lt: after('p'), limit }).all()),
    mostPopulous: async (limit) => rowsAt(await db.keys({ gte: 'p', lt: after('p'), reverse: true, limit }).all()),
    countNorthOf: (lat) => count((city) => city.lat > lat),
    countNamed: (name) => count((city) => city.name === name),
    async southernmost(limit) {
      const first = new FirstRows(limit, bySouth);
      await over((city) => first.show(city));
      return first.sorted();
    },
    async update(id, lat): Promise<void> {
      const city = db.getSync(rowKey(id));
      if (city !== undefined) await db.put(rowKey(id), { ...city, lat }, { sync: true });
    },
    close: () => db.close(),
  };
}
