/**
 * A B+Tree node: sorted keys, and for each key a row (table leaf), nothing (index leaf) or a child (inner node).
 * The body, all numbers little-endian, every section padded to 4 bytes:
 *
 *   0 u8 level (0: leaf)   1 u8 flags   2 u16 length of the prefix that all keys share   4 u32 entries
 *   8 u32 bytes of suffixes   12 u32 bytes of a value   16 u32 bytes of heap   20 u32 schema version (leaf of a table)
 *  24 prefix | offsets of the suffixes (only where their lengths differ) | suffixes | values | heap
 *
 * Flag 1: suffixes differ in length, so n + 1 offsets stand before them; flag 2: those are u32 and not u16.
 * A node is read in place: searching compares bytes, and nothing is decoded until a row is returned.
 */
import { compareRanges, copyRange, readLatin1 } from '../base/bytes.ts';
import { CorruptionError } from '../base/errors.ts';
import {
  BlockKind,
  blockHeaderBytes,
  openBlock,
  sealedKind,
  childRefBytes,
  readChildCount,
  readChildRef,
} from './block.ts';
import type { BlockRef } from './block.ts';
import type { RowSource } from './row-layout.ts';
import { maxKeyFields } from './stored-schema.ts';
import { maxKeyBytes } from './values.ts';

export const nodeHeaderBytes = 24;
export const flagVariable = 1;
export const flagWide = 2;

/** Longest key of a row, in bytes: every byte of its texts may be escaped, and each field takes at most 17 further bytes. */
const maxPrimaryKeyBytes = 2 * maxKeyBytes + 17 * maxKeyFields;

/** Rounds up to a multiple of 4. Exact for any length in a header: the bit operation only computes the padding. */
export function padTo4(length: number): number {
  return length + (-length & 3);
}

/** Rows read from a node before its text is kept as one string. */
const textAfterReads = 24;

/** A place in a dense leaf, and the entry there. */
export interface EntryPlace {
  /** The length of the key. */
  readonly length: number;
  /** Where the entry ends in the leaf. */
  readonly end: number;
  moveTo(i: number): void;
  /** Copies the key to `to`, which must have room for it. */
  copyTo(to: Uint8Array, at: number): void;
}

/** A node of a tree, with checked bytes. It is immutable except for cached values that make it faster. */
export class Node implements RowSource {
  // The fields that a lookup needs come first, so that they are adjacent in memory.
  readonly level: number;
  readonly count: number;
  readonly prefixLength: number;
  /** The head of the prefix, which mostly is all of it, so that searches need not read the block. */
  readonly #prefixHead: number;
  /** Length of each suffix, or -1 if lengths differ. */
  readonly #suffixLength: number;
  #heads: Uint32Array | undefined = undefined;
  /** The first and the last head without their last two bits, so that the runtime stores them as small integers. */
  #firstGuide = 0;
  #lastGuide = 0;
  readonly rowsStart: number;
  readonly stride: number;
  readonly rowsView: DataView;
  text: string | undefined = undefined;
  #reads = 0;
  readonly rows: Uint8Array;
  readonly heapStart: number;
  readonly heapEnd: number;
  readonly name: string;
  readonly kind: BlockKind;
  readonly schemaVersion: number;
  readonly prefixStart: number;
  readonly #wide: boolean;
  readonly #offsetsStart: number;
  readonly #suffixStart: number;
  readonly #suffixBytes: number;
  #grownBytes = 0;

  /** The place of the last access to a dense leaf; undefined in other nodes. */
  get dense(): EntryPlace | undefined {
    return undefined;
  }

