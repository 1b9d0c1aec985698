/** The runtime's fastest way from bytes to strings, in one place. */

import { decodeUtf8 } from './bytes.ts';

interface SliceMethods {
  readonly latin1Slice: (this: Uint8Array, start: number, end: number) => string;
  readonly utf8Slice: (this: Uint8Array, start: number, end: number) => string;
}
const { latin1Slice, utf8Slice } = Buffer.prototype as unknown as SliceMethods;

/** One character per byte. For ASCII bytes this is their text. */
export function readLatin1(bytes: Uint8Array, start: number, end: number): string {
  return latin1Slice.call(bytes, start, end);
}

/** The text of UTF-8 bytes. Throws a TypeError for bytes that are none. */
export function readUtf8(bytes: Uint8Array, start: number, end: number): string {
  const text = utf8Slice.call(bytes, start, end);
  // What is not well-formed has become this character, and so has the character itself: the strict decoder tells them apart.
  return text.includes('\ufffd') ? decodeUtf8(bytes.subarray(start, end)) : text;
}

/** Bytes of a text that {@link readShortAscii} reads, at most. */
export const shortTextBytes = 4;
/** A place for each of 2048 short texts, found by their bytes. */
const placeBits = 11;
const shortWords = new Uint32Array(1 << placeBits);
const shortTexts: string[] = Array.from(shortWords, () => '');

/**
 * A text of up to four ASCII bytes, as a little-endian number with zeros behind it. Such texts come again and again, as codes
 * and kinds do: the strings are kept and shared, which is faster than to make them and takes less memory.
 */
export function readShortAscii(word: number, length: number): string {
  const place = Math.imul(word, 0x9e3779b1) >>> (32 - placeBits);
  const known = shortTexts[place] as string;
  if (shortWords[place] === word && known.length === length) return known;
  let text = '';
  for (let i = 0; i < length; i++) text += String.fromCharCode((word >>> (8 * i)) & 0xff);
  shortWords[place] = word;
  shortTexts[place] = text;
  return text;
}
