/** Converts between primary keys and documents, which are rows as applications pass them. */
import { oneOrList } from '../base/one-or-list.ts';
import type { TableShape } from './table-shape.ts';

/** Returns a document of a primary key only. A key of several fields is given as an array. */
export function keyDocument({ keyField, keyFields }: TableShape, primaryKey: unknown): object {
  if (keyField !== undefined) return { [keyField.name]: primaryKey };
  const values = primaryKey as readonly unknown[];
  return Object.fromEntries(keyFields.map(({ name }, i) => [name, values[i]]));
}

/** Returns the primary key of a document. */
export function keyOfDocument({ schema }: TableShape, document: object): unknown {
  return oneOrList(schema.primaryKey.map((name) => (document as Record<string, unknown>)[name]));
}
