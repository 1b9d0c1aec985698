/**
 * Reference to a block, as inner nodes and Block 0 hold it. 24 bytes in an inner node:
 * birth (u48), id (8 random bytes), rows below it (u48), size in bytes (u32), all little-endian.
 */
import { fromHex, toHex } from '../base/bytes.ts';

export interface BlockRef {
  /** Generation of Block 0 that first refers to the block. In a staged run: which run. */
  readonly birth: number;
  /** 16 hexadecimal digits, random and never reused. In a staged run: the block's offset. */
  readonly id: string;
  /** Rows (or index entries) in the block and below it. */
  readonly count: number;
  /** Length of the stored block. */
  readonly sizeBytes: number;
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

/** Only the number of rows below a child. */
export function readChildCount(view: DataView, at: number): number {
  return readU48(view, at + 14);
}
