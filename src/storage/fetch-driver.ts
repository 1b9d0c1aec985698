/**
 * Reads objects with `fetch`, from any server that answers plain GETs: a bucket, a CDN, a folder of static files. It writes nothing and
 * lists nothing.
 */
import { anySignal } from '../base/abort.ts';
import { realEnvironment } from '../base/env.ts';
import type { Environment } from '../base/env.ts';
import { CorruptionError, InvalidOptionError, NotSupportedError, StorageError } from '../base/errors.ts';
import type { StorageFailure } from '../base/errors.ts';
import { messageOf } from '../base/brands.ts';
import { checksum, joinBytes } from '../base/bytes.ts';
import { describeValue } from '../base/messages.ts';
import { defined, kinds, OptionTable } from '../base/options.ts';
import type { GetOptions, GetResult, StorageDriver } from './contract/driver.ts';
import { RequestAttempts } from './contract/request-attempts.ts';
import { checkKey, MAX_WHOLE_BYTES } from './contract/requests.ts';

/** The parts of `fetch` that a {@link FetchDriver} uses. */
export type Fetch = (url: string, init: FetchInit) => Promise<FetchResponse>;

/** How a request is sent. */
export interface FetchInit {
  /** Headers of the request. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Whether the HTTP cache must ask the server before it answers. */
  readonly cache?: 'no-cache';
  /** Ends the request. */
  readonly signal: AbortSignal;
}

/** The parts of a response that the driver uses. */
export interface FetchResponse {
  /** The status, such as 200. */
  readonly status: number;
  /** The headers. */
  readonly headers: { get(name: string): string | null };
  /** The bytes, as a stream. */
  readonly body: ReadableStream<Uint8Array> | null;
}

/** Options of `get()` that only this driver has. */
export interface FetchGetOptions extends GetOptions {
  /** Most bytes to read: a longer object is an error, before it is read. Default: 512 MiB. */
  readonly maxBytes?: number;
}

const attempts = 4;
/** Requests that are sent at the same time: browsers allow six for each server with HTTP/1.1. */
const maxRequests = 8;

/** Lets a bounded number of requests run at the same time. */
class Slots {
  #free = maxRequests;
  readonly #waiting: (() => void)[] = [];

  #next(): Promise<void> {
    return new Promise((resolve) => {
      this.#waiting.push(resolve);
    });
  }

  async run<T>(work: () => Promise<T>): Promise<T> {
    if (this.#free > 0) this.#free--;
    else await this.#next();
    try {
      return await work();
    } finally {
      const next = this.#waiting.shift();
      if (next === undefined) this.#free++;
      else next();
    }
  }
}

function eitherSignal(a: AbortSignal | undefined, b: AbortSignal | undefined): AbortSignal | undefined {
  return a === undefined || b === undefined ? (a ?? b) : anySignal(a, b);
}

function reasonOf(status: number): StorageFailure | undefined {
  if (status === 401 || status === 403) return 'forbidden';
  if (status === 429) return 'throttled';
  return status >= 500 ? 'unavailable' : undefined;
}

/** Options of `FetchDriver`. */
export interface FetchDriverOptions {
  /** The URL that the keys of objects follow. Its query is sent with every request. */
  readonly url: string | URL;
  /** The function that sends requests. Default: the `fetch` of the runtime. */
  readonly fetch?: Fetch;
  /** Ends all requests. */
  readonly signal?: AbortSignal;
  /** Clock and timers. Default: the runtime's own. */
  readonly environment?: Environment;
}

const driverOptions = new OptionTable<FetchDriverOptions>({
  url: kinds.required(kinds.anything),
  fetch: kinds.callback,
  signal: kinds.signal,
  environment: kinds.environment,
});

/** Returns the `fetch` of the runtime. It must be called with the global object as `this`. */
function ownFetch(): Fetch {
  const { fetch } = globalThis;
  if (typeof fetch === 'function') return (url, init) => globalThis.fetch(url, init);
  throw new InvalidOptionError('fetch', 'This runtime has no fetch(): give one with the option `fetch`.');
}

/** Returns the URL of a place with objects. Throws `InvalidOptionError` for anything but a URL with `http:` or `https:`. */
export function checkUrl(callName: string, url: unknown): URL {
  const { document } = globalThis as { readonly document?: { readonly baseURI?: string } };
  let parsed: URL | undefined;
  try {
    // A URL of another realm is of another class.
    const text = typeof url === 'string' ? url : (url as Partial<URL> | null | undefined)?.href;
    if (typeof text === 'string') parsed = new URL(text, document?.baseURI);
  } catch {
    // The error below says more.
  }
  if (parsed !== undefined && /^https?:$/.test(parsed.protocol) && parsed.hash === '' && parsed.username === '') {
    return parsed;
  }
  throw new InvalidOptionError(
    'url',
    `Option \`url\` of ${callName} is ${describeValue(url)}; it must be the http or https URL that the names of objects follow, ` +
      'such as https://example.com/cities.',
  );
}

/** Whether an object never changes, so that caches need not ask the server: blocks and blobs, by their folders. */
function isImmutable(key: string): boolean {
  return /(?:^|\/)(?:data\/[^/]+|indexes\/[^/]+\/[^/]+|blobs|manifests|contents)\/[^/]+$/.test(key);
}

/**
 * Reads objects with plain GETs, from any server: a public bucket, a CDN, a web server. A replica can read a database with it, also in a
 * browser: `StoreDb({ role: 'replica', nodeId: 0, driver: new FetchDriver({ url: 'https://bucket.example.com' }), dbPrefix: 'app' })`. It cannot
 * write or list.
 */
