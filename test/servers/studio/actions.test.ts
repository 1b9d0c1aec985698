/** Actions of Studio in Chromium: to stop a query, to collect garbage, to export, to look at blobs, and to copy a query. */
import { readFile } from 'node:fs/promises';
import { runInThisContext } from 'node:vm';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { Browser, Locator, Page } from 'playwright-core';
import { defineSchema, StoreDb, Types } from '../../../src/index.ts';
import type { Database } from '../../../src/index.ts';
import { realEnvironment } from '../../../src/base/env.ts';
import type { Environment } from '../../../src/base/env.ts';
import type { GetOptions, GetResult, StorageDriver } from '../../../src/storage/contract/driver.ts';
import { MemoryDriver } from '../../../src/storage/memory-driver.ts';
import { WrappedDriver } from '../../../src/storage/wrap/wrapped-driver.ts';
import { startChromium } from '../browser/chromium.ts';
import { StudioSite } from './studio-site.ts';

const rows = defineSchema({
  name: 'rows',
  version: 1,
  fields: {
    id: { typeId: Types.uint32 },
    kind: { typeId: Types.uint16 },
    name: { typeId: Types.varchar },
    at: { typeId: Types.timestamp },
    big: { typeId: Types.int64 },
  },
  primaryKey: 'id',
});
const files = defineSchema({
  name: 'files',
  version: 1,
  fields: { id: { typeId: Types.uint32 }, file: { typeId: Types.blob } },
  primaryKey: 'id',
});

/** One pixel. */
const png = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
);

/** Once it is closed, gets of blocks of the table wait until it is opened. */
class Gate extends WrappedDriver implements StorageDriver {
  readonly #opening: (() => void)[] = [];
  isClosed = false;
  gets = 0;

  override async get(key: string, options?: GetOptions): Promise<GetResult> {
    if (key.startsWith('data/data/rows/')) {
      this.gets++;
      if (this.isClosed) {
        await new Promise<void>((resolve) => {
          this.#opening.push(resolve);
        });
      }
    }
    return super.get(key, options);
  }

  open(): void {
    this.isClosed = false;
    for (const open of this.#opening.splice(0)) open();
  }
}

let browser: Browser;
const closing: (() => Promise<void>)[] = [];

beforeAll(async () => {
  browser = await startChromium();
});
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close();
});
afterAll(() => browser.close());

async function opened(driver: StorageDriver): Promise<Database> {
  const db = StoreDb({ driver, dbPrefix: 'data', nodeId: 1, logLevel: 'silent' });
  db.registerSchema(rows);
  db.registerSchema(files);
  await db.start();
  closing.push(() => db.stop());
  return db;
}

async function shown(db: Database, route: string, faults: string[], write = false): Promise<Page> {
  const site = await new StudioSite(db, write).start();
  closing.push(() => site.stop());
  const page = await site.open(browser, route, faults);
  closing.push(() => page.context().close());
  // A call that waits in vain says what for before the test ends.
  page.setDefaultTimeout(20_000);
  return page;
}

function* made(count: number): Generator<{ id: number; kind: number; name: string; at: Date; big: bigint }> {
  for (let id = 0; id < count; id++) {
    yield { id, kind: id % 7, name: `It's "${id % 3}", ${id}`, at: new Date(id * 1000), big: 2n ** 60n + BigInt(id) };
  }
}

function routeOf(path: string, query: Readonly<Record<string, unknown>>): string {
  const parts = Object.entries(query).map(([name, value]) => `${name}=${encodeURIComponent(JSON.stringify(value))}`);
  return `${path}?${parts.join('&')}`;
}

/** Clicks a link, and returns the name and the bytes of the file that the browser saves. */
async function downloaded(page: Page, link: Locator): Promise<{ readonly name: string; readonly bytes: Buffer }> {
  const [download] = await Promise.all([page.waitForEvent('download'), link.click()]);
  return { name: download.suggestedFilename(), bytes: await readFile(await download.path()) };
}

describe('a query that runs', () => {
  it('is stopped by its button, and reads nothing more', async () => {
    const driver = new MemoryDriver();
    const first = await opened(driver);
    await first.load(rows, made(200_000));
    await first.checkpoint();
    await closing.pop()?.();
    const gate = new Gate(driver);
    const db = await opened(gate);
    const faults: string[] = [];
    const form = { where: [{ field: 'name', operator: '=', value: 'nobody' }], orderBy: [] };
    const page = await shown(db, routeOf('query/rows', { q: form }), faults);
    await page.locator('section[aria-label=Plan] table').first().waitFor();
    gate.isClosed = true;
    const before = gate.gets;
    await page.getByRole('button', { name: 'Run', exact: true }).click();
    await expect.poll(() => gate.gets).toBeGreaterThan(before);
    await page.getByRole('button', { name: 'Stop', exact: true }).click();
    await page.getByRole('alert').filter({ hasText: 'You stopped it.' }).waitFor();
    const read = gate.gets;
    const pages = page.getByRole('navigation', { name: 'Pages' });
    // Answers to later requests show that Studio knows by now that nobody waits for the query.
    await pages.getByRole('link', { name: 'Health' }).click();
    await page.getByRole('button', { name: 'Run doctor' }).waitFor();
    gate.open();
    await pages.getByRole('link', { name: 'Bill' }).click();
    await page.getByLabel('Prices').waitFor();
    expect(gate.gets).toBe(read);
    // There is more to read than what was asked for when it was stopped.
    await page.goBack();
    await page.goBack();
    await page.getByRole('button', { name: 'Run', exact: true }).click();
    await page.getByRole('heading', { name: '0 rows' }).waitFor();
    expect(gate.gets - read).toBeGreaterThan(read - before);
    expect(faults).toEqual([]);
  });
});

