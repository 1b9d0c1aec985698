/**
 * Functions on bytes that are independent of any format: comparison, hexadecimal, text, a growable writer, CRC-32, a hash. Also
 * the order of values.
 */
import { crc32, fromText, latin1Slice, toText, uncleared, utf8Slice } from '#platform';
import { isBytes } from './brands.ts';

/** Compares two ranges of bytes as unsigned values; a prefix sorts first. Negative, zero or positive. */
export function compareRanges(
  a: Uint8Array,
  aStart: number,
  aEnd: number,
  b: Uint8Array,
  bStart: number,
  bEnd: number,
): number {
  const aLength = aEnd - aStart;
  const bLength = bEnd - bStart;
  const shared = aLength < bLength ? aLength : bLength;
  for (let i = 0; i < shared; i++) {
    const difference = (a[aStart + i] as number) - (b[bStart + i] as number);
    if (difference !== 0) return difference;
  }
  return aLength - bLength;
}

/** Returns the smallest key that is greater than `key`. */
export function keyAfter(key: Uint8Array): Uint8Array {
  const next = new Uint8Array(key.length + 1);
  next.set(key);
  return next;
}

/** Compares two byte strings as unsigned values; a prefix sorts first. */
export function compareBytes(a: Uint8Array, b: Uint8Array): number {
  return compareRanges(a, 0, a.length, b, 0, b.length);
}

/** Copies a short range; for a few bytes a loop is several times faster than `TypedArray.set`. */
export function copyRange(from: Uint8Array, start: number, end: number, to: Uint8Array, at: number): void {
  if (end - start > 48) {
    to.set(from.subarray(start, end), at);
    return;
  }
  for (let i = start, j = at; i < end; i++, j++) to[j] = from[i] as number;
}

/** Returns a copy of both, one after the other. */
export function concatBytes(a: Uint8Array, b: Uint8Array): Uint8Array {
  const both = new Uint8Array(a.length + b.length);
  both.set(a);
  both.set(b, a.length);
  return both;
}

/** Returns a copy of all parts, one after the other. */
export function joinBytes(parts: readonly Uint8Array[]): Uint8Array {
  const bytes = uncleared(parts.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const part of parts) {
    bytes.set(part, at);
    at += part.length;
  }
  return bytes;
}

/** Returns the smallest byte string greater than every string that begins with `prefix`, or undefined if there is none. */
export function prefixEnd(prefix: Uint8Array): Uint8Array | undefined {
  let length = prefix.length;
  while (length > 0 && prefix[length - 1] === 0xff) length--;
  if (length === 0) return undefined;
  const end = prefix.slice(0, length);
  end[length - 1] = (end[length - 1] as number) + 1;
  return end;
}

/** Lower-case hexadecimal. */
export function toHex(bytes: Uint8Array): string {
  return toText(bytes, 'hex');
}

/** Bytes of a hexadecimal string; undefined unless it is one. */
export function fromHex(text: string): Uint8Array | undefined {
  if (text.length % 2 !== 0 || !/^[0-9a-f]*$/.test(text)) return undefined;
  return fromText(text, 'hex');
}

export function toBase64(bytes: Uint8Array): string {
  return toText(bytes, 'base64');
}

/** Decodes a text in base64 or base64url up to its first wrong character. */
export function fromBase64(text: string): Uint8Array {
  return fromText(text, 'base64');
}

/** Returns a text with a character for each byte: a key of maps for bytes. */
export function toLatin1(bytes: Uint8Array): string {
  return latin1Slice.call(bytes, 0, bytes.length);
}

const encoder = new TextEncoder();
const strictDecoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** Up to this many characters a loop is faster than the encoder, which takes microseconds even for the shortest text. */
const fewCharacters = 32;
/** Most UTF-8 bytes per UTF-16 unit. A character of two units takes only two bytes per unit. */
const maxBytesPerUnit = 3;
const scratch = new Uint8Array(fewCharacters * maxBytesPerUnit);

/**
 * Writes a text into `bytes` from `start` on, which must have enough room, and returns the end. Returns -1 for a text with
 * surrogates, paired or not: those are left to the encoder.
 */
function writeUtf8(text: string, bytes: Uint8Array, start: number): number {
  let at = start;
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i);
    if (unit < 0x80) bytes[at++] = unit;
    else if (unit < 0x800) {
      bytes[at++] = 0xc0 | (unit >> 6);
      bytes[at++] = 0x80 | (unit & 0x3f);
    } else {
      if (unit >= 0xd800 && unit <= 0xdfff) return -1;
      bytes[at++] = 0xe0 | (unit >> 12);
      bytes[at++] = 0x80 | ((unit >> 6) & 0x3f);
      bytes[at++] = 0x80 | (unit & 0x3f);
    }
  }
  return at;
}

export function encodeUtf8(text: string): Uint8Array {
  if (text.length > fewCharacters) return encoder.encode(text);
  const length = writeUtf8(text, scratch, 0);
  return length < 0 ? encoder.encode(text) : scratch.slice(0, length);
}

