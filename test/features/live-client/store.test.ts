/** Stores of live queries: what they have, how they connect again, and who they are shared by. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Database } from '../../../src/index.ts';
import { EventReader } from '../../../src/live-client/event-reader.ts';
import { LiveQueryClient } from '../../../src/live-client/live-client.ts';
import type { LiveClientOptions } from '../../../src/live-client/live-client.ts';
import type { LiveSnapshot, LiveQueryStore } from '../../../src/live-client/live-store.ts';
import { liveClient, LiveQueryError, liveStore } from '../../../src/live-client.ts';
import type { LiveRequests } from '../../../src/live-server/live-handler.ts';
import { LiveKit, origin, put, todos } from '../live-server/live-kit.ts';

type Todo = Record<string, unknown>;
interface Api {
  readonly list: readonly Todo[];
  readonly count: number;
  readonly totals: { readonly all: number; readonly sizes: bigint | null };
}

let kit: LiveKit;
let db: Database;
let handler: LiveRequests;
/** The requests that clients have made: the path, and the event to go on from. */
let requests: { readonly path: string; readonly headers: Headers }[];
/** Stands before the server: may answer by itself. */
let instead: (() => Response | undefined) | undefined;
beforeEach(async () => {
  kit = new LiveKit();
  db = await kit.open();
  handler = kit.serve(db, { basePath: '/live' });
  requests = [];
  instead = undefined;
});
afterEach(async () => {
  handler.close();
  await kit[Symbol.asyncDispose]();
});

function clientOf(options: LiveClientOptions = {}): LiveQueryClient<Api> {
  const fetch = async (url: string, init: RequestInit): Promise<Response> => {
    const request = new Request(`${origin}${url}`, init);
    requests.push({ path: url, headers: request.headers });
    return instead?.() ?? handler.fetch(request);
  };
  return new LiveQueryClient<Api>(kit.environment, '/live', { fetch, ...options });
}

/** Waits until a store has what a test waits for. */
async function until<T>(
  store: LiveQueryStore<T>,
  test: (snapshot: LiveSnapshot<T>) => boolean,
): Promise<LiveSnapshot<T>> {
  await expect.poll(() => test(store.getSnapshot())).toBe(true);
  return store.getSnapshot();
}

const list = { list: 1 };

describe('a store', () => {
  it('has the rows, and those that did not change stay the same objects', async () => {
    await put(db, { id: 1, list: 1, text: 'a' }, { id: 3, list: 1, text: 'c' });
    const store = clientOf().query('list', list);
    expect(store.getSnapshot()).toEqual({ status: 'loading', data: undefined, position: undefined, error: undefined });
    let changes = 0;
    const end = store.subscribe(() => changes++);
    const first = await until(store, ({ status }) => status === 'live');
    expect(store.getSnapshot()).toBe(first);
    expect(first.data?.map(({ text }) => text)).toEqual(['a', 'c']);
    await put(db, { id: 2, list: 1, text: 'b' });
    const second = await until(store, ({ position }) => position === db.position);
    expect(second.data?.map(({ text }) => text)).toEqual(['a', 'b', 'c']);
    expect(second.data?.[2]).toBe(first.data?.[1]);
    expect(changes).toBe(2);
    end();
  });

  it('has values as the database gives them', async () => {
    const due = new Date('2026-02-03T04:05:06.789Z');
    const odd = { id: 1, list: 1, due, hash: new Uint8Array([0, 255]), size: 2n ** 60n, weight: -0, tags: { a: [1] } };
    await put(db, odd, { id: 2, list: 1, size: 7n, weight: 1.5, text: '"\n\r\u2028<' });
    const client = clientOf();
    const { data } = await client.query('list', list).ready();
    const rows = await db.query(todos).orderBy('id').execute();
    // A Buffer in the process of the database.
    const asBytes = (all: readonly Todo[] = []): unknown[] => all.map(({ hash }) => hash && [...(hash as Uint8Array)]);
    const others = (all: readonly Todo[] = []): unknown[] =>
      all.map((row) => Object.entries(row).filter(([name]) => name !== 'hash'));
    expect(others(data)).toEqual(others(rows));
    expect(asBytes(data)).toEqual([[0, 255], null]);
    expect(Object.is(data?.[0]?.['weight'], -0)).toBe(true);
    expect((await client.query('count').ready()).data).toBe(2);
    expect((await client.query('totals').ready()).data).toEqual({ all: 2, sizes: 2n ** 60n + 7n });
    client.close();
  });

  it('equals the query after each of many random commits', async () => {
    const store = clientOf().query('list', list);
    const end = store.subscribe(() => undefined);
    let seed = 7;
    const any = (below: number): number => {
      seed = (seed * 48_271) % 2_147_483_647;
      return seed % below;
    };
    for (let commit = 0; commit < 60; commit++) {
      await put(db, ...Array.from({ length: 1 + any(4) }, () => ({ id: any(12), list: any(2), text: `${any(3)}` })));
      const rows = await db.query(todos).where('list', '=', 1).orderBy('id').execute();
      await expect.poll(() => store.getSnapshot().data, { interval: 1 }).toEqual(rows);
    }
    end();
  });

  it('is the same for the same parameters, and has one connection for all who listen', async () => {
    const client = clientOf({ keepMs: 1000 });
    const store = client.query('list', { list: 1, b: { c: 1, d: 2 } });
    expect(client.query('list', { b: { d: 2, c: 1 }, list: 1 })).toBe(store);
    expect(client.query('list', { list: 2 })).not.toBe(store);
    const ends = [store.subscribe(() => undefined), store.subscribe(() => undefined)];
    await until(store, ({ status }) => status === 'live');
    for (const end of ends) end();
    await kit.environment.advance(900);
    const end = store.subscribe(() => undefined);
    await kit.environment.advance(5000);
    expect(requests).toHaveLength(1);
    end();
    await kit.environment.advance(1000);
    // Nobody uses it any more, and a new one begins anew.
    const next = client.query('list', { list: 1, b: { c: 1, d: 2 } });
    expect(next).not.toBe(store);
    expect(next.getSnapshot().status).toBe('loading');
  });
});

