/**
 * A small S3 server for tests: in memory, with the semantics of Amazon S3, on a port of its own. Conditions are checked
 * and writes made in one step once the whole body is there. Dialects make it behave like other stores, and `intercept`
 * makes it fail. What it does not know it refuses with 501, so that no test passes because something was ignored.
 */
import { randomBytes } from 'node:crypto';
import { createServer } from 'node:http';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { S3Client } from '@aws-sdk/client-s3';
import type { S3ClientConfig } from '@aws-sdk/client-s3';
import type { Access } from './authorization.ts';
import { Buckets } from './buckets.ts';
import type { OpenUpload, StoredObject } from './bucket.ts';
import { amazonDialect } from './dialect.ts';
import type { S3Dialect } from './dialect.ts';
import { dispatch, refuse, refuseFor } from './dispatch.ts';
import type { Outcome } from './dispatch.ts';
import { parseRequest } from './s3-message.ts';
import type { RawRequest, S3Answer, S3Operation, S3Request } from './s3-message.ts';
import type { S3Credentials } from './signature.ts';

/**
 * What happens to a request, other than that it is handled.
 * - A status: it is answered so; with `after`, only once it was handled.
 * - `reset`: the connection is cut before it is handled; `reset-after`: handled, and cut instead of answered;
 *   `reset-during`: handled, and cut in the middle of the answer's body.
 * - `delayMs`: it is handled so much later.
 */
export type Fault =
  | 'reset'
  | 'reset-after'
  | 'reset-during'
  | { readonly status: number; readonly code: string; readonly after?: boolean; readonly headers?: S3Answer['headers'] }
  | { readonly delayMs: number };

/** Asked about every request once its body is there. A promise holds the request back until it settles. */
export type Intercept = (request: S3Request) => Fault | undefined | void | Promise<Fault | undefined | void>;

/** A request once its body was there. */
export interface LoggedRequest {
  readonly method: string;
  /** Undefined where it is none that the server knows. */
  readonly operation: S3Operation | undefined;
  readonly bucket: string;
  readonly key: string;
  readonly query: Readonly<Record<string, string>>;
  readonly headers: Readonly<Record<string, string>>;
  /** Undefined where there was no answer, or is none yet. */
  readonly status: number | undefined;
  /** The code of an error. */
  readonly code: string | undefined;
  /** Bytes of the body. */
  readonly bytesIn: number;
  /** Bytes of the answer's body. */
  readonly bytesOut: number;
}

type LogEntry = { -readonly [Name in keyof LoggedRequest]: LoggedRequest[Name] };

export interface S3ServerOptions {
  readonly dialect?: Partial<S3Dialect>;
  /** Buckets that are there from the start. Default `test-bucket`. */
  readonly buckets?: readonly string[];
  readonly credentials?: S3Credentials;
  /** Default `us-east-1`. */
  readonly region?: string;
  /** Milliseconds since 1970. Default `Date.now`. */
  readonly clock?: () => number;
}

async function readBody(message: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of message) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}

function rawRequest({ method = '', url = '', headers }: IncomingMessage, body: Buffer): RawRequest {
  const texts = Object.entries(headers).map(([name, value]) => [name, Array.isArray(value) ? value.join(',') : value]);
  return { method, target: url, headers: Object.fromEntries(texts) as Record<string, string>, body };
}

export class S3Server {
  readonly credentials: S3Credentials;
  readonly region: string;
  /** Requests in the order in which they arrived. */
  readonly log: LoggedRequest[] = [];
  /** May be changed while the server runs. */
  readonly dialect: S3Dialect;
  intercept: Intercept | undefined;
  /** What policies allow; may be changed while the server runs. Default: everything. */
  allows: ((access: Access) => boolean) | undefined;
  readonly #clock: () => number;
  readonly #buckets: Buckets;
  #server: Server | undefined;
  #port = 0;

  constructor(options: S3ServerOptions = {}) {
    this.credentials = options.credentials ?? { accessKeyId: 'test-key', secretAccessKey: 'test-secret' };
    this.region = options.region ?? 'us-east-1';
    this.dialect = { ...amazonDialect, ...options.dialect };
    this.#clock = options.clock ?? Date.now;
    this.#buckets = new Buckets(this.dialect);
    for (const name of options.buckets ?? ['test-bucket']) this.#buckets.create(name, this.#now());
  }