/** Decodes UTF-8, throwing a TypeError on anything that is not well-formed. */
export function decodeUtf8(bytes: Uint8Array): string {
  return strictDecoder.decode(bytes);
}

/** First capacity of small writers, cut from a shared slab. Many writers never need more, and a separate buffer costs more. */
const smallBytes = 64;
const slabBytes = 8192;
let slab = new ArrayBuffer(0);
let slabUsed = 0;

/** From this size on, clearing dominates the cost of a buffer. */
const largeBytes = 4096;

/** A buffer that grows. `bytes` is replaced when it does: never keep a reference to it across a write. */
export class ByteWriter {
  bytes: Uint8Array;
  #view: DataView | undefined = undefined;
  length = 0;

  /** Without a capacity it begins small, on memory shared with other writers: use that for short-lived bytes, or copy them. */
  constructor(capacity?: number) {
    if (capacity === undefined) {
      if (slabUsed + smallBytes > slab.byteLength) {
        slab = new ArrayBuffer(slabBytes);
        slabUsed = 0;
      }
      this.bytes = new Uint8Array(slab, slabUsed, smallBytes);
      slabUsed += smallBytes;
      return;
    }
    this.bytes = capacity < largeBytes ? new Uint8Array(capacity) : uncleared(capacity);
  }

