/** A table as Block 0 and its catalogue hold it: its versions, and the roots of their trees. */
import { compareBytes } from '../base/bytes.ts';
import type { BlockRef } from './block.ts';
import { isStoredSchema, isIndexOf } from './stored-schema.ts';
import type { StoredSchema, StoredIndex } from './stored-schema.ts';

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

// The root of a tree, as Block 0 holds it.

/** Root of a tree, null while the tree is empty. */
export type StoredRoot = (BlockRef & { readonly level: number }) | null;

export function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

export function isBase64(value: unknown): value is string {
  return typeof value === 'string' && /^[A-Za-z0-9+/]*={0,2}$/.test(value) && value.length % 4 === 0;
}

function isRoot(value: unknown): value is StoredRoot {
  if (value === null) return true;
  if (typeof value !== 'object') return false;
  const { birth, id, count, sizeBytes, level } = value as Record<string, unknown>;
  return [birth, count, sizeBytes, level].every(isCount) && typeof id === 'string' && /^[0-9a-f]{16}$/.test(id);
}

// How far work has come that goes through a tree in the order of its keys, as Block 0 holds it.

/** The last key that was dealt with; undefined before the first, null once all were. */
export type Bound = Uint8Array | undefined | null;

/** Encodes a bound as base64: empty before the first key. */
export function encodeBound(bound: Bound): string | null {
  return bound === null ? null : Buffer.from(bound ?? []).toString('base64');
}

export function decodeBound(stored: string | null): Bound {
  if (stored === null) return null;
  return stored === '' ? undefined : new Uint8Array(Buffer.from(stored, 'base64'));
}

/** Whether the turn of a key has not come yet. */
export function isBehind(key: Uint8Array, bound: Bound): boolean {
  return bound !== null && (bound === undefined || compareBytes(key, bound) > 0);
}

// A migration of a table as Block 0 holds it: which version is active, which one comes up beside it, and how far that is
// (docs/protocol.md, "Migrations").

const phases = ['beside', 'building', 'blocked', 'switched'] as const;

/**
 * `beside`: instances with the new version write it, and nobody has asked for the rest; `building`: its other rows are
 * made; `blocked`: some cannot be; `switched`: all are made, and the old version lives on for those who still use it.
 */
export type MigrationPhase = (typeof phases)[number];

/** A row that cannot be brought to the new version. */
export interface MigrationProblem {
  /** Its primary key, for people. */
  readonly key: string;
  readonly message: string;
}

/** The newest version of a table that an instance has registered; null: none. */
export interface VersionUser {
  readonly nodeId: number;
  readonly version: number | null;
  /** Which instance of the node: two may have one id. `*`: several; absent: written by an older release, for all of the node. */
  readonly instance?: string;
  /** When it said so, by its own clock. */
  readonly sinceMs?: number;
}

/** How the old version may go: `unused`, once no instance is known to use it; `asked`, since somebody has asked for its end. */
export type Retire = 'unused' | 'asked';

/** The options of the call that asked for the new version, on how to bring it up. */
export interface MigrationTarget {
  /** Rows a second that one node makes at most. */
  readonly rowsPerSecond: number;
  /** For nodes of older releases, which would take false for leave to retire the old version on a guess. */
  readonly keepOld: boolean;
  /** Absent: the old version stays. */
  readonly retire?: Retire;
}

export interface StoredMigration {
  readonly table: string;
  /** The active version: its trees hold all rows until it is retired. */
  readonly from: number;
  /** The one that comes up beside it. */
  readonly to: number;
  readonly phase: MigrationPhase;
  /** Rows of `from`: for every key with a row of `to`, the one that it goes with. What it holds of other keys says nothing. */
  readonly base: StoredRoot;
  /** The last key whose row of `to` was made, as base64: empty before the first, null once all are. */
  readonly built: string | null;
  readonly users: readonly VersionUser[];
  /** Why it is blocked. */
  readonly problems: readonly MigrationProblem[];
  /** Generation of Block 0 that first had it: no two migrations of a database have the same. */
  readonly birth: number;
  /** Absent in phase `beside`: nobody has asked for the new version. */
  readonly target?: MigrationTarget;
}

function isProblem(value: unknown): value is MigrationProblem {
  if (typeof value !== 'object' || value === null) return false;
  const { key, message } = value as Record<string, unknown>;
  return typeof key === 'string' && typeof message === 'string';
}

function isUser(value: unknown): value is VersionUser {
  if (typeof value !== 'object' || value === null) return false;
  const { nodeId, version, instance, sinceMs } = value as Record<string, unknown>;
  if (instance !== undefined && typeof instance !== 'string') return false;
  if (sinceMs !== undefined && typeof sinceMs !== 'number') return false;
  return isCount(nodeId) && (version === null || isCount(version));
}

function isTarget(value: unknown): value is MigrationTarget {
  if (typeof value !== 'object' || value === null) return false;
  const { rowsPerSecond, keepOld, retire } = value as Record<string, unknown>;
  if (retire !== undefined && retire !== 'unused' && retire !== 'asked') return false;
  return isCount(rowsPerSecond) && rowsPerSecond > 0 && typeof keepOld === 'boolean';
}

/** Whether parsed JSON is a migration. */
export function isStoredMigration(value: unknown): value is StoredMigration {
  if (typeof value !== 'object' || value === null) return false;
  const { table, from, to, phase, base, built, users, problems, birth, target } = value as Record<string, unknown>;
  if (typeof table !== 'string' || !isCount(from) || !isCount(to) || to <= from) return false;
  if (!phases.some((known) => known === phase) || !isRoot(base) || !(built === null || isBase64(built))) return false;
  if (phase === 'switched' && built !== null) return false;
  if (target === undefined ? phase !== 'beside' : !isTarget(target)) return false;
  if (!Array.isArray(users) || !users.every(isUser)) return false;
  return Array.isArray(problems) && problems.every(isProblem) && isCount(birth);
}

// An index that is added to a table, as Block 0 holds it until it is one of the schema's (docs/protocol.md, "Added indexes").

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
function areAddedIndexes(value: unknown, schema: StoredSchema): value is readonly StoredAddedIndex[] | undefined {
  if (value === undefined) return true;
  if (!Array.isArray(value) || value.length === 0) return false;
  if (!value.every((one) => isStoredAddedIndex(one, schema))) return false;
  const { indexes, functionIndexes = [] } = schema;
  const names = [...indexes, ...functionIndexes, ...value.map(({ index }) => index)].map(({ name }) => name);
  return new Set(names).size === names.length;
}

// An index version as Block 0 holds it: the entries of an index on a function, as one version of the function makes them
// (docs/protocol.md, "Indexes on functions").

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
