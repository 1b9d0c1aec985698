// @vitest-environment jsdom
/** useLiveQuery() in React 18 and 19: rendering, waiting, failing, rendering on a server, and going on from there. */
import { mkdtempSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { rolldown } from 'rolldown';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import type { Database } from '../../../src/index.ts';
import { liveClient } from '../../../src/live-client.ts';
import type { LiveQueryClient, LiveClientOptions } from '../../../src/live-client.ts';
import { liveHandler } from '../../../src/live-server.ts';
import type { LiveDataOf, LiveQueryHandler } from '../../../src/live-server.ts';
import type * as reactCases from './react-cases.ts';
import { LiveKit, origin, put, queriesOf } from '../live-server/live-kit.ts';

type Cases = typeof reactCases;
type Api = LiveDataOf<ReturnType<typeof queriesOf>>;

const repository = path.join(import.meta.dirname, '../../..');
const folder = mkdtempSync(path.join(tmpdir(), 'react-cases-'));
afterAll(() => rmSync(folder, { recursive: true }));

/** Loads the components with a version of React: both must be the same for all of them. */
async function casesWith(react: string, dom: string): Promise<Cases> {
  const build = await rolldown({
    cwd: repository,
    input: 'test/features/live-client/react-cases.ts',
    platform: 'node',
    resolve: { alias: { react, 'react-dom': dom, '#platform': path.join(repository, 'src/platform/node.ts') } },
    onLog: () => undefined,
  });
  const file = path.join(folder, `${react}.cjs`);
  await build.write({ file, format: 'cjs' });
  await build.close();
  return createRequire(file)(file) as Cases;
}

const versions = [
  ['18', 'react18', 'react-dom18'],
  ['19', 'react', 'react-dom'],
] as const;

describe.each(versions)('React %s', (_, react, dom) => {
  let cases: Cases;
  let kit: LiveKit;
  let db: Database;
  let handler: LiveQueryHandler;
  let isAllowed: boolean;
  const clients: LiveQueryClient<Api>[] = [];

  beforeAll(async () => {
    vi.stubGlobal('IS_REACT_ACT_ENVIRONMENT', true);
    cases = await casesWith(react, dom);
  });
  afterAll(() => void vi.unstubAllGlobals());
  beforeEach(async () => {
    kit = new LiveKit();
    db = await kit.open();
    isAllowed = true;
    handler = liveHandler(db, { queries: queriesOf(db, kit.watched), authorize: () => isAllowed });
    await put(db, { id: 1, list: 1, text: 'one' }, { id: 2, list: 2, text: 'two' });
    cases.renders.length = 0;
  });
  afterEach(async () => {
    for (const client of clients.splice(0)) client.close();
    handler.close();
    await kit[Symbol.asyncDispose]();
  });

  function clientOf(options: LiveClientOptions = {}): LiveQueryClient<Api> {
    const fetch = (url: string, init: RequestInit): Promise<Response> =>
      handler.fetch(new Request(`${origin}${url}`, init));
    const client = liveClient<Api>('/', { fetch, ...options });
    clients.push(client);
    return client;
  }

  const element = (html = ''): Element => {
    // The types of browsers are not there in tests.
    const { document } = globalThis as unknown as {
      readonly document: { createElement(name: string): Element & { innerHTML: string } };
    };
    const made = document.createElement('div');
    made.innerHTML = html;
    return made;
  };

  it('shows what there is, and renders again only when it changes', async () => {
    const client = clientOf();
    const shown = await cases.Shown.open(element(), client.query('list', { list: 1 }), false);
    await shown.until('live: one');
    await put(db, { id: 3, list: 2, text: 'elsewhere' });
    await put(db, { id: 3, list: 1, text: 'three' });
    await shown.until('live: one,three');
    // The strict mode renders twice.
    expect(new Set(cases.renders)).toEqual(new Set(['nothing', 'one', 'one,three']));
    await shown.show(client.query('list', { list: 2 }));
    await shown.until('live: two');
    expect(kit.watched).toEqual(['list 1', 'list 2']);
    expect(shown.faults).toEqual([]);
    await shown.close();
  });

  it('waits for data in Suspense, and asks once', async () => {
    const shown = await cases.Shown.open(element(), clientOf().query('list', { list: 1 }), true);
    await shown.until('live: one');
    await put(db, { id: 1, list: 1, text: 'changed' });
    await shown.until('live: changed');
    expect(cases.renders).not.toContain('nothing');
    expect(kit.watched).toEqual(['list 1']);
    await shown.close();
  });

  it('fails in the nearest boundary before there is data', async () => {
    isAllowed = false;
    // React prints what a boundary has caught, and jsdom what React has told it.
    const printed = vi.spyOn(console, 'error').mockImplementation(() => undefined);
    const page = globalThis as unknown as EventTarget;
    const told = (event: Event): void => event.preventDefault();
    page.addEventListener('error', told);
    try {
      const shown = await cases.Shown.open(element(), clientOf().query('list', { list: 1 }), true);
      await shown.until('failed: You may not see query list.');
      await shown.close();
      // Components ask the client at each rendering. It must not ask the server each time.
      const client = clientOf();
      const asking = await cases.Shown.open(element(), () => client.query('list', { list: 1 }), true);
      await asking.until('failed: You may not see query list.');
      await asking.close();
      const plain = await cases.Shown.open(element(), () => client.query('list', { list: 2 }), false);
      await plain.until('failed: nothing');
      await plain.close();
      await expect(cases.renderOnServer(() => client.query('list', { list: 3 }), true)).rejects.toThrow(
        'You may not see query list.',
      );
    } finally {
      printed.mockRestore();
      page.removeEventListener('error', told);
    }
  });

  it('renders on a server with the data, which the page begins with', async () => {
    const server = clientOf();
    const store = server.query('list', { list: 1 });
    expect(await cases.renderOnServer(store, false)).toContain('loading: nothing');
    expect(await cases.renderOnServer(store, true)).toContain('live: one');
    const html = await cases.renderOnServer(store, false);
    expect(html).toContain('live: one');
    const hydrate = server.dehydrate();
    await put(db, { id: 3, list: 1, text: 'three' });
    const shown = await cases.Shown.open(element(html), clientOf({ hydrate }).query('list', { list: 1 }), true, true);
    await shown.until('live: one,three');
    expect(cases.renders).not.toContain('loading');
    expect(shown.faults).toEqual([]);
    await shown.close();
  });
});
