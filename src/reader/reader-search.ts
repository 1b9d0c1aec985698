/** The searches of a reader. A page that does not search does not load this: it is imported by the page, not by the reader. */
import type { Searching } from '../query/planner/query-host.ts';
import { newSearching } from '../query/searching.ts';

/** The searches of a reader, as `readerSearch()` returns them: for the option `search` of `openReader()`. */
export interface ReaderSearches {
  /** @hidden */
  readonly code: Searching['code'];
  /** @hidden */
  readonly written: Searching['written'];
}

/**
 * Returns the searches of a reader: `openReader(url, { search: readerSearch() })`. The code that carries them out is a file of its own, which
 * the first search loads by `import()`; so is that of the language, other than English, whose endings the searched index knows.
 */
export function readerSearch(): ReaderSearches {
  return newSearching(true);
}
