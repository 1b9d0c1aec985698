/** Searches of a reader in Chromium: results, and the requests for scripts, words and rows. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Browser, Page } from 'playwright-core';
import { defineSchema, StoreDb, Types } from '../../../src/index.ts';
import type { Database } from '../../../src/index.ts';
import { MemoryDriver } from '../../../src/storage/memory-driver.ts';
import type * as entry from '../../../src/reader.ts';
import { SeededRandom } from '../../../src/testing/seeded-random.ts';
import { openPage, startChromium } from './chromium.ts';
import { putSearchPage } from './search-site.ts';
import { StaticServer } from './static-server.ts';

/** The globals of the page. */
declare const storeDb: typeof entry;
declare let reader: entry.Reader;

const articles = defineSchema({
  name: 'articles',
  version: 1,
  fields: {
    id: { typeId: Types.uint32 },
    title: { typeId: Types.varchar },
    body: { typeId: Types.varchar },
  },
  primaryKey: 'id',
  indexes: [
    { fields: ['title', 'body'], text: { language: 'en', weights: { title: 3 } } },
    { fields: ['body'], text: { language: 'de' }, name: 'german' },
  ],
});
const words = 'red white wine glasses cellar grapes cask coffee tea Häuser laufen 赤ワイン 東京'.split(' ');
const site = new StaticServer();
let browser: Browser;
let origin: string;
let db: Database;

beforeAll(async () => {
  db = StoreDb({ driver: new MemoryDriver(), dbPrefix: 'data', nodeId: 1, logLevel: 'silent' });
  db.registerSchema(articles);
  await db.start();
  const random = new SeededRandom(8);
  const text = (most: number): string => Array.from({ length: most }, () => random.pick(words)).join(' ');
  await db.load(
    articles,
    Array.from({ length: 2000 }, (_, id) => ({ id, title: `${text(2)} n${id % 40}`, body: text(12) })),
  );
  await db.publish({ driver: site.files, prefix: 'articles' });
  await putSearchPage(site);
  origin = await site.start();
  browser = await startChromium();
});
afterAll(async () => {
  await browser.close();
  await db.stop();
  await site.stop();
});

async function opened(faults: string[] = []): Promise<Page> {
  const page = await openPage(browser, faults);
  await page.goto(`${origin}/index.html`);
  await page.waitForFunction(() => 'storeDb' in globalThis);
  await page.evaluate(async () => {
    const search = storeDb.readerSearch();
    Object.assign(globalThis, { reader: await storeDb.openReader('articles', { search }) });
  });
  site.take();
  site.scripts.length = 0;
  return page;
}

describe('the code of searches', () => {
  it('is loaded by the first search, and the stems of a language by the first search in it', async () => {
    const page = await opened();
    await page.evaluate(() => reader.get('articles', 7));
    await page.evaluate(() => reader.query('articles').where('title', 'PREFIX', 'red').count());
    const before = new Set(site.scripts.splice(0));
    await page.evaluate(() => reader.query('articles').search('wine').count());
    const first = site.scripts.splice(0);
    expect(first.some((path) => path.startsWith('search-module'))).toBe(true);
    expect(first.filter((path) => before.has(path) || path === 'page.js')).toEqual([]);
    await page.evaluate(() => reader.query('articles').search('glass').count());
    expect(site.scripts.splice(0)).toEqual([]);
    await page.evaluate(() => reader.query('articles').search('haus', { index: 'german' }).count());
    expect(site.scripts.splice(0)).toHaveLength(1);
    await page.context().close();
  });
});

describe('a search in the browser', () => {
  it('finds and marks what the database finds and marks', async () => {
    const faults: string[] = [];
    const page = await opened(faults);
    const asked = [
      ['red wines', {}],
      ['"white wine" -tea', {}],
      ['coffee glas', { prefix: true }],
      ['celler', { fuzzy: true }],
      ['haus lauf', { index: 'german' }],
      ['赤ワイン 東京', {}],
    ] as const;
    for (const [text, options] of asked) {
      const query = db.query('articles').search(text, options).limit(10);
      const rows = await query.execute();
      const expected = { rows, spans: await query.highlight(rows[0] ?? {}), count: await query.count() };
      expect(rows.length, text).toBeGreaterThan(0);
      const found = await page.evaluate(
        async ([what, how]) => {
          const inPage = reader.query('articles').search(what, how).limit(10);
          const all = await inPage.execute();
          return { rows: all, spans: await inPage.highlight(all[0] ?? {}), count: await inPage.count() };
        },
        [text, options] as const,
      );
      expect(found, text).toEqual(expected);
    }
    expect(faults).toEqual([]);
    await page.context().close();
  });

  it('takes a request for each block of words and of rows', async () => {
    const page = await opened();
    const search = (): Promise<number> =>
      page.evaluate(async () => (await reader.query('articles').search('n17 wine').limit(3).execute()).length);
    expect(await search()).toBe(3);
    const paths = site.take();
    expect(paths.filter((path) => path.includes('/data/')).length).toBeLessThanOrEqual(3);
    expect(paths.filter((path) => path.includes('/indexes/')).length).toBeLessThanOrEqual(3);
    expect(await search()).toBe(3);
    expect(site.take()).toEqual([]);
    await page.context().close();
  });
});
