/** The query builder, which `db.query(table)` returns. */
import { andThen } from '../base/brands.ts';
import { InvalidQueryError, NotSupportedError } from '../base/errors.ts';
import { Later } from '../base/later.ts';
import { defined, kinds, OptionTable } from '../base/options.ts';
import { describeValue } from '../base/messages.ts';
import type { Overlay, QueryHost, WatchedQuery } from './planner/query-host.ts';
import { compileAggregate, writtenAggregates } from './aggregate.ts';
import type { AggregateRow, Aggregates, CheckedAggregates, SumOf, WrittenAggregate } from './aggregate.ts';
import { budgetLimits } from './budget.ts';
import type { BudgetLimits } from './budget.ts';
import {
  conditionsIn,
  weightOf,
  writtenClause,
  writtenCondition,
  writtenElements,
  writtenTuples,
} from './conditions/clause.ts';
import type { Clause, Clauses } from './conditions/clause.ts';
import type {
  AnyPath,
  ComparedName,
  ComparedValue,
  FieldName,
  FieldNames,
  NumericName,
  OperatorOf,
  OrderedName,
  Selected,
  SelectedName,
  ValueIn,
} from './conditions/compared-types.ts';
import { checkFunctionOperator, requireField } from './conditions/condition.ts';
import type { WrittenCondition } from './conditions/condition.ts';
import { Groups, writtenExtreme, writtenSingly } from './aggregate-queries.ts';
import type { Execution, Row } from './operators/executor.ts';
import type { Explanation } from './explain.ts';
import type { LiveResults, LiveRows, LiveValue } from './live-results.ts';
import { pageOptions, refuseLimits } from './page-options.ts';
import type { Page, PageOptions } from './page-options.ts';
import { noOptions, QueryRun } from './query-run.ts';
import { RowIterator } from './row-iterator.ts';
import { orAborted, runOnState } from './run-on-state.ts';
import type { QueryOptions } from './run-on-state.ts';
import { checkBeginning, compileWhere, isHeavy, isPlain, requireOrderField } from './planner/query-spec.ts';
import { searchCode, searchesOf } from './search-code.ts';
import type { Direction, Where, WrittenOrder, WrittenQuery } from './planner/query-spec.ts';
import type { SearchOptions, TextSpan, WrittenSearch } from './conditions/search-options.ts';

const aggregating = new Later('aggregates', () => import('./aggregate-rows.ts'));
const paging = new Later('pages of queries', () => import('./page.ts'));
const explaining = new Later('explanations of queries', () => import('./explain.ts'));

/** Options of `query.explain()`. */
export interface ExplainOptions extends QueryOptions {
  /** Whether to run the query, to measure its reads. Default false. */
  readonly run?: boolean;
}

const explainOptions = new OptionTable<ExplainOptions>({ run: kinds.flag, signal: kinds.signal });

function checkCount(what: string, count: unknown): number {
  if (Number.isSafeInteger(count) && (count as number) >= 0) return count as number;
  throw new InvalidQueryError(`${what}() takes an integer of at least 0, not ${describeValue(count)}.`);
}

function whereOfCondition(condition: WrittenCondition): Where {
  return { written: { kind: 'condition', condition }, weight: weightOf(condition), compiled: undefined };
}

function whereOfClause({ written, weight }: Clause): Where {
  return { written, weight, compiled: undefined };
}

/** The parts of a query. */
interface Asked {
  readonly wheres: readonly Where[];
  readonly orders: readonly WrittenOrder[];
  readonly fields: readonly string[] | undefined;
  readonly search: WrittenSearch | undefined;
  readonly overlay: Overlay | undefined;
  readonly limit: number | undefined;
  readonly offset: number;
  readonly budget: BudgetLimits | undefined;
}

const everything: Asked = {
  wheres: [],
  orders: [],
  fields: undefined,
  search: undefined,
  overlay: undefined,
  limit: undefined,
  offset: 0,
  budget: undefined,
};

