/**
 * Carries out a search on a state of its table: finds the rows by the index, and plans how they are read in the order of their scores. Also
 * finds the words in the texts of a row.
 */
import { InvalidQueryError } from '../../base/errors.ts';
import { describeValue } from '../../base/messages.ts';
import { Pacer } from '../../base/pacer.ts';
import { Scratch } from '../../cache/memory-budget.ts';
import type { TextFields } from '../../schema/text-fields.ts';
import { prepareTexts } from '../../schema/text-indexes.ts';
import type { TableState } from '../../view/table-state.ts';
import { filterOf } from '../conditions/condition.ts';
import type { Condition } from '../conditions/condition.ts';
import type { Filter } from '../conditions/filter.ts';
import type { QueryWork } from '../operators/row-batch.ts';
import type { CompiledQuery, Plan } from '../planner/access-paths.ts';
import { effectiveOrder } from '../planner/access-paths.ts';
import { compiledQuery } from '../planner/plan-cache.ts';
import type { QueryHost } from '../planner/query-host.ts';
import { unexpired } from '../planner/query-spec.ts';
import type { WrittenQuery } from '../planner/query-spec.ts';
import { corpusOf } from './corpus.ts';
import { pagedRows } from './ranked-pages.ts';
import type { PagedRows } from './ranked-pages.ts';
import { RowSearch } from './find-rows.ts';
import type { RankedRows } from './ranked-rows.ts';
import { RankedStream } from './ranked-stream.ts';
import { CompiledSearch } from './compiled-search.ts';
import { requireTextIndex, searchedShape } from '../conditions/search-options.ts';
import type { RankedPlace, SearchedIndex, TextSpan, WrittenSearch } from '../conditions/search-options.ts';

/** A search that was carried out in the index. */
export interface SearchedRows {
  readonly query: CompiledQuery;
  readonly plan: Plan;
  /** The entries of the index that were read. */
  readonly entries: number;
}

/** Finds the rows of a search, and plans how they are read. `signal`: gives up. */
export async function searchRows(
  host: QueryHost,
  state: TableState,
  written: WrittenQuery,
  search: WrittenSearch,
  signal: AbortSignal | undefined,
): Promise<SearchedRows> {
  const { shape } = state;
  // An index that is registered and not there yet has no entries: all rows are read.
  const searched = requireTextIndex(searchedShape(host, shape), search.options);
  await prepareTexts([searched.index]);
  const compiled = new CompiledSearch(searched, search);
  const query = await compiledQuery(host, shape, unexpired(host, shape, written), signal);
  const order = effectiveOrder(shape, query);
  const isRanked = written.orders.length === 0;
  // A phrase is looked for in the rows that have its words.
  const residual: readonly Condition[] = compiled.hasPhrases
    ? [...query.conditions, compiled.condition]
    : query.conditions;
  const isLimited = isRanked && residual.length === 0 && query.limit !== undefined && query.counts !== true;
  const most = isLimited ? (query.limit ?? 0) + query.offset : Number.POSITIVE_INFINITY;
  const pages = search.page && { place: search.page.placeIn(shape) };
  const { found, entries, rows } = await foundRows(host, state, searched, { compiled, most, signal, pages });
  const access: Plan['access'] = {
    kind: 'search',
    index: searched.index,
    total: found.total,
    describe: (table) => [
      `Finds ${found.total} ${found.total === 1 ? 'row' : 'rows'} by the words in index '${searched.index.name}'.`,
      `Looks up their rows in '${table}'.`,
    ],
    open: (on, filter, work) => new RankedStream(on, rows ?? found, filter as Filter, work as QueryWork),
    ...(rows !== undefined && { placeOf: (key) => rows.placeOf(key) }),
  };
  const covered = compiled.hasPhrases ? [] : [compiled.condition];
  const plan: Plan = { access, covered, residual, ordered: isRanked, order, use: undefined };
  return { query: { ...query, conditions: [...query.conditions, compiled.condition] }, plan, entries };
}

async function foundRows(
  { environment }: QueryHost,
  state: TableState,
  { index, weights }: SearchedIndex,
  options: {
    readonly compiled: CompiledSearch;
    readonly most: number;
    readonly signal: AbortSignal | undefined;
    /** The place behind which a page begins. */
    readonly pages: { readonly place: RankedPlace | undefined } | undefined;
  },
): Promise<{ readonly found: RankedRows; readonly rows: PagedRows | undefined; readonly entries: number }> {
  const { compiled, most, signal, pages } = options;
  const pacer = new Pacer(environment);
  const scratch = new Scratch(state.tree.source.memory);
  const breathe = (): void | Promise<void> => {
    signal?.throwIfAborted();
    return pacer.due() ? pacer.pause() : undefined;
  };
  try {
    const corpus = await corpusOf(state, index, { pacer, scratch, breathe });
    const words = await compiled.wordsIn(corpus, breathe);
    let entries = 0;
    const find = async (wanted: number): Promise<RankedRows> => {
      const search = new RowSearch(corpus, { weights, most: wanted, pacer, scratch, breathe });
      const found = await search.find(words);
      entries += search.entries;
      return found;
    };
    if (pages === undefined) return { found: await find(most), rows: undefined, entries };
    const isThere = async (key: Uint8Array): Promise<boolean> => {
      const row = await state.lookup(key);
      return row !== undefined && filterOf([compiled.condition]).matches(row.source, row.base);
    };
    return { ...(await pagedRows(pages.place, most, { find, isThere, breathe })), entries };
  } finally {
    scratch.release();
  }
}

/**
 * Returns where the words of a search are in the texts that an object has in the searched fields, by the name of the field. Rejects with
 * `InvalidQueryError`.
 */
export async function highlight(
  host: QueryHost,
  table: string,
  search: WrittenSearch | undefined,
  row: unknown,
): Promise<Record<string, readonly TextSpan[]>> {
  if (search === undefined) throw new InvalidQueryError('highlight() takes a query with search().');
  if (typeof row !== 'object' || row === null) {
    throw new InvalidQueryError(`highlight() takes a row, not ${describeValue(row)}.`);
  }
  const stored = host.shapeOf(table) ?? (await host.tableState(table)).shape;
  const searched = requireTextIndex(searchedShape(host, stored), search.options);
  await prepareTexts([searched.index]);
  const compiled = new CompiledSearch(searched, search);
  const { fields } = searched.index.text as TextFields;
  const spans: Record<string, readonly TextSpan[]> = {};
  for (const [i, { name }] of fields.entries()) {
    const text = Object.hasOwn(row, name) ? (row as Record<string, unknown>)[name] : undefined;
    if (typeof text === 'string' && (searched.weights[i] as number) > 0) spans[name] = compiled.spansIn(text);
  }
  return spans;
}
