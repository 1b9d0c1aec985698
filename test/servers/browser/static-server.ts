/** A server of static files on the loopback interface that counts requests, and can be slow, cut off, and of another origin. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { MemoryDriver } from '../../../src/storage/memory-driver.ts';

const types: Readonly<Record<string, string>> = { html: 'text/html; charset=utf-8', js: 'text/javascript' };

export class StaticServer {
  /** The files, by their paths without the first slash. */
  readonly files: MemoryDriver = new MemoryDriver();
  /** Paths of the requests for anything but the page and its script. */
  readonly requests: string[] = [];
  /** Paths of the scripts that were asked for. */
  readonly scripts: string[] = [];
  sentBytes = 0;
  /** Milliseconds before each answer. */
  delayMs = 0;
  /** Whether connections end without an answer. */
  isCutOff = false;
  /** The origin whose pages may read the files; default: none but its own. */
  allowedOrigin: string | undefined;
  readonly #server: Server;

  constructor() {
    this.#server = createServer((request, response) => {
      this.#answer(request, response).catch(() => response.destroy());
    });
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const path = decodeURIComponent(new URL(request.url ?? '/', 'http://localhost').pathname.slice(1));
    const type = types[path.split('.').at(-1) ?? ''];
    if (type === undefined) this.requests.push(path);
    else if (path.endsWith('.js')) this.scripts.push(path);
    if (this.delayMs > 0) await sleep(this.delayMs);
    if (this.isCutOff) {
      request.socket.destroy();
      return;
    }
    const headers = this.allowedOrigin === undefined ? {} : { 'access-control-allow-origin': this.allowedOrigin };
    if (request.method === 'OPTIONS') {
      response.writeHead(204, { ...headers, 'access-control-allow-headers': 'range' }).end();
      return;
    }
    const found = await this.files.get(path);
    if (found.status !== 'found') {
      response.writeHead(404, headers).end();
      return;
    }
    const [, from, to] = /^bytes=(\d+)-(\d*)$/.exec(request.headers.range ?? '') ?? [];
    const end = to === undefined || to === '' ? found.bytes.length : Number(to) + 1;
    const bytes = from === undefined ? found.bytes : found.bytes.subarray(Number(from), end);
    this.sentBytes += bytes.length;
    const isPart = from !== undefined;
    response.writeHead(isPart ? 206 : 200, {
      ...headers,
      'content-type': type ?? 'application/octet-stream',
      'content-length': bytes.length,
      'cache-control': 'no-cache',
      ...(isPart && { 'content-range': `bytes ${from}-${end - 1}/${found.bytes.length}` }),
    });
    response.end(bytes);
  }

  /** Puts a file. */
  async put(path: string, text: string): Promise<void> {
    await this.files.put(path, new TextEncoder().encode(text), { if: 'any' });
  }

  /** Starts to listen, and returns the origin. */
  async start(): Promise<string> {
    this.#server.listen(0, '127.0.0.1');
    await once(this.#server, 'listening');
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async stop(): Promise<void> {
    this.#server.close();
    this.#server.closeAllConnections();
    await once(this.#server, 'close');
  }

  /** Returns the requests since the last call. */
  take(): string[] {
    return this.requests.splice(0);
  }
}
