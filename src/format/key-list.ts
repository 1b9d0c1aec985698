/**
 * Keys in the order in which they came, and their sorted order. Sorting is stable, works in slices short enough for an
 * event loop, and mostly compares numbers: the first bytes after what all keys share, as a float.
 */
import { ByteWriter, compareRanges } from '../base/bytes.ts';
import type { Pacer } from '../base/pacer.ts';

/** Keys sorted at once: a few milliseconds' work. Positions within take 13 bits, beside 40 bits of a key. */
const chunkKeys = 0x2000;
/** Bytes of a key in its head: 48 bits, which a float holds exactly. */
const headBytes = 6;

/** Positions of keys, and beside each the head of the key: sorted up to some length. */
interface Runs {
  readonly order: Uint32Array;
  readonly heads: Float64Array;
}

function runsOf(count: number): Runs {
  return { order: new Uint32Array(count), heads: new Float64Array(count) };
}

export class KeyList {
  readonly #writer = new ByteWriter();
  #ends = new Uint32Array(16);
  count = 0;

  /** The bytes of all keys; replaced as the list grows. */
  get bytes(): Uint8Array {
    return this.#writer.bytes;
  }

  /** Bytes in all keys. */
  get sizeBytes(): number {
    return this.#writer.length;
  }

  /** For appending the parts of a key, which {@link end} then finishes. */
  get writer(): ByteWriter {
    return this.#writer;
  }

  /** Finishes the key whose bytes were appended to {@link writer}; returns its position. */
  end(): number {
    if (this.count === this.#ends.length) {
      const grown = new Uint32Array(this.count * 2);
      grown.set(this.#ends);
      this.#ends = grown;
    }
    this.#ends[this.count] = this.#writer.length;
    return this.count++;
  }

  /** Takes back bytes appended since the last {@link end}, or the last keys down to `count`. */
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

  async #isSorted(pacer: Pacer): Promise<boolean> {
    for (let i = 1; i < this.count; i++) {
      if (this.compare(i - 1, i) > 0) return false;
      if ((i & 0xfff) === 0 && pacer.due()) await pacer.pause();
    }
    return true;
  }

  /** Positions of the keys in ascending order of the keys; equal keys in the order in which they came. */
  async sorted(pacer: Pacer): Promise<Uint32Array> {
    const { count } = this;
    if (await this.#isSorted(pacer)) return new Uint32Array(count).map((_, i) => i);
    const prefix = await this.#sharedPrefix(pacer);
    let sorted = runsOf(count);
    for (let from = 0; from < count; from += chunkKeys) {
      this.#sortChunk(sorted, prefix, from, Math.min(count, from + chunkKeys));
      if (pacer.due()) await pacer.pause();
    }
    let spare = count > chunkKeys ? runsOf(count) : sorted;
    for (let run = chunkKeys; run < count; run *= 2) {
      for (let from = 0; from < count; from += run * 2) {
        await this.#mergeRuns(sorted, spare, from, Math.min(count, from + run), Math.min(count, from + run * 2), pacer);
      }
      [sorted, spare] = [spare, sorted];
    }
    return sorted.order;
  }

  /** A list of the same keys in another order. Reading that from one end to the other is quick, however long it is. */
  async inOrder(order: Uint32Array, pacer: Pacer): Promise<KeyList> {
    const list = new KeyList();
    const { writer } = list;
    writer.ensure(this.sizeBytes);
    list.#ends = new Uint32Array(Math.max(1, this.count));
    for (let i = 0; i < order.length; i++) {
      const position = order[i] as number;
      writer.appendRange(this.bytes, this.start(position), this.endOf(position));
      list.end();
      if ((i & 0xfff) === 0 && pacer.due()) await pacer.pause();
    }
    return list;
  }

  /** How many bytes all keys have in common. */
  async #sharedPrefix(pacer: Pacer): Promise<number> {
    const { bytes } = this;
    let shared = this.endOf(0);
    for (let i = 1; i < this.count && shared > 0; i++) {
      const start = this.start(i);
      const limit = Math.min(shared, this.endOf(i) - start);
      let same = 0;
      while (same < limit && bytes[same] === bytes[start + same]) same++;
      shared = same;
      if ((i & 0xfff) === 0 && pacer.due()) await pacer.pause();
    }
    return shared;
  }

  #sortChunk(runs: Runs, prefix: number, from: number, to: number): void {
    const heads = new Float64Array(to - from);
    const packed = new Float64Array(to - from);
    const { bytes } = this;
    for (let i = 0; i < heads.length; i++) {
      const start = this.start(from + i) + prefix;
      const end = this.endOf(from + i);
      let head = 0;
      for (let at = start; at < start + headBytes; at++) head = head * 256 + (at < end ? (bytes[at] as number) : 0);
      heads[i] = head;
      packed[i] = Math.floor(head / 256) * chunkKeys + i;
    }
    packed.sort();
    const order = runs.order.subarray(from, to);
    for (let i = 0; i < order.length; i++) order[i] = from + ((packed[i] as number) % chunkKeys);
    // Equal beginnings stand in order of arrival, which is often right already; sort the groups where it is not.
    for (let start = 0; start < packed.length; ) {
      const beginning = Math.floor((packed[start] as number) / chunkKeys);
      let end = start + 1;
      while (end < packed.length && Math.floor((packed[end] as number) / chunkKeys) === beginning) end++;
      if (end - start > 1) this.#sortGroup(order.subarray(start, end));
      start = end;
    }
    for (let i = 0; i < order.length; i++) runs.heads[from + i] = heads[(order[i] as number) - from] as number;
  }

  #sortGroup(group: Uint32Array): void {
    for (let i = 1; i < group.length; i++) {
      if (this.compare(group[i - 1] as number, group[i] as number) <= 0) continue;
      group.sort((a, b) => this.compare(a, b) || a - b);
      return;
    }
  }

  /** Merges two sorted runs, `from` to `middle` and `middle` to `end`. */
  async #mergeRuns(source: Runs, target: Runs, from: number, middle: number, end: number, pacer: Pacer): Promise<void> {
    const { order, heads } = source;
    let left = from;
    let right = middle;
    for (let out = from; out < end; out++) {
      let takeLeft = left < middle;
      if (takeLeft && right < end) {
        const difference = (heads[left] as number) - (heads[right] as number);
        takeLeft = (difference === 0 ? this.compare(order[left] as number, order[right] as number) : difference) <= 0;
      }
      const taken = takeLeft ? left++ : right++;
      target.order[out] = order[taken] as number;
      target.heads[out] = heads[taken] as number;
      if ((out & 0xfff) === 0 && pacer.due()) await pacer.pause();
    }
  }
}
