/** The exports of `store-db/reader`: a reader of published bundles, for browsers, Workers and servers at the edge. */
export { openReader, type Reader, type ReaderFigures } from './reader/reader.ts';
export { browserCache, type BrowserCacheOptions } from './reader/browser-cache.ts';
export { snippet, type TextSnippet, type SnippetOptions } from './query/search/snippet.ts';
export type { ReaderOptions } from './reader/reader-options.ts';
export { readerSearch, type ReaderSearches } from './reader/reader-search.ts';
export {
  FetchDriver,
  type Fetch,
  type FetchDriverOptions,
  type FetchGetOptions,
  type FetchInit,
  type FetchResponse,
} from './storage/fetch-driver.ts';
