/** Numbers of at least 0 as LEB128: seven bits in each byte, the lowest first, and the highest bit set in all bytes but the last. */
import type { ByteWriter } from '../base/bytes.ts';

/** Appends a number of at least 0. */
export function writeCount(writer: ByteWriter, count: number): void {
  writer.ensure(8);
  const { bytes } = writer;
  let { length } = writer;
  let left = count;
  for (; left >= 2 ** 31; left = Math.floor(left / 0x80)) bytes[length++] = (left % 0x80) | 0x80;
  for (; left >= 0x80; left >>>= 7) bytes[length++] = left | 0x80;
  bytes[length++] = left;
  writer.length = length;
}

/** Reads numbers one after the other. */
export class CountReader {
  bytes: Uint8Array = new Uint8Array(0);
  at = 0;

  /** Returns the next number; what is behind the end of the bytes reads as 0. */
  next(): number {
    let value = 0;
    let factor = 1;
    for (;;) {
      const byte = this.bytes[this.at++] ?? 0;
      value += (byte & 0x7f) * factor;
      if (byte < 0x80) return value;
      factor *= 0x80;
    }
  }
}
