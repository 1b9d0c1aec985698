/**
 * Carries out a search on a state of its table: finds the rows by the index, and plans how they are read in the order of their scores. Also
 * finds the words in the texts of a row.
 */
import { isPromise } from '../../base/brands.ts';
import { InvalidQueryError } from '../../base/errors.ts';
import { describeValue } from '../../base/messages.ts';
import { Pacer } from '../../base/pacer.ts';
import { Scratch } from '../../cache/memory-budget.ts';
import { KeyList } from '../../format/key-list.ts';
import type { RowSource } from '../../format/row-layout.ts';
import type { TextFields } from '../../schema/text-fields.ts';
import { prepareTexts } from '../../schema/text-indexes.ts';
import type { TableState } from '../../view/table-state.ts';
import { filterOf } from '../conditions/condition.ts';
import type { Condition } from '../conditions/condition.ts';
import type { Filter } from '../conditions/filter.ts';
import { requireTextIndex, searchedTable } from '../conditions/search-options.ts';
import type { RankedPlace, SearchedIndex, TextSpan, WrittenSearch } from '../conditions/search-options.ts';
import { maxLookups } from '../operators/lookups.ts';
import { openAccess } from '../operators/open-operator.ts';
import { QueryWork, RowBatch } from '../operators/row-batch.ts';
import { effectiveOrder, indexesOf, residualOf } from '../planner/access-paths.ts';
import type { CompiledQuery, Plan, RankedAccess } from '../planner/access-paths.ts';
import { maxKeyBytes, minKeyBytes } from '../planner/index-intersections.ts';
import { compiledQuery } from '../planner/plan-cache.ts';
import type { QueryHost } from '../planner/query-host.ts';
import { unexpired } from '../planner/query-spec.ts';
import type { WrittenQuery } from '../planner/query-spec.ts';
import { CompiledSearch } from './compiled-search.ts';
import { corpusOf } from './corpus.ts';
import { RowSearch } from './find-rows.ts';
import type { Corpus, FindOptions, OpenedWords, SearchedWords } from './find-rows.ts';
import { OrderedSearch } from './ordered-search.ts';
import type { SourceProbe } from './posting-probe.ts';
import { PostingRun, RunBuilder } from './posting-run.ts';
import { pagedRows } from './ranked-pages.ts';
import type { PagedRows } from './ranked-pages.ts';
import type { RankedRows } from './ranked-rows.ts';
import { RankedStream } from './ranked-stream.ts';
import { cheapestWay, searchWays } from './search-ways.ts';
import type { OtherRows, SearchWay } from './search-ways.ts';

/** A search that was carried out in the index, or is ready to be. */
export interface SearchedRows {
  readonly query: CompiledQuery;
  readonly plan: Plan;
  /** The entries of indexes that were read, or looked for. */
  readonly entries: number;
  readonly use: EntryCounts;
  /** The ways that were compared, and the one that was taken. */
  readonly ways: readonly SearchWay[];
  readonly way: SearchWay;
}

/** Finds the rows of a search, and plans how they are read. `signal`: gives up. `choose`: chooses the way. */
export async function searchRows(
  host: QueryHost,
  state: TableState,
  written: WrittenQuery,
  search: WrittenSearch,
  signal: AbortSignal | undefined,
  choose: typeof cheapestWay = cheapestWay,
): Promise<SearchedRows> {
  const { shape } = state;
  // An index that is registered and not there yet has no entries: all rows are read.
  const searched = requireTextIndex(searchedTable(host, shape), search.options);
  await prepareTexts([searched.index]);
  const compiled = new CompiledSearch(searched, search);
  const query = await compiledQuery(host, shape, unexpired(host, shape, written), signal);
  const isRanked = written.orders.length === 0;
  const pages = search.page && { place: search.page.placeIn(shape) };
  const carried = new CarriedSearch(host, state, { searched, compiled, query, isRanked, pages, signal });
  return carried.plan(choose);
}

/** The work of a search in indexes. */
export interface EntryCounts {
  /** Entries of words that were gone over. */
  words: number;
  /** How often a word was looked for in a row. */
  asked: number;
  /** Entries of other indexes, and rows that were read or looked up beside those that are found. */
  others: number;
  rows: number;
}

interface CarriedOptions {
  readonly searched: SearchedIndex;
  readonly compiled: CompiledSearch;
  /** The query without its search. */
  readonly query: CompiledQuery;
  readonly isRanked: boolean;
  /** The place behind which a page begins. */
  readonly pages: { readonly place: RankedPlace | undefined } | undefined;
  readonly signal: AbortSignal | undefined;
}

