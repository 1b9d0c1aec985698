/** A query as it is written, and its compilation for a version of its table. */
import { InvalidQueryError } from '../../base/errors.ts';
import { itemsInStep } from '../../base/pacer.ts';
import type { Steps } from '../../base/pacer.ts';
import type { LayoutField } from '../../format/row-layout.ts';
import { maxTimestampMs, Types } from '../../format/types.ts';
import type { TableShape } from '../../schema/table-shape.ts';
import type { RowRef } from '../../tree/tree.ts';
import { TwoPartTree } from '../../tree/two-part-tree.ts';
import type { QueryHost } from './query-host.ts';
import type { TableState } from '../../view/table-state.ts';
import { compileClause, compilingClause, conditionsIn, hasCondition, weightOf } from '../conditions/clause.ts';
import type { WrittenClause } from '../conditions/clause.ts';
import { isListOperator, plainValue } from '../conditions/comparison.ts';
import { checkFunctionOperator, orderedPath, requireField } from '../conditions/condition.ts';
import type { CompileOptions, Condition, WrittenCondition } from '../conditions/condition.ts';
import type { OrderField } from '../conditions/row-order.ts';
import type { CompiledQuery, Candidate, IndexAccess, TableAccess } from './access-paths.ts';
import type { WrittenSearch } from '../conditions/search-options.ts';
import type { TakenFields } from './covering-index.ts';

/** Ascending or descending. */
export type Direction = 'asc' | 'desc';

export interface WrittenOrder {
  readonly name: string;
  readonly direction: Direction;
}

/** A clause, and its last compilation if it contains no registered function. */
export interface Where {
  readonly written: WrittenClause;
  /** The sum of the weights of its conditions: see {@link weightOf}. */
  readonly weight: number;
  compiled: { readonly shape: TableShape; readonly conditions: readonly Condition[] } | undefined;
  /** Whether it leaves out rows that have expired, by the time at which the query is run. */
  readonly isExpiry?: true;
}

/** The parts of a query when it is run. Later calls of the builder do not change it. */
export interface WrittenQuery {
  readonly wheres: readonly Where[];
  readonly orders: readonly WrittenOrder[];
  readonly fields: readonly string[] | undefined;
  readonly limit: number | undefined;
  readonly offset: number;
  /** Whether only the number of rows is wanted. */
  readonly counts?: boolean;
  /** The names of the fields to aggregate, where no rows are returned. */
  readonly folds?: readonly string[];
  /** Whether rows may come in any order. */
  readonly unordered?: boolean;
  /** How many rows may be held for a sort if some access has the order: a loop takes rows one by one. */
  readonly sorts?: CompiledQuery['sorts'];
  /** The words that rows must have. */
  readonly search?: WrittenSearch | undefined;
  /** Returns conditions that the call that runs the query adds. */
  readonly more?: (shape: TableShape, query: CompiledQuery) => readonly Condition[];
}

/** The time by which a host shows no rows that have expired. */
function expiryTime({ expiryMs, environment }: QueryHost): number {
  return expiryMs ?? environment.now();
}

/** Whether a row has expired for a host. Reads of single rows ask first whether rows of the table do so at all: no call is as fast. */
export function isHidden(host: QueryHost, shape: TableShape, row: RowRef): boolean {
  return shape.isExpired(row, expiryTime(host));
}

/** Returns a query that leaves out rows that have expired. */
export function unexpired(host: QueryHost, { expiry }: TableShape, written: WrittenQuery): WrittenQuery {
  if (expiry === undefined) return written;
  const { name, typeId } = expiry.field;
  const untilMs = expiryTime(host) - expiry.afterMs;
  // Before all times, nothing has expired; and only then can the time be none that the field holds.
  if (untilMs < -maxTimestampMs) return written;
  // Times in integers are whole.
  const until = typeId === Types.float64 ? untilMs : Math.floor(untilMs);
  const captured = typeId === Types.timestamp ? new Date(until) : until;
  const condition: WrittenCondition = { name, operator: '<=', value: captured, captured };
  const clause: WrittenClause = { kind: 'not', clause: { kind: 'condition', condition } };
  return {
    ...written,
    wheres: [...written.wheres, { written: clause, weight: 1, compiled: undefined, isExpiry: true }],
  };
}

