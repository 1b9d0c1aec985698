/** Searches, for hosts whose tables may have indexes on texts. Readers of bundles do not import it: no bundle has such an index. */
import { Later } from '../base/later.ts';
import { requireTextIndex, searchedShape, writtenSearch } from './conditions/search-options.ts';
import type { Searching } from './planner/query-host.ts';

export const searching: Searching = {
  code: new Later('searches', () => import('./search-module.ts')),
  written: (host, table, text, options) => {
    const search = writtenSearch(text, options);
    const shape = host.shapeOf(table);
    if (shape !== undefined) requireTextIndex(searchedShape(host, shape), search.options);
    return search;
  },
};
