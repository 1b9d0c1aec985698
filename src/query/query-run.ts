/** One run of a query: on which states of its table, within which budget, and by which plans. */
import { isPromise } from '../base/brands.ts';
import { signalOptions } from '../base/option-checks.ts';
import type { Overlay, QueryHost, ReadThrough } from '../view/query-host.ts';
import type { TableState } from '../view/table-state.ts';
import { BudgetMeter } from './budget.ts';
import type { BudgetLimits } from './budget.ts';
import { requireField } from './conditions/condition.ts';
import { Execution } from './operators/executor.ts';
import type { Row } from './operators/executor.ts';
import { plannedQuery } from './planner/plan-cache.ts';
import type { PlannedQuery } from './planner/plan-cache.ts';
import { rowByKey } from './point-query.ts';
import { readOf } from './read-predicate.ts';
import { eitherOf, orAborted, runOnState } from './run-on-state.ts';
import type { QueryOptions, RunOptions } from './run-on-state.ts';
import type { WrittenQuery } from './planner/query-spec.ts';

/** The options of a call without any: it is known by them. */
export const noOptions: QueryOptions = {};

function rowsOf(execution: Execution): Row[] | Promise<Row[]> {
  return execution.rows();
}

export class QueryRun implements RunOptions {
  readonly host: QueryHost;
  readonly table: string;
  readonly overlay: Overlay | undefined;
  /** What is metered is done once. */
  readonly ahead: boolean;
  /** Undefined where there is no budget. */
  readonly meter: BudgetMeter | undefined;
  readonly through: ReadThrough | undefined;

  /** `ahead`: whether it may begin before it is known whether a state is the present one, if it has no budget. */
  constructor(
    host: QueryHost,
    table: string,
    overlay: Overlay | undefined,
    budget: BudgetLimits | undefined,
    ahead: boolean,
  ) {
    this.host = host;
    this.table = table;
    this.overlay = overlay;
    this.ahead = ahead && budget === undefined;
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
    return isPromise(execution) ? execution.then(work) : work(execution);
  }

  /** Plans a query on a state, as {@link metered} gives it, and makes ready to carry the plan out. */
  execution(state: TableState, written: WrittenQuery, ends?: AbortSignal): Execution | Promise<Execution> {
    const { host, meter } = this;
    const { shape } = state;
    const fields = written.fields?.map((name) => requireField(shape, name, 'select'));
    const signal = eitherOf(ends, meter?.signal);
    const begin = ({ query, plan }: PlannedQuery): Execution => {
      if (meter !== undefined) meter.plan = plan;
      const { environment } = host;
      const execution = new Execution(state, query, plan, { environment, fields, signal });
      host.queried?.(shape, readOf(execution));
      return execution;
    };
    const planned = plannedQuery(host, state, written, signal);
    return isPromise(planned) ? planned.then(begin) : begin(planned);
  }
}
