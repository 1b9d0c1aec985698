/**
 * An index that is added to a table, as Block 0 holds it until it is one of the schema's (docs/protocol.md, "Added indexes").
 */
import { isBase64, isCount, isRoot } from './stored-root.ts';
import type { StoredRoot } from './stored-root.ts';
import { isIndexOf } from './stored-schema.ts';
import type { StoredIndex, StoredSchema } from './stored-schema.ts';

export interface StoredAddedIndex {
  readonly index: StoredIndex;
  /** Of its entries. */
  readonly root: StoredRoot;
  /** The last key whose entry was made, as base64: empty before the first, null once all are. Keys above have none. */
  readonly built: string | null;
  /** Rows whose entries were made, for people. */
  readonly rows: number;
  /** Generation of Block 0 that first had it: an index of the same name that is added again has another. */
  readonly birth: number;
  /** Why it cannot be: then nothing is made of it. Absent: no reason is known. */
  readonly problem?: string;
}

function isStoredAddedIndex(value: unknown, schema: StoredSchema): value is StoredAddedIndex {
  if (typeof value !== 'object' || value === null) return false;
  const { index, root, built, rows, birth, problem } = value as Record<string, unknown>;
  if (!isIndexOf(schema, index) || !isRoot(root) || !(built === null || isBase64(built))) return false;
  return isCount(rows) && isCount(birth) && (problem === undefined || typeof problem === 'string');
}

/** Whether parsed JSON is what is added to a schema: no index has the name of another one. Undefined: nothing is. */
export function areAddedIndexes(
  value: unknown,
  schema: StoredSchema,
): value is readonly StoredAddedIndex[] | undefined {
  if (value === undefined) return true;
  if (!Array.isArray(value) || value.length === 0) return false;
  if (!value.every((one) => isStoredAddedIndex(one, schema))) return false;
  const { indexes, functionIndexes = [] } = schema;
  const names = [...indexes, ...functionIndexes, ...value.map(({ index }) => index)].map(({ name }) => name);
  return new Set(names).size === names.length;
}
