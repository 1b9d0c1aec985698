/** The one checksum: CRC-32 as in zlib, from the runtime. It guards against accidents, not against attackers. */
import { crc32 } from 'node:zlib';

/** CRC-32 of `bytes`, continuing from `seed` (the checksum of what precedes them). */
export function checksum(bytes: Uint8Array, seed = 0): number {
  return crc32(bytes, seed);
}