describe('garbage', () => {
  /** A database with blocks that nothing needs any more. */
  async function withGarbage(): Promise<Database> {
    let laterMs = 0;
    const environment: Environment = {
      now: () => realEnvironment.now() + laterMs,
      monotonicMs: () => realEnvironment.monotonicMs(),
      setTimer: (callback, delayMs, options) => realEnvironment.setTimer(callback, delayMs, options),
      randomBytes: (length) => realEnvironment.randomBytes(length),
      random: () => realEnvironment.random(),
      yieldToEventLoop: () => realEnvironment.yieldToEventLoop(),
    };
    const db = await opened(new MemoryDriver({ environment }));
    await db.load(rows, made(1000));
    await db.checkpoint();
    const batch = db.batch();
    for (const row of made(1000)) await batch.update(rows, { id: row.id, kind: 9 });
    await batch.flush();
    await db.checkpoint();
    laterMs = 30 * 86_400_000;
    return db;
  }

  it('is shown, and deleted once that is confirmed', async () => {
    const db = await withGarbage();
    const { garbage } = await db.gc({ dryRun: true });
    expect(garbage).not.toEqual([]);
    const faults: string[] = [];
    const page = await shown(db, 'health', faults, true);
    const section = page.getByRole('region', { name: 'Garbage' });
    const collect = section.getByRole('button', { name: 'Collect…' });
    expect(await collect.isDisabled()).toBe(true);
    await section.getByRole('button', { name: 'Show what would go' }).click();
    await section.getByText(/would go\.$/).waitFor();
    await collect.click();
    await page.getByRole('button', { name: 'Leave it' }).click();
    expect((await db.gc({ dryRun: true })).garbage).toHaveLength(garbage.length);
    await collect.click();
    await page.getByRole('dialog').getByRole('button', { name: 'Collect', exact: true }).click();
    await section.getByText(/deleted, .* freed\./).waitFor();
    const left = new Set((await db.gc({ dryRun: true })).garbage.map(({ name }) => name));
    expect(garbage.filter(({ name }) => left.has(name))).toEqual([]);
    expect(await db.query(rows).where('kind', '=', 9).count()).toBe(1000);
    // What was shown before is gone.
    await section.getByText('There is no garbage.').waitFor();
    expect(await collect.isDisabled()).toBe(true);
    expect(faults).toEqual([]);
  });

  it('is shown, and not deleted, by a Studio that only reads', async () => {
    const db = await withGarbage();
    const page = await shown(db, 'health', []);
    const section = page.getByRole('region', { name: 'Garbage' });
    await section.getByRole('button', { name: 'Show what would go' }).click();
    await section.getByText(/would go\.$/).waitFor();
    expect(await section.getByRole('button', { name: 'Collect' }).count()).toBe(0);
  });
});

describe('the export', () => {
  it('has the rows and columns that are shown, in their order', async () => {
    const db = await opened(new MemoryDriver());
    await db.load(rows, made(100));
    const faults: string[] = [];
    const page = await shown(
      db,
      routeOf('tables/rows', {
        where: [{ field: 'kind', operator: '=', value: 3 }],
        order: [{ field: 'name', direction: 'desc' }],
        cols: ['id', 'name', 'big'],
      }),
      faults,
    );
    await expect.poll(() => page.locator('[role=columnheader]').count()).toBe(3);
    const expected = [...made(100)]
      .filter(({ kind }) => kind === 3)
      .toSorted((a, b) => (a.name < b.name ? 1 : -1))
      .map(({ id, name, big }) => ({ id, name, big: String(big) }));
    const csv = await downloaded(page, page.getByRole('link', { name: 'CSV', exact: true }));
    expect(csv.name).toBe('rows.csv');
    const lines = expected.map(({ id, name, big }) => `${id},"${name.replaceAll('"', '""')}",${big}`);
    expect(csv.bytes.toString().trimEnd().split(/\r?\n/)).toEqual(['id,name,big', ...lines]);
    const ndjson = await downloaded(page, page.getByRole('link', { name: 'NDJSON' }));
    expect(ndjson.name).toBe('rows.ndjson');
    const parsed = ndjson.bytes
      .toString()
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as unknown);
    expect(parsed).toEqual(expected);
    expect(faults).toEqual([]);
  });
});

