/** A reader in Chromium: requests and bytes on 171,075 cities, a slow network, no network, other origins, and a cache that stays. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Browser, Page } from 'playwright-core';
import { cities, readCities } from '../../../examples/cities/cities.ts';
import { StoreDb } from '../../../src/index.ts';
import type { Database } from '../../../src/index.ts';
import { ObjectStoreDriver } from '../../../src/storage/index.ts';
import type * as entry from '../../../src/reader.ts';
import { webBundle } from '../../features/platform/web-bundle.ts';
import { startS3Server } from '../s3-server/server.ts';
import { openPage, startChromium } from './chromium.ts';
import { StaticServer } from './static-server.ts';

type Reader = entry.Reader;
/** The globals of the page. */
declare const storeDb: typeof entry & { StoreDb: typeof StoreDb };
declare let reader: Reader;

const site = new StaticServer();
const bucket = new StaticServer();
let browser: Browser;
let origin: string;
let bucketOrigin: string;
let db: Database;

beforeAll(async () => {
  db = StoreDb({ driver: bucket.files, dbPrefix: 'data', nodeId: 1, logLevel: 'silent' });
  db.registerSchema(cities);
  await db.start();
  await db.load(cities, await readCities());
  await db.checkpoint();
  await db.publish({ driver: site.files, prefix: 'cities' });
  const program = new URL('reader-page.ts', import.meta.url).pathname;
  await site.put('page.js', await webBundle(program, { format: 'esm', minify: true }));
  await site.put(
    'index.html',
    '<!doctype html><title>Cities</title><link rel="icon" href="data:," /><script type="module" src="page.js"></script>',
  );
  origin = await site.start();
  bucketOrigin = await bucket.start();
  browser = await startChromium();
});
afterAll(async () => {
  await browser.close();
  await db.stop();
  await site.stop();
  await bucket.stop();
});

async function opened(faults: string[] = []): Promise<Page> {
  const page = await openPage(browser, faults);
  await page.goto(`${origin}/index.html`);
  await page.waitForFunction(() => 'storeDb' in globalThis);
  site.take();
  site.sentBytes = 0;
  return page;
}

async function openReaderIn(page: Page): Promise<void> {
  await page.evaluate(async () => {
    Object.assign(globalThis, { reader: await storeDb.openReader('cities') });
  });
}

