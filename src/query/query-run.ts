/** One run of a query: on which states of its table, within which budget, and by which plans. */
import { andThen } from '../base/brands.ts';
import { Later } from '../base/later.ts';
import { signalOptions } from '../base/options.ts';
import type { LayoutField } from '../format/row-layout.ts';
import type { KeyValue } from '../schema/table-shape.ts';
import type { RowRef } from '../tree/tree.ts';
import type { Overlay, QueryHost, ReadThrough } from './planner/query-host.ts';
import type { TableState } from '../view/table-state.ts';
import { BudgetMeter } from './budget.ts';
import type { BudgetLimits } from './budget.ts';
import { plainValue } from './conditions/comparison.ts';
import type { FieldValue } from './conditions/comparison.ts';
import type { Condition } from './conditions/condition.ts';
import type { Execution, Row } from './operators/executor.ts';
import { areHeavy, compileWhere, isHidden } from './planner/query-spec.ts';
import type { WrittenQuery, Where } from './planner/query-spec.ts';
import { eitherOf, orAborted, runOnState } from './run-on-state.ts';
import type { QueryOptions, RunOptions } from './run-on-state.ts';

/** The planner and the operators. Reading a row by its primary key needs neither. */
const executing = new Later('the execution of queries', () => import('./execute.ts'));

/** The options of a call without any: it is known by them. */
export const noOptions: QueryOptions = {};

function rowsOf(execution: Execution): Row[] | Promise<Row[]> {
  return execution.rows();
}

export class QueryRun implements RunOptions {
  readonly host: QueryHost;
  readonly table: string;
  readonly overlay: Overlay | undefined;
  /** Whether a run may begin speculatively, before the present state is known. False with a budget, since work may be repeated. */
  readonly speculative: boolean;
  /** The meter of the budget, if there is one. */
  readonly meter: BudgetMeter | undefined;
  readonly through: ReadThrough | undefined;

  /** `speculative`: see the property; ignored with a budget. */
  constructor(
    host: QueryHost,
    table: string,
    overlay: Overlay | undefined,
    budget: BudgetLimits | undefined,
    speculative: boolean,
  ) {
    this.host = host;
    this.table = table;
    this.overlay = overlay;
    this.speculative = speculative && budget === undefined;
    if (budget === undefined) return;
    const meter = new BudgetMeter(host.environment, table, budget);
    this.meter = meter;
    this.through = (state) => meter.metered(state);
  }

  /** The rows of a query. */
  rows(written: WrittenQuery, options: QueryOptions): Promise<Row[]> {
    const { host } = this;
    const isPlain = this.meter === undefined && host.queried === undefined && options === noOptions;
    if (!isPlain) return this.one(written, options, rowsOf);
    return runOnState(this, (state, _, ends) => {
      return rowByKey(host, state, written) ?? this.#workOn(state, written, ends, rowsOf);
    });
  }

  /** Runs a query. */
  one<T>(written: WrittenQuery, options: QueryOptions, work: (execution: Execution) => T | Promise<T>): Promise<T> {
    return this.#onStates(options, (state, ends) => this.#workOn(state, written, ends, work));
  }

