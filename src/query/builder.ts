/** The query builder: what `db.query(table)` returns. */
import { InvalidQueryError } from '../base/errors.ts';
import type { LayoutField } from '../format/row-layout.ts';
import { Types } from '../format/types.ts';
import { describeValue } from '../format/values.ts';
import type { Overlay, QueryHost } from '../table/query-host.ts';
import type { TableShape } from '../table/table-shape.ts';
import type { TableState } from '../table/table-state.ts';
import { compileClause, conditionsIn, writtenClause, writtenCondition } from './clause.ts';
import type { Clause, Clauses, WrittenClause } from './clause.ts';
import type { ComparedValue, FieldName, OperatorOf } from './compared-types.ts';
import { checkFunctionOperator, requireField } from './condition.ts';
import type { CompileOptions, Condition } from './condition.ts';
import { countRows } from './count.ts';
import { Execution } from './execute.ts';
import type { Row } from './execute.ts';
import { explainPlan } from './explain.ts';
import type { Explanation } from './explain.ts';
import type { CompiledQuery } from './plan.ts';
import { readOf } from './query-read.ts';
import type { OrderField } from './row-order.ts';
import { RowIterator } from './row-iterator.ts';
import { orAborted, runOnState } from './run.ts';
import type { RunOptions } from './run.ts';

/** Ascending or descending. */
export type Direction = 'asc' | 'desc';

/** Options of the calls that run a query. */
export interface QueryOptions {
  /** Gives the query up: it rejects with `AbortedError`. */
  readonly signal?: AbortSignal;
}

interface WrittenOrder {
  readonly name: string;
  readonly direction: Direction;
}

/** A clause, and what it was compiled to where the table's shape was known already and no function is in it. */
interface Where {
  readonly written: WrittenClause;
  readonly shape: TableShape | undefined;
  readonly conditions: readonly Condition[] | undefined;
}

/** What a query is made of at the moment when it is run: calling the builder again does not change it. */
interface Written {
  readonly wheres: readonly Where[];
  readonly orders: readonly WrittenOrder[];
  readonly fields: readonly string[] | undefined;
  readonly limit: number | undefined;
  readonly offset: number;
}

function checkCount(what: string, count: unknown): number {
  if (Number.isSafeInteger(count) && (count as number) >= 0) return count as number;
  throw new InvalidQueryError(`${what}() takes an integer of at least 0, not ${describeValue(count)}.`);
}

function requireOrderField(shape: TableShape, name: string): LayoutField {
  const field = requireField(shape, name, 'orderBy');
  if (field.typeId !== Types.json) return field;
  throw new InvalidQueryError(
    `orderBy: field '${name}' of table '${shape.name}' is JSON, which has no order: store what to sort by in a field of its own.`,
  );
}

/**
 * A query on one table. Every call but those that run it returns the query itself. Conditions are ANDed; without
 * `orderBy`, rows come by ascending primary key. A query can be run any number of times.
 */
export class Query<R extends object = Row> implements AsyncIterable<R> {
  readonly #host: QueryHost;
  readonly #table: string;
  // Replaced and never changed, so that a query under way keeps what it began with.
  #wheres: readonly Where[] = [];
  #orders: readonly WrittenOrder[] = [];
  #fields: readonly string[] | undefined;
  #overlay: Overlay | undefined;
  #limit: number | undefined;
  #offset = 0;

  /** @internal Use `db.query(table)`. */
  constructor(host: QueryHost, table: string) {
    this.#host = host;
    this.#table = table;
  }

  /** Name of the table. */
  get table(): string {
    return this.#table;
  }

