/** The code for searches, in one module: it is loaded by the first one. */
import { explainSearch } from './explain-search.ts';
import { rankedPage } from './ranked-page.ts';
import { highlight, searchRows } from './search/search-rows.ts';

export const searchModule: {
  readonly searchRows: typeof searchRows;
  readonly highlight: typeof highlight;
  readonly rankedPage: typeof rankedPage;
  readonly explainQuery: typeof explainSearch;
} = { searchRows, highlight, rankedPage, explainQuery: explainSearch };
