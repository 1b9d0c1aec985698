/**
 * Block 0, the root of the database: small, readable JSON, the only object that is ever replaced.
 *
 * The text begins with the CRC-32 of all that follows it, so that a damaged root is noticed before it is believed.
 * What each field means is in docs/format.md; the rules by which they change are in docs/protocol.md.
 */
import { decodeUtf8, encodeUtf8 } from '../base/bytes.ts';
import { checksum } from '../base/checksum.ts';
import { CorruptionError, UnknownFormatError } from '../base/errors.ts';
import { refuseCapsule } from './capsule.ts';
import { block0Name, parseRootName } from './keys.ts';
import { areEditions } from './stored-edition.ts';
import type { StoredEdition } from './stored-edition.ts';
import { isStoredMigration } from './stored-migration.ts';
import type { StoredMigration } from './stored-migration.ts';
import { isCount, isRoot } from './stored-root.ts';
import type { StoredRoot } from './stored-root.ts';
import { isStoredSchema, schemaFormat } from './stored-schema.ts';
import type { StoredSchema } from './stored-schema.ts';
import { block0FormatVersion, functionIndexVersion, renamesVersion } from './version.ts';

/** One table in one schema version. */
export interface StoredTableVersion {
  readonly schema: StoredSchema;
  readonly root: StoredRoot;
  readonly indexes: readonly { readonly name: string; readonly root: StoredRoot }[];
  /** What is stored of the indexes on functions. Absent exactly where the schema has none. */
  readonly editions?: readonly StoredEdition[];
}

export interface StoredTable {
  readonly name: string;
  /** One, or two while a migration of the table is under way: then the entry in `migrations` says which is the truth. */
  readonly versions: readonly StoredTableVersion[];
}

export interface AppliedCommit {
  readonly seq: number;
  readonly id: string;
  /** Whether the slot was given up when the log was repaired: nothing of it is in the blocks. */
  readonly givenUp?: true;
}

/** A state that somebody holds on to: nothing that it reaches is deleted. Its Block 0 is kept as `roots/<id>`. */
export interface StoredSnapshot {
  readonly id: string;
  readonly generation: number;
  /** The last commit that it shows. */
  readonly appliedSeq: number;
  readonly nodeId: number;
  /** By the holder's clock, as all times here. */
  readonly createdMs: number;
  /** When others may take it for abandoned. */
  readonly expiresMs: number;
}

/** What is kept of earlier states: those of the last `windowMs`, from generation `floor` on. */
export interface StoredHistory {
  readonly windowMs: number;
  readonly floor: number;
  /** Generations whose time is before that of the generation before them, ascending. Absent where there are none. */
  readonly setBack?: readonly number[];
}

export interface Block0 {
  readonly format: number;
  readonly databaseId: string;
  /** One more with every write. */
  readonly revision: number;
  /** One more with every write that changes a tree root. */
  readonly generation: number;
  /** When the generation came to be, by the store's clock where it tells, else by that of the node that made it. */
  readonly changedMs: number;
  /** Random with every write, so that a writer recognises its own. */
  readonly nonce: string;
  /** Every commit up to this slot is in the blocks. */
  readonly appliedSeq: number;
  /** Slots up to this one decide nothing any more and may be deleted. */
  readonly logFloor: number;
  /** The commits that were applied last, ascending and without gaps up to `appliedSeq`. */
  readonly applied: readonly AppliedCommit[];
  readonly tables: readonly StoredTable[];
  /** Root blocks that are held here instead of in an object of their own, as base64. */
  readonly inlined: readonly { readonly name: string; readonly block: string }[];
  /** What is collected needs no generation from this one on: all that they reach is there. */
  readonly collected: number;
  readonly history: StoredHistory | null;
  /** Since when a collector takes the time that its store tells for too late to be true. Absent: none does. */
  readonly doubtedMs?: number;
  readonly snapshots: readonly StoredSnapshot[];
  /** At most one for each table. */
  readonly migrations: readonly StoredMigration[];
  /** Ids of the nodes that share write authority. */
  readonly nodes: readonly number[];
  readonly writer: { readonly nodeId: number; readonly atMs: number };
}

const checksumPrefix = '{"crc32":"';
const checksumDigits = 8;

/** The version that says no more than what is in it: whoever reads that can read it. */
export function block0Format(tables: readonly StoredTable[]): number {
  return tables.reduce<number>(
    (format, { versions }) => versions.reduce((most, { schema }) => Math.max(most, schemaFormat(schema)), format),
    block0FormatVersion,
  );
}

export function encodeBlock0(block0: Block0): Uint8Array {
  const rest = `",${JSON.stringify(block0).slice(1)}`;
  return encodeUtf8(checksumPrefix + checksumText(encodeUtf8(rest)) + rest);
}

function checksumText(rest: Uint8Array): string {
  return checksum(rest).toString(16).padStart(checksumDigits, '0');
}

function isTableVersion(value: unknown): value is StoredTableVersion {
  if (typeof value !== 'object' || value === null) return false;
  const { schema, root, indexes, editions } = value as Record<string, unknown>;
  if (!isStoredSchema(schema) || !isRoot(root) || !Array.isArray(indexes)) return false;
  if (!areEditions(editions, schema)) return false;
  return (
    indexes.length === schema.indexes.length &&
    indexes.every((index: { name?: unknown; root?: unknown } | null, i) => {
      return index !== null && index.name === schema.indexes[i]?.name && isRoot(index.root);
    })
  );
}

