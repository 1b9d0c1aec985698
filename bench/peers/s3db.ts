import type { City, Loader, OpenOptions, StoreContender } from './contender.ts';

/** What is used of s3db.js, which is installed only for the benchmark. */
interface Row extends Omit<City, 'id'> {
  readonly id: string;
}
interface Resource {
  insertMany(rows: readonly Row[]): Promise<unknown>;
  getOrNull(id: string): Promise<Row | null>;
  list(options: { readonly partition: string; readonly partitionValues: object }): Promise<Row[]>;
  update(id: string, changes: object): Promise<unknown>;
}
interface Database {
  readonly resources: Readonly<Record<string, Resource | undefined>>;
  connect(): Promise<void>;
  disconnect(): Promise<void>;
  createResource(definition: object): Promise<Resource>;
}
interface S3Db {
  readonly Database: new (options: object) => Database;
}

const definition = {
  name: 'cities',
  attributes: { name: 'string', country: 'string', lat: 'number', lng: 'number', population: 'number' },
  // What it has for indexes: an object for each row, with the value in its name.
  partitions: { byCountry: { fields: { country: 'string' } }, byPopulation: { fields: { population: 'number' } } },
  // An update is over when these are written, too.
  asyncPartitions: false,
};

function toCity({ id, name, country, lat, lng, population }: Row): City {
  return { id: Number(id), name, country, lat, lng, population };
}

function loaderOf(cities: Resource): Loader {
  return {
    add: (rows) => cities.insertMany(rows.map((city) => ({ ...city, id: String(city.id) }))),
    finish: () => undefined,
  };
}

/** s3db.js keeps each row in the metadata of an object of its own. Only on an object store. */
export async function openS3Db({ place }: OpenOptions): Promise<StoreContender> {
  if (typeof place === 'string') throw new Error('It needs an object store.');
  const packageName: string = 's3db.js/lite';
  const { Database } = (await import(packageName)) as S3Db;
  const url = new URL(place.endpoint);
  Object.assign(url, { username: place.accessKeyId, password: place.secretAccessKey });
  url.pathname = `/${place.bucket}/${place.prefix}`;
  url.searchParams.set('region', place.region);
  const db = new Database({ connectionString: url.href, loggerOptions: { level: 'error' } });
  await db.connect();
  const cities = db.resources['cities'] ?? (await db.createResource(definition));
  return {
    loader: () => loaderOf(cities),
    async get(id) {
      const row = await cities.getOrNull(String(id));
      return row === null ? undefined : toCity(row);
    },
    async withPopulation(population) {
      const found = await cities.list({ partition: 'byPopulation', partitionValues: { population } });
      return found.map(toCity);
    },
    update: (id, lat) => cities.update(String(id), { lat }),
    close: () => db.disconnect(),
  };
}
