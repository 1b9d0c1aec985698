/** Studio on the loopback interface for tests in a browser, and pages of it that report what goes wrong in them. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createRequire } from 'node:module';
import { readFile } from 'node:fs/promises';
import type { Browser, Page } from 'playwright-core';
import type { Database } from '../../../src/index.ts';
import { studio } from '../../../src/studio.ts';
import { openPage } from '../browser/chromium.ts';

/** Serves Studio for a database. */
export class StudioSite {
  readonly #server: Server;
  readonly #close: () => Promise<void>;
  #origin = '';

  constructor(db: Database, write: boolean) {
    const { node, close } = studio(db, { authorize: () => true, write, title: 'Tested' });
    this.#close = close;
    this.#server = createServer((request, response) => void node(request, response));
  }

  async start(): Promise<this> {
    this.#server.listen(0, '127.0.0.1');
    await once(this.#server, 'listening');
    this.#origin = `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
    return this;
  }

  async stop(): Promise<void> {
    await this.#close();
    this.#server.closeAllConnections();
    this.#server.close();
  }

  /** Opens the page at a route. `faults` gets errors of scripts, warnings, violations of the policy, and requests to other hosts. */
  async open(browser: Browser, route: string, faults: string[], look: Look = {}): Promise<Page> {
    const page = await openPage(browser, faults);
    page.on('request', (request) => {
      const url = request.url();
      if (!url.startsWith(this.#origin) && !/^(?:blob|data):/.test(url)) faults.push(`A request to ${url}`);
    });
    await page.setViewportSize({ width: look.width ?? 1280, height: 800 });
    await page.emulateMedia({ colorScheme: look.theme ?? 'light' });
    await page.goto(`${this.#origin}/#/${route}`);
    await page.locator(':is(main h1, main h2, .list):visible').first().waitFor();
    return page;
  }
}

export interface Look {
  readonly width?: number;
  readonly theme?: 'light' | 'dark';
}

/** Returns what axe finds wrong with a page, one line each. */
export async function findings(page: Page): Promise<string[]> {
  const source = await readFile(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
  await page.evaluate(source);
  return page.evaluate(async () => {
    interface Axe {
      run(): Promise<{
        readonly violations: readonly { readonly id: string; readonly nodes: readonly { readonly html: string }[] }[];
      }>;
    }
    const { violations } = await (globalThis as unknown as { readonly axe: Axe }).axe.run();
    return violations.flatMap(({ id, nodes }) => nodes.map(({ html }) => `${id}: ${html.slice(0, 200)}`));
  });
}

/** Returns the elements that stand out to the right of the window. */
export function overflows(page: Page): Promise<string[]> {
  return page.evaluate(() => {
    interface Box {
      readonly className: string;
      readonly tagName: string;
      closest(selector: string): unknown;
      getBoundingClientRect(): { readonly right: number };
    }
    const all = globalThis as unknown as {
      readonly innerWidth: number;
      readonly document: { querySelectorAll(selector: string): Iterable<Box> };
    };
    return [...all.document.querySelectorAll('body *')]
      .filter((each) => each.getBoundingClientRect().right > all.innerWidth + 1)
      .filter((each) => each.closest('.grid, pre, .table-box, .hidden, .skip') === null)
      .map(({ tagName, className }) => `${tagName} ${className}`);
  });
}
