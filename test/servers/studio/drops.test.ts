/** Rows that expire, and the drop of a table, in Studio in Chromium. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Browser } from 'playwright-core';
import { StoreDb, Types } from '../../../src/index.ts';
import type { Database } from '../../../src/index.ts';
import { MemoryDriver } from '../../../src/storage/memory-driver.ts';
import { startChromium } from '../browser/chromium.ts';
import { findings, overflows, StudioSite } from './studio-site.ts';

const sessions = {
  name: 'sessions',
  version: 1,
  fields: { id: { typeId: Types.uint32 }, user: { typeId: Types.varchar }, seen: { typeId: Types.timestamp } },
  primaryKey: 'id',
  indexes: ['seen'],
  expireAfter: { field: 'seen', seconds: 3600 },
} as const;

let browser: Browser;
let db: Database;
let site: StudioSite;

beforeAll(async () => {
  db = StoreDb({ driver: new MemoryDriver(), dbPrefix: 'data', nodeId: 1, logLevel: 'silent' });
  db.registerSchema(sessions);
  await db.start();
  const batch = db.batch();
  await batch.insert(sessions, { id: 1, user: 'ann', seen: new Date() });
  await batch.insert(sessions, { id: 2, user: 'bob', seen: new Date(Date.now() - 7_200_000) });
  await batch.flush();
  site = await new StudioSite(db, true).start();
  browser = await startChromium();
});
afterAll(async () => {
  await browser.close();
  await site.stop();
  await db.stop();
});

it('says when rows expire, shows those that have not, and drops the table once its name is typed', async () => {
  const faults: string[] = [];
  const page = await site.open(browser, 'tables/sessions', faults);
  await page.getByText('Rows expire 60 min after seen.').waitFor();
  await page.getByText('1 row', { exact: true }).waitFor();
  await page.getByRole('button', { name: 'Drop…' }).click();
  const button = page.getByRole('button', { name: 'Drop', exact: true });
  const field = page.getByLabel('Type sessions to drop it');
  for (const typed of ['', 'session', 'Sessions']) {
    await field.fill(typed);
    expect(await button.isDisabled()).toBe(true);
  }
  await field.press('Enter');
  expect(await db.query(sessions).count()).toBe(1);
  await field.fill('sessions');
  expect(await findings(page)).toEqual([]);
  expect(await overflows(page)).toEqual([]);
  await button.click();
  await page.getByText('This database has no tables yet').waitFor();
  expect(await db.dropTable('sessions', { ifExists: true })).toBe(false);
  expect(faults).toEqual([]);
  await page.context().close();
});

it('offers no drop where Studio only reads', async () => {
  const reading = await new StudioSite(db, false).start();
  db.registerSchema({ ...sessions, name: 'others' });
  const batch = db.batch();
  await batch.insert('others', { id: 1, user: 'ann', seen: new Date() });
  await batch.flush();
  const faults: string[] = [];
  const page = await reading.open(browser, 'tables/others', faults);
  await page.getByText('Rows expire 60 min after seen.').waitFor();
  expect(await page.getByRole('button', { name: 'Drop…' }).count()).toBe(0);
  await page.context().close();
  await reading.stop();
});
