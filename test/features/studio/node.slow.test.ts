/** Studio behind servers of Node.js: its own, with a handler that has read the body before, and Fastify. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { IncomingMessage, RequestListener, Server } from 'node:http';
import { connect } from 'node:net';
import type { AddressInfo } from 'node:net';
import fastify from 'fastify';
import type { FastifyInstance } from 'fastify';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { studio } from '../../../src/studio.ts';
import type { StudioHandler } from '../../../src/studio.ts';
import { requestsOf, Shown } from './shown.ts';

let shown: Shown;
const ends: (() => unknown)[] = [];
beforeEach(() => {
  shown = new Shown();
});
afterEach(async () => {
  for (const end of ends.splice(0)) await end();
  await shown[Symbol.asyncDispose]();
});

async function listen(listener: RequestListener): Promise<string> {
  const server: Server = createServer(listener);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  ends.push(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

async function mounted(): Promise<StudioHandler> {
  const handler = studio(await shown.withCities(20), { basePath: '/studio', authorize: () => true, write: true });
  ends.push(() => handler.close());
  return handler;
}

/** Asks for what a page needs. */
async function askAll(base: string): Promise<void> {
  const headers = { 'content-type': 'application/json' };
  const post = (call: string, asked: unknown, more: Record<string, string> = {}): Promise<Response> =>
    fetch(`${base}/studio/api/${call}`, {
      method: 'POST',
      headers: { ...headers, ...more },
      body: JSON.stringify(asked),
    });
  expect((await fetch(`${base}/studio/`)).headers.get('content-type')).toContain('text/html');
  expect((await fetch(`${base}/studio`, { redirect: 'manual' })).headers.get('location')).toBe('/studio/');
  const asked = { table: 'cities', key: [7] };
  expect(await (await post('row', asked)).json()).toMatchObject({ row: { name: 'City 00007' } });
  expect((await post('row', asked, { origin: 'http://evil.example' })).status).toBe(403);
  expect((await post('row', { table: 'x'.repeat(1_100_000) })).status).toBe(413);
  expect(await (await post('verify', {})).text()).toContain('"ok":true');
  const selection = encodeURIComponent(JSON.stringify({ table: 'cities', fields: ['id'] }));
  const exported = await (await fetch(`${base}/studio/api/export?format=csv&asked=${selection}`)).text();
  expect(exported.split('\n')).toHaveLength(22);
  const leaving = new AbortController();
  const events = await fetch(`${base}/studio/api/events`, { signal: leaving.signal });
  const { value } = await (events.body as ReadableStream<Uint8Array>).getReader().read();
  expect(new TextDecoder().decode(value)).toMatch(/^event: state\n/);
  leaving.abort();
}

describe('Studio answers', () => {
  it('the server of Node.js', async () => {
    const { node } = await mounted();
    await askAll(await listen((request, response) => void node(request, response)));
  });

  it('a server that has cut off the path and read the body, as Express does', async () => {
    const { node } = await mounted();
    const base = await listen((request, response) => {
      void (async () => {
        let text = '';
        for await (const part of request) text += String(part);
        const read: IncomingMessage & { originalUrl?: string; body?: unknown } = request;
        read.originalUrl = request.url ?? '';
        request.url = (request.url ?? '').slice('/studio'.length);
        if (text !== '') read.body = JSON.parse(text) as unknown;
        await node(read, response);
      })();
    });
    await askAll(base);
  });

  it('Fastify', async () => {
    const { node } = await mounted();
    const app = fastify();
    const mount = async (scope: FastifyInstance): Promise<void> => {
      scope.removeAllContentTypeParsers();
      scope.addContentTypeParser('*', (_, __, done) => done(null));
      for (const path of ['/studio', '/studio/*']) {
        scope.all(path, (request, reply) => {
          reply.hijack();
          void node(request.raw, reply.raw);
        });
      }
    };
    // With a name, Fastify looks for none in the modules of the process, where other tests may have left holes.
    await app.register(Object.assign(mount, { [Symbol.for('fastify.display-name')]: 'studio' }));
    ends.push(() => app.close());
    await askAll(await app.listen({ port: 0, host: '127.0.0.1' }));
  });
});

it('refuses requests without a host, and with a URL for a path', async () => {
  const { node } = await mounted();
  const { port } = new URL(await listen((request, response) => void node(request, response)));
  const statusOf = (lines: string): Promise<string> =>
    new Promise((resolve, reject) => {
      let text = '';
      const socket = connect(Number(port), '127.0.0.1', () => socket.write(`${lines}\r\n\r\n`));
      socket.on('data', (part) => (text += part.toString()));
      socket.on('close', () => resolve(text.slice(9, 12)));
      socket.on('error', reject);
    });
  expect(await statusOf('GET /studio/ HTTP/1.0')).toBe('400');
  expect(await statusOf('GET http://evil.example/studio/ HTTP/1.1\r\nHost: x\r\nConnection: close')).toBe('400');
  expect(await statusOf('GET /studio/ HTTP/1.1\r\nHost: a b\r\nConnection: close')).toBe('400');
  expect(await statusOf('GET /studio/ HTTP/1.1\r\nHost: x\r\nConnection: close')).toBe('200');
});

it('reads no faster than a client takes, and stops when the client leaves', async () => {
  await shown.withCities(40_000, { blockSizeBytes: 16_384 }).then((db) => db.checkpoint());
  const { db, driver } = await shown.open({ role: 'replica', maxMemoryBytes: 4 * 1024 * 1024 });
  const handler = studio(db, { authorize: () => true });
  ends.push(() => handler.close());
  const base = await listen((request, response) => void handler.node(request, response));
  const url = `${base}/api/export?format=ndjson&asked=${encodeURIComponent(JSON.stringify({ table: 'cities' }))}`;
  const whole = await (await fetch(url)).text();
  expect(whole.split('\n')).toHaveLength(40_001);
  const all = requestsOf(driver);
  const leaving = new AbortController();
  const answer = await fetch(url, { signal: leaving.signal });
  const reader = (answer.body as ReadableStream<Uint8Array>).getReader();
  await reader.read();
  // What fits into the buffers of both ends is read, and then nothing more.
  let last = -1;
  await expect.poll(() => last === (last = requestsOf(driver)), { interval: 100 }).toBe(true);
  expect(last - all).toBeLessThan(all * 0.8);
  leaving.abort();
  await expect.poll(() => last === (last = requestsOf(driver)), { interval: 100 }).toBe(true);
  expect(last - all).toBeLessThan(all * 0.8);
});
