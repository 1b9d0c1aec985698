/**
 * Compression of one object, in frames of up to 64 KiB of content, so that long ones can be worked on bit by bit:
 *
 *   0  u32  bytes that follow; bit 31 is set if they are the content as it is
 *   4       the content of the frame, compressed for itself
 */
import { compressZstd, deflate, inflate, loadZstdExpander } from '#platform';
import { CorruptionError, invariant } from '../base/errors.ts';
import { Codec } from './envelope.ts';

/** Bytes of content in every frame but the last. */
export const frameBytes = 65_536;
const asItIs = 0x80000000;
/** Fast, and nearly as small as levels that take twice as long. */
const deflateLevel = 3;
const zstdLevel = 3;

/** Expands a frame that was compressed with zstd, once it is loaded. */
let expandZstd: Awaited<ReturnType<typeof loadZstdExpander>> | undefined;

/** Whether this runtime can compress with zstd. Every runtime can decompress it. */
export const canWriteZstd: boolean = compressZstd !== undefined;

function compressFrame(codec: Codec, content: Uint8Array): Uint8Array {
  if (codec === Codec.deflate) return deflate(content, deflateLevel, frameBytes);
  return compressZstd?.(content, zstdLevel) ?? content;
}

/** Compresses a frame, and returns it behind its length. */
export function encodeFrame(codec: Codec, content: Uint8Array): Uint8Array {
  const compressed = compressFrame(codec, content);
  const isShorter = compressed.length < content.length;
  const bytes = isShorter ? compressed : content;
  const frame = new Uint8Array(4 + bytes.length);
  new DataView(frame.buffer).setUint32(0, isShorter ? bytes.length : (bytes.length | asItIs) >>> 0, true);
  frame.set(bytes, 4);
  return frame;
}

/** Loads the decoder of a codec, if it needs one that is not loaded yet. */
export async function prepareToExpand(codec: Codec): Promise<void> {
  if (codec === Codec.zstd) expandZstd ??= await loadZstdExpander();
}

function expand(codec: Codec, frame: Uint8Array, contentBytes: number): Uint8Array {
  if (codec === Codec.deflate) return inflate(frame, contentBytes);
  invariant(expandZstd !== undefined, 'The decoder of zstd is loaded before a frame is expanded');
  return expandZstd(frame, contentBytes);
}

/**
 * Writes the content of the frame at `at` to `target`, and returns the offset at which the frame ends. Throws `CorruptionError`
 * unless the content is exactly as long as `target`. It never decompresses more than that.
 */
export function decodeFrame(name: string, codec: Codec, bytes: Uint8Array, at: number, target: Uint8Array): number {
  if (at + 4 > bytes.length) throw new CorruptionError(name, 'A compressed object ends too early');
  const head = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength).getUint32(at, true);
  const length = head & ~asItIs;
  const end = at + 4 + length;
  if (end > bytes.length) throw new CorruptionError(name, 'A compressed object ends too early');
  const frame = bytes.subarray(at + 4, end);
  let content: Uint8Array | undefined;
  try {
    // Empty content has no frame.
    if (target.length > 0) content = head >= asItIs ? frame : expand(codec, frame, target.length);
  } catch (cause) {
    throw new CorruptionError(name, 'A compressed object cannot be decompressed', { cause });
  }
  if (content?.length !== target.length) {
    throw new CorruptionError(name, 'A compressed object does not have the length that its header says');
  }
  target.set(content);
  return end;
}
