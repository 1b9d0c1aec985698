/**
 * Writes the entries of a dense leaf (dense-leaf.ts), one after the other. The bytes of the first ones do not depend on those that follow,
 * so that the length of a leaf with any number of them is known.
 */
import { ByteWriter } from '../base/bytes.ts';
import { blockHeaderBytes } from './block.ts';
import { writeCount } from './counts.ts';
import { flagDense, groupEntries, RestForm, steppedBytes } from './dense-leaf.ts';
import { nodeHeaderBytes } from './node.ts';
import { MalformedKey, skipKeyComponent } from './ordered-key.ts';
import { Types, widthOf } from './types.ts';
import type { TypeId } from './types.ts';

/** Keys, one after the other: `ends` has where each of them ends. */
export interface WrittenKeys {
  readonly bytes: Uint8Array;
  readonly ends: Uint32Array;
}

/** The most by which a primary key is greater than the one before, so that their difference takes at most four bytes. */
const maxStep = 2 ** 28 - 2;
/** The most words that are told as a number. */
const maxWords = 2 ** 28;

export class DenseWriter {
  readonly #keyTypes: readonly TypeId[];
  /** The length of a primary key of which no part is a text. */
  readonly #keyBytes: number | undefined;
  readonly #out = new ByteWriter();
  /** Where each entry ends. */
  #ends = new Uint32Array(64);
  #count = 0;
  /** Where the parts of the key found last begin and end: one of the present keys, or the word is empty. */
  #start = 0;
  #wordEnd = 0;
  #keyEnd = 0;

  /** `keyTypes`: the types of the fields of the primary key. */
  constructor(keyTypes: readonly TypeId[]) {
    this.#keyTypes = keyTypes;
    const isFixed = keyTypes.every((type) => type !== Types.varchar && type !== Types.bytes);
    this.#keyBytes = isFixed ? keyTypes.reduce((sum, type) => sum + 1 + widthOf(type), 0) : undefined;
  }