/**
 * A query on one table. It never changes: every call but those that run it returns a new query, so that one can be kept,
 * shared and extended in several ways. Conditions are ANDed; without `orderBy`, rows come by ascending primary key. A query
 * can be run any number of times. `R`: the rows that it returns; `Table`: the table's rows, which conditions and orders refer to.
 */
export class Query<out R extends object = Row, out Table extends object = R> implements AsyncIterable<R> {
  readonly #host: QueryHost;
  readonly #table: string;
  readonly #asked: Asked;

  /** @internal Use `db.query(table)`. */
  constructor(host: QueryHost, table: string, asked: Asked = everything) {
    this.#host = host;
    this.#table = table;
    this.#asked = asked;
  }

  /**
   * Returns whether the query reads from this source: a database instance, a snapshot or a transaction.
   *
   * @hidden For batches.
   */
  reads(source: object): boolean {
    return this.#host.source === source;
  }

  /**
   * Runs the query with the writes of a batch laid over the stored rows, for the rows' primary keys only: an index has them, so
   * rows need not be read.
   *
   * @hidden For batches, which go on while the database is being stopped.
   */
  keysUnder(batch: Overlay, host: QueryHost, keyNames: readonly string[]): Promise<object[]> {
    const asked = { ...this.#asked, fields: keyNames };
    return new Query(host, this.#table, asked).overlay(batch).execute();
  }

  /** Name of the table. */
  get table(): string {
    return this.#table;
  }

  /**
   * Adds a condition: on a field, or on a registered function, whose result must then equal the value. `IN` takes an
   * array (an empty one matches nothing), `BETWEEN` takes `[low, high]`, both included, and `PREFIX` takes the beginning of a
   * text or of bytes. `= null` and `!= null` test for null. Null matches no other operator, except `!=` with a value, and
   * `IN` with an array that contains null. With a function only `=` is allowed. On several fields together,
   * `['tenant', 'slug']`, `=` takes an array of their values, and `IN` an array of such arrays. `<`, `<=`, `>`, `>=` and `BETWEEN`
   * compare them with such arrays as SQL compares rows: the first field in which they differ decides, and null there matches
   * nothing. The value is copied.
   * Throws `InvalidQueryError` for an unknown field or a value of another kind, and `InvalidOperatorError` for an operator
   * that the field does not take; where the table is not registered yet, running the query rejects with them. Of more than 1,024
   * conditions and values, the first ones are looked at: the others are when the query is run.
   */
  where<const F extends FieldNames<Table>, O extends OperatorOf<Table, F>>(
    field: ComparedName<Table, F, O>,
    operator: O,
    value: ComparedValue<Table, F, O>,
  ): Query<R, Table>;
  /**
   * Adds a clause: conditions joined by `or`, `and` and `not`, as in
   * `where(({ is, or }) => or(is('year', '<', 1800), is('author', '=', 'Austen')))`. The function is called at once.
   */
  where(build: (clauses: Clauses<Table>) => Clause): Query<R, Table>;
  where(field: unknown, operator?: unknown, value?: unknown): Query<R, Table> {
    const shape = this.#host.shapeOf(this.#table);
    const where =
      typeof field === 'function'
        ? whereOfClause(writtenClause(field as (clauses: Clauses<Table>) => Clause))
        : Array.isArray(field)
          ? whereOfClause(writtenTuples(field, operator, value))
          : operator === 'HAS ANY' || operator === 'HAS ALL'
            ? whereOfClause(writtenElements(field, operator, value))
            : whereOfCondition(writtenCondition(field, operator, value));
    const { written } = where;
    if (isHeavy(where)) checkBeginning(this.#host, shape, written);
    // A condition that is valid for sure is compiled on demand: a lookup of a single row needs no compilation.
    else if (written.kind !== 'condition' || shape === undefined || !isPlain(this.#host, shape, written.condition)) {
      for (const condition of conditionsIn(written)) {
        if (this.#host.functions.has(condition.name)) checkFunctionOperator(condition.name, condition.operator);
      }
      if (shape !== undefined) compileWhere(this.#host, shape, where);
    }
    const { wheres } = this.#asked;
    return this.#with({ ...this.#asked, wheres: wheres.length === 0 ? [where] : [...wheres, where] });
  }

  /**
   * Returns the rows that have words in the fields of an index on texts, the best ones first, unless `orderBy` gives another order. The
   * score is BM25: words that few rows have count more, and so do words that a short text has often. A row must have all words; those of a
   * phrase in double quotes one after the other; and none that a `-` stands before. A second call replaces the first. Throws
   * `InvalidQueryError` if the table has no such index, and `InvalidOptionError`.
   */
  search(text: string, options: SearchOptions = {}): Query<R, Table> {
    const search = searchesOf(this.#host).written(this.#host, this.#table, text, options);
    return this.#with({ ...this.#asked, search });
  }

  /**
   * Returns where the words of the search are in the texts of a row that it returned, by the name of the field, for pages that mark them:
   * parts in order that do not overlap, a phrase as one. Rejects with `InvalidQueryError` for a query without `search()`.
   */
  async highlight(row: object): Promise<{ readonly [field: string]: readonly TextSpan[] }> {
    const { highlight } = await searchCode(this.#host);
    return highlight(this.#host, this.#table, this.#asked.search, row);
  }

  /**
   * Lays the unflushed writes of a batch over the stored rows. Only one batch: a second call replaces the first. Throws
   * `InvalidQueryError` for anything but a batch that this database instance made.
   */
  overlay(batch: Overlay): Query<R, Table> {
    const given = batch as Partial<Overlay> | null | undefined;
    if (typeof given?.overlayOn !== 'function' || typeof given.isOf !== 'function') {
      throw new InvalidQueryError(`overlay() takes a batch of this database, not ${describeValue(batch)}.`);
    }
    if (!batch.isOf(this.#host.owner)) {
      throw new InvalidQueryError(
        `overlay() on table '${this.#table}' was given a batch of another database instance. Use one that the ` +
          'instance of the query made.',
      );
    }
    return this.#with({ ...this.#asked, overlay: batch });
  }

  /**
   * Sorts the rows; a second call sorts those that tie in the first. At last, ascending primary keys decide. Null comes
   * first, or last if descending. Throws `InvalidQueryError` for an unknown or json field.
   */
  orderBy<const F extends FieldName<Table>>(
    field: OrderedName<Table, F>,
    direction: Direction = 'asc',
  ): Query<R, Table> {
    if (direction !== 'asc' && direction !== 'desc') {
      throw new InvalidQueryError(`orderBy() takes 'asc' or 'desc', not ${describeValue(direction)}.`);
    }
    const shape = this.#host.shapeOf(this.#table);
    if (shape !== undefined) requireOrderField(shape, field as string);
    return this.#with({ ...this.#asked, orders: [...this.#asked.orders, { name: field as string, direction }] });
  }

  /** Returns at most so many rows: an integer of at least 0. A second call replaces the first. */
  limit(count: number): Query<R, Table> {
    return this.#with({ ...this.#asked, limit: checkCount('limit', count) });
  }

  /** Skips so many rows: an integer of at least 0. A second call replaces the first. */
  offset(count: number): Query<R, Table> {
    return this.#with({ ...this.#asked, offset: checkCount('offset', count) });
  }

  /**
   * Limits the requests, bytes and time of each run of the query. A run that needs more rejects with
   * `BudgetExceededError`. A second call replaces the first. Throws `InvalidOptionError` for an unknown limit, or a value
   * that is not a number of at least 0.
   */
  budget(budget: BudgetLimits): Query<R, Table> {
    return this.#with({ ...this.#asked, budget: { ...budgetLimits.check('query.budget()', budget) } });
  }

  /** Returns rows with these fields only. Conditions and order may use the others all the same. */
  select<const F extends (keyof R & string) | AnyPath, S extends object = Selected<R, F>>(
    ...fields: readonly SelectedName<R, F>[]
  ): Query<S, Table> {
    if (fields.length === 0)
      throw new InvalidQueryError('select() takes the names of the fields that rows should have.');
    const shape = this.#host.shapeOf(this.#table);
    const names = fields as readonly string[];
    if (shape !== undefined) for (const name of names) requireField(shape, name, 'select');
    return new Query<S, Table>(this.#host, this.#table, { ...this.#asked, fields: [...new Set(names)] });
  }

  /** Runs the query: the matching rows, as fresh plain objects. */
  execute(options: QueryOptions = noOptions): Promise<R[]> {
    return this.#run().rows(this.#written(), options) as Promise<unknown[]> as Promise<R[]>;
  }

  /** The first matching row; undefined if there is none. */
  async first(options: QueryOptions = noOptions): Promise<R | undefined> {
    const written = { ...this.#written(), limit: Math.min(1, this.#asked.limit ?? 1) };
    const rows = await this.#run().one(written, options, (execution) => execution.rows());
    return rows[0] as R | undefined;
  }

  /** How many rows the query returns, limit and offset applied. */
  count(options: QueryOptions = noOptions): Promise<number> {
    const written = { ...this.#written(), orders: [], counts: true };
    return this.#run().one(written, options, (execution) =>
      andThen(aggregating.get(), (rows) => rows.countRows(execution)),
    );
  }

  /**
   * Returns a page of the rows, and the bookmark of the next page. Successive pages show every row once that exists all the time
   * and keeps its place in the order, even if other rows are inserted, deleted and changed between them; those of a search without `orderBy` if it
   * keeps its place before or behind the last row of each page. It replaces `limit()`
   * and `offset()`: with them it rejects with `InvalidQueryError`. Rejects with `BookmarkError` if the bookmark is damaged, or
   * belongs to another query or version of the table, and with `InvalidOptionError`.
   */
  async page(options: PageOptions): Promise<Page<R>> {
    const { size, after, signal } = pageOptions.check('query.page()', options);
    refuseLimits(this.#asked);
    const { search } = this.#asked;
    const { databaseId } = this.#host;
    const asked = {
      databaseId,
      clauses: this.#asked.wheres.map(({ written }) => written),
      search,
      registered: (name: string) => this.#host.functions.get(name),
    };
    if (search !== undefined && this.#asked.orders.length === 0) {
      const { rankedPage } = await searchCode(this.#host);
      const page = await rankedPage(this.#run(), asked, this.#written(), { size, ...defined({ after, signal }) });
      return page as Page<unknown> as Page<R>;
    }
    const { pageOf, writtenPage } = paging.loaded ?? (await paging.load());
    const written = writtenPage(asked, this.#written(), { size, ...defined({ after }) });
    return this.#run().one(written, defined({ signal }), async (execution) => {
      return (await pageOf(execution, size, asked)) as Page<unknown> as Page<R>;
    });
  }

  /** The least value of a field that is not null; null if there is none. From the end of an index, where it has one. */
  min<const F extends FieldName<R>, V = ValueIn<R, F>>(
    field: OrderedName<R, F>,
    options: QueryOptions = noOptions,
  ): Promise<V | null> {
    return this.#extreme('min', field as string, options) as Promise<V | null>;
  }

  /** The greatest value of a field; null if there is none. From the end of an index, where it has one. */
  max<const F extends FieldName<R>, V = ValueIn<R, F>>(
    field: OrderedName<R, F>,
    options: QueryOptions = noOptions,
  ): Promise<V | null> {
    return this.#extreme('max', field as string, options) as Promise<V | null>;
  }

  /** The sum of a field's values that are not null: exact for bigints, else rounded once. Null if there are none. */
  async sum<const F extends FieldName<R>, S = SumOf<ValueIn<R, F>>>(
    field: NumericName<R, F>,
    options: QueryOptions = noOptions,
  ): Promise<S> {
    const [row] = await this.#fold([], [{ name: 'sum', kind: 'sum', field: field as string }], options);
    return row?.['sum'] as S;
  }

  /** The mean of a field's values that are not null; null if there are none. */
  async avg<const F extends FieldName<R>>(
    field: NumericName<R, F>,
    options: QueryOptions = noOptions,
  ): Promise<number | null> {
    const [row] = await this.#fold([], [{ name: 'avg', kind: 'avg', field: field as string }], options);
    return row?.['avg'] as number | null;
  }

  /**
   * Several aggregates of the rows that the query returns, in one go, as in
   * `aggregate({ books: 'count', cheapest: { min: 'price' } })`: an object with these names.
   */
  async aggregate<const A extends Aggregates<R> & CheckedAggregates<R, A>, T = AggregateRow<R, A>>(
    aggregates: A,
    options: QueryOptions = noOptions,
  ): Promise<T> {
    const [row] = await this.#fold([], writtenAggregates(aggregates), options);
    return row as T;
  }

  /** Groups the rows that the query returns by the values of fields, for `aggregate()`. */
  groupBy<const G extends FieldName<R>>(...fields: readonly OrderedName<R, G>[]): Groups<R, G> {
    if (fields.length === 0) throw new InvalidQueryError('groupBy() takes the names of the fields to group by.');
    const names = [...new Set(fields as readonly string[])];
    const shape = this.#host.shapeOf(this.#table);
    if (shape !== undefined) for (const name of names) requireOrderField(shape, name, 'groupBy');
    return new Groups(
      (aggregates, options) => this.#fold(names, aggregates, options),
      (aggregates, options) =>
        this.#watched(
          'query.groupBy().watch()',
          options,
          'groups',
          (query) => query.#fold(names, aggregates, noOptions),
          names,
        ),
    );
  }

  /**
   * Watches the query: gives its rows at once, and again whenever a commit of any instance changes them, with the differences. Each
   * result is that of one state. A loop that takes long gets the newest result, and not those between. Commits of this instance show at
   * once, and those of others within `writeForwardInterval`. Loops wait while the database is stopped, and go on after the next start.
   * Throws `NotSupportedError` for a query of a snapshot or a transaction, and with `overlay()`.
   */
  watch(options: QueryOptions = noOptions): LiveResults<LiveRows<R>> {
    return this.#watched('query.watch()', options, 'rows', (query) => query.execute());
  }

  /** Watches the number of rows that the query returns: {@link count}, as {@link watch} gives the rows. */
  watchCount(options: QueryOptions = noOptions): LiveResults<LiveValue<number>> {
    return this.#watched('query.watchCount()', options, 'value', (query) => query.count());
  }

  /** Watches aggregates of the rows that the query returns: {@link aggregate}, as {@link watch} gives the rows. */
  watchAggregate<const A extends Aggregates<R> & CheckedAggregates<R, A>, T = AggregateRow<R, A>>(
    aggregates: A,
    options: QueryOptions = noOptions,
  ): LiveResults<LiveValue<T>> {
    return this.#watched('query.watchAggregate()', options, 'value', (query) => query.aggregate(aggregates));
  }

  /** `run` gets the query on the host of a run. */
  #watched<T extends object>(
    callName: string,
    options: QueryOptions,
    kind: WatchedQuery['kind'],
    run: (query: Query<R, Table>) => Promise<unknown>,
    groupedBy: readonly string[] = [],
  ): LiveResults<T> {
    const host = this.#host;
    const table = this.#table;
    const asked = this.#asked;
    if (host.watch === undefined || asked.overlay !== undefined) {
      throw new NotSupportedError(`${callName} takes queries of a database, without overlay().`);
    }
    return host.watch({
      callName,
      table,
      options,
      kind,
      groupedBy,
      asked,
      run: (on, fields) => run(new Query(on, table, { ...asked, fields })),
    }) as LiveResults<never>;
  }

  /** The rows one by one; where their order comes from an index or the primary key, only a few are held at a time. */
  [Symbol.asyncIterator](): AsyncIterableIterator<R> {
    const written = this.#written();
    const run = this.#run(false);
    const iterator = new RowIterator(
      run,
      (state, sorts) => run.execution(run.metered(state), { ...written, sorts }),
      run.meter,
    );
    return iterator as AsyncIterableIterator<unknown> as AsyncIterableIterator<R>;
  }

  /**
   * Returns the plan of the query, and its expected reads, without reading anything. With `run: true` it runs the query, and
   * returns the actual reads too.
   */
  async explain(options: ExplainOptions = {}): Promise<Explanation> {
    const written = this.#written();
    const host = this.#host;
    const { environment } = host;
    const { signal, run: isRun = false } = explainOptions.check('query.explain()', options);
    const { explainQuery } = await (written.search === undefined ? explaining.get() : searchCode(host));
    const running = runOnState({ host, table: this.#table, overlay: this.#asked.overlay }, (state) =>
      explainQuery(host, state, written, { environment, signal, isRun }),
    );
    return orAborted(running, this.#table, signal);
  }

  /** The first value in the order of a field, which an index or the primary key may have. */
  async #extreme(kind: 'min' | 'max', name: string, options: QueryOptions): Promise<unknown> {
    const written = this.#written();
    if (written.limit !== undefined || written.offset > 0) {
      const [row] = await this.#fold([], [{ name: kind, kind, field: name }], options);
      return row?.[kind];
    }
    const extreme = writtenExtreme(written, kind, name);
    return this.#run().one(extreme, options, (execution) =>
      andThen(aggregating.get(), (rows) => rows.extremeOf(execution, name)),
    );
  }

  async #fold(
    groupedBy: readonly string[],
    aggregates: readonly WrittenAggregate[],
    options: QueryOptions,
  ): Promise<Row[]> {
    const taken = aggregates.find(({ name }) => groupedBy.includes(name));
    if (taken !== undefined) {
      const message = `aggregate(): '${taken.name}' is the name of a field that the rows are grouped by: choose another.`;
      throw new InvalidQueryError(message);
    }
    const written = this.#written();
    const isWhole = written.limit === undefined && written.offset === 0;
    const folds = [...groupedBy, ...aggregates.flatMap(({ field }) => field ?? [])];
    const order = isWhole ? { orders: [], unordered: true } : {};
    const folded: WrittenQuery = { ...written, ...order, folds };
    const fold = async (execution: Execution): Promise<Row[]> => {
      const { shape } = execution.state;
      const { Fold } = aggregating.loaded ?? (await aggregating.load());
      return new Fold(execution, {
        groupedBy: groupedBy.map((name) => requireOrderField(shape, name, 'groupBy')),
        aggregates: aggregates.map((aggregate) => compileAggregate(shape, aggregate)),
      }).rows();
    };
    const shape = isWhole && groupedBy.length === 0 ? this.#host.shapeOf(this.#table) : undefined;
    const singly = shape && writtenSingly(shape, written, aggregates);
    if (shape === undefined || singly === undefined) return this.#run().one(folded, options, fold);
    for (const aggregate of aggregates) compileAggregate(shape, aggregate);
    const { isQuick, resultOf } = aggregating.loaded ?? (await aggregating.load());
    return this.#run().several(singly, options, isQuick, async (executions, otherwise) => {
      if (executions === undefined) return fold(await otherwise(folded));
      const results = executions.map((execution, i) => resultOf(execution, aggregates[i] as WrittenAggregate));
      const values = await Promise.all(results);
      return [Object.fromEntries(aggregates.map(({ name }, i) => [name, values[i]]))];
    });
  }

  #with(asked: Asked): Query<R, Table> {
    return new Query<R, Table>(this.#host, this.#table, asked);
  }

  /** Returns a run of the query. `speculative`: see {@link QueryRun}. */
  #run(speculative = true): QueryRun {
    const { overlay, budget } = this.#asked;
    return new QueryRun(this.#host, this.#table, overlay, budget, speculative);
  }

  #written(): WrittenQuery {
    const { wheres, orders, fields, limit, offset, search } = this.#asked;
    if (search === undefined) return { wheres, orders, fields, limit, offset };
    return { wheres, orders, fields, limit, offset, search };
  }
}
