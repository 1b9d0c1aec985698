/** Events, which tell pages that there is a newer state, and calls that are given up. */
import { afterEach, beforeEach, expect, it } from 'vitest';
import type { Database } from '../../../src/index.ts';
import type { StateEvent } from '../../../src/studio/messages.ts';
import { openStudio } from '../../../src/studio/open-studio.ts';
import { VirtualEnvironment } from '../../../src/testing/index.ts';
import { addCities, origin, Page, requestsOf, Shown } from './shown.ts';

let shown: Shown;
beforeEach(() => {
  shown = new Shown();
});
afterEach(async () => {
  await shown[Symbol.asyncDispose]();
});

const json = { 'content-type': 'application/json' };

/** Reads events as a browser does. */
class Events {
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>;
  #text = '';

  constructor(answer: Response) {
    expect(answer.headers.get('content-type')).toBe('text/event-stream');
    this.#reader = (answer.body as ReadableStream<Uint8Array>).getReader();
  }

  /** The next event as it was sent; undefined at the end. */
  async text(): Promise<string | undefined> {
    while (!this.#text.includes('\n\n')) {
      const { value } = await this.#reader.read();
      if (value === undefined) return undefined;
      this.#text += new TextDecoder().decode(value);
    }
    const [first = '', ...rest] = this.#text.split('\n\n');
    this.#text = rest.join('\n\n');
    return first;
  }

  async next(): Promise<StateEvent> {
    const [head, data] = ((await this.text()) ?? '').split('\n');
    expect(head).toBe('event: state');
    return JSON.parse(data?.slice('data: '.length) ?? '') as StateEvent;
  }

  leave(): Promise<void> {
    return this.#reader.cancel();
  }
}

/** A page whose handler has a clock of its own. */
function virtualPage(db: Database): { readonly page: Page; readonly environment: VirtualEnvironment } {
  const environment = new VirtualEnvironment();
  const access = { check: () => undefined, openSession: () => '' };
  const options = { write: false, basePath: '', title: 'T', prices: undefined };
  return { page: new Page(openStudio(db, environment, access, new Map(), options)), environment };
}

it('come at once, and whenever the instance shows a newer state, without a request', async () => {
  const db = await shown.withCities(2);
  const { db: replica, driver } = await shown.open({ role: 'replica' });
  await replica.refresh();
  const { page, environment } = virtualPage(replica);
  const events = [new Events(await page.fetch('/api/events')), new Events(await page.fetch('/api/events'))];
  for (const event of events) expect(await event.next()).toMatchObject({ position: 1, stats: { role: 'replica' } });
  await addCities(db, 3, 4);
  const before = requestsOf(driver);
  await environment.advance(10_000);
  expect(requestsOf(driver)).toBe(before);
  await replica.refresh();
  await environment.advance(1000);
  for (const event of events) expect(await event.next()).toMatchObject({ position: 2 });
  for (const event of events) await event.leave();
});

it('keep the connection when nothing is new, and stop looking once no page listens', async () => {
  const { page, environment } = virtualPage(await shown.withCities(2));
  const events = new Events(await page.fetch('/api/events'));
  await events.next();
  const beat = events.text();
  await environment.advance(16_000);
  expect(await beat).toBe(': ');
  await events.leave();
  expect(environment.timerCount).toBe(0);
});

it('end when the page leaves and when Studio is closed', async () => {
  const db = await shown.withCities(2);
  const page = shown.page(db);
  const leaving = new AbortController();
  const request = new Request(`${origin}/api/events`, { signal: leaving.signal });
  const events = new Events(await page.studio.fetch(request));
  await events.next();
  leaving.abort();
  expect(await events.text()).toBeUndefined();
  const others = new Events(await page.fetch('/api/events'));
  await others.next();
  await page.studio.close();
  expect(await others.text()).toBeUndefined();
  expect((await page.fetch('/api/events')).status).toBe(503);
});

it('are refused to other sites', async () => {
  const page = shown.page(await shown.withCities(2));
  for (const site of ['cross-site', 'same-site']) {
    expect((await page.fetch('/api/events', { headers: { 'sec-fetch-site': site } })).status).toBe(403);
  }
  expect((await page.post('events', {})).status).toBe(405);
});

it('gives a call up when the page leaves', async () => {
  const db = await shown.withCities(3000, { blockSizeBytes: 2048 });
  await db.checkpoint();
  const { db: replica, driver } = await shown.open({ role: 'replica' });
  const page = shown.page(replica);
  await page.call('overview', {});
  const leaving = new AbortController();
  const asked = { table: 'cities', where: [{ field: 'area', operator: '=', value: -1 }], orderBy: [] };
  const { signal } = leaving;
  const answer = page.post('query', asked, { headers: json, signal });
  leaving.abort();
  expect((await answer).status).toBe(499);
  const requests = requestsOf(driver);
  expect(requests).toBeLessThan(40);
});

it('gives a call that takes long up when nobody reads its lines any more', async () => {
  const db = await shown.withCities(5000, { blockSizeBytes: 1024 });
  await db.checkpoint();
  const { db: replica, driver } = await shown.open({ role: 'replica', maxMemoryBytes: 1024 * 1024 });
  const page = shown.page(replica);
  await page.call('overview', {});
  const all = shown.page(replica);
  await all.result('verify', {});
  const whole = requestsOf(driver);
  const answer = await page.post('verify', {}, { headers: json });
  await (answer.body as ReadableStream<Uint8Array>).cancel();
  // What was under way ends: verify() of a whole database would take as many requests as before.
  let last = -1;
  await expect.poll(() => last === (last = requestsOf(driver)), { interval: 100 }).toBe(true);
  expect(requestsOf(driver) - whole).toBeLessThan(whole / 2);
});
