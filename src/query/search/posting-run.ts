/**
 * The entries of a word in a leaf, taken apart once: a search goes over arrays of numbers. Runs stay with their leaves in the cache.
 * Many rows have a word equally often and are equally long: what their score depends on is kept once, as a kind.
 */
import { compareRanges, copyRange } from '../../base/bytes.ts';
import { KeyList } from '../../format/key-list.ts';
import { wordScore } from '../../search/bm25.ts';

/** The bytes of a key in its head. */
const headBytes = 6;

/** Returns the first bytes of a key as a number that sorts like them. Missing bytes count as zeros. */
function headOf(bytes: Uint8Array, start: number, end: number): number {
  let high = 0;
  for (let at = start; at < start + 3; at++) high = (high << 8) | (at < end ? (bytes[at] as number) : 0);
  let low = 0;
  for (let at = start + 3; at < start + headBytes; at++) low = (low << 8) | (at < end ? (bytes[at] as number) : 0);
  return high * 0x100_0000 + low;
}

/** The scores of the kinds of a run, and what they depend on. */
export interface Ranking {
  readonly factor: number;
  readonly meanLength: number;
  readonly scores: Float64Array;
  readonly best: number;
}

/** Rows with a word, by ascending primary key. */
export class PostingRun {
  readonly count: number;
  /** The first bytes of each key, as a number. */
  readonly heads: Float64Array;
  /** The kind of each row. */
  readonly kinds: Uint32Array | Uint16Array;
  /** Of each kind, how often the word is there, times the weights of the fields. */
  readonly #frequencies: readonly number[];
  /** Of each kind, the words of the row. */
  readonly #lengths: readonly number[];
  /** All keys, unless heads hold them wholly. */
  readonly #keys: KeyList | undefined;
  /** The bytes of each key, if heads hold them. */
  readonly #keyLength: number;
  #ranking: Ranking | undefined;

  constructor(builder: RunBuilder) {
    const { keys, kinds, frequencies, lengths, heads, keyLength } = builder;
    this.count = keys.count;
    this.heads = heads.slice(0, keys.count);
    this.kinds = (frequencies.length <= 0x1_0000 ? Uint16Array : Uint32Array).from(kinds.subarray(0, keys.count));
    this.#frequencies = frequencies;
    this.#lengths = lengths;
    this.#keyLength = keyLength;
    this.#keys = keyLength >= 0 && keyLength <= headBytes ? undefined : keys;
  }

  /** The memory that it takes. */
  get sizeBytes(): number {
    const keys = this.#keys === undefined ? 0 : this.#keys.sizeBytes + 4 * this.count;
    return this.heads.byteLength + this.kinds.byteLength + this.#lengths.length * 24 + keys;
  }

  /** Whether equal heads are of equal keys. */
  get isShort(): boolean {
    return this.#keys === undefined;
  }

