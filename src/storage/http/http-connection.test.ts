/** Requests over HTTP: bodies that a server has to agree to, connections that it closes, limits. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { createServer as createTcpServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { realEnvironment } from '../../base/env.ts';
import { HttpConnection, readBytes, readText } from './http-connection.ts';

const closers: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0)) await close();
});

async function serve(
  handle: (request: IncomingMessage, response: ServerResponse) => void,
  host = '127.0.0.1',
): Promise<{ readonly server: Server; readonly url: URL }> {
  const server = createServer(handle);
  server.listen(0, host);
  await once(server, 'listening');
  closers.push(async () => {
    server.closeAllConnections();
    await once(server.close(), 'close');
  });
  const { port } = server.address() as AddressInfo;
  return { server, url: new URL(host.includes(':') ? `http://[${host}]:${port}/` : `http://${host}:${port}/`) };
}

function open(connectTimeoutMs?: number): HttpConnection {
  const limit = connectTimeoutMs === undefined ? {} : { connectTimeoutMs };
  const connection = new HttpConnection({ environment: realEnvironment, ...limit });
  closers.push(async () => connection.close());
  return connection;
}

function body(request: IncomingMessage): Promise<Uint8Array> {
  return readBytes(request, 2 ** 30);
}

const large = Buffer.alloc(3 * 1024 * 1024, 'x');

describe('large bodies', () => {
  it('are sent once the server has agreed', async () => {
    const { server, url } = await serve(() => undefined);
    server.on('checkContinue', (request: IncomingMessage, response: ServerResponse) => {
      response.writeContinue();
      void body(request).then(({ length }) => response.end(String(length)));
    });
    const response = await open().send({ method: 'PUT', url, headers: {}, body: large });
    expect(await readText(response.body, 100)).toBe(String(large.length));
  });

  it('are not sent to a server that refuses them', async () => {
    let received = 0;
    const { server, url } = await serve(() => undefined);
    server.on('checkContinue', (request: IncomingMessage, response: ServerResponse) => {
      request.on('data', (chunk: Buffer) => (received += chunk.length));
      response.writeHead(412).end('no');
    });
    const connection = open();
    for (let i = 0; i < 3; i++) {
      const response = await connection.send({ method: 'PUT', url, headers: {}, body: large });
      expect(response.status).toBe(412);
      expect(await readText(response.body, 100)).toBe('no');
    }
    expect(received).toBe(0);
  });

  it('are sent to a server that never agrees, too', async () => {
    const server = createTcpServer((socket) => {
      let length = 0;
      socket.on('error', () => undefined);
      socket.on('data', (chunk) => {
        length += chunk.length;
        if (length > large.length) socket.end('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok');
      });
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    closers.push(() => once(server.close(), 'close'));
    const url = new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`);
    const response = await open().send({ method: 'PUT', url, headers: {}, body: large });
    expect(await readText(response.body, 100)).toBe('ok');
  });
});

describe('connections', () => {
  it('are used again', async () => {
    const ports = new Set<number | undefined>();
    const { url } = await serve((request, response) => {
      ports.add(request.socket.remotePort);
      response.end('ok');
    });
    const connection = open();
    for (let i = 0; i < 3; i++) {
      const response = await connection.send({ method: 'GET', url, headers: {} });
      await readText(response.body, 100);
    }
    expect(ports.size).toBe(1);
  });

  it('that the server closes just then: a read is sent again, a write is not', async () => {
    let count = 0;
    const { url } = await serve((request, response) => {
      count++;
      // The second request of a connection meets its end.
      if (count % 2 === 0) request.socket.destroy();
      else response.end('ok');
    });
    const connection = open();
    const send = async (method: string): Promise<string> => {
      const response = await connection.send({ method, url, headers: {} });
      return readText(response.body, 100);
    };
    expect(await send('GET')).toBe('ok');
    expect(await send('GET')).toBe('ok');
    expect(count).toBe(3);
    await expect(send('PUT')).rejects.toMatchObject({ code: 'ECONNRESET' });
    expect(count).toBe(4);
  });

  it('are made to IPv6 addresses', async () => {
    const { url } = await serve((_, response) => response.end('six'), '::1');
    const response = await open().send({ method: 'GET', url, headers: {} });
    expect(await readText(response.body, 100)).toBe('six');
  });

  it('end with the signal, and reject with its reason', async () => {
    const { url } = await serve(() => undefined);
    const controller = new AbortController();
    const sent = open().send({ method: 'GET', url, headers: {}, signal: controller.signal });
    const reason = new Error('enough');
    setTimeout(() => controller.abort(reason), 20);
    await expect(sent).rejects.toBe(reason);
  });

  it('that are not made in time end before anything is sent', async () => {
    // An address of a network for documentation, where nobody answers.
    const url = new URL('http://192.0.2.1/');
    const error: unknown = await open(50)
      .send({ method: 'PUT', url, headers: {}, body: Buffer.from('x') })
      .catch((cause: unknown) => cause);
    // Without a route, the system says so itself.
    expect(error).toMatchObject({ syscall: 'connect' });
  });
});

describe('responses', () => {
  it('longer than their limit are an error', async () => {
    const { url } = await serve((_, response) => response.end(Buffer.alloc(1000)));
    const response = await open().send({ method: 'GET', url, headers: {} });
    await expect(readBytes(response.body, 999)).rejects.toThrow('longer than 999 bytes');
  });

  it('have paths as they are given, dots included', async () => {
    const { url } = await serve((request, response) => response.end(request.url));
    const response = await open().send({ method: 'GET', url, path: '/a/../b/./c//?d=%2E', headers: {} });
    expect(await readText(response.body, 100)).toBe('/a/../b/./c//?d=%2E');
  });
});