  get endpoint(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  /** A client for this server. */
  client(options: S3ClientConfig = {}): S3Client {
    const { endpoint, region, credentials } = this;
    return new S3Client({ endpoint, region, credentials, forcePathStyle: true, ...options });
  }

  clearLog(): void {
    this.log.length = 0;
  }

  /** What a bucket holds, in the order of the keys' UTF-8 bytes. */
  objects(bucket: string): Map<string, StoredObject> {
    const found = this.#buckets.get(bucket);
    return new Map(found.keys().map((key) => [key, found.get(key) as StoredObject]));
  }

  /** Multipart uploads that are neither completed nor aborted. */
  uploads(bucket: string): OpenUpload[] {
    return [...this.#buckets.get(bucket).uploads.values()];
  }

  async listen(): Promise<void> {
    const server = createServer();
    // A request that is still held back when its server ends must not take effect in the next one.
    server.on('request', (message: IncomingMessage, response: ServerResponse) => {
      this.#serve(server, message, response).catch((error: unknown) => {
        // A fault of the test itself: the run should fail with it, and not wait for an answer.
        message.destroy();
        throw error;
      });
    });
    server.keepAliveTimeout = 60_000;
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen(this.#port, '127.0.0.1', resolve);
    });
    this.#port = (server.address() as AddressInfo).port;
    this.#server = server;
  }

  /** Cuts all connections, and refuses new ones until `restart()`. Requests that are held back have no effect any more. */
  async close(): Promise<void> {
    const server = this.#server;
    if (server === undefined) return;
    this.#server = undefined;
    await new Promise<void>((resolve) => {
      server.close(() => resolve());
      server.closeAllConnections();
    });
  }

  /** Closes if need be, and starts again on the same port with everything that was stored. */
  async restart(): Promise<void> {
    await this.close();
    await this.listen();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  #now(): number {
    return this.#clock() + this.dialect.clockSkewMs;
  }

  async #serve(server: Server, message: IncomingMessage, response: ServerResponse): Promise<void> {
    let body: Buffer;
    try {
      body = await readBody(message);
    } catch {
      // The client gave up in the middle of the body, so there never was a request.
      return;
    }
    const raw = rawRequest(message, body);
    let request: S3Request;
    try {
      request = parseRequest(raw);
    } catch (error) {
      const nothing = { operation: undefined, bucket: '', key: '', path: Buffer.alloc(0), parameters: [], query: {} };
      request = { ...raw, ...nothing };
      this.#send(request, response, this.#log(request), refuseFor(request, error));
      return;
    }
    const entry = this.#log(request);
    const fault = (await this.intercept?.(request)) ?? undefined;
    if (typeof fault === 'object' && 'delayMs' in fault) await sleep(fault.delayMs);
    const outcome = this.#server === server ? await this.#handle(request, fault) : 'cut';
    if (outcome === 'cut') message.socket.resetAndDestroy();
    else this.#send(request, response, entry, outcome, fault === 'reset-during');
  }

  /** Does with a request what is to be done with it, and decides on the answer. */
  async #handle(request: S3Request, fault: Fault | undefined): Promise<Outcome | 'cut'> {
    const refusal = typeof fault === 'object' && 'status' in fault ? fault : undefined;
    if (fault === 'reset') return 'cut';
    if (refusal !== undefined && refusal.after !== true) {
      this.#forgetUpload(request, refusal.code);
      return refuse(request, refusal);
    }
    const { credentials, region, dialect } = this;
    const now = (): number => this.#now();
    const house = { buckets: this.#buckets, credentials, region, dialect, now, allows: this.allows };
    const outcome = await dispatch(request, house);
    if (fault === 'reset-after') return 'cut';
    return refusal === undefined ? outcome : refuse(request, refusal);
  }

  /** A conflict on completion ends the upload: Amazon says to begin again. */
  #forgetUpload({ operation, bucket, query }: S3Request, code: string): void {
    if (operation !== 'CompleteMultipartUpload' || code !== 'ConditionalRequestConflict') return;
    this.#buckets.get(bucket).uploads.delete(query['uploadId'] ?? '');
  }

  #log({ method, operation, bucket, key, query, headers, body }: S3Request): LogEntry {
    const nothing = { status: undefined, code: undefined, bytesOut: 0 };
    const entry: LogEntry = { method, operation, bucket, key, query, headers, bytesIn: body.length, ...nothing };
    this.log.push(entry);
    return entry;
  }

  /** Sends an answer; with `cutShort`, half of its body only. */
  #send(request: S3Request, response: ServerResponse, entry: LogEntry, outcome: Outcome, cutShort = false): void {
    const { status, headers = {}, sizeBytes, body: whole = Buffer.alloc(0) } = outcome.answer;
    const hasNoBody = request.method === 'HEAD' || status === 204 || status === 304;
    const body = hasNoBody ? Buffer.alloc(0) : whole;
    response.sendDate = false;
    response.statusCode = status;
    response.setHeader('x-amz-request-id', randomBytes(8).toString('hex').toUpperCase());
    const known = Object.entries(headers).filter((header): header is [string, string] => header[1] !== undefined);
    for (const [name, value] of known) response.setHeader(name, value);
    if (status !== 204 && status !== 304) response.setHeader('content-length', sizeBytes ?? body.length);
    response.setHeader('date', new Date(this.#now()).toUTCString());
    response.setHeader('server', 'S3Server');
    const sent = cutShort ? body.subarray(0, Math.floor(body.length / 2)) : body;
    Object.assign(entry, { status, code: outcome.code, bytesOut: sent.length });
    if (!cutShort) response.end(sent);
    else if (sent.length === 0) response.socket?.destroy();
    else response.write(sent, () => response.socket?.destroy());
  }
}

/** A server that listens. Close it, or declare it with `await using` where that is to be had. */
export async function startS3Server(options: S3ServerOptions = {}): Promise<S3Server> {
  const server = new S3Server(options);
  await server.listen();
  return server;
}
