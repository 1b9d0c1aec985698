/**
 * The header of every stored block and commit:
 *
 *   0  4 bytes  "SDB" and the format version
 *   4  u8       kind
 *   5  u8       codec (0: none)
 *   6  u8       encryption (0: none)
 *   7  u8       zero
 *   8  u32      length of the body in bytes
 *  12  u32      CRC-32 of the object's name, of the bytes 0 to 11 and of the body
 *  16  body
 *
 * The name (without the database's prefix) is part of the checksum, so that a block under another name is noticed. Unexpected
 * bytes are a `CorruptionError`; nothing is guessed.
 */
import { encodeUtf8, checksum, fromHex, toHex } from '../base/bytes.ts';
import { CorruptionError, UnknownFormatError } from '../base/errors.ts';
import { refuseEnvelope } from './envelope.ts';
import { blockFormatVersion, newestVersion } from './version.ts';

export const blockHeaderBytes = 16;

export const BlockKind = { table: 1, index: 2, inner: 3, commit: 4, catalogue: 5 } as const;
export type BlockKind = (typeof BlockKind)[keyof typeof BlockKind];

const magic = [0x53, 0x44, 0x42] as const;
const codecNone = 0;
const encryptionNone = 0;

function blockChecksum(name: string, block: Uint8Array): number {
  const named = checksum(block.subarray(0, 12), checksum(encodeUtf8(name)));
  return checksum(block.subarray(blockHeaderBytes), named);
}

/** Fills in the block header of a block whose body begins after {@link blockHeaderBytes} free bytes. */
export function sealBlock(
  name: string,
  kind: BlockKind,
  block: Uint8Array,
  version: number = blockFormatVersion,
): void {
  const view = new DataView(block.buffer, block.byteOffset, block.byteLength);
  block.set(magic, 0);
  block[3] = version;
  block[4] = kind;
  block[5] = codecNone;
  block[6] = encryptionNone;
  block[7] = 0;
  view.setUint32(8, block.length - blockHeaderBytes, true);
  view.setUint32(12, blockChecksum(name, block), true);
}

/** Returns the kind of a block that {@link sealBlock} sealed in this process. */
export function sealedKind(block: Uint8Array): BlockKind {
  return block[4] as BlockKind;
}

/** Checks the header and the checksum of a block, and returns its kind. */
export function openBlock(name: string, block: Uint8Array): BlockKind {
  if (block.length < blockHeaderBytes || magic.some((byte, i) => block[i] !== byte)) {
    throw new CorruptionError(name, 'This is not a StoreDb block');
  }
  // Only commits have later versions; in other blocks they are unknown.
  const newest = block[4] === BlockKind.commit ? newestVersion : blockFormatVersion;
  const version = block[3] as number;
  if (version < blockFormatVersion || version > newest) {
    refuseEnvelope(name, block);
    throw new UnknownFormatError(
      name,
      `The block has format version ${version}, and this version of store-db reads ${newest}: upgrade it, unless the block is damaged`,
    );
  }
  const view = new DataView(block.buffer, block.byteOffset, block.byteLength);
  if (view.getUint32(8, true) !== block.length - blockHeaderBytes) {
    throw new CorruptionError(name, `The block is ${block.length} bytes long, and its header says otherwise`);
  }
  if (view.getUint32(12, true) !== blockChecksum(name, block)) {
    throw new CorruptionError(name, 'The block does not match its checksum');
  }
  if (block[5] !== codecNone || block[6] !== encryptionNone) {
    throw new UnknownFormatError(name, 'The block is compressed or encrypted in a way that this version cannot read');
  }
  const kind = block[4] as number;
  if (kind < BlockKind.table || kind > BlockKind.catalogue) {
    throw new UnknownFormatError(name, `The block is of kind ${kind}, which this version does not know`);
  }
  return kind as BlockKind;
}

/**
 * A reference to a block, as inner nodes and Block 0 hold it. In an inner node it takes 24 bytes, little-endian: birth (u48),
 * id (8 random bytes), rows below it (u48), size in bytes (u32).
 */
export interface BlockRef {
  /** Generation of Block 0 that first refers to the block. In a tree of staged runs: the position of the run. */
  readonly birth: number;
  /** 16 hexadecimal digits, random and never reused. In a tree of staged runs: the offset of the block in its run. */
  readonly id: string;
  /** Rows (or index entries) in the block and below it. */
  readonly count: number;
  /** Length of the stored block. */
  readonly sizeBytes: number;
}

/** Whether two references are to the same block. */
export function isSameBlock(a: Pick<BlockRef, 'birth' | 'id'>, b: Pick<BlockRef, 'birth' | 'id'>): boolean {
  return a.birth === b.birth && a.id === b.id;
}

export const childRefBytes = 24;
const twoTo32 = 0x1_0000_0000;

function writeU48(view: DataView, at: number, value: number): void {
  view.setUint32(at, value % twoTo32, true);
  view.setUint16(at + 4, Math.floor(value / twoTo32), true);
}

function readU48(view: DataView, at: number): number {
  return view.getUint32(at, true) + view.getUint16(at + 4, true) * twoTo32;
}

export function writeChildRef(bytes: Uint8Array, view: DataView, at: number, ref: BlockRef): void {
  writeU48(view, at, ref.birth);
  bytes.set(fromHex(ref.id) as Uint8Array, at + 6);
  writeU48(view, at + 14, ref.count);
  view.setUint32(at + 20, ref.sizeBytes, true);
}

export function readChildRef(bytes: Uint8Array, view: DataView, at: number): BlockRef {
  return {
    birth: readU48(view, at),
    id: toHex(bytes.subarray(at + 6, at + 14)),
    count: readU48(view, at + 14),
    sizeBytes: view.getUint32(at + 20, true),
  };
}

/** Reads only the number of rows below a child. */
export function readChildCount(view: DataView, at: number): number {
  return readU48(view, at + 14);
}
