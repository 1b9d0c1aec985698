/** Sorts rows that come in any order: collects all of them, or only the first few. */
import { isPromise } from '../../base/brands.ts';
import { ByteWriter, compareRanges, copyRange } from '../../base/bytes.ts';
import type { Pacer } from '../../base/pacer.ts';
import { KeyList } from '../../format/key-list.ts';
import type { RowSource } from '../../format/row-layout.ts';
import { compileSelector } from '../conditions/condition.ts';
import type { RowOrder } from '../conditions/row-order.ts';
import type { Selector } from '../conditions/filter.ts';
import { RowBatch } from './row-batch.ts';
import type { RowStream } from './row-batch.ts';

/** Returns the part of a row to keep. */
export type Keep<T> = (source: RowSource, base: number) => T;

/** Returns the bytes of the kept part of a row. */
export type SizeOf = (source: RowSource) => number;

/** A row that is kept undecoded. */
const hitBytes = 64;
const sizeOfHit: SizeOf = () => hitBytes;
/** The bytes of a row in the lists, without its key and its kept part. */
const listBytes = 40;
/** Bytes that a row takes in the heap. */
const entryBytes = 96;

export interface Collector<T> {
  add(source: RowSource, base: number): void;
  /** Selects rows that can still be among those wanted; undefined while all can. Changes as rows are added. */
  readonly bound: Selector | undefined;
  /** Memory that it takes, as an estimate. */
  readonly sizeBytes: number;
  /** Returns the kept parts, in order. */
  finish(pacer: Pacer): Promise<T[]>;
}

/** Keeps every row. */
export class AllRows<T> implements Collector<T> {
  readonly #order: RowOrder;
  readonly #keep: Keep<T>;
  readonly #sizeOf: SizeOf;
  readonly #keys = new KeyList();
  readonly #kept: T[] = [];
  #keptBytes = 0;
  readonly bound = undefined;

  constructor(order: RowOrder, keep: Keep<T>, sizeOf: SizeOf = sizeOfHit) {
    this.#order = order;
    this.#keep = keep;
    this.#sizeOf = sizeOf;
  }

  get sizeBytes(): number {
    // The list of keys is copied as it grows.
    return this.#keptBytes + this.#keys.sizeBytes * 2;
  }

  add(source: RowSource, base: number): void {
    this.#order.write(this.#keys.writer, source, base);
    this.#keys.end();
    this.#kept.push(this.#keep(source, base));
    this.#keptBytes += this.#sizeOf(source) + listBytes;
  }

  async finish(pacer: Pacer): Promise<T[]> {
    const order = await this.#keys.sorted(pacer);
    return Array.from(order, (i) => this.#kept[i] as T);
  }
}

/** A row in the heap. Its memory is used again for the one that takes its place. */
interface Entry<T> {
  readonly key: HeldKey;
  kept: T;
}

/** Keys that were cut short are the same as far as they are held: which of their rows comes first is not known. */
export class CutKeysTie extends Error {}

/** Keeps the first rows in a heap whose root is the last of them. Rows after the root are not wanted. */
export class TopRows<T> implements Collector<T> {
  readonly #order: RowOrder;
  readonly #count: number;
  readonly #keep: Keep<T>;
  readonly #sizeOf: SizeOf;
  readonly #maxKeyBytes: number;
  readonly #heap: Entry<T>[] = [];
  readonly #slabs = new KeySlabs();
  /** The bytes kept of the first rows. Rows that replace them are assumed to take as much. */
  #keptBytes = 0;
  readonly #scratch = new ByteWriter(256);
  #bound: Selector | undefined;
  /** Whether the root is another row than the one that the bound was made of. */
  #hasNewRoot = true;

  /**
   * `count`: the number of rows wanted, at least one. `maxKeyBytes`: the bytes of each key that are held. If these are equal for
   * two rows whose order matters, `add` and `finish` throw {@link CutKeysTie}.
   */
  constructor(
    order: RowOrder,
    count: number,
    keep: Keep<T>,
    sizeOf: SizeOf = sizeOfHit,
    maxKeyBytes: number = Number.POSITIVE_INFINITY,
  ) {
    this.#order = order;
    this.#count = count;
    this.#keep = keep;
    this.#sizeOf = sizeOf;
    this.#maxKeyBytes = maxKeyBytes;
  }

  get sizeBytes(): number {
    return this.#keptBytes + this.#slabs.sizeBytes;
  }

