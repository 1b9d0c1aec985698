/**
 * Every object name is built and parsed here. Names are relative to the database's prefix; they hold only a-z, 0-9,
 * `-`, `_` and `/`, so that no table, whatever it is called, can leave its place.
 */
import { encodeUtf8 } from '../base/bytes.ts';
import type { BlockRef } from './child-ref.ts';

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

/** Name of the commit in slot `slot`; names sort as slots do. */
export function commitName(slot: number): string {
  return `committed/${String(slot).padStart(slotDigits, '0')}`;
}

/** Slot of a commit's name; undefined for other names. */
export function parseCommitName(name: string): number | undefined {
  const match = /^committed\/([0-9]{16})$/.exec(name);
  const slot = match === null ? Number.NaN : Number(match[1]);
  return Number.isSafeInteger(slot) ? slot : undefined;
}

function blockFile(birth: number, id: string): string {
  return `${birth.toString(16).padStart(12, '0')}-${id}`;
}

/** Name of a block of a table's or an index's tree. */
export function blockName(place: TreePlace, ref: Pick<BlockRef, 'birth' | 'id'>): string {
  const table = escapeSegment(place.table);
  const file = blockFile(ref.birth, ref.id);
  return place.index === undefined ? `data/${table}/${file}` : `indexes/${table}/${escapeSegment(place.index)}/${file}`;
}

/** Birth of a block by its name; undefined for names that are not a block's. */
export function parseBlockName(name: string): { readonly birth: number } | undefined {
  const match = /^(?:data\/[^/]+|indexes\/[^/]+\/[^/]+)\/([0-9a-f]{12})-[0-9a-f]{16}$/.exec(name);
  return match === null ? undefined : { birth: Number.parseInt(match[1] as string, 16) };
}

/** Name of an object that holds staged runs of a large commit. */
export function stagedName(uuid: string): string {
  return `staged/${uuid}`;
}

/** Name of a managed blob. */
export function blobName(uuid: string): string {
  return `blobs/${uuid}`;
}

/** Prefix of objects that probe what a store can do; they are not part of a database. */
export const probePrefix = 'probe/';
