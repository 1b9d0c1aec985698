/** The naive model that queries are tested against: an array of rows, filtered, sorted and cut. */
import { compareValues } from '../../../src/base/bytes.ts';
import type { OrderedValue } from '../../../src/base/bytes.ts';
import type { Clause, Clauses } from '../../../src/query/conditions/clause.ts';
import type { Operator } from '../../../src/query/conditions/comparison.ts';
import { hasElements } from '../../properties/model/naive.ts';
import type { Row } from './test-table.ts';

export type ModelCondition = readonly [field: string, operator: Operator, value: unknown];
export type ModelClause =
  | ModelCondition
  | { readonly and: readonly ModelClause[] }
  | { readonly or: readonly ModelClause[] }
  | { readonly not: ModelClause };

export interface ModelQuery {
  readonly wheres: readonly ModelClause[];
  readonly orders: readonly (readonly [field: string, direction: 'asc' | 'desc'])[];
  readonly limit: number | undefined;
  readonly offset: number;
}

/** Compares by value, also numbers with bigints; both not null. */
function compare(a: unknown, b: unknown): number {
  return compareValues(a as OrderedValue, b as OrderedValue);
}

function matches(value: unknown, operator: Operator, other: unknown): boolean {
  if (operator === 'IN') return (other as unknown[]).some((item) => matches(value, '=', item));
  if (operator === '=') return value === null || other === null ? value === other : compare(value, other) === 0;
  if (operator === '!=') return !matches(value, '=', other);
  if (operator === 'BETWEEN') {
    const [low, high] = other as [unknown, unknown];
    return matches(value, '>=', low) && matches(value, '<=', high);
  }
  if (operator === 'HAS' || operator === 'HAS ANY' || operator === 'HAS ALL')
    return hasElements(value, operator, other);
  if (value === null || other === null) return false;
  if (operator === 'PREFIX') return beginsWith(value, other);
  const order = compare(value, other);
  if (operator === '<') return order < 0;
  if (operator === '<=') return order <= 0;
  return operator === '>' ? order > 0 : order >= 0;
}

function beginsWith(value: unknown, begin: unknown): boolean {
  if (typeof value === 'string') return value.startsWith(begin as string);
  const bytes = begin as Uint8Array;
  return Buffer.from((value as Uint8Array).subarray(0, bytes.length)).equals(bytes);
}

export function holds(row: Row, clause: ModelClause): boolean {
  if ('and' in clause) return clause.and.every((each) => holds(row, each));
  if ('or' in clause) return clause.or.some((each) => holds(row, each));
  if ('not' in clause) return !holds(row, clause.not);
  const [field, operator, value] = clause;
  return matches(row[field], operator, value);
}

/** The clause as the query builder takes it. */
export function clauseOf(clauses: Clauses<Row>, clause: ModelClause): Clause {
  const { is, and, or, not } = clauses;
  if ('and' in clause) return and(...clause.and.map((each) => clauseOf(clauses, each)));
  if ('or' in clause) return or(...clause.or.map((each) => clauseOf(clauses, each)));
  if ('not' in clause) return not(clauseOf(clauses, clause.not));
  return is(...clause);
}

/** Groups of rows by the values of fields, in their order. */
export function groupModel(rows: readonly Row[], fields: readonly string[]): Row[][] {
  const groups: Row[][] = [];
  for (const row of rows) {
    const group = groups.find(([first]) => fields.every((field) => compare(first?.[field], row[field]) === 0));
    if (group === undefined) groups.push([row]);
    else group.push(row);
  }
  return groups.toSorted(([a], [b]) => {
    for (const field of fields) {
      const order = compare(a?.[field], b?.[field]);
      if (order !== 0) return order;
    }
    return 0;
  });
}

/** -0 as 0: they are one value. */
export function withoutMinus(value: unknown): unknown {
  return Object.is(value, -0) ? 0 : value;
}

/** The value that comes first or last among those that are not null. */
export function extremeModel(rows: readonly Row[], field: string, sign: 1 | -1): unknown {
  const found = rows.map((row) => row[field]).filter((value) => value !== null);
  return withoutMinus(found.toSorted((a, b) => compare(a, b) * sign)[0] ?? null);
}

export function runModel(rows: readonly Row[], primaryKey: string, query: ModelQuery): Row[] {
  const found = rows.filter((row) => query.wheres.every((clause) => holds(row, clause)));
  const orders = [...query.orders, [primaryKey, 'asc'] as const];
  found.sort((a, b) => {
    for (const [field, direction] of orders) {
      const order = compare(a[field], b[field]);
      if (order !== 0) return direction === 'asc' ? order : -order;
    }
    return 0;
  });
  const end = query.limit === undefined ? undefined : query.offset + query.limit;
  return found.slice(query.offset, end);
}
