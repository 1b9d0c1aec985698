/** The options of `openReader()`. */
import type { Logger } from '../base/logger.ts';
import { kinds, OptionTable } from '../base/options.ts';
import type { CacheDriver } from '../storage/contract/driver.ts';
import type { ReaderSearches } from './reader-search.ts';
import type { Fetch } from '../storage/fetch-driver.ts';

/** Options of `openReader()`. */
export interface ReaderOptions {
  /** The function that sends requests. Default: the `fetch` of the runtime. */
  readonly fetch?: Fetch;
  /** A cache for blocks that stays when the page is closed. Default: none, apart from the HTTP cache of the browser. */
  readonly cache?: CacheDriver;
  /** Most bytes of memory that the reader may take: 1 MiB or more. Default 64 MiB. */
  readonly maxMemoryBytes?: number;
  /** The result of `readerSearch()`, for pages that search texts. Default: `query.search()` throws `NotSupportedError`. */
  readonly search?: ReaderSearches;
  /** Receives warnings, for instance of a cache that fails. Default: the console. */
  readonly logger?: Logger;
  /** Gives the opening up. */
  readonly signal?: AbortSignal;
}

/** Checked options. */
export interface CheckedReaderOptions extends ReaderOptions {
  readonly maxMemoryBytes: number;
}

const mebibyte = 1024 * 1024;

const readerOptions = new OptionTable<ReaderOptions>({
  fetch: kinds.callback,
  cache: kinds.methods('a cache driver', 'get', 'set', 'delete'),
  maxMemoryBytes: kinds.whole(mebibyte),
  search: kinds.methods('readerSearch()', 'written'),
  logger: kinds.methods('a logger', 'debug', 'info', 'warn', 'error'),
  signal: kinds.signal,
});

/** Throws `InvalidOptionError`. */
export function checkReaderOptions(given: ReaderOptions): CheckedReaderOptions {
  const options = readerOptions.check('openReader()', given);
  return { ...options, maxMemoryBytes: options.maxMemoryBytes ?? 64 * mebibyte };
}
