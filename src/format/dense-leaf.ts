/**
 * A dense leaf: the entries of an index on texts, in a fraction of the bytes. A key has three parts: a word, a primary key, and the rest,
 * which mostly is the number of words of the row and one byte for how often it has this word. The header is the one of nodes (node.ts),
 * with flag 4 alone; the length of the prefix, of values and of the heap, and the version are 0. Behind it:
 *
 *   u32 for every 64th entry: where it begins, in the data | data, as long as the header says of suffixes
 *
 * Each of these entries is whole, the others are what differs from the entry before. All numbers are LEB128, as short as they can be, of up to five bytes:
 *
 *   whole   length of the word, length of the primary key, both parts, rest
 *   0       the word differs: how many bytes it shares, how many others follow, those, and the primary key as after 1
 *   1       the primary key: twice how many bytes it shares, plus 1 if it is as long; if it is not, how many others follow; those; rest
 *   2...    the same word; the last four bytes of the primary key, as a number, are greater by one less than this; rest
 *
 * The rest is a number n × 4 + f: the n bytes that follow (f = 0), or n as LEB128 and one more byte: the one that follows (f = 1), below
 * 128; 0 (f = 2); or 1 (f = 3).
 */
import { compareRanges, copyRange } from '../base/bytes.ts';
import { CorruptionError } from '../base/errors.ts';
import { blockHeaderBytes } from './block.ts';
import { nodeHeaderBytes } from './node.ts';

/** The flag of a dense leaf. */
export const flagDense = 4;
/** One entry of so many is whole. */
export const groupEntries = 64;
/** The bytes at the end of a primary key that are a number. */
export const steppedBytes = 4;
/** The forms of the rest. */
export const RestForm = { bytes: 0, one: 1, zero: 2, unit: 3 } as const;

const groupBits = 6;
const groupMask = groupEntries - 1;

/** The bytes of a dense leaf. */
export class DenseLeaf {
  readonly name: string;
  readonly bytes: Uint8Array;
  readonly count: number;
  readonly groups: number;
  readonly #view: DataView;
  readonly #dataStart: number;

