/**
 * Block 0, the root of the database: small, readable JSON, and the only object that is ever replaced.
 *
 * The text begins with the CRC-32 of all bytes that follow it, so that a damaged root is not used. docs/format.md describes the
 * fields, and docs/protocol.md the rules by which they change.
 */
import { defined } from '../base/options.ts';
import { CorruptionError, UnknownFormatError, invariant } from '../base/errors.ts';
import { refuseEnvelope } from './envelope.ts';
import { isCatalogueRef } from './catalogue.ts';
import type { Catalogue, CatalogueRef } from './catalogue.ts';
import { decodeCheckedJson, encodeCheckedJson } from './checked-json.ts';
import type { CheckedJson } from './checked-json.ts';
import { block0Name, parseRootName } from './object-names.ts';
import { areStoredDrops, isStoredMigration, isCount, everyOf, isInlined, isTable } from './stored-table.ts';
import type { StoredDrops, StoredMigration, InlinedRoot, StoredTable, StoredTableVersion } from './stored-table.ts';
import { schemaFormat } from './stored-schema.ts';
import {
  addedIndexVersion,
  block0FormatVersion,
  catalogueVersion,
  compoundKeyVersion,
  expiryVersion,
  droppedTableVersion,
  entryFormsVersion,
  textIndexVersion,
  fieldRulesVersion,
  functionIndexVersion,
  newestVersion,
  pathIndexVersion,
  partialIndexVersion,
  renamesVersion,
} from './version.ts';

export interface AppliedCommit {
  readonly seq: number;
  readonly id: string;
  /** Whether a repair of the log gave the slot up: the blocks contain none of its changes. */
  readonly givenUp?: true;
}

/** A state that a snapshot keeps: nothing that it reaches is deleted. Its Block 0 is kept as `roots/<id>`. */
export interface StoredSnapshot {
  readonly id: string;
  readonly generation: number;
  /** Slot of the last commit that it shows. */
  readonly appliedSeq: number;
  readonly nodeId: number;
  /** By the clock of the snapshot's holder, as all times here. */
  readonly createdMs: number;
  /** Time from which others may treat the snapshot as abandoned. */
  readonly expiresMs: number;
  /** Whether the snapshot also reads the commits after `appliedSeq`, which then stay in the log. Absent: it does not. */
  readonly readsLog?: true;
}

/** An instance that has chosen its node id itself. */
export interface AutoNode {
  readonly nodeId: number;
  /** Random name that distinguishes the instance from others with the same id. */
  readonly instance: string;
  /** Time of its last sign of life, by the store's clock if the store reports it, else by its own. */
  readonly seenMs: number;
}

/** The earlier states that are kept: all states of the last `windowMs`, from generation `floor` on. */
export interface StoredHistory {
  readonly windowMs: number;
  readonly floor: number;
  /** Generations with an earlier time than the generation before them, ascending. Absent if there are none. */
  readonly setBack?: readonly number[];
}

export interface Block0 {
  readonly format: number;
  readonly databaseId: string;
  /** Every write adds one. */
  readonly revision: number;
  /** Every write that changes a tree root adds one. */
  readonly generation: number;
  /**
   * Time at which the generation began, by the store's clock if the store reports it, else by the clock of the node that made
   * it.
   */
  readonly changedMs: number;
  /** Random for every write, so that a writer recognises its own write. */
  readonly nonce: string;
  /** The blocks contain every commit up to this slot. */
  readonly appliedSeq: number;
  /** Slots up to this one are no longer needed and may be deleted. */
  readonly logFloor: number;
  /** The commits applied last, ascending and without gaps up to `appliedSeq`. */
  readonly applied: readonly AppliedCommit[];
  /** All tables. The stored object leaves out tables that the catalogue holds unchanged. */
  readonly tables: readonly StoredTable[];
  /** Root blocks that are held here or in the catalogue instead of in separate objects. */
  readonly inlined: readonly InlinedRoot[];
  /** Holds the tables that have not changed since it was written. Absent while Block 0 has room for all tables. */
  readonly catalogue?: Catalogue;
  /** Nothing that this generation or a later one reaches has been deleted. */
  readonly collected: number;
  readonly history: StoredHistory | null;
  /**
   * Time since when a collector doubts the clock of its store, because it shows a time too late to be true. Absent: no
   * collector doubts it.
   */
  readonly doubtedMs?: number;
  readonly snapshots: readonly StoredSnapshot[];
  /** At most one for each table. */
  readonly migrations: readonly StoredMigration[];
  /** The tables that were dropped. Absent if none ever was. */
  readonly dropped?: StoredDrops;
  /** Ids of the nodes that share write authority. */
  readonly nodes: readonly number[];
  /**
   * The nodes that have chosen their ids themselves. Entries whose id is not in `nodes` have no meaning. Absent if there are
   * none.
   */
  readonly autoNodes?: readonly AutoNode[];
  readonly writer: { readonly nodeId: number; readonly atMs: number };
}

