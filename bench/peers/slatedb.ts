import type { City, Contender, Loader, OpenOptions } from './contender.ts';
import { bySouth, FirstRows } from './first-rows.ts';
import { after, countryKey, idIn, populationKey, rowKey } from './key-order.ts';

/** What is used of @slatedb/uniffi, which is installed only for the benchmark. */
interface KeyRange {
  readonly start: Uint8Array;
  readonly start_inclusive: boolean;
  readonly end: Uint8Array;
  readonly end_inclusive: boolean;
}
interface Entries {
  next(): Promise<{ readonly key: Uint8Array; readonly value: Uint8Array } | undefined>;
}
interface WriteBatch {
  put(key: Uint8Array, value: Uint8Array): void;
}
interface Db {
  get(key: Uint8Array): Promise<Uint8Array | undefined>;
  put_with_options(key: Uint8Array, value: Uint8Array, options: object, write: object): Promise<unknown>;
  write_with_options(batch: WriteBatch, options: object): Promise<unknown>;
  flush_with_options(options: object): Promise<void>;
  scan(range: KeyRange): Promise<Entries>;
  shutdown(): Promise<void>;
  dispose(): void;
}
interface SlateDb {
  readonly ObjectStore: { resolve(url: string): object };
  readonly DbBuilder: new (path: string, store: object) => { build(): Promise<Db> };
  readonly WriteBatch: new () => WriteBatch;
  readonly FlushType: { readonly Wal: string; readonly MemTable: string };
  readonly Ttl: { Default(): object };
}

/** Where it is: the path of the database, and the URL of the store that it is in. */
function addressOf(place: OpenOptions['place']): [path: string, url: string] {
  if (typeof place === 'string') return ['bench', `file://${place}`];
  Object.assign(process.env, {
    AWS_ACCESS_KEY_ID: place.accessKeyId,
    AWS_SECRET_ACCESS_KEY: place.secretAccessKey,
    AWS_REGION: place.region,
    AWS_ENDPOINT: place.endpoint,
    AWS_ALLOW_HTTP: 'true',
  });
  return [place.prefix, `s3://${place.bucket}`];
}

function loaderOf(db: Db, slatedb: SlateDb): Loader {
  const flush = (flushType: string): Promise<void> => db.flush_with_options({ flush_type: flushType });
  return {
    async add(cities: readonly City[]): Promise<void> {
      const batch = new slatedb.WriteBatch();
      const nothing = Buffer.from('-');
      for (const city of cities) {
        batch.put(Buffer.from(rowKey(city.id)), Buffer.from(JSON.stringify(city)));
        batch.put(Buffer.from(countryKey(city.country, city.id)), nothing);
        batch.put(Buffer.from(populationKey(city.population, city.id)), nothing);
      }
      await db.write_with_options(batch, { await_durable: false });
      await flush(slatedb.FlushType.Wal);
    },
    finish: () => flush(slatedb.FlushType.MemTable),
  };
}

/** SlateDB has keys and values: indexes are kept by hand, and scans go over all rows. */
export async function openSlateDb({ place }: OpenOptions): Promise<Contender> {
  const packageName: string = '@slatedb/uniffi';
  const slatedb = (await import(packageName)) as SlateDb;
  const [path, url] = addressOf(place);
  const db = await new slatedb.DbBuilder(path, slatedb.ObjectStore.resolve(url)).build();
  const get = async (id: number): Promise<City | undefined> => {
    const value = await db.get(Buffer.from(rowKey(id)));
    return value === undefined ? undefined : (JSON.parse(Buffer.from(value).toString()) as City);
  };
  const over = async (from: string, to: string, each: (key: string, value: Uint8Array) => boolean): Promise<void> => {
    const range = { start: Buffer.from(from), start_inclusive: true, end: Buffer.from(to), end_inclusive: false };
    const entries = await db.scan(range);
    for (;;) {
      const entry = await entries.next();
      if (entry === undefined || !each(Buffer.from(entry.key).toString(), entry.value)) return;
    }
  };
  const rowsIn = async (from: string, to: string, limit = Infinity): Promise<(City | undefined)[]> => {
    const ids: number[] = [];
    await over(from, to, (key) => ids.push(idIn(key)) < limit);
    return Promise.all(ids.map(get));
  };
  const overRows = (each: (city: City) => void): Promise<void> =>
    over('r', after('r'), (_, value) => {
      each(JSON.parse(Buffer.from(value).toString()) as City);
      return true;
    });
  const count = async (matches: (city: City) => boolean): Promise<number> => {
    let found = 0;
    await overRows((city) => {
      if (matches(city)) found++;
    });
    return found;
  };
  return {
    loader: () => loaderOf(db, slatedb),
    get,
    byCountry: (country, limit) => rowsIn(`c${country}`, after(`c${country}`), limit),
    fromPopulation: (least, limit) => rowsIn(populationKey(least, 0), after('p'), limit),
    withPopulation: (population) => rowsIn(populationKey(population, 0), populationKey(population + 1, 0)),
    countNorthOf: (lat) => count((city) => city.lat > lat),
    countNamed: (name) => count((city) => city.name === name),
    async southernmost(limit) {
      const first = new FirstRows(limit, bySouth);
      await overRows((city) => first.show(city));
      return first.sorted();
    },
    async update(id, lat): Promise<void> {
      const city = await get(id);
      if (city === undefined) return;
      const value = Buffer.from(JSON.stringify({ ...city, lat }));
      // A put that waits until it is durable waits for the next flush by the clock, 100 ms; so one is asked for.
      const later = { await_durable: false };
      await db.put_with_options(Buffer.from(rowKey(id)), value, { ttl: slatedb.Ttl.Default() }, later);
      await db.flush_with_options({ flush_type: slatedb.FlushType.Wal });
    },
    async close(): Promise<void> {
      await db.shutdown();
      db.dispose();
    },
  };
}
