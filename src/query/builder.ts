/** The query builder: what `db.query(table)` returns. */
import { InvalidOperatorError, InvalidQueryError } from '../base/errors.ts';
import type { LayoutField } from '../format/row-layout.ts';
import { Types } from '../format/types.ts';
import { describeValue } from '../format/values.ts';
import type { Overlay, QueryHost } from '../table/query-host.ts';
import type { TableShape } from '../table/table-shape.ts';
import type { TableState } from '../table/table-state.ts';
import { isOperator, operators } from './comparison.ts';
import type { Operator } from './comparison.ts';
import { captureValue, checkFunctionOperator, compileCondition, requireField } from './condition.ts';
import type { Condition, WrittenCondition } from './condition.ts';
import { countRows } from './count.ts';
import { Execution } from './execute.ts';
import type { Row } from './execute.ts';
import { explainPlan } from './explain.ts';
import type { Explanation } from './explain.ts';
import type { CompiledQuery, Plan } from './plan.ts';
import { planQuery } from './planner.ts';
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

/** The name of a field, with the known ones suggested. */
export type FieldName<R> = (keyof R & string) | (string & Record<never, never>);

interface WrittenOrder {
  readonly name: string;
  readonly direction: Direction;
}

/** A condition, and what it was compiled to when the table's shape was known already. */
interface Where {
  readonly written: WrittenCondition;
  readonly shape: TableShape | undefined;
  readonly condition: Condition | undefined;
}

/** What a query is made of at the moment when it is run: calling the builder again does not change it. */
interface Written {
  readonly wheres: readonly Where[];
  readonly orders: readonly WrittenOrder[];
  readonly fields: readonly string[] | undefined;
  readonly limit: number | undefined;
  readonly offset: number;
  readonly counts?: boolean;
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
   * array, of which an empty one matches nothing. `= null` and `!= null` test for null; null never matches `<`, `<=`, `>`
   * or `>=`, and `!=` with a value matches null. With a function only `=` is allowed. The value is copied. Throws
   * `InvalidQueryError` for an unknown field or a value of another kind, and `InvalidOperatorError` for an operator that
   * the field does not take; where the table is not registered yet, running the query rejects with them.
   */
  where(field: FieldName<R>, operator: Operator, value: unknown): this {
    if (typeof field !== 'string') {
      throw new InvalidQueryError(`where() takes the name of a field, not ${describeValue(field)}.`);
    }
    if (!isOperator(operator)) {
      const message = `Unknown operator ${describeValue(operator)} for '${field}': it is one of ${operators.join(', ')}.`;
      throw new InvalidOperatorError(operator, message);
    }
    const written: WrittenCondition = { name: field, operator, value, captured: captureValue(value) };
    const registered = this.#host.registeredFunction(field);
    if (registered !== undefined) checkFunctionOperator(field, operator);
    const shape = registered === undefined ? this.#host.shapeOf(this.#table) : undefined;
    const condition = shape === undefined ? undefined : compileCondition(shape, undefined, written);
    this.#wheres = [...this.#wheres, { written, shape, condition }];
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
    return this;
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
    const written = { ...this.#written(), orders: [], counts: true };
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
    const running = runOnState(this.#runOptions(), (state) => {
      const execution = this.#execution(state, written, options);
      return execution instanceof Promise ? execution.then(work) : work(execution);
    });
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

  #execution(state: TableState, written: Written, options: QueryOptions): Execution | Promise<Execution> {
    const { shape } = state;
    const query: CompiledQuery = {
      conditions: written.wheres.map((where) => this.#compile(shape, where)),
      order: written.orders.map(({ name, direction }): OrderField => {
        return { field: requireOrderField(shape, name), descending: direction === 'desc' };
      }),
      limit: written.limit,
      offset: written.offset,
      counts: written.counts === true,
    };
    const fields = written.fields?.map((name) => requireField(shape, name, 'select'));
    const begin = (plan: Plan): Execution => {
      const { environment } = this.#host;
      const execution = new Execution(state, query, plan, { environment, fields, signal: options.signal });
      this.#host.queried?.(shape, readOf(execution));
      return execution;
    };
    const plan = planQuery(state, query);
    return plan instanceof Promise ? plan.then(begin) : begin(plan);
  }

  #compile(shape: TableShape, where: Where): Condition {
    const registered = this.#host.registeredFunction(where.written.name);
    if (registered === undefined && where.condition !== undefined && isSame(where.shape, shape)) return where.condition;
    return compileCondition(shape, registered, where.written);
  }
}

function isSame(a: TableShape | undefined, b: TableShape): boolean {
  return a === b || a?.canonical === b.canonical;
}