describe('a lost connection', () => {
  it('is made again, and goes on from the last event', async () => {
    await put(db, { id: 1, list: 1 });
    const store = clientOf({ headers: () => ({ authorization: `try ${requests.length}` }) }).query('list', list);
    const statuses: string[] = [];
    const end = store.subscribe(() => statuses.push(store.getSnapshot().status));
    const first = await until(store, ({ status }) => status === 'live');
    const answers = [Response.json({ error: { code: 'BUSY', message: 'Busy.' } }, { status: 503 }), undefined];
    instead = () => answers.shift();
    await db.stop();
    await kit.environment.advance(1000);
    await db.start();
    for (let i = 0; answers.length > 0 && i < 20; i++) await kit.environment.advance(500);
    const again = await until(store, ({ status }) => status === 'live');
    expect(again.data).toBe(first.data);
    expect(statuses).toEqual(['live', 'reconnecting', 'live']);
    const [, second, third] = requests;
    expect(second?.headers.get('authorization')).toBe('try 1');
    expect(third?.headers.get('last-event-id')).toMatch(/^1\.[\da-f]{24}$/);
    end();
  });

  it('is tried after longer and longer pauses, up to half a minute', async () => {
    instead = () => {
      throw new TypeError('no network');
    };
    const store = clientOf().query('count');
    const end = store.subscribe(() => undefined);
    const counts: number[] = [];
    for (let second = 0; second < 120; second++) {
      await kit.environment.advance(1000);
      counts.push(requests.length);
    }
    expect(counts[4]).toBeGreaterThan(2);
    expect(counts.at(-1)).toBeGreaterThan(8);
    expect(counts.at(-1)).toBeLessThan(16);
    expect(store.getSnapshot()).toMatchObject({ status: 'loading', error: { message: 'no network' } });
    end();
    await kit.environment.advance(6000);
    const { length } = requests;
    await kit.environment.advance(60_000);
    expect(requests).toHaveLength(length);
  });

  it('is noticed when nothing has come for 45 seconds', async () => {
    const silent = (): Response => new Response(new ReadableStream());
    instead = silent;
    const store = clientOf().query('count');
    const end = store.subscribe(() => undefined);
    await kit.environment.advance(44_000);
    expect(requests).toHaveLength(1);
    instead = undefined;
    await kit.environment.advance(3000);
    expect(await until(store, ({ status }) => status === 'live')).toMatchObject({ data: 0 });
    end();
  });

  it('with a change of another result leads to the whole result', async () => {
    await put(db, { id: 1, list: 1 });
    const text = 'event: change\nid: 9.0\ndata: {"position":9,"kept":[[5,9]],"rows":[],"types":{}}\n\n';
    instead = () =>
      requests.length === 1 ? new Response(text, { headers: { 'content-type': 'text/event-stream' } }) : undefined;
    const store = clientOf().query('list', list);
    const end = store.subscribe(() => undefined);
    await kit.environment.advance(2000);
    expect(await until(store, ({ status }) => status === 'live')).toMatchObject({ data: [{ id: 1 }], position: 1 });
    end();
  });
});

