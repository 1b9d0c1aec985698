/** The proxy does what its rules say, tells what it did, and changes nothing that it lets pass. */
import { Agent, createServer, request } from 'node:http';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { connect } from 'node:net';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { HttpFraming } from './http-framing.ts';
import type { MessagePiece } from './http-framing.ts';
import { TcpProxy } from './tcp-proxy.ts';
import type { ProxyFault, ProxyRule } from './tcp-proxy.ts';

interface Heard {
  readonly line: string;
  /** Undefined while it is not there, and where it never came whole. */
  body: string | undefined;
}

let store: Server;
/** Requests whose head reached the store. */
let heard: Heard[];
/** When the last one had reached it whole. */
let heardAtMs: number;
let proxy: TcpProxy;
let agent: Agent;

/** One character for a byte, which is quicker to compare than bytes are. */
async function textOf(message: IncomingMessage): Promise<string> {
  message.setEncoding('latin1');
  let text = '';
  for await (const part of message) text += part as string;
  return text;
}

/** Answers with the body that it got; under `/chunked` in chunks, under `/not-modified` with 304. */
async function answer(message: IncomingMessage, response: ServerResponse): Promise<void> {
  const entry: Heard = { line: `${message.method} ${message.url}`, body: undefined };
  heard.push(entry);
  const body = await textOf(message);
  entry.body = body;
  heardAtMs = performance.now();
  if (message.url !== '/chunked') response.setHeader('content-length', body.length);
  response.writeHead(message.url === '/not-modified' ? 304 : 200);
  for (let at = 0; at < body.length; at += 1000) response.write(body.slice(at, at + 1000), 'latin1');
  response.end();
}

beforeEach(async () => {
  heard = [];
  store = createServer((message, response) => {
    // A message that is cut short never was a request.
    void answer(message, response).catch(() => undefined);
  });
  await new Promise<void>((resolve) => {
    store.listen(0, '127.0.0.1', resolve);
  });
  proxy = await TcpProxy.start({ target: { host: '127.0.0.1', port: (store.address() as AddressInfo).port }, seed: 1 });
  agent = new Agent({ keepAlive: true, maxSockets: 1 });
});

afterEach(async () => {
  agent.destroy();
  await proxy.close();
  store.closeAllConnections();
  store.close();
});

interface Answer {
  readonly status: number;
  readonly body: string;
}

interface Sent {
  readonly method?: string;
  readonly path?: string;
  readonly body?: string;
  readonly headers?: Record<string, string>;
  readonly signal?: AbortSignal;
}

/** Sends a request through the proxy; rejects where the answer does not come whole. */
function send({ method = 'PUT', path = '/key', body, headers = {}, signal }: Sent = {}): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const options = { agent, method, path, headers, ...(signal === undefined ? {} : { signal }) };
    const sending = request(proxy.endpoint, options, (message) => {
      textOf(message).then((text) => resolve({ status: message.statusCode ?? 0, body: text }), reject);
    });
    sending.on('error', reject);
    if (headers['expect'] === undefined) sending.end(body, 'latin1');
    else sending.on('continue', () => sending.end(body, 'latin1'));
  });
}

async function codeOf(promise: Promise<unknown>): Promise<string> {
  const error: unknown = await promise.then(
    () => {
      throw new Error('It was answered');
    },
    (cause: unknown) => cause,
  );
  return (error as { code?: string }).code ?? String(error);
}

const pattern = Array.from({ length: 100_000 }, (_, i) => String.fromCharCode((i * 31 + (i >> 8)) & 0xff)).join('');

/** Looks again and again, for a second at most. */
async function eventually(isSo: () => boolean): Promise<void> {
  for (let tries = 0; !isSo() && tries < 200; tries++) await sleep(5);
  expect(isSo()).toBe(true);
}

describe('without rules', () => {
  it('requests and answers pass unchanged, on one connection, however they are framed', async () => {
    expect(await send({ body: pattern, headers: { 'content-length': '100000' } })).toEqual({
      status: 200,
      body: pattern,
    });
    expect(await send({ body: pattern, headers: { 'transfer-encoding': 'chunked' } })).toMatchObject({ body: pattern });
    expect(await send({ body: pattern, path: '/chunked' })).toMatchObject({ body: pattern });
    expect(await send({ method: 'HEAD' })).toMatchObject({ status: 200, body: '' });
    expect(await send({ method: 'GET', path: '/not-modified' })).toMatchObject({ status: 304 });
    expect(
      await send({ body: pattern, headers: { expect: '100-continue', 'content-length': '100000' } }),
    ).toMatchObject({ body: pattern });
    expect(await send({ method: 'GET' })).toMatchObject({ status: 200 });
    expect(proxy.counts).toMatchObject({ connections: 1, requests: 7, passed: 7, 'cut-before': 0 });
  });

  it('a store that ends its connection, or is not there, is felt by the client', async () => {
    await send();
    store.closeAllConnections();
    await sleep(20);
    expect(await send()).toMatchObject({ status: 200 });
    store.closeAllConnections();
    store.close();
    expect(await codeOf(send())).toBe('ECONNRESET');
  });
});

