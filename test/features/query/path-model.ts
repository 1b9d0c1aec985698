/** The naive model of paths into json fields: values of rows, conditions on them, and their order. */
import { compareStrings } from '../../../src/base/bytes.ts';
import type { ModelClause, ModelQuery } from './model.ts';
import { holds } from './model.ts';
import type { Row } from './test-table.ts';

/** The types of values, in their order. */
const types = ['boolean', 'number', 'text', 'other'] as const;
export type PathType = (typeof types)[number] | 'time';

/** Returns the value at a path; undefined if there is none. */
export function valueAt(row: Row, path: string): unknown {
  const parts = path.split(/(?<!\\)\./).map((part) => part.replaceAll('\\.', '.'));
  let value: unknown = row;
  if (parts[0] === 'a') parts.splice(0, 2, 'a.b');
  for (const part of parts) {
    if (Array.isArray(value)) value = /^\d+$/.test(part) ? (value as unknown[])[Number(part)] : undefined;
    else if (value !== null && typeof value === 'object') {
      value = Object.entries(value).find(([name]) => name === part)?.[1];
    } else return undefined;
  }
  return value;
}

function typeOf(value: unknown): PathType | undefined {
  if (value === null || value === undefined) return undefined;
  if (typeof value === 'string') return 'text';
  if (typeof value === 'number' || typeof value === 'bigint') return 'number';
  if (value instanceof Date) return 'time';
  return typeof value === 'boolean' ? 'boolean' : 'other';
}

function isTime(text: string): boolean {
  const time = new Date(text);
  return !Number.isNaN(time.getTime()) && JSON.stringify(time) === JSON.stringify(text);
}

/** Returns a value as it is shown if it is of a type, or null. */
export function kindOf(value: unknown, type: PathType | undefined): unknown {
  const own = typeOf(value);
  if (own === undefined) return null;
  if (type === undefined) return own === 'text' ? (value as string).toWellFormed() : value;
  if (type === 'time') return own === 'text' && isTime(value as string) ? new Date(value as string) : null;
  if (own === 'text' && !(value as string).isWellFormed()) return null;
  return own === type ? value : null;
}

function compare(a: unknown, b: unknown): number {
  if (typeof a === 'string') return compareStrings(a.toWellFormed(), (b as string).toWellFormed());
  return (a as number) < (b as number) ? -1 : (a as number) > (b as number) ? 1 : 0;
}

function matches(value: unknown, operator: string, other: unknown): boolean {
  if (operator === 'IN') return (other as unknown[]).some((one) => matches(value, '=', one));
  if (operator === '=' && other === null) return value === null || value === undefined;
  if (operator === '!=') return !matches(value, '=', other);
  if (operator === 'BETWEEN') {
    const [low, high] = other as unknown[];
    return matches(value, '>=', low) && matches(value, '<=', high);
  }
  const type = operator === 'PREFIX' ? 'text' : typeOf(other);
  const own = type === undefined ? null : kindOf(value, type);
  if (own === null) return false;
  if (operator === 'PREFIX') return (own as string).startsWith(other as string);
  if (typeof other === 'string' && !other.isWellFormed())
    return operator !== '=' && ordersAs(compareUnits(own as string, other), operator);
  return ordersAs(compare(own, other), operator);
}

/** By code points, also of half characters. */
function compareUnits(a: string, b: string): number {
  const [x, y] = [Array.from(a), Array.from(b)];
  for (let i = 0; i < Math.min(x.length, y.length); i++) {
    const order = (x[i]?.codePointAt(0) as number) - (y[i]?.codePointAt(0) as number);
    if (order !== 0) return order;
  }
  return x.length - y.length;
}

function ordersAs(order: number, operator: string): boolean {
  if (operator === '=') return order === 0;
  if (operator === '<') return order < 0;
  if (operator === '<=') return order <= 0;
  return operator === '>' ? order > 0 : order >= 0;
}

function holdsAt(row: Row, clause: ModelClause): boolean {
  if ('and' in clause) return clause.and.every((each) => holdsAt(row, each));
  if ('or' in clause) return clause.or.some((each) => holdsAt(row, each));
  if ('not' in clause) return !holdsAt(row, clause.not);
  const [name, operator, value] = clause;
  return Object.hasOwn(row, name) ? holds(row, clause) : matches(valueAt(row, name), operator, value);
}

function rankOf(value: unknown): number {
  const type = typeOf(value);
  if (type === undefined) return -1;
  return value instanceof Date ? 0 : types.indexOf(type as (typeof types)[number]);
}

/** Compares values at a path, of any types: null first. */
function compareKinds(a: unknown, b: unknown): number {
  const ranks = rankOf(a) - rankOf(b);
  if (ranks !== 0 || a === null) return ranks;
  if (typeOf(a) === 'other') return compareStrings(JSON.stringify(a), JSON.stringify(b));
  return compare(a, b);
}

/** Returns the rows of a query, with `id` as the primary key. `type`: the type that an index gives to a path. */
export function expectedOf(
  rows: readonly Row[],
  { wheres, orders, limit, offset }: ModelQuery,
  type: (path: string) => PathType | undefined = () => undefined,
): Row[] {
  const found = rows.filter((row) => wheres.every((clause) => holdsAt(row, clause)));
  found.sort((a, b) => {
    for (const [name, direction] of orders) {
      const [x, y] = [a, b].map((row) => kindOf(valueAt(row, name), type(name)));
      const order = compareKinds(x, y);
      if (order !== 0) return direction === 'asc' ? order : -order;
    }
    return (a['id'] as number) - (b['id'] as number);
  });
  return found.slice(offset, limit === undefined ? undefined : offset + limit);
}
