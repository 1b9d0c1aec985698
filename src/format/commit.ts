/**
 * A commit: the changes of one or several flushes of one process, in one object. After the block header:
 *
 *   u32 length of the header | header, JSON, padded to 4 bytes | blocks
 *
 * The header names the database, the commit and its members. A member is one flush; members apply in order, all of them or
 * none. A member drops the tables that it names first. For each changed table a member has the rows after the change, sorted, as a table leaf within the commit, or, if there
 * are too many rows, as a tree whose blocks lie in staged runs.
 */
import { decodeUtf8, encodeUtf8 } from '../base/bytes.ts';
import { CorruptionError } from '../base/errors.ts';
import { atOnce, withPauses } from '../base/pacer.ts';
import { defined } from '../base/options.ts';
import type { Steps } from '../base/pacer.ts';
import { BlockKind, blockHeaderBytes, openBlock, sealBlock } from './block.ts';
import { commitName, parseStagedName, stagedName } from './object-names.ts';
import { openNode, padTo4 } from './node.ts';
import type { Node } from './node.ts';
import { rowStride } from './row-layout.ts';
import { isStoredSchema, isSystemTable, schemaFormat } from './stored-schema.ts';
import type { StoredSchema } from './stored-schema.ts';
import { isCount } from './stored-table.ts';
import { blockFormatVersion, droppedTableVersion, laterRunsVersion } from './version.ts';

/**
 * The runs of a change too large for one object: the commit holds the root block, and objects under `staged/` hold the other
 * blocks.
 */
export interface StagedRuns {
  /** Ids of the objects; block references hold positions in this list. */
  readonly runs: readonly string[];
}

/** The change of one member to one table. */
export interface TableChange {
  readonly schema: StoredSchema;
  /** A table leaf, or the root of a staged tree. */
  readonly node: Node;
  readonly staged?: StagedRuns;
}

/** A table that a member drops, with all rows that were written to it before. */
export interface TableDrop {
  readonly table: string;
  /** The version that was active. For people and feeds of changes. */
  readonly version: number;
}

export interface CommitMember {
  readonly changes: readonly TableChange[];
  /** The tables that it drops, before its changes apply. Absent if there are none. */
  readonly drops?: readonly TableDrop[];
}

/** Whether a member leaves everything as it is. */
export function isEmptyMember({ changes, drops }: CommitMember): boolean {
  return changes.length === 0 && drops === undefined;
}

export interface Commit {
  readonly databaseId: string;
  readonly commitId: string;
  /** Id of the commit in the previous slot, on which this one was validated; undefined if the writer did not know it. */
  readonly previousId?: string | undefined;
  readonly nodeId: number;
  /** Time of the write by the writer's clock. For people; nothing depends on it. */
  readonly atMs: number;
  /** The first slot that the writer found free for its flushes, if that is an earlier one. Writers that wait go by it; no data depends on it. */
  readonly since?: number | undefined;
  readonly members: readonly CommitMember[];
}

/** Whether a commit follows the commit with this id. True if either id is unknown. */
export function follows({ previousId }: Commit, id: string | undefined): boolean {
  return previousId === undefined || id === undefined || previousId === id;
}

/** The names of the tables that a commit drops; nothing if there are none. */
export function dropsIn({ members }: Commit): { readonly drops?: readonly string[] } {
  const drops = members.flatMap((member) => member.drops ?? []).map(({ table }) => table);
  return drops.length === 0 ? {} : { drops };
}

/** Returns a commit without changes, which replaces a slot that a repair of the log has given up. */
export function emptyCommit(databaseId: string, commitId: string): Commit {
  return { databaseId, commitId, nodeId: 0, atMs: 0, members: [] };
}

interface HeaderChange {
  readonly schema: StoredSchema;
  readonly offset: number;
  readonly length: number;
  readonly staged?: StagedRuns;
}

/**
 * Returns the name under which a table's block inside a commit is sealed. It does not depend on the slot that the commit wins.
 */
export function commitBlockName(table: string): string {
  return `commit/${table}`;
}

/** Encodes commits. Most of them change the same tables, so it remembers the text of each schema. */
export class CommitEncoder {
  readonly #schemaTexts = new WeakMap<StoredSchema, string>();