/** A search that is carried out on a state. */
class CarriedSearch {
  readonly #state: TableState;
  readonly #options: CarriedOptions;
  readonly #work: Pick<FindOptions, 'pacer' | 'scratch' | 'breathe' | 'together'>;
  readonly #use: EntryCounts = { words: 0, asked: 0, others: 0, rows: 0 };

  constructor({ environment }: QueryHost, state: TableState, options: CarriedOptions) {
    this.#state = state;
    this.#options = options;
    const { memory } = state.tree.source;
    const pacer = new Pacer(environment);
    const breathe = (): void | Promise<void> => {
      options.signal?.throwIfAborted();
      return pacer.due() ? pacer.pause() : undefined;
    };
    this.#work = { pacer, scratch: new Scratch(memory), breathe, together: maxLookups(memory) };
  }

  async plan(choose: typeof cheapestWay): Promise<SearchedRows> {
    try {
      return await this.#plan(choose);
    } finally {
      this.#work.scratch.release();
    }
  }

  async #plan(choose: typeof cheapestWay): Promise<SearchedRows> {
    const { searched, compiled, query, isRanked } = this.#options;
    const corpus = await corpusOf(this.#state, searched.index, this.#work);
    const words = await compiled.wordsIn(corpus, this.#work.breathe);
    const opening = this.#searchFor(corpus, 0);
    const opened = await opening.open(words);
    this.#use.words += opening.entries;
    const { hasPhrases } = compiled;
    const ways = await searchWays({ state: this.#state, query, corpus, opened, isRanked, hasPhrases });
    let way = choose(ways, query);
    const among = way.kind === 'keys' ? await this.#keysOf(way.others as OtherRows) : undefined;
    // They took more memory than it looked.
    if (way.kind === 'keys' && among === undefined) way = ways[0] as SearchWay;
    const access =
      way.kind === 'order'
        ? this.#inOrder(way, opening.probes(opened))
        : await this.#found(way, { corpus, opened, words, among });
    const fulfilled = way.others?.plan.covered ?? [];
    const covered = hasPhrases ? fulfilled : [...fulfilled, compiled.condition];
    const plan: Plan = {
      access,
      covered,
      residual: this.#residualOf(way),
      ordered: isRanked || way.kind === 'order',
      order: effectiveOrder(this.#state.shape, query),
      use: undefined,
    };
    const whole = { ...query, conditions: [...query.conditions, compiled.condition] };
    const use = this.#use;
    return { query: whole, plan, entries: use.words + use.asked + use.others, use, ways, way };
  }

  /** Returns the conditions that rows must be tested for. A phrase is looked for in the rows that have its words. */
  #residualOf({ others }: SearchWay): readonly Condition[] {
    const { query, compiled } = this.#options;
    const rest = others === undefined ? query.conditions : residualOf(query, others.plan.covered);
    return compiled.hasPhrases ? [...rest, compiled.condition] : rest;
  }

  #searchFor(corpus: Corpus, most: number): RowSearch {
    return new RowSearch(corpus, { ...this.#work, weights: this.#options.searched.weights, most });
  }

  /** Reads the primary keys of other rows, in their order. Undefined if they take too much memory. */
  async #keysOf({ query, plan }: OtherRows): Promise<PostingRun | undefined> {
    const state = this.#state;
    const { pacer, breathe } = this.#work;
    const keys = new KeyList();
    if (plan.access.kind === 'keys') {
      for (const key of plan.access.keys) {
        keys.writer.appendRange(key, 0, key.length);
        keys.end();
      }
    } else {
      const most = maxKeyBytes(state);
      const work = new QueryWork();
      const filter = filterOf([]);
      const needed = Number.POSITIVE_INFINITY;
      const stream = openAccess({ state, query, plan, filter, needed, pacer, breathe, work });
      const batch = new RowBatch();
      for (let more = true; more; ) {
        const moved = stream.next(batch);
        more = isPromise(moved) ? await moved : moved;
        for (let i = 0; i < batch.count; i++) {
          state.shape.writeKey(
            keys.writer,
            state.shape.rowKey(batch.sources[i] as RowSource, batch.bases[i] as number),
          );
          keys.end();
        }
        batch.clear();
        if (keys.sizeBytes + keys.count * minKeyBytes > most) return undefined;
        await breathe();
      }
      this.#use.others += work.entries;
      this.#use.rows += work.rows + work.lookups;
    }
    const builder = new RunBuilder();
    let last: number | undefined;
    for (const at of await keys.sorted(pacer)) {
      if (last === undefined || !keys.isSame(last, at)) builder.add(keys.bytes, keys.start(at), keys.endOf(at), 0, 0);
      last = at;
    }
    return new PostingRun(builder);
  }

  /** Finds the rows with the words. `among`: only those of these. */
  async #found(
    way: SearchWay,
    {
      corpus,
      opened,
      words,
      among,
    }: { corpus: Corpus; opened: OpenedWords; words: SearchedWords; among: PostingRun | undefined },
  ): Promise<RankedAccess> {
    const { searched, compiled, query, isRanked, pages } = this.#options;
    const isLimited =
      isRanked && this.#residualOf(way).length === 0 && query.limit !== undefined && query.counts !== true;
    const most = isLimited ? (query.limit ?? 0) + query.offset : Number.POSITIVE_INFINITY;
    let next: OpenedWords | undefined = opened;
    const find = async (wanted: number): Promise<RankedRows> => {
      const search = this.#searchFor(corpus, wanted);
      const found = await search.find(next ?? (await search.open(words)), among);
      next = undefined;
      this.#use.words += search.entries;
      this.#use.asked += search.asked;
      return found;
    };
    const { index } = searched;
    const { rows, found } = await this.#paged(
      find,
      most,
      pages,
      filterOf([compiled.condition, ...(way.others?.plan.covered ?? [])]),
    );
    return {
      kind: 'search',
      index,
      total: found.total,
      describe: (table) => [
        `Finds ${found.total} ${found.total === 1 ? 'row' : 'rows'} by the words in index '${index.name}'${amongWhich(way, table, among)}.`,
        `Looks up their rows in '${table}'.`,
      ],
      open: (on, filter, work) => new RankedStream(on, rows ?? found, filter as Filter, work as QueryWork),
      ...(rows !== undefined && { placeOf: (key) => rows.placeOf(key) }),
    };
  }

  async #paged(
    find: (most: number) => Promise<RankedRows>,
    most: number,
    pages: CarriedOptions['pages'],
    filter: Filter,
  ): Promise<{ readonly found: RankedRows; readonly rows: PagedRows | undefined }> {
    if (pages === undefined) return { found: await find(most), rows: undefined };
    const isThere = async (key: Uint8Array): Promise<boolean> => {
      const row = await this.#state.lookup(key);
      return row !== undefined && filter.matches(row.source, row.base);
    };
    return pagedRows(pages.place, most, { find, isThere, breathe: this.#work.breathe });
  }

  /** Goes through other rows in the order asked for, when they are read. */
  #inOrder(way: SearchWay, probes: readonly SourceProbe[]): RankedAccess {
    const { index } = this.#options.searched;
    const { pacer, breathe, together } = this.#work;
    const use = this.#use;
    const others = way.others as OtherRows;
    return {
      kind: 'search',
      index,
      total: Math.ceil(way.estimate.matches),
      describe: (table) => [
        `Goes through ${nameOf(others, table)} in order, and looks for its rows among those with the words in index '${index.name}'.`,
        `Looks up their rows in '${table}'.`,
      ],
      open: (state, filter, work) => {
        const own = new QueryWork();
        const needed = Number.POSITIVE_INFINITY;
        const opened = { state, ...others, filter: filterOf([]), needed, pacer, breathe, work: own };
        const options = { state, probes, together, use, filter: filter as Filter, work: work as QueryWork };
        return new OrderedSearch(openAccess(opened), own, options);
      },
    };
  }
}

/** Names the access of other rows. */
function nameOf({ plan: { access } }: OtherRows, table: string): string {
  const byKey = `'${table}' by primary key`;
  const names = indexesOf(access).map((name) => `'${name}'`);
  if (names.length === 0) return byKey;
  const indexes = `${names.length > 1 ? 'indexes' : 'index'} ${names.join(' and ')}`;
  const readsRows = access.kind === 'union' && access.parts.some(({ plan }) => indexesOf(plan.access).length === 0);
  return readsRows ? `${indexes} and ${byKey}` : indexes;
}

function amongWhich({ others }: SearchWay, table: string, among: PostingRun | undefined): string {
  if (others === undefined || among === undefined) return '';
  const { count } = among;
  return `, among ${count} ${count === 1 ? 'row' : 'rows'} of ${nameOf(others, table)}`;
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
  const searched = requireTextIndex(searchedTable(host, stored), search.options);
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