  add(source: RowSource, base: number): void {
    const scratch = this.#scratch;
    scratch.length = 0;
    this.#order.write(scratch, source, base);
    scratch.length = Math.min(scratch.length, this.#maxKeyBytes);
    const heap = this.#heap;
    if (heap.length < this.#count) {
      const key = this.#slabs.none;
      this.#slabs.put(key, scratch);
      heap.push({ key, kept: this.#keep(source, base) });
      this.#keptBytes += this.#sizeOf(source) + entryBytes;
      this.#siftUp(heap.length - 1);
      return;
    }
    const last = heap[0] as Entry<T>;
    const { bytes, start, end } = last.key;
    if (this.#checked(compareRanges(scratch.bytes, 0, scratch.length, bytes, start, end), scratch.length) >= 0) return;
    this.#slabs.put(last.key, scratch);
    last.kept = this.#keep(source, base);
    this.#hasNewRoot = true;
    this.#siftDown();
  }

  #compare({ key: a }: Entry<T>, { key: b }: Entry<T>): number {
    return this.#checked(compareRanges(a.bytes, a.start, a.end, b.bytes, b.start, b.end), a.end - a.start);
  }

  /**
   * How two keys of which one has `length` bytes compare. A search that finds no tie in the heap knows that none of those below
   * an entry ties with it: each was compared with it, or with one between them.
   */
  #checked(difference: number, length: number): number {
    if (difference === 0 && length === this.#maxKeyBytes) throw new CutKeysTie();
    return difference;
  }

  #siftUp(from: number): void {
    const heap = this.#heap;
    const entry = heap[from] as Entry<T>;
    let at = from;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (this.#compare(heap[parent] as Entry<T>, entry) >= 0) break;
      heap[at] = heap[parent] as Entry<T>;
      at = parent;
    }
    heap[at] = entry;
  }

  #siftDown(): void {
    const heap = this.#heap;
    const entry = heap[0] as Entry<T>;
    let at = 0;
    for (;;) {
      let child = at * 2 + 1;
      if (child >= heap.length) break;
      const right = child + 1;
      if (right < heap.length && this.#compare(heap[right] as Entry<T>, heap[child] as Entry<T>) > 0) child = right;
      if (this.#compare(heap[child] as Entry<T>, entry) <= 0) break;
      heap[at] = heap[child] as Entry<T>;
      at = child;
    }
    heap[at] = entry;
  }

  get bound(): Selector | undefined {
    const last = this.#heap[0];
    if (this.#heap.length < this.#count || last === undefined) return undefined;
    if (this.#hasNewRoot) {
      this.#hasNewRoot = false;
      this.#bound = this.#selectUpTo(last.key);
    }
    return this.#bound;
  }

  /** Rows whose first field says that they come before the one with a key, or may tie with it. */
  #selectUpTo({ bytes, start, end }: HeldKey): Selector | undefined {
    const comparison = this.#order.leadUpTo(bytes.subarray(start, end));
    return comparison && compileSelector(this.#order.lead.field, comparison);
  }

  async finish(): Promise<T[]> {
    return this.#heap.toSorted((a, b) => this.#compare(a, b)).map(({ kept }) => kept);
  }
}

/** Sizes of slabs: each is twice as large as the one before, up to the largest. */
const firstSlabBytes = 4096;
const maxSlabBytes = 256 * 1024;
/** Room is given in steps: then most keys fit where one of nearly their length was. */
const stepBytes = 32;

/** A key, and where it lies. */
interface HeldKey {
  bytes: Uint8Array;
  start: number;
  /** One past its last byte. */
  end: number;
  /** One past the last byte that it may have there. */
  limit: number;
}

/**
 * Memory for keys that are kept for a while and then overwritten by others. They lie in a few large arrays: an array for each key
 * would take some 300 bytes more than the key, and leave a hole of its size where it is freed.
 */
class KeySlabs {
  #slab: Uint8Array = new Uint8Array(0);
  #used = 0;
  /** Memory that all slabs take. */
  sizeBytes = 0;

  /** Copies the written bytes to the place of `key`, or to a new place if they do not fit there. */
  put(key: HeldKey, { bytes, length }: ByteWriter): void {
    if (key.limit - key.start < length) this.#move(key, length);
    copyRange(bytes, 0, length, key.bytes, key.start);
    key.end = key.start + length;
  }

  /** A key that is to be put: it has no room yet. */
  get none(): HeldKey {
    return { bytes: this.#slab, start: 0, end: 0, limit: 0 };
  }

  #move(key: HeldKey, length: number): void {
    // Doubled where it moves once more, or keys that grow little by little would leave as many places behind.
    const room = Math.ceil(Math.max(length, (key.limit - key.start) * 2) / stepBytes) * stepBytes;
    if (this.#used + room > this.#slab.length) {
      const next = Math.min(maxSlabBytes, Math.max(firstSlabBytes, this.#slab.length * 2));
      this.#slab = new Uint8Array(Math.max(next, room));
      this.#used = 0;
      this.sizeBytes += this.#slab.length;
    }
    key.bytes = this.#slab;
    key.start = this.#used;
    this.#used += room;
    key.limit = this.#used;
  }
}

/** Adds all rows of a stream to a collector. */
export async function collect<T>(
  stream: RowStream,
  collector: Collector<T>,
  pacer: Pacer,
  onBound?: (collector: Collector<T>) => void,
): Promise<T[]> {
  const batch = new RowBatch();
  for (;;) {
    let more = stream.next(batch);
    if (isPromise(more)) more = await more;
    if (!more) return collector.finish(pacer);
    for (let i = 0; i < batch.count; i++) collector.add(batch.sources[i] as RowSource, batch.bases[i] as number);
    batch.clear();
    onBound?.(collector);
    if (pacer.due()) await pacer.pause();
  }
}