/** Returns a field that rows can be ordered by. Throws `InvalidQueryError` if there is none of that name. */
export function requireOrderField(shape: TableShape, name: string, what = 'orderBy'): LayoutField {
  const field = requireField(shape, name, what);
  if (field.path !== undefined) return orderedPath(shape, field);
  if (field.typeId !== Types.json) return field;
  throw new InvalidQueryError(
    `${what}: field '${name}' of table '${shape.name}' is JSON, which has no order: store what to sort by in a field of its own.`,
  );
}

/** Returns the options for compiling a clause for a version of its table. Checks values by what fields are beside their type. */
function compileOptions(host: QueryHost, shape: TableShape, written: WrittenClause): CompileOptions {
  host.kinds?.get(shape.name)?.check(conditionsIn(written));
  return { shape, registered: (name) => host.functions.get(name) };
}

/** The most conditions and values that are compiled and planned without a pause. */
const maxAtOnce = 1024;

/** Whether a clause has so many conditions and values that compiling it would block the event loop. */
export function isHeavy({ weight }: Where): boolean {
  return weight > maxAtOnce;
}

/** Whether clauses together have so many conditions and values. */
export function areHeavy(wheres: readonly Where[]): boolean {
  let weight = 0;
  for (const where of wheres) weight += where.weight;
  return weight > maxAtOnce;
}

/** Compiles a query for a version of its table. `conditions`: its compiled clauses, if there are any. */
export function compileQuery(
  host: QueryHost,
  shape: TableShape,
  written: WrittenQuery,
  conditions: readonly Condition[] = compileWheres(host, shape, written.wheres),
): CompiledQuery {
  const asked: CompiledQuery = {
    conditions,
    order: written.orders.map(({ name, direction }): OrderField => {
      return { field: requireOrderField(shape, name), descending: direction === 'desc' };
    }),
    limit: written.limit,
    offset: written.offset,
    counts: written.counts === true,
    unordered: written.counts === true || written.unordered === true,
    sorts: written.sorts,
    takes: takenFields(shape, written),
  };
  const more = written.more?.(shape, asked) ?? [];
  return more.length === 0 ? asked : { ...asked, conditions: [...asked.conditions, ...more] };
}

/** Returns the fields that a query takes. Ignores unknown names; the code that reads the values refuses them. */
function takenFields({ layout }: TableShape, { counts, folds, fields }: WrittenQuery): TakenFields | undefined {
  const names = counts === true ? [] : (folds ?? fields);
  if (names === undefined) return undefined;
  const fieldOf = (name: string): LayoutField | undefined => layout.field(name) ?? layout.path(name, Types.json);
  const taken = names.map(fieldOf).filter((field) => field !== undefined);
  return { fields: taken, signs: counts !== true && folds === undefined };
}

/** Whether a condition is valid for sure, since it compares a field with a value that the field can hold. */
export function isPlain(host: QueryHost, shape: TableShape, { name, operator, captured }: WrittenCondition): boolean {
  if (operator === 'IN' || operator === 'BETWEEN' || operator === 'PREFIX' || isListOperator(operator)) return false;
  const field = shape.layout.field(name);
  if (field === undefined || host.functions.has(name) || host.kinds?.get(shape.name)?.has(name) === true) return false;
  return plainValue(field.typeId, captured) !== undefined;
}

function compileWheres(host: QueryHost, shape: TableShape, wheres: readonly Where[]): readonly Condition[] {
  const [first] = wheres;
  // The conditions of a single clause are not copied.
  if (first !== undefined && wheres.length === 1) return compileWhere(host, shape, first);
  return wheres.flatMap((where) => compileWhere(host, shape, where));
}