  /**
   * Runs several queries on one state, if all of them are of use: else `work` is given none. `otherwise` plans another one on
   * that state.
   */
  several<T>(
    written: readonly WrittenQuery[],
    options: QueryOptions,
    isOfUse: (execution: Execution) => boolean,
    work: (
      executions: readonly Execution[] | undefined,
      otherwise: (other: WrittenQuery) => Promise<Execution>,
    ) => Promise<T>,
  ): Promise<T> {
    return this.#onStates(options, async (state, ends) => {
      const plan = async (one: WrittenQuery): Promise<Execution> => this.execution(state, one, ends);
      const [one, ...more] = written;
      const first = one && (await plan(one));
      if (first === undefined || !isOfUse(first)) return work(undefined, plan);
      const others = await Promise.all(more.map(plan));
      return work(others.every(isOfUse) ? [first, ...others] : undefined, plan);
    });
  }

  #onStates<T>(
    options: QueryOptions,
    work: (state: TableState, ends: AbortSignal | undefined) => T | Promise<T>,
  ): Promise<T> {
    const { meter } = this;
    let signal: AbortSignal | undefined;
    try {
      ({ signal } = signalOptions.check('a query', options));
    } catch (error) {
      const refusal = error as Error;
      return Promise.reject(refusal);
    }
    const run = (): Promise<T> =>
      runOnState(this, (state, _, ends) => work(this.metered(state), eitherOf(signal, ends)));
    return orAborted(meter === undefined ? run() : meter.timed(run), this.table, signal);
  }

  /** A state whose blocks are charged to the budget, if there is one. */
  metered(state: TableState): TableState {
    return this.meter === undefined ? state : this.meter.metered(state);
  }

  /** Plans a query on a state, and works on it: without a promise where planning and the work need none. */
  #workOn<T>(
    state: TableState,
    written: WrittenQuery,
    ends: AbortSignal | undefined,
    work: (execution: Execution) => T | Promise<T>,
  ): T | Promise<T> {
    const execution = this.execution(state, written, ends);
    return andThen(execution, work);
  }

  /** Plans a query on a state, as {@link metered} gives it, and makes ready to carry the plan out. */
  execution(state: TableState, written: WrittenQuery, ends?: AbortSignal): Execution | Promise<Execution> {
    const { loaded } = executing;
    if (loaded !== undefined) return loaded.execute(this, state, written, ends);
    return executing.load().then(({ execute }) => execute(this, state, written, ends));
  }
}

/** Looks up a row without a plan, if its primary key is the only condition of a query; undefined for every other query. */
function rowByKey(host: QueryHost, state: TableState, written: WrittenQuery): Row[] | Promise<Row[]> | undefined {
  const { wheres, orders, fields, limit, offset, search } = written;
  const { keyField, keyFields } = state.shape;
  if (
    wheres.length === 0 ||
    wheres.length > keyFields.length ||
    orders.length > 0 ||
    search !== undefined ||
    areHeavy(wheres)
  )
    return undefined;
  if (fields !== undefined || limit === 0 || offset > 0) return undefined;
  const value =
    keyField === undefined ? valuesOf(host, state, wheres) : keyOf(host, state, keyField, wheres[0] as Where);
  if (value === undefined) return undefined;
  const { key } = host.queryMemory;
  key.length = 0;
  state.shape.writeKey(key, value);
  // Primary keys are not truncated: no row has a key that is too long.
  const found = state.lookup(key.bytes, key.length);
  return andThen(found, (rowRef) => decoded(host, state, rowRef));
}

/** Returns the primary key if a clause only compares it by `=`. */
function keyOf(host: QueryHost, { shape }: TableState, keyField: LayoutField, where: Where): FieldValue | undefined {
  const { written } = where;
  if (written.kind !== 'condition') return undefined;
  const { name, operator, captured } = written.condition;
  if (operator === '=' && name === keyField.name && !host.functions.has(name)) {
    const value = plainValue(keyField.typeId, captured);
    if (value !== undefined) return value;
  }
  const conditions = compileWhere(host, shape, where);
  return conditions.length === 1 ? valueOf(conditions[0] as Condition, keyField) : undefined;
}

/** Returns the value that a condition compares a field with by `=`; undefined for other conditions. */
function valueOf({ on }: Condition, field: LayoutField): FieldValue | undefined {
  if (on?.field !== field) return undefined;
  const { comparison } = on;
  return comparison.kind === 'value' && comparison.operator === '=' ? comparison.value : undefined;
}

/** Returns the values of a primary key of several fields, if clauses give a value for each and nothing else. */
function valuesOf(host: QueryHost, { shape }: TableState, wheres: readonly Where[]): KeyValue | undefined {
  const { keyFields } = shape;
  const conditions = wheres.flatMap((where) => compileWhere(host, shape, where));
  if (conditions.length !== keyFields.length) return undefined;
  const values: FieldValue[] = [];
  for (const field of keyFields) {
    const condition = conditions.find(({ on }) => on?.field === field);
    const value = condition && valueOf(condition, field);
    if (value === undefined) return undefined;
    values.push(value);
  }
  return values;
}

function decoded(host: QueryHost, { shape }: TableState, rowRef: RowRef | undefined): Row[] {
  if (rowRef === undefined || (shape.expiry !== undefined && isHidden(host, shape, rowRef))) return [];
  return [shape.decoder.decode(rowRef.source, rowRef.base)];
}
