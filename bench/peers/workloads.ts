/** What is measured on a local contender, and what it must answer. */
import { createHash } from 'node:crypto';
import { Cities } from './cities.ts';
import { byPopulation } from './first-rows.ts';
import type { City, Contender, StoreContender } from './contender.ts';
import type { Input } from './input.ts';

export interface Workload {
  readonly name: string;
  readonly title: string;
  readonly writes?: true;
  /** What is counted. */
  readonly unit: 'ops' | 'rows';
  /** How often it is done at least, since the first ones tell little. Default 1. */
  readonly least?: number;
  /** False for a contender that cannot do it. Default: all of them can. */
  isFor?(contender: Contender): boolean;
  /** Does the work so many times. Resolves to how many units of it were done. */
  run(contender: Contender, times: number, input: Input): Promise<number>;
}

/** The answer of a worker to work that its contender cannot do. */
export const cannot = 'cannot';

/** Clients of YCSB-B that each wait for their own update: databases may commit those together that come at the same time. */
export const clients = 64;
const updateShare = 0.05;
const manyRows = ['FR', 'US', 'IT', 'ES', 'DE', 'IN', 'MX', 'GB'] as const;
const someName = 'San Antonio';
const north = 60;

/** The sum of the fields read, so that no engine can leave out the reading. */
let sum = 0;

function readRow(row: City): void {
  const { id, name, country, lat, lng, population } = row;
  sum += id + name.length + name.charCodeAt(0) + country.length + country.charCodeAt(0) + lat + lng + population;
}

/** Reads every field of every row of an answer, as an application would. */
function readFields(answer: unknown): void {
  if (Array.isArray(answer)) for (const row of answer as City[]) readRow(row);
  else if (typeof answer === 'object' && answer !== null) readRow(answer as City);
  if (Number.isNaN(sum)) throw new Error('A row lacks a field.');
}

/** Calls one after the other. An answer that is no promise is not awaited: that would cost more than some of the calls. */
async function repeat(times: number, call: (i: number) => unknown): Promise<void> {
  for (let i = 0; i < times; i++) {
    const result = call(i);
    readFields(result instanceof Promise ? await result : result);
  }
}

function each(call: (contender: Contender, i: number, input: Input) => unknown): Workload['run'] {
  return async (contender, times, input) => {
    await repeat(times, (i) => call(contender, i, input));
    return times;
  };
}

/** By the call for rows in memory, where a contender has one. */
function getCached(contender: Contender, key: number): unknown {
  return contender.getCached?.(key) ?? contender.get(key);
}

/** One that goes over all rows. */
function scan(call: (contender: Contender) => unknown): Workload['run'] {
  return async (contender, times, input) => {
    await repeat(times, () => call(contender));
    return times * input.rows;
  };
}

/** Calls by several clients: each waits for its answer before it goes on. */
async function byClients(count: number, times: number, call: (i: number) => unknown): Promise<void> {
  let next = 0;
  const client = async (): Promise<void> => {
    for (let i = next++; i < times; i = next++) {
      const result = call(i);
      readFields(result instanceof Promise ? await result : result);
    }
  };
  await Promise.all(Array.from({ length: count }, client));
}

/** YCSB-B. */
export async function readsAndUpdates(
  contender: Pick<StoreContender, 'get' | 'update'>,
  times: number,
  input: Input,
  count: number = clients,
): Promise<number> {
  await byClients(count, times, (i) => {
    const key = input.popularKey(i);
    if (input.fraction(i) >= updateShare) return contender.get(key);
    return contender.update(key, 180 * input.fraction(i + 1) - 90);
  });
  return times;
}

/** Operations between two commits of the mix. */
const commitEvery = 1000;
let cities: Cities | undefined;

/** 95 % gets and 5 % upserts by one client. The upserts become durable together, after each thousand operations. */
async function readsAndUpserts(contender: Contender, times: number, input: Input): Promise<number> {
  cities ??= new Cities();
  for (let from = 0; from < times; from += commitEvery) {
    const changes = contender.changes?.();
    if (changes === undefined) throw new Error('It has no transactions of several rows.');
    for (let i = from; i < from + commitEvery; i++) {
      const key = input.popularKey(i);
      if (input.fraction(i) < updateShare) {
        changes.upsert({ ...cities.at(key), lat: 180 * input.fraction(i + 1) - 90 });
        continue;
      }
      const result = contender.get(key);
      readFields(result instanceof Promise ? await result : result);
    }
    await changes.commit();
  }
  return Math.ceil(times / commitEvery) * commitEvery;
}

