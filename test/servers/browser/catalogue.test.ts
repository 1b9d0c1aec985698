/** A catalogue in Chromium: lists, paths, indexes on some rows and texts in several languages, and the requests that they take. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Browser, Page } from 'playwright-core';
import type { Database } from '../../../src/index.ts';
import type * as entry from '../../../src/reader.ts';
import { asked, catalogueOf, expectedOf, productRows } from '../../features/publish/catalogue.ts';
import { openPage, startChromium } from './chromium.ts';
import { putSearchPage } from './search-site.ts';
import { StaticServer } from './static-server.ts';

/** The globals of the page. */
declare const storeDb: typeof entry;
declare let reader: entry.Reader;

const rows = productRows(3000);
const site = new StaticServer();
let browser: Browser;
let origin: string;
let db: Database;
let page: Page;
const faults: string[] = [];

beforeAll(async () => {
  db = await catalogueOf(rows);
  await db.publish({ driver: site.files, prefix: 'shop' });
  await putSearchPage(site);
  origin = await site.start();
  browser = await startChromium();
  page = await openPage(browser, faults);
  await page.goto(`${origin}/index.html`);
  await page.waitForFunction(() => 'storeDb' in globalThis);
});
afterAll(async () => {
  await browser.close();
  await db.stop();
  await site.stop();
});

/** Opens a new reader in the page. */
async function openAnew(): Promise<void> {
  await page.evaluate(async () => {
    const search = storeDb.readerSearch();
    Object.assign(globalThis, { reader: await storeDb.openReader('shop', { search }) });
  });
  site.take();
}

describe('a reader of a catalogue in the browser', () => {
  it('finds what is in the rows by its indexes, with few requests', async () => {
    for (const [index, query] of asked) {
      await openAnew();
      const found = await page.evaluate(async ({ where, order = [], limit }) => {
        let built = reader.query('products');
        for (const [field, operator, value] of where) built = built.where(field, operator as never, value as never);
        const count = built;
        for (const [field, direction] of order) built = built.orderBy(field, direction);
        if (limit !== undefined) built = built.limit(limit);
        const { index: used } = await built.explain({ run: true });
        return { used, rows: await built.execute(), count: await count.count() };
      }, query);
      const { used, ...answer } = found;
      expect(answer, JSON.stringify(query)).toEqual(expectedOf(rows, query));
      expect(index ?? used, JSON.stringify(query)).toBe(used);
      expect(site.take().filter((path) => path.includes('/indexes/')).length).toBeLessThanOrEqual(3);
    }
    expect(faults).toEqual([]);
  });

  it('takes requests for entries alone where they include what is asked for', async () => {
    await openAnew();
    const found = await page.evaluate(async () => {
      const made = reader.query('products').where('meta.maker.country', '=', 'JP').orderBy('year').limit(20);
      return made.select('id', 'title', 'meta.price').execute();
    });
    expect(found).toHaveLength(20);
    const paths = site.take();
    expect(paths.filter((path) => path.includes('/indexes/'))).toEqual(paths);
    expect(paths.length).toBeLessThanOrEqual(2);
  });

  it.each([
    ['lampe', { index: 'german' }],
    ['glasses n17', {}],
    ['лампы', {}],
    ['東京 机', {}],
    ['"white lamps" -oak', {}],
    ['rot eich', { prefix: true }],
  ] as const)('searches and shows %s as the database does', async (text, options) => {
    await openAnew();
    const query = db.query('products').search(text, options).limit(8);
    const expected = await query.execute();
    expect(expected.length).toBeGreaterThan(0);
    const spans = await query.highlight(expected[0] ?? {});
    const found = await page.evaluate(
      async ([what, how]) => {
        const made = reader.query('products').search(what, how).limit(8);
        const all = await made.execute();
        const marked = await made.highlight(all[0] ?? {});
        const body = String(all[0]?.['body']);
        return { all, marked, cut: storeDb.snippet(body, marked['body'] ?? [], { maxLength: 20 }) };
      },
      [text, options] as const,
    );
    expect(found.all).toEqual(expected);
    expect(found.marked).toEqual(spans);
    expect(found.cut.text.length).toBeLessThanOrEqual(22);
    expect(faults).toEqual([]);
  });

  it('searches among tags and nested values', async () => {
    await openAnew();
    const found = await page.evaluate(async () => {
      const made = reader.query('products').search('lamps').where('tags', 'HAS', 'oak');
      const inJapan = made.where('meta.maker.country', '=', 'JP');
      return { ids: (await inJapan.execute()).map(({ id }) => id), count: await inJapan.count() };
    });
    const expected = rows.filter(({ title, body, tags, meta }) => {
      const isFound = /\blamps\b/.test(`${String(title)} ${String(body)}`);
      const { maker } = meta as { readonly maker?: { readonly country: string } };
      return isFound && (tags as unknown[] | null)?.includes('oak') === true && maker?.country === 'JP';
    });
    expect(new Set(found.ids)).toEqual(new Set(expected.map(({ id }) => id)));
    expect(found.count).toBe(expected.length);
    expect(found.count).toBeGreaterThan(0);
  });
});
