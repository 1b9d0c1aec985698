/** What a merge changes in one index: entries that come and go, collected in any order and applied in key order. */
import type { Pacer } from '../base/pacer.ts';
import { CorruptionError } from '../base/errors.ts';
import { compareRanges } from '../base/bytes.ts';
import type { ByteWriter } from '../base/bytes.ts';
import { KeyList } from '../format/key-list.ts';
import type { RowSource } from '../format/row-layout.ts';
import type { TableIndex, TableShape } from '../table/table-shape.ts';
import type { RowHit } from '../tree/tree.ts';
import type { ChangeStream } from '../tree/write.ts';

/** Appends the index entry of a row. `isRemoval`: it is the one that goes. */
export type EntryWriter = (
  writer: ByteWriter,
  source: RowSource,
  base: number,
  primaryKey: Uint8Array,
  isRemoval: boolean,
) => void;

export class IndexChanges {
  readonly index: TableIndex;
  readonly #shape: TableShape;
  readonly #write: EntryWriter;
  #keys = new KeyList();
  #removals: number[] = [];

  /** `write`: for an index that is not on fields. */
  constructor(shape: TableShape, index: TableIndex, write?: EntryWriter) {
    this.#shape = shape;
    this.index = index;
    this.#write =
      write ?? ((writer, source, base, primaryKey) => shape.writeIndexEntry(writer, index, source, base, primaryKey));
  }

  get count(): number {
    return this.#keys.count;
  }

  get sizeBytes(): number {
    return this.#keys.sizeBytes + this.#keys.count * 8;
  }

  /** Takes in that a row's old entry goes and its new one comes; nothing if both are the same. */
  add(old: RowHit | undefined, next: RowHit | undefined, primaryKey: Uint8Array): void {
    const keys = this.#keys;
    if (old !== undefined) {
      this.#write(keys.writer, old.source, old.base, primaryKey, true);
      this.#removals[keys.end()] = 1;
    }
    if (next === undefined) return;
    this.#write(keys.writer, next.source, next.base, primaryKey, false);
    const at = keys.end();
    this.#removals[at] = 0;
    if (old !== undefined && keys.compare(at, at - 1) === 0) keys.rewind(at - 1);
  }

  /** The changes in key order; the list is empty afterwards. */
  async take(pacer: Pacer): Promise<ChangeStream> {
    const keys = this.#keys;
    const removals = this.#removals;
    this.#keys = new KeyList();
    this.#removals = [];
    const order = await keys.sorted(pacer);
    return new SortedKeys(keys, order, removals, `indexes/${this.#shape.name}/${this.index.name}`);
  }
}

class SortedKeys implements ChangeStream {
  readonly #keys: KeyList;
  readonly #order: Uint32Array;
  readonly #removals: readonly number[];
  readonly #index: string;
  #at = 0;
  readonly source = undefined;
  readonly base = 0;

  constructor(keys: KeyList, order: Uint32Array, removals: readonly number[], index: string) {
    this.#keys = keys;
    this.#order = order;
    this.#removals = removals;
    this.#index = index;
    this.#skipCancelled();
  }

  get #position(): number {
    return this.#order[this.#at] as number;
  }

  get done(): boolean {
    return this.#at >= this.#order.length;
  }

  get key(): Uint8Array {
    return this.#keys.bytes;
  }

  get keyStart(): number {
    return this.#keys.start(this.#position);
  }

  get keyEnd(): number {
    return this.#keys.endOf(this.#position);
  }

  get remove(): boolean {
    return this.#removals[this.#position] === 1;
  }

  advance(): void {
    this.#at++;
    this.#skipCancelled();
  }

  /**
   * Every entry names its row's primary key, and a row changes once in a merge: equal keys follow each other only where
   * a tree or a commit holds a row twice.
   */
  #skipCancelled(): void {
    if (this.#at === 0 || this.done) return;
    const { bytes } = this.#keys;
    const previous = this.#order[this.#at - 1] as number;
    const same =
      compareRanges(
        bytes,
        this.#keys.start(previous),
        this.#keys.endOf(previous),
        bytes,
        this.keyStart,
        this.keyEnd,
      ) === 0;
    if (same) throw new CorruptionError(this.#index, 'An index entry changes twice in one merge: a row is there twice');
  }
}