/** In the order in which they are measured: those that write come last. */
export const workloads: readonly Workload[] = [
  {
    name: 'get',
    title: 'get by key',
    unit: 'ops',
    run: each((contender, i, input) => contender.get(input.key(i))),
  },
  {
    name: 'get-cached',
    title: 'get by key, in memory',
    unit: 'ops',
    run: each((contender, i, input) => getCached(contender, input.key(i))),
  },
  {
    name: 'get-cached-popular',
    title: 'get by popular keys, in memory',
    unit: 'ops',
    run: each((contender, i, input) => getCached(contender, input.popularKey(i))),
  },
  {
    name: 'get-many',
    title: `get by key, ${clients} clients`,
    unit: 'ops',
    async run(contender, times, input) {
      await byClients(clients, times, (i) => contender.get(input.key(i)));
      return times;
    },
  },
  {
    name: 'query-key',
    title: 'query by primary key',
    unit: 'ops',
    run: each((contender, i, input) => contender.queryKey?.(input.key(i)) ?? contender.get(input.key(i))),
  },
  {
    name: 'country-all',
    title: "country = 'FR' by index, all rows",
    unit: 'rows',
    async run(contender, times) {
      let rows = 0;
      await repeat(times, async () => {
        const found = await contender.byCountry('FR');
        rows += found.length;
        return found;
      });
      return rows;
    },
  },
  {
    name: 'country-100',
    title: 'country by index, limit 100',
    unit: 'ops',
    run: each((contender, i) => contender.byCountry(manyRows[i % manyRows.length] as string, 100)),
  },
  {
    name: 'population-100',
    title: 'range of population by index, limit 100',
    unit: 'ops',
    run: each((contender, i, input) => contender.fromPopulation(1000 + Math.floor(1e6 * input.fraction(i)), 100)),
  },
  {
    name: 'population-20',
    title: 'ordered by population by index, limit 20',
    unit: 'ops',
    run: each((contender) => contender.fromPopulation(0, 20)),
  },
  {
    name: 'population-20-desc',
    title: 'ordered by population by index, descending, limit 20',
    unit: 'ops',
    isFor: (contender) => contender.mostPopulous !== undefined,
    run: each((contender) => contender.mostPopulous?.(20)),
  },
  {
    name: 'scan-number',
    title: 'scan, predicate on a number',
    unit: 'rows',
    run: scan((contender) => contender.countNorthOf(north)),
  },
  {
    name: 'scan-string',
    title: 'scan, predicate on a string',
    unit: 'rows',
    run: scan((contender) => contender.countNamed(someName)),
  },
  {
    name: 'south-20',
    title: 'first 20 by a field without an index',
    unit: 'rows',
    run: scan((contender) => contender.southernmost(20)),
  },
  {
    name: 'ycsb-c',
    title: 'YCSB-C: get by popular keys',
    unit: 'ops',
    run: each((contender, i, input) => contender.get(input.popularKey(i))),
  },
  {
    name: 'ycsb-b',
    title: `YCSB-B: 95 % get, 5 % durable update, ${clients} clients`,
    unit: 'ops',
    writes: true,
    least: 10 * clients,
    run: readsAndUpdates,
  },
  {
    name: 'ycsb-b-alone',
    title: 'YCSB-B with one client',
    unit: 'ops',
    writes: true,
    least: 1000,
    run: (contender, times, input) => readsAndUpdates(contender, times, input, 1),
  },
  {
    name: 'mix-1000',
    title: '95 % get, 5 % upsert, durable every 1,000 operations',
    unit: 'ops',
    writes: true,
    least: 10 * commitEvery,
    isFor: (contender) => contender.changes !== undefined,
    run: readsAndUpserts,
  },
  {
    name: 'commit',
    title: 'durable update of one row, one after the other',
    unit: 'ops',
    writes: true,
    least: 50,
    run: each((contender, i, input) => contender.update(input.key(i), 180 * input.fraction(i) - 90)),
  },
];

/** Those that are measured once more where the rows of a country lie side by side. */
export const sortedWorkloads: readonly string[] = ['country-all', 'country-100'];

/** Under which name that is. */
export function sortedName(workload: string): string {
  return `sorted-${workload}`;
}

function valuesOf(row: unknown): unknown[] | undefined {
  if (row === undefined || row === null) return undefined;
  const { id, name, country, lat, lng, population } = row as City;
  if (Object.keys(row).length !== 6) throw new Error(`A row has the fields ${Object.keys(row).join(', ')}.`);
  return [id, name, country, lat, lng, population];
}

function digest(rows: readonly unknown[]): string {
  const hash = createHash('sha1').update(JSON.stringify(rows.map(valuesOf)));
  return `${rows.length} rows, ${hash.digest('hex').slice(0, 12)}`;
}

/** What a contender answers to each workload that reads: as text, which must be the same for all of them. */
export const answers: Readonly<Record<string, (contender: Contender, rows: number) => Promise<string>>> = {
  async get(contender, rows) {
    const ids = [0, 1, rows >> 1, rows - 1, rows, ...Array.from({ length: 20 }, (_, i) => (i * 7919) % rows)];
    const found: unknown[] = [];
    for (const id of ids) found.push(await contender.get(id));
    return digest(found);
  },
  'country-all': async (contender) => digest(await contender.byCountry('FR')),
  'country-100': async (contender) => digest(await contender.byCountry('DE', 20)),
  'population-100': async (contender) => digest(await contender.fromPopulation(123_456, 100)),
  'population-20': async (contender) => digest(await contender.fromPopulation(0, 20)),
  async 'population-20-desc'(contender) {
    const rows = ((await contender.mostPopulous?.(20)) ?? []) as readonly City[];
    // Databases differ in the order of rows with the same population.
    return digest(rows.toSorted((a, b) => byPopulation(b, a)));
  },
  'scan-number': async (contender) => String(await contender.countNorthOf(north)),
  'scan-string': async (contender) => String(await contender.countNamed(someName)),
  'south-20': async (contender) => digest(await contender.southernmost(20)),
};
