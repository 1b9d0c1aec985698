/** The example that searches cities in static files, in Chromium, as somebody who types uses it. */
import { mkdtempSync, rmSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import type { Server } from 'node:http';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Browser } from 'playwright-core';
import { serveFolder } from '../../../examples/cities-in-the-browser/server.ts';
import { makeSite } from '../../../examples/cities-in-the-browser/site.ts';
import { openPage, startChromium } from './chromium.ts';

const folder = mkdtempSync(path.join(tmpdir(), 'cities-site-'));
let server: Server;
let browser: Browser;

beforeAll(async () => {
  await makeSite(folder);
  server = serveFolder(folder);
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  browser = await startChromium();
});
afterAll(async () => {
  await browser.close();
  server.closeAllConnections();
  await new Promise((resolve) => {
    server.close(resolve);
  });
  rmSync(folder, { recursive: true });
});

it('finds a city while one types, and shows where it is', async () => {
  const faults: string[] = [];
  const page = await openPage(browser, faults);
  const hosts = new Set<string>();
  page.on('request', (request) => hosts.add(new URL(request.url()).host));
  const host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  await page.goto(`http://${host}/`);
  await page.locator('#search:enabled').waitFor();
  expect(await page.textContent('#cost')).toMatch(/^171075 cities, \d requests, \d+ kB so far$/);
  await page.locator('#search').pressSequentially('Turku');
  const turku = page.locator('#found li', { hasText: 'Turku, ' });
  await turku.waitFor();
  await turku.click();
  await page.locator('#city', { hasText: /^Turku is at 60\./ }).waitFor();
  // Each letter takes its own path through the index, of which the first blocks are shared.
  const [, requests] = /, (\d+) requests/.exec((await page.textContent('#cost')) ?? '') ?? [];
  expect(Number(requests)).toBeLessThanOrEqual(14);
  expect([...hosts]).toEqual([host]);
  // Chromium asks for an icon, which the site does not have.
  expect(faults.filter((fault) => !fault.includes('404'))).toEqual([]);
  await page.context().close();
});
