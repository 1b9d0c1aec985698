/** The rows of several words together, such as all words that begin alike: read beforehand, and held in memory. */
import { compareRanges } from '../../base/bytes.ts';
import type { Pacer } from '../../base/pacer.ts';
import { KeyList } from '../../format/key-list.ts';
import type { Posting } from './postings.ts';

/** About the bytes that a row takes besides its key. */
const rowBytes = 20;

export class HeldPostings implements Posting {
  #keys = new KeyList();
  #frequencies: number[] = [];
  #lengths: number[] = [];
  #at = -1;
  keyStart = 0;
  keyEnd = 0;
  frequency = 0;
  length = 0;

  get bytes(): Uint8Array {
    return this.#keys.bytes;
  }

  get count(): number {
    return this.#keys.count;
  }

  /** The memory that it takes. */
  get sizeBytes(): number {
    return this.#keys.sizeBytes + this.#keys.count * rowBytes;
  }

  /** Adds a row with one of the words. */
  add({ bytes, keyStart, keyEnd, frequency, length }: Posting): void {
    this.#keys.writer.appendRange(bytes, keyStart, keyEnd);
    this.#keys.end();
    this.#frequencies.push(frequency);
    this.#lengths.push(length);
  }

  /** Sorts the rows, and makes one of those that are the same. */
  async close(pacer: Pacer): Promise<void> {
    const keys = this.#keys;
    const order = await keys.sorted(pacer);
    const once = new KeyList();
    const frequencies: number[] = [];
    const lengths: number[] = [];
    let last = -1;
    for (const position of order) {
      if (last >= 0 && keys.isSame(position, last)) {
        frequencies[frequencies.length - 1] = (frequencies.at(-1) as number) + (this.#frequencies[position] as number);
        continue;
      }
      once.writer.appendRange(keys.bytes, keys.start(position), keys.endOf(position));
      once.end();
      frequencies.push(this.#frequencies[position] as number);
      lengths.push(this.#lengths[position] as number);
      last = position;
    }
    this.#keys = once;
    this.#frequencies = frequencies;
    this.#lengths = lengths;
  }

  /** Moves to the next row. Returns false at the end. */
  next(): boolean {
    return this.#moveTo(this.#at + 1);
  }

  /** Moves to the first row at or after the present one whose primary key is not below a given one. Returns false if there is none. */
  seek(key: Uint8Array, start: number, end: number): boolean {
    const from = Math.max(0, this.#at);
    let low = from;
    let high = this.#keys.count;
    for (let step = 1; low + step <= high; step *= 2) {
      const probe = low + step - 1;
      if (this.#compare(probe, key, start, end) >= 0) high = probe;
      else low = probe + 1;
    }
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.#compare(middle, key, start, end) < 0) low = middle + 1;
      else high = middle;
    }
    return this.#moveTo(low);
  }

  /** Whether the present row has a primary key. */
  isAt(key: Uint8Array, start: number, end: number): boolean {
    return this.#at < this.#keys.count && this.#compare(this.#at, key, start, end) === 0;
  }

  #compare(position: number, key: Uint8Array, start: number, end: number): number {
    const keys = this.#keys;
    return compareRanges(keys.bytes, keys.start(position), keys.endOf(position), key, start, end);
  }

  #moveTo(position: number): boolean {
    this.#at = position;
    if (position >= this.#keys.count) return false;
    this.keyStart = this.#keys.start(position);
    this.keyEnd = this.#keys.endOf(position);
    this.frequency = this.#frequencies[position] as number;
    this.length = this.#lengths[position] as number;
    return true;
  }
}
