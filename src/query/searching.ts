/** Searches, for hosts whose tables may have indexes on texts. Readers of bundles get it from the page, if the page searches. */
import { Later } from '../base/later.ts';
import { requireTextIndex, searchedTable, writtenSearch } from './conditions/search-options.ts';
import type { Searching } from './planner/query-host.ts';

/** Returns the calls for searches, and where their code comes from. */
export function newSearching(onlyOnUse: boolean): Searching {
  return {
    code: new Later('searches', () => import('./search-module.ts'), { onlyOnUse }),
    written: (host, table, text, options) => {
      const search = writtenSearch(text, options);
      const shape = host.shapeOf(table);
      if (shape !== undefined) requireTextIndex(searchedTable(host, shape), search.options);
      return search;
    },
  };
}

export const searching: Searching = newSearching(false);