  /** Returns the commit as the object of a slot. */
  encode(slot: number, commit: Commit): Uint8Array {
    let offset = 0;
    const blocks: Uint8Array[] = [];
    const members = commit.members.map((member) => {
      const changes = member.changes.map(({ schema, node, staged }) => {
        const at = offset;
        blocks.push(node.rows);
        offset += padTo4(node.rows.length);
        const where: Omit<HeaderChange, 'schema'> = {
          offset: at,
          length: node.rows.length,
          ...(staged === undefined ? {} : { staged }),
        };
        return `{"schema":${this.#schemaText(schema)},${JSON.stringify(where).slice(1)}`;
      });
      const drops = member.drops === undefined ? '' : `,"drops":${JSON.stringify(member.drops)}`;
      return `{"changes":[${changes.join(',')}]${drops}}`;
    });
    const { databaseId, commitId, previousId, nodeId, atMs, since } = commit;
    const about = JSON.stringify({ databaseId, commitId, previousId, nodeId, atMs, since });
    const header = encodeUtf8(`${about.slice(0, -1)},"members":[${members.join(',')}]}`);
    const blocksAt = blockHeaderBytes + 4 + padTo4(header.length);
    const bytes = new Uint8Array(blocksAt + offset);
    new DataView(bytes.buffer).setUint32(blockHeaderBytes, header.length, true);
    bytes.set(header, blockHeaderBytes + 4);
    let at = blocksAt;
    for (const block of blocks) {
      bytes.set(block, at);
      at += padTo4(block.length);
    }
    let version = blockFormatVersion;
    for (const { changes, drops } of commit.members) {
      if (drops !== undefined) version = Math.max(version, droppedTableVersion);
      for (const { schema, staged } of changes) {
        version = Math.max(version, schemaFormat(schema));
        if (staged?.runs.some((run) => slotOfRun(run) !== slot) === true) version = Math.max(version, laterRunsVersion);
      }
    }
    sealBlock(commitName(slot), BlockKind.commit, bytes, version);
    return bytes;
  }

  #schemaText(schema: StoredSchema): string {
    let text = this.#schemaTexts.get(schema);
    if (text === undefined) {
      text = JSON.stringify(schema);
      this.#schemaTexts.set(schema, text);
    }
    return text;
  }
}

/** Returns a single commit as the object of a slot. */
export function encodeCommit(slot: number, commit: Commit): Uint8Array {
  return new CommitEncoder().encode(slot, commit);
}

/** Returns the slot in the id of a staged run; undefined for other texts. */
function slotOfRun(run: string): number | undefined {
  return parseStagedName(stagedName(run));
}

/**
 * Returns the last slot whose commit may name all of some runs: gc may delete a run once the slot in its name is decided. Infinite if
 * there are no runs.
 */
export function lastSlotOf({ runs }: StagedRuns): number {
  return runs.reduce((last, run) => Math.min(last, slotOfRun(run) ?? 0), Infinity);
}

/** Whether a value is staged runs that the commit in a slot may name: their own slot is this one or a later one. */
function isStaged(value: unknown, slot: number): value is StagedRuns {
  if (typeof value !== 'object' || value === null) return false;
  const { runs } = value as Record<string, unknown>;
  return Array.isArray(runs) && runs.every((run) => typeof run === 'string' && isDeletedAfter(slot, slotOfRun(run)));
}

/** Whether gc keeps a run for as long as the commit in a slot may be read. */
function isDeletedAfter(slot: number, runSlot: number | undefined): boolean {
  return runSlot !== undefined && runSlot >= slot;
}

function isHeaderChange(value: unknown, slot: number): value is HeaderChange {
  if (typeof value !== 'object' || value === null) return false;
  const { schema, offset, length, staged } = value as Record<string, unknown>;
  if (!Number.isSafeInteger(offset) || !Number.isSafeInteger(length)) return false;
  if ((offset as number) < 0 || (length as number) < 0) return false;
  return isStoredSchema(schema) && (staged === undefined || isStaged(staged, slot));
}

interface Header {
  readonly databaseId: string;
  readonly commitId: string;
  readonly previousId?: string;
  readonly nodeId: number;
  readonly atMs: number;
  readonly since?: number;
  readonly members: readonly { readonly changes: readonly HeaderChange[]; readonly drops?: readonly TableDrop[] }[];
}

/** Whether a value is a list of tables that a member drops, no table twice, or undefined. */
function areDrops(value: unknown): value is readonly TableDrop[] | undefined {
  if (value === undefined) return true;
  if (!Array.isArray(value) || value.length === 0) return false;
  const isDrop = (one: unknown): one is TableDrop => {
    if (typeof one !== 'object' || one === null) return false;
    const { table, version } = one as Record<string, unknown>;
    return typeof table === 'string' && !isSystemTable(table) && isCount(version);
  };
  return value.every(isDrop) && new Set(value.map(({ table }) => table)).size === value.length;
}

