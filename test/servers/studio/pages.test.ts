/** Every page of Studio in Chromium, on the cities and on rows that attack: what axe finds, what overflows, what is executed. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Browser } from 'playwright-core';
import { cities, readCities } from '../../../examples/cities/cities.ts';
import { defineSchema, StoreDb, Types } from '../../../src/index.ts';
import type { Database } from '../../../src/index.ts';
import { MemoryDriver } from '../../../src/storage/memory-driver.ts';
import { startChromium } from '../browser/chromium.ts';
import { findings, overflows, StudioSite } from './studio-site.ts';

const attack = '<img src=x onerror="globalThis.hacked = true"><script>globalThis.hacked = true</script>';
const things = defineSchema({
  name: '<b>things',
  version: 1,
  fields: {
    id: { typeId: Types.uint32 },
    text: { typeId: Types.varchar },
    doc: { typeId: Types.json },
    raw: { typeId: Types.bytes },
    file: { typeId: Types.blob },
    at: { typeId: Types.timestamp },
    big: { typeId: Types.int64 },
  },
  primaryKey: 'id',
});
const routes: readonly string[] = [
  'tables/cities',
  `tables/${encodeURIComponent(things.name)}?row=%5B1%5D`,
  'query/cities',
  'storage',
  'storage/cities',
  'storage/cities/country',
  'time',
  'health',
  'bill',
];

let browser: Browser;
let db: Database;
let site: StudioSite;

beforeAll(async () => {
  db = StoreDb({ driver: new MemoryDriver(), dbPrefix: 'data', nodeId: 1, logLevel: 'silent' });
  db.registerSchema(cities);
  db.registerSchema(things);
  await db.start();
  await db.load(cities, await readCities());
  const batch = db.batch();
  const file = db.Blob(Buffer.from(`<svg onload="globalThis.hacked = true">${attack}`));
  const row = { doc: { [attack]: attack }, raw: Buffer.from(attack), at: new Date(0), big: 2n ** 60n };
  await batch.insert(things, { id: 1, text: attack, file, ...row });
  await batch.flush();
  await db.checkpoint();
  site = await new StudioSite(db, true).start();
  browser = await startChromium();
});
afterAll(async () => {
  await browser.close();
  await site.stop();
  await db.stop();
});

describe('every page', () => {
  const looks = [
    { theme: 'light', width: 1280 },
    { theme: 'dark', width: 360 },
    { theme: 'light', width: 360 },
    { theme: 'dark', width: 2560 },
  ] as const;
  it.each(looks.flatMap((look) => routes.map((route) => [look.theme, look.width, route] as const)))(
    'in %s at %i px has nothing that axe finds, that overflows, or that goes wrong: %s',
    async (theme, width, route) => {
      const faults: string[] = [];
      const page = await site.open(browser, route, faults, { theme, width });
      await page.waitForLoadState('load');
      await expect.poll(() => page.locator('main h1, main h2').count()).toBeGreaterThan(0);
      if (route === 'storage') await page.locator('.tree-map').waitFor();
      expect(await findings(page)).toEqual([]);
      expect(await overflows(page)).toEqual([]);
      expect(await page.evaluate(() => 'hacked' in globalThis)).toBe(false);
      expect(faults).toEqual([]);
      await page.context().close();
    },
  );
});

describe('tables', () => {
  it('filter by a field, sort by another, and choose columns', async () => {
    const faults: string[] = [];
    const page = await site.open(browser, 'tables/cities', faults);
    await page.getByRole('button', { name: 'Condition', exact: true }).click();
    await page.getByLabel('Value of country').fill('FI');
    await page.getByLabel('Value of country').press('Enter');
    const cells = page.locator('.grid-body [role=row]').first().locator('[role=gridcell]');
    await expect.poll(() => cells.nth(2).textContent()).toBe('FI');
    const count = await db.query(cities).where('country', '=', 'FI').count();
    await expect.poll(() => page.locator('.table-view .bar [role=status]').textContent()).toBe(`${count} rows`);
    await page.getByRole('columnheader', { name: 'name' }).getByRole('button').click();
    const first = await db.query(cities).where('country', '=', 'FI').orderBy('name').first();
    await expect.poll(() => cells.nth(1).textContent()).toBe(first?.name);
    await page.getByRole('button', { name: 'Columns' }).click();
    await page.getByRole('checkbox', { name: 'admin1' }).uncheck();
    await page.getByRole('button', { name: 'Done' }).click();
    await expect.poll(() => page.locator('[role=columnheader]').count()).toBe(6);
    expect(faults).toEqual([]);
    await page.context().close();
  });

  it('insert, edit and delete a row', async () => {
    const faults: string[] = [];
    const page = await site.open(browser, 'tables/cities', faults);
    await page.getByRole('button', { name: 'Insert', exact: true }).click();
    for (const [name, value] of [
      ['id', '900001'],
      ['name', attack.slice(0, 50)],
      ['country', 'ZZ'],
      ['lat', '1.5'],
      ['lng', '-2'],
    ] as const) {
      await page.locator(`#field-${name}`).fill(value);
    }
    await page.locator('.row-form button[type=submit]').click();
    await page.getByRole('button', { name: 'Edit', exact: true }).click();
    expect(await db.get(cities, 900_001)).toMatchObject({ country: 'ZZ', lat: 1.5 });
    await page.locator('#field-name').fill('Renamed');
    await page.locator('.row-form button[type=submit]').click();
    await expect.poll(async () => (await db.get(cities, 900_001))?.name).toBe('Renamed');
    await page.getByRole('button', { name: 'Edit', exact: true }).click();
    await page.getByRole('button', { name: 'Delete…' }).click();
    await page.getByRole('button', { name: 'Delete', exact: true }).click();
    await expect.poll(() => db.get(cities, 900_001)).toBeUndefined();
    expect(faults).toEqual([]);
    await page.context().close();
  });

  it('give the focus to the first field of a form that can be changed, before the page is painted', async () => {
    const page = await site.open(browser, 'tables/cities?row=%5B8%5D', []);
    await page.getByRole('button', { name: 'Edit', exact: true }).waitFor();
    const focused = await page.evaluate(async () => {
      interface Control {
        readonly id: string;
        readonly textContent: string;
        click(): void;
      }
      const { document } = globalThis as unknown as {
        readonly document: { readonly activeElement: Control; querySelectorAll(selector: string): Iterable<Control> };
      };
      [...document.querySelectorAll('.panel-head button')].find(({ textContent }) => textContent === 'Edit')?.click();
      for (let turn = 0; turn < 3; turn++) await Promise.resolve();
      return document.activeElement.id;
    });
    expect(focused).toBe('field-name');
    await page.context().close();
  });

  it('take a text of any length, as it is typed', async () => {
    const page = await site.open(browser, `tables/${encodeURIComponent(things.name)}?row=%22new%22`, []);
    const long = 'typed on and on '.repeat(5);
    await page.locator('#field-text').click();
    // To the element that has the focus.
    await page.keyboard.type(long);
    expect(await page.locator('#field-text').inputValue()).toBe(long);
    await page.context().close();
  });

  it('show what is stored beside an edit that is too late', async () => {
    const page = await site.open(browser, 'tables/cities?row=%5B7%5D', []);
    await page.getByRole('button', { name: 'Edit', exact: true }).click();
    const batch = db.batch();
    await batch.update(cities, { id: 7, name: 'Theirs' });
    await batch.flush();
    await page.locator('#field-name').fill('Mine');
    await page.locator('.row-form button[type=submit]').click();
    const dialog = page.getByRole('dialog');
    await dialog.waitFor();
    expect(await dialog.locator('tr.differs').allTextContents()).toEqual([
      'namedes EscaldesTheirsMine'.replace('des', 'les'),
    ]);
    expect(await findings(page)).toEqual([]);
    await dialog.getByRole('button', { name: 'Save mine over it' }).click();
    await expect.poll(async () => (await db.get(cities, 7))?.name).toBe('Mine');
    await page.context().close();
  });

  it('show a row that somebody else writes, by itself', async () => {
    const page = await site.open(browser, 'tables/cities', []);
    const first = page.locator('.grid-body [role=row]').first();
    await expect.poll(() => first.locator('[role=gridcell]').first().textContent()).toBe('1');
    const batch = db.batch();
    await batch.insert(cities, { id: 0, name: 'By itself', country: 'XX', admin1: '', admin2: '', lat: 0, lng: 0 });
    await batch.flush();
    await expect.poll(() => first.textContent()).toContain('By itself');
    await page.context().close();
  });

  it('are searched by keys alone', async () => {
    const page = await site.open(browser, 'tables', []);
    await page.keyboard.press('/');
    await expect
      .poll(() =>
        page.evaluate(
          () => (globalThis as unknown as { document: { activeElement: { id: string } } }).document.activeElement.id,
        ),
      )
      .toBe('search-tables');
    await page.keyboard.type('cit');
    await page.keyboard.press('Enter');
    const grid = page.getByRole('grid');
    await grid.focus();
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('Enter');
    await page.getByRole('complementary').waitFor();
    await page.keyboard.press('?');
    await page.getByRole('dialog', { name: 'Shortcuts' }).waitFor();
    await page.context().close();
  });
});

describe('the other pages', () => {
  it('run a query with groups, draw it, and explain it', async () => {
    const faults: string[] = [];
    const page = await site.open(browser, 'query/cities', faults);
    await page.getByRole('button', { name: 'Group', exact: true }).click();
    await page.getByLabel('Grouped by').selectOption('country');
    await page.getByRole('button', { name: 'Run', exact: true }).click();
    const groups = await db.query(cities).groupBy('country').aggregate({ rows: 'count' });
    await page.getByRole('heading', { name: `${groups.length} groups` }).waitFor();
    await page.getByRole('button', { name: 'Bars' }).click();
    await page.locator('.chart canvas').waitFor();
    await page.getByRole('button', { name: 'Run and measure' }).click();
    await page.getByRole('rowheader', { name: 'actual' }).first().waitFor();
    await page.getByRole('button', { name: 'Field', exact: true }).click();
    await page.getByLabel('Sorted by').selectOption('rows');
    await page.getByLabel('Direction of rows').selectOption('desc');
    const text = page.getByLabel('The query as TypeScript');
    await expect.poll(() => text.textContent()).toContain('.toSorted((a, b) => (a.rows < b.rows ? 1 : -1))');
    expect(await text.textContent()).toContain(".groupBy('country')");
    await page.getByRole('button', { name: 'Run', exact: true }).click();
    await page.getByRole('button', { name: 'Table', exact: true }).click();
    const [most] = groups.toSorted((a, b) => b.rows - a.rows);
    const cells = page.getByRole('grid', { name: 'Result' }).locator('.grid-body [role=row]').first();
    await expect.poll(() => cells.textContent()).toBe(`${most?.country}${most?.rows}`);
    expect(faults).toEqual([]);
    await page.context().close();
  });

  it('lead from the tree map down to a row', async () => {
    const page = await site.open(browser, 'storage', []);
    await page.getByRole('link', { name: 'cities', exact: true }).click();
    await page.locator('.grid-body [role=row]').nth(1).click();
    await page.getByRole('grid', { name: 'Rows of the leaf' }).waitFor();
    await page.locator('.grid-body [role=row]').first().click();
    await page.getByRole('complementary').waitFor();
    await page.context().close();
  });

  it('show a commit with its rows', async () => {
    const batch = db.batch();
    await batch.update(cities, { id: 9, name: 'In a commit' });
    await batch.flush();
    const page = await site.open(browser, 'time', []);
    await page.locator('.commit-button').first().click();
    await page.locator('.difference').first().waitFor();
    await expect.poll(() => page.locator('.difference').first().textContent()).toContain('In a commit');
    await page.context().close();
  });

  it('check the store and what is stored, and collect garbage', async () => {
    const page = await site.open(browser, 'health', []);
    await page.getByRole('button', { name: 'Run doctor' }).click();
    await page.getByText('The store keeps all rules.').waitFor();
    await page.getByRole('button', { name: 'Run verify' }).click();
    await page.getByText('Everything is sound.').waitFor();
    await page.getByRole('button', { name: 'Show what would go' }).click();
    await page
      .getByText(/would go\.|There is no garbage\./)
      .first()
      .waitFor();
    await page.context().close();
  });
});

describe('the bill', () => {
  it('has a line for each table, and other prices change it', async () => {
    const faults: string[] = [];
    const page = await site.open(browser, 'bill', faults);
    const row = page.locator('section[aria-label="By table"] tbody tr', { hasText: 'cities' });
    await row.waitFor();
    const known = db.stats().tables.find(({ table }) => table === 'cities');
    const requests = ((known?.reads ?? 0) + (known?.writes ?? 0)).toLocaleString('en-US');
    expect(await row.locator('td').first().textContent()).toBe(requests);
    const dollars = await row.locator('td').nth(2).textContent();
    await page.getByLabel('Prices').selectOption({ index: 1 });
    await expect.poll(() => row.locator('td').nth(2).textContent()).not.toBe(dollars);
    expect(faults).toEqual([]);
    await page.context().close();
  });
});