  /** A view of {@link bytes}, replaced together with them. Created on first use, because many writers need none. */
  get view(): DataView {
    return (this.#view ??= new DataView(this.bytes.buffer, this.bytes.byteOffset, this.bytes.length));
  }

  /** Makes room for `extra` more bytes. */
  ensure(extra: number): void {
    const needed = this.length + extra;
    if (needed <= this.bytes.length) return;
    const grown = uncleared(Math.max(needed, this.bytes.length * 2));
    grown.set(this.bytes.subarray(0, this.length));
    this.bytes = grown;
    this.#view = undefined;
  }

  u8(value: number): void {
    this.ensure(1);
    this.bytes[this.length++] = value;
  }

  u16(value: number): void {
    this.ensure(2);
    this.view.setUint16(this.length, value, true);
    this.length += 2;
  }

  u32(value: number): void {
    this.ensure(4);
    this.view.setUint32(this.length, value, true);
    this.length += 4;
  }

  append(bytes: Uint8Array): void {
    this.ensure(bytes.length);
    this.bytes.set(bytes, this.length);
    this.length += bytes.length;
  }

  appendRange(from: Uint8Array, start: number, end: number): void {
    this.ensure(end - start);
    copyRange(from, start, end, this.bytes, this.length);
    this.length += end - start;
  }

  /** Appends `count` zero bytes. The buffer is reused, so they are written, not assumed. */
  zeros(count: number): void {
    this.ensure(count);
    this.bytes.fill(0, this.length, this.length + count);
    this.length += count;
  }

  /** Appends a well-formed string as UTF-8 and returns how many bytes it took. */
  utf8(text: string): number {
    const units = text.length;
    this.ensure(units * maxBytesPerUnit);
    const { bytes } = this;
    const start = this.length;
    const end = units <= fewCharacters ? writeUtf8(text, bytes, start) : -1;
    if (end >= 0) {
      this.length = end;
      return end - start;
    }
    const { written } = encoder.encodeInto(text, bytes.subarray(start));
    this.length = start + written;
    return written;
  }

  /** Returns a copy of the bytes written. */
  finish(): Uint8Array {
    return this.bytes.slice(0, this.length);
  }

  /** Returns the bytes written, without a copy if they fill the capacity exactly. The writer must not be used afterwards. */
  take(): Uint8Array {
    return this.length === this.bytes.length ? this.bytes : this.finish();
  }
}

/** Most bytes of a text that {@link textOfCodes} makes. The decoders of the runtime take several times as long for so few. */
const fewBytes = 12;
const fromCodes = String.fromCharCode as (...codes: (number | undefined)[]) => string;

/**
 * Makes a text of the `length` character codes at `i`, if there are few. With the codes as arguments the runtime makes the text at
 * once; with a list of arguments of any length it does not. It copies two texts of so few characters to one.
 */
function textOfCodes(c: Uint8Array | Uint16Array, i: number, length: number): string {
  switch (length) {
    case 0:
      return '';
    case 1:
      return fromCodes(c[i]);
    case 2:
      return fromCodes(c[i], c[i + 1]);
    case 3:
      return fromCodes(c[i], c[i + 1], c[i + 2]);
    case 4:
      return fromCodes(c[i], c[i + 1], c[i + 2], c[i + 3]);
    case 5:
      return fromCodes(c[i], c[i + 1], c[i + 2], c[i + 3], c[i + 4]);
    case 6:
      return fromCodes(c[i], c[i + 1], c[i + 2], c[i + 3], c[i + 4], c[i + 5]);
    case 7:
      return fromCodes(c[i], c[i + 1], c[i + 2], c[i + 3], c[i + 4], c[i + 5], c[i + 6]);
    case 8:
      return fromCodes(c[i], c[i + 1], c[i + 2], c[i + 3], c[i + 4], c[i + 5], c[i + 6], c[i + 7]);
    default:
      return textOfCodes(c, i, 8) + textOfCodes(c, i + 8, length - 8);
  }
}

/** Decodes one character per byte. For ASCII bytes this is their text. */
export function readLatin1(bytes: Uint8Array, start: number, end: number): string {
  const length = end - start;
  return length <= fewBytes ? textOfCodes(bytes, start, length) : latin1Slice.call(bytes, start, end);
}

/** The character codes of a short text. */
const codes = new Uint16Array(fewBytes);

/** Decodes few bytes of UTF-8 with characters of one or two bytes; undefined for others, and for bytes that are not well-formed. */
function readShortUtf8(bytes: Uint8Array, start: number, end: number): string | undefined {
  let length = 0;
  for (let at = start; at < end; at++) {
    const first = bytes[at] as number;
    if (first < 0x80) {
      codes[length++] = first;
      continue;
    }
    // 0xc0 and 0xc1 would begin a longer form of an ASCII character.
    const next = at + 1 < end ? (bytes[++at] as number) : 0;
    if (first < 0xc2 || first > 0xdf || (next & 0xc0) !== 0x80) return undefined;
    codes[length++] = ((first & 0x1f) << 6) | (next & 0x3f);
  }
  return textOfCodes(codes, 0, length);
}

/** Decodes UTF-8. Throws a TypeError for bytes that are not well-formed. */
export function readUtf8(bytes: Uint8Array, start: number, end: number): string {
  const short = end - start <= fewBytes ? readShortUtf8(bytes, start, end) : undefined;
  if (short !== undefined) return short;
  const text = utf8Slice.call(bytes, start, end);
  // U+FFFD replaces ill-formed bytes, but may also be in the text itself: the strict decoder distinguishes the two.
  return text.includes('\ufffd') ? decodeUtf8(bytes.subarray(start, end)) : text;
}

/** Most bytes of a text that {@link readShortAscii} reads. */
export const shortTextBytes = 4;
/** Bits of a slot number in the table of 2048 short texts, which is indexed by a hash of their bytes. */
const placeBits = 11;
const shortWords = new Uint32Array(1 << placeBits);
const shortTexts: string[] = Array.from(shortWords, () => '');

/**
 * Returns a text of up to four ASCII bytes, given as a little-endian number padded with zeros. Short codes repeat often, so the
 * strings are cached and shared: that is faster than making them, and takes less memory.
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

/**
 * Returns the CRC-32 of `bytes`, as in zlib, continuing from `seed`, the checksum of the bytes before them. It guards against
 * accidents, not against attackers.
 */
export function checksum(bytes: Uint8Array, seed = 0): number {
  return crc32(bytes, seed);
}

/**
 * Returns a 32-bit hash for tables in memory: FNV-1a, mixed so that its low bits depend on all others. Nothing stored depends on
 * it.
 */
export function hashOf(bytes: Uint8Array, start: number, end: number): number {
  let hash = 0x811c9dc5;
  for (let i = start; i < end; i++) hash = Math.imul(hash ^ (bytes[i] as number), 0x01000193);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}

/**
 * Compares two strings by Unicode code point, which is also the order of their UTF-8 bytes. JavaScript's `<` compares UTF-16 code
 * units, which is a different order (U+FFFF against U+10000), so no other code compares strings with it.
 */
export function compareStrings(a: string, b: string): number {
  const shared = Math.min(a.length, b.length);
  for (let i = 0; i < shared; i++) {
    let x = a.charCodeAt(i);
    let y = b.charCodeAt(i);
    if (x === y) continue;
    // Surrogates (U+D800 to U+DFFF) stand for code points above every other unit: move them up, the rest down.
    if (x >= 0xd800) x = x >= 0xe000 ? x - 0x800 : x + 0x2000;
    if (y >= 0xd800) y = y >= 0xe000 ? y - 0x800 : y + 0x2000;
    return x - y;
  }
  return a.length - b.length;
}

/** A value that can be ordered. Both sides of a comparison are of one field, so of one kind (or null). */
export type OrderedValue = null | boolean | number | bigint | string | Date | Uint8Array;

/**
 * Compares two values of one field: null first, numbers numerically (-0 equals 0), strings by code point, false before true,
 * bytes bytewise. Negative, zero or positive.
 */
export function compareValues(a: OrderedValue, b: OrderedValue): number {
  if (a === null) return b === null ? 0 : -1;
  if (b === null) return 1;
  if (typeof a === 'string') return compareStrings(a, b as string);
  if (typeof a === 'object') {
    return isBytes(a) ? compareBytes(a, b as Uint8Array) : a.getTime() - (b as Date).getTime();
  }
  // Numbers, bigints (mixed comparisons are exact in JavaScript) and booleans.
  const x = a as number;
  const y = b as number;
  return x < y ? -1 : x > y ? 1 : 0;
}