const formats: ReadonlySet<unknown> = new Set([
  block0FormatVersion,
  functionIndexVersion,
  catalogueVersion,
  renamesVersion,
  fieldRulesVersion,
  partialIndexVersion,
  addedIndexVersion,
  compoundKeyVersion,
  expiryVersion,
  droppedTableVersion,
  entryFormsVersion,
  textIndexVersion,
  pathIndexVersion,
]);

/** Returns the lowest format that supports the content: any reader of that format can read it. */
export function block0Format({
  tables,
  catalogue,
  dropped,
}: Pick<Block0, 'tables' | 'catalogue'> & { readonly dropped?: unknown }): number {
  const own =
    dropped !== undefined ? droppedTableVersion : catalogue === undefined ? block0FormatVersion : catalogueVersion;
  return tables.reduce<number>(
    (format, { versions }) => versions.reduce((most, version) => Math.max(most, versionFormat(version)), format),
    own,
  );
}

function versionFormat({ schema, added = [] }: StoredTableVersion): number {
  if (added.length === 0) return schemaFormat(schema);
  const indexes = [...schema.indexes, ...added.map(({ index }) => index)];
  return Math.max(addedIndexVersion, schemaFormat({ ...schema, indexes }));
}

/** Encodes Block 0. Leaves out tables that are identical objects in the catalogue. */
export function encodeBlock0(block0: Block0): Uint8Array {
  return encodeCheckedJson(partOf(block0));
}

/** Returns the part of Block 0 that its object holds. */
function partOf(block0: Block0): object {
  const { catalogue } = block0;
  if (catalogue === undefined) return block0;
  const own = block0.tables.filter((table) => catalogue.tables.get(table.name) !== table);
  const names = new Set(block0.tables.map(({ name }) => name));
  const isWhole = [...catalogue.tables.keys()].every((name) => names.has(name));
  invariant(isWhole, 'A table of the catalogue is not in Block 0');
  const inlined = block0.inlined.filter(({ name }) => !catalogue.inlined.has(name));
  return { ...block0, tables: own, inlined, catalogue: catalogue.ref };
}

function isApplied(value: unknown): value is AppliedCommit {
  if (typeof value !== 'object' || value === null) return false;
  const { seq, id } = value as Record<string, unknown>;
  return isCount(seq) && typeof id === 'string';
}

function isSnapshot(value: unknown): value is StoredSnapshot {
  if (typeof value !== 'object' || value === null) return false;
  const { id, generation, appliedSeq, nodeId, createdMs, expiresMs, readsLog } = value as Record<string, unknown>;
  if (readsLog !== undefined && readsLog !== true) return false;
  const isNamed = typeof id === 'string' && parseRootName(`roots/${id}`)?.generation === generation;
  return isNamed && [generation, appliedSeq, nodeId].every(isCount) && [createdMs, expiresMs].every(Number.isFinite);
}

function isAutoNode(value: unknown): value is AutoNode {
  if (typeof value !== 'object' || value === null) return false;
  const { nodeId, instance, seenMs } = value as Record<string, unknown>;
  return isCount(nodeId) && typeof instance === 'string' && isCount(seenMs);
}

function isHistory(value: unknown): value is StoredHistory | null {
  if (value === null) return true;
  if (typeof value !== 'object') return false;
  const { windowMs, floor, setBack = [] } = value as Record<string, unknown>;
  return isCount(windowMs) && isCount(floor) && everyOf(setBack, isCount);
}

function isWriter(value: unknown): value is Block0['writer'] {
  if (typeof value !== 'object' || value === null) return false;
  const { nodeId, atMs } = value as Record<string, unknown>;
  return isCount(nodeId) && typeof atMs === 'number';
}

/** Whether each table has the versions of its migration, and only one version if it has no migration. */
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

