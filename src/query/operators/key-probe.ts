/** Tests for intersections whether an index has entries for primary keys in certain ranges. */
import { latin1Slice } from '#platform';
import { isPromise } from '../../base/brands.ts';
import { compareRanges, copyRange, prefixEnd } from '../../base/bytes.ts';
import { widthOf } from '../../format/types.ts';
import type { LayoutField } from '../../format/row-layout.ts';
import type { TableIndex } from '../../schema/table-shape.ts';
import { TreeCursor } from '../../tree/cursor.ts';
import { minKeyBytes } from '../planner/index-intersections.ts';
import type { KeyRange, RunCursor } from '../../tree/cursor.ts';
import type { Tree } from '../../tree/tree.ts';
import { endOfKey, endOfValue, isTextField } from '../../schema/table-shape.ts';

export interface KeyProbe {
  /**
   * Returns whether the index has the primary key in the bytes of `key` from `start` to `end`; a promise if a block must be read first:
   * once it resolves, call again.
   */
  has(key: Uint8Array, start: number, end: number): boolean | Promise<void>;
}

/** Entries of one value, which come by primary key. It must be asked for keys in the same order. */
export class SortedProbe implements KeyProbe {
  readonly #tree: Tree;
  readonly #index: TableIndex;
  readonly #range: KeyRange;
  readonly #descending: boolean;
  #cursor: TreeCursor;
  /** The rest of the run. */
  #from = 0;
  #to = 0;
  #ended = false;
  /** The number of runs skipped for the present key. */
  #skipped = 0;
  /** The bytes of the value, and then the key that is asked for; undefined before the first entry. */
  #entry: Uint8Array | undefined;
  #valueBytes = 0;

  constructor(tree: Tree, index: TableIndex, range: KeyRange, descending: boolean) {
    this.#tree = tree;
    this.#index = index;
    this.#range = range;
    this.#descending = descending;
    this.#cursor = new TreeCursor(tree, range, descending);
  }

  has(key: Uint8Array, start: number, end: number): boolean | Promise<void> {
    for (;;) {
      if (this.#ended) return false;
      if (this.#from < this.#to) {
        const length = this.#ask(key, start, end);
        const known = this.#descending ? this.#findBelow(length) : this.#findAbove(length);
        if (known !== undefined) {
          this.#skipped = 0;
          return known;
        }
        // The next leaf is mostly the one. If it was not, the way from the root is shorter.
        if (this.#skipped++ > 0) this.#jump(length);
      }
      const moved = this.#cursor.next();
      if (isPromise(moved)) return moved.then((more) => this.#enter(more));
      this.#enter(moved);
    }
  }

  #enter(more: boolean): void {
    this.#ended = !more;
    if (!more) return;
    const { node, from, to } = this.#cursor;
    this.#from = from;
    this.#to = to;
    if (this.#entry !== undefined) return;
    const first = node.key(from);
    this.#valueBytes = endOfValue(node, first, first.length, this.#index);
    this.#entry = new Uint8Array(first.length + 64);
    this.#entry.set(first.subarray(0, this.#valueBytes));
  }

  /** Makes the entry that would be there, and returns its length. */
  #ask(key: Uint8Array, start: number, end: number): number {
    let entry = this.#entry as Uint8Array;
    const length = this.#valueBytes + end - start;
    if (length > entry.length) {
      entry = new Uint8Array(length * 2);
      entry.set((this.#entry as Uint8Array).subarray(0, this.#valueBytes));
      this.#entry = entry;
    }
    copyRange(key, start, end, entry, this.#valueBytes);
    return length;
  }

  /** Undefined: the answer is in a later run. */
  #findAbove(length: number): boolean | undefined {
    const { node } = this.#cursor;
    const entry = this.#entry as Uint8Array;
    // Often it is the next one.
    if (node.compareKey(this.#from, entry, length) < 0)
      this.#from = Math.max(this.#from, node.lowerBound(entry, length));
    return this.#from < this.#to ? this.#isAt(this.#from, length) : undefined;
  }

  /** Whether entry `i` is the one that was asked for, whatever follows its primary key. */
  #isAt(i: number, length: number): boolean {
    const { node } = this.#cursor;
    const entry = this.#entry as Uint8Array;
    if (this.#index.included === undefined) return node.compareKey(i, entry, length) === 0;
    const key = node.key(i);
    return key.length >= length && compareRanges(key, 0, length, entry, 0, length) === 0;
  }

  #findBelow(length: number): boolean | undefined {
    const { node } = this.#cursor;
    const entry = this.#entry as Uint8Array;
    const at = node.lowerBound(entry, length);
    if (at >= this.#from && at < this.#to && this.#isAt(at, length)) return true;
    this.#to = Math.min(this.#to, at);
    return this.#from < this.#to ? false : undefined;
  }

  #jump(length: number): void {
    const entry = (this.#entry as Uint8Array).slice(0, length);
    const range = this.#descending ? { ...this.#range, to: prefixEnd(entry) } : { ...this.#range, from: entry };
    this.#cursor = new TreeCursor(this.#tree, range, this.#descending);
  }
}

/** Keys of up to so many bytes are held as numbers. */
const numberBytes = 6;

/** Primary keys that were read from an index, held in memory. */
export class KeySet implements KeyProbe {
  readonly #keys = new Set<number | string>();
  readonly #isNumber: boolean;
  /** Memory that it takes, as an estimate. */
  sizeBytes = 0;

  /** `keyField`: the field of the primary key; undefined if there are several. */
  constructor(keyField: LayoutField | undefined) {
    this.#isNumber = keyField !== undefined && !isTextField(keyField) && widthOf(keyField.typeId) <= numberBytes;
  }

  #held(key: Uint8Array, start: number, end: number): number | string {
    if (!this.#isNumber) return latin1Slice.call(key, start, end);
    // All of them are equally long, and begin with the same tag.
    let number = 0;
    for (let at = start + 1; at < end; at++) number = number * 256 + (key[at] as number);
    return number;
  }

  has(key: Uint8Array, start: number, end: number): boolean {
    return this.#keys.has(this.#held(key, start, end));
  }

  /**
   * Adds the primary keys of entries, if they are in `within`, too. Resolves to the number of entries read; undefined if the keys take
   * more than `maxBytes`.
   */
  async addAll(
    cursor: RunCursor,
    index: TableIndex,
    { within, maxBytes, breathe }: AddOptions,
  ): Promise<number | undefined> {
    let entries = 0;
    cursor.expect?.(Number.POSITIVE_INFINITY);
    for (;;) {
      let more = cursor.next();
      if (isPromise(more)) more = await more;
      if (!more) return entries;
      const { node, from, to } = cursor;
      for (let i = from; i < to; i++) {
        const key = node.key(i);
        const start = endOfValue(node, key, key.length, index);
        const end = endOfKey(node, key, start, key.length, index);
        if (within?.has(key, start, end) === false) continue;
        this.#keys.add(this.#held(key, start, end));
        this.sizeBytes += minKeyBytes + (this.#isNumber ? 0 : end - start);
      }
      entries += to - from;
      if (this.sizeBytes > maxBytes) return undefined;
      await breathe();
    }
  }
}

export interface AddOptions {
  readonly within: KeySet | undefined;
  readonly maxBytes: number;
  /** Called between reads. May throw, to end it. */
  readonly breathe: () => void | Promise<void>;
}
