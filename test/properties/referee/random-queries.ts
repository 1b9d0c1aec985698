/** Random queries, and the same in SQL. */
import type { SeededRandom } from '../../../src/testing/seeded-random.ts';
import { Types } from '../../../src/index.ts';
import type { AnyQuery } from '../../features/values/open-database.ts';
import { indexedFields, toSql } from './random-tables.ts';
import type { Column, Table } from './random-tables.ts';
import type { SqlValue } from './sqlite.ts';

type Operator = '=' | '!=' | '<' | '<=' | '>' | '>=' | 'IN' | 'BETWEEN' | 'PREFIX';

export interface Condition {
  readonly column: Column;
  readonly operator: Operator;
  readonly value: unknown;
}

type Clause =
  | Condition
  | { readonly and: readonly Clause[] }
  | { readonly or: readonly Clause[] }
  | { readonly not: Clause };

export interface RandomQuery {
  readonly clauses: readonly Clause[];
  readonly orders: readonly { readonly name: string; readonly direction: 'asc' | 'desc' }[];
  readonly limit: number | undefined;
  readonly offset: number;
}

export interface Sql {
  readonly sql: string;
  readonly values: readonly SqlValue[];
}

const operators: readonly Operator[] = ['=', '=', '!=', '<', '<=', '>', '>=', 'IN', 'BETWEEN'];

function isText({ kind }: Column): boolean {
  return kind.typeId === Types.varchar || kind.typeId === Types.bytes;
}

function randomCondition(random: SeededRandom, table: Table, keys: readonly unknown[]): Condition {
  const column = random.pick(table.columns);
  const known = (): unknown => (column.name === 'k' ? random.pick(keys) : column.kind.compared(random));
  if (isText(column) && random.chance(0.2)) {
    const whole = known() as string | Buffer;
    // Not into the halves of a character.
    const end = random.integer(0, whole.length);
    const begin = typeof whole === 'string' ? Array.from(whole).slice(0, end).join('') : whole.subarray(0, end);
    return { column, operator: 'PREFIX', value: begin };
  }
  const value = (): unknown => (random.chance(0.1) ? null : known());
  const operator = random.pick(operators);
  if (operator === 'BETWEEN') return { column, operator, value: [value(), value()] };
  return { column, operator, value: operator === 'IN' ? Array.from({ length: random.integer(0, 5) }, value) : value() };
}

function randomClause(random: SeededRandom, table: Table, keys: readonly unknown[], depth: number): Clause {
  const dice = random.next();
  if (depth === 0 || dice < 0.3) return randomCondition(random, table, keys);
  if (dice < 0.45) return { not: randomClause(random, table, keys, depth - 1) };
  const parts = Array.from({ length: random.pick([0, 1, 2, 2, 3]) }, () =>
    randomClause(random, table, keys, depth - 1),
  );
  return dice < 0.65 ? { and: parts } : { or: parts };
}

function randomOrders(random: SeededRandom, table: Table): RandomQuery['orders'] {
  const indexed = indexedFields(table);
  const direction = (): 'asc' | 'desc' => random.pick(['asc', 'desc'] as const);
  if (indexed.length > 0 && random.chance(0.2)) {
    // As an index has them, or almost.
    const both = direction();
    const names = random.pick(indexed);
    return names.map((name) => ({ name, direction: random.chance(0.9) ? both : direction() }));
  }
  return Array.from({ length: random.pick([0, 0, 1, 1, 2]) }, () => {
    return { name: random.pick(table.columns).name, direction: direction() };
  });
}

export function randomQuery(random: SeededRandom, table: Table, keys: readonly unknown[]): RandomQuery {
  const clauses: Clause[] = Array.from({ length: random.pick([0, 1, 1, 1, 2, 2, 3]) }, () =>
    randomCondition(random, table, keys),
  );
  // A range on one column, as people write them.
  const [first] = clauses as Condition[];
  if (first !== undefined && random.chance(0.2)) {
    const value = first.column.name === 'k' ? random.pick(keys) : first.column.kind.compared(random);
    clauses.push({ column: first.column, operator: random.pick(['<', '<=', '>', '>=']), value });
  }
  if (random.chance(0.4)) clauses.push(randomClause(random, table, keys, 3));
  return {
    clauses,
    orders: randomOrders(random, table),
    limit: random.chance(0.4) ? random.integer(0, 12) : undefined,
    offset: random.chance(0.3) ? random.integer(0, 10) : 0,
  };
}