describe('ready() with a signal', () => {
  it('has the data if it comes before', async () => {
    const { signal } = new AbortController();
    await expect(clientOf().query('count').ready({ signal })).resolves.toMatchObject({ data: 0 });
  });

  it('rejects once the signal is aborted, with the error of the last attempt, and watches no more', async () => {
    instead = () => new Response('{"error":{"code":"INTERNAL","message":"A fault."}}', { status: 500 });
    const store = clientOf().query('count');
    const controller = new AbortController();
    const waiting = store.ready({ signal: controller.signal }).catch((error: unknown) => error);
    await until(store, ({ error }) => error !== undefined);
    controller.abort();
    const error = (await waiting) as Error;
    expect(error).toMatchObject({ code: 'ABORTED', cause: { code: 'INTERNAL', status: 500 } });
    expect(error.message).toBe(
      'ready() was given up because its signal was aborted before there was data. The last attempt has failed: A fault.',
    );
    const { length } = requests;
    await kit.environment.advance(120_000);
    // It is watched for five seconds longer, in case that somebody listens.
    expect(requests.length).toBeLessThan(length + 8);
    const after = requests.length;
    await kit.environment.advance(120_000);
    expect(requests).toHaveLength(after);
    await expect(store.ready({ signal: controller.signal })).rejects.toMatchObject({ code: 'ABORTED' });
  });

  it('refuses anything but a signal', async () => {
    const store = clientOf().query('count');
    const wrong = { signal: 5 } as unknown as { signal: AbortSignal };
    await expect(store.ready(wrong)).rejects.toMatchObject({ code: 'INVALID_OPTION', option: 'signal' });
    expect(requests).toEqual([]);
  });
});

describe('a refused query', () => {
  it('fails, and is asked for again by retry()', async () => {
    let isAllowed = false;
    handler = kit.serve(db, { basePath: '/live', authorize: () => isAllowed });
    const store = clientOf().query('count');
    const failure = await store.ready().catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(LiveQueryError);
    expect(failure).toMatchObject({ code: 'FORBIDDEN', status: 403, message: 'You may not see query count.' });
    expect(store.getSnapshot()).toMatchObject({ status: 'failed', error: failure });
    await kit.environment.advance(60_000);
    expect(requests).toHaveLength(1);
    isAllowed = true;
    const end = store.subscribe(() => undefined);
    store.retry();
    expect(await until(store, ({ status }) => status === 'live')).toMatchObject({ data: 0, error: undefined });
    end();
  });
});

describe('a page that was rendered on a server', () => {
  it('begins with its data, and asks only for what has changed', async () => {
    const due = new Date(1000);
    await put(db, { id: 1, list: 1, text: '</script><script>', due, size: 2n ** 60n });
    const server = clientOf();
    await server.query('list', list).ready();
    await server.query('count').ready();
    const hydrate = server.dehydrate();
    expect(hydrate).not.toContain('<');
    const store = clientOf({ hydrate }).query('list', list);
    const first = store.getSnapshot();
    expect(first).toMatchObject({ status: 'live', data: [{ text: '</script><script>', due, size: 2n ** 60n }] });
    expect(store.getServerSnapshot()).toBe(first);
    const end = store.subscribe(() => undefined);
    await expect.poll(() => requests).toHaveLength(3);
    expect(requests[2]?.headers.get('last-event-id')).toMatch(/^1\.[\da-f]{24}$/);
    await put(db, { id: 2, list: 1 });
    const second = await until(store, ({ position }) => position === 2);
    expect(second.data).toHaveLength(2);
    expect(second.data?.[0]).toBe(first.data?.[0]);
    expect(store.getServerSnapshot()).toBe(first);
    end();
    server.close();
  });
});

it('a store of a query in the same process needs no server', async () => {
  await put(db, { id: 1, list: 1 });
  const rows = liveStore(() => db.query(todos).watch());
  const count = liveStore(() => db.query(todos).watchCount());
  expect((await rows.ready()).data).toMatchObject([{ id: 1 }]);
  const end = count.subscribe(() => undefined);
  await put(db, { id: 2, list: 1 });
  expect(await until(count, ({ data }) => data === 2)).toMatchObject({ status: 'live', position: 2 });
  end();
  const none = liveStore(() => db.query('nothing').watch());
  await expect(none.ready()).rejects.toMatchObject({ code: 'SCHEMA_NOT_FOUND' });
  expect(() => liveStore(db as never)).toThrow('liveStore() takes a function');
  expect(() => liveClient('')).toThrow('liveClient() takes the URL of a handler');
});

it('events are read wherever the bytes are cut', () => {
  const bytes = new TextEncoder().encode(
    ': \n\nevent: a\r\nid: 1\ndata: \u{1F600}x\ndata:y\n\nother: 1\n\ndata: z\n\n',
  );
  const events = [
    { name: 'a', id: '1', data: '\u{1F600}x\ny' },
    { name: '', id: '1', data: 'z' },
  ];
  for (let size = 1; size < bytes.length; size++) {
    const reader = new EventReader();
    const found = [];
    for (let at = 0; at < bytes.length; at += size) found.push(...reader.take(bytes.subarray(at, at + size)));
    expect(found).toEqual(events);
  }
});
