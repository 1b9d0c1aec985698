/**
 * A small server for tests with the JSON API of Google Cloud Storage: in memory, on a port of its own. Conditions are checked and
 * writes made in one step once the whole body is there. Dialects make it behave otherwise, and `intercept` makes it fail. It refuses
 * parameters and fields that it does not know with 501, so that no test passes because something was ignored.
 */
import { generateKeyPairSync } from 'node:crypto';
import type { KeyObject } from 'node:crypto';
import { createServer } from 'node:http';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { GcsBucket } from './bucket.ts';
import type { GcsObject, Query } from './bucket.ts';
import { googleDialect } from './dialect.ts';
import type { GcsDialect } from './dialect.ts';
import { GcsError } from './gcs-error.ts';
import { checkKnown, parseRequest } from './gcs-message.ts';
import type { GcsAnswer, GcsOperation, GcsRequest } from './gcs-message.ts';
import { deleteObject, downloadLink, downloadObject, getObject, listObjects, rewriteObject } from './objects.ts';
import { checkSignedUrl } from './signed-urls.ts';
import { endSession, insertObject, openSession, putChunk } from './uploads.ts';

/**
 * A fault of a request.
 * - A status: it is answered so; with `after`, only once it was handled.
 * - `reset`: the connection is cut before it is handled; `reset-after`: handled, and cut instead of answered;
 *   `reset-during`: handled, and cut in the middle of the answer's body.
 * - `delayMs`: it is handled so much later.
 */
export type Fault =
  | 'reset'
  | 'reset-after'
  | 'reset-during'
  | { readonly status: number; readonly after?: boolean; readonly message?: string }
  | { readonly delayMs: number };

/** Asked about every request once its body is there. A promise holds the request back until it settles. */
export type Intercept = (request: GcsRequest) => Fault | undefined | void | Promise<Fault | undefined | void>;

/** A request once its body was there. */
export interface LoggedRequest {
  readonly method: string;
  /** Undefined where it is none that the server knows. */
  readonly operation: GcsOperation | undefined;
  readonly key: string;
  readonly query: Query;
  readonly headers: GcsRequest['headers'];
  readonly bytesIn: number;
  /** Undefined where there was no answer, or is none yet. */
  status: number | undefined;
  bytesOut: number;
}

export interface GcsServerOptions {
  readonly dialect?: Partial<GcsDialect>;
  /** Default `test-bucket`. */
  readonly bucket?: string;
  /** Whether requests need no token, as those to an emulator. Default false. */
  readonly isOpen?: boolean;
}

type Handler = (request: GcsRequest, bucket: GcsBucket) => GcsAnswer | Promise<GcsAnswer>;

const handlers: Readonly<Record<GcsOperation, Handler>> = {
  get: getObject,
  download: downloadObject,
  insert: insertObject,
  'session.open': openSession,
  'session.put': putChunk,
  'session.end': endSession,
  delete: deleteObject,
  list: listObjects,
  rewrite: rewriteObject,
  link: downloadLink,
};

async function readBody(message: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of message) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}

export class GcsServer {
  /** The access token that requests must have. */
  readonly token = 'ya29.test-token-of-the-server';
  /** The service account whose signed URLs are valid. */
  readonly email = 'signer@project.iam.gserviceaccount.com';
  /** Its key. */
  readonly privateKey: KeyObject;
  readonly #publicKey: KeyObject;
  /** Requests in the order in which they arrived. */
  readonly log: LoggedRequest[] = [];
  /** May be changed while the server runs. */
  readonly dialect: GcsDialect;
  intercept: Intercept | undefined;
  readonly bucket: GcsBucket;
  readonly #isOpen: boolean;
  #server: Server | undefined;
  #port = 0;

  constructor(options: GcsServerOptions = {}) {
    this.dialect = { ...googleDialect, ...options.dialect };
    this.bucket = new GcsBucket(options.bucket ?? 'test-bucket', this.dialect, () => this.#now());
    this.#isOpen = options.isOpen ?? false;
    ({ privateKey: this.privateKey, publicKey: this.#publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 }));
  }

  get endpoint(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  get objects(): ReadonlyMap<string, GcsObject> {
    return this.bucket.objects;
  }

  clearLog(): void {
    this.log.length = 0;
  }

  /** Returns how many requests of an operation have arrived. */
  count(operation: GcsOperation): number {
    return this.log.filter((request) => request.operation === operation).length;
  }

  async listen(): Promise<void> {
    const server = createServer();
    server.on('request', (message: IncomingMessage, response: ServerResponse) => {
      this.#serve(server, message, response).catch((error: unknown) => {
        // A fault of the test itself: the run should fail with it, and not wait for an answer.
        message.destroy();
        throw error;
      });
    });
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen(this.#port, '127.0.0.1', resolve);
    });
    this.#port = (server.address() as AddressInfo).port;
    this.#server = server;
  }

  /** Cuts all connections. Requests that are held back have no effect any more. */
  async close(): Promise<void> {
    const server = this.#server;
    if (server === undefined) return;
    this.#server = undefined;
    await new Promise<void>((resolve) => {
      server.close(() => resolve());
      server.closeAllConnections();
    });
  }

  /** Starts again on the same port with everything that was stored. */
  async restart(): Promise<void> {
    await this.close();
    await this.listen();
  }

  #now(): number {
    return Date.now() + this.dialect.clockSkewMs;
  }