describe('a fault', () => {
  /** A rule for the next request with this path. */
  function strike(fault: ProxyFault, rule: Partial<ProxyRule> = {}): void {
    proxy.rules = [{ fault, matches: ({ path }) => path === '/struck', ...rule }];
  }
  const struck = (options: Sent = {}): Promise<Answer> => send({ path: '/struck', body: pattern, ...options });

  it('delay-request hands the request on later', async () => {
    strike('delay-request', { delayMs: [80, 80] });
    const startedMs = performance.now();
    expect(await struck()).toMatchObject({ body: pattern });
    expect(heardAtMs).toBeGreaterThan(startedMs + 75);
    expect(proxy.counts).toMatchObject({ 'delay-request': 1, passed: 1 });
  });

  it('delay-answer hands the answer on later, when the store has long done with the request', async () => {
    strike('delay-answer', { delayMs: [80, 80] });
    expect(await struck()).toMatchObject({ body: pattern });
    expect(performance.now()).toBeGreaterThan(heardAtMs + 75);
  });

  it.each([
    ['a large', pattern],
    // Head and body come at once.
    ['a small', 'small'],
  ])('cut-before keeps the store from hearing anything of %s request', async (_, body) => {
    strike('cut-before');
    expect(await codeOf(struck({ body }))).toMatch(/ECONNRESET|EPIPE/);
    await sleep(20);
    expect(heard).toEqual([]);
    expect(proxy.counts).toMatchObject({ 'cut-before': 1, passed: 0 });
  });

  it('cut-within gives the store a part of the body, which it does not take for a whole one', async () => {
    strike('cut-within');
    expect(await codeOf(struck())).toMatch(/ECONNRESET|EPIPE/);
    await eventually(() => heard.length === 1);
    await sleep(20);
    expect(heard).toEqual([{ line: 'PUT /struck', body: undefined }]);
  });

  it.each([pattern, ''])('cut-after lets the store do its work, and the client know nothing', async (body) => {
    strike('cut-after');
    let gotHead = false;
    const sending = request(proxy.endpoint, { agent, method: 'PUT', path: '/struck' }, () => {
      gotHead = true;
    });
    const failed = new Promise((resolve) => {
      sending.on('error', resolve);
    });
    sending.end(body, 'latin1');
    expect(await failed).toMatchObject({ code: 'ECONNRESET' });
    // The connection is cut only when the store has answered, so nothing need be waited for.
    expect(heard).toEqual([{ line: 'PUT /struck', body }]);
    expect(gotHead).toBe(false);
    expect(proxy.counts).toMatchObject({ 'cut-after': 1, passed: 0 });
  });

  it('cut-after does not keep back the interim answer that a client waits for', async () => {
    strike('cut-after');
    const headers = { expect: '100-continue', 'content-length': '100000' };
    expect(await codeOf(struck({ headers }))).toBe('ECONNRESET');
    expect(heard[0]?.body).toEqual(pattern);
  });

  it('cut-answer gives the client a part of the answer', async () => {
    strike('cut-answer');
    let got = 0;
    const failed = new Promise((resolve) => {
      const sending = request(proxy.endpoint, { agent, method: 'PUT', path: '/struck' }, (message) => {
        message.on('data', (bytes: Buffer) => (got += bytes.length));
        message.on('error', resolve);
      });
      sending.end(pattern, 'latin1');
    });
    expect(await failed).toMatchObject({ code: 'ECONNRESET' });
    expect(heard).toHaveLength(1);
    expect(got).toBeGreaterThan(40_000);
    expect(got).toBeLessThan(60_000);
  });

  it.each([{}, { expect: '100-continue', 'content-length': '100000' }])(
    'land-late hands the request on when the client has given it up (headers %o)',
    async (headers) => {
      strike('land-late', { delayMs: [60, 60] });
      expect(await codeOf(struck({ headers }))).toMatch(/ECONNRESET|EPIPE/);
      expect(heard).toEqual([]);
      expect(proxy.counts).toMatchObject({ 'land-late': 1, landed: 0 });
      await proxy.settled();
      expect(heard).toEqual([{ line: 'PUT /struck', body: pattern }]);
      expect(proxy.counts).toMatchObject({ landed: 1, passed: 0 });
    },
  );

  it('black-hole takes the request and never answers', async () => {
    strike('black-hole');
    const signal = AbortSignal.timeout(100);
    expect(await codeOf(struck({ signal }))).toBe('ABORT_ERR');
    expect(heard).toEqual([]);
    expect(proxy.counts).toMatchObject({ 'black-hole': 1, passed: 0 });
  });

  it('spares requests that its rule does not match, also on the same connection', async () => {
    strike('cut-before', {
      matches: ({ method, headers }) => method === 'PUT' && headers.get('if-none-match') === '*',
    });
    expect(await send({ method: 'GET' })).toMatchObject({ status: 200 });
    expect(await send({ body: pattern })).toMatchObject({ status: 200 });
    expect(await codeOf(send({ headers: { 'If-None-Match': '*' } }))).toBe('ECONNRESET');
    expect(await send({ path: '/key?if-none-match=*' })).toMatchObject({ status: 200 });
    expect(proxy.counts).toMatchObject({ requests: 4, 'cut-before': 1, passed: 3 });
  });

  it('strikes as often as its probability says, in the same way with the same seed', async () => {
    const outcomes = async (seed: string): Promise<string> => {
      const { port } = store.address() as AddressInfo;
      const rules: ProxyRule[] = [{ fault: 'cut-before', probability: 0.3 }];
      const other = await TcpProxy.start({ target: { host: '127.0.0.1', port }, seed, rules });
      let text = '';
      for (let i = 0; i < 60; i++) {
        text += await fetch(other.endpoint).then(
          () => '.',
          () => 'x',
        );
      }
      await other.close();
      return text;
    };
    const first = await outcomes('a');
    expect(await outcomes('a')).toBe(first);
    expect(await outcomes('b')).not.toBe(first);
    const cuts = first.replaceAll('.', '').length;
    expect(cuts).toBeGreaterThan(8);
    expect(cuts).toBeLessThan(30);
  });

  it('comes with the delays that strike the same request', async () => {
    proxy.rules = [
      { fault: 'delay-request', delayMs: [30, 30] },
      { fault: 'cut-after' },
      { fault: 'cut-before' },
      { fault: 'delay-answer', delayMs: [30, 30] },
    ];
    const started = performance.now();
    expect(await codeOf(send())).toBe('ECONNRESET');
    expect(performance.now() - started).toBeGreaterThan(55);
    expect(heard).toHaveLength(1);
    expect(proxy.counts).toMatchObject({ 'delay-request': 1, 'delay-answer': 1, 'cut-after': 1, 'cut-before': 0 });
  });
});