  constructor(name: string, kind: BlockKind, bytes: Uint8Array) {
    const fail = (what: string): never => {
      throw new CorruptionError(name, `The node is malformed: ${what}`);
    };
    const body = blockHeaderBytes;
    if (bytes.length < body + nodeHeaderBytes) fail('too short');
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.name = name;
    this.kind = kind;
    this.rows = bytes;
    this.rowsView = view;
    this.level = view.getUint8(body);
    const flags = view.getUint8(body + 1);
    this.prefixLength = view.getUint16(body + 2, true);
    this.count = view.getUint32(body + 4, true);
    this.#suffixBytes = view.getUint32(body + 8, true);
    this.stride = view.getUint32(body + 12, true);
    const heapBytes = view.getUint32(body + 16, true);
    this.schemaVersion = view.getUint32(body + 20, true);
    const variable = (flags & flagVariable) !== 0;
    this.#wide = (flags & flagWide) !== 0;
    if (flags > (flagVariable | flagWide)) fail('unknown flags');
    if (this.level > 0 !== (kind === BlockKind.inner)) fail('its level does not fit its kind');
    if (kind === BlockKind.inner ? this.stride !== childRefBytes : kind === BlockKind.index && this.stride !== 0) {
      fail('wrong length of values');
    }
    if (kind === BlockKind.table && this.stride === 0) fail('rows without bytes');
    if (kind === BlockKind.inner && this.count === 0) fail('an inner node without children');
    // Keys differ, so at most one is only the prefix. This bounds the number of entries by the length of the block.
    if (this.count > 1 && this.#suffixBytes === 0) fail('its keys are equal');
    // Without this limit a few bytes per row could produce keys longer than the whole block.
    if (kind === BlockKind.table && this.prefixLength > maxPrimaryKeyBytes)
      fail('its keys are longer than any primary key');
    this.prefixStart = body + nodeHeaderBytes;
    this.#prefixHead = headOf(bytes, this.prefixStart, this.prefixStart + this.prefixLength);
    this.#offsetsStart = this.prefixStart + padTo4(this.prefixLength);
    const offsetBytes = variable ? padTo4((this.count + 1) * (this.#wide ? 4 : 2)) : 0;
    this.#suffixStart = this.#offsetsStart + offsetBytes;
    this.rowsStart = this.#suffixStart + padTo4(this.#suffixBytes);
    this.heapStart = this.rowsStart + padTo4(this.count * this.stride);
    this.heapEnd = this.heapStart + heapBytes;
    // The sections exactly fill the block; the sums are exact up to 2^53.
    if (this.heapEnd !== bytes.length) fail('its sections do not fill it');
    if (variable) {
      this.#suffixLength = -1;
      this.#checkOffsets(fail);
    } else {
      this.#suffixLength = this.count === 0 ? 0 : this.#suffixBytes / this.count;
      if (!Number.isInteger(this.#suffixLength)) fail('its suffixes are not equally long');
    }
  }

  #checkOffsets(fail: (what: string) => never): void {
    let previous = 0;
    for (let i = 0; i <= this.count; i++) {
      const offset = this.#offset(i);
      if (offset < previous || (i === 0 && offset !== 0)) fail('its key offsets do not ascend');
      previous = offset;
    }
    if (previous !== this.#suffixBytes) fail('its key offsets do not end where its keys do');
  }

  #offset(i: number): number {
    return this.#wide
      ? this.rowsView.getUint32(this.#offsetsStart + i * 4, true)
      : this.rowsView.getUint16(this.#offsetsStart + i * 2, true);
  }

  get heap(): Uint8Array {
    return this.rows;
  }

  get sizeBytes(): number {
    return this.rows.length;
  }

  /** Returns the offset in {@link rows} at which the row or child of entry `i` begins. */
  rowBase(i: number): number {
    return this.rowsStart + i * this.stride;
  }

  /** Returns the position of the entry whose row begins at `base`. */
  numberOf(base: number): number {
    return (base - this.rowsStart) / this.stride;
  }

  /** Returns the offset of entry `i`'s suffix in {@link rows}. The key is the prefix followed by the suffix. */
  suffixStart(i: number): number {
    return this.#suffixStart + (this.#suffixLength < 0 ? this.#offset(i) : i * this.#suffixLength);
  }

  suffixEnd(i: number): number {
    return this.#suffixStart + (this.#suffixLength < 0 ? this.#offset(i + 1) : (i + 1) * this.#suffixLength);
  }

  keyLength(i: number): number {
    return this.prefixLength + this.suffixEnd(i) - this.suffixStart(i);
  }

  /** Returns a copy of the key of entry `i`. */
  key(i: number): Uint8Array {
    const key = new Uint8Array(this.keyLength(i));
    this.copyKey(i, key, 0);
    return key;
  }

  /** Copies the key of entry `i` to `to`, which must have room for it. */
  copyKey(i: number, to: Uint8Array, at: number): void {
    copyRange(this.rows, this.prefixStart, this.prefixStart + this.prefixLength, to, at);
    copyRange(this.rows, this.suffixStart(i), this.suffixEnd(i), to, at + this.prefixLength);
  }

  /** Whether the keys of entries `i` and `j`, begin with the same `length` bytes. */
  beginsAlike(i: number, j: number, length: number): boolean {
    const { rows } = this;
    const start = this.suffixStart(i);
    const shift = this.suffixStart(j) - start;
    const end = start + length - this.prefixLength;
    if (end > this.suffixEnd(i)) return false;
    // From the end, since sorted neighbours differ there first.
    for (let at = end - 1; at >= start; at--) if (rows[at] !== rows[at + shift]) return false;
    return true;
  }

  /** Compares the key of entry `i` with the first `length` bytes of `key`. */
  compareKey(i: number, key: Uint8Array, length: number): number {
    const difference = this.#comparePrefix(key, length);
    if (difference !== 0) return difference;
    if (length < this.prefixLength) return 1;
    return this.#compareSuffix(i, key, length);
  }

  /** Compares the prefix with the same number of bytes of `key`, or with all of `key` if that is shorter. */
  #comparePrefix(key: Uint8Array, length: number): number {
    const shared = this.prefixLength < length ? this.prefixLength : length;
    for (let j = 0; j < shared; j++) {
      const difference = (this.rows[this.prefixStart + j] as number) - (key[j] as number);
      if (difference !== 0) return difference;
    }
    return 0;
  }

  /** Compares the bytes after the prefix, which must be equal. */
  #compareSuffix(i: number, key: Uint8Array, length: number): number {
    const { rows } = this;
    const end = this.suffixEnd(i);
    let at = this.suffixStart(i);
    let k = this.prefixLength;
    while (at < end && k < length) {
      const difference = (rows[at++] as number) - (key[k++] as number);
      if (difference !== 0) return difference;
    }
    return end - at - (length - k);
  }

  /**
   * Computes the heads: the first four bytes of every suffix as a number, which suffice for most comparisons of a search. Also
   * checks that the keys ascend, since a search in unsorted keys would give a wrong result.
   */
  #loadHeads(): Uint32Array {
    const heads = new Uint32Array(this.count);
    const { rows } = this;
    let previous = -1;
    let previousStart = 0;
    let start = this.count === 0 ? 0 : this.suffixStart(0);
    for (let i = 0; i < heads.length; i++) {
      const end = this.suffixEnd(i);
      const head = headOf(rows, start, end);
      const ascends =
        head > previous || (head === previous && compareRanges(rows, previousStart, start, rows, start, end) < 0);
      if (!ascends) throw new CorruptionError(this.name, `The keys of the node do not ascend (at entry ${i})`);
      heads[i] = head;
      previous = head;
      previousStart = start;
      start = end;
    }
    this.#heads = heads;
    if (heads.length > 0) {
      this.#firstGuide = (heads[0] as number) >>> 2;
      this.#lastGuide = (heads[heads.length - 1] as number) >>> 2;
    }
    this.grow(heads.byteLength);
    return heads;
  }

  /**
   * Returns the index of the entry whose key is the first `length` bytes of `key`, or `~i` where `i` is the first entry with a
   * greater key.
   */
  #search(key: Uint8Array, length: number): number {
    const { prefixLength } = this;
    if (length <= prefixLength || prefixLength > headBytes) {
      const difference = this.#comparePrefix(key, length);
      if (difference !== 0) return difference > 0 ? ~0 : ~this.count;
      // The key is no longer than the prefix, so only the first entry can match, with an empty suffix.
      if (length <= prefixLength) return this.count > 0 && this.keyLength(0) === length ? 0 : ~0;
    } else {
      const prefix = headOf(key, 0, prefixLength);
      if (prefix !== this.#prefixHead) return prefix < this.#prefixHead ? ~0 : ~this.count;
    }
    const heads = this.#heads ?? this.#loadHeads();
    const head = headOf(key, prefixLength, length);
    const first = firstNotBelow(heads, head, this.#guess(head));
    if (first >= heads.length || heads[first] !== head) return ~first;
    // If the heads hold both suffixes entirely, they are equal.
    const suffixLength = this.#suffixLength;
    if (suffixLength === length - prefixLength && suffixLength <= headBytes) return first;
    const order = this.#compareSuffix(first, key, length);
    if (order >= 0) return order === 0 ? first : ~first;
    return this.#searchAlike(first + 1, head, key, length);
  }

  /** Returns the likely index of a head if heads are spread evenly. */
  #guess(head: number): number {
    const last = this.count - 1;
    const span = this.#lastGuide - this.#firstGuide;
    const guess = span === 0 ? 0 : Math.floor((((head >>> 2) - this.#firstGuide) / span) * last);
    return guess < 0 ? 0 : guess > last ? last : guess;
  }

  /** Searches entries whose suffixes may have the same head; the entries before `from` are below the key. */
  #searchAlike(from: number, head: number, key: Uint8Array, length: number): number {
    const heads = this.#heads as Uint32Array;
    let low = from;
    let high = head === maxHead ? heads.length : firstNotBelow(heads, head + 1, from - 1);
    while (low < high) {
      const middle = (low + high) >>> 1;
      const order = this.#compareSuffix(middle, key, length);
      if (order === 0) return middle;
      if (order < 0) low = middle + 1;
      else high = middle;
    }
    return ~low;
  }

  /**
   * Returns the index of the first entry whose key is not below the first `length` bytes of `key`; `count` if there is none.
   */
  lowerBound(key: Uint8Array, length: number = key.length): number {
    const found = this.#search(key, length);
    return found < 0 ? ~found : found;
  }

  /**
   * Returns the {@link lowerBound} of the key at `key[start .. end)`, which must be at least `least`. It is fast if the result
   * is close to `least`, as for each of many sorted keys.
   */
  boundFrom(least: number, key: Uint8Array, start: number, end: number): number {
    const { rows, prefixStart, prefixLength } = this;
    const suffix = start + prefixLength;
    const order = compareRanges(rows, prefixStart, prefixStart + prefixLength, key, start, Math.min(end, suffix));
    if (order !== 0) return order > 0 ? least : this.count;
    const heads = this.#heads ?? this.#loadHeads();
    // Equals headOf(); inlined, it is 5 % faster.
    let head = 0;
    for (let at = suffix; at < suffix + 4; at++) head = (head << 8) | (at < end ? (key[at] as number) : 0);
    head >>>= 0;
    let low = least;
    let high = heads.length;
    for (let step = 1; low + step <= high; step *= 2) {
      const next = low + step - 1;
      const other = heads[next] as number;
      if (other > head || (other === head && this.#compareSuffixRange(next, key, suffix, end) >= 0)) high = next;
      else low = next + 1;
    }
    while (low < high) {
      const middle = (low + high) >>> 1;
      const other = heads[middle] as number;
      if (other < head || (other === head && this.#compareSuffixRange(middle, key, suffix, end) < 0)) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  #compareSuffixRange(i: number, key: Uint8Array, start: number, end: number): number {
    return compareRanges(this.rows, this.suffixStart(i), this.suffixEnd(i), key, start, end);
  }

  /** Whether the key of entry `i` equals `key[start .. end)`. */
  hasKey(i: number, key: Uint8Array, start: number, end: number): boolean {
    const { prefixLength, prefixStart, rows } = this;
    if (this.keyLength(i) !== end - start) return false;
    const suffix = start + prefixLength;
    if (this.#compareSuffixRange(i, key, suffix, end) !== 0) return false;
    return compareRanges(rows, prefixStart, prefixStart + prefixLength, key, start, suffix) === 0;
  }

  /** Returns the index of the entry with exactly this key, or -1. */
  find(key: Uint8Array, length: number = key.length): number {
    const found = this.#search(key, length);
    return found < 0 ? -1 : found;
  }

  /**
   * Returns the index of the child that a key belongs to: the last child whose separator is not above the key, or else the
   * first.
   */
  childFor(key: Uint8Array, length: number = key.length): number {
    const found = this.#search(key, length);
    if (found >= 0) return found;
    return found === ~0 ? 0 : ~found - 1;
  }

  child(i: number): BlockRef {
    return readChildRef(this.rows, this.rowsView, this.rowBase(i));
  }

  childCount(i: number): number {
    return readChildCount(this.rowsView, this.rowBase(i));
  }

  /** Returns the number of rows in this node and below it. */
  totalCount(): number {
    if (this.level === 0) return this.count;
    let total = 0;
    for (let i = 0; i < this.count; i++) total += this.childCount(i);
    return total;
  }

  /** Announces that `rows` rows are about to be decoded. After enough of them the text of the node is kept as one string. */
  expectReads(rows: number): void {
    this.#reads += rows;
    if (this.text !== undefined || this.#reads < textAfterReads) return;
    this.text = readLatin1(this.rows, this.rowsStart, this.heapEnd);
    this.grow(this.text.length);
  }

  /** Bytes of the block and of its cached values. */
  get memoryBytes(): number {
    return this.rows.length + this.#grownBytes;
  }

  /** Adds bytes of a value that is kept with the node to its size. */
  grow(bytes: number): void {
    this.#grownBytes += bytes;
  }
}

/** Checks a stored block and returns the kind of its node. Throws `CorruptionError` for a block that is no node. */
export function nodeKind(name: string, bytes: Uint8Array): BlockKind {
  const kind = openBlock(name, bytes);
  if (kind === BlockKind.commit || kind === BlockKind.catalogue) {
    const what = kind === BlockKind.commit ? 'A commit' : 'A catalogue';
    throw new CorruptionError(name, `${what} is in the place of a tree node`);
  }
  return kind;
}

/** Checks a stored block and opens it as a node. */
export function openNode(name: string, bytes: Uint8Array): Node {
  return new Node(name, nodeKind(name, bytes), bytes);
}

/** Opens a block that this process has just sealed, without verifying its checksum. */
export function openSealed(name: string, bytes: Uint8Array): Node {
  return new Node(name, sealedKind(bytes), bytes);
}

/** Bytes of a key in its head. */
/**
 * Bytes of a key in its head. Heads are the beginnings of keys as numbers, and most of a search needs only them. If they are
 * spread evenly, as numbers and dates mostly are, interpolation between the first and the last head is exact or nearly so. That
 * touches one place in memory, where a binary search touches ten.
 */
const headBytes = 4;
/** The greatest head. */
const maxHead = 0xffff_ffff;

/** Returns up to four bytes as a number that sorts like them. Missing bytes after `end` count as zeros. */
export function headOf(bytes: Uint8Array, start: number, end: number): number {
  let head = 0;
  for (let at = start; at < start + headBytes; at++) head = (head << 8) | (at < end ? (bytes[at] as number) : 0);
  return head >>> 0;
}

/**
 * Returns the index of the first of ascending heads that is not below `wanted`; their number if there is none. The search
 * begins at `guess` and widens in growing steps.
 */
export function firstNotBelow(heads: Uint32Array, wanted: number, guess: number): number {
  // The result is between `low` and `high`, inclusive.
  let low = 0;
  let high = heads.length;
  if (high === 0) return 0;
  let step = 1;
  if ((heads[guess] as number) < wanted) {
    low = guess + 1;
    for (let at = low; at < high; at += step, step *= 4) {
      if ((heads[at] as number) >= wanted) high = at;
      else low = at + 1;
    }
  } else {
    high = guess;
    for (let at = high - 1; at >= low; at -= step, step *= 4) {
      if ((heads[at] as number) < wanted) low = at + 1;
      else high = at;
    }
  }
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((heads[middle] as number) < wanted) low = middle + 1;
    else high = middle;
  }
  return low;
}
