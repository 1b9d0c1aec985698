/** The model: tables as maps of plain rows, one version after each commit, and queries by filter and sort. */
import type { Operator } from '../../../src/query/conditions/comparison.ts';
import type { ModelField, ModelTable } from './schemas.ts';
import { compareNaively, readBack, textOf } from './values.ts';

/** A row: values in the order of the table's fields. */
export type ModelRow = readonly unknown[];
/** Rows by the text of their primary key. */
export type Rows = ReadonlyMap<string, ModelRow>;
/** Every table, by its place. */
export type Version = readonly Rows[];

export type Operation =
  | {
      readonly kind: 'insert' | 'upsert' | 'update';
      readonly table: number;
      readonly document: ReadonlyMap<string, unknown>;
    }
  | { readonly kind: 'delete'; readonly table: number; readonly key: unknown };

export interface Condition {
  readonly field: ModelField;
  readonly operator: Operator;
  readonly value: unknown;
}

/** Conditions of which all must hold in one of the branches, or in none. */
export interface Alternatives {
  readonly branches: readonly (readonly Condition[])[];
  readonly negated: boolean;
}

export interface ModelQuery {
  readonly conditions: readonly Condition[];
  readonly alternatives: readonly Alternatives[];
  readonly order: readonly { readonly field: ModelField; readonly descending: boolean }[];
  readonly limit: number | undefined;
  readonly offset: number;
}

export function valueOf(table: ModelTable, row: ModelRow, field: ModelField): unknown {
  return row[table.fields.indexOf(field)];
}

function keyText({ primaryKey }: ModelTable, key: unknown): string {
  return textOf(readBack(primaryKey.typeId, key));
}

function keyOfOperation(table: ModelTable, operation: Operation): string {
  return keyText(table, operation.kind === 'delete' ? operation.key : operation.document.get(table.primaryKey.name));
}

function rowOf(table: ModelTable, document: ReadonlyMap<string, unknown>): ModelRow {
  return table.fields.map(({ name, typeId, fallback }) => {
    const given = document.get(name);
    return readBack(typeId, given === undefined ? fallback : given);
  });
}

function changed(table: ModelTable, row: ModelRow, document: ReadonlyMap<string, unknown>): ModelRow {
  return table.fields.map(({ name, typeId }, i) => {
    const given = document.get(name);
    return given === undefined ? row[i] : readBack(typeId, given);
  });
}

/** The version after operations, and the codes of what contradicts it: then a flush is rejected with one of them. */
export function apply(
  tables: readonly ModelTable[],
  version: Version,
  operations: readonly Operation[],
): { readonly version: Version; readonly errors: ReadonlySet<string> } {
  const next = version.map((rows) => new Map(rows));
  const errors = new Set<string>();
  for (const operation of operations) {
    const table = tables[operation.table] as ModelTable;
    const rows = next[operation.table] as Map<string, ModelRow>;
    const key = keyOfOperation(table, operation);
    const present = rows.get(key);
    if (operation.kind === 'delete') rows.delete(key);
    else if (operation.kind === 'update') {
      if (present === undefined) errors.add('ROW_NOT_FOUND');
      else rows.set(key, changed(table, present, operation.document));
    } else {
      if (operation.kind === 'insert' && present !== undefined) errors.add('DUPLICATE_KEY');
      rows.set(key, rowOf(table, operation.document));
    }
  }
  return { version: next, errors };
}

function matches(table: ModelTable, row: ModelRow, { field, operator, value }: Condition): boolean {
  const stored = valueOf(table, row, field);
  if (operator === 'IN') return (value as unknown[]).some((each) => equals(field, stored, each));
  if (operator === '=') return equals(field, stored, value);
  if (operator === '!=') return !equals(field, stored, value);
  if (operator === 'BETWEEN') {
    const [low, high] = value as [unknown, unknown];
    return (
      matches(table, row, { field, operator: '>=', value: low }) &&
      matches(table, row, { field, operator: '<=', value: high })
    );
  }
  if (operator === 'HAS' || operator === 'HAS ANY' || operator === 'HAS ALL')
    return hasElements(stored, operator, value);
  if (stored === null || value === null) return false;
  if (operator === 'PREFIX') return beginsWith(stored, value);
  const order = compareNaively(stored, comparable(field, value));
  return { '<': order < 0, '<=': order <= 0, '>': order > 0, '>=': order >= 0 }[operator];
}

/** Whether a list has an element, or any or all of some. */
export function hasElements(stored: unknown, operator: 'HAS' | 'HAS ANY' | 'HAS ALL', value: unknown): boolean {
  const list: readonly unknown[] = Array.isArray(stored) ? stored : [];
  if (operator === 'HAS') return list.includes(value);
  const wanted = value as readonly unknown[];
  return operator === 'HAS ANY' ? wanted.some((one) => list.includes(one)) : wanted.every((one) => list.includes(one));
}

/** By whole characters, so that no text begins with half of one. */
export function beginsWith(stored: unknown, prefix: unknown): boolean {
  if (typeof stored === 'string')
    return Array.from(prefix as string).every((each, i) => Array.from(stored)[i] === each);
  return Array.from(prefix as Uint8Array).every((byte, i) => (stored as Uint8Array)[i] === byte);
}

function equals(field: ModelField, stored: unknown, value: unknown): boolean {
  if (stored === null || value === null) return stored === value;
  return compareNaively(stored, comparable(field, value)) === 0;
}

/** Compared values count as they are, but that UUIDs have no case. */
function comparable(field: ModelField, value: unknown): unknown {
  return typeof value === 'string' ? readBack(field.typeId, value) : value;
}

/** The rows that a query gives, in order. */
export function run(table: ModelTable, rows: Rows, query: ModelQuery): ModelRow[] {
  const found = [...rows.values()].filter((row) => {
    const isOneOf = ({ branches, negated }: Alternatives): boolean => {
      return branches.some((branch) => branch.every((each) => matches(table, row, each))) !== negated;
    };
    return query.conditions.every((each) => matches(table, row, each)) && query.alternatives.every(isOneOf);
  });
  const order = [...query.order, { field: table.primaryKey, descending: false }];
  const sorted = found.toSorted((a, b) => {
    for (const { field, descending } of order) {
      const difference = compareNaively(valueOf(table, a, field), valueOf(table, b, field));
      if (difference !== 0) return descending ? -difference : difference;
    }
    return 0;
  });
  const end = query.limit === undefined ? undefined : query.offset + query.limit;
  return sorted.slice(query.offset, end);
}

/** The row with a primary key. */
export function find(table: ModelTable, rows: Rows, key: unknown): ModelRow | undefined {
  return rows.get(keyText(table, key));
}

/** A row as text: its fields by name. */
export function rowText(table: ModelTable, row: ModelRow, fields: readonly ModelField[] = table.fields): string {
  const entries = fields.map((field): [string, unknown] => [field.name, valueOf(table, row, field)]);
  return textOf(Object.fromEntries(entries));
}
