/** The changes of a merge to one index: entries that come and go, collected in any order and applied in key order. */
import { latin1Slice } from '#platform';
import { isPromise } from '../base/brands.ts';
import type { Pacer } from '../base/pacer.ts';
import { KeyList } from '../format/key-list.ts';
import type { Node } from '../format/node.ts';
import type { RowSource } from '../format/row-layout.ts';
import { isBehind } from '../format/stored-table.ts';
import type { Bound } from '../format/stored-table.ts';
import { isInside } from '../schema/index-condition.ts';
import { writeIndexEntries, writeIndexEntry } from '../schema/index-entries.ts';
import { isOfElements } from '../schema/table-shape.ts';
import type { TableIndex, TableShape } from '../schema/table-shape.ts';
import type { EntrySink } from '../schema/text-fields.ts';
import { rowWords } from '../schema/text-postings.ts';
import { wordWriter } from '../schema/text-writer.ts';
import type { TextRun } from '../schema/text-writer.ts';
import type { RunCursor } from '../tree/cursor.ts';
import type { RowRef, Tree } from '../tree/tree.ts';
import { longestRun } from '../tree/write.ts';
import type { ChangeStream, RowRun } from '../tree/write.ts';
import { isDeleted } from '../view/merged-cursor.ts';
import type { TableState } from '../view/table-state.ts';
import { SortedKeys } from './sorted-keys.ts';

/** Appends the index entries of a row, and returns their number. `isRemoval`: they are those that go. */
export type EntryWriter = (
  to: EntrySink,
  source: RowSource,
  base: number,
  primaryKey: Uint8Array,
  isRemoval: boolean,
) => number;

export class IndexChanges {
  readonly index: TableIndex;
  readonly #shape: TableShape;
  /** Undefined: of an index on fields. */
  readonly #write: EntryWriter | undefined;
  /** Rows behind it have no entries yet, and get none; null: all have theirs. */
  readonly #built: Bound;
  readonly #isOfElements: boolean;
  #keys = new KeyList();
  /** Positions of the entries that go. */
  #removals: number[] = [];
  #scratch = new Uint8Array(64);
  /** The entries of new rows, in an index on texts. */
  #run: TextRun | undefined;
  /** The words of rows that came, less those of rows that went, in an index on texts. */
  #words = 0;
  /** The entries of one row before and after its change, in an index with several for a row. */
  readonly #before = new KeyList();
  readonly #after = new KeyList();

  /** `write`: for an index that is not on fields. `built`: the last key whose row has its entry; null: all have. */
  constructor(shape: TableShape, index: TableIndex, write: EntryWriter | undefined, built: Bound) {
    this.#shape = shape;
    this.index = index;
    this.#write = write;
    this.#built = built;
    this.#isOfElements = isOfElements(index);
  }

