/** A table's schema as Block 0 and commits hold it, and the check of one that was read back. */
import { compareStrings } from '../base/order.ts';
import { isTypeId, isVariable } from './types.ts';
import type { TypeId } from './types.ts';

/** What a field is when an insert leaves it out: a constant, or an id made at the insert. */
export type StoredDefault = { readonly constant: unknown } | { readonly generated: 'uuidv7' };

export interface StoredField {
  readonly name: string;
  readonly typeId: TypeId;
  readonly maxLength?: number;
  readonly default?: StoredDefault;
}

export interface StoredIndex {
  readonly name: string;
  /** Names of the indexed fields. The format takes several; for now there is always one. */
  readonly fields: readonly string[];
}

export interface StoredSchema {
  readonly name: string;
  readonly version: number;
  readonly fields: readonly StoredField[];
  /** Names of the key's fields. The format takes several; for now there is always one. */
  readonly primaryKey: readonly string[];
  readonly indexes: readonly StoredIndex[];
}

/** A schema in one canonical text: two definitions are the same exactly if their texts are. */
export function canonicalSchema(schema: StoredSchema): string {
  const byName = (a: { name: string }, b: { name: string }): number => compareStrings(a.name, b.name);
  const fields = schema.fields.toSorted(byName).map((field) => {
    const length = isVariable(field.typeId) ? (field.maxLength ?? null) : null;
    return [field.name, field.typeId, length, field.default ?? null];
  });
  const indexes = schema.indexes.toSorted(byName).map((index) => [index.name, index.fields]);
  return JSON.stringify([schema.name, schema.version, fields, schema.primaryKey, indexes]);
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isNames(value: unknown): value is string[] {
  return Array.isArray(value) && value.every((name) => typeof name === 'string');
}

function isStoredField(value: unknown): value is StoredField {
  if (!isObject(value) || typeof value['name'] !== 'string' || !isTypeId(value['typeId'])) return false;
  const { maxLength, default: fallback } = value;
  if (maxLength !== undefined && !(Number.isInteger(maxLength) && (maxLength as number) > 0)) return false;
  if (fallback === undefined) return true;
  return isObject(fallback) && ('constant' in fallback || fallback['generated'] === 'uuidv7');
}

function isStoredIndex(value: unknown): value is StoredIndex {
  return isObject(value) && typeof value['name'] === 'string' && isNames(value['fields']) && value['fields'].length > 0;
}

/** Whether parsed JSON is a stored schema whose names refer to each other as they should. */
export function isStoredSchema(value: unknown): value is StoredSchema {
  if (!isObject(value)) return false;
  const { name, version, fields, primaryKey, indexes } = value;
  if (typeof name !== 'string' || !Number.isInteger(version) || (version as number) < 0) return false;
  if (!Array.isArray(fields) || !fields.every(isStoredField)) return false;
  if (!Array.isArray(indexes) || !indexes.every(isStoredIndex)) return false;
  if (!isNames(primaryKey) || primaryKey.length === 0) return false;
  const names = new Set(fields.map((field) => field.name));
  const known = (field: string): boolean => names.has(field);
  return names.size === fields.length && primaryKey.every(known) && indexes.every((index) => index.fields.every(known));
}
