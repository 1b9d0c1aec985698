/** Finds the code for searches. */
import { NotSupportedError } from '../base/errors.ts';
import type { QueryHost, Searching } from './planner/query-host.ts';
import type * as SearchModule from './search-module.ts';

type SearchCode = typeof SearchModule.searchModule;

/** Returns the calls for searches of a host. Throws `NotSupportedError` if it has none. */
export function searchesOf({ searching }: QueryHost): Searching {
  if (searching === undefined)
    throw new NotSupportedError('A reader that searches is opened with `search: readerSearch()`.');
  return searching;
}

/** Returns the code that carries out searches. Throws `NotSupportedError` if the host has none. */
export async function searchCode(host: QueryHost): Promise<SearchCode> {
  return ((await searchesOf(host).code.get()) as typeof SearchModule).searchModule;
}
