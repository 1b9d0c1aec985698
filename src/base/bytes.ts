/** Bytes: comparison, hexadecimal, and a growable writer. Nothing here knows what the bytes mean. */
import { crc32 } from 'node:zlib';
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

/** The least key above another. */
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

/** Both, one after the other. */
export function concatBytes(a: Uint8Array, b: Uint8Array): Uint8Array {
  const both = new Uint8Array(a.length + b.length);
  both.set(a);
  both.set(b, a.length);
  return both;
}

/** The smallest byte string greater than every string that begins with `prefix`, or undefined if there is none. */
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
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('hex');
}

/** Bytes of a hexadecimal string; undefined unless it is one. */
export function fromHex(text: string): Uint8Array | undefined {
  if (text.length % 2 !== 0 || !/^[0-9a-f]*$/.test(text)) return undefined;
  return new Uint8Array(Buffer.from(text, 'hex'));
}

const encoder = new TextEncoder();
const strictDecoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** Up to so many characters a loop is faster than the encoder, which takes microseconds for the shortest text. */
const fewCharacters = 32;
/** No character that is one unit takes more bytes, and one that is two takes fewer for each. */
const maxBytesPerUnit = 3;
const scratch = new Uint8Array(fewCharacters * maxBytesPerUnit);

/**
 * Writes a text into `bytes` from `start` on, where there is room enough, and returns where it ends; -1 for one with characters of
 * two units, or with half of one: the encoder knows what becomes of them.
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

/** Bytes that small writers begin with, cut from a slab: many writers never hold more, and a buffer of its own costs more. */
const smallBytes = 64;
const slabBytes = 8192;
let slab = new ArrayBuffer(0);
let slabUsed = 0;

/** Of so many bytes on, clearing a buffer takes longer than all else about it. */
const largeBytes = 4096;

/** Not cleared first: what lies beyond a writer's `length` is written before it is read. */
function uncleared(size: number): Uint8Array {
  return new Uint8Array(Buffer.allocUnsafeSlow(size).buffer);
}

/** A buffer that grows. `bytes` is replaced when it does: never keep a reference to it across a write. */
export class ByteWriter {
  bytes: Uint8Array;
  #view: DataView | undefined = undefined;
  length = 0;

  /** Without a capacity it begins small, on memory that it shares: what it holds is for a while only, or to be copied. */
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

  /** Of {@link bytes}, and replaced when they are. Made when it is needed: many writers do without. */
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
    copyRange(bytes, 0, bytes.length, this.bytes, this.length);
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

  /** A copy of what was written. */
  finish(): Uint8Array {
    return this.bytes.slice(0, this.length);
  }

  /** What was written, without a copy where the capacity was guessed right. The writer must not be used afterwards. */
  take(): Uint8Array {
    return this.length === this.bytes.length ? this.bytes : this.finish();
  }
}

// The runtime's fastest way from bytes to strings, in one place.

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

// The one checksum: CRC-32 as in zlib, from the runtime. It guards against accidents, not against attackers.

/** CRC-32 of `bytes`, continuing from `seed` (the checksum of what precedes them). */
export function checksum(bytes: Uint8Array, seed = 0): number {
  return crc32(bytes, seed);
}

// A hash for tables in memory. Nothing that is stored depends on it.

/** A hash of 32 bits: FNV-1a, stirred so that its low bits depend on all others. */
export function hashOf(bytes: Uint8Array, start: number, end: number): number {
  let hash = 0x811c9dc5;
  for (let i = start; i < end; i++) hash = Math.imul(hash ^ (bytes[i] as number), 0x01000193);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}

// The one total order of values: null first, then by value. Numbers numerically (-0 equals 0), strings by Unicode code
// point, booleans false first, bytes bytewise. JavaScript's `<` on strings compares UTF-16 code units, which is a
// different order (U+FFFF against U+10000), so no other code compares strings with it.

/** Compares two strings by Unicode code point, which is also the order of their UTF-8 bytes. */
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

/** A value that the order knows. Both sides of a comparison are of one field, hence of one kind (or null). */
export type OrderedValue = null | boolean | number | bigint | string | Date | Uint8Array;

/** Compares two values of one field. Negative, zero or positive. */
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
