/** The primary keys of the rows that a search has found, and their order: by descending score, and by key where scores are the same. */
import { compareRanges } from '../../base/bytes.ts';
import { KeyList } from '../../format/key-list.ts';

/** About the bytes that a row takes besides its key. */
const rowBytes = 16;

export class RankedRows {
  /** How many of the best rows are wanted; infinite for all. */
  readonly #most: number;
  #keys = new KeyList();
  #scores = new Float64Array(64);
  /** Positions, as a heap: the worst row at the top while rows are added to a full one, the best row while they are taken. */
  #heap = new Uint32Array(64);
  #size = 0;
  #isTaking = false;
  /** All rows that were added, those that were left out included. */
  total = 0;

  constructor(most: number) {
    this.#most = most;
  }

  /** The score of the row that was taken last. */
  takenScore = 0;

  /** How many rows are left. */
  get left(): number {
    return this.#size;
  }

  /** Whether no row was left out. */
  get isWhole(): boolean {
    return this.total <= this.#most;
  }

  /** The memory that it takes. */
  get sizeBytes(): number {
    return this.#keys.sizeBytes + this.#keys.count * rowBytes;
  }

  /** Rows with a lower score than this are not among the best. */
  get least(): number {
    if (this.#most === 0) return Number.POSITIVE_INFINITY;
    return this.#size < this.#most ? Number.NEGATIVE_INFINITY : (this.#scores[this.#heap[0] as number] as number);
  }

  /** Leaves out rows that are not among the best. */
  pass(rows: number): void {
    this.total += rows;
  }

  /** Adds a row that was not added before. */
  add(bytes: Uint8Array, start: number, end: number, score: number): void {
    this.total++;
    if (this.#most === 0) return;
    if (this.#size === this.#most) {
      const worst = this.#heap[0] as number;
      if (score < (this.#scores[worst] as number)) return;
      if (score === this.#scores[worst] && this.#compareKey(worst, bytes, start, end) < 0) return;
      this.#heap[0] = this.#hold(bytes, start, end, score);
      this.#sink(0);
      if (this.#keys.count > 1024 && this.#keys.count > 8 * this.#most) this.#compact();
      return;
    }
    const at = this.#size++;
    if (at === this.#heap.length) {
      const grown = new Uint32Array(at * 2);
      grown.set(this.#heap);
      this.#heap = grown;
    }
    this.#heap[at] = this.#hold(bytes, start, end, score);
    if (this.#size === this.#most) this.#order();
  }

  /** Ends the additions. */
  close(): void {
    this.#isTaking = true;
    this.#order();
  }

  /** Returns the key of the next row, the best one that is left; undefined if there is none. */
  take(): Uint8Array | undefined {
    if (this.#size === 0) return undefined;
    const best = this.#heap[0] as number;
    this.takenScore = this.#scores[best] as number;
    this.#heap[0] = this.#heap[--this.#size] as number;
    this.#sink(0);
    return this.#keys.key(best);
  }

  #hold(bytes: Uint8Array, start: number, end: number, score: number): number {
    this.#keys.writer.appendRange(bytes, start, end);
    const at = this.#keys.end();
    if (at === this.#scores.length) {
      const grown = new Float64Array(at * 2);
      grown.set(this.#scores);
      this.#scores = grown;
    }
    this.#scores[at] = score;
    return at;
  }

  /** Drops the keys of rows that are not among the best any more. */
  #compact(): void {
    const keys = this.#keys;
    const scores = this.#scores;
    this.#keys = new KeyList();
    this.#scores = new Float64Array(Math.max(64, this.#size * 2));
    for (let i = 0; i < this.#size; i++) {
      const at = this.#heap[i] as number;
      this.#heap[i] = this.#hold(keys.bytes, keys.start(at), keys.endOf(at), scores[at] as number);
    }
  }

  #order(): void {
    for (let i = (this.#size >>> 1) - 1; i >= 0; i--) this.#sink(i);
  }

  #compareKey(position: number, bytes: Uint8Array, start: number, end: number): number {
    const keys = this.#keys;
    return compareRanges(keys.bytes, keys.start(position), keys.endOf(position), bytes, start, end);
  }

  /** Whether the row at one position is better than the one at another. */
  #isBetter(one: number, other: number): boolean {
    const difference = (this.#scores[one] as number) - (this.#scores[other] as number);
    return difference === 0 ? this.#keys.compare(one, other) < 0 : difference > 0;
  }

  #isAbove(one: number, other: number): boolean {
    return this.#isTaking ? this.#isBetter(one, other) : this.#isBetter(other, one);
  }

  #sink(from: number): void {
    const heap = this.#heap;
    let at = from;
    for (;;) {
      let next = 2 * at + 1;
      if (next >= this.#size) return;
      if (next + 1 < this.#size && this.#isAbove(heap[next + 1] as number, heap[next] as number)) next++;
      const below = heap[next] as number;
      const here = heap[at] as number;
      if (!this.#isAbove(below, here)) return;
      heap[at] = below;
      heap[next] = here;
      at = next;
    }
  }
}
