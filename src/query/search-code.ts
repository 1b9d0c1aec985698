/** Finds the code for searches. */
import { NotSupportedError } from '../base/errors.ts';
import type { QueryHost, Searching } from './planner/query-host.ts';
import type * as SearchModule from './search/search-rows.ts';

type SearchCode = typeof SearchModule;

/** Returns the calls for searches of a host. Throws `NotSupportedError` if it has none. */
export function searchesOf({ searching }: QueryHost): Searching {
  if (searching === undefined) throw new NotSupportedError('Bundles have no index for search().');
  return searching;
}

/** Returns the code that carries out searches. Throws `NotSupportedError` if the host has none. */
export function searchCode(host: QueryHost): SearchCode | Promise<SearchCode> {
  return searchesOf(host).code.get() as SearchCode | Promise<SearchCode>;
}
