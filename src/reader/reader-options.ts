/** The options of `openReader()`. */
import { InvalidOptionError } from '../base/errors.ts';
import type { Logger } from '../base/logger.ts';
import { describeValue } from '../base/messages.ts';
import { kinds, OptionTable } from '../base/options.ts';
import type { CacheDriver } from '../storage/contract/driver.ts';
import type { Fetch } from './fetch-driver.ts';

/** Options of `openReader()`. */
export interface ReaderOptions {
  /** The function that sends requests. Default: the `fetch` of the runtime. */
  readonly fetch?: Fetch;
  /** A cache for blocks that stays when the page is closed. Default: none, apart from the HTTP cache of the browser. */
  readonly cache?: CacheDriver;
  /** Most bytes of memory that the reader may take: 1 MiB or more. Default 64 MiB. */
  readonly maxMemoryBytes?: number;
  /** Receives warnings, for instance of a cache that fails. Default: the console. */
  readonly logger?: Logger;
  /** Gives the opening up. */
  readonly signal?: AbortSignal;
}

/** Checked options. */
export interface CheckedReaderOptions {
  readonly url: URL;
  readonly fetch: Fetch;
  readonly cache: CacheDriver | undefined;
  readonly maxMemoryBytes: number;
  readonly logger: Logger | undefined;
  readonly signal: AbortSignal | undefined;
}

const mebibyte = 1024 * 1024;

const readerOptions = new OptionTable<ReaderOptions>({
  fetch: kinds.callback,
  cache: kinds.methods('a cache driver', 'get', 'set', 'delete'),
  maxMemoryBytes: kinds.whole(mebibyte),
  logger: kinds.methods('a logger', 'debug', 'info', 'warn', 'error'),
  signal: kinds.signal,
});

/** Throws `InvalidOptionError`. */
export function checkReaderOptions(url: unknown, given: ReaderOptions): CheckedReaderOptions {
  const options = readerOptions.check('openReader()', given);
  return {
    url: checkUrl(url),
    fetch: options.fetch ?? ownFetch(),
    cache: options.cache,
    maxMemoryBytes: options.maxMemoryBytes ?? 64 * mebibyte,
    logger: options.logger,
    signal: options.signal,
  };
}

/** Returns the `fetch` of the runtime. It must be called with the global object as `this`. */
function ownFetch(): Fetch {
  const { fetch } = globalThis;
  if (typeof fetch === 'function') return (url, init) => globalThis.fetch(url, init);
  throw new InvalidOptionError('fetch', 'This runtime has no fetch(): give openReader() one with the option `fetch`.');
}

function checkUrl(url: unknown): URL {
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
    `openReader() takes the URL of a bundle, such as https://example.com/cities, and not ${describeValue(url)}.`,
  );
}