/** Changes of tables that are checked or decoded in one step. */
const changesInStep = 64;

function* headerOf(value: unknown, slot: number): Steps<Header | undefined> {
  if (typeof value !== 'object' || value === null) return undefined;
  const { databaseId, commitId, previousId, nodeId, atMs, since, members } = value as Record<string, unknown>;
  if (typeof databaseId !== 'string' || typeof commitId !== 'string') return undefined;
  if (previousId !== undefined && typeof previousId !== 'string') return undefined;
  if (!Number.isSafeInteger(nodeId) || (nodeId as number) < 0 || typeof atMs !== 'number') return undefined;
  if (since !== undefined && (!Number.isSafeInteger(since) || (since as number) < 0)) return undefined;
  if (!Array.isArray(members)) return undefined;
  let count = 0;
  for (const member of members as ({ readonly changes?: unknown; readonly drops?: unknown } | null)[]) {
    const changes = member?.changes;
    if (!Array.isArray(changes) || !areDrops(member?.drops)) return undefined;
    for (const change of changes as unknown[]) {
      if (!isHeaderChange(change, slot)) return undefined;
      if (++count % changesInStep === 0) yield;
    }
  }
  return value as Header;
}

/** Whether the rows of a change have its schema, and its block is a leaf unless the change is staged. */
function isOfSchema(node: Node, schema: StoredSchema, staged: StagedRuns | undefined): boolean {
  if (node.level > 0) return staged !== undefined;
  return (
    node.kind === BlockKind.table && node.schemaVersion === schema.version && node.stride === rowStride(schema.fields)
  );
}

/** Checks and decodes the object of a slot. Throws `CorruptionError` or `UnknownFormatError`. */
export function decodeCommit(slot: number, bytes: Uint8Array): Commit {
  return atOnce(decodingOf(slot, bytes));
}

/** Decodes like {@link decodeCommit}, but awaits `pause` now and then if the commit changes many tables. */
export function decodeCommitSlowly(slot: number, bytes: Uint8Array, pause: () => Promise<void>): Promise<Commit> {
  return withPauses(decodingOf(slot, bytes), pause);
}

function* decodingOf(slot: number, bytes: Uint8Array): Steps<Commit> {
  const name = commitName(slot);
  if (openBlock(name, bytes) !== BlockKind.commit) throw new CorruptionError(name, 'This is a block, not a commit');
  const fail = (cause?: unknown): never => {
    throw new CorruptionError(name, "The commit's header is malformed", { cause });
  };
  if (bytes.length < blockHeaderBytes + 4) fail();
  const headerBytes = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength).getUint32(blockHeaderBytes, true);
  const headerAt = blockHeaderBytes + 4;
  const blocksAt = headerAt + padTo4(headerBytes);
  if (headerBytes > bytes.length - headerAt || blocksAt > bytes.length) fail();
  let parsed: unknown;
  try {
    parsed = JSON.parse(decodeUtf8(bytes.subarray(headerAt, headerAt + headerBytes)));
  } catch (cause) {
    fail(cause);
  }
  const header = yield* headerOf(parsed, slot);
  if (header === undefined) return fail();
  const { databaseId, commitId, previousId, nodeId, atMs, since } = header;
  // Blocks follow each other and fill the object, so reading all of them takes time proportional to its length.
  let end = blocksAt;
  let count = 0;
  const members: CommitMember[] = [];
  for (const member of header.members) {
    const changes: TableChange[] = [];
    for (const { schema, offset, length, staged } of member.changes) {
      const start = blocksAt + offset;
      if (start !== end || start + length > bytes.length) fail();
      end = start + padTo4(length);
      const node = openNode(commitBlockName(schema.name), bytes.subarray(start, start + length));
      if (!isOfSchema(node, schema, staged)) fail();
      changes.push({ schema, node, ...(staged === undefined ? {} : { staged }) });
      if (++count % changesInStep === 0) yield;
    }
    members.push({ changes, ...defined({ drops: member.drops }) });
  }
  if (end !== bytes.length) fail();
  return { databaseId, commitId, ...defined({ previousId }), nodeId, atMs, ...defined({ since }), members };
}
