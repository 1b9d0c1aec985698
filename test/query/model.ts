/** The naive model that queries are tested against: an array of rows, filtered, sorted and cut. */
import { compareValues } from '../../src/base/order.ts';
import type { OrderedValue } from '../../src/base/order.ts';
import type { Operator } from '../../src/query/comparison.ts';
import type { Row } from './test-table.ts';

export interface ModelQuery {
  readonly wheres: readonly (readonly [field: string, operator: Operator, value: unknown])[];
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
  if (value === null || other === null) return false;
  const order = compare(value, other);
  if (operator === '<') return order < 0;
  if (operator === '<=') return order <= 0;
  return operator === '>' ? order > 0 : order >= 0;
}

export function runModel(rows: readonly Row[], primaryKey: string, query: ModelQuery): Row[] {
  const found = rows.filter((row) => {
    return query.wheres.every(([field, operator, value]) => matches(row[field], operator, value));
  });
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