  /** Forgets the entries from the `count`th on. */
  truncate(count: number): void {
    if (count < this.#count) this.#count = count;
    this.#out.length = this.#endOf(this.#count);
    // Other keys follow, which may have other bytes where that key was.
    this.#start = this.#wordEnd;
  }

  /**
   * Takes the entries `from` to `to` of another writer for as many keys, from the `at`th on. Most have the same bytes here: those that are
   * whole in one leaf and not in the other, and the first, are written. Does nothing unless all keys before are written.
   */
  takeFrom(other: DenseWriter, from: number, to: number, keys: WrittenKeys, at: number): void {
    if (at !== this.#count) return;
    const last = to < other.#count ? to : other.#count;
    this.#makeRoom(at + last - from);
    for (let i = from; i < last; ) {
      const own = this.#count;
      if (i === from || own % groupEntries === 0 || i % groupEntries === 0) {
        this.write(keys, own + 1);
        i++;
        continue;
      }
      const end = Math.min(last, groupEnd(i), i + groupEnd(own) - own);
      const start = other.#endOf(i);
      const shift = this.#out.length - start;
      this.#out.appendRange(other.#out.bytes, start, other.#endOf(end));
      for (; i < end; i++) this.#ends[this.#count++] = (other.#ends[i] as number) + shift;
    }
  }

  /**
   * Takes `stored[start .. end)`, the `i`th entry of a leaf, after the one before it. Returns false if that entry is written in another way
   * here.
   */
  takeNext(stored: Uint8Array, start: number, end: number, i: number): boolean {
    const own = this.#count;
    if (own % groupEntries === 0 || i % groupEntries === 0) return false;
    this.#makeRoom(own + 1);
    this.#out.appendRange(stored, start, end);
    this.#ends[own] = this.#out.length;
    this.#count = own + 1;
    return true;
  }

  /** Returns the length of a block with the first `count` keys. Those of earlier calls are the same, unless they were truncated. */
  sizeOf(keys: WrittenKeys, count: number): number {
    this.write(keys, count);
    return blockHeaderBytes + nodeHeaderBytes + groupsOf(count) * 4 + this.#endOf(count);
  }

  /** Returns a block with the first `count` keys, whose block header is not filled in. */
  block(keys: WrittenKeys, count: number): Uint8Array {
    const block = new Uint8Array(this.sizeOf(keys, count));
    const view = new DataView(block.buffer);
    const dataBytes = this.#endOf(count);
    view.setUint8(blockHeaderBytes + 1, flagDense);
    view.setUint32(blockHeaderBytes + 4, count, true);
    view.setUint32(blockHeaderBytes + 8, dataBytes, true);
    const groups = blockHeaderBytes + nodeHeaderBytes;
    for (let i = 0; i < groupsOf(count); i++) view.setUint32(groups + i * 4, this.#endOf(i * groupEntries), true);
    block.set(this.#out.bytes.subarray(0, dataBytes), block.length - dataBytes);
    return block;
  }

  #endOf(count: number): number {
    return count === 0 ? 0 : (this.#ends[count - 1] as number);
  }

  /** Makes room for the ends of `count` entries. */
  #makeRoom(count: number): void {
    if (count <= this.#ends.length) return;
    const grown = new Uint32Array(Math.max(count, this.#ends.length * 2));
    grown.set(this.#ends.subarray(0, this.#count));
    this.#ends = grown;
  }

  /** Writes the first `count` keys, as far as they are not written yet. */
  write(keys: WrittenKeys, count: number): void {
    if (count <= this.#count) return;
    this.#makeRoom(count);
    if (this.#count > 0) this.#find(keys, this.#count - 1);
    while (this.#count < count) {
      this.#writeEntry(keys, this.#count);
      this.#ends[this.#count++] = this.#out.length;
    }
  }

  #writeEntry(keys: WrittenKeys, i: number): void {
    const out = this.#out;
    const { bytes } = keys;
    const wordEndBefore = this.#wordEnd;
    const keyLengthBefore = this.#keyEnd - wordEndBefore;
    const wordLengthBefore = wordEndBefore - this.#start;
    const sharedWord = this.#find(keys, i);
    const start = this.#start;
    const wordEnd = this.#wordEnd;
    const keyEnd = this.#keyEnd;
    const keyLength = keyEnd - wordEnd;
    out.ensure(numbersBytes);
    if (i % groupEntries === 0) {
      writeCount(out, wordEnd - start);
      writeCount(out, keyLength);
      out.appendRange(bytes, start, keyEnd);
    } else {
      const isSame = sharedWord === wordLengthBefore && wordEnd - start === sharedWord;
      const step = isSame && keyLength === keyLengthBefore ? stepOf(bytes, wordEndBefore, wordEnd, keyLength) : 0;
      if (step > 0) {
        writeCount(out, step + 1);
      } else {
        if (isSame) {
          writeCount(out, 1);
        } else {
          writeCount(out, 0);
          writeCount(out, sharedWord);
          writeCount(out, wordEnd - start - sharedWord);
          out.appendRange(bytes, start + sharedWord, wordEnd);
        }
        const sharedKey = sharedBytes(bytes, wordEndBefore, keyLengthBefore, wordEnd, keyLength);
        writeCount(out, sharedKey * 2 + (keyLength === keyLengthBefore ? 1 : 0));
        if (keyLength !== keyLengthBefore) writeCount(out, keyLength - sharedKey);
        out.appendRange(bytes, wordEnd + sharedKey, keyEnd);
      }
    }
    this.#writeRest(bytes, keyEnd, keys.ends[i] as number);
  }

  /** Finds the parts of a key, and returns how many bytes its word shares with the one found before. */
  #find({ bytes, ends }: WrittenKeys, i: number): number {
    const start = i === 0 ? 0 : (ends[i - 1] as number);
    const end = ends[i] as number;
    const wordLength = this.#wordEnd - this.#start;
    const shared = sharedBytes(bytes, this.#start, wordLength, start, end - start);
    const isSame = shared === wordLength && shared > 0;
    const wordEnd = isSame ? start + wordLength : endOf(bytes, start, end, textTypes);
    const keyBytes = this.#keyBytes ?? end;
    this.#keyEnd = wordEnd + keyBytes <= end ? wordEnd + keyBytes : endOf(bytes, wordEnd, end, this.#keyTypes);
    this.#start = start;
    this.#wordEnd = wordEnd;
    return Math.min(shared, wordEnd - start);
  }

  #writeRest(bytes: Uint8Array, start: number, end: number): void {
    const out = this.#out;
    const last = bytes[end - 1] as number;
    const words = last < 0x80 ? countIn(bytes, start, end - 1) : -1;
    if (words < 0) {
      writeCount(out, (end - start) * 4 + RestForm.bytes);
      out.appendRange(bytes, start, end);
    } else if (last < 2) {
      writeCount(out, words * 4 + RestForm.zero + last);
    } else {
      writeCount(out, words * 4 + RestForm.one);
      out.u8(last);
    }
  }
}

/** Room for the numbers of an entry. */
const numbersBytes = 64;
const textTypes: readonly TypeId[] = [Types.varchar];

function groupsOf(count: number): number {
  return Math.ceil(count / groupEntries);
}

/** Returns the first entry of the next group. */
function groupEnd(i: number): number {
  return i - (i % groupEntries) + groupEntries;
}

/** Returns where components end in a key; the end of the key if it is malformed, which the form does not depend on. */
function endOf(bytes: Uint8Array, start: number, end: number, types: readonly TypeId[]): number {
  let at = start;
  try {
    for (const type of types) at = skipKeyComponent(bytes, at, type);
  } catch (error) {
    if (!(error instanceof MalformedKey)) throw error;
    return end;
  }
  return Math.min(at, end);
}

function sharedBytes(bytes: Uint8Array, a: number, aLength: number, b: number, bLength: number): number {
  const most = aLength < bLength ? aLength : bLength;
  let shared = 0;
  while (shared < most && bytes[a + shared] === bytes[b + shared]) shared++;
  return shared;
}

/**
 * Returns by how much the number at the end of a primary key is greater than that of another of the same length; 0 if it is not, or by too
 * much, or if they differ before it.
 */
function stepOf(bytes: Uint8Array, before: number, start: number, length: number): number {
  const numberAt = length < steppedBytes ? 0 : length - steppedBytes;
  for (let i = 0; i < numberAt; i++) if (bytes[before + i] !== bytes[start + i]) return 0;
  let step = 0;
  for (let i = numberAt; i < length; i++) {
    step = step * 0x100 + (bytes[start + i] as number) - (bytes[before + i] as number);
  }
  return step > 0 && step <= maxStep ? step : 0;
}

/** Returns the number that is all of a range of bytes, in the form of `writeCount`; -1 if there is none. */
function countIn(bytes: Uint8Array, start: number, end: number): number {
  if (end <= start) return -1;
  if (end === start + 1) return (bytes[start] as number) < 0x80 ? (bytes[start] as number) : -1;
  let value = 0;
  let unit = 1;
  for (let at = start; at < end; at++) {
    const byte = bytes[at] as number;
    // All bytes but the last are marked, and the last is not 0, unless it is the only one.
    if (byte >= 0x80 !== at + 1 < end || (byte === 0 && at > start)) return -1;
    value += (byte & 0x7f) * unit;
    if (value >= maxWords) return -1;
    unit *= 0x80;
  }
  return value;
}
