/**
 * A list of keys in the order in which they were added, and a sort that returns their order by bytes. The sort is stable, works
 * in slices short enough for an event loop, and takes time proportional to the bytes of the keys. The first bytes after the
 * prefix that all keys share (their heads) are numbers, and are radix-sorted without comparisons. Keys with the same head
 * mostly were in order before; if not, their next bytes are sorted in the same way.
 */
import { ByteWriter, compareRanges, copyRange } from '../base/bytes.ts';
import type { Pacer } from '../base/pacer.ts';

export class KeyList {
  readonly #writer = new ByteWriter();
  #ends = new Uint32Array(16);
  count = 0;

  /** Makes a list of keys of another thread. `ends`: where the keys end in `bytes`. */
  static of(bytes: Uint8Array, ends: Uint32Array<ArrayBuffer>, count: number): KeyList {
    const list = new KeyList();
    list.#writer.bytes = bytes;
    list.#writer.length = count === 0 ? 0 : (ends[count - 1] as number);
    list.#ends = ends;
    list.count = count;
    return list;
  }

  /** Where the keys end in {@link bytes}; replaced as the list grows. */
  get ends(): Uint32Array<ArrayBuffer> {
    return this.#ends;
  }

  /** The bytes of all keys; replaced as the list grows. */
  get bytes(): Uint8Array {
    return this.#writer.bytes;
  }

  /** Bytes in all keys. */
  get sizeBytes(): number {
    return this.#writer.length;
  }

  /** The writer for the parts of a key; {@link end} completes the key. */
  get writer(): ByteWriter {
    return this.#writer;
  }

