/** Studio on databases that are empty, large, damaged, encrypted, or written by another instance, and a million rows. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { pageFiles } from '#studio-page';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { Browser, Page } from 'playwright-core';
import { defineSchema, StoreDb, Types } from '../../../src/index.ts';
import type { Database } from '../../../src/index.ts';
import { MemoryDriver } from '../../../src/storage/memory-driver.ts';
import { realEnvironment } from '../../../src/base/env.ts';
import { TokenAccess } from '../../../src/studio/access.ts';
import { openStudio } from '../../../src/studio/open-studio.ts';
import { withDefaults } from '../../../src/studio/studio-options.ts';
import { openPage, startChromium } from '../browser/chromium.ts';
import { findings, overflows, StudioSite } from './studio-site.ts';

const rows = defineSchema({
  name: 'rows',
  version: 1,
  fields: { id: { typeId: Types.uint32 }, kind: { typeId: Types.uint16 } },
  primaryKey: 'id',
  indexes: ['kind'],
});

let browser: Browser;
const closing: (() => Promise<void>)[] = [];

beforeAll(async () => {
  browser = await startChromium();
});
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close();
});
afterAll(() => browser.close());

async function opened(driver: MemoryDriver, options: Partial<Parameters<typeof StoreDb>[0]> = {}): Promise<Database> {
  const db = StoreDb({ driver, dbPrefix: 'data', nodeId: 1, logLevel: 'silent', ...options });
  db.registerSchema(rows);
  await db.start();
  closing.push(() => db.stop());
  return db;
}

async function shown(db: Database, route: string, faults: string[] = []): Promise<Page> {
  const site = await new StudioSite(db, false).start();
  closing.push(() => site.stop());
  return site.open(browser, route, faults);
}

/** Rows in the order of their ids. */
function* made(count: number): Generator<{ id: number; kind: number }> {
  for (let id = 0; id < count; id++) yield { id, kind: id % 1000 };
}

describe('Studio', () => {
  it('says on every page of an empty database what comes next, and shows the first row by itself', async () => {
    const db = await opened(new MemoryDriver());
    const faults: string[] = [];
    const page = await shown(db, 'tables', faults);
    for (const name of ['Query', 'Storage', 'Time', 'Health', 'Bill', 'Tables']) {
      await page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name }).click();
      await page.locator(':is(main h1, main h2):visible').first().waitFor();
      expect(await findings(page)).toEqual([]);
    }
    await db.load(rows, made(1));
    await page.getByRole('link', { name: 'rows' }).click();
    await expect.poll(() => page.locator('.grid-body [role=row]').count()).toBe(1);
    expect(faults).toEqual([]);
  });

  it('finds one of 300 tables', async () => {
    const driver = new MemoryDriver();
    const db = StoreDb({ driver, dbPrefix: 'data', nodeId: 1, logLevel: 'silent' });
    const tables = Array.from({ length: 300 }, (_, i) => {
      return defineSchema({
        name: `table-${i}`,
        version: 1,
        fields: { id: { typeId: Types.uint32 } },
        primaryKey: 'id',
      });
    });
    for (const table of tables) db.registerSchema(table);
    await db.start();
    closing.push(() => db.stop());
    const batch = db.batch();
    for (const table of tables) await batch.insert(table, { id: 1 });
    await batch.flush();
    await db.checkpoint();
    const faults: string[] = [];
    const page = await shown(db, 'tables', faults);
    await expect.poll(() => page.locator('.list li').count()).toBe(300);
    expect(await overflows(page)).toEqual([]);
    await page.getByLabel('Search tables').fill('table-299');
    await page.getByLabel('Search tables').press('Enter');
    await expect.poll(() => page.locator('.grid-body [role=row]').count()).toBe(1);
    await page.getByRole('link', { name: 'Storage' }).click();
    await page.locator('.tree-map .tile').first().waitFor();
    expect(await findings(page)).toEqual([]);
    expect(faults).toEqual([]);
  });

  it('says which block is damaged, and offers to try again', async () => {
    const driver = new MemoryDriver();
    const first = StoreDb({ driver, dbPrefix: 'data', nodeId: 1, logLevel: 'silent' });
    first.registerSchema(rows);
    await first.start();
    await first.load(rows, made(50_000));
    await first.checkpoint();
    await first.stop();
    const { entries } = await driver.list('data/data/rows/');
    for (const { key } of entries) await driver.put(key, new Uint8Array(100), { if: 'any' });
    const db = await opened(driver);
    const page = await shown(db, 'tables/rows');
    const alert = page.getByRole('alert').first();
    await alert.waitFor();
    await alert.getByRole('button', { name: 'Try again' }).waitFor();
    expect(await findings(page)).toEqual([]);
    await page.getByRole('link', { name: 'Health' }).click();
    await page.getByRole('button', { name: 'Run verify' }).click();
    await page.getByText(/problems? found/).waitFor();
  });

  it('shows an encrypted database', async () => {
    const db = await opened(new MemoryDriver(), {
      encryption: { keys: { one: Uint8Array.from({ length: 32 }, (_, i) => i) }, current: 'one' },
    });
    await db.load(rows, made(100));
    const page = await shown(db, 'tables/rows');
    await expect.poll(() => page.locator('.grid-body [role=row]').count()).toBeGreaterThan(10);
  });

  it('shows a row that another instance writes, by itself', async () => {
    const driver = new MemoryDriver();
    const db = await opened(driver);
    await db.load(rows, made(3));
    const other = await opened(driver, { nodeId: 2 });
    const page = await shown(db, 'tables/rows');
    await expect.poll(() => page.locator('.grid-body [role=row]').count()).toBe(3);
    await other.load(rows, [{ id: 3, kind: 1 }]);
    await expect.poll(() => page.locator('.grid-body [role=row]').count()).toBe(4);
  });
});

