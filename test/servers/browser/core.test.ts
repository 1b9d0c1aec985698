/** The core in Chromium: a database in memory, plain, compressed and encrypted, by the program that a realm without Node.js runs too. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Browser } from 'playwright-core';
import { webBundle } from '../../features/platform/web-bundle.ts';
import type * as program from '../../features/platform/web-program.ts';
import { openPage, startChromium } from './chromium.ts';
import { StaticServer } from './static-server.ts';

/** The global of the bundle. */
declare const core: typeof program;

const site = new StaticServer();
let browser: Browser;

beforeAll(async () => {
  const bundle = await webBundle('test/features/platform/web-program.ts', { format: 'iife', name: 'core' });
  await site.put('page.js', bundle);
  await site.put(
    'index.html',
    '<!doctype html><title>Core</title><link rel="icon" href="data:," /><script src="page.js"></script>',
  );
  browser = await startChromium();
});
afterAll(async () => {
  await browser.close();
  await site.stop();
});

it('writes, reads, queries, compresses and encrypts in a page', async () => {
  const faults: string[] = [];
  const page = await openPage(browser, faults);
  await page.goto(`${await site.start()}/index.html`);
  const report: unknown = await page.evaluate(async () => JSON.parse(JSON.stringify(await core.run())) as unknown);
  const used: unknown = expect.objectContaining({
    changed: 1007,
    count: 999,
    pages: [10, 10],
    streamed: 200_000,
    isClean: true,
  });
  expect(report).toEqual({ plain: used, compressed: used, encrypted: used, failures: [] });
  expect(site.take()).toEqual([]);
  expect(faults).toEqual([]);
  await page.context().close();
});
