/**
 * Builds and parses all object names. Names are relative to the database's prefix. They hold only a-z, 0-9, `-`, `_` and `/`,
 * so no name of a table leads out of its folder.
 */
import { decodeUtf8, encodeUtf8 } from '../base/bytes.ts';
import type { BlockRef } from './block.ts';

export const block0Name = 'block0';
const slotDigits = 16;

/** The table and index that a tree belongs to; it determines the folder of the blocks. */
export type TreePlace = { readonly table: string; readonly index?: string };

/**
 * Encodes a name as one path segment: lower-case letters, digits and `-` are kept, other bytes become `_` and two hexadecimal
 * digits.
 */
export function escapeSegment(text: string): string {
  let escaped = '';
  for (const byte of encodeUtf8(text)) {
    const plain = (byte >= 0x61 && byte <= 0x7a) || (byte >= 0x30 && byte <= 0x39) || byte === 0x2d;
    escaped += plain ? String.fromCharCode(byte) : `_${byte.toString(16).padStart(2, '0')}`;
  }
  return escaped;
}

/** Decodes a path segment to a name; returns other text unchanged. */
export function unescapeSegment(segment: string): string {
  const bytes = segment.replace(/_([0-9a-f]{2})/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
  try {
    return decodeUtf8(Uint8Array.from(bytes, (character) => character.charCodeAt(0)));
  } catch {
    return segment;
  }
}

function slotText(slot: number): string {
  return String(slot).padStart(slotDigits, '0');
}

function parseSlot(digits: string | undefined): number | undefined {
  const slot = Number(digits);
  return Number.isSafeInteger(slot) ? slot : undefined;
}

/** Returns the name of the commit in a slot; names sort like slots. */
export function commitName(slot: number): string {
  return `committed/${slotText(slot)}`;
}

/** Returns the slot in a commit's name; undefined for other names. */
export function parseCommitName(name: string): number | undefined {
  return parseSlot(/^committed\/([0-9]{16})$/.exec(name)?.[1]);
}

function generationText(generation: number): string {
  return generation.toString(16).padStart(12, '0');
}

function parseGeneration(digits: string | undefined): number | undefined {
  return digits === undefined ? undefined : Number.parseInt(digits, 16);
}

function blockFile(birth: number, id: string): string {
  return `${generationText(birth)}-${id}`;
}

/** Returns a function that names the blocks of a table's or an index's tree. */
export function blockNames({ table, index }: TreePlace): (ref: Pick<BlockRef, 'birth' | 'id'>) => string {
  const rows = escapeSegment(table);
  const folder = index === undefined ? `data/${rows}` : `indexes/${rows}/${escapeSegment(index)}`;
  return ({ birth, id }) => `${folder}/${blockFile(birth, id)}`;
}

/** Returns the name of a block of a table's or an index's tree. */
export function blockName(place: TreePlace, ref: Pick<BlockRef, 'birth' | 'id'>): string {
  return blockNames(place)(ref);
}

/** Returns the birth in a block's name; undefined for other names. */
export function parseBlockName(name: string): { readonly birth: number } | undefined {
  const match = /^(?:data\/[^/]+|indexes\/[^/]+\/[^/]+)\/([0-9a-f]{12})-[0-9a-f]{16}$/.exec(name);
  const birth = parseGeneration(match?.[1]);
  return birth === undefined ? undefined : { birth };
}

/** Returns the id of a kept Block 0 of a generation; `id` is 16 hexadecimal digits. */
export function rootId(generation: number, id: string): string {
  return `${generationText(generation)}-${id}`;
}

/** Returns the name of the object that holds a snapshot's Block 0. */
export function rootName(id: string): string {
  return `roots/${id}`;
}

/** Returns the generation in the name of a snapshot's Block 0; undefined for other names. */
export function parseRootName(name: string): { readonly generation: number } | undefined {
  const generation = parseGeneration(/^roots\/([0-9a-f]{12})-[0-9a-f]{16}$/.exec(name)?.[1]);
  return generation === undefined ? undefined : { generation };
}

/** Returns the name of a generation's Block 0 that is kept as history. */
export function historyName(generation: number): string {
  return `history/${generationText(generation)}`;
}

/** Returns the generation in the name of a Block 0 that is kept as history; undefined for other names. */
export function parseHistoryName(name: string): number | undefined {
  return parseGeneration(/^history\/([0-9a-f]{12})$/.exec(name)?.[1]);
}

/** Folder of the manifests of backups. They are not part of a database. */
export const backupFolder = 'backups/';

/** Returns the name of a backup's manifest; the id has the form of a kept Block 0's id. */
export function backupName(id: string): string {
  return `${backupFolder}${id}`;
}

/**
 * Returns the name of the object that records when a backup was made, after its manifest was stored again and has a later time.
 */
export function madeName(id: string, madeMs: number): string {
  return `${backupFolder}${id}.made-${madeMs}`;
}

/** Returns the backup and the time in milliseconds since 1970 in the name of such an object; undefined for other names. */
export function parseMadeName(name: string): { readonly id: string; readonly madeMs: number } | undefined {
  const match = /^backups\/([0-9a-f]{12}-[0-9a-f]{16})\.made-([0-9]{1,15})$/.exec(name);
  return match === null ? undefined : { id: match[1] as string, madeMs: Number(match[2]) };
}

/**
 * Folder of the vouchers in a destination for backups. Each voucher states that everything before it is encrypted with the key
 * it names.
 */
export const voucherFolder = 'keys/';

/** Returns the name of the voucher for a key. */
export function voucherName(keyId: string): string {
  return `${voucherFolder}${escapeSegment(keyId)}`;
}

/** Folder of the claims of operations that are under way in a destination for backups. */
export const claimFolder = 'active/';

export type ClaimKind = 'backup' | 'prune';

/** Returns the name of a claim; `id` is 16 hexadecimal digits. */
export function claimName(kind: ClaimKind, id: string): string {
  return `${claimFolder}${kind}-${id}`;
}

/** Returns the kind of a claim by its name; undefined for other names. */
export function parseClaimName(name: string): ClaimKind | undefined {
  return /^active\/(backup|prune)-[0-9a-f]{16}$/.exec(name)?.[1] as ClaimKind | undefined;
}

/** Returns the backup in the name of its manifest; undefined for other names. */
export function parseBackupName(name: string): { readonly id: string; readonly generation: number } | undefined {
  const match = /^backups\/(([0-9a-f]{12})-[0-9a-f]{16})$/.exec(name);
  const generation = parseGeneration(match?.[2]);
  return generation === undefined ? undefined : { id: match?.[1] as string, generation };
}

/** Returns the id of a staged run; only commits in slot `slot` and earlier slots may refer to it. */
export function stagedRun(slot: number, uuid: string): string {
  return `${slotText(slot)}-${uuid}`;
}

/** Returns the name of the object that holds a staged run. */
export function stagedName(run: string): string {
  return `staged/${run}`;
}

/** Returns the slot in the name of a staged run's object, the last one whose commit may refer to it; undefined for other names. */
export function parseStagedName(name: string): number | undefined {
  return parseSlot(/^staged\/([0-9]{16})-[0-9a-f-]{36}$/.exec(name)?.[1]);
}

/** Returns the name of a managed blob. */
export function blobName(uuid: string): string {
  return `blobs/${uuid}`;
}

/** Returns the UUID in a blob's name; undefined for other names. */
export function parseBlobName(name: string): string | undefined {
  return /^blobs\/([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})$/.exec(name)?.[1];
}

/** Folders of all objects of a database except Block 0. */
export const folders = {
  commits: 'committed/',
  data: 'data/',
  indexes: 'indexes/',
  staged: 'staged/',
  blobs: 'blobs/',
  roots: 'roots/',
  history: 'history/',
} as const;

/** Prefix of objects that belong to a store and to none of its databases. */
export const sharedPrefix = '_storedb/';

/**
 * Returns the full key, not a name relative to a prefix, of the object that records that a store was tested; `id` is 32
 * hexadecimal digits.
 */
export function certificateName(id: string): string {
  return `${sharedPrefix}certified/${id}`;
}

/** Prefix of objects that probe the abilities of a store; they are not part of a database. */
export const probePrefix = 'probe/';

/** The header `Cache-Control` of objects that are written once: a reader may keep them for a year. */
const writtenOnce = 'private, max-age=31536000, immutable';

/**
 * Returns the header `Cache-Control` for an object; undefined for objects that are not of a database. Blocks, blobs, commits and
 * staged runs are written once. Block 0 is replaced by every merge.
 */
export function cacheControlOf(key: string): string | undefined {
  const parts = key.split('/');
  const isBlock = parts.at(-3) === 'data' || parts.at(-4) === 'indexes';
  if (isBlock || ['blobs', 'committed', 'staged'].includes(parts.at(-2) ?? '')) return writtenOnce;
  return parts.at(-1) === block0Name ? 'no-cache' : undefined;
}
