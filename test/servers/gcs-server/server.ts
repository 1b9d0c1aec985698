/**
 * A small server for tests with the JSON API of Google Cloud Storage: in memory, on a port of its own. Conditions are checked and
 * writes made in one step once the whole body is there. Dialects make it behave otherwise, and `intercept` makes it fail. It refuses
 * parameters and fields that it does not know with 501, so that no test passes because something was ignored.
 */
import { generateKeyPairSync } from 'node:crypto';
import type { KeyObject } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { faultOf, handleWith } from '../http/faults.ts';
import type { FaultOf, InterceptOf } from '../http/faults.ts';
import { HttpFrame } from '../http/http-frame.ts';
import type { Reply } from '../http/http-frame.ts';
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

interface Refusal {
  readonly message?: string;
}

/** A fault of a request. */
export type Fault = FaultOf<Refusal>;

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

export class GcsServer extends HttpFrame {
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
  intercept: InterceptOf<GcsRequest, Refusal> | undefined;
  readonly bucket: GcsBucket;
  readonly #isOpen: boolean;

  constructor(options: GcsServerOptions = {}) {
    super();
    this.dialect = { ...googleDialect, ...options.dialect };
    this.bucket = new GcsBucket(options.bucket ?? 'test-bucket', this.dialect, () => this.now());
    this.#isOpen = options.isOpen ?? false;
    ({ privateKey: this.privateKey, publicKey: this.#publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 }));
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

  protected now(): number {
    return Date.now() + this.dialect.clockSkewMs;
  }

  protected async reply(message: IncomingMessage, body: Buffer, isOpen: () => boolean): Promise<Reply> {
    const { method = '', url = '' } = message;
    const request = parseRequest(method, url, message.headers as Record<string, string>, body);
    const { operation, key, query, headers } = request;
    const bytesIn = body.length;
    const entry: LoggedRequest = { method, operation, key, query, headers, bytesIn, status: undefined, bytesOut: 0 };
    this.log.push(entry);
    const fault = await faultOf(this.intercept, request);
    if (!isOpen()) return 'cut';
    const refuse = ({ status, message: said }: Refusal & { readonly status: number }): GcsAnswer =>
      errorAnswer(request, new GcsError(status, said));
    const answer = await handleWith(fault, refuse, () => this.#answer(request));
    if (answer === 'cut') return answer;
    const sent = (bytesOut: number): unknown => Object.assign(entry, { status: answer.status, bytesOut });
    return { answer, isCutShort: fault === 'reset-during', sent };
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
      checkSignedUrl(request, { email: this.email, publicKey: this.#publicKey }, this.now());
      return;
    }
    // The id of a session is a secret by itself.
    if (this.#isOpen || (operation.startsWith('session.') && request.query['upload_id'] !== undefined)) {
      if (authorization !== undefined) throw new GcsError(400, 'A token was sent where none is needed.');
      return;
    }
    if (authorization !== `Bearer ${this.token}`) throw new GcsError(401);
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
