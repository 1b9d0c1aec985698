/** Rows that come in any order and are wanted in a certain one: all of them, or only the first few. */
import { ByteWriter, compareRanges, copyRange } from '../base/bytes.ts';
import type { OrderedValue } from '../base/order.ts';
import type { Pacer } from '../base/pacer.ts';
import { KeyList } from '../format/key-list.ts';
import type { RowSource } from '../format/row-layout.ts';
import { compileSelector } from './condition.ts';
import type { RowOrder } from './row-order.ts';
import type { Selector } from './selector.ts';

/** Makes of a row what is to be kept of it. */
export type Keep<T> = (source: RowSource, base: number) => T;

/** Bytes that what is kept of a row takes. */
export type SizeOf = (source: RowSource) => number;

/** A row that is kept undecoded. */
const hitBytes = 64;
const sizeOfHit: SizeOf = () => hitBytes;
/** What a row takes in the lists beside its key and what is kept of it. */
const listBytes = 40;

export interface Collector<T> {
  add(source: RowSource, base: number): void;
  /** Selects rows that can still be among those wanted; undefined while all can. Changes as rows are added. */
  readonly bound: Selector | undefined;
  /** Memory that it takes, as an estimate. */
  readonly sizeBytes: number;
  /** What was kept, in order. */
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
  key: Uint8Array;
  /** Bytes of the key; there may be room for more. */
  length: number;
  kept: T;
}

function compareEntries<T>(a: Entry<T>, b: Entry<T>): number {
  return compareRanges(a.key, 0, a.length, b.key, 0, b.length);
}

/** Keeps the first rows in a heap whose root is the last of them: what comes behind the root is not wanted. */
export class TopRows<T> implements Collector<T> {
  readonly #order: RowOrder;
  readonly #count: number;
  readonly #keep: Keep<T>;
  readonly #sizeOf: SizeOf;
  readonly #heap: Entry<T>[] = [];
  /** Of the rows that were added first: those that take their places count as much. */
  sizeBytes = 0;
  readonly #scratch = new ByteWriter(256);
  #bound: Selector | undefined;
  /** Whether the root is another row than the one that the bound was made of. */
  #hasNewRoot = true;

  /** `count`: how many rows are wanted, at least one. */
  constructor(order: RowOrder, count: number, keep: Keep<T>, sizeOf: SizeOf = sizeOfHit) {
    this.#order = order;
    this.#count = count;
    this.#keep = keep;
    this.#sizeOf = sizeOf;
  }

  add(source: RowSource, base: number): void {
    const scratch = this.#scratch;
    scratch.length = 0;
    this.#order.write(scratch, source, base);
    const heap = this.#heap;
    if (heap.length < this.#count) {
      heap.push({ key: scratch.finish(), length: scratch.length, kept: this.#keep(source, base) });
      this.sizeBytes += this.#sizeOf(source) + scratch.length + listBytes * 2;
      this.#siftUp(heap.length - 1);
      return;
    }
    const last = heap[0] as Entry<T>;
    if (compareRanges(scratch.bytes, 0, scratch.length, last.key, 0, last.length) >= 0) return;
    // Long keys would pile up as garbage faster than it is collected.
    if (scratch.length > last.key.length) last.key = scratch.finish();
    else copyRange(scratch.bytes, 0, scratch.length, last.key, 0);
    last.length = scratch.length;
    last.kept = this.#keep(source, base);
    this.#hasNewRoot = true;
    this.#siftDown();
  }

  #siftUp(from: number): void {
    const heap = this.#heap;
    const entry = heap[from] as Entry<T>;
    let at = from;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (compareEntries(heap[parent] as Entry<T>, entry) >= 0) break;
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
      if (right < heap.length && compareEntries(heap[right] as Entry<T>, heap[child] as Entry<T>) > 0) child = right;
      if (compareEntries(heap[child] as Entry<T>, entry) <= 0) break;
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
      this.#bound = this.#selectUpTo(this.#order.leadOf(last.key, last.length));
    }
    return this.#bound;
  }

  /** Rows that come before a value of the first field, or tie with it. Null comes first, or last when descending. */
  #selectUpTo(value: OrderedValue): Selector | undefined {
    const { field, descending } = this.#order.lead;
    if (value === null) return descending ? undefined : compileSelector(field, { kind: 'null' });
    const operator = descending ? '>=' : '<=';
    return compileSelector(field, { kind: 'value', operator, value, orNull: !descending });
  }

  async finish(): Promise<T[]> {
    return this.#heap.toSorted(compareEntries).map(({ kept }) => kept);
  }
}