export class FetchDriver implements StorageDriver {
  readonly name = 'fetch';
  readonly #base: string;
  readonly #query: string;
  readonly #fetch: Fetch;
  readonly #signal: AbortSignal | undefined;
  readonly #attempts: RequestAttempts;
  readonly #slots = new Slots();
  /** Requests sent. */
  requests = 0;
  /** Bytes received. */
  receivedBytes = 0;

  /** Throws `InvalidOptionError`. */
  constructor(options: FetchDriverOptions) {
    const { url, fetch, signal, environment = realEnvironment } = driverOptions.check('new FetchDriver()', options);
    const { origin, pathname, search } = checkUrl('new FetchDriver()', url);
    let end = pathname.length;
    while (pathname[end - 1] === '/') end--;
    this.#base = origin + pathname.slice(0, end);
    this.#query = search;
    this.#fetch = fetch ?? ownFetch();
    this.#signal = signal;
    this.#attempts = new RequestAttempts(environment);
  }

  /** Returns the URL of an object. */
  urlOf(key: string): string {
    return `${this.#base}/${key.split('/').map(encodeURIComponent).join('/')}${this.#query}`;
  }

  get(key: string, options: FetchGetOptions = {}): Promise<GetResult> {
    checkKey(key);
    return this.#slots.run(() => {
      const signal = eitherSignal(this.#signal, options.signal);
      return this.#attempts.repeat({ attempts, signal }, () => this.#once(key, options, signal));
    });
  }

  #once(key: string, options: FetchGetOptions, signal: AbortSignal | undefined): Promise<GetResult> {
    const failure = (error: unknown): StorageError => {
      if (error instanceof StorageError) return error;
      const message = `${this.urlOf(key)} cannot be read: ${messageOf(error)}`;
      return new StorageError(key, 'none', message, { cause: error, reason: 'unavailable' });
    };
    const request = { operation: 'GET', key, store: this.#base };
    const isAnswer = (error: unknown): boolean => error instanceof CorruptionError;
    return this.#attempts.once(request, { ...defined({ signal }), isAnswer }, failure, async (ends, sending) => {
      sending();
      this.requests++;
      return this.#send(key, options, ends);
    });
  }

  async #send(key: string, options: FetchGetOptions, signal: AbortSignal): Promise<GetResult> {
    const { range, ifNoneMatch, maxBytes = MAX_WHOLE_BYTES } = options;
    // One byte of an empty range shows whether the object is there, and how long it is.
    const end = range === undefined ? 0 : Math.max(range.end, range.start + 1);
    const headers = range === undefined ? undefined : { range: `bytes=${range.start}-${end - 1}` };
    const init = { signal, ...defined({ headers }), ...(!isImmutable(key) && { cache: 'no-cache' as const }) };
    const response = await this.#fetch(this.urlOf(key), init);
    const { status } = response;
    if (status === 404 || status === 410) return this.#dropped(response, { status: 'missing' });
    if (status !== 200 && status !== 206 && status !== 416) {
      await this.#dropped(response, undefined);
      const reason = reasonOf(status);
      const hint =
        reason === 'forbidden' ? '. A bucket that nobody may list answers so for an object that is missing' : '';
      const message = `${this.urlOf(key)} was answered with status ${status}${hint}.`;
      throw new StorageError(key, 'none', message, defined({ reason }));
    }
    const total = /\/(\d+)$/.exec(response.headers.get('content-range') ?? '')?.[1];
    const whole = status === 200;
    const bytes =
      status === 416 ? await this.#dropped(response, new Uint8Array(0)) : await this.#bytes(key, response, maxBytes);
    const wanted = range === undefined || !whole ? bytes : bytes.subarray(range.start, range.end);
    const length = range === undefined ? undefined : range.end - range.start;
    // A page of another origin does not see the header, unless the server exposes it.
    const etag = response.headers.get('etag') ?? `${checksum(bytes)}-${bytes.length}`;
    // The condition is not sent: a page of another origin would have to ask whether it may.
    if (etag === ifNoneMatch) return { status: 'unchanged' };
    return {
      status: 'found',
      bytes: length === undefined ? wanted : wanted.subarray(0, length),
      etag,
      sizeBytes: whole ? bytes.length : Number(total ?? bytes.length),
      lastModifiedMs: 0,
    };
  }

  /** Ends a response without reading its body. */
  async #dropped<T>({ body }: FetchResponse, value: T): Promise<T> {
    await body?.cancel().catch(() => undefined);
    return value;
  }

  /** Reads a body of at most `maxBytes`. */
  async #bytes(key: string, { body }: FetchResponse, maxBytes: number): Promise<Uint8Array> {
    if (body === null) return new Uint8Array(0);
    const reader = body.getReader();
    const pieces: Uint8Array[] = [];
    let length = 0;
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      length += value.length;
      this.receivedBytes += value.length;
      if (length > maxBytes) {
        await reader.cancel().catch(() => undefined);
        throw new CorruptionError(key, `The object is longer than the ${maxBytes} bytes that it may have`);
      }
      pieces.push(value);
    }
    return pieces.length === 1 ? (pieces[0] as Uint8Array) : joinBytes(pieces);
  }

  #refuse(): Promise<never> {
    return Promise.reject(new NotSupportedError('FetchDriver reads with plain GETs, and can neither write nor list.'));
  }

  put(): Promise<never> {
    return this.#refuse();
  }

  delete(): Promise<never> {
    return this.#refuse();
  }

  list(): Promise<never> {
    return this.#refuse();
  }
}
