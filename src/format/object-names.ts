/**
 * Every object name is built and parsed here. Names are relative to the database's prefix; they hold only a-z, 0-9,
 * `-`, `_` and `/`, so that no table, whatever it is called, can leave its place.
 */
import { decodeUtf8, encodeUtf8 } from '../base/bytes.ts';
import type { BlockRef } from './block.ts';

export const block0Name = 'block0';
const slotDigits = 16;

/** Where the blocks of one tree are. */
export type TreePlace = { readonly table: string; readonly index?: string };

/** A name as one path segment: lower-case letters, digits and `-` stand for themselves, other bytes are `_` and hex. */
export function escapeSegment(text: string): string {
  let escaped = '';
  for (const byte of encodeUtf8(text)) {
    const plain = (byte >= 0x61 && byte <= 0x7a) || (byte >= 0x30 && byte <= 0x39) || byte === 0x2d;
    escaped += plain ? String.fromCharCode(byte) : `_${byte.toString(16).padStart(2, '0')}`;
  }
  return escaped;
}

/** The name that a path segment stands for; anything that is none stands for itself. */
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

/** Name of the commit in slot `slot`; names sort as slots do. */
export function commitName(slot: number): string {
  return `committed/${slotText(slot)}`;
}

/** Slot of a commit's name; undefined for other names. */
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

/** Names the blocks of a table's or an index's tree. */
export function blockNames({ table, index }: TreePlace): (ref: Pick<BlockRef, 'birth' | 'id'>) => string {
  const rows = escapeSegment(table);
  const folder = index === undefined ? `data/${rows}` : `indexes/${rows}/${escapeSegment(index)}`;
  return ({ birth, id }) => `${folder}/${blockFile(birth, id)}`;
}

/** Name of a block of a table's or an index's tree. */
export function blockName(place: TreePlace, ref: Pick<BlockRef, 'birth' | 'id'>): string {
  return blockNames(place)(ref);
}

/** Birth of a block by its name; undefined for names that are not a block's. */
export function parseBlockName(name: string): { readonly birth: number } | undefined {
  const match = /^(?:data\/[^/]+|indexes\/[^/]+\/[^/]+)\/([0-9a-f]{12})-[0-9a-f]{16}$/.exec(name);
  const birth = parseGeneration(match?.[1]);
  return birth === undefined ? undefined : { birth };
}

/** Names a kept Block 0 of a generation; `id` is 16 hexadecimal digits. */
export function rootId(generation: number, id: string): string {
  return `${generationText(generation)}-${id}`;
}

/** Name of the object that holds a snapshot's Block 0. */
export function rootName(id: string): string {
  return `roots/${id}`;
}

/** Generation of a snapshot's Block 0 by its name; undefined for other names. */
export function parseRootName(name: string): { readonly generation: number } | undefined {
  const generation = parseGeneration(/^roots\/([0-9a-f]{12})-[0-9a-f]{16}$/.exec(name)?.[1]);
  return generation === undefined ? undefined : { generation };
}

/** Name of the Block 0 of a generation that is kept as history. */
export function historyName(generation: number): string {
  return `history/${generationText(generation)}`;
}

/** Generation of a Block 0 that is kept as history; undefined for other names. */
export function parseHistoryName(name: string): number | undefined {
  return parseGeneration(/^history\/([0-9a-f]{12})$/.exec(name)?.[1]);
}

/** Folder of the manifests of backups. They are not part of a database. */
export const backupFolder = 'backups/';

/** Name of a backup's manifest; its id is that of a kept Block 0. */
export function backupName(id: string): string {
  return `${backupFolder}${id}`;
}

/** Name of the object that keeps when a backup was made, once its manifest was stored anew and has a later time. */
export function madeName(id: string, madeMs: number): string {
  return `${backupFolder}${id}.made-${madeMs}`;
}

/** The backup whose time is kept, and that time in milliseconds since 1970, by the object's name; undefined for other names. */
export function parseMadeName(name: string): { readonly id: string; readonly madeMs: number } | undefined {
  const match = /^backups\/([0-9a-f]{12}-[0-9a-f]{16})\.made-([0-9]{1,15})$/.exec(name);
  return match === null ? undefined : { id: match[1] as string, madeMs: Number(match[2]) };
}

/** Folder of the vouchers at a place for backups: each says that everything before it is encrypted with the key it names. */
export const voucherFolder = 'keys/';

/** Name of the voucher for a key. */
export function voucherName(keyId: string): string {
  return `${voucherFolder}${escapeSegment(keyId)}`;
}

/** Folder of the claims of what is under way at a place for backups. */
export const claimFolder = 'active/';

export type ClaimKind = 'backup' | 'prune';

/** Name of a claim; `id` is 16 hexadecimal digits. */
export function claimName(kind: ClaimKind, id: string): string {
  return `${claimFolder}${kind}-${id}`;
}

/** What a claim is of, by its name; undefined for other names. */
export function parseClaimName(name: string): ClaimKind | undefined {
  return /^active\/(backup|prune)-[0-9a-f]{16}$/.exec(name)?.[1] as ClaimKind | undefined;
}

/** The backup that a manifest is of, by its name; undefined for other names. */
export function parseBackupName(name: string): { readonly id: string; readonly generation: number } | undefined {
  const match = /^backups\/(([0-9a-f]{12})-[0-9a-f]{16})$/.exec(name);
  const generation = parseGeneration(match?.[2]);
  return generation === undefined ? undefined : { id: match?.[1] as string, generation };
}

/** Names a staged run: it can be named by the commit in slot `slot` only. */
export function stagedRun(slot: number, uuid: string): string {
  return `${slotText(slot)}-${uuid}`;
}

/** Name of an object that holds a staged run. */
export function stagedName(run: string): string {
  return `staged/${run}`;
}

/** The slot of the only commit that may name a staged run, by its object's name; undefined for other names. */
export function parseStagedName(name: string): number | undefined {
  return parseSlot(/^staged\/([0-9]{16})-[0-9a-f-]{36}$/.exec(name)?.[1]);
}

/** Name of a managed blob. */
export function blobName(uuid: string): string {
  return `blobs/${uuid}`;
}

/** UUID of a blob by its name; undefined for other names. */
export function parseBlobName(name: string): string | undefined {
  return /^blobs\/([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})$/.exec(name)?.[1];
}

/** Folders of what a database consists of, apart from Block 0. */
export const folders = {
  commits: 'committed/',
  data: 'data/',
  indexes: 'indexes/',
  staged: 'staged/',
  blobs: 'blobs/',
  roots: 'roots/',
  history: 'history/',
} as const;

/** Prefix of what belongs to a store and to none of its databases. */
export const sharedPrefix = '_storedb/';

/** Key, and not only name, of the object that says that a store was tried out; `id` is 32 hexadecimal digits. */
export function certificateName(id: string): string {
  return `${sharedPrefix}certified/${id}`;
}

/** Prefix of objects that probe what a store can do; they are not part of a database. */
export const probePrefix = 'probe/';
