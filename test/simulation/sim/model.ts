/**
 * The database as it ought to be: tables are maps, operations change them one after the other, a query looks at every
 * row. Nothing here is shared with the engine.
 */
import { valueIn } from './functions.ts';
import { completeRow, primaryKeyOf, uniqueFieldsOf } from './tables.ts';
import type { Key, Row, UniqueFields, Value } from './tables.ts';
import { isVersioned, tableName } from './versions.ts';

export type { Key } from './tables.ts';
export type TableRows = ReadonlyMap<Key, Row>;
/** Tables by name. Immutable: every commit makes a new one, sharing the tables that it does not touch. */
export type State = ReadonlyMap<string, TableRows>;

export type Op =
  | {
      readonly kind: 'insert' | 'update' | 'upsert';
      readonly table: string;
      readonly key: Key;
      readonly document: Row;
    }
  | { readonly kind: 'delete'; readonly table: string; readonly key: Key };

/** Why operations cannot be applied to a state. */
export type Verdict =
  | { readonly code: 'DUPLICATE_KEY' | 'ROW_NOT_FOUND'; readonly table: string; readonly key: Key }
  | { readonly code: 'UNIQUE_INDEX'; readonly table: string; readonly key: Key; readonly agreement: Agreement };

/** Two rows that agree where none may. */
export interface Agreement {
  readonly index: string;
  readonly value: Value | readonly Value[];
  readonly keys: readonly [Key, Key];
}

const noRows: TableRows = new Map();
export const emptyState: State = new Map();

export function rowsOf(state: State, table: string): TableRows {
  return state.get(table) ?? noRows;
}

/** The row after an operation; a verdict if it contradicts what is there. `lenient`: as an overlay shows it. */
function applyOp(row: Row | undefined, op: Op, lenient: boolean): Row | undefined | Verdict {
  const { table, key } = op;
  if (op.kind === 'delete') return undefined;
  if (op.kind === 'update') {
    if (row !== undefined) return { ...row, ...op.document };
    return lenient ? undefined : ({ code: 'ROW_NOT_FOUND', table, key } as const);
  }
  if (op.kind === 'insert' && row !== undefined && !lenient) return { code: 'DUPLICATE_KEY', table, key } as const;
  return completeRow(table, op.document);
}

function isVerdict(result: Row | undefined | Verdict): result is Verdict {
  return typeof result?.['code'] === 'string';
}

/** The state after all operations, or why they are rejected. */
export function applyOps(state: State, ops: readonly Op[], lenient = false): State | Verdict {
  const changed = new Map<string, Map<Key, Row>>();
  for (const op of ops) {
    const rows = changed.get(op.table) ?? new Map(rowsOf(state, op.table));
    changed.set(op.table, rows);
    const result = applyOp(rows.get(op.key), op, lenient);
    if (isVerdict(result)) return result;
    if (result === undefined) rows.delete(op.key);
    else rows.set(op.key, result);
  }
  return new Map([...state, ...changed]);
}

export function isRejected(result: State | Verdict): result is Verdict {
  return !(result instanceof Map);
}

/** The value that a row has in an index, as the engine tells it; undefined if it is not there, or a field of it is null. */
function indexed(row: Row, { fields, isInside }: UniqueFields): Value | readonly Value[] | undefined {
  if (!isInside(row)) return undefined;
  const values = fields.map((field) => row[field] as Value);
  if (values.includes(null)) return undefined;
  return values.length === 1 ? values[0] : values;
}

/** Two rows of a table that agree in a unique index; undefined if there are none. `isMeant`: of some indexes. */
export function agreementIn(
  table: string,
  rows: TableRows,
  isMeant: (index: string) => boolean = () => true,
): Agreement | undefined {
  for (const [index, fields] of uniqueFieldsOf(table)) {
    if (!isMeant(index)) continue;
    const seen = new Map<string, Key>();
    for (const [key, row] of rows) {
      const value = indexed(row, fields);
      if (value === undefined) continue;
      const text = JSON.stringify(value);
      const other = seen.get(text);
      if (other !== undefined) return { index, value, keys: [other, key] };
      seen.set(text, key);
    }
  }
  return undefined;
}

/** Whether operations make just these two rows agree, one of which they write. */
function isAgreementOn(
  state: State,
  ops: readonly Op[],
  { table, key, agreement }: Verdict & { code: 'UNIQUE_INDEX' },
): boolean {
  const { index, value, keys } = agreement;
  const fields = uniqueFieldsOf(table).get(index);
  const result = applyOps(state, ops);
  if (fields === undefined || isRejected(result) || !ops.some((op) => op.key === key && op.kind !== 'delete'))
    return false;
  const agrees = (each: Key): boolean => {
    const row = rowsOf(result, table).get(each);
    return row !== undefined && JSON.stringify(indexed(row, fields)) === JSON.stringify(value);
  };
  return keys[0] !== keys[1] && keys.every(agrees);
}

/** Whether operations are rejected with exactly this verdict on a state: tables, and mostly keys, are independent of each other. */
export function isVerdictOn(state: State, ops: readonly Op[], verdict: Verdict): boolean {
  const { code, table, key } = verdict;
  const ofTable = ops.filter((op) => tableName(op.table) === table);
  if (verdict.code === 'UNIQUE_INDEX') return isAgreementOn(state, ofTable, verdict);
  const result = applyOps(
    state,
    ofTable.filter((op) => op.key === key),
  );
  return isRejected(result) && result.code === code;
}

