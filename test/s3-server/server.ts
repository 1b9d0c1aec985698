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
import { Buckets } from './buckets.ts';
import type { OpenUpload, StoredObject } from './bucket.ts';
import { amazonDialect } from './dialect.ts';
import type { S3Dialect } from './dialect.ts';
import type { Exchange, Handler } from './exchange.ts';
import { listObjects } from './listing.ts';
import { abortUpload, completeUpload, createUpload, listParts, listUploads, uploadPart } from './multipart.ts';
import { deleteObject, deleteObjects, getObject, headObject, putObject } from './objects.ts';
import { readPayload, refuseChecksums } from './payload.ts';
import { S3Error } from './s3-error.ts';
import { checkKnown, parseRequest } from './s3-message.ts';
import type { RawRequest, S3Answer, S3Operation, S3Request } from './s3-message.ts';
import { verifySignature } from './signature.ts';
import type { S3Credentials } from './signature.ts';
import { writeXml } from './xml.ts';

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

export interface LoggedRequest {
  readonly method: string;
  /** Undefined where it is none that the server knows. */
  readonly operation: S3Operation | undefined;
  readonly bucket: string;
  readonly key: string;
  readonly query: Readonly<Record<string, string>>;
  readonly headers: Readonly<Record<string, string>>;
  /** Undefined where the connection was cut before an answer. */
  readonly status: number | undefined;
  /** The code of an error. */
  readonly code: string | undefined;
  /** Bytes of the bodies. */
  readonly bytesIn: number;
  readonly bytesOut: number;
}

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

interface Outcome {
  readonly answer: S3Answer;
  readonly code: string | undefined;
}

