/** Rows that a migration writes into a tree: collected in any order, applied in the order of their keys. */
import { compareBytes } from '../base/bytes.ts';
import { rowDeletedFlag } from '../format/row-layout.ts';
import type { RowSource } from '../format/row-layout.ts';
import type { TableShape } from '../schema/table-shape.ts';
import type { RowHit } from '../tree/tree.ts';
import type { ChangeStream } from '../tree/write.ts';
import { PlainRows } from './plain-rows.ts';

interface Change {
  readonly key: Uint8Array;
  /** Where the row begins. */
  readonly base: number;
}

export class ChangeList {
  readonly #shape: TableShape;
  readonly #changes: Change[] = [];
  readonly rows: PlainRows = new PlainRows();
  #keyBytes = 0;

  constructor(shape: TableShape) {
    this.#shape = shape;
  }

  get count(): number {
    return this.#changes.length;
  }

  get sizeBytes(): number {
    return this.rows.sizeBytes + this.#keyBytes;
  }

  /** Adds a row that was written into {@link rows}. No key may be added twice. */
  set(key: Uint8Array, base: number): void {
    this.#keyBytes += key.length;
    this.#changes.push({ key, base });
  }

  /** Adds a copy of a row, or says that there is none. */
  put(key: Uint8Array, hit: RowHit | undefined): void {
    const { layout } = this.#shape;
    this.set(key, hit === undefined ? this.rows.addDeleted(layout) : this.rows.addCopy(layout, hit));
  }

  /** What was collected, to be applied to a tree. Nothing may be added any more. */
  sorted(): ChangeStream {
    return new SortedChanges(
      this.#changes.toSorted((a, b) => compareBytes(a.key, b.key)),
      this.rows,
    );
  }
}

const noKey = new Uint8Array(0);

class SortedChanges implements ChangeStream {
  readonly #changes: readonly Change[];
  readonly source: RowSource;
  readonly keyStart = 0;
  #at = 0;

  constructor(changes: readonly Change[], source: RowSource) {
    this.#changes = changes;
    this.source = source;
  }

  get done(): boolean {
    return this.#at >= this.#changes.length;
  }

  get #change(): Change {
    return this.#changes[this.#at] as Change;
  }

  /** Whoever asks whether there is more looks at the key as well. */
  get key(): Uint8Array {
    return this.done ? noKey : this.#change.key;
  }

  get keyEnd(): number {
    return this.key.length;
  }

  get base(): number {
    return this.#change.base;
  }

  get remove(): boolean {
    return ((this.source.rows[this.base] as number) & rowDeletedFlag) !== 0;
  }

  advance(): void {
    this.#at++;
  }
}