  /** Adds the entry of a row whose primary key is the first `length` bytes of `key`. Less than 0: it has none. */
  #add(source: RowSource, base: number, key: Uint8Array, length: number, isRemoval: boolean): number {
    const keys = this.#keys;
    let at: number;
    if (this.#write !== undefined) {
      at = keys.count;
      this.#write(keys, source, base, key.subarray(0, length), isRemoval);
    } else if (!writeIndexEntry(keys.writer, this.index, source, base, key, length)) return -1;
    else at = keys.end();
    if (isRemoval) this.#removals.push(at);
    return at;
  }

  get count(): number {
    return this.#keys.count + (this.#run?.count ?? 0);
  }

  /** Whether no entry goes. */
  get onlyAdd(): boolean {
    return this.#removals.length === 0;
  }

  get sizeBytes(): number {
    return this.#keys.sizeBytes + this.#keys.count * 8 + (this.#run?.sizeBytes ?? 0);
  }

  /** Takes in that a row's old entry goes and its new one comes; nothing if both are the same. */
  add(old: RowRef | undefined, next: RowRef | undefined, primaryKey: Uint8Array): void {
    if (isBehind(primaryKey, this.#built)) return;
    if (this.#isOfElements) {
      this.#addEach(old, next, primaryKey);
      return;
    }
    const keys = this.#keys;
    const before = old === undefined ? -1 : this.#add(old.source, old.base, primaryKey, primaryKey.length, true);
    if (next === undefined) return;
    const at = this.#add(next.source, next.base, primaryKey, primaryKey.length, false);
    if (before < 0 || at < 0 || !keys.isSame(at, before)) return;
    keys.rewind(before);
    this.#removals.pop();
  }

  /** Takes in the entries that a row has no more, and those that it did not have. */
  #addEach(old: RowRef | undefined, next: RowRef | undefined, primaryKey: Uint8Array): void {
    if (old === undefined || next === undefined) {
      if (old !== undefined) this.#addAll(old, primaryKey, true);
      if (next !== undefined && !this.#addToRun(next, primaryKey)) this.#addAll(next, primaryKey, false);
      return;
    }
    const before = this.#entriesOf(this.#before, old, primaryKey, true);
    const after = this.#entriesOf(this.#after, next, primaryKey, false);
    if (this.index.text !== undefined) {
      this.#words += wordsOf(this.#after, 0, this.index) - wordsOf(this.#before, 0, this.index);
    }
    for (const [text, at] of before) if (!after.has(text)) this.#addKey(this.#before, at, true);
    for (const [text, at] of after) if (!before.has(text)) this.#addKey(this.#after, at, false);
  }

  /** Takes in the entries of a new row in an index on texts. False: they are to be taken in like those of other indexes. */
  #addToRun({ source, base }: RowRef, primaryKey: Uint8Array): boolean {
    const { text, where } = this.index;
    if (text === undefined || this.#write !== undefined) return false;
    if (where !== undefined && !isInside(where, source, base)) return true;
    this.#run ??= wordWriter.begin?.(text);
    return this.#run?.add(source, base, primaryKey, primaryKey.length) === true;
  }

  /** Takes in all entries of a row: they are different. */
  #addAll(row: RowRef, primaryKey: Uint8Array, isRemoval: boolean): void {
    const keys = this.#keys;
    const first = keys.count;
    const count = this.#append(keys, row, primaryKey, isRemoval);
    if (isRemoval) for (let i = 0; i < count; i++) this.#removals.push(first + i);
    if (this.index.text !== undefined) this.#words += wordsOf(keys, first, this.index) * (isRemoval ? -1 : 1);
  }

  /** Makes the entries of a row, and returns the place of each in the list by its bytes. */
  #entriesOf(keys: KeyList, row: RowRef | undefined, primaryKey: Uint8Array, isRemoval: boolean): Map<string, number> {
    const places = new Map<string, number>();
    keys.rewind(0);
    if (row === undefined) return places;
    const count = this.#append(keys, row, primaryKey, isRemoval);
    for (let i = 0; i < count; i++) places.set(latin1Slice.call(keys.bytes, keys.start(i), keys.endOf(i)), i);
    return places;
  }

  /** Appends the entries of a row to a list, and returns their number. */
  #append(keys: KeyList, { source, base }: RowRef, primaryKey: Uint8Array, isRemoval: boolean): number {
    return this.#write === undefined
      ? writeIndexEntries(keys, this.index, source, base, primaryKey)
      : this.#write(keys, source, base, primaryKey, isRemoval);
  }

  #addKey(from: KeyList, at: number, isRemoval: boolean): void {
    this.#keys.writer.appendRange(from.bytes, from.start(at), from.endOf(at));
    const place = this.#keys.end();
    if (isRemoval) this.#removals.push(place);
  }

  /** Takes in the entries of rows that are new. */
  addRun({ node, from, to }: RowRun): void {
    for (let i = from; i < to; i++) {
      const length = node.keyLength(i);
      if (this.#scratch.length < length) this.#scratch = new Uint8Array(length * 2);
      node.copyKey(i, this.#scratch, 0);
      if (this.#built !== null && isBehind(this.#scratch.subarray(0, length), this.#built)) continue;
      if (!this.#isOfElements) this.#add(node, node.rowBase(i), this.#scratch, length, false);
      else this.#addEach(undefined, { source: node, base: node.rowBase(i) }, this.#scratch.subarray(0, length));
    }
  }

  /** The changes in key order; the list is empty afterwards. */
  async take(pacer: Pacer): Promise<ChangeStream> {
    const keys = this.#keys;
    const removals = this.#removals;
    this.#keys = new KeyList();
    this.#removals = [];
    const run = this.#run;
    this.#run = undefined;
    const words = this.index.text === undefined ? undefined : this.#words + (run?.totalWords ?? 0);
    this.#words = 0;
    const order = await keys.sorted(pacer);
    const sorted = await keys.inOrder(order, pacer);
    const removed = new Uint8Array(order.length);
    if (removals.length > 0) {
      const isRemoval = new Uint8Array(order.length);
      for (const position of removals) isRemoval[position] = 1;
      for (let i = 0; i < removed.length; i++) removed[i] = isRemoval[order[i] as number] as number;
    }
    const name = `indexes/${this.#shape.name}/${this.index.name}`;
    return new SortedKeys({ keys: sorted, removals: removed }, await run?.sorted(pacer), name, words);
  }
}

/** Returns the number of words of the row whose first entry is at a position; 0 if there is no entry. */
function wordsOf(keys: KeyList, position: number, index: TableIndex): number {
  return position < keys.count ? rowWords(keys.key(position), index) : 0;
}

/** Fewer rows are added one by one. */
const shortestRun = 4;

/** The rows that unmerged commits have changed, as a stream of changes to a table's tree. */
export class LayerChanges implements ChangeStream {
  readonly #cursor: RunCursor;
  readonly #layers: readonly Tree[];
  #at = 0;
  done = false;
  key: Uint8Array = new Uint8Array(256);
  readonly keyStart = 0;
  keyEnd = 0;
  source!: Node;
  base = 0;
  remove = false;

  private constructor(table: TableState) {
    this.#cursor = table.scanLayers({}, true);
    this.#cursor.expect?.(table.layerRows);
    this.#layers = table.layers;
  }

  static async of(table: TableState): Promise<LayerChanges> {
    const changes = new LayerChanges(table);
    changes.#take(await changes.#cursor.next());
    return changes;
  }

  advance(): void | Promise<void> {
    this.#at++;
    if (this.#at < this.#cursor.to) {
      this.#loadRow();
      return undefined;
    }
    const moved = this.#cursor.next();
    if (isPromise(moved)) return moved.then((more) => this.#take(more));
    this.#take(moved);
    return undefined;
  }

  mayChange(from: Uint8Array, to: Uint8Array): boolean | undefined {
    let isKnown = true;
    for (const layer of this.#layers) {
      const may = layer.holds(from, to);
      if (may === true) return true;
      if (may === undefined) isKnown = false;
    }
    return isKnown ? false : undefined;
  }

  run(limit: Uint8Array | undefined): RowRun | undefined {
    const { node, to } = this.#cursor;
    const from = this.#at;
    // No more is taken at once.
    const most = Math.min(to, from + longestRun);
    const bound = limit === undefined ? most : Math.min(most, node.boundFrom(from, limit, 0, limit.length));
    let end = from;
    while (end < bound && !isDeleted(node, end)) end++;
    return end - from < shortestRun ? undefined : { node, from, to: end };
  }

  advanceRun(count: number): void | Promise<void> {
    this.#at += count - 1;
    return this.advance();
  }

  #take(more: boolean): void {
    if (!more) {
      this.done = true;
      return;
    }
    this.#at = this.#cursor.from;
    this.#loadRow();
  }

  #loadRow(): void {
    const { node } = this.#cursor;
    this.source = node;
    this.base = node.rowBase(this.#at);
    this.remove = isDeleted(node, this.#at);
    this.keyEnd = node.keyLength(this.#at);
    if (this.key.length < this.keyEnd) this.key = new Uint8Array(this.keyEnd * 2);
    node.copyKey(this.#at, this.key, 0);
  }
}
