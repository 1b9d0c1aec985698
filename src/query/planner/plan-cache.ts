/**
 * Caches the plans of queries, by their words and the state of their table: applications repeat the same few queries. A plan
 * stays valid as long as the same blocks are in memory, since its choice depends on them.
 */
import { isPromise } from '../../base/brands.ts';
import { Pacer, withPauses } from '../../base/pacer.ts';
import type { LayoutField } from '../../format/row-layout.ts';
import type { Condition } from '../conditions/condition.ts';
import type { KnownPlan, QueryHost } from './query-host.ts';
import type { TableShape } from '../../schema/table-shape.ts';
import type { TableState } from '../../view/table-state.ts';
import type { CompiledQuery, Plan } from './access-paths.ts';
import { planQuery } from './planner.ts';
import { areHeavy, compileQuery, compileWhere, preparing } from './query-spec.ts';
import type { WrittenQuery } from './query-spec.ts';

export interface PlannedQuery {
  readonly query: CompiledQuery;
  readonly plan: Plan;
}

/** Longer values are not worth being compared. */
const longestText = 256;
const noConditions: readonly Condition[] = [];

/**
 * Plans a query on a state of its table: at once, unless something must be read to choose well, or it has very many conditions.
 * `signal`: gives up.
 */
export function plannedQuery(
  host: QueryHost,
  state: TableState,
  written: WrittenQuery,
  signal?: AbortSignal,
): PlannedQuery | Promise<PlannedQuery> {
  if (areHeavy(written.wheres)) return plannedSlowly(host, state, written, signal);
  const words = wordsOf(host, written);
  const { turnover } = state.tree.source.counters;
  const known = words === undefined ? undefined : host.queryMemory.planOf(state, words);
  const last = written.wheres.at(-1);
  const unexpired = last?.isExpiry === true ? compileWhere(host, state.shape, last) : noConditions;
  if (known?.turnover === turnover && known.unexpired.length === unexpired.length) {
    if (known.plan.deferred?.use() !== true) return unexpired.length === 0 ? known : atPresent(known, unexpired);
  }
  const query = compileQuery(host, state.shape, written);
  const plan = planQuery(state, query, host.queryMemory);
  // The blocks read for the plan are in memory now: the next plan may be another one.
  if (isPromise(plan)) return plan.then((chosen) => ({ query, plan: chosen }));
  if (words !== undefined && (unexpired.length === 0 || isTimeless(state.shape, plan))) {
    host.queryMemory.remember(state, words, { query, plan, turnover, unexpired });
  }
  return { query, plan };
}

/** Whether the time by which rows have expired is no part of a plan, except for the conditions that rows are tested for. */
function isTimeless({ expiry }: TableShape, { access, covered }: Plan): boolean {
  if (expiry === undefined) return true;
  const { field } = expiry;
  const isFree = (fields: readonly LayoutField[]): boolean => !fields.includes(field);
  if (covered.some(({ reads }) => reads === undefined || !isFree(reads))) return false;
  if (access.kind === 'index') return isFree(access.index.fields);
  return access.kind === 'keys' || access.kind === 'table';
}

/** Returns a plan that was made earlier with conditions that leave out the rows that have expired by now. */
function atPresent({ query, plan, unexpired }: KnownPlan, now: readonly Condition[]): PlannedQuery {
  const renewed = (conditions: readonly Condition[]): Condition[] =>
    conditions.map((condition) => now[unexpired.indexOf(condition)] ?? condition);
  const { use } = plan;
  return {
    query: { ...query, conditions: renewed(query.conditions) },
    plan: { ...plan, residual: renewed(plan.residual), use: use && { ...use, tests: renewed(use.tests) } },
  };
}

/** Compiles a query, with pauses where it has very many conditions or values. */
export function compiledQuery(
  host: QueryHost,
  shape: TableShape,
  written: WrittenQuery,
  signal?: AbortSignal,
): CompiledQuery | Promise<CompiledQuery> {
  return areHeavy(written.wheres) ? compiledSlowly(host, shape, written, signal) : compileQuery(host, shape, written);
}

async function compiledSlowly(
  host: QueryHost,
  shape: TableShape,
  written: WrittenQuery,
  signal: AbortSignal | undefined,
): Promise<CompiledQuery> {
  const pacer = new Pacer(host.environment);
  const pause = (): void | Promise<void> => {
    signal?.throwIfAborted();
    return pacer.due() ? pacer.pause() : undefined;
  };
  const conditions = await withPauses(preparing(host, shape, written.wheres), pause);
  // The rest of the work is done without a pause.
  await pacer.pause();
  signal?.throwIfAborted();
  return compileQuery(host, shape, written, conditions);
}

async function plannedSlowly(
  host: QueryHost,
  state: TableState,
  written: WrittenQuery,
  signal: AbortSignal | undefined,
): Promise<PlannedQuery> {
  const query = await compiledSlowly(host, state.shape, written, signal);
  const plan = await planQuery(state, query, host.queryMemory);
  await host.environment.yieldToEventLoop();
  signal?.throwIfAborted();
  return { query, plan };
}

/** Returns a text that identifies a query; undefined for one that is not simple, or calls functions. */
function wordsOf(host: QueryHost, written: WrittenQuery): string | undefined {
  const { wheres, orders, fields, limit, offset, counts, folds, unordered, sorts, more } = written;
  if (folds !== undefined || more !== undefined) return undefined;
  let words = `${limit} ${offset} ${counts} ${unordered} ${sorts}`;
  for (const { written: clause, isExpiry } of wheres) {
    if (isExpiry === true) {
      words += ' unexpired';
      continue;
    }
    if (clause.kind !== 'condition') return undefined;
    const { name, operator, captured } = clause.condition;
    const value = wordOf(captured);
    if (value === undefined || host.functions.has(name)) return undefined;
    words += ` where ${name.length}:${name} ${operator} ${value}`;
  }
  for (const { name, direction } of orders) words += ` by ${name.length}:${name} ${direction}`;
  if (fields === undefined) return words;
  words += ' select';
  for (const name of fields) words += ` ${name.length}:${name}`;
  return words;
}

/** Lengths come before texts, so that no text can be taken for more than one. */
function wordOf(value: unknown): string | undefined {
  switch (typeof value) {
    case 'string':
      return value.length > longestText ? undefined : `s${value.length}:${value}`;
    case 'number':
      return Object.is(value, -0) ? 'n-0' : `n${value}`;
    case 'bigint':
    case 'boolean':
      return `${typeof value} ${value}`;
    default:
      return value === null ? 'null' : undefined;
  }
}