  /**
   * Adds a condition: on a field, or on a registered function, whose result must then equal the value. `IN` takes an
   * array, of which an empty one matches nothing; `BETWEEN` takes `[low, high]`, both included; `PREFIX` what a text or
   * bytes begin with. `= null` and `!= null` test for null; null never matches any other operator, but that `!=` with a
   * value matches null, and `IN` null where the array has it. With a function only `=` is allowed. The value is copied.
   * Throws `InvalidQueryError` for an unknown field or a value of another kind, and `InvalidOperatorError` for an operator
   * that the field does not take; where the table is not registered yet, running the query rejects with them.
   */
  where<const F extends FieldName<R>, O extends OperatorOf<R, F>>(
    field: F,
    operator: O,
    value: ComparedValue<R, F, O>,
  ): this;
  /**
   * Adds a clause: conditions joined by `or`, `and` and `not`, as in
   * `where(({ is, or }) => or(is('year', '<', 1800), is('author', '=', 'Austen')))`. The function is called at once.
   */
  where(build: (clauses: Clauses<R>) => Clause): this;
  where(field: unknown, operator?: unknown, value?: unknown): this {
    const written: WrittenClause =
      typeof field === 'function'
        ? writtenClause(field as (clauses: Clauses<R>) => Clause)
        : { kind: 'condition', condition: writtenCondition(field, operator, value) };
    const shape = this.#host.shapeOf(this.#table);
    let onFields = true;
    for (const condition of conditionsIn(written)) {
      if (this.#host.registeredFunction(condition.name) === undefined) continue;
      onFields = false;
      checkFunctionOperator(condition.name, condition.operator);
    }
    const compiled = shape === undefined ? undefined : compileClause(this.#compileOptions(shape), written);
    this.#wheres = [...this.#wheres, { written, shape, conditions: onFields ? compiled : undefined }];
    return this;
  }

  /** Lays the unflushed writes of a batch over what is stored. Only one batch: a second call replaces the first. */
  overlay(batch: Overlay): this {
    if (typeof (batch as Partial<Overlay> | null)?.overlayOn !== 'function') {
      throw new InvalidQueryError(`overlay() takes a batch of this database, not ${describeValue(batch)}.`);
    }
    this.#overlay = batch;
    return this;
  }

  /**
   * Sorts the rows; a second call sorts those that tie in the first. At last, ascending primary keys decide. Null comes
   * first, or last if descending. Throws `InvalidQueryError` for an unknown or json field.
   */
  orderBy(field: FieldName<R>, direction: Direction = 'asc'): this {
    if (direction !== 'asc' && direction !== 'desc') {
      throw new InvalidQueryError(`orderBy() takes 'asc' or 'desc', not ${describeValue(direction)}.`);
    }
    const shape = this.#host.shapeOf(this.#table);
    if (shape !== undefined) requireOrderField(shape, field);
    this.#orders = [...this.#orders, { name: field, direction }];
    return this;
  }

  /** Returns at most so many rows: an integer of at least 0. A second call replaces the first. */
  limit(count: number): this {
    this.#limit = checkCount('limit', count);
    return this;
  }

  /** Skips so many rows: an integer of at least 0. A second call replaces the first. */
  offset(count: number): this {
    this.#offset = checkCount('offset', count);
    return this;
  }

  /** Returns rows with these fields only. Conditions and order may use the others all the same. */
  select<const F extends keyof R & string>(...fields: readonly F[]): Query<Pick<R, F>> {
    if (fields.length === 0)
      throw new InvalidQueryError('select() takes the names of the fields that rows should have.');
    const shape = this.#host.shapeOf(this.#table);
    if (shape !== undefined) for (const field of fields) requireField(shape, field, 'select');
    this.#fields = [...new Set(fields)];
    return this as unknown as Query<Pick<R, F>>;
  }

  /** Runs the query: the matching rows, as fresh plain objects. */
  execute(options: QueryOptions = {}): Promise<R[]> {
    return this.#run(this.#written(), options, (execution) => execution.rows() as R[] | Promise<R[]>);
  }

  /** The first matching row; undefined if there is none. */
  async first(options: QueryOptions = {}): Promise<R | undefined> {
    const written = { ...this.#written(), limit: Math.min(1, this.#limit ?? 1) };
    const rows = await this.#run(written, options, (execution) => execution.rows());
    return rows[0] as R | undefined;
  }

  /** How many rows the query returns, limit and offset applied. */
  count(options: QueryOptions = {}): Promise<number> {
    const written = { ...this.#written(), orders: [] };
    return this.#run(written, options, countRows);
  }

  /** The rows one by one; where their order comes from an index or the primary key, only a few are held at a time. */
  [Symbol.asyncIterator](): AsyncIterableIterator<R> {
    const written = this.#written();
    const iterator = new RowIterator(this.#runOptions(), (state) => this.#execution(state, written, {}));
    return iterator as AsyncIterableIterator<unknown> as AsyncIterableIterator<R>;
  }

  /** How the query would be run now. */
  explain(options: QueryOptions = {}): Promise<Explanation> {
    return this.#run(this.#written(), options, ({ plan }) => explainPlan(this.#table, plan));
  }

  #run<T>(written: Written, options: QueryOptions, work: (execution: Execution) => T | Promise<T>): Promise<T> {
    const running = runOnState(this.#runOptions(), (state) => work(this.#execution(state, written, options)));
    return orAborted(running, this.#table, options.signal);
  }

  #runOptions(): RunOptions {
    return { host: this.#host, table: this.#table, overlay: this.#overlay };
  }

  #written(): Written {
    return {
      wheres: this.#wheres,
      orders: this.#orders,
      fields: this.#fields,
      limit: this.#limit,
      offset: this.#offset,
    };
  }

  #execution(state: TableState, written: Written, { signal }: QueryOptions): Execution {
    const { shape } = state;
    const query: CompiledQuery = {
      conditions: written.wheres.flatMap((where) => this.#compile(shape, where)),
      order: written.orders.map(({ name, direction }): OrderField => {
        return { field: requireOrderField(shape, name), descending: direction === 'desc' };
      }),
      limit: written.limit,
      offset: written.offset,
    };
    const fields = written.fields?.map((name) => requireField(shape, name, 'select'));
    const execution = new Execution(state, query, { environment: this.#host.environment, fields, signal });
    this.#host.queried?.(shape, readOf(execution));
    return execution;
  }

  #compile(shape: TableShape, { written, shape: known, conditions }: Where): readonly Condition[] {
    const isKnown = conditions !== undefined && isSame(known, shape) && !this.#usesFunctions(written);
    return isKnown ? conditions : compileClause(this.#compileOptions(shape), written);
  }

  #usesFunctions(written: WrittenClause): boolean {
    if (written.kind === 'condition') return this.#host.registeredFunction(written.condition.name) !== undefined;
    return conditionsIn(written).some(({ name }) => this.#host.registeredFunction(name) !== undefined);
  }

  #compileOptions(shape: TableShape): CompileOptions {
    return { shape, registered: (name) => this.#host.registeredFunction(name) };
  }
}

function isSame(a: TableShape | undefined, b: TableShape): boolean {
  return a === b || a?.canonical === b.canonical;
}