describe('the address that the command prints', () => {
  it('opens Studio once its token was exchanged for a session, and loses the token', async () => {
    const db = await opened(new MemoryDriver());
    await db.load(rows, made(3));
    const server = createServer((request, response) => void handler.node(request, response));
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const access = new TokenAccess(realEnvironment, 'a secret', port);
    const handler = openStudio(db, realEnvironment, access, pageFiles, withDefaults({}));
    closing.push(async () => {
      await handler.close();
      server.closeAllConnections();
      server.close();
    });
    const page = await openPage(browser, []);
    await page.goto(`http://127.0.0.1:${port}/#/tables/rows`);
    await page.getByText('There is no session').waitFor();
    await page.goto('about:blank');
    await page.goto(`http://127.0.0.1:${port}/#token=a%20secret`);
    await page.getByRole('link', { name: 'rows' }).click();
    await expect.poll(() => page.locator('.grid-body [role=row]').count()).toBe(3);
    expect(page.url()).not.toContain('secret');
  });
});

describe('a million rows', () => {
  it('are scrolled from one end to the other with few elements and few pages in memory', async () => {
    const db = await opened(new MemoryDriver());
    await db.load(rows, made(1_000_000));
    await db.checkpoint();
    const faults: string[] = [];
    const page = await shown(db, 'tables/rows', faults);
    await expect.poll(() => page.locator('.table-view .bar [role=status]').textContent()).toBe('1,000,000 rows');
    const cells = (): Promise<string[]> =>
      page.locator('.grid-body [role=row] [role=gridcell]:first-child').allTextContents();
    const grid = page.getByRole('grid');
    await grid.focus();
    // The end is read backwards: at once, and not by way of all pages.
    await page.keyboard.press('End');
    await expect.poll(cells).toContain('999999');
    await page.keyboard.press('Home');
    await expect.poll(cells).toContain('0');
    const elements = await page.evaluate(
      () =>
        (
          globalThis as unknown as { document: { querySelectorAll(all: string): { length: number } } }
        ).document.querySelectorAll('*').length,
    );
    expect(elements).toBeLessThan(1000);
    // By the scrollbar through all of them, from page to page.
    const steps = 40;
    for (let step = 1; step <= steps; step++) {
      await grid.evaluate((element, part) => {
        const box = element as unknown as { scrollTop: number; scrollHeight: number; clientHeight: number };
        box.scrollTop = (box.scrollHeight - box.clientHeight) * part;
      }, step / steps);
      const expected = Math.floor((step / steps) * 999_970);
      await expect
        .poll(async () => (await cells()).some((text) => text !== '' && Math.abs(Number(text) - expected) < 60), {
          timeout: 30_000,
        })
        .toBe(true);
    }
    await expect.poll(cells).toContain('999999');
    expect(await page.locator('.grid-body [role=row]').count()).toBeLessThan(60);
    const heap = await page.evaluate(
      () => (performance as unknown as { memory: { usedJSHeapSize: number } }).memory.usedJSHeapSize,
    );
    expect(heap).toBeLessThan(60_000_000);
    expect(faults).toEqual([]);
  });
});
