/**
 * Sends HTTP requests on connections that stay open: each request once, with a limit on the time to connect. Follows the proxy
 * settings of the process's environment. Loads Node's HTTP modules with the first request, and the modules for proxies only if
 * there is a proxy.
 */
import { readFileSync } from 'node:fs';
import type { ClientRequest, IncomingMessage } from 'node:http';
import type { Environment, Timer } from '../../base/env.ts';
import { openTransport, transportName } from './transports.ts';
import type { Transport } from './transports.ts';

/** A request to send. */
export interface HttpRequest {
  readonly method: string;
  /** The server. Its path and query are requested, unless there is a {@link path}. */
  readonly url: URL;
  /** Path and query exactly as they are sent: a `URL` changes paths with dots. */
  readonly path?: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: Uint8Array | undefined;
  /** Ends the request, or the reading of its response. */
  readonly signal?: AbortSignal | undefined;
}

/** A response whose body has not been read yet. The body must be read, or the connection stays busy. */
export interface HttpResponse {
  readonly status: number;
  /** Headers by their names in lower case. */
  readonly headers: Readonly<Record<string, string | undefined>>;
  readonly body: AsyncIterable<Uint8Array>;
}

/** Certificates in PEM format. */
export type Certificates = string | Uint8Array | readonly (string | Uint8Array)[];

/** Settings of a connection. */
export interface HttpConnectionOptions {
  readonly environment: Environment;
  /** Certificates of authorities to trust instead of the runtime's. */
  readonly ca?: Certificates | undefined;
  /** Time to connect, in milliseconds. Default: 5,000. */
  readonly connectTimeoutMs?: number;
}

/** Default time to connect, in milliseconds. */
const defaultConnectTimeoutMs = 5000;
/** Bodies from this length on are only sent after the server has agreed to read them. */
const expectFromBytes = 2 * 1024 * 1024;
/** Time that a server has to agree, in milliseconds: some never do, and read the body anyway. */
const agreeTimeoutMs = 1000;

/** Codes of connections that a server has closed. */
const closedCodes: ReadonlySet<unknown> = new Set(['ECONNRESET', 'EPIPE']);

/** Connections to servers, which are kept open between requests. */
export class HttpConnection {
  readonly #options: HttpConnectionOptions;
  /** The transports by their names. */
  readonly #transports = new Map<string, Promise<Transport>>();
  #ca: Certificates | undefined;

  constructor(options: HttpConnectionOptions) {
    this.#options = options;
  }

  /**
   * Sends a request. Resolves with the head of the response; rejects with the error of the runtime, or with the reason of the
   * signal. A request that only reads is sent again if the server has closed the connection just before.
   */
  async send(request: HttpRequest): Promise<HttpResponse> {
    const transport = await this.#transport(request.url);
    const isRead = request.method === 'GET' || request.method === 'HEAD';
    const first = this.#start(transport, request);
    try {
      return await first.response;
    } catch (error) {
      const { code } = error as { code?: unknown };
      const isStale =
        isRead && first.outgoing.reusedSocket && closedCodes.has(code) && request.signal?.aborted !== true;
      if (!isStale) throw error;
      return this.#start(transport, request).response;
    }
  }

  /** Closes the connections, those of running requests too. */
  close(): void {
    for (const transport of this.#transports.values()) {
      transport.then(
        ({ agent }) => agent.destroy(),
        () => undefined,
      );
    }
    this.#transports.clear();
  }

  #transport(url: URL): Promise<Transport> {
    const name = transportName(url);
    let transport = this.#transports.get(name);
    if (transport === undefined) {
      transport = openTransport(url);
      this.#transports.set(name, transport);
      transport.catch(() => this.#transports.delete(name));
    }
    return transport;
  }

