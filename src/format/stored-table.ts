/** A table as Block 0 and its catalogue hold it: its versions, and the roots of their trees. */
import { areAddedIndexes } from './stored-added-index.ts';
import type { StoredAddedIndex } from './stored-added-index.ts';
import { areIndexVersions } from './stored-index-version.ts';
import type { StoredIndexVersion } from './stored-index-version.ts';
import { isRoot } from './stored-root.ts';
import type { StoredRoot } from './stored-root.ts';
import { isStoredSchema } from './stored-schema.ts';
import type { StoredSchema } from './stored-schema.ts';

/** One table in one schema version. */
export interface StoredTableVersion {
  readonly schema: StoredSchema;
  readonly root: StoredRoot;
  readonly indexes: readonly { readonly name: string; readonly root: StoredRoot }[];
  /** What is stored of the indexes on functions. Absent exactly where the schema has none. */
  readonly editions?: readonly StoredIndexVersion[];
  /** Indexes that are being added. Absent where there are none. */
  readonly added?: readonly StoredAddedIndex[];
}

export interface StoredTable {
  readonly name: string;
  /** One, or two while a migration of the table is under way: then the entry in `migrations` says which is active. */
  readonly versions: readonly StoredTableVersion[];
}

/** A root block that is no object of its own. */
export interface InlinedRoot {
  readonly name: string;
  /** Base64. */
  readonly block: string;
}

function isTableVersion(value: unknown): value is StoredTableVersion {
  if (typeof value !== 'object' || value === null) return false;
  const { schema, root, indexes, editions, added } = value as Record<string, unknown>;
  if (!isStoredSchema(schema) || !isRoot(root) || !Array.isArray(indexes)) return false;
  if (!areIndexVersions(editions, schema) || !areAddedIndexes(added, schema)) return false;
  return (
    indexes.length === schema.indexes.length &&
    indexes.every((index: { name?: unknown; root?: unknown } | null, i) => {
      return index !== null && index.name === schema.indexes[i]?.name && isRoot(index.root);
    })
  );
}

/** Whether parsed JSON has the shape of a stored table. */
export function isTable(value: unknown): value is StoredTable {
  if (typeof value !== 'object' || value === null) return false;
  const { name, versions } = value as Record<string, unknown>;
  if (typeof name !== 'string' || !Array.isArray(versions) || versions.length === 0) return false;
  return versions.every((version) => isTableVersion(version) && version.schema.name === name);
}

/** Whether parsed JSON has the shape of an inlined root. */
export function isInlined(value: unknown): value is InlinedRoot {
  if (typeof value !== 'object' || value === null) return false;
  const { name, block } = value as Record<string, unknown>;
  return typeof name === 'string' && typeof block === 'string';
}

/** Whether a value is an array of nothing but what passes a check. */
export function everyOf<T>(value: unknown, check: (item: unknown) => item is T): value is T[] {
  return Array.isArray(value) && value.every(check);
}
