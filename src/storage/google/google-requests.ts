/**
 * Sends requests to the JSON API of Cloud Storage: adds the access token, gives every request a deadline, and retries only the
 * requests that the caller says are repeatable.
 */
import { untilAborted } from '../../base/abort.ts';
import { StorageError } from '../../base/errors.ts';
import { defined } from '../../base/options.ts';
import { RequestAttempts } from '../contract/request-attempts.ts';
import type { AttemptOptions } from '../contract/request-attempts.ts';
import { ResponseClock } from '../contract/store-clock.ts';
import { HttpConnection, readBytes, readText } from '../http/http-connection.ts';
import type { HttpResponse } from '../http/http-connection.ts';
import { GoogleAccess } from './google-access.ts';
import { readError, toStorageError } from './google-errors.ts';
import type { FailedRequest, GoogleResponseError } from './google-errors.ts';
import type { CheckedGoogleOptions } from './google-options.ts';

/** A request to the store. */
export interface GoogleRequest {
  /** The method by its name in the JSON API, for instance `objects.get`. */
  readonly operation: string;
  readonly key: string;
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE';
  /** Path and query. */
  readonly path: string;
  /** The server and path of an upload session, which need no access token. Default: the endpoint with `path`. */
  readonly session?: URL;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: Uint8Array;
}

/** How a request is sent. `sizeBytes` are the bytes that the store processes besides the body. */
export interface SendOptions extends AttemptOptions {
  /** Statuses besides 2xx that the caller reads. */
  readonly statuses?: readonly number[];
}

/** The head of a response, and what the caller has read of the body. */
export interface GoogleAnswer<T> {
  readonly status: number;
  readonly headers: HttpResponse['headers'];
  readonly body: T;
}

/** Longest response with an error, and longest JSON document, in bytes. */
const maxErrorBytes = 64 * 1024;
const maxJsonBytes = 16 * 1024 * 1024;

/** The requests of a driver. */
export class GoogleRequests {
  readonly bucket: string;
  readonly access: GoogleAccess;
  readonly #endpoint: URL;
  readonly #connection: HttpConnection;
  readonly #attempts: RequestAttempts;
  #underWay = 0;
  #isClosing = false;
  readonly #clock: ResponseClock;

  constructor(options: CheckedGoogleOptions) {
    this.bucket = options.bucket;
    this.access = new GoogleAccess(options);
    this.#endpoint = options.endpoint;
    this.#clock = new ResponseClock(() => options.environment.monotonicMs());
    this.#connection = new HttpConnection({ environment: options.environment });
    this.#attempts = new RequestAttempts(options.environment);
  }

  /** The store's time by the date of its last response; undefined before the first one. */
  get timeMs(): number | undefined {
    return this.#clock.timeMs;
  }

  /** Closes the connections once the running requests have ended. The next request opens others. */
  close(): void {
    this.#isClosing = true;
    this.#closeUnused();
  }

  #closeUnused(): void {
    if (!this.#isClosing || this.#underWay > 0) return;
    this.#isClosing = false;
    this.#connection.close();
  }

  /** Returns the path of a method of the API on an object of the bucket; without a key, on all of them. */
  path(key?: string, prefix = '/storage/v1'): string {
    const objects = `${prefix}/b/${encodeURIComponent(this.bucket)}/o`;
    return key === undefined ? objects : `${objects}/${encodeURIComponent(key)}`;
  }

  /** Sends a request and reads its response as JSON. Rejects as {@link send} does. */
  async json(request: GoogleRequest, options: SendOptions): Promise<GoogleAnswer<unknown>> {
    const answer = await this.send(request, options, ({ body }) => readText(body, maxJsonBytes));
    if (answer.body === '') return { ...answer, body: undefined };
    try {
      return { ...answer, body: JSON.parse(answer.body) as unknown };
    } catch (error) {
      const message = `The store answered ${request.operation} of ${request.key} with a text that is not JSON.`;
      const outcome = request.method === 'GET' ? 'none' : 'unknown';
      throw new StorageError(request.key, outcome, message, { cause: error });
    }
  }

  /**
   * Sends a request, and reads the response with `read`. Rejects with `StorageError`, except for errors that `isAnswer` accepts,
   * which are thrown as they are for the caller to read.
   */
  send<T>(
    request: GoogleRequest,
    options: SendOptions,
    read: (response: HttpResponse) => Promise<T>,
  ): Promise<GoogleAnswer<T>> {
    return this.#attempts.repeat(options, () => this.#sendOnce(request, options, read));
  }

  /**
   * Decides whether to send a failed request again that was first sent at `firstSentMs` on the monotonic clock. If so, pauses
   * first.
   */
  isWorthAnother(error: unknown, firstSentMs: number, tried: number, signal?: AbortSignal): Promise<boolean> {
    return this.#attempts.isWorthAnother(error, firstSentMs, tried, signal);
  }

  /** Sends a request once, within its deadline. */
  async #sendOnce<T>(
    request: GoogleRequest,
    options: SendOptions,
    read: (response: HttpResponse) => Promise<T>,
  ): Promise<GoogleAnswer<T>> {
    const { operation, key, session } = request;
    const failed: FailedRequest = { operation, bucket: this.bucket, key, isRead: request.method === 'GET' };
    const sizeBytes = (request.body?.length ?? 0) + (options.sizeBytes ?? 0);
    const failure = (error: unknown): StorageError => toStorageError(failed, error);
    this.#underWay++;
    try {
      const named = { operation, key, store: this.bucket };
      return await this.#attempts.once(named, { ...options, sizeBytes }, failure, async (signal, sending) => {
        const token = session === undefined ? await untilAborted(this.access.token(), signal) : undefined;
        sending();
        return this.#exchange(request, options, read, token, signal);
      });
    } finally {
      this.#underWay--;
      this.#closeUnused();
    }
  }

  async #exchange<T>(
    { method, path, session, headers = {}, body }: GoogleRequest,
    { statuses = [] }: SendOptions,
    read: (response: HttpResponse) => Promise<T>,
    token: string | undefined,
    signal: AbortSignal,
  ): Promise<GoogleAnswer<T>> {
    const response = await this.#connection.send({
      method,
      url: session ?? this.#endpoint,
      ...(session === undefined ? { path } : {}),
      headers: { ...headers, ...defined({ authorization: token === undefined ? undefined : `Bearer ${token}` }) },
      // Without a body, a POST would have no length.
      body: body ?? (method === 'GET' ? undefined : new Uint8Array(0)),
      signal,
    });
    const { status } = response;
    this.#clock.note(response.headers['date']);
    if ((status >= 200 && status <= 299) || statuses.includes(status)) {
      return { status, headers: response.headers, body: await read(response) };
    }
    throw await errorOf(response, token);
  }
}

/** Reads the error that a response reports. Only the beginning is read: not every server ends its response. */
async function errorOf(response: HttpResponse, token: string | undefined): Promise<GoogleResponseError> {
  const { status, headers, body } = response;
  const text = await readText(body, maxErrorBytes).catch(() => '');
  return readError(status, headers, text, token);
}

/** Reads a body that is of no interest, so that its connection is free again. */
export async function skipBody({ body }: HttpResponse): Promise<void> {
  await readBytes(body, maxErrorBytes);
}
