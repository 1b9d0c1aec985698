/** Keys in the order in which they came, and their sorted order. */
import { ByteWriter, compareRanges } from '../base/bytes.ts';
import type { Pacer } from '../base/pacer.ts';
import { sortPositions } from './key-sort.ts';

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

  /** In a sorted list, the first position from `from` on whose key is not below `key`; `count` if there is none. */
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

  /** Positions of the keys in ascending order of the keys; equal keys in the order in which they came. */
  async sorted(pacer: Pacer): Promise<Uint32Array> {
    const order = new Uint32Array(this.count);
    for (let i = 0; i < order.length; i++) order[i] = i;
    if (!(await this.#isSorted(pacer))) await sortPositions(order, this, pacer);
    return order;
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
}
