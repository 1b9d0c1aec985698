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
    place: { typeId: Types.json },
  },
  primaryKey: 'id',
  indexes: [
    { fields: ['title', 'body'], text: { language: 'en', weights: { title: 3 } } },
    { fields: ['tags'], each: true },
    { fields: [{ path: 'place.city', typeId: Types.varchar }] },
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
    const place = { city: id % 2 === 0 ? 'Turku' : 'Lyon', floor: id % 3 };
    await batch.insert(articles, { id, title: id === 321 ? 'Red wines' : `Article ${id}`, body, tags, place });
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

/** Returns the texts of a column in the rows that are shown. */
async function columnOf(page: Page, at: number): Promise<string[]> {
  const cells = page.locator(`.grid-body [aria-colindex="${at}"]`);
  return (await cells.allInnerTexts()).slice(0, 6);
}

describe('rows of a table', () => {
  it('are sorted by paths into a json field, from both ends', async () => {
    const faults: string[] = [];
    const page = await site.open(browser, 'tables/articles?cols=["id","place"]', faults);
    await page.getByText('500 rows', { exact: true }).waitFor();
    const header = page.getByRole('columnheader', { name: 'place', exact: true });
    await header.getByRole('button').click();
    const path = page.getByLabel('Path in place');
    await expect.poll(() => path.and(page.locator(':focus')).count()).toBe(1);
    expect(await columnOf(page, 1)).toEqual(['1', '2', '3', '4', '5', '6']);
    await path.fill('floor');
    await path.press('Enter');
    await expect.poll(() => columnOf(page, 1)).toEqual(['3', '6', '9', '12', '15', '18']);
    expect(await header.getAttribute('aria-sort')).toBe('ascending');
    expect(await page.locator('.foot').innerText()).toContain('No index begins with place.floor');
    await header.getByRole('button').click();
    await expect.poll(() => columnOf(page, 1)).toEqual(['500', '497', '494', '491', '488', '485']);
    expect(await header.getAttribute('aria-sort')).toBe('descending');
    // Far rows are read from the other end.
    await page.locator('.grid').press('Control+End');
    await page.locator('[role=row][aria-rowindex="501"]', { hasText: '"floor":0' }).waitFor();
    expect(await findings(page)).toEqual([]);
    expect(await overflows(page)).toEqual([]);
    await page.reload();
    await expect.poll(() => columnOf(page, 1)).toEqual(['500', '497', '494', '491', '488', '485']);
    await page.getByLabel('Sorted by').selectOption('place.city');
    await expect.poll(() => columnOf(page, 1)).toEqual(['500', '498', '496', '494', '492', '490']);
    expect(await page.locator('.foot').innerText()).toContain('In the order of index place.city.');
    await page.getByRole('button', { name: 'Do not sort by place.city' }).click();
    await expect.poll(() => columnOf(page, 1)).toEqual(['1', '2', '3', '4', '5', '6']);
    expect(faults).toEqual([]);
    await page.context().close();
  });
});

/** Adds a condition to the form of a page. */
async function addCondition(page: Page, field: string, operator: string): Promise<void> {
  await page.getByRole('button', { name: 'Condition', exact: true }).click();
  const last = page.locator('.condition').last();
  await last.getByLabel('Field', { exact: true }).selectOption(field);
  await last.getByLabel(/^How .* is compared$/).selectOption({ label: operator });
}

describe('the page of queries', () => {
  it.each(['light', 'dark'] as const)('searches by words and options, in a %s theme', async (theme) => {
    const faults: string[] = [];
    const page = await site.open(browser, 'query/articles', faults, { theme });
    const box = page.getByRole('searchbox', { name: 'Search articles', exact: true });
    await box.fill('red wine');
    await box.press('Enter');
    await page.getByRole('heading', { name: '1 row', exact: true }).waitFor();
    expect(await page.locator('.grid-body mark').allInnerTexts()).toEqual(['Red', 'wines', 'wine']);
    const code = page.getByRole('group', { name: 'The query as TypeScript' });
    expect(await code.innerText()).toContain("  .search('red wine')\n");
    await page.getByLabel('Words that a row must have').selectOption('any');
    await page.getByLabel('beginnings').check();
    await addCondition(page, 'place.city', 'is');
    await page.getByLabel('Value of place.city').fill('Lyon');
    await page.getByLabel('Value of place.city').press('Enter');
    await page.getByRole('button', { name: 'Run', exact: true }).click();
    await page.getByRole('heading', { name: '100 rows', exact: true }).waitFor();
    expect((await rowTexts(page))[0]).toContain('321');
    expect(await code.innerText()).toContain(
      "  .search('red wine', { match: 'any', prefix: true })\n  .where('place.city', '=', 'Lyon')\n",
    );
    expect(await page.locator('.plan').innerText()).toContain("by the words in index 'title,body'");
    expect(await findings(page)).toEqual([]);
    expect(await overflows(page)).toEqual([]);
    await page.reload();
    await page.locator('.plan').waitFor();
    expect(await box.inputValue()).toBe('red wine');
    expect(await page.getByLabel('beginnings').isChecked()).toBe(true);
    // More words than a search takes.
    await box.fill('a b c d e f g h i j '.repeat(7));
    await box.press('Enter');
    await page.getByRole('alert').filter({ hasText: '64 words' }).first().waitFor();
    await page.locator('.plan').waitFor({ state: 'detached' });
    expect(faults.filter((fault) => !fault.includes('400'))).toEqual([]);
    await page.context().close();
  });

  it('searches some fields, with weights, and says which numbers are none', async () => {
    const faults: string[] = [];
    const page = await site.open(browser, 'query/articles', faults);
    const box = page.getByRole('searchbox', { name: 'Search articles', exact: true });
    const code = page.getByRole('group', { name: 'The query as TypeScript' });
    const run = async (heading: string): Promise<void> => {
      await page.getByRole('button', { name: 'Run', exact: true }).click();
      await page.getByRole('heading', { name: heading, exact: true }).waitFor();
    };
    await box.fill('red 321');
    await page.getByLabel('Words that a row must have').selectOption('any');
    await page.getByText('in all fields', { exact: true }).click();
    const weight = page.getByLabel('Weight of title');
    expect(await weight.getAttribute('placeholder')).toBe('3');
    await weight.fill('0.5');
    await weight.press('Enter');
    await page.getByLabel('body', { exact: true }).uncheck();
    await page.getByText('in title, with weights', { exact: true }).waitFor();
    expect(await box.getAttribute('placeholder')).toBe('Search title');
    expect(await page.getByLabel('title', { exact: true }).isDisabled()).toBe(true);
    await run('1 row');
    expect(await page.locator('.grid-body mark').allInnerTexts()).toEqual(['Red']);
    expect(await code.innerText()).toContain(
      "  .search('red 321', { match: 'any', fields: ['title'], weights: { title: 0.5 } })\n",
    );
    expect(await page.locator('.plan').innerText()).toContain('Finds 1 row by the words in index');
    for (const wrong of ['-1', '0', 'much']) {
      await weight.fill(wrong);
      await weight.press('Enter');
      await page.getByRole('alert').filter({ hasText: 'The weight of title is a number above 0' }).waitFor();
      expect(await weight.getAttribute('aria-invalid')).toBe('true');
      expect(await code.innerText()).toContain('weights: { title: 0.5 }');
    }
    expect(await findings(page)).toEqual([]);
    expect(await overflows(page)).toEqual([]);
    await weight.fill('');
    await weight.press('Enter');
    await page.getByText('in title', { exact: true }).waitFor();
    await page.reload();
    await page.getByText('in title', { exact: true }).click();
    expect(await page.getByLabel('body', { exact: true }).isChecked()).toBe(false);
    await page.getByLabel('body', { exact: true }).check();
    await page.getByText('in all fields', { exact: true }).waitFor();
    await run('1 row');
    expect(await code.innerText()).toContain("  .search('red 321', { match: 'any' })\n");
    expect(faults).toEqual([]);
    await page.context().close();
  });

  it('names the fields that an index does not have', async () => {
    const faults: string[] = [];
    const asked = { where: [], orderBy: [], search: { text: 'wine', fields: ['titel'] } };
    const page = await site.open(browser, `query/articles?q=${encodeURIComponent(JSON.stringify(asked))}`, faults);
    await page
      .getByRole('alert')
      .filter({
        hasText: "no index on texts of table 'articles' has the fields titel. It has 'title,body' (title, body)",
      })
      .first()
      .waitFor();
    expect(await findings(page)).toEqual([]);
    expect(faults.filter((fault) => !fault.includes('400'))).toEqual([]);
    await page.context().close();
  });

  it('takes paths that no index reads', async () => {
    const faults: string[] = [];
    const page = await site.open(browser, 'query/articles', faults);
    await addCondition(page, 'place.', 'is');
    await page.getByLabel('Path in place').fill('floor');
    await page.getByLabel('Path in place').press('Enter');
    await page.getByLabel('Value of place.floor').fill('2');
    await page.getByLabel('Value of place.floor').press('Enter');
    await addCondition(page, 'place.city', 'begins with');
    await page.getByLabel('Value of place.city').fill('Tur');
    await page.getByLabel('Value of place.city').press('Enter');
    await page.getByRole('button', { name: 'Run', exact: true }).click();
    await page.getByRole('heading', { name: '84 rows', exact: true }).waitFor();
    await page.reload();
    expect(await page.getByLabel('Path in place').inputValue()).toBe('floor');
    expect(await page.getByLabel('Value of place.floor').inputValue()).toBe('2');
    expect(await overflows(page)).toEqual([]);
    expect(faults).toEqual([]);
    await page.context().close();
  });

  it('sorts, groups and counts by paths that no index reads', async () => {
    const faults: string[] = [];
    const page = await site.open(browser, 'query/articles', faults);
    const code = page.getByRole('group', { name: 'The query as TypeScript' });
    const run = async (heading: string): Promise<void> => {
      await page.getByRole('button', { name: 'Run', exact: true }).click();
      await page.getByRole('heading', { name: heading, exact: true }).waitFor();
    };
    await page.getByRole('button', { name: 'Field', exact: true }).click();
    await page.getByLabel('Sorted by').selectOption('place.');
    // It is no part of the query until it has a key.
    expect(await code.innerText()).not.toContain('orderBy');
    await page.getByLabel('Path in place').fill('floor');
    await page.getByLabel('Path in place').press('Enter');
    await page.getByLabel('Direction of place.floor').selectOption('desc');
    expect(await code.innerText()).toContain("  .orderBy('place.floor', 'desc')\n");
    await run('100 rows');
    expect(await columnOf(page, 1)).toEqual(['2', '5', '8', '11', '14', '17']);
    await page.reload();
    expect(await page.getByLabel('Path in place').inputValue()).toBe('floor');
    await page.getByRole('button', { name: 'Group', exact: true }).click();
    await page.getByLabel('Grouped by').selectOption('place.');
    await page.getByLabel('Path in place').fill('floor');
    await page.getByLabel('Path in place').press('Enter');
    await page.getByLabel('Kind of figure rows').selectOption('max');
    await page.getByLabel('Field of figure max_id').selectOption('place.');
    await page.getByLabel('Path in place').last().fill('city');
    await page.getByLabel('Path in place').last().press('Enter');
    await page.getByRole('button', { name: 'Field', exact: true }).click();
    await page.getByLabel('Sorted by').selectOption('place.floor');
    await page.getByLabel('Direction of place.floor').selectOption('desc');
    await run('3 groups');
    expect(await rowTexts(page)).toEqual(['2\nTurku', '1\nTurku', '0\nTurku']);
    expect(await findings(page)).toEqual([]);
    expect(await overflows(page)).toEqual([]);
    expect(faults).toEqual([]);
    await page.context().close();
  });
});
