/** Which requests for live queries are answered: names, parameters, who may ask, how many, and mounted behind servers. */
import { type } from 'arktype';
import type { StandardSchema } from '../../../src/live-server.ts';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, expect, it } from 'vitest';
import type { Database } from '../../../src/index.ts';
import { liveHandler } from '../../../src/live-server.ts';
import { ask, listen, Listener, LiveKit, origin, put, queriesOf } from './live-kit.ts';

let kit: LiveKit;
let db: Database;
beforeEach(async () => {
  kit = new LiveKit();
  db = await kit.open();
});
afterEach(async () => {
  await kit[Symbol.asyncDispose]();
});

async function refusal(answer: Response | Promise<Response>): Promise<unknown> {
  const { status, body, headers } = await answer;
  expect(headers.get('content-type')).toContain('application/json');
  const { error } = JSON.parse(await new Response(body).text()) as { error: { code: string; message: string } };

  return [status, error.code];
}

it('an unknown name gives 404, and a wrong method 405', async () => {
  const handler = kit.serve(db, { basePath: '/live/' });
  const of = (path: string, method = 'GET'): Promise<Response> =>
    handler.fetch(new Request(`${origin}${path}`, { method }));
  expect(await refusal(of('/live/nothing'))).toEqual([404, 'NO_QUERY']);
  expect(await refusal(of('/live/constructor'))).toEqual([404, 'NO_QUERY']);
  expect(await refusal(of('/live/%E0%A4%A'))).toEqual([404, 'NOT_FOUND']);
  expect(await refusal(of('/else/count'))).toEqual([404, 'NOT_FOUND']);
  expect(await refusal(of('/live/count', 'POST'))).toEqual([405, 'METHOD']);
  expect((await of('/live/count')).status).toBe(200);
  handler.close();
});

it('parameters are checked before anybody is asked', async () => {
  let asked = 0;
  const handler = kit.serve(db, { authorize: () => ++asked > 0 });
  expect(await refusal(ask(handler, 'list'))).toEqual([400, 'PARAMS']);
  expect(await refusal(ask(handler, 'list', { params: { list: 'x' } }))).toEqual([400, 'PARAMS']);
  expect(await refusal(ask(handler, 'count', { params: { list: 1 } }))).toEqual([400, 'PARAMS']);
  const torn = handler.fetch(new Request(`${origin}/list?params={`));
  expect(await refusal(torn)).toEqual([400, 'PARAMS']);
  expect(asked).toBe(0);
  expect((await ask(handler, 'list', { params: { list: 1 } })).status).toBe(200);
  expect(asked).toBe(1);
  handler.close();
});

it('a standard schema checks parameters, and may change them', async () => {
  const schema = {
    '~standard': {
      version: 1,
      vendor: 'test',
      validate: (given: unknown) =>
        given === 'two' ? { value: 2 } : { issues: [{ message: 'not two' }, { message: 'not at all' }] },
    },
  } as const;
  const lists: number[] = [];
  const { list } = queriesOf(db);
  const watch = (id: number) => {
    lists.push(id);
    return list.watch({ list: id });
  };
  const handler = liveHandler(db, { queries: { byName: { params: schema, watch } }, authorize: () => true });
  const request = (params: string): Request => new Request(`${origin}/byName?params=${params}`);
  const answer = await handler.fetch(request('"three"'));
  expect(answer.status).toBe(400);
  expect(await answer.text()).toContain('not two; not at all');
  await new Listener(await handler.fetch(request('"two"'))).next();
  expect(lists).toEqual([2]);
  handler.close();
});

it('a schema that is a function is a schema', async () => {
  const { list } = queriesOf(db);
  const schema: StandardSchema<unknown, number> = type('number');
  const watch = (id: number) => list.watch({ list: id });
  const handler = liveHandler(db, { queries: { byName: { params: schema, watch } }, authorize: () => true });
  const request = (text: string): Request => new Request(`${origin}/byName?params=${text}`);
  expect((await handler.fetch(request('"three"'))).status).toBe(400);
  expect((await handler.fetch(request('2'))).status).toBe(200);
  handler.close();
});

it('the function refuses, answers by itself, or narrows the parameters', async () => {
  await put(db, { id: 1, list: 1 }, { id: 2, list: 2 });
  const asked: unknown[] = [];
  const handler = kit.serve(db, {
    authorize: (request, query) => {
      asked.push([new URL(request.url).pathname, query]);
      const { list } = query.params as { list: number };
      if (list === 3) return new Response('log in', { status: 401, headers: { 'www-authenticate': 'Bearer' } });
      if (list === 4) throw new Error('no such session');
      if (list === 5) return 'yes' as never;
      return list === 6 ? { params: { list: 2 } } : list === 1;
    },
  });
  const of = (list: number): Promise<Response> => ask(handler, 'list', { params: { list } });
  expect((await new Listener(await of(1)).next()).data).toMatchObject({ rows: [{ id: 1 }] });
  expect(asked).toEqual([['/list', { name: 'list', params: { list: 1 } }]]);
  expect(await refusal(of(2))).toEqual([403, 'FORBIDDEN']);
  const login = await of(3);
  expect([login.status, await login.text(), login.headers.get('www-authenticate')]).toEqual([401, 'log in', 'Bearer']);
  expect(await refusal(of(4))).toEqual([403, 'FORBIDDEN']);
  expect(kit.errors).toEqual([new Error('no such session')]);
  expect(await refusal(of(5))).toEqual([403, 'FORBIDDEN']);
  expect((await new Listener(await of(6)).next()).data).toMatchObject({ rows: [{ id: 2 }] });
  handler.close();
});

it('more streams than allowed give 503, until one ends', async () => {
  const handler = kit.serve(db, { maxStreams: 2 });
  const open = [await listen(handler, 'count'), await listen(handler, 'count')];
  const refused = await ask(handler, 'count');
  expect(refused.headers.get('retry-after')).toBe('1');
  expect(await refusal(refused)).toEqual([503, 'TOO_MANY_STREAMS']);
  await open[0]?.leave();
  expect((await ask(handler, 'count')).status).toBe(200);
  handler.close();
});

it('a query that cannot be watched gives 500, and says no more', async () => {
  const watch = () => db.query('secrets').watch();
  const handler = kit.serve(db, { queries: { secrets: { watch } } });
  const answer = await ask(handler, 'secrets');
  const text = answer.status === 500 ? await answer.text() : JSON.stringify(await new Listener(answer).next());
  expect(text).toContain('SCHEMA_NOT_FOUND');
  expect(text).not.toContain('secrets');
  expect(kit.errors).toHaveLength(1);
  handler.close();
});

it('a server of Node.js sends events as they come, and its clients end watches', async () => {
  const watched: string[] = [];
  const handler = liveHandler(db, { basePath: '/live', queries: queriesOf(db, watched), authorize: () => true });
  const server = createServer((request, response) => void handler.node(request, response));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/live/list?params=${encodeURIComponent('{"list":1}')}`;
  const leaving = new AbortController();
  const listener = new Listener(await fetch(url, { signal: leaving.signal }));
  expect(await listener.next()).toMatchObject({ name: 'result', data: { rows: [] } });
  await put(db, { id: 1, list: 1 });
  expect(await listener.next()).toMatchObject({ data: { rows: [{ id: 1 }] } });
  leaving.abort();
  await expect
    .poll(async () => {
      const again = new AbortController();
      await new Listener(await fetch(url, { signal: again.signal })).next();
      again.abort();
      return watched.length;
    })
    .toBeGreaterThan(1);
  handler.close();
  server.closeAllConnections();
  server.close();
});