describe('blobs', () => {
  const contents = [
    png,
    Buffer.from('Plain text, line 1\nline 2'),
    Buffer.from('<svg xmlns="http://www.w3.org/2000/svg"><script>globalThis.hacked = true</script></svg>'),
    Buffer.from('<!doctype html><script>globalThis.hacked = true</script>'),
  ];

  async function blobShown(index: number, faults: string[]): Promise<Page> {
    const db = await opened(new MemoryDriver());
    const batch = db.batch();
    for (const [id, content] of contents.entries()) await batch.insert(files, { id, file: db.Blob(content) });
    await batch.flush();
    return shown(db, routeOf('tables/files', { row: [index] }), faults);
  }

  it('are previewed as images, and downloaded', async () => {
    const faults: string[] = [];
    const page = await blobShown(0, faults);
    const image = page.getByRole('img', { name: 'The blob in file' });
    await image.waitFor();
    const width = (): Promise<number> =>
      image.evaluate((element) => (element as unknown as { naturalWidth: number }).naturalWidth);
    await expect.poll(width).toBe(1);
    const { bytes } = await downloaded(page, page.getByRole('link', { name: 'Download' }));
    expect(bytes.equals(png)).toBe(true);
    expect(faults).toEqual([]);
  });

  it.each([
    ['text', 1, 'inline', 'text/plain; charset=utf-8'],
    ['SVG', 2, 'attachment', 'application/octet-stream'],
    ['HTML', 3, 'attachment', 'application/octet-stream'],
  ] as const)('are shown as text and as nothing else: %s', async (_, index, disposition, type) => {
    const faults: string[] = [];
    const page = await blobShown(index, faults);
    const text = page.getByLabel('Text of the blob in file');
    await text.waitFor();
    expect(await text.textContent()).toBe(contents[index]?.toString());
    expect(await page.locator('.blob :is(img, iframe, object, embed, script)').count()).toBe(0);
    const link = page.getByRole('link', { name: 'Download' });
    const url = new URL((await link.getAttribute('href')) ?? '', page.url().split('#')[0]);
    const { bytes } = await downloaded(page, link);
    expect(bytes.equals(contents[index] as Buffer)).toBe(true);
    url.searchParams.delete('download');
    const headers = (await page.context().request.get(url.href)).headers();
    expect(headers['content-type']).toBe(type);
    expect(headers['content-disposition']).toMatch(new RegExp(`^${disposition}`));
    expect(headers['x-content-type-options']).toBe('nosniff');
    expect(headers['content-security-policy']).toContain('sandbox');
    expect(await page.evaluate(() => 'hacked' in globalThis)).toBe(false);
    expect(faults).toEqual([]);
  });
});

describe('the query as TypeScript', () => {
  it.each([
    [
      'rows',
      {
        where: [
          { field: 'name', operator: 'PREFIX', value: `It's "1"` },
          { field: 'at', operator: '>=', value: new Date(10_000).toISOString() },
          { field: 'big', operator: '<', value: String(2n ** 60n + 90n) },
          { field: 'kind', operator: 'IN', value: [1, 2, 3] },
        ],
        orderBy: [{ field: 'kind', direction: 'desc' }],
        limit: 8,
        budget: { requests: 1000, ms: 10_000 },
      },
      (db: Database) =>
        db
          .query(rows)
          .where('name', 'PREFIX', `It's "1"`)
          .where('at', '>=', new Date(10_000))
          .where('big', '<', 2n ** 60n + 90n)
          .where('kind', 'IN', [1, 2, 3])
          .orderBy('kind', 'desc')
          .limit(8)
          .execute(),
    ],
    [
      'groups',
      {
        where: [],
        orderBy: [],
        groupBy: ['kind'],
        aggregates: [
          { name: 'rows', kind: 'count' },
          { name: 'the last', kind: 'max', field: 'id' },
        ],
      },
      (db: Database) =>
        db
          .query(rows)
          .groupBy('kind')
          .aggregate({ rows: 'count', 'the last': { max: 'id' } }),
    ],
  ] as const)('is copied by its button, and gives the same %s', async (name, form, expected) => {
    const db = await opened(new MemoryDriver());
    await db.load(rows, made(100));
    const faults: string[] = [];
    const page = await shown(db, routeOf('query/rows', { q: form }), faults);
    await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
    await page.getByRole('button', { name: 'Copy the query' }).click();
    await page.getByText('Copied', { exact: true }).waitFor();
    const copied = await page.evaluate(() =>
      (
        globalThis as unknown as { navigator: { clipboard: { readText(): Promise<string> } } }
      ).navigator.clipboard.readText(),
    );
    expect(copied).toBe(await page.getByLabel('The query as TypeScript').textContent());
    const run = runInThisContext(`(async (db) => { ${copied}\nreturn ${name}; })`) as (
      of: Database,
    ) => Promise<unknown>;
    const found = (await run(db)) as unknown[];
    expect(found.length).toBeGreaterThan(0);
    expect(found).toEqual(await expected(db));
    await page.getByRole('button', { name: 'Run', exact: true }).click();
    await page.getByRole('heading', { name: `${found.length} ${name}` }).waitFor();
    expect(faults).toEqual([]);
  });
});