describe('a reader in the browser', () => {
  it('shows its first row after three requests and 150 kB, and the next after one more', async () => {
    const faults: string[] = [];
    const page = await opened(faults);
    await openReaderIn(page);
    expect(await page.evaluate(() => reader.get('cities', 171_000))).toMatchObject({ id: 171_000 });
    expect(site.take()).toHaveLength(3);
    expect(site.sentBytes).toBeLessThan(150_000);
    expect(await page.evaluate(() => reader.get('cities', 5))).toMatchObject({ id: 5 });
    expect(site.take()).toHaveLength(1);
    expect(faults).toEqual([]);
    await page.context().close();
  });

  it('answers queries, counts, aggregates, plans and pages of an index as the database does', async () => {
    const page = await opened();
    await openReaderIn(page);
    const { rows } = await page.evaluate(() =>
      reader.query('cities').where('country', '>=', 'DE').orderBy('country').page({ size: 20 }),
    );
    expect(rows.map(({ id }) => id)).toEqual(
      (await db.query(cities).where('country', '>=', 'DE').orderBy('country').page({ size: 20 })).rows.map(
        ({ id }) => id,
      ),
    );
    expect(site.take().length).toBeLessThanOrEqual(6);
    const [count, groups, plan] = await page.evaluate(() =>
      Promise.all([
        reader.query('cities').where('country', '=', 'FI').count(),
        reader.query('cities').groupBy('country').aggregate({ all: 'count' }),
        reader.query('cities').where('country', '=', 'FI').explain(),
      ]),
    );
    expect(count).toBe(await db.query(cities).where('country', '=', 'FI').count());
    expect(groups).toEqual(await db.query(cities).groupBy('country').aggregate({ all: 'count' }));
    expect(plan).toMatchObject({ access: 'index' });
    await page.context().close();
  });

  it('works on a slow network, and can be given up there', async () => {
    const page = await opened();
    site.delayMs = 300;
    try {
      await openReaderIn(page);
      const [found, error] = await page.evaluate(async () => {
        const given = new AbortController();
        const slow = reader.query('cities').where('name', '=', 'Turku').execute({ signal: given.signal });
        setTimeout(() => given.abort(), 50);
        const failed = await slow.catch((cause: unknown) => (cause as { code: string }).code);
        return [await reader.get('cities', 77), failed];
      });
      expect([found, error]).toEqual([expect.objectContaining({ id: 77 }), 'ABORTED']);
    } finally {
      site.delayMs = 0;
    }
    await page.context().close();
  });

  it('shows what it has without a network, says what is missing, and goes on when the network is back', async () => {
    const page = await opened();
    await openReaderIn(page);
    await page.evaluate(() => reader.get('cities', 1000));
    site.isCutOff = true;
    try {
      const shown = await page.evaluate(async () => [
        await reader.get('cities', 1001),
        await reader.get('cities', 150_000).catch((cause: unknown) => (cause as { code: string }).code),
        await reader.refresh().catch((cause: unknown) => (cause as { code: string }).code),
      ]);
      expect(shown).toEqual([expect.objectContaining({ id: 1001 }), 'STORAGE', 'STORAGE']);
    } finally {
      site.isCutOff = false;
    }
    expect(await page.evaluate(() => reader.get('cities', 150_000))).toMatchObject({ id: 150_000 });
    expect(await page.evaluate(() => reader.refresh())).toBe(false);
    await page.context().close();
  });

  it('keeps blocks in the Cache Storage, for the next visit', async () => {
    const page = await opened();
    const visit = async (): Promise<unknown> =>
      page.evaluate(async () => {
        const again = await storeDb.openReader('cities', { cache: storeDb.browserCache() });
        const found = await again.get('cities', 99_000);
        again.close();
        return found;
      });
    await visit();
    expect(site.take()).toHaveLength(3);
    await page.reload();
    await page.waitForFunction(() => 'storeDb' in globalThis);
    expect(await visit()).toMatchObject({ id: 99_000 });
    expect(site.take().filter((path) => path.includes('/data/'))).toEqual([]);
    await page.context().close();
  });

  it('follows the pointer to a newer bundle', async () => {
    const page = await opened();
    await openReaderIn(page);
    const batch = db.batch();
    void batch.update(cities, { id: 42, name: 'Renamed' });
    await batch.flush();
    await db.publish({ driver: site.files, prefix: 'cities' });
    const [before, isNew, after] = await page.evaluate(async () => [
      (await reader.get('cities', 42))?.['name'],
      await reader.refresh(),
      (await reader.get('cities', 42))?.['name'],
    ]);
    expect([before === 'Renamed', isNew, after]).toEqual([false, true, 'Renamed']);
    await page.context().close();
  });
});

describe('a database that answers plain GETs', () => {
  const first = (base: string): Promise<unknown> =>
    (async () => {
      const driver = new storeDb.FetchDriver({ url: base });
      const replica = storeDb.StoreDb({ driver, dbPrefix: 'data', nodeId: 0, role: 'replica', logLevel: 'silent' });
      await replica.start();
      for (const table of await replica.tables()) replica.registerSchema(table);
      const row = await replica.get('cities', 12_345);
      await replica.stop();
      return row;
    })().catch((error: unknown) => (error as { code: string }).code);

  it('is read as a replica from another origin that allows it, and from no other', async () => {
    const page = await opened();
    bucket.allowedOrigin = undefined;
    expect(await page.evaluate(first, bucketOrigin)).toBe('STORAGE');
    bucket.allowedOrigin = origin;
    expect(await page.evaluate(first, bucketOrigin)).toMatchObject({ id: 12_345 });
    await page.context().close();
  });
});

describe('a bundle in a bucket of S3', () => {
  it('is read by a page of another origin without credentials, and nothing else is', async () => {
    await using s3 = await startS3Server();
    const driver = new ObjectStoreDriver({ bucket: 'test-bucket', client: s3.client() });
    await db.publish({ driver, prefix: 'public/cities' });
    await driver.close();
    s3.isPublic = (_, key) => key.startsWith('public/');
    s3.clearLog();
    const page = await opened();
    const bundleUrl = `${s3.endpoint}/test-bucket/public/cities`;
    const firstRow = (url: string): Promise<unknown> =>
      (async () => {
        const found = await storeDb.openReader(url);
        const row = await found.get('cities', 12_345);
        found.close();
        return row;
      })().catch((error: unknown) => (error as { code: string }).code);
    expect(await page.evaluate(firstRow, bundleUrl)).toBe('STORAGE');
    s3.allowedOrigin = origin;
    s3.clearLog();
    expect(await page.evaluate(firstRow, bundleUrl)).toMatchObject({ id: 12_345 });
    expect(s3.log.map(({ operation, status }) => `${operation} ${status}`)).toEqual(Array(3).fill('GetObject 200'));
    s3.isPublic = undefined;
    expect(await page.evaluate(firstRow, bundleUrl)).toBe('STORAGE');
    await page.context().close();
  });
});
