/** Stores of live queries that fail, listeners that throw, and what is passed in their place. */
import { createCollection } from '@tanstack/db';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Database } from '../../../src/index.ts';
import { LiveQueryClient } from '../../../src/live-client/live-client.ts';
import type { LiveClientOptions } from '../../../src/live-client/live-client.ts';
import { liveStore } from '../../../src/live-client.ts';
import { liveHandler } from '../../../src/live-server.ts';
import { useLiveQuery } from '../../../src/react.ts';
import { storeDbCollectionOptions } from '../../../src/tanstack.ts';
import { LiveKit, origin, put, todos } from '../live-server/live-kit.ts';

let kit: LiveKit;
let db: Database;
let requests: number;
/** Answers in place of the server. */
let instead: (() => Response | undefined) | undefined;
beforeEach(async () => {
  kit = new LiveKit();
  db = await kit.open();
  requests = 0;
  instead = undefined;
});
afterEach(() => kit[Symbol.asyncDispose]());

function clientOf(isAllowed: () => boolean, options: LiveClientOptions = {}): LiveQueryClient {
  const handler = kit.serve(db, { basePath: '/live', authorize: isAllowed });
  const fetch = async (url: string, init: RequestInit): Promise<Response> => {
    requests++;
    return instead?.() ?? handler.fetch(new Request(`${origin}${url}`, init));
  };
  return new LiveQueryClient(kit.environment, '/live', { fetch, ...options });
}

describe('a store that has failed', () => {
  it('is the one that the client returns, while somebody listens and a while longer', async () => {
    const client = clientOf(() => false);
    const store = client.query('count');
    const end = store.subscribe(() => undefined);
    await expect.poll(() => store.getSnapshot().status).toBe('failed');
    expect(client.query('count')).toBe(store);
    await kit.environment.advance(60_000);
    expect(client.query('count')).toBe(store);
    end();
    expect(client.query('count')).toBe(store);
    await kit.environment.advance(6000);
    expect(client.query('count')).not.toBe(store);
    expect(requests).toBe(1);
  });

  it.each([0, 5000])('is there for who has waited for it, and keeps %i ms', async (keepMs) => {
    let isAllowed = false;
    const client = clientOf(() => isAllowed, { keepMs });
    const store = client.query('count');
    await expect(store.ready()).rejects.toMatchObject({ code: 'FORBIDDEN' });
    expect(client.query('count')).toBe(store);
    await kit.environment.advance(900);
    expect(client.query('count')).toBe(store);
    await kit.environment.advance(6000);
    isAllowed = true;
    await expect(client.query('count').ready()).resolves.toMatchObject({ data: 0 });
    expect(requests).toBe(2);
    client.close();
  });

  it('fails at once for a path where there is no page, and for a page in place of a stream', async () => {
    const here = new LiveQueryClient(kit.environment, '/live', {});
    const failure = { code: 'LIVE_URL', message: expect.stringContaining('the path /live/count') as string };
    await expect(here.query('count').ready()).rejects.toMatchObject(failure);
    const client = clientOf(() => true);
    instead = () => new Response('<!doctype html>', { headers: { 'content-type': 'text/html' } });
    const message = expect.stringContaining('answered with text/html') as string;
    await expect(client.query('count').ready()).rejects.toMatchObject({ code: 'LIVE_CONNECTION', message });
    expect(requests).toBe(1);
  });

  it('has the error of its function, also if that throws at once', async () => {
    const store = liveStore((): never => {
      throw new RangeError('no query');
    });
    await expect(store.ready()).rejects.toThrow('no query');
    expect(store.getSnapshot()).toMatchObject({ status: 'failed', error: { message: 'no query' } });
  });
});

it('a listener that throws ends neither the connection nor the others', async () => {
  const thrown: unknown[] = [];
  const before = process.listeners('unhandledRejection');
  process.removeAllListeners('unhandledRejection').on('unhandledRejection', (error) => thrown.push(error));
  try {
    const store = clientOf(() => true).query('count');
    const seen: unknown[] = [];
    const ends = [
      store.subscribe(() => {
        throw new RangeError('of a listener');
      }),
      store.subscribe(() => seen.push(store.getSnapshot().data)),
    ];
    await expect.poll(() => seen).toEqual([0]);
    await put(db, { id: 1, list: 1 });
    await expect.poll(() => seen).toEqual([0, 1]);
    for (const end of ends) end();
    expect(requests).toBe(1);
    await expect.poll(() => thrown.map(String)).toEqual(Array.from(ends, () => 'RangeError: of a listener'));
  } finally {
    process.removeAllListeners('unhandledRejection');
    for (const listener of before) process.on('unhandledRejection', listener);
  }
});

describe('what is no store, query or parameter', () => {
  it.each([undefined, 5, ''])('is refused as a name: %s', (name) => {
    expect(() => clientOf(() => true).query(name as never)).toThrow('query() takes the name of a live query; it is');
  });

  const circular: Record<string, unknown> = {};
  circular['self'] = circular;
  it.each([
    [null, 'are null'],
    ['a', "are 'a'"],
    [[1], 'are an array'],
    [{ n: 1n }, 'are not JSON'],
    [circular, 'are not JSON'],
  ])('is refused as parameters: case %#', (params, text) => {
    const refused = { code: 'INVALID_OPTION', message: expect.stringContaining(text) as string };
    expect(() => clientOf(() => true).query('list', params as never)).toThrow(expect.objectContaining(refused));
  });

  it('is refused as a listener', () => {
    expect(() => liveStore(() => db.query(todos).watch()).subscribe(5 as never)).toThrow(
      'subscribe() takes a function',
    );
  });

  it.each([undefined, null, 'list', Promise.resolve(), { subscribe: () => undefined }])(
    'is refused by useLiveQuery() and collections: case %#',
    (store) => {
      const text = 'takes the store of a live query: client.query() of liveClient(), or liveStore(';
      expect(() => useLiveQuery(store as never)).toThrow(text);
      expect(() => storeDbCollectionOptions({ query: store as never, getKey: () => 1 })).toThrow(text);
    },
  );

  it('is refused as results', async () => {
    const refused = (text: string) => ({ code: 'INVALID_OPTION', message: expect.stringContaining(text) as string });
    const promised = liveStore(() => db.query(todos).execute() as never);
    await expect(promised.ready()).rejects.toMatchObject(
      refused('has returned a promise; it must return query.watch()'),
    );
    const errors: unknown[] = [];
    const handler = liveHandler(db, {
      queries: { none: { watch: () => db.query(todos) as never } },
      authorize: () => true,
      onError: (error) => errors.push(error),
    });
    expect((await handler.fetch(new Request(`${origin}/none`))).status).toBe(500);
    expect(errors).toMatchObject([refused('Function watch of query none has returned an object')]);
  });

  it.each(['', '.', '..'])("is refused as the name of a query that is served: '%s'", (name) => {
    const queries = { [name]: { watch: () => db.query(todos).watch() } };
    expect(() => liveHandler(db, { queries, authorize: () => true })).toThrow(`has a query '${name}'`);
  });

  it('is refused as a position and as rows', async () => {
    const { utils } = storeDbCollectionOptions({ query: liveStore(() => db.query(todos).watch()), getKey: () => 1 });
    await expect(utils.awaitPosition(undefined as never)).rejects.toThrow('awaitPosition() takes db.position');
    const query = liveStore(() => db.query(todos).watchCount());
    const collection = createCollection(storeDbCollectionOptions({ query: query as never, getKey: () => 1 }));
    await expect(collection.preload()).rejects.toThrow('A collection takes the rows of watch()');
    await collection.cleanup();
  });
});
