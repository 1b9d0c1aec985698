/**
 * A small S3 server for tests: in memory, with the semantics of Amazon S3, on a port of its own. Conditions are checked
 * and writes made in one step once the whole body is there. Dialects make it behave like other stores, and `intercept`
 * makes it fail. What it does not know it refuses with 501, so that no test passes because something was ignored.
 */
import { randomBytes } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { S3Client } from '@aws-sdk/client-s3';
import type { S3ClientConfig } from '@aws-sdk/client-s3';
import { faultOf, handleWith } from '../http/faults.ts';
import type { FaultOf, InterceptOf } from '../http/faults.ts';
import { HttpFrame } from '../http/http-frame.ts';
import type { Reply } from '../http/http-frame.ts';
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

interface Refusal {
  readonly code: string;
  readonly headers?: S3Answer['headers'];
}

/** What happens to a request, other than that it is handled. */
export type Fault = FaultOf<Refusal>;

/** Asked about every request once its body is there. */
export type Intercept = InterceptOf<S3Request, Refusal>;

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

const noBytes = Buffer.alloc(0);

function rawRequest({ method = '', url = '', headers }: IncomingMessage, body: Buffer): RawRequest {
  const texts = Object.entries(headers).map(([name, value]) => [name, Array.isArray(value) ? value.join(',') : value]);
  return { method, target: url, headers: Object.fromEntries(texts) as Record<string, string>, body };
}

export class S3Server extends HttpFrame {
  readonly credentials: S3Credentials;
  readonly region: string;
  /** Requests in the order in which they arrived. */
  readonly log: LoggedRequest[] = [];
  /** May be changed while the server runs. */
  readonly dialect: S3Dialect;
  intercept: Intercept | undefined;
  /** What policies allow; may be changed while the server runs. Default: everything. */
  allows: ((access: Access) => boolean) | undefined;
  /** The objects that anybody may read, as a bucket policy says; may be changed while the server runs. Default: none. */
  isPublic: ((bucket: string, key: string) => boolean) | undefined;
  /** The origin whose pages may read, as the CORS rules of the buckets say; may be changed while the server runs. Default: none. */
  allowedOrigin: string | undefined;
  readonly #clock: () => number;
  readonly #buckets: Buckets;

  constructor(options: S3ServerOptions = {}) {
    super();
    this.credentials = options.credentials ?? { accessKeyId: 'test-key', secretAccessKey: 'test-secret' };
    this.region = options.region ?? 'us-east-1';
    this.dialect = { ...amazonDialect, ...options.dialect };
    this.#clock = options.clock ?? Date.now;
    this.#buckets = new Buckets(this.dialect);
    for (const name of options.buckets ?? ['test-bucket']) this.#buckets.create(name, this.now());
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

  protected now(): number {
    return this.#clock() + this.dialect.clockSkewMs;
  }

  protected async reply(message: IncomingMessage, body: Buffer, isOpen: () => boolean): Promise<Reply> {
    const { method, headers } = message;
    const cors = this.#corsFor(headers.origin);
    if (method === 'OPTIONS') {
      const preflight = { ...cors, 'access-control-allow-methods': 'GET, HEAD', 'access-control-allow-headers': '*' };
      const answer = {
        status: cors === undefined ? 403 : 200,
        headers: cors === undefined ? {} : preflight,
        body: noBytes,
      };
      return { answer, isCutShort: false, sent: () => undefined };
    }
    const reply = await this.#reply(message, body, isOpen);
    if (reply === 'cut' || cors === undefined) return reply;
    return { ...reply, answer: { ...reply.answer, headers: { ...reply.answer.headers, ...cors } } };
  }

  #corsFor(origin: string | undefined): Readonly<Record<string, string>> | undefined {
    if (origin === undefined || origin !== this.allowedOrigin) return undefined;
    return {
      'access-control-allow-origin': origin,
      'access-control-expose-headers': 'ETag, Content-Range',
      vary: 'Origin',
    };
  }

  async #reply(message: IncomingMessage, body: Buffer, isOpen: () => boolean): Promise<Reply> {
    const raw = rawRequest(message, body);
    let request: S3Request;
    try {
      request = parseRequest(raw);
    } catch (error) {
      const nothing = { operation: undefined, bucket: '', key: '', path: Buffer.alloc(0), parameters: [], query: {} };
      request = { ...raw, ...nothing };
      return replyWith(refuseFor(request, error), this.#log(request), false);
    }
    const entry = this.#log(request);
    const fault = await faultOf(this.intercept, request);
    const outcome = isOpen() ? await this.#handle(request, fault) : 'cut';
    return outcome === 'cut' ? outcome : replyWith(outcome, entry, fault === 'reset-during');
  }

  /** Does with a request what is to be done with it, and decides on the answer. */
  #handle(request: S3Request, fault: Fault | undefined): Promise<Outcome | 'cut'> {
    const { credentials, region, dialect } = this;
    const now = (): number => this.now();
    const { allows, isPublic } = this;
    const house = { buckets: this.#buckets, credentials, region, dialect, now, allows, isPublic };
    return handleWith<Refusal, Outcome>(
      fault,
      (refusal) => {
        if (refusal.after !== true) this.#forgetUpload(request, refusal.code);
        return refuse(request, refusal);
      },
      () => dispatch(request, house),
    );
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
}

function replyWith({ answer, code }: Outcome, entry: LogEntry, isCutShort: boolean): Reply {
  const { status, headers } = answer;
  const id = randomBytes(8).toString('hex').toUpperCase();
  return {
    answer: { ...answer, headers: { 'x-amz-request-id': id, ...headers, server: 'S3Server' } },
    isCutShort,
    sent: (bytesOut) => Object.assign(entry, { status, code, bytesOut }),
  };
}

/** A server that listens. Close it, or declare it with `await using` where that is to be had. */
export async function startS3Server(options: S3ServerOptions = {}): Promise<S3Server> {
  const server = new S3Server(options);
  await server.listen();
  return server;
}
