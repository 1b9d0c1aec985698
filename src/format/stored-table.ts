/**
 * The form in which Block 0 and its catalogue hold a table: its versions, the roots of their trees, indexes that are being
 * added, index versions, and its migration.
 */
import { compareBytes, fromBase64, toBase64 } from '../base/bytes.ts';
import type { BlockRef } from './block.ts';
import { isStoredSchema, isIndexOf } from './stored-schema.ts';
import type { StoredSchema, StoredIndex } from './stored-schema.ts';

/** One table in one schema version. */
export interface StoredTableVersion {
  readonly schema: StoredSchema;
  readonly root: StoredRoot;
  readonly indexes: readonly { readonly name: string; readonly root: StoredRoot }[];
  /** Index versions of the indexes on functions. Absent exactly if the schema has no such index. */
  readonly editions?: readonly StoredIndexVersion[];
  /** Indexes that are being added. Absent if there are none. */
  readonly added?: readonly StoredAddedIndex[];
}

export interface StoredTable {
  readonly name: string;
  /** One version, or two during a migration; then the entry in `migrations` says which is active. */
  readonly versions: readonly StoredTableVersion[];
}

/** A root block that is stored in Block 0 or its catalogue, not in a separate object. */
export interface InlinedRoot {
  readonly name: string;
  /** The block as base64. */
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

/** The last drop of a table, by a commit. */
export interface StoredDrop {
  readonly table: string;
  /** Slot of the commit. */
  readonly slot: number;
  /** Node that committed it, and when by its clock. For people. */
  readonly nodeId: number;
  readonly atMs: number;
}

/** The drops that Block 0 has applied. */
export interface StoredDrops {
  /** At most one for each table, in the order of their slots. */
  readonly tables: readonly StoredDrop[];
  /** Tables that are not there, and whose last drop is at this slot or before, may be missing in the list. 0: none is missing. */
  readonly forgotten: number;
}

function isStoredDrop(value: unknown): value is StoredDrop {
  if (typeof value !== 'object' || value === null) return false;
  const { table, slot, nodeId, atMs } = value as Record<string, unknown>;
  return typeof table === 'string' && isCount(slot) && isCount(nodeId) && typeof atMs === 'number';
}

/** Whether parsed JSON is a list of drops up to a slot. */
export function areStoredDrops(value: unknown, appliedSeq: number): value is StoredDrops {
  if (typeof value !== 'object' || value === null) return false;
  const { tables, forgotten } = value as Record<string, unknown>;
  if (!everyOf(tables, isStoredDrop) || !isCount(forgotten) || forgotten > appliedSeq) return false;
  const isAscending = tables.every(({ slot }, i) => slot <= appliedSeq && slot >= (tables[i - 1]?.slot ?? 0));
  return isAscending && new Set(tables.map(({ table }) => table)).size === tables.length;
}

/** Drops of tables that are not there: Block 0 lists this many of them, the last ones. */
const maxDrops = 256;

/**
 * Returns the list of drops after some more, which are in the order of their slots. `tables`: the tables that are there then; `were`: those
 * that were there before. A table that is new, and may have been forgotten, counts as dropped at the last slot that is.
 */
export function dropsAfter(
  before: StoredDrops | undefined,
  more: readonly StoredDrop[],
  tables: readonly StoredTable[],
  were: readonly StoredTable[],
): StoredDrops | undefined {
  if (before === undefined && more.length === 0) return undefined;
  const byTable = new Map<string, StoredDrop>();
  for (const drop of [...(before?.tables ?? []), ...more]) {
    // The list stays in the order of slots.
    byTable.delete(drop.table);
    byTable.set(drop.table, drop);
  }
  const present = new Set(tables.map(({ name }) => name));
  const gone = [...byTable.values()].filter(({ table }) => !present.has(table));
  const left = gone.slice(0, Math.max(0, gone.length - maxDrops));
  for (const { table } of left) byTable.delete(table);
  const forgotten = Math.max(before?.forgotten ?? 0, left.at(-1)?.slot ?? 0);
  if (forgotten > 0) {
    const known = new Set(were.map(({ name }) => name));
    for (const { name: table } of tables) {
      if (!known.has(table) && !byTable.has(table)) byTable.set(table, { table, slot: forgotten, nodeId: 0, atMs: 0 });
    }
  }
  return { tables: [...byTable.values()].toSorted((a, b) => a.slot - b.slot), forgotten };
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

/** Whether a value is an array whose items all pass a check. */
export function everyOf<T>(value: unknown, check: (item: unknown) => item is T): value is T[] {
  return Array.isArray(value) && value.every(check);
}

/** The root of a tree; null if the tree is empty. `words`: in an index on texts, the words of all rows that have entries. */
export type StoredRoot = (BlockRef & { readonly level: number; readonly words?: number }) | null;

export function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

export function isBase64(value: unknown): value is string {
  return typeof value === 'string' && /^[A-Za-z0-9+/]*={0,2}$/.test(value) && value.length % 4 === 0;
}

function isRoot(value: unknown): value is StoredRoot {
  if (value === null) return true;
  if (typeof value !== 'object') return false;
  const { birth, id, count, sizeBytes, level, words = 0 } = value as Record<string, unknown>;
  return [birth, count, sizeBytes, level, words].every(isCount) && typeof id === 'string' && /^[0-9a-f]{16}$/.test(id);
}

/**
 * The progress of work that goes through a tree in the order of its keys: the last key processed; undefined before the first,
 * null once all keys are processed.
 */
export type Bound = Uint8Array | undefined | null;

/** Encodes a bound as base64: empty before the first key. */
export function encodeBound(bound: Bound): string | null {
  return bound === null ? null : toBase64(bound ?? new Uint8Array(0));
}

export function decodeBound(stored: string | null): Bound {
  if (stored === null) return null;
  return stored === '' ? undefined : fromBase64(stored);
}

/** Whether a key is still to be processed. */
export function isBehind(key: Uint8Array, bound: Bound): boolean {
  return bound !== null && (bound === undefined || compareBytes(key, bound) > 0);
}

const phases = ['beside', 'building', 'blocked', 'switched'] as const;

/**
 * `beside`: instances with the new version write it, and nobody has asked for the migration of the other rows; `building`: the
 * other rows are being migrated; `blocked`: some rows cannot be migrated; `switched`: all rows are migrated, and the old
 * version stays for its users.
 */
export type MigrationPhase = (typeof phases)[number];

/** A row that cannot be migrated to the new version. */
export interface MigrationProblem {
  /** Its primary key, for people. */
  readonly key: string;
  readonly message: string;
}

/** A user of a table: an instance, and the newest version that it has registered, or null if none. */
export interface VersionUser {
  readonly nodeId: number;
  readonly version: number | null;
  /**
   * Random name of the instance, because several may have one node id. `*`: several instances; absent: written by an older
   * release, for all instances of the node.
   */
  readonly instance?: string;
  /** Time of its report, by its own clock. */
  readonly sinceMs?: number;
}

/**
 * When the old version may be retired: `unused`, once no instance is known to use it; `asked`, because somebody has requested
 * it.
 */
export type Retire = 'unused' | 'asked';

/** The options of the call that requested the new version. */
export interface MigrationTarget {
  /** Most rows that one node migrates per second. */
  readonly rowsPerSecond: number;
  /** For nodes of older releases, which would take false as permission to retire the old version on a guess. */
  readonly keepOld: boolean;
  /** Absent: the old version stays. */
  readonly retire?: Retire;
}

/** A migration of a table (docs/protocol.md, "Migrations"). */
export interface StoredMigration {
  readonly table: string;
  /** The active version: its trees hold all rows until it is retired. */
  readonly from: number;
  /** The next version. */
  readonly to: number;
  readonly phase: MigrationPhase;
  /** Rows of `from`: for every key with a row of `to`, the row that it was made from. Rows of other keys have no meaning. */
  readonly base: StoredRoot;
  /** The last key whose row of `to` was made, as base64: empty before the first, null once all rows are made. */
  readonly built: string | null;
  readonly users: readonly VersionUser[];
  /** The rows that block the migration. */
  readonly problems: readonly MigrationProblem[];
  /** Generation of Block 0 in which the migration began: no two migrations of a database have the same. */
  readonly birth: number;
  /** Absent in phase `beside`, because nobody has requested the new version. */
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

/** An index that is being added to a table and is not part of the schema yet (docs/protocol.md, "Added indexes"). */
export interface StoredAddedIndex {
  readonly index: StoredIndex;
  /** Root of its entries. */
  readonly root: StoredRoot;
  /** The last key whose entry was made, as base64: empty before the first, null once all are made. Later keys have none. */
  readonly built: string | null;
  /** Number of rows whose entries were made, for people. */
  readonly rows: number;
  /** Generation of Block 0 in which it began: an index of the same name that is added again has another. */
  readonly birth: number;
  /** The reason why the index cannot be added; then no entries are made. Absent if there is none. */
  readonly problem?: string;
}

function isStoredAddedIndex(value: unknown, schema: StoredSchema): value is StoredAddedIndex {
  if (typeof value !== 'object' || value === null) return false;
  const { index, root, built, rows, birth, problem } = value as Record<string, unknown>;
  if (!isIndexOf(schema, index) || !isRoot(root) || !(built === null || isBase64(built))) return false;
  return isCount(rows) && isCount(birth) && (problem === undefined || typeof problem === 'string');
}

/** Whether parsed JSON is a list of indexes that are being added to a schema, all with different names, or is undefined. */
function areAddedIndexes(value: unknown, schema: StoredSchema): value is readonly StoredAddedIndex[] | undefined {
  if (value === undefined) return true;
  if (!Array.isArray(value) || value.length === 0) return false;
  if (!value.every((one) => isStoredAddedIndex(one, schema))) return false;
  const { indexes, functionIndexes = [] } = schema;
  const names = [...indexes, ...functionIndexes, ...value.map(({ index }) => index)].map(({ name }) => name);
  return new Set(names).size === names.length;
}

/**
 * An index version: the entries of an index on a function, as one version of the function makes them (docs/protocol.md,
 * "Indexes on functions").
 */
export interface StoredIndexVersion {
  /** Name of the index. */
  readonly index: string;
  /** Version of the function: any number. */
  readonly version: number;
  /** Root of the entries. */
  readonly root: StoredRoot;
  /**
   * Root of the rows that the entries were made from: the table's own root if the index version is current, else an earlier
   * one.
   */
  readonly base: StoredRoot;
  /** The last key whose entry was made, as base64: empty before the first, null once all are made. Later keys have none. */
  readonly built: string | null;
  /** Entries of rows on which the function failed. */
  readonly failed: number;
  /** Generation in which the index version fell behind the table; null while it is current. */
  readonly behindFrom: number | null;
}

function isStoredIndexVersion(value: unknown): value is StoredIndexVersion {
  if (typeof value !== 'object' || value === null) return false;
  const { index, version, root, base, built, failed, behindFrom } = value as Record<string, unknown>;
  if (typeof index !== 'string' || !Number.isFinite(version) || !isRoot(root) || !isRoot(base)) return false;
  if (!(built === null || isBase64(built)) || !isCount(failed)) return false;
  return behindFrom === null || isCount(behindFrom);
}

/** Whether parsed JSON is a list of index versions of a schema's indexes, with no index and version twice. */
export function areIndexVersions(value: unknown, { functionIndexes }: StoredSchema): boolean {
  if (functionIndexes === undefined) return value === undefined;
  if (!Array.isArray(value) || !value.every(isStoredIndexVersion)) return false;
  const known = new Set(functionIndexes.map(({ name }) => name));
  const different = new Set(value.map(({ index, version }) => `${version} ${index}`));
  return value.every(({ index }) => known.has(index)) && different.size === value.length;
}
