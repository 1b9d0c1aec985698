/** A query as it was written, and what it is compiled to for a version of its table. */
import { InvalidQueryError } from '../base/errors.ts';
import type { LayoutField } from '../format/row-layout.ts';
import { Types } from '../format/types.ts';
import type { QueryHost } from '../table/query-host.ts';
import type { TableShape } from '../table/table-shape.ts';
import { compileClause, conditionsIn } from './clause.ts';
import type { WrittenClause } from './clause.ts';
import { plainValue } from './comparison.ts';
import { requireField } from './condition.ts';
import type { CompileOptions, Condition, WrittenCondition } from './condition.ts';
import type { TakenFields } from './entry-use.ts';
import type { CompiledQuery } from './plan.ts';
import type { OrderField } from './row-order.ts';

/** Ascending or descending. */
export type Direction = 'asc' | 'desc';

export interface WrittenOrder {
  readonly name: string;
  readonly direction: Direction;
}

/** A clause, and what it was compiled to last, if no function is in it. */
export interface Where {
  readonly written: WrittenClause;
  compiled: { readonly shape: TableShape; readonly conditions: readonly Condition[] } | undefined;
}

/** What a query is made of at the moment when it is run: calling the builder again does not change it. */
export interface WrittenQuery {
  readonly wheres: readonly Where[];
  readonly orders: readonly WrittenOrder[];
  readonly fields: readonly string[] | undefined;
  readonly limit: number | undefined;
  readonly offset: number;
  /** Whether only the number of rows is wanted. */
  readonly counts?: boolean;
  /** Names of the fields whose values are folded, where rows are not returned. */
  readonly folds?: readonly string[];
  /** Whether it makes no difference in which order rows come. */
  readonly unordered?: boolean;
  /** Rows that may be held to be sorted where an access has their order: those of a loop are taken one by one. */
  readonly sorts?: CompiledQuery['sorts'];
  /** Conditions that follow from the call that runs the query. */
  readonly more?: (shape: TableShape, query: CompiledQuery) => readonly Condition[];
}

/** A field that rows can be ordered by. Throws `InvalidQueryError` if it is none. */
export function requireOrderField(shape: TableShape, name: string, what = 'orderBy'): LayoutField {
  const field = requireField(shape, name, what);
  if (field.typeId !== Types.json) return field;
  throw new InvalidQueryError(
    `${what}: field '${name}' of table '${shape.name}' is JSON, which has no order: store what to sort by in a field of its own.`,
  );
}

/** What clauses are compiled with, for a version of their table. */
export function compileOptions(host: QueryHost, shape: TableShape): CompileOptions {
  return { shape, registered: (name) => host.registeredFunction(name) };
}

/** Compiles a query for a version of its table. */
export function compileQuery(host: QueryHost, shape: TableShape, written: WrittenQuery): CompiledQuery {
  const asked: CompiledQuery = {
    conditions: compileWheres(host, shape, written.wheres),
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

/** Names that are none of a field are left for those to refuse who take its values. */
function takenFields({ layout }: TableShape, { counts, folds, fields }: WrittenQuery): TakenFields | undefined {
  const names = counts === true ? [] : (folds ?? fields);
  if (names === undefined) return undefined;
  const taken = names.map((name) => layout.field(name)).filter((field) => field !== undefined);
  return { fields: taken, signs: counts !== true && folds === undefined };
}

/** Whether a condition is plainly right, for it compares a field with a value that the field can hold. */
export function isPlain(host: QueryHost, shape: TableShape, { name, operator, captured }: WrittenCondition): boolean {
  if (operator === 'IN' || operator === 'BETWEEN' || operator === 'PREFIX') return false;
  const field = shape.layout.field(name);
  if (field === undefined || host.registeredFunction(name) !== undefined) return false;
  return plainValue(field.typeId, captured) !== undefined;
}

function compileWheres(host: QueryHost, shape: TableShape, wheres: readonly Where[]): readonly Condition[] {
  const [first] = wheres;
  // Those of a single clause are taken as they are, without a copy.
  if (first !== undefined && wheres.length === 1) return compileWhere(host, shape, first);
  return wheres.flatMap((where) => compileWhere(host, shape, where));
}

/** The conditions of a clause, for a version of its table. Throws where it cannot be compiled. */
export function compileWhere(host: QueryHost, shape: TableShape, where: Where): readonly Condition[] {
  const { written, compiled } = where;
  if (usesFunctions(host, written)) return compileClause(compileOptions(host, shape), written);
  // Plans are found by the fields of the very shape, and are kept for others who ask.
  if (compiled?.shape === shape) return compiled.conditions;
  const conditions = compileClause(compileOptions(host, shape), written);
  where.compiled = { shape, conditions };
  return conditions;
}

function usesFunctions(host: QueryHost, written: WrittenClause): boolean {
  if (written.kind === 'condition') return host.registeredFunction(written.condition.name) !== undefined;
  return conditionsIn(written).some(({ name }) => host.registeredFunction(name) !== undefined);
}