function addClause(query: AnyQuery, written: Clause): AnyQuery {
  return query.where(({ is, and, or, not }) => {
    type Built = ReturnType<typeof is>;
    const built = (clause: Clause): Built => {
      if ('and' in clause) return and(...clause.and.map(built));
      if ('or' in clause) return or(...clause.or.map(built));
      return 'not' in clause ? not(built(clause.not)) : is(clause.column.name, clause.operator, clause.value);
    };
    return built(written);
  });
}

/** The query as StoreDb takes it. */
export function build(start: AnyQuery, query: RandomQuery): AnyQuery {
  let built = start;
  for (const clause of query.clauses) {
    if ('column' in clause) built = built.where(clause.column.name, clause.operator, clause.value);
    else built = addClause(built, clause);
  }
  for (const { name, direction } of query.orders) built = built.orderBy(name, direction);
  if (query.limit !== undefined) built = built.limit(query.limit);
  return query.offset > 0 ? built.offset(query.offset) : built;
}

function conditionSql({ column, operator, value }: Condition, values: SqlValue[]): string {
  const field = `"${column.name}"`;
  // What a query compares a float32 with is not rounded: only what a row holds is.
  const bind = (given: unknown): string => {
    values.push(toSql(given, 0));
    return '?';
  };
  if (operator === 'IN') {
    // SQL's IN never finds null, and is unknown where the list has one.
    const list = value as unknown[];
    const found = list.filter((item) => item !== null).map(bind);
    return `(${field} IN (${found.join(', ')})${list.includes(null) ? ` OR ${field} IS NULL` : ''})`;
  }
  if (operator === 'BETWEEN') {
    const [low, high] = value as [unknown, unknown];
    return `(${field} BETWEEN ${bind(low)} AND ${bind(high)})`;
  }
  if (operator === 'PREFIX') {
    // Byte by byte: SQLite's lengths of texts end at a zero.
    const begin = Uint8Array.from(Buffer.from(value as string | Buffer));
    if (begin.length === 0) return `${field} IS NOT NULL`;
    values.push(begin);
    return `substr(CAST(${field} AS BLOB), 1, ${begin.length}) = ?`;
  }
  if (operator === '=') return `${field} IS ${bind(value)}`;
  if (operator === '!=') return `${field} IS NOT ${bind(value)}`;
  return `${field} ${operator} ${bind(value)}`;
}

function clauseSql(clause: Clause, values: SqlValue[]): string {
  // What is unknown to SQL is not so here, and its opposite is.
  if ('not' in clause) return `(NOT ${clauseSql(clause.not, values)})`;
  if ('and' in clause) return `(${['true', ...clause.and.map((each) => clauseSql(each, values))].join(' AND ')})`;
  if ('or' in clause) return `(${['false', ...clause.or.map((each) => clauseSql(each, values))].join(' OR ')})`;
  return `((${conditionSql(clause, values)}) IS TRUE)`;
}

/** The rows that the query finds, in their order: of SQL that selects from them. */
export function toFrom(table: Table, query: RandomQuery): Sql {
  const values: SqlValue[] = [];
  const where = query.clauses.map((clause) => clauseSql(clause, values)).join(' AND ') || 'true';
  // Nulls come first in SQLite too.
  const orders = [...query.orders.map(({ name, direction }) => `"${name}" ${direction}`), '"k"'].join(', ');
  const sql = `FROM "${table.schema.name}" WHERE ${where} ORDER BY ${orders} LIMIT ? OFFSET ?`;
  return { sql, values: [...values, query.limit ?? -1, query.offset] };
}

/** The query as SQL with the same meaning: the numbers of the rows that it finds. */
export function toSelect(table: Table, query: RandomQuery): Sql {
  const { sql, values } = toFrom(table, query);
  return { sql: `SELECT n ${sql}`, values };
}