  /** Returns the score of each kind. The last ones are kept for the next search. */
  rankingFor(factor: number, meanLength: number): Ranking {
    const known = this.#ranking;
    if (known?.factor === factor && known.meanLength === meanLength) return known;
    const scores = new Float64Array(this.#lengths.length);
    let best = 0;
    for (let kind = 0; kind < scores.length; kind++) {
      const score = wordScore(factor, this.#frequencies[kind] as number, this.#lengths[kind] as number, meanLength);
      scores[kind] = score;
      if (score > best) best = score;
    }
    // Another search may still go by the former ones.
    return (this.#ranking = { factor, meanLength, scores, best });
  }

  /** Reads the key of a row. */
  readKey(i: number, to: KeyBuffer): void {
    if (this.#keys !== undefined) {
      const start = this.#keys.start(i);
      const end = this.#keys.endOf(i);
      copyRange(this.#keys.bytes, start, end, to.ensure(end - start), 0);
      return;
    }
    const bytes = to.ensure(headBytes);
    to.length = this.#keyLength;
    let left = this.heads[i] as number;
    for (let at = headBytes - 1; at >= 0; at--) {
      const rest = Math.floor(left / 0x100);
      bytes[at] = left - rest * 0x100;
      left = rest;
    }
  }

  /** Compares the key of a row with one of another run. */
  compare(i: number, other: PostingRun, j: number): number {
    const difference = (this.heads[i] as number) - (other.heads[j] as number);
    if (difference !== 0 || (this.isShort && other.isShort)) return difference;
    const [own, others] = [this.#keys, other.#keys];
    if (own !== undefined && others !== undefined) {
      return compareRanges(own.bytes, own.start(i), own.endOf(i), others.bytes, others.start(j), others.endOf(j));
    }
    this.readKey(i, ownKey);
    other.readKey(j, otherKey);
    return compareRanges(ownKey.bytes, 0, ownKey.length, otherKey.bytes, 0, otherKey.length);
  }

  /** Returns the first row from `from` on whose key is not below that of a row of another run; their number if there is none. */
  bound(from: number, other: PostingRun, j: number): number {
    const { heads, count } = this;
    const wanted = other.heads[j] as number;
    let low = from;
    let high = count;
    for (let step = 1; low + step <= high; step *= 2) {
      const next = low + step - 1;
      if ((heads[next] as number) >= wanted) high = next;
      else low = next + 1;
    }
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((heads[middle] as number) < wanted) low = middle + 1;
      else high = middle;
    }
    return this.isShort && other.isShort ? low : this.#boundAlike(low, other, j);
  }

  /** As {@link bound}, from the first row on whose head is not below. */
  #boundAlike(from: number, other: PostingRun, j: number): number {
    let low = from;
    let high = this.count;
    for (let step = 1; low + step <= high; step *= 2) {
      const next = low + step - 1;
      if (this.compare(next, other, j) >= 0) high = next;
      else low = next + 1;
    }
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.compare(middle, other, j) < 0) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

/** A buffer for a key. */
export class KeyBuffer {
  bytes: Uint8Array = new Uint8Array(256);
  length = 0;

  /** Makes room for a key of so many bytes, and returns where it goes. */
  ensure(length: number): Uint8Array {
    this.length = length;
    if (length > this.bytes.length) this.bytes = new Uint8Array(length * 2);
    return this.bytes;
  }
}

const ownKey = new KeyBuffer();
const otherKey = new KeyBuffer();

/** Makes a run of rows that come by ascending key. */
export class RunBuilder {
  readonly keys: KeyList = new KeyList();
  heads: Float64Array = new Float64Array(64);
  kinds: Uint32Array = new Uint32Array(64);
  readonly frequencies: number[] = [];
  readonly lengths: number[] = [];
  /** The bytes of each key; -1 if they differ. */
  keyLength = 0;
  readonly #kindOf = new Map<number, Map<number, number>>();

  add(bytes: Uint8Array, start: number, end: number, frequency: number, length: number): void {
    const { keys } = this;
    keys.writer.appendRange(bytes, start, end);
    const i = keys.end();
    if (i === this.heads.length) {
      const heads = new Float64Array(i * 2);
      heads.set(this.heads);
      this.heads = heads;
      const kinds = new Uint32Array(i * 2);
      kinds.set(this.kinds);
      this.kinds = kinds;
    }
    if (i === 0) this.keyLength = end - start;
    else if (this.keyLength !== end - start) this.keyLength = -1;
    this.heads[i] = headOf(bytes, start, end);
    this.kinds[i] = this.#kind(frequency, length);
  }

  #kind(frequency: number, length: number): number {
    let byLength = this.#kindOf.get(frequency);
    if (byLength === undefined) {
      byLength = new Map();
      this.#kindOf.set(frequency, byLength);
    }
    let kind = byLength.get(length);
    if (kind === undefined) {
      kind = this.lengths.length;
      byLength.set(length, kind);
      this.frequencies.push(frequency);
      this.lengths.push(length);
    }
    return kind;
  }
}