  /** The certificates to trust; undefined for the runtime's. */
  #certificates(): Certificates | undefined {
    const bundle = process.env['AWS_CA_BUNDLE'] ?? '';
    this.#ca ??= this.#options.ca ?? (bundle === '' ? undefined : readFileSync(bundle));
    return this.#ca;
  }

  #start(
    transport: Transport,
    { method, url, path, headers, body, signal }: HttpRequest,
  ): { readonly outgoing: ClientRequest; readonly response: Promise<HttpResponse> } {
    const { environment, connectTimeoutMs = defaultConnectTimeoutMs } = this.#options;
    const ca = url.protocol === 'https:' ? this.#certificates() : undefined;
    const mustAgree = !transport.isForwarded && body !== undefined && body.length >= expectFromBytes;
    const outgoing = transport.request({
      agent: transport.agent,
      method,
      protocol: url.protocol,
      hostname: url.hostname.replace(/^\[(.*)\]$/, '$1'),
      port: url.port,
      path: path ?? `${url.pathname}${url.search}`,
      headers: {
        ...headers,
        ...(body === undefined ? {} : { 'content-length': String(body.length) }),
        ...(mustAgree ? { expect: '100-continue' } : {}),
      },
      ...(signal === undefined ? {} : { signal }),
      ...(ca === undefined ? {} : { ca: ca as string }),
    });
    const response = new Promise<HttpResponse>((resolve, reject) => {
      outgoing.once('response', (incoming: IncomingMessage) => {
        resolve({
          status: incoming.statusCode ?? 0,
          headers: incoming.headers as Readonly<Record<string, string | undefined>>,
          body: incoming,
        });
      });
      // Stays: an error may follow the response.
      outgoing.on('error', (error) => reject(signal?.aborted === true ? (signal.reason as Error) : error));
    });
    limitConnecting(outgoing, environment, connectTimeoutMs);
    if (body === undefined) outgoing.end();
    else if (mustAgree) endWhenAgreed(outgoing, body, environment);
    else outgoing.end(body);
    return { outgoing, response };
  }
}

/** Ends a request whose connection is not made in time. The time in which it waits for a free connection does not count. */
function limitConnecting(outgoing: ClientRequest, environment: Environment, limitMs: number): void {
  outgoing.once('socket', (socket) => {
    if (!socket.connecting) return;
    const timer = environment.setTimer(() => {
      const host = outgoing.getHeader('host') ?? outgoing.host;
      const error = new Error(`No connection to ${String(host)} within ${limitMs} ms`);
      outgoing.destroy(Object.assign(error, { code: 'ETIMEDOUT', syscall: 'connect' }));
    }, limitMs);
    const done = (): void => timer.cancel();
    socket.once('encrypted' in socket ? 'secureConnect' : 'connect', done);
    socket.once('close', done);
  });
}

/**
 * Sends a body once the server has asked for it. A server that answers at once, for instance that a condition does not hold, has
 * not read the body: the connection then cannot be used again.
 */
function endWhenAgreed(outgoing: ClientRequest, body: Uint8Array, environment: Environment): void {
  let timer: Timer | undefined;
  let isDone = false;
  const once = (then: () => void) => (): void => {
    timer?.cancel();
    if (!isDone) {
      isDone = true;
      then();
    }
  };
  outgoing.once(
    'continue',
    once(() => outgoing.end(body)),
  );
  outgoing.once('response', (incoming: IncomingMessage) => {
    once(() => {
      // Not before the response has been read, which comes on the same connection.
      incoming.once('close', () => outgoing.destroy());
    })();
  });
  outgoing.once(
    'close',
    once(() => undefined),
  );
  outgoing.once('socket', () => {
    if (isDone) return;
    timer = environment.setTimer(
      once(() => outgoing.end(body)),
      agreeTimeoutMs,
    );
  });
  outgoing.flushHeaders();
}

/** Reads a whole body. Rejects if it is longer than `maxBytes`: not every server ends its response. */
export async function readBytes(body: AsyncIterable<Uint8Array>, maxBytes: number): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of body) {
    length += chunk.length;
    if (length > maxBytes) {
      throw new Error(`The server's response is longer than ${maxBytes} bytes, the most that it may have`);
    }
    chunks.push(chunk);
  }
  return chunks.length === 1 ? (chunks[0] as Uint8Array) : Buffer.concat(chunks, length);
}

/** Reads a whole body as UTF-8 text. Rejects if it is longer than `maxBytes`. */
export async function readText(body: AsyncIterable<Uint8Array>, maxBytes: number): Promise<string> {
  return new TextDecoder().decode(await readBytes(body, maxBytes));
}