/** Whether Block 0 is complete and has the right shape, and its counters and format are consistent with its tables. */
function isBlock0(value: Record<string, unknown>, tables: readonly StoredTable[], catalogue?: Catalogue): boolean {
  const { revision, generation, appliedSeq, logFloor, applied, databaseId, nonce } = value;
  if (![revision, generation, appliedSeq, logFloor].every(isCount)) return false;
  if (typeof databaseId !== 'string' || typeof nonce !== 'string') return false;
  if ((logFloor as number) > (appliedSeq as number) || !everyOf(applied, isApplied)) return false;
  const first = (appliedSeq as number) - applied.length + 1;
  if (!applied.every((commit, i) => commit.seq === first + i)) return false;
  return (
    value['format'] === block0Format({ tables, dropped: value['dropped'], ...defined({ catalogue }) }) &&
    (value['dropped'] === undefined || areStoredDrops(value['dropped'], appliedSeq as number)) &&
    new Set(tables.map(({ name }) => name)).size === tables.length &&
    isCount(value['changedMs']) &&
    isCount(value['collected']) &&
    value['collected'] <= (generation as number) &&
    isHistory(value['history']) &&
    (value['doubtedMs'] === undefined || isCount(value['doubtedMs'])) &&
    everyOf(value['snapshots'], isSnapshot) &&
    everyOf(value['migrations'], isStoredMigration) &&
    isConsistent(tables, value['migrations']) &&
    everyOf(value['nodes'], isCount) &&
    (value['autoNodes'] === undefined || everyOf(value['autoNodes'], isAutoNode)) &&
    isWriter(value['writer'])
  );
}

/** The content of Block 0's object: everything except the tables and roots in its catalogue, if it has one. */
export interface Block0Part {
  readonly fields: Readonly<Record<string, unknown>>;
  readonly catalogue: CatalogueRef | undefined;
}

/** Parses the object of Block 0. Throws `CorruptionError`, or `UnknownFormatError` for a later version. */
export function parseBlock0(bytes: Uint8Array): Block0Part {
  let checked: CheckedJson;
  try {
    checked = decodeCheckedJson(bytes);
  } catch (cause) {
    refuseEnvelope(block0Name, bytes);
    throw new CorruptionError(block0Name, 'Block 0 is not in the format that StoreDb writes', { cause });
  }
  const { fields, matches } = checked;
  if (!matches) throw new CorruptionError(block0Name, 'Block 0 does not match its checksum');
  const { format, catalogue } = fields;
  if (!formats.has(format)) {
    throw new UnknownFormatError(
      block0Name,
      `Block 0 has format ${String(format)}, and this version of store-db reads ${newestVersion}: upgrade it`,
    );
  }
  if (catalogue !== undefined && !isCatalogueRef(catalogue)) throw incomplete();
  return { fields, catalogue };
}

/** Combines the content of Block 0's object with the catalogue that it names. Throws `CorruptionError`. */
export function joinBlock0({ fields, catalogue: ref }: Block0Part, catalogue?: Catalogue): Block0 {
  invariant(ref?.id === catalogue?.ref.id, 'Block 0 was read without its catalogue');
  const { tables, inlined } = fields;
  if (!everyOf(tables, isTable) || !everyOf(inlined, isInlined)) throw incomplete();
  if (catalogue === undefined) {
    if (!isBlock0(fields, tables)) throw incomplete();
    return fields as unknown as Block0;
  }
  const own = new Map(tables.map((table) => [table.name, table]));
  const all = [...new Map([...catalogue.tables, ...own]).values()];
  if (own.size !== tables.length || !isBlock0(fields, all, catalogue)) throw incomplete();
  const ofCatalogue = [...catalogue.inlined].map(([name, block]): InlinedRoot => ({ name, block }));
  const block0 = { ...fields, tables: all, inlined: [...ofCatalogue, ...inlined], catalogue };
  return block0 as unknown as Block0;
}

function incomplete(): CorruptionError {
  return new CorruptionError(block0Name, 'Block 0 lacks a field, or a field has a wrong value');
}

/** Returns the id of the database that a Block 0 belongs to. Throws as {@link parseBlock0} does. */
export function databaseIdOf(bytes: Uint8Array): string {
  const { databaseId } = parseBlock0(bytes).fields;
  if (typeof databaseId !== 'string') throw incomplete();
  return databaseId;
}

/** Decodes Block 0. `find` returns the catalogue that it names. Throws as {@link parseBlock0} does. */
export function decodeBlock0(bytes: Uint8Array, find?: (ref: CatalogueRef) => Catalogue): Block0 {
  const part = parseBlock0(bytes);
  return joinBlock0(part, part.catalogue && find?.(part.catalogue));
}