/** On one field. */
export interface FieldWhere {
  readonly field: string;
  readonly operator: '=' | '!=' | '<' | '<=' | '>' | '>=' | 'IN' | 'BETWEEN' | 'PREFIX';
  readonly value: Value | readonly Value[];
}

/** On several fields together. */
export interface TupleWhere {
  readonly field: readonly string[];
  readonly operator: '=' | 'IN';
  readonly value: readonly Value[] | readonly (readonly Value[])[];
}

export type Where = FieldWhere | TupleWhere;

export type ModelClause =
  | Where
  | { readonly and: readonly ModelClause[] }
  | { readonly or: readonly ModelClause[] }
  | { readonly not: ModelClause };

export interface ModelQuery {
  readonly table: string;
  readonly wheres: readonly Where[];
  /** What must hold beside them. */
  readonly clause?: ModelClause | undefined;
  readonly orders: readonly { readonly field: string; readonly direction: 'asc' | 'desc' }[];
  readonly limit?: number;
  readonly offset: number;
}

/** Null first, then by value. All text here is ASCII. */
export function compare(a: Value, b: Value): number {
  if (a === b) return 0;
  if (a === null) return -1;
  if (b === null) return 1;
  return a < b ? -1 : 1;
}

function isOnField(where: Where): where is FieldWhere {
  return typeof where.field === 'string';
}

function matchesTuple(row: Row, { field, operator, value }: TupleWhere): boolean {
  const tuples = operator === 'IN' ? (value as readonly (readonly Value[])[]) : [value as readonly Value[]];
  return tuples.some((tuple) => field.every((name, i) => row[name] === tuple[i]));
}

function matches(row: Row, where: Where): boolean {
  if (!isOnField(where)) return matchesTuple(row, where);
  const { field, operator, value } = where;
  const stored = valueIn(row, field);
  if (operator === 'IN') return (value as readonly Value[]).includes(stored);
  if (operator === 'PREFIX') return typeof stored === 'string' && stored.startsWith(value as string);
  if (operator === 'BETWEEN') {
    const [low, high] = value as readonly [Value, Value];
    return stored !== null && compare(low, stored) <= 0 && compare(stored, high) <= 0;
  }
  const compared = value as Value;
  if (operator === '=') return stored === compared;
  if (operator === '!=') return stored !== compared;
  if (stored === null || compared === null) return false;
  const order = compare(stored, compared);
  if (operator === '<') return order < 0;
  if (operator === '<=') return order <= 0;
  return operator === '>' ? order > 0 : order >= 0;
}

function holds(row: Row, clause: ModelClause): boolean {
  if ('and' in clause) return clause.and.every((each) => holds(row, each));
  if ('or' in clause) return clause.or.some((each) => holds(row, each));
  return 'not' in clause ? !holds(row, clause.not) : matches(row, clause);
}

/** Which of two rows comes first. */
export function compareRows({ table, orders }: ModelQuery, a: Row, b: Row): number {
  for (const { field, direction } of orders) {
    const order = compare(a[field] as Value, b[field] as Value);
    if (order !== 0) return direction === 'asc' ? order : -order;
  }
  for (const key of primaryKeyOf(table)) {
    const order = compare(a[key] as Value, b[key] as Value);
    if (order !== 0) return order;
  }
  return 0;
}

/** What a query returns on the rows of its table. */
export function runQuery(rows: TableRows, query: ModelQuery): Row[] {
  const { wheres, clause } = query;
  const isFound = (row: Row): boolean =>
    wheres.every((where) => matches(row, where)) && (clause === undefined || holds(row, clause));
  const found = [...rows.values()].filter(isFound);
  found.sort((a, b) => compareRows(query, a, b));
  return found.slice(query.offset, query.limit === undefined ? undefined : query.offset + query.limit);
}

/** Rows in one canonical text: equal exactly if the rows are, in the same order. */
export function textOf(rows: Iterable<Row>): string {
  const lines: string[] = [];
  for (const row of rows) {
    lines.push(
      JSON.stringify(
        Object.keys(row)
          .toSorted()
          .map((name) => [name, row[name]]),
      ),
    );
  }
  return lines.join('\n');
}

/** The rows of a table in the order of their keys. */
export function sortedRows(table: string, rows: TableRows): Row[] {
  return runQuery(rows, { table, wheres: [], orders: [], offset: 0 });
}

/** The first difference of two states, for messages; undefined if there is none. Tables in several versions are left out. */
export function differenceOf(expected: State, found: State): string | undefined {
  for (const table of new Set([...expected.keys(), ...found.keys()])) {
    const [a, b] = [rowsOf(expected, table), rowsOf(found, table)];
    if (a === b || isVersioned(table)) continue;
    for (const key of new Set([...a.keys(), ...b.keys()])) {
      const [left, right] = [a.get(key), b.get(key)].map((row) => (row === undefined ? 'no row' : textOf([row])));
      if (left !== right) return `${table} ${key}: expected ${left}, found ${right}`;
    }
  }
  return undefined;
}