describe('refusing', () => {
  it('cuts requests under way, refuses new connections, and ends on the same port', async () => {
    proxy.rules = [{ fault: 'black-hole' }];
    const hanging = codeOf(send());
    await eventually(() => proxy.counts['black-hole'] === 1);
    await proxy.refuse();
    await proxy.refuse();
    expect(await hanging).toBe('ECONNRESET');
    expect(await codeOf(send())).toBe('ECONNREFUSED');
    proxy.rules = [];
    await proxy.accept();
    expect(await send()).toMatchObject({ status: 200 });
  });

  it('can be done to the present connections only', async () => {
    await send();
    proxy.cutAll();
    await sleep(20);
    expect(await send()).toMatchObject({ status: 200 });
    expect(proxy.counts.connections).toBe(2);
  });
});

describe('messages are recognised', () => {
  const messages = [
    'GET /a HTTP/1.1\r\nHost: x\r\n\r\n',
    'PUT /b HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello',
    'PUT /c HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n10;x=y\r\n0123456789abcdef\r\n0\r\nA: b\r\n\r\n',
    'PUT /d HTTP/1.1\r\nContent-Length: 0\r\n\r\n',
  ];

  function read(chunks: readonly Buffer[]): { text: string; messages: string[]; framing: HttpFraming } {
    const framing = new HttpFraming();
    const pieces: MessagePiece[] = chunks.flatMap((chunk) => [...framing.push(chunk)]);
    const whole: string[] = [''];
    for (const piece of pieces) {
      if (piece.kind === 'end') whole.push('');
      else whole[whole.length - 1] += piece.bytes.toString();
    }
    return { text: whole.join(''), messages: whole.slice(0, -1), framing };
  }

  it('wherever the bytes are split', () => {
    const bytes = Buffer.from(messages.join(''));
    for (let first = 0; first <= bytes.length; first++) {
      for (let second = first; second <= bytes.length; second += 7) {
        const parts = [bytes.subarray(0, first), bytes.subarray(first, second), bytes.subarray(second)];
        const found = read(parts);
        expect(found.messages, `split at ${first} and ${second}`).toEqual(messages);
        expect(found.framing.isIdle).toBe(true);
      }
    }
    expect(read(Array.from(bytes, (byte) => Buffer.of(byte))).messages).toEqual(messages);
  });

  it('an answer without a length lasts until its connection ends', () => {
    const framing = new HttpFraming();
    const kinds = [...framing.push(Buffer.from('HTTP/1.1 200 OK\r\n\r\nsome')), ...framing.push(Buffer.from('thing'))];
    expect(kinds.map(({ kind }) => kind)).toEqual(['head', 'body', 'body']);
    expect([...framing.finish()]).toEqual([{ kind: 'end' }]);
  });

  it('and other bytes are not taken for one', async () => {
    expect(() => [...new HttpFraming().push(Buffer.alloc(70_000, 'x'))]).toThrow(/not HTTP/);
    const chunked = Buffer.from('PUT / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n');
    expect(() => [...new HttpFraming().push(chunked)]).toThrow(/not HTTP/);
    const socket = connect(Number(new URL(proxy.endpoint).port), '127.0.0.1');
    socket.on('error', () => undefined);
    socket.write(Buffer.alloc(70_000, 'x'));
    await new Promise((resolve) => {
      socket.on('close', resolve);
    });
    expect(heard).toEqual([]);
  });
});
