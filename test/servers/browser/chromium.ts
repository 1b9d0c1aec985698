/** Debian's Chromium, driven by Playwright, and pages that report everything that goes wrong in them. */
import { chromium } from 'playwright-core';
import type { Browser, Page } from 'playwright-core';

/** Starts the browser. `CHROMIUM` names another one. */
export function startChromium(): Promise<Browser> {
  return chromium.launch({
    executablePath: process.env['CHROMIUM'] ?? '/usr/bin/chromium',
    // As root, and in containers, it has no sandbox.
    args: ['--no-sandbox', '--disable-dev-shm-usage'],
  });
}

/** Opens a page of its own. `faults` gets errors of scripts and lines of the console that warn. */
export async function openPage(browser: Browser, faults: string[]): Promise<Page> {
  const context = await browser.newContext();
  const page = await context.newPage();
  // A loaded machine may need longer than the default, half a minute.
  page.setDefaultTimeout(90_000);
  page.on('pageerror', (error) => faults.push(String(error)));
  page.on('console', (line) => {
    if (line.type() === 'error' || line.type() === 'warning') faults.push(line.text());
  });
  return page;
}
