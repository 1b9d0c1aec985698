/** Values of results as JSON and back: as exports of rows have them, with the types that JSON cannot tell beside them. */
import { isBytes, isDate } from '../base/brands.ts';
import { Types } from '../format/types.ts';
import type { TypeId } from '../format/types.ts';
import { fromJson, toJson } from '../text/cell-values.ts';
import type { WireTypes } from './messages.ts';

/** A row, or an object of aggregates. */
export type WireRow = Readonly<Record<string, unknown>>;

/** A row as JSON, and the types of its fields. */
export interface EncodedRow {
  readonly text: string;
  readonly types: WireTypes;
}

/** The types that values are decoded by, by the names that stand in events. */
const decoded: ReadonlyMap<string, TypeId> = new Map<string, TypeId>([
  ['timestamp', Types.timestamp],
  ['bytes', Types.bytes],
  ['int64', Types.int64],
]);

/** Numbers that JSON lacks, as `toJson()` writes them. */
const oddNumbers: ReadonlySet<unknown> = new Set(['Infinity', '-Infinity', '-0', 'NaN']);

function typeOf(value: unknown): string | undefined {
  if (typeof value === 'bigint') return 'int64';
  if (isDate(value)) return 'timestamp';
  if (isBytes(value)) return 'bytes';
  const isOdd = typeof value === 'number' && (!Number.isFinite(value) || Object.is(value, -0));
  return isOdd ? 'float64' : undefined;
}

/** Encodes a row. */
export function encodeRow(row: object): EncodedRow {
  const types: [string, string][] = [];
  const fields = Object.entries(row).map(([name, value]: [string, unknown]) => {
    const type = typeOf(value);
    if (type !== undefined) types.push([name, type]);
    return [name, toJson(Types.float64, value)];
  });
  return { text: JSON.stringify(Object.fromEntries(fields)), types: Object.fromEntries(types) };
}

/** Returns the types of several rows. */
export function joinedTypes(rows: readonly EncodedRow[]): WireTypes {
  const all = new Map<string, string>();
  for (const { types } of rows) for (const [name, type] of Object.entries(types)) all.set(name, type);
  return Object.fromEntries(all);
}

/** Decodes a row. Throws `ValueError` for what no `encodeRow()` has written. */
export function decodeRow(row: WireRow, types: WireTypes): WireRow {
  const typed = Object.entries(types);
  if (typed.length === 0) return row;
  const byName = new Map(typed);
  // Not by assignment: a field may be called `__proto__`.
  return Object.fromEntries(Object.entries(row).map(([name, value]) => [name, decodeValue(byName.get(name), value)]));
}

function decodeValue(type: string | undefined, value: unknown): unknown {
  if (type === 'float64') return oddNumbers.has(value) ? Number(value) : value;
  const typeId = type === undefined ? undefined : decoded.get(type);
  return typeId === undefined ? value : fromJson(typeId, value);
}