const handlers: Readonly<Partial<Record<S3Operation, Handler>>> = {
  AbortMultipartUpload: abortUpload,
  CompleteMultipartUpload: completeUpload,
  CreateMultipartUpload: createUpload,
  DeleteObject: deleteObject,
  DeleteObjects: deleteObjects,
  GetObject: getObject,
  HeadObject: headObject,
  ListMultipartUploads: listUploads,
  ListObjectsV2: listObjects,
  ListParts: listParts,
  PutObject: putObject,
  UploadPart: uploadPart,
};

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
  /** Requests that were answered or cut, in that order. */
  readonly log: LoggedRequest[] = [];
  /** May be changed while the server runs. */
  readonly dialect: S3Dialect;
  intercept: Intercept | undefined;
  readonly #clock: () => number;
  readonly #buckets: Buckets;
  readonly #clients = new Set<S3Client>();
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

  /** A client for this server, which `close()` destroys. */
  client(options: S3ClientConfig = {}): S3Client {
    const { endpoint, region, credentials } = this;
    const client = new S3Client({ endpoint, region, credentials, forcePathStyle: true, ...options });
    this.#clients.add(client);
    return client;
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
      void this.#serve(server, message, response);
    });
    server.keepAliveTimeout = 60_000;
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen(this.#port, '127.0.0.1', resolve);
    });
    this.#port = (server.address() as AddressInfo).port;
    this.#server = server;
  }

  /** Cuts all connections, and refuses new ones until `restart()`. Requests under way have no effect any more. */
  async stop(): Promise<void> {
    const server = this.#server;
    if (server === undefined) return;
    this.#server = undefined;
    await new Promise<void>((resolve) => {
      server.close(() => resolve());
      server.closeAllConnections();
    });
  }

  /** Stops if need be, and starts again on the same port with everything that was stored. */
  async restart(): Promise<void> {
    await this.stop();
    await this.listen();
  }

  async close(): Promise<void> {
    for (const client of this.#clients) client.destroy();
    this.#clients.clear();
    await this.stop();
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
      this.#send(request, response, this.#refusal(request, error));
      return;
    }
    const fault = (await this.intercept?.(request)) ?? undefined;
    if (typeof fault === 'object' && 'delayMs' in fault) await sleep(fault.delayMs);
    if (this.#server !== server) return;
    if (fault === 'reset') {
      this.#note(request, undefined, undefined, 0);
      message.socket.resetAndDestroy();
      return;
    }
    const answersAtOnce = typeof fault === 'object' && 'status' in fault && fault.after !== true;
    const outcome = answersAtOnce ? undefined : await this.#handle(request);
    if (this.#server !== server) return;
    if (fault === 'reset-after') {
      this.#note(request, undefined, outcome?.code, 0);
      message.socket.resetAndDestroy();
    } else if (fault === 'reset-during' && outcome !== undefined) {
      this.#cutAnswer(request, response, outcome);
    } else if (typeof fault === 'object' && 'status' in fault) {
      this.#send(request, response, this.#faultOutcome(request, fault));
    } else if (outcome !== undefined) {
      this.#send(request, response, outcome);
    }
  }

  async #handle(request: S3Request): Promise<Outcome> {
    try {
      return { answer: await this.#perform(request), code: undefined };
    } catch (error) {
      return this.#refusal(request, error);
    }
  }

  async #perform(request: S3Request): Promise<S3Answer> {
    const { credentials, region, dialect } = this;
    const payloadHash = verifySignature(request, { credentials, region, nowMs: this.#now() });
    const operation = checkKnown(request);
    if (request.method !== 'GET' && request.method !== 'HEAD') refuseChecksums(request, dialect);
    const payload = readPayload(request, payloadHash);
    if (operation === 'ListBuckets') return this.#buckets.list();
    if (operation === 'CreateBucket') return this.#buckets.create(request.bucket, this.#now());
    const bucket = this.#buckets.get(request.bucket);
    const exchange: Exchange = { request, payload, bucket, dialect, now: () => this.#now() };
    if (operation === 'DeleteBucket') return this.#buckets.delete(exchange);
    if (operation === 'HeadBucket') return this.#buckets.head(exchange, region);
    return (handlers[operation] as Handler)(exchange);
  }

  #refusal(request: S3Request, thrown: unknown): Outcome {
    const error = thrown instanceof S3Error ? thrown : undefined;
    const code = error?.code ?? 'InternalError';
    const details = error?.details ?? { Stack: thrown instanceof Error ? thrown.stack : String(thrown) };
    const message = error?.message ?? 'The test server failed.';
    return this.#errorOutcome(request, { status: error?.status ?? 500, code, message, details });
  }

  #faultOutcome(request: S3Request, fault: Extract<Fault, { status: number }>): Outcome {
    return this.#errorOutcome(request, { ...fault, message: `${fault.code} on demand`, details: {} });
  }

  #errorOutcome(
    request: S3Request,
    error: Omit<Extract<Fault, { status: number }>, 'after'> & {
      readonly message: string;
      readonly details: S3Error['details'];
    },
  ): Outcome {
    const { status, code, message, details, headers } = error;
    const Resource = `/${request.bucket}${request.key === '' ? '' : `/${request.key}`}`;
    const requestId = randomBytes(8).toString('hex').toUpperCase();
    const fields = { Code: code, Message: message, ...details, Resource, RequestId: requestId };
    return {
      code,
      answer: {
        status,
        headers: { 'content-type': 'application/xml', 'x-amz-request-id': requestId, ...headers },
        body: Buffer.from(writeXml('Error', fields)),
      },
    };
  }

  #note(request: S3Request, status: number | undefined, code: string | undefined, bytesOut: number): void {
    const { method, operation, bucket, key, query, headers, body } = request;
    this.log.push({ method, operation, bucket, key, query, headers, status, code, bytesIn: body.length, bytesOut });
  }

  #writeHead(request: S3Request, response: ServerResponse, answer: S3Answer): Buffer {
    const { status, headers = {}, sizeBytes } = answer;
    const hasNone = request.method === 'HEAD' || status === 204 || status === 304;
    const body = hasNone ? Buffer.alloc(0) : (answer.body ?? Buffer.alloc(0));
    response.sendDate = false;
    response.statusCode = status;
    response.setHeader('x-amz-request-id', randomBytes(8).toString('hex').toUpperCase());
    const known = Object.entries(headers).filter((entry): entry is [string, string] => entry[1] !== undefined);
    for (const [name, value] of known) response.setHeader(name, value);
    if (hasNone && status >= 400) response.removeHeader('content-type');
    if (status !== 204 && status !== 304) response.setHeader('content-length', sizeBytes ?? body.length);
    response.setHeader('date', new Date(this.#now()).toUTCString());
    response.setHeader('server', 'S3Server');
    return body;
  }

  #send(request: S3Request, response: ServerResponse, { answer, code }: Outcome): void {
    const body = this.#writeHead(request, response, answer);
    this.#note(request, answer.status, code, body.length);
    response.end(body);
  }

  /** Sends half of the body and cuts the connection. */
  #cutAnswer(request: S3Request, response: ServerResponse, { answer, code }: Outcome): void {
    const body = this.#writeHead(request, response, answer);
    const half = body.subarray(0, Math.floor(body.length / 2));
    this.#note(request, answer.status, code, half.length);
    response.flushHeaders();
    response.write(half, () => response.socket?.destroy());
  }
}

/** A server that listens. Close it, or declare it with `await using` where that is to be had. */
export async function startS3Server(options: S3ServerOptions = {}): Promise<S3Server> {
  const server = new S3Server(options);
  await server.listen();
  return server;
}
