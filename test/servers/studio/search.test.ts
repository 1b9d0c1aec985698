/** Searches of texts and conditions on lists in Studio: ranked rows, marked words, pages, and what is left when they go. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Browser, Page } from 'playwright-core';
import { defineSchema, StoreDb, Types } from '../../../src/index.ts';
import type { Database } from '../../../src/index.ts';
import { MemoryDriver } from '../../../src/storage/memory-driver.ts';
import { startChromium } from '../browser/chromium.ts';
import { findings, overflows, StudioSite } from './studio-site.ts';

const articles = defineSchema({
  name: 'articles',
  version: 1,
  fields: {
    id: { typeId: Types.uint32 },
    title: { typeId: Types.varchar },
    body: { typeId: Types.varchar },
    tags: { typeId: Types.json },
  },
  primaryKey: 'id',
  indexes: [
    { fields: ['title', 'body'], text: { language: 'en', weights: { title: 3 } } },
    { fields: ['tags'], each: true },
  ],
});
let browser: Browser;
let db: Database;
let site: StudioSite;

beforeAll(async () => {
  db = StoreDb({ driver: new MemoryDriver(), dbPrefix: 'data', nodeId: 1, logLevel: 'silent' });
  db.registerSchema(articles);
  await db.start();
  const batch = db.batch();
  for (let id = 1; id <= 500; id++) {
    const body = `${'A long beginning of other words. '.repeat(6)}Here is wine number ${id}, <b>and</b> more.`;
    const tags = ['all', id % 2 === 0 ? 'even' : 'odd', id % 5 === 0 ? 'fifth' : 'other'];
    await batch.insert(articles, { id, title: id === 321 ? 'Red wines' : `Article ${id}`, body, tags });
  }
  await batch.flush();
  await db.checkpoint();
  site = await new StudioSite(db, false).start();
  browser = await startChromium();
});
afterAll(async () => {
  await browser.close();
  await site.stop();
  await db.stop();
});

const rowTexts = (page: Page): Promise<string[]> => page.locator('.grid-body [role=row]').allInnerTexts();

describe('the page of a table with an index on texts', () => {
  it.each(['light', 'dark'] as const)(
    'searches as one types, marks the words, and pages on, in a %s theme',
    async (theme) => {
      const faults: string[] = [];
      const page = await site.open(browser, 'tables/articles', faults, { theme });
      const box = page.getByRole('searchbox', { name: 'Search articles', exact: true });
      await box.fill('red win');
      await page.locator('.grid-body mark').first().waitFor();
      await page.getByText('1 row', { exact: true }).waitFor();
      expect(await page.locator('.grid-body mark').allInnerTexts()).toEqual(['Red', 'wines', 'wine']);
      await box.fill('wine');
      await page.getByText('500 rows', { exact: true }).waitFor();
      expect((await rowTexts(page))[0]).toContain('321');
      expect(await page.locator('.foot').innerText()).toContain('The best rows first.');
      // Rows behind the first page, in the order of the scores.
      await page.locator('.grid').focus();
      await page.keyboard.press('Control+End');
      await page.locator('[role=row][aria-rowindex="501"] mark').first().waitFor();
      await page.locator('.grid').press('Control+Home');
      expect(await findings(page)).toEqual([]);
      expect(await overflows(page)).toEqual([]);
      await box.fill('nothing of this');
      await page.getByRole('button', { name: 'Remove the search' }).click();
      await page.getByText('500 rows', { exact: true }).waitFor();
      expect(await page.locator('.grid-body mark').count()).toBe(0);
      expect(await box.inputValue()).toBe('');
      expect(faults).toEqual([]);
      await page.context().close();
    },
  );

  it.each([
    ['has', 'odd', 250],
    ['has any of', 'fifth, odd', 300],
    ['has all of', 'fifth, odd', 50],
  ])('takes conditions on lists: %s', async (operator, text, rows) => {
    const faults: string[] = [];
    const page = await site.open(browser, 'tables/articles', faults);
    await page.getByRole('button', { name: 'Condition', exact: true }).click();
    await page.getByLabel('Field', { exact: true }).selectOption('tags');
    await page.getByLabel('How tags is compared').selectOption({ label: operator });
    const value = page.getByLabel('Value of tags');
    await value.fill(text);
    await value.press('Enter');
    await page.getByText(`${rows} rows`, { exact: true }).waitFor();
    expect(await overflows(page)).toEqual([]);
    expect(await findings(page)).toEqual([]);
    await page.reload();
    await page.getByText(`${rows} rows`, { exact: true }).waitFor();
    expect(await page.getByLabel('Value of tags').inputValue()).toBe(text);
    expect(faults).toEqual([]);
    await page.context().close();
  });
});
