/**
 * An index version as Block 0 holds it: the entries of an index on a function, as one version of the function makes them
 * (docs/protocol.md, "Indexes on functions").
 */
import { isBase64, isCount, isRoot } from './stored-root.ts';
import type { StoredRoot } from './stored-root.ts';
import type { StoredSchema } from './stored-schema.ts';

export interface StoredIndexVersion {
  /** Name of the index. */
  readonly index: string;
  /** Of the function: any number. */
  readonly version: number;
  /** Of the entries. */
  readonly root: StoredRoot;
  /** Of the rows that the entries are of: the table's own root if the index version is current, else an earlier one. */
  readonly base: StoredRoot;
  /** The last key whose entry was made, as base64: empty before the first, null once all are. Keys above have none. */
  readonly built: string | null;
  /** Entries of rows on which the function failed. */
  readonly failed: number;
  /** Generation in which the table first went ahead of it; null while it is current. */
  readonly behindFrom: number | null;
}

function isStoredIndexVersion(value: unknown): value is StoredIndexVersion {
  if (typeof value !== 'object' || value === null) return false;
  const { index, version, root, base, built, failed, behindFrom } = value as Record<string, unknown>;
  if (typeof index !== 'string' || !Number.isFinite(version) || !isRoot(root) || !isRoot(base)) return false;
  if (!(built === null || isBase64(built)) || !isCount(failed)) return false;
  return behindFrom === null || isCount(behindFrom);
}

/** Whether parsed JSON is the index versions of a schema's indexes: of each, none twice for a version. */
export function areIndexVersions(value: unknown, { functionIndexes }: StoredSchema): boolean {
  if (functionIndexes === undefined) return value === undefined;
  if (!Array.isArray(value) || !value.every(isStoredIndexVersion)) return false;
  const known = new Set(functionIndexes.map(({ name }) => name));
  const different = new Set(value.map(({ index, version }) => `${version} ${index}`));
  return value.every(({ index }) => known.has(index)) && different.size === value.length;
}