function isTable(value: unknown): value is StoredTable {
  if (typeof value !== 'object' || value === null) return false;
  const { name, versions } = value as Record<string, unknown>;
  if (typeof name !== 'string' || !Array.isArray(versions) || versions.length === 0) return false;
  return versions.every((version) => isTableVersion(version) && version.schema.name === name);
}

function isApplied(value: unknown): value is AppliedCommit {
  if (typeof value !== 'object' || value === null) return false;
  const { seq, id } = value as Record<string, unknown>;
  return isCount(seq) && typeof id === 'string';
}

function isSnapshot(value: unknown): value is StoredSnapshot {
  if (typeof value !== 'object' || value === null) return false;
  const { id, generation, appliedSeq, nodeId, createdMs, expiresMs } = value as Record<string, unknown>;
  const isNamed = typeof id === 'string' && parseRootName(`roots/${id}`)?.generation === generation;
  return isNamed && [generation, appliedSeq, nodeId].every(isCount) && [createdMs, expiresMs].every(Number.isFinite);
}

function isHistory(value: unknown): value is StoredHistory | null {
  if (value === null) return true;
  if (typeof value !== 'object') return false;
  const { windowMs, floor, setBack = [] } = value as Record<string, unknown>;
  return isCount(windowMs) && isCount(floor) && everyOf(setBack, isCount);
}

function isInlined(value: unknown): value is { name: string; block: string } {
  if (typeof value !== 'object' || value === null) return false;
  const { name, block } = value as Record<string, unknown>;
  return typeof name === 'string' && typeof block === 'string';
}

function isWriter(value: unknown): value is Block0['writer'] {
  if (typeof value !== 'object' || value === null) return false;
  const { nodeId, atMs } = value as Record<string, unknown>;
  return isCount(nodeId) && typeof atMs === 'number';
}

function everyOf<T>(value: unknown, check: (item: unknown) => item is T): value is T[] {
  return Array.isArray(value) && value.every(check);
}

/** Whether tables have the versions that their migrations say, and one only where there is none. */
function isConsistent(tables: readonly StoredTable[], migrations: readonly StoredMigration[]): boolean {
  const byTable = new Map(migrations.map((migration) => [migration.table, migration]));
  if (byTable.size !== migrations.length) return false;
  const migrated = tables.filter(({ name, versions }) => {
    const migration = byTable.get(name);
    const expected = migration === undefined ? [] : [migration.from, migration.to];
    return versions.length === 2 && versions.every(({ schema }, i) => schema.version === expected[i]);
  });
  const single = tables.filter(({ name, versions }) => versions.length === 1 && !byTable.has(name));
  return migrated.length === migrations.length && migrated.length + single.length === tables.length;
}

/** Whether parsed JSON has the shape of Block 0, and its counters and its format go with what is in it. */
function isBlock0(value: Record<string, unknown>): boolean {
  const { revision, generation, appliedSeq, logFloor, applied, databaseId, nonce } = value;
  if (![revision, generation, appliedSeq, logFloor].every(isCount)) return false;
  if (typeof databaseId !== 'string' || typeof nonce !== 'string') return false;
  if ((logFloor as number) > (appliedSeq as number) || !everyOf(applied, isApplied)) return false;
  const first = (appliedSeq as number) - applied.length + 1;
  if (!applied.every((commit, i) => commit.seq === first + i)) return false;
  return (
    everyOf(value['tables'], isTable) &&
    value['format'] === block0Format(value['tables']) &&
    new Set(value['tables'].map((table) => table.name)).size === value['tables'].length &&
    everyOf(value['inlined'], isInlined) &&
    isCount(value['changedMs']) &&
    isCount(value['collected']) &&
    value['collected'] <= (generation as number) &&
    isHistory(value['history']) &&
    (value['doubtedMs'] === undefined || isCount(value['doubtedMs'])) &&
    everyOf(value['snapshots'], isSnapshot) &&
    everyOf(value['migrations'], isStoredMigration) &&
    isConsistent(value['tables'], value['migrations']) &&
    everyOf(value['nodes'], isCount) &&
    isWriter(value['writer'])
  );
}

/** Checks and decodes Block 0. Throws `CorruptionError`, or `UnknownFormatError` for a version from the future. */
export function decodeBlock0(bytes: Uint8Array): Block0 {
  const digitsAt = checksumPrefix.length;
  const restAt = digitsAt + checksumDigits;
  let parsed: unknown;
  let crc: string;
  try {
    const text = decodeUtf8(bytes);
    if (!text.startsWith(checksumPrefix)) throw new SyntaxError('it does not begin with its checksum');
    crc = text.slice(digitsAt, restAt);
    parsed = JSON.parse(text);
  } catch (cause) {
    refuseCapsule(block0Name, bytes);
    throw new CorruptionError(block0Name, 'Block 0 is not what StoreDb writes', { cause });
  }
  if (checksumText(bytes.subarray(restAt)) !== crc) {
    throw new CorruptionError(block0Name, 'Block 0 does not match its checksum');
  }
  const value = parsed as Record<string, unknown>;
  const format = value['format'];
  if (format !== block0FormatVersion && format !== functionIndexVersion && format !== renamesVersion) {
    throw new UnknownFormatError(
      block0Name,
      `Block 0 has format ${String(format)}, and this version of store-db reads ${renamesVersion}: upgrade it`,
    );
  }
  if (!isBlock0(value)) throw new CorruptionError(block0Name, 'Block 0 lacks something, or holds what it should not');
  const { crc32: _, ...block0 } = value;
  return block0 as unknown as Block0;
}