/** Returns the conditions of a clause for a version of its table. Throws if it cannot be compiled. */
export function compileWhere(host: QueryHost, shape: TableShape, where: Where): readonly Condition[] {
  const { written, compiled } = where;
  if (usesFunctions(host, written)) return compileClause(compileOptions(host, shape, written), written);
  // Plans are found by the fields of the very shape, and are kept for others who ask.
  if (compiled?.shape === shape) return compiled.conditions;
  const conditions = compileClause(compileOptions(host, shape, written), written);
  where.compiled = { shape, conditions };
  return conditions;
}

/** Compiles clauses in steps, and prepares the key ranges and selectors that planning needs. */
export function* preparing(host: QueryHost, shape: TableShape, wheres: readonly Where[]): Steps<Condition[]> {
  const all: Condition[] = [];
  for (const where of wheres) {
    const { written, compiled } = where;
    let conditions = compiled?.shape === shape ? compiled.conditions : undefined;
    if (conditions === undefined || usesFunctions(host, written)) {
      conditions = yield* compilingClause(compileOptions(host, shape, written), written);
      if (!usesFunctions(host, written)) where.compiled = { shape, conditions };
    }
    for (const condition of conditions) all.push(condition);
    yield;
  }
  const fields = {
    table: shape.keyFields,
    index: [...new Set(shape.indexes.flatMap((index) => index.fields))],
  };
  for (const [i, condition] of all.entries()) {
    yield* condition.preparing(fields);
    if ((i + 1) % itemsInStep === 0) yield;
  }
  return all;
}

/**
 * Checks the first conditions and values of a clause that has very many, so that most mistakes are reported at once. The others are
 * checked when the query is run.
 */
export function checkBeginning(host: QueryHost, shape: TableShape | undefined, written: WrittenClause): void {
  let left = maxAtOnce;
  for (const condition of conditionsIn(written)) {
    if (host.functions.has(condition.name)) {
      checkFunctionOperator(condition.name, condition.operator);
    } else if (shape !== undefined) {
      const { operator, captured } = condition;
      const isLong = operator === 'IN' && Array.isArray(captured) && captured.length > left;
      const beginning = isLong ? { ...condition, captured: captured.slice(0, left) as unknown[] } : condition;
      const clause = { kind: 'condition', condition: beginning } as const;
      compileClause(compileOptions(host, shape, clause), clause);
    }
    left -= weightOf(condition);
    if (left <= 0) return;
  }
}

function usesFunctions(host: QueryHost, written: WrittenClause): boolean {
  return hasCondition(written, ({ name }) => host.functions.has(name));
}

/** Fewer rows are skipped faster by reading them than by counting. */
const minSkipped = 16;

/** Returns the access of a plan if it pays to skip the rows of the offset by the counts in tree nodes; undefined otherwise. */
export function countableAccess(
  state: TableState,
  query: CompiledQuery,
  { access, residual, ordered }: Candidate,
): IndexAccess | TableAccess | undefined {
  if (query.offset < minSkipped || !ordered || query.counts === true) return undefined;
  if ((access.kind !== 'table' && access.kind !== 'index') || access.ranges.length !== 1) return undefined;
  if (residual.length > 0) return undefined;
  if (state.layers.length > 0 && !paysDespite(state, access, query.offset)) return undefined;
  const tree = access.kind === 'table' ? state.tree : state.treeOf(access.index);
  return tree === undefined || tree instanceof TwoPartTree || tree.mayBreak || tree.ref === null ? undefined : access;
}

/**
 * Whether skipping pays despite unmerged commits, whose changes are not in the counts. For a table, each changed row is looked up, which
 * may take as long as reading a leaf.
 */
function paysDespite(state: TableState, { kind }: IndexAccess | TableAccess, offset: number): boolean {
  const { entries, leaves } = state.tree.estimate();
  return kind === 'table' && offset >= minSkipped + state.layerRows * (1 + entries / Math.max(1, leaves));
}