  /** Completes the key whose bytes were appended to {@link writer}, and returns its position. */
  end(): number {
    if (this.count === this.#ends.length) {
      const grown = new Uint32Array(this.count * 2);
      grown.set(this.#ends);
      this.#ends = grown;
    }
    this.#ends[this.count] = this.#writer.length;
    return this.count++;
  }

  /** Drops bytes appended since the last {@link end}, or the last keys down to `count`. */
  rewind(count: number = this.count): void {
    this.count = count;
    this.#writer.length = count === 0 ? 0 : (this.#ends[count - 1] as number);
  }

  start(i: number): number {
    return i === 0 ? 0 : (this.#ends[i - 1] as number);
  }

  endOf(i: number): number {
    return this.#ends[i] as number;
  }

  key(i: number): Uint8Array {
    return this.bytes.slice(this.start(i), this.endOf(i));
  }

  compare(i: number, j: number): number {
    const { bytes } = this;
    return compareRanges(bytes, this.start(i), this.endOf(i), bytes, this.start(j), this.endOf(j));
  }

  /** Whether two keys are the same. */
  isSame(i: number, j: number): boolean {
    const { bytes } = this;
    const start = this.start(i);
    let at = this.endOf(i);
    let other = this.endOf(j);
    if (at - start !== other - this.start(j)) return false;
    // From the end, since sorted neighbours differ there first.
    while (at > start) if (bytes[--at] !== bytes[--other]) return false;
    return true;
  }

  /** In a sorted list, returns the first position at or after `from` whose key is not below `key`; `count` if there is none. */
  lowerBound(key: Uint8Array, from = 0): number {
    const { bytes } = this;
    let low = from;
    let high = this.count;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (compareRanges(bytes, this.start(middle), this.endOf(middle), key, 0, key.length) < 0) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  async #isSorted(pacer: Pacer): Promise<boolean> {
    for (let i = 1; i < this.count; i++) {
      if (this.compare(i - 1, i) > 0) return false;
      if ((i & 0xfff) === 0 && pacer.due()) await pacer.pause();
    }
    return true;
  }

  /**
   * Returns the positions of the keys in ascending order of the keys; equal keys stay in the order in which they were added.
   */
  async sorted(pacer: Pacer): Promise<Uint32Array> {
    const order = new Uint32Array(this.count);
    for (let i = 0; i < order.length; i++) order[i] = i;
    if (!(await this.#isSorted(pacer))) await sortPositions(order, this, pacer);
    return order;
  }

  /** Returns a list of the same keys in another order. Its bytes are in that order too, so reading it sequentially is fast. */
  async inOrder(order: Uint32Array, pacer: Pacer): Promise<KeyList> {
    const list = new KeyList();
    list.#writer.ensure(this.sizeBytes);
    list.#ends = new Uint32Array(Math.max(1, this.count));
    for (let from = 0; from < order.length; from += copiedKeys) {
      this.#copyTo(list, order.subarray(from, from + copiedKeys));
      if (pacer.due()) await pacer.pause();
    }
    return list;
  }

  /** Adds keys to a list that has room for them. */
  #copyTo(list: KeyList, positions: Uint32Array): void {
    const { bytes } = this;
    const ends = this.#ends;
    const to = list.bytes;
    const newEnds = list.#ends;
    let at = list.#writer.length;
    let { count } = list;
    for (let i = 0; i < positions.length; i++) {
      const position = positions[i] as number;
      const end = ends[position] as number;
      let from = position === 0 ? 0 : (ends[position - 1] as number);
      if (end - from > longKeyBytes) {
        copyRange(bytes, from, end, to, at);
        at += end - from;
      } else while (from < end) to[at++] = bytes[from++] as number;
      newEnds[count++] = at;
    }
    list.#writer.length = at;
    list.count = count;
  }
}

/** Keys that are copied between two checks of the clock. */
const copiedKeys = 0x1000;
/** Longer keys are copied by the runtime. */
const longKeyBytes = 48;

/** Keys in one buffer. */
export interface Keys {
  readonly bytes: Uint8Array;
  start(i: number): number;
  endOf(i: number): number;
  compare(i: number, j: number): number;
}

/** Bytes of a key in its head: four in the high part, two in the low part. */
const headBytes = 6;
/** The digits of a head, least significant first; each is some bits of one part. */
const digits = [
  { part: 'low', shift: 0, bits: 8 },
  { part: 'low', shift: 8, bits: 8 },
  { part: 'high', shift: 0, bits: 11 },
  { part: 'high', shift: 11, bits: 11 },
  { part: 'high', shift: 22, bits: 10 },
] as const;
/** Up to this number, keys are sorted by comparison: computing their heads would not pay. */
const fewKeys = 128;
/** Keys processed between two checks of the clock. */
const sliceKeys = 0x4000;

/** A range of positions; `to` is exclusive. */
type Range = readonly [from: number, to: number];

/** Positions of keys, with the head of each key. */
interface Headed {
  readonly order: Uint32Array;
  readonly high: Uint32Array;
  readonly low: Uint32Array;
}

/** Moves the positions and heads in a range to the places given by their digits. */
function scatter(
  source: Headed,
  target: Headed,
  next: Uint32Array,
  { part, shift }: (typeof digits)[number],
  from: number,
  to: number,
): void {
  const { order, high, low } = source;
  const values = part === 'low' ? low : high;
  const mask = next.length - 1;
  for (let i = from; i < to; i++) {
    const digit = ((values[i] as number) >>> shift) & mask;
    const at = next[digit] as number;
    next[digit] = at + 1;
    target.order[at] = order[i] as number;
    target.high[at] = high[i] as number;
    target.low[at] = low[i] as number;
  }
}

class KeySort {
  readonly #keys: Keys;
  readonly #pacer: Pacer;

  constructor(keys: Keys, pacer: Pacer) {
    this.#keys = keys;
    this.#pacer = pacer;
  }

  /** Runs work on all positions, slice by slice. */
  async #inSlices(count: number, work: (from: number, to: number) => void): Promise<void> {
    for (let from = 0; from < count; from += sliceKeys) {
      work(from, Math.min(count, from + sliceKeys));
      if (this.#pacer.due()) await this.#pacer.pause();
    }
  }

  /**
   * Sorts positions of keys in place. The first `known` bytes of all keys must be the same. Missing bytes after the end of a
   * key count as zeros, as in all heads.
   */
  async place(order: Uint32Array, known: number): Promise<void> {
    if (order.length <= fewKeys) {
      this.#compareAll(order);
      return;
    }
    // The memory of these heads is free again before the next heads are made.
    const { groups, next, longest } = await this.#placeByHeads(order, known);
    for (const [start, end] of groups) {
      const group = order.subarray(start, end);
      // After the ends of all keys, only their lengths can differ.
      if (next < longest) await this.place(group, next);
      else this.#compareAll(group);
    }
  }

  /** Sorts positions by heads. Returns the groups of keys with equal heads that are not in order. */
  async #placeByHeads(
    order: Uint32Array,
    known: number,
  ): Promise<{ groups: readonly Range[]; next: number; longest: number }> {
    const skip = Math.max(known, await this.#sharedBytes(order, known));
    let sorted = this.#headed(order.length);
    sorted.order.set(order);
    const counts = digits.map(({ bits }) => new Uint32Array(2 ** bits));
    let longest = 0;
    await this.#inSlices(order.length, (from, to) => {
      longest = Math.max(longest, this.#makeHeads(sorted, counts, skip, from, to));
    });
    let spare = this.#headed(order.length);
    for (const [i, digit] of digits.entries()) {
      const places = counts[i] as Uint32Array;
      // If all keys have the same digit, nothing moves.
      if (places.includes(order.length)) continue;
      let sum = 0;
      for (let value = 0; value < places.length; value++) {
        const count = places[value] as number;
        places[value] = sum;
        sum += count;
      }
      await this.#inSlices(order.length, (from, to) => scatter(sorted, spare, places, digit, from, to));
      [sorted, spare] = [spare, sorted];
    }
    order.set(sorted.order);
    const next = skip + headBytes;
    return { groups: await this.#groupsOutOfOrder(sorted, next), next, longest };
  }

  /** Returns the number of bytes that all keys share. The first `known` bytes are not compared. */
  async #sharedBytes(order: Uint32Array, known: number): Promise<number> {
    const keys = this.#keys;
    const { bytes } = keys;
    const first = keys.start(order[0] as number);
    let shared = keys.endOf(order[0] as number) - first;
    await this.#inSlices(order.length, (from, to) => {
      for (let i = from; i < to; i++) {
        const start = keys.start(order[i] as number);
        const limit = Math.min(shared, keys.endOf(order[i] as number) - start);
        let same = Math.min(known, limit);
        while (same < limit && bytes[first + same] === bytes[start + same]) same++;
        shared = same;
      }
    });
    return shared;
  }