  /** Throws `CorruptionError`. The entries are not looked at: {@link check} does that. */
  constructor(name: string, bytes: Uint8Array) {
    const body = blockHeaderBytes;
    this.name = name;
    this.bytes = bytes;
    if (bytes.length < body + nodeHeaderBytes) this.fail('too short');
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.count = this.#view.getUint32(body + 4, true);
    this.groups = Math.ceil(this.count / groupEntries);
    this.#dataStart = body + nodeHeaderBytes + this.groups * 4;
    const dataBytes = this.#view.getUint32(body + 8, true);
    const others = [body, body + 12, body + 16, body + 20].map((at) => this.#view.getUint32(at, true));
    if (others.some((value, i) => value !== (i === 0 ? flagDense << 8 : 0))) this.fail('unknown flags');
    if (this.#dataStart + dataBytes !== bytes.length) this.fail('its sections do not fill it');
  }

  fail(what: string): never {
    throw new CorruptionError(this.name, `The dense leaf is malformed: ${what}`);
  }

  /** Returns where the first entry of a group begins; for the number of groups, where the last one ends. */
  groupStart(group: number): number {
    if (group >= this.groups) return this.bytes.length;
    return this.#dataStart + this.#view.getUint32(blockHeaderBytes + nodeHeaderBytes + group * 4, true);
  }

  /** Goes through all entries. Throws `CorruptionError` if they are malformed, do not ascend, or do not fill the leaf. */
  check(): void {
    const entry = new DenseEntry(this);
    const before = new KeyCopy();
    for (let i = 0; i < this.count; i++) {
      const isFirst = (i & groupMask) === 0;
      if (isFirst && this.groupStart(i / groupEntries) !== (i === 0 ? this.#dataStart : entry.end)) {
        this.fail('its groups do not follow each other');
      }
      // A step makes a greater key, if it does not go over the end of its number.
      const isStep = !isFirst && (this.bytes[entry.end] ?? 0) > 1;
      if (!isStep && i > 0) before.take(entry);
      if (!entry.next(true)) this.fail(`entry ${i} ends behind it`);
      if (!isStep && i > 0 && before.compareTo(entry) >= 0) this.fail(`its keys do not ascend (at entry ${i})`);
    }
    if (this.count > 0 ? entry.end !== this.bytes.length : this.#dataStart !== this.bytes.length) {
      this.fail('its entries do not fill it');
    }
  }
}

/** A copy of a key. */
class KeyCopy {
  #bytes = new Uint8Array(256);
  #length = 0;

  take(entry: DenseEntry): void {
    this.#length = entry.length;
    if (this.#length > this.#bytes.length) this.#bytes = new Uint8Array(this.#length * 2);
    entry.copyTo(this.#bytes, 0);
  }

  compareTo(entry: DenseEntry): number {
    return -entry.compare(this.#bytes, 0, this.#length);
  }
}

/** A place in a dense leaf, before the first entry or at one, and the entry there. */
export class DenseEntry {
  readonly #leaf: DenseLeaf;
  readonly #stored: Uint8Array;
  /** The number of the entry; -1 before the first one. */
  at = -1;
  /** Where the entry ends. */
  end: number;
  /** The word, from 0 to {@link wordLength}. */
  word: Uint8Array = new Uint8Array(64);
  wordLength = 0;
  /** The primary key, from 0 to {@link keyLength}. */
  key: Uint8Array = new Uint8Array(32);
  keyLength = 0;
  /** The form of the rest, and its number. */
  restForm: number = RestForm.bytes;
  restNumber = 0;
  /** Where the bytes of the rest are in the leaf, if there are any. */
  restStart = 0;
  /** Whether the last move to the next entry was to another word. */
  #isOtherWord = true;
  readonly #rest = new Uint8Array(8);
  /** A place to look at other groups from. */
  #other: DenseEntry | undefined;

  constructor(leaf: DenseLeaf) {
    this.#leaf = leaf;
    this.#stored = leaf.bytes;
    this.end = leaf.groupStart(0);
  }

  /** Moves to an entry. */
  moveTo(i: number): void {
    const group = i >>> groupBits;
    if (this.at < 0 || i < this.at || group !== this.at >>> groupBits) {
      if (i === this.at + 1) {
        this.next();
        return;
      }
      this.#moveToGroup(group);
    }
    while (this.at < i) this.next();
  }

  #moveToGroup(group: number): void {
    this.at = group * groupEntries - 1;
    this.end = this.#leaf.groupStart(group);
    this.next();
  }

  /** Moves to the next entry. `checks`: the leaf may be malformed. Returns false, or throws `CorruptionError`, if it is. */
  next(checks = false): boolean {
    const stored = this.#stored;
    this.#isOtherWord = false;
    if ((++this.at & groupMask) === 0) {
      this.#readWhole();
    } else {
      let step = stored[this.end++] as number;
      if (step >= 0x80) step = this.#longNumber(step);
      if (step > 1) this.#step(step - 1, checks);
      else this.#readDifference(step);
    }
    let rest = stored[this.end++] as number;
    if (rest >= 0x80) rest = this.#longNumber(rest);
    this.restForm = rest & 3;
    this.restNumber = rest >>> 2;
    this.restStart = this.end;
    if (this.restForm === RestForm.bytes) this.end += this.restNumber;
    else if (this.restForm === RestForm.one) this.end++;
    if (!checks) return true;
    if (this.restForm === RestForm.one && (stored[this.restStart] ?? 0) >= 0x80) return false;
    return this.end <= stored.length;
  }

  /** Reads a number whose first byte was read. */
  #longNumber(first: number): number {
    const stored = this.#stored;
    let value = first & 0x7f;
    for (let unit = 0x80; unit < 2 ** 35; unit *= 0x80) {
      const byte = stored[this.end++] ?? 0;
      value += (byte & 0x7f) * unit;
      if (byte < 0x80 && byte > 0) return value;
      if (byte === 0) break;
    }
    return this.#leaf.fail('a number is too long');
  }

  #number(): number {
    const first = this.#stored[this.end++] ?? 0;
    return first < 0x80 ? first : this.#longNumber(first);
  }

  #step(step: number, checks: boolean): void {
    const { key } = this;
    let at = this.keyLength - 1;
    let carry = step;
    while (carry > 0) {
      if (checks && (at < 0 || at < this.keyLength - steppedBytes)) this.#leaf.fail('a primary key is too great');
      carry += key[at] as number;
      key[at--] = carry & 0xff;
      carry = Math.floor(carry / 0x100);
    }
  }

  #readWhole(): void {
    this.#isOtherWord = true;
    const wordLength = this.#number();
    const keyLength = this.#number();
    this.#takeWord(0, wordLength);
    this.#takeKey(0, keyLength);
  }

  #readDifference(kind: number): void {
    if (kind === 0) {
      this.#isOtherWord = true;
      const shared = this.#number();
      this.#takeWord(shared, this.#number());
    }
    const form = this.#number();
    const shared = Math.floor(form / 2);
    this.#takeKey(shared, form % 2 === 1 ? this.keyLength - shared : this.#number());
  }

  /** Reads the bytes of the word behind those that it shares with the one before. */
  #takeWord(shared: number, length: number): void {
    const { end } = this;
    if (shared > this.wordLength || length > this.#stored.length - end) this.#leaf.fail('a word is too long');
    if (shared + length > this.word.length) this.word = grown(this.word, shared, shared + length);
    copyRange(this.#stored, end, end + length, this.word, shared);
    this.wordLength = shared + length;
    this.end = end + length;
  }

  #takeKey(shared: number, length: number): void {
    const { end } = this;
    if (shared > this.keyLength || length < 0 || length > this.#stored.length - end) {
      this.#leaf.fail('a primary key is too long');
    }
    if (shared + length > this.key.length) this.key = grown(this.key, shared, shared + length);
    copyRange(this.#stored, end, end + length, this.key, shared);
    this.keyLength = shared + length;
    this.end = end + length;
  }

  /** The length of the key. */
  get length(): number {
    return this.wordLength + this.keyLength + this.#restLength;
  }

  get #restLength(): number {
    const { restForm, restNumber } = this;
    if (restForm === RestForm.bytes) return restNumber;
    let length = 2;
    for (let left = restNumber; left >= 0x80; left >>>= 7) length++;
    return length;
  }