  async #serve(server: Server, message: IncomingMessage, response: ServerResponse): Promise<void> {
    let body: Buffer;
    try {
      body = await readBody(message);
    } catch {
      // The client gave up in the middle of the body, so there never was a request.
      return;
    }
    const { method = '', url = '' } = message;
    const request = parseRequest(method, url, message.headers as Record<string, string>, body);
    const { operation, key, query, headers } = request;
    const bytesIn = body.length;
    const entry: LoggedRequest = { method, operation, key, query, headers, bytesIn, status: undefined, bytesOut: 0 };
    this.log.push(entry);
    const fault = (await this.intercept?.(request)) ?? undefined;
    if (typeof fault === 'object' && 'delayMs' in fault) await sleep(fault.delayMs);
    const answer = this.#server === server ? await this.#handle(request, fault) : 'cut';
    if (answer === 'cut') message.socket.resetAndDestroy();
    else this.#send(response, entry, answer, fault === 'reset-during');
  }

  async #handle(request: GcsRequest, fault: Fault | undefined): Promise<GcsAnswer | 'cut'> {
    const refusal = typeof fault === 'object' && 'status' in fault ? fault : undefined;
    if (fault === 'reset') return 'cut';
    const refused = refusal && errorAnswer(request, new GcsError(refusal.status, refusal.message));
    if (refused !== undefined && refusal?.after !== true) return refused;
    const answer = await this.#answer(request);
    if (fault === 'reset-after') return 'cut';
    return refused ?? answer;
  }

  async #answer(request: GcsRequest): Promise<GcsAnswer> {
    try {
      const operation = checkKnown(request);
      this.#checkAccess(request, operation);
      if (request.bucket !== this.bucket.name) throw new GcsError(404, 'The specified bucket does not exist.');
      return await handlers[operation](request, this.bucket);
    } catch (error) {
      if (!(error instanceof GcsError)) throw error;
      // Only a caller who may list learns that there is no object.
      const isHidden = error.status === 404 && this.dialect.noList;
      return errorAnswer(request, isHidden ? new GcsError(403) : error);
    }
  }

  #checkAccess(request: GcsRequest, operation: GcsOperation): void {
    const { authorization } = request.headers;
    if (operation === 'link') {
      checkSignedUrl(request, { email: this.email, publicKey: this.#publicKey }, this.#now());
      return;
    }
    // The id of a session is a secret by itself.
    if (this.#isOpen || (operation.startsWith('session.') && request.query['upload_id'] !== undefined)) {
      if (authorization !== undefined) throw new GcsError(400, 'A token was sent where none is needed.');
      return;
    }
    if (authorization !== `Bearer ${this.token}`) throw new GcsError(401);
  }

  /** Sends an answer; with `cutShort`, half of its body only. */
  #send(response: ServerResponse, entry: LoggedRequest, answer: GcsAnswer, cutShort: boolean): void {
    const { status, headers = {}, body: whole = Buffer.alloc(0) } = answer;
    const body = status === 204 || status === 304 ? Buffer.alloc(0) : whole;
    response.sendDate = false;
    response.statusCode = status;
    const known = Object.entries(headers).filter((header): header is [string, string] => header[1] !== undefined);
    for (const [name, value] of known) response.setHeader(name, value);
    if (status !== 204 && status !== 304) response.setHeader('content-length', body.length);
    response.setHeader('date', new Date(this.#now()).toUTCString());
    const sent = cutShort ? body.subarray(0, Math.floor(body.length / 2)) : body;
    entry.status = status;
    entry.bytesOut = sent.length;
    if (!cutShort) response.end(sent);
    else if (sent.length === 0) response.socket?.destroy();
    else response.write(sent, () => response.socket?.destroy());
  }
}

/** Downloads report errors as text, everything else as a document. */
function errorAnswer({ operation }: GcsRequest, error: GcsError): GcsAnswer {
  const isText = operation === 'download' || operation === 'link';
  const type = isText ? 'text/html; charset=UTF-8' : 'application/json; charset=UTF-8';
  return {
    status: error.status,
    headers: { 'content-type': type },
    body: Buffer.from(isText ? error.message : error.json),
  };
}

/** Starts a server. Close it. */
export async function startGcsServer(options: GcsServerOptions = {}): Promise<GcsServer> {
  const server = new GcsServer(options);
  await server.listen();
  return server;
}
