/**
 * Keys in the order in which they came, and their sorted order. Sorting is stable, works in slices short enough for an
 * event loop, and mostly compares numbers: the bytes after the shared prefix and the position, packed in one float.
 */
import { ByteWriter, compareRanges } from '../base/bytes.ts';
import type { Pacer } from '../base/pacer.ts';

/** Keys sorted at once: a few milliseconds' work. Positions within take 16 bits, beside 32 bits of key. */
const chunkKeys = 0x2000;
const positionFactor = 0x1_0000;

export class KeyList {
  readonly #writer = new ByteWriter(1024);
  #ends = new Uint32Array(64);
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
    const order = new Uint32Array(this.count);
    if (await this.#isSorted(pacer)) return order.map((_, i) => i);
    for (let from = 0; from < this.count; from += chunkKeys) {
      this.#sortChunk(order, from, Math.min(this.count, from + chunkKeys));
      if (pacer.due()) await pacer.pause();
    }
    let sorted = order;
    let spare = new Uint32Array(this.count);
    for (let run = chunkKeys; run < this.count; run *= 2) {
      for (let from = 0; from < this.count; from += run * 2) {
        await this.#mergeRuns(sorted, spare, from, Math.min(this.count, from + run), run, pacer);
      }
      [sorted, spare] = [spare, sorted];
    }
    return sorted;
  }

  #sharedPrefix(from: number, to: number): number {
    const { bytes } = this;
    const first = this.start(from);
    let shared = this.endOf(from) - first;
    for (let i = from + 1; i < to && shared > 0; i++) {
      const start = this.start(i);
      const limit = Math.min(shared, this.endOf(i) - start);
      let same = 0;
      while (same < limit && bytes[first + same] === bytes[start + same]) same++;
      shared = same;
    }
    return shared;
  }

  #sortChunk(order: Uint32Array, from: number, to: number): void {
    const prefix = this.#sharedPrefix(from, to);
    const packed = new Float64Array(to - from);
    const { bytes } = this;
    for (let i = from; i < to; i++) {
      const start = this.start(i) + prefix;
      const end = this.endOf(i);
      let head = 0;
      for (let j = 0; j < 4; j++) head = head * 256 + (start + j < end ? (bytes[start + j] as number) : 0);
      packed[i - from] = head * positionFactor + (i - from);
    }
    packed.sort();
    for (let i = 0; i < packed.length; i++) order[from + i] = from + ((packed[i] as number) % positionFactor);
    // Equal heads stand in order of arrival, which is often right already; sort the groups where it is not.
    for (let start = 0; start < packed.length; ) {
      const head = Math.floor((packed[start] as number) / positionFactor);
      let end = start + 1;
      while (end < packed.length && Math.floor((packed[end] as number) / positionFactor) === head) end++;
      if (end - start > 1) this.#sortGroup(order.subarray(from + start, from + end));
      start = end;
    }
  }

  #sortGroup(group: Uint32Array): void {
    for (let i = 1; i < group.length; i++) {
      if (this.compare(group[i - 1] as number, group[i] as number) <= 0) continue;
      group.sort((a, b) => this.compare(a, b) || a - b);
      return;
    }
  }

  /** Merges two sorted runs of `from`..., each of `run` keys. */
  async #mergeRuns(
    source: Uint32Array,
    target: Uint32Array,
    from: number,
    middle: number,
    run: number,
    pacer: Pacer,
  ): Promise<void> {
    const end = Math.min(this.count, from + run * 2);
    let left = from;
    let right = middle;
    for (let out = from; out < end; out++) {
      const takeLeft =
        left < middle && (right >= end || this.compare(source[left] as number, source[right] as number) <= 0);
      target[out] = (takeLeft ? source[left++] : source[right++]) as number;
      if ((out & 0xfff) === 0 && pacer.due()) await pacer.pause();
    }
  }
}
