/** Reads entries of an index: the primary key that each names, and a row with the fields that it holds. */
import { CorruptionError } from '../base/errors.ts';
import { copyComponent } from '../format/key-to-row.ts';
import type { Node } from '../format/node.ts';
import { isTruncatedComponent, MalformedKey, skipKeyComponent } from '../format/ordered-key.ts';
import { RowArena } from '../format/row-arena.ts';
import { appendNullRow } from '../format/row-encode.ts';
import type { LayoutField } from '../format/row-layout.ts';
import type { TableIndex, TableShape } from '../table/table-shape.ts';

/** First byte of a component that stands for null. */
const nullTag = 0;

/** Rows that are made of entries. */
export class EntryRows extends RowArena {
  count = 0;
}

export class EntryReader {
  readonly #shape: TableShape;
  /** Fields of an entry, in its order, the primary key last. */
  readonly #fields: readonly LayoutField[];
  /** Which of them rows are made with. */
  readonly #needed: readonly boolean[];
  /** Where the component of each field ends in {@link key}. */
  readonly #ends: number[] = [];
  /** The key of the entry, and beyond {@link length} anything. Replaced where it is too short. */
  key: Uint8Array = new Uint8Array(256);
  length = 0;

  /** `needed`: fields that rows made of entries are to have. */
  constructor(shape: TableShape, index: TableIndex, needed: ReadonlySet<LayoutField>) {
    this.#shape = shape;
    this.#fields = [...index.fields, shape.primaryKey];
    this.#needed = this.#fields.map((field) => needed.has(field));
  }

  /** Where the primary key begins in {@link key}. */
  get primaryKeyStart(): number {
    return this.#ends[this.#fields.length - 2] as number;
  }

  /** The primary key; a copy. */
  get primaryKey(): Uint8Array {
    return this.key.slice(this.primaryKeyStart, this.length);
  }

  /** Reads entry `i` of a leaf. Throws `CorruptionError` if it is none. */
  read(node: Node, i: number): void {
    const length = node.keyLength(i);
    if (length > this.key.length) this.key = new Uint8Array(length * 2);
    node.copyKey(i, this.key, 0);
    this.length = length;
    let end = 0;
    try {
      for (let f = 0; f < this.#fields.length; f++) {
        end = skipKeyComponent(this.key, end, (this.#fields[f] as LayoutField).typeId);
        this.#ends[f] = end;
      }
    } catch (error) {
      if (!(error instanceof MalformedKey)) throw error;
      throw new CorruptionError(node.name, `An index entry is malformed: ${error.message}`, { cause: error });
    }
    if (end !== length) throw new CorruptionError(node.name, 'An index entry names no primary key');
  }

  /**
   * Appends a row with what the entry holds of the needed fields; the others are null in it. False if it does not hold one
   * of them whole: then the row is not to be used.
   */
  appendRow(rows: EntryRows): boolean {
    rows.count++;
    const base = appendNullRow(this.#shape.layout, rows.writer);
    const { bytes, view } = rows.writer;
    const { key } = this;
    let start = 0;
    for (let f = 0; f < this.#fields.length; f++) {
      const end = this.#ends[f] as number;
      if (this.#needed[f] === true && key[start] !== nullTag) {
        const { typeId, offset, nullByte, nullMask } = this.#fields[f] as LayoutField;
        if (isTruncatedComponent(key, end, typeId)) return false;
        bytes[base + nullByte] = (bytes[base + nullByte] as number) & ~nullMask;
        copyComponent(key, start, end, typeId, bytes, view, base + offset, rows.heapWriter);
      }
      start = end;
    }
    return true;
  }
}
