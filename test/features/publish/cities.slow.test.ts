/** The requests and bytes of a reader on 171,075 cities, and the length of its script. */
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import { rolldown } from 'rolldown';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { cities, readCities } from '../../../examples/cities/cities.ts';
import { StoreDb } from '../../../src/index.ts';
import { MemoryDriver } from '../../../src/storage/memory-driver.ts';
import { BundleServer } from './published.ts';

const db = StoreDb({ driver: new MemoryDriver(), dbPrefix: 'db', nodeId: 1 });
const server = new BundleServer();
type Cities = ReturnType<typeof db.query<typeof cities>>;

beforeAll(async () => {
  db.registerSchema(cities);
  await db.start();
  await db.load(cities, await readCities());
  const report = await db.publish(server.place);
  expect(report).toMatchObject({ outcome: 'published', rows: 171_075 });
}, 180_000);

afterAll(async () => {
  await db.stop();
});

/** Counts the requests and bytes of a call on a new reader, its opening included. */
async function cost(read: (reader: Awaited<ReturnType<BundleServer['open']>>) => Promise<unknown>): Promise<{
  readonly requests: number;
  readonly bytes: number;
}> {
  server.take();
  server.sentBytes = 0;
  const reader = await server.open();
  await read(reader);
  reader.close();
  return { requests: server.take().length, bytes: server.sentBytes };
}

describe('a reader of the cities', () => {
  it('takes three requests and less than 150 kB for the first row', async () => {
    const { requests, bytes } = await cost(async (reader) => {
      expect(await reader.get(cities, 171_000)).toMatchObject({ id: 171_000 });
    });
    expect(requests).toBe(3);
    expect(bytes).toBeLessThan(150_000);
  });

  it('takes at most six requests for a page of 20 rows of an index', async () => {
    const { requests, bytes } = await cost(async (reader) => {
      const { rows } = await reader.query(cities).where('country', '>=', 'DE').orderBy('country').page({ size: 20 });
      expect(rows).toHaveLength(20);
    });
    expect(requests).toBeLessThanOrEqual(6);
    expect(bytes).toBeLessThan(150_000);
  });

  it.each([
    ['in the order of keys', (query: Cities) => query.where('country', '=', 'DE')],
    ['from the last key on', (query: Cities) => query.where('country', '=', 'DE').orderBy('id', 'desc')],
    ['after a key', (query: Cities) => query.where('country', '=', 'US').where('id', '>', 1000)],
    [
      'before a key',
      (query: Cities) => query.where('country', '=', 'AE').where('id', '<', 100_000).orderBy('id', 'desc'),
    ],
  ])('takes at most six requests for a page of a country far away, %s', async (_, build) => {
    const { requests, bytes } = await cost(async (reader) => {
      const { rows } = await build(reader.query(cities)).page({ size: 20 });
      expect(rows).toEqual((await build(db.query(cities)).page({ size: 20 })).rows);
      expect(rows).toHaveLength(20);
    });
    expect(requests).toBeLessThanOrEqual(6);
    expect(bytes).toBeLessThan(150_000);
  });

  it('counts without reading rows', async () => {
    const { requests } = await cost(async (reader) => {
      expect(await reader.query(cities).count()).toBe(171_075);
    });
    expect(requests).toBe(2);
  });
});

describe('the script of a reader', () => {
  it('has at most 92 kB, minified and compressed', async () => {
    const entry = fileURLToPath(new URL('../../../src/reader.ts', import.meta.url));
    const page = `export { openReader } from ${JSON.stringify(entry)};`;
    const build = await rolldown({
      input: 'page',
      plugins: [
        { name: 'page', resolveId: (id) => (id === 'page' ? id : null), load: (id) => (id === 'page' ? page : null) },
      ],
      platform: 'browser',
      tsconfig: false,
      resolve: { alias: { '#platform': fileURLToPath(new URL('../../../src/platform/web.ts', import.meta.url)) } },
      onLog: () => undefined,
    });
    const { output } = await build.generate({
      format: 'esm',
      minify: true,
      comments: { jsdoc: false, legal: false },
      codeSplitting: false,
    });
    await build.close();
    const bytes = gzipSync(output[0].code, { level: 9 }).length;
    expect(bytes).toBeLessThan(92_000);
  });
});
