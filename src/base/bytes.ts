/** Bytes: comparison, hexadecimal, and a growable writer. Nothing here knows what the bytes mean. */

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
const mostBytesPerUnit = 3;
const scratch = new Uint8Array(fewCharacters * mostBytesPerUnit);

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
    this.ensure(units * mostBytesPerUnit);
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
