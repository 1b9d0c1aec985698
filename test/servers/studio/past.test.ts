/** Earlier states in Studio: a table as it was, two moments beside each other, and a query that is stopped. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Browser } from 'playwright-core';
import { defineSchema, StoreDb, Types } from '../../../src/index.ts';
import type { Database } from '../../../src/index.ts';
import { MemoryDriver } from '../../../src/storage/memory-driver.ts';
import { startChromium } from '../browser/chromium.ts';
import { findings, StudioSite } from './studio-site.ts';

const notes = defineSchema({
  name: 'notes',
  version: 1,
  fields: { id: { typeId: Types.uint32 }, text: { typeId: Types.varchar } },
  primaryKey: 'id',
});

let browser: Browser;
let db: Database;
let site: StudioSite;
let generation: number;

beforeAll(async () => {
  db = StoreDb({ driver: new MemoryDriver(), dbPrefix: 'data', nodeId: 1, logLevel: 'silent', history: '1d' });
  db.registerSchema(notes);
  await db.start();
  const before = db.batch();
  await before.insert(notes, { id: 1, text: 'as it was' });
  await before.insert(notes, { id: 2, text: 'the same' });
  await before.flush();
  await db.checkpoint();
  ({ generation } = await db.snapshot());
  const after = db.batch();
  await after.update(notes, { id: 1, text: 'as it is' });
  await after.insert(notes, { id: 3, text: 'new' });
  await after.flush();
  await db.checkpoint();
  site = await new StudioSite(db, true).start();
  browser = await startChromium();
});
afterAll(async () => {
  await browser.close();
  await site.stop();
  await db.stop();
});

it('shows a table as it was, says so, changes nothing there, and goes back to now', async () => {
  const faults: string[] = [];
  const page = await site.open(browser, 'time', faults);
  await page.getByLabel('Earlier state: kind').selectOption('generation');
  await page.getByLabel('Earlier state', { exact: true }).fill(String(generation));
  await page.getByRole('button', { name: 'Browse it' }).click();
  await page.getByText('You see the database as it was').waitFor();
  await page.getByRole('link', { name: 'notes' }).click();
  const cells = page.locator('.grid-body [role=row]');
  await expect.poll(() => cells.allTextContents()).toEqual(['1as it was', '2the same']);
  expect(await page.getByRole('button', { name: 'Insert', exact: true }).count()).toBe(0);
  expect(await findings(page)).toEqual([]);
  await page.getByRole('button', { name: 'Back to now' }).click();
  await expect.poll(() => cells.allTextContents()).toEqual(['1as it is', '2the same', '3new']);
  expect(faults).toEqual([]);
});

it('leads to the state of a snapshot', async () => {
  const page = await site.open(browser, 'time', []);
  await page
    .getByRole('link', { name: /Snapshot of generation/ })
    .first()
    .click();
  await page.getByRole('link', { name: 'notes' }).click();
  await expect.poll(() => page.locator('.grid-body [role=row]').count()).toBe(2);
});

it('shows two moments of a table beside each other', async () => {
  const page = await site.open(browser, 'time', []);
  await page.getByLabel('From', { exact: true }).fill(String(generation));
  await page.getByRole('button', { name: 'Compare', exact: true }).click();
  await page.getByText('2 rows differ.').waitFor();
  const compared = page.getByRole('region', { name: 'Compare two states' });
  expect(await compared.locator('.difference').allTextContents()).toEqual([
    expect.stringContaining('as it wasas it is'),
    expect.stringContaining('new'),
  ]);
  expect(await findings(page)).toEqual([]);
});