  /** Copies the key to `to`, which must have room for it. */
  copyTo(to: Uint8Array, at: number): void {
    copyRange(this.word, 0, this.wordLength, to, at);
    copyRange(this.key, 0, this.keyLength, to, at + this.wordLength);
    this.#copyRest(to, at + this.wordLength + this.keyLength);
  }

  #copyRest(to: Uint8Array, at: number): void {
    const { restForm, restNumber, restStart } = this;
    if (restForm === RestForm.bytes) {
      copyRange(this.#stored, restStart, restStart + restNumber, to, at);
      return;
    }
    let end = at;
    let left = restNumber;
    for (; left >= 0x80; left >>>= 7) to[end++] = (left & 0x7f) | 0x80;
    to[end++] = left;
    to[end] = restForm === RestForm.one ? (this.#stored[restStart] as number) : restForm - RestForm.zero;
  }

  /** Compares the key with `other[start .. end)`. */
  compare(other: Uint8Array, start: number, end: number): number {
    const difference = this.#compareWord(other, start, end);
    return difference === 0 ? this.#compareKey(other, start + this.wordLength, end) : difference;
  }

  /** Compares the word with as many bytes of a key, or with all of it if it is shorter. */
  #compareWord(other: Uint8Array, start: number, end: number): number {
    const to = start + this.wordLength;
    return compareRanges(this.word, 0, this.wordLength, other, start, to < end ? to : end);
  }

  /** Compares the parts behind the word. */
  #compareKey(other: Uint8Array, start: number, end: number): number {
    const to = start + this.keyLength;
    const difference = compareRanges(this.key, 0, this.keyLength, other, start, to < end ? to : end);
    if (difference !== 0) return difference;
    const length = this.#restLength;
    if (to >= end) return length;
    if (this.restForm === RestForm.bytes) {
      return compareRanges(this.#stored, this.restStart, this.restStart + length, other, to, end);
    }
    this.#copyRest(this.#rest, 0);
    return compareRanges(this.#rest, 0, length, other, to, end);
  }

  /**
   * Moves to the first entry from `least` on whose key is not below `key[start .. end)`, and returns its number; the number of entries if
   * there is none. `isNear`: it is likely to be close to `least`.
   */
  seek(least: number, key: Uint8Array, start: number, end: number, isNear: boolean): number {
    const { count, groups } = this.#leaf;
    if (least >= count) return count;
    this.moveTo(least);
    let difference = this.#compareWord(key, start, end);
    for (let steps = isNear ? 0 : fewSteps; ; steps++) {
      const order = difference === 0 ? this.#compareKey(key, start + this.wordLength, end) : difference;
      if (order >= 0) return this.at;
      if (this.at + 1 === count) return count;
      if (steps === fewSteps && this.#skipGroups(groups, key, start, end)) {
        difference = this.#compareWord(key, start, end);
        continue;
      }
      this.next();
      if (this.#isOtherWord) difference = this.#compareWord(key, start, end);
    }
  }

  /** Whether the first entry of a group is below a key. */
  #beginsBelow(group: number, key: Uint8Array, start: number, end: number): boolean {
    this.end = this.#leaf.groupStart(group);
    const wordLength = this.#number();
    const keyEnd = this.#number() + this.end + wordLength;
    const whole = start + keyEnd - this.end;
    const order = compareRanges(this.#stored, this.end, keyEnd, key, start, whole < end ? whole : end);
    if (order !== 0 || whole >= end) return order < 0;
    this.#moveToGroup(group);
    return this.compare(key, start, end) < 0;
  }

  /** Moves to the last of the groups after the present one whose first entry is below a key. Returns false if there is none. */
  #skipGroups(groups: number, key: Uint8Array, start: number, end: number): boolean {
    const present = this.at >>> groupBits;
    if (present + 1 >= groups) return false;
    const other = (this.#other ??= new DenseEntry(this.#leaf));
    const isBelow = (group: number): boolean => other.#beginsBelow(group, key, start, end);
    let low = present;
    let high = groups;
    for (let step = 1; low + step < high; step *= 2) {
      if (isBelow(low + step)) low += step;
      else high = low + step;
    }
    while (low + 1 < high) {
      const middle = (low + high) >>> 1;
      if (isBelow(middle)) low = middle;
      else high = middle;
    }
    if (low === present) return false;
    this.#moveToGroup(low);
    return true;
  }
}

/** Entries that are passed one by one before groups are. */
const fewSteps = 12;

function grown(bytes: Uint8Array, kept: number, length: number): Uint8Array {
  const longer = new Uint8Array(length * 2);
  copyRange(bytes, 0, kept, longer, 0);
  return longer;
}
