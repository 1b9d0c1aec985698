/**
 * Block 0, the root of the database: small, readable JSON, the only object that is ever replaced.
 *
 * The text begins with the CRC-32 of all that follows it, so that a damaged root is noticed before it is believed.
 * What each field means is in docs/format.md; the rules by which they change are in docs/protocol.md.
 */
import { decodeUtf8, encodeUtf8, checksum } from '../base/bytes.ts';
import { defined } from '../base/options.ts';
import { CorruptionError, UnknownFormatError, invariant } from '../base/errors.ts';
import { refuseEnvelope } from './envelope.ts';
import { isCatalogueRef } from './catalogue.ts';
import type { Catalogue, CatalogueRef } from './catalogue.ts';
import { block0Name, parseRootName } from './object-names.ts';
import { isStoredMigration, isCount, everyOf, isInlined, isTable } from './stored-table.ts';
import type { StoredMigration, InlinedRoot, StoredTable, StoredTableVersion } from './stored-table.ts';
import { schemaFormat } from './stored-schema.ts';
import {
  addedIndexVersion,
  block0FormatVersion,
  catalogueVersion,
  compoundKeyVersion,
  fieldRulesVersion,
  functionIndexVersion,
  newestVersion,
  partialIndexVersion,
  renamesVersion,
} from './version.ts';

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
  /** Whether rows of the commits after `appliedSeq` are read as well: those stay in the log. Absent: they are not. */
  readonly readsLog?: true;
}

/** An instance that has taken its node id itself. */
export interface AutoNode {
  readonly nodeId: number;
  /** Tells it from others that take the same id. */
  readonly instance: string;
  /** When it last gave a sign, by the store's clock where it tells, else by its own. */
  readonly seenMs: number;
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
  /** All tables. The object holds only those that are not in the catalogue as they are. */
  readonly tables: readonly StoredTable[];
  /** Root blocks that are held here, or in the catalogue, instead of in an object of their own. */
  readonly inlined: readonly InlinedRoot[];
  /** Holds tables that have not changed since it was written. Absent while Block 0 has room for all of them. */
  readonly catalogue?: Catalogue;
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
  /** Those of them that have taken their ids themselves; what names an id that is not among them says nothing. Absent: none. */
  readonly autoNodes?: readonly AutoNode[];
  readonly writer: { readonly nodeId: number; readonly atMs: number };
}

const checksumPrefix = '{"crc32":"';
const checksumDigits = 8;
const formats: ReadonlySet<unknown> = new Set([
  block0FormatVersion,
  functionIndexVersion,
  catalogueVersion,
  renamesVersion,
  fieldRulesVersion,
  partialIndexVersion,
  addedIndexVersion,
  compoundKeyVersion,
]);

/** The version that says no more than what is in it: a reader of that version can read it. */
export function block0Format({ tables, catalogue }: Pick<Block0, 'tables' | 'catalogue'>): number {
  return tables.reduce<number>(
    (format, { versions }) => versions.reduce((most, version) => Math.max(most, versionFormat(version)), format),
    catalogue === undefined ? block0FormatVersion : catalogueVersion,
  );
}

function versionFormat({ schema, added = [] }: StoredTableVersion): number {
  if (added.length > 0) return Math.max(addedIndexVersion, schemaFormat(schema));
  return schemaFormat(schema);
}

/** Encodes Block 0. A table that is the very object that the catalogue holds is left to that. */
export function encodeBlock0(block0: Block0): Uint8Array {
  const rest = `",${JSON.stringify(partOf(block0)).slice(1)}`;
  return encodeUtf8(checksumPrefix + checksumText(encodeUtf8(rest)) + rest);
}

/** What the object itself holds. */
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

function checksumText(rest: Uint8Array): string {
  return checksum(rest).toString(16).padStart(checksumDigits, '0');
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

/** Whether all of Block 0 is there, of the right shape, and its counters and its format go with its tables. */
function isBlock0(value: Record<string, unknown>, tables: readonly StoredTable[], catalogue?: Catalogue): boolean {
  const { revision, generation, appliedSeq, logFloor, applied, databaseId, nonce } = value;
  if (![revision, generation, appliedSeq, logFloor].every(isCount)) return false;
  if (typeof databaseId !== 'string' || typeof nonce !== 'string') return false;
  if ((logFloor as number) > (appliedSeq as number) || !everyOf(applied, isApplied)) return false;
  const first = (appliedSeq as number) - applied.length + 1;
  if (!applied.every((commit, i) => commit.seq === first + i)) return false;
  return (
    value['format'] === block0Format({ tables, ...defined({ catalogue }) }) &&
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

/** What the object of Block 0 holds: all but what its catalogue, if it names one, adds. */
export interface Block0Part {
  readonly fields: Readonly<Record<string, unknown>>;
  readonly catalogue: CatalogueRef | undefined;
}

/** Reads the object of Block 0. Throws `CorruptionError`, or `UnknownFormatError` for a version from the future. */
export function parseBlock0(bytes: Uint8Array): Block0Part {
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
    refuseEnvelope(block0Name, bytes);
    throw new CorruptionError(block0Name, 'Block 0 is not what StoreDb writes', { cause });
  }
  if (checksumText(bytes.subarray(restAt)) !== crc) {
    throw new CorruptionError(block0Name, 'Block 0 does not match its checksum');
  }
  const { crc32: _, ...fields } = parsed as Record<string, unknown>;
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

/** Block 0 of what its object holds and the catalogue that this names. Throws `CorruptionError`. */
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
  return new CorruptionError(block0Name, 'Block 0 lacks something, or holds what it should not');
}

/** Id of the database that a Block 0 is of. Throws as {@link parseBlock0} does. */
export function databaseIdOf(bytes: Uint8Array): string {
  const { databaseId } = parseBlock0(bytes).fields;
  if (typeof databaseId !== 'string') throw incomplete();
  return databaseId;
}

/** Decodes Block 0. `find` gives the catalogue that it names. Throws as {@link parseBlock0} does. */
export function decodeBlock0(bytes: Uint8Array, find?: (ref: CatalogueRef) => Catalogue): Block0 {
  const part = parseBlock0(bytes);
  return joinBlock0(part, part.catalogue && find?.(part.catalogue));
}