  #headed(count: number): Headed {
    return { order: new Uint32Array(count), high: new Uint32Array(count), low: new Uint32Array(count) };
  }

  /** Makes heads and counts their digits. Returns the length of the longest key. */
  #makeHeads(
    { order, high, low }: Headed,
    counts: readonly Uint32Array[],
    skip: number,
    from: number,
    to: number,
  ): number {
    const keys = this.#keys;
    const { bytes } = keys;
    const [low0, low1, high0, high1, high2] = counts as [
      Uint32Array,
      Uint32Array,
      Uint32Array,
      Uint32Array,
      Uint32Array,
    ];
    let longest = 0;
    for (let i = from; i < to; i++) {
      const position = order[i] as number;
      const start = keys.start(position);
      const end = keys.endOf(position);
      if (end - start > longest) longest = end - start;
      let at = start + skip;
      let head = 0;
      for (const last = at + 4; at < last; at++) head = (head << 8) | (at < end ? (bytes[at] as number) : 0);
      const tail = ((at < end ? (bytes[at] as number) : 0) << 8) | (at + 1 < end ? (bytes[at + 1] as number) : 0);
      high[i] = head;
      low[i] = tail;
      (low0[tail & 0xff] as number)++;
      (low1[tail >>> 8] as number)++;
      (high0[head & 0x7ff] as number)++;
      (high1[(head >>> 11) & 0x7ff] as number)++;
      (high2[head >>> 22] as number)++;
    }
    return longest;
  }

  /** Returns the groups of keys with equal heads that are not in order. `next` is the end of the heads. */
  async #groupsOutOfOrder({ order, high, low }: Headed, next: number): Promise<readonly Range[]> {
    const groups: Range[] = [];
    let start = 0;
    let inOrder = true;
    for (let i = 1; i <= order.length; i++) {
      if (i < order.length && high[i] === high[i - 1] && low[i] === low[i - 1]) {
        inOrder &&= this.#compareFrom(order[i - 1] as number, order[i] as number, next) <= 0;
      } else {
        if (!inOrder) groups.push([start, i]);
        start = i;
        inOrder = true;
      }
      if ((i & 0xfff) === 0 && this.#pacer.due()) await this.#pacer.pause();
    }
    return groups;
  }

  /** Compares keys whose first `skip` bytes are the same. Missing bytes count as zeros. */
  #compareFrom(i: number, j: number, skip: number): number {
    const keys = this.#keys;
    const a = keys.start(i) + skip;
    const b = keys.start(j) + skip;
    const aEnd = keys.endOf(i);
    const bEnd = keys.endOf(j);
    if (a > aEnd || b > bEnd) return keys.compare(i, j);
    return compareRanges(keys.bytes, a, aEnd, keys.bytes, b, bEnd);
  }

  #compareAll(order: Uint32Array): void {
    order.sort((a, b) => this.#keys.compare(a, b) || a - b);
  }
}

/** Sorts ascending positions by the keys at them. The sort is stable. */
function sortPositions(order: Uint32Array, keys: Keys, pacer: Pacer): Promise<void> {
  return new KeySort(keys, pacer).place(order, 0);
}
