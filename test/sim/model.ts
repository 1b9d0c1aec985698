/**
 * The database as it ought to be: tables are maps, operations change them one after the other, a query looks at every
 * row. Nothing here is shared with the engine.
 */
import { valueIn } from './functions.ts';
import { completeRow, primaryKeyOf } from './tables.ts';
import type { Row, Value } from './tables.ts';
import { isVersioned, tableName } from './versions.ts';

export type Key = string | number;
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
export interface Verdict {
  readonly code: 'DUPLICATE_KEY' | 'ROW_NOT_FOUND';
  readonly table: string;
  readonly key: Key;
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

/** Whether operations are rejected with exactly this verdict on a state: keys are independent of each other. */
export function isVerdictOn(state: State, ops: readonly Op[], { code, table, key }: Verdict): boolean {
  const result = applyOps(
    state,
    ops.filter((op) => tableName(op.table) === table && op.key === key),
  );
  return isRejected(result) && result.code === code;
}

export interface Where {
  readonly field: string;
  readonly operator: '=' | '!=' | '<' | '<=' | '>' | '>=' | 'IN';
  readonly value: Value | readonly Value[];
}

export interface ModelQuery {
  readonly table: string;
  readonly wheres: readonly Where[];
  readonly orders: readonly { readonly field: string; readonly direction: 'asc' | 'desc' }[];
  readonly limit?: number;
  readonly offset: number;
}

/** Null first, then by value. All text here is ASCII. */
function compare(a: Value, b: Value): number {
  if (a === b) return 0;
  if (a === null) return -1;
  if (b === null) return 1;
  return a < b ? -1 : 1;
}

function matches(row: Row, { field, operator, value }: Where): boolean {
  const stored = valueIn(row, field);
  if (operator === 'IN') return (value as readonly Value[]).includes(stored);
  const compared = value as Value;
  if (operator === '=') return stored === compared;
  if (operator === '!=') return stored !== compared;
  if (stored === null || compared === null) return false;
  const order = compare(stored, compared);
  if (operator === '<') return order < 0;
  if (operator === '<=') return order <= 0;
  return operator === '>' ? order > 0 : order >= 0;
}

/** What a query returns on the rows of its table. */
export function runQuery(rows: TableRows, query: ModelQuery): Row[] {
  const key = primaryKeyOf(query.table);
  const found = [...rows.values()].filter((row) => query.wheres.every((where) => matches(row, where)));
  found.sort((a, b) => {
    for (const { field, direction } of query.orders) {
      const order = compare(a[field] as Value, b[field] as Value);
      if (order !== 0) return direction === 'asc' ? order : -order;
    }
    return compare(a[key] as Value, b[key] as Value);
  });
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
export function sortedRows(rows: TableRows): Row[] {
  return [...rows].toSorted(([a], [b]) => compare(a, b)).map(([, row]) => row);
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
