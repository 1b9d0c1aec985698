/** Reads entries of an index: the primary key that each names, and a row with the fields that it holds. */
import { CorruptionError } from '../../base/errors.ts';
import { copyComponent, isTruncatedComponent, MalformedKey, skipKeyComponent } from '../../format/ordered-key.ts';
import type { Node } from '../../format/node.ts';
import { RowArena } from '../../format/row-encode.ts';
import type { LayoutField } from '../../format/row-layout.ts';
import { widthOf } from '../../format/types.ts';
import { EntryJson, pathIn } from './entry-json.ts';
import type { EntryUse } from '../planner/covering-index.ts';
import { isTextField } from '../../schema/table-shape.ts';
import type { TableIndex, TableShape } from '../../schema/table-shape.ts';

/** First bytes of a component that stands for null, and for a value. */
const nullTag = 0;
const valueTag = 1;

/** Rows that are made of entries. */
export class EntryRows extends RowArena {
  count = 0;

  /** Takes back all rows, and makes room for so many bytes of others. */
  begin(bytes: number): void {
    this.rewind(0, 0);
    this.count = 0;
    this.writer.ensure(bytes);
    this.writer.bytes.fill(0, 0, bytes);
  }
}

export class EntryReader {
  readonly #stride: number;
  /** The first bytes of a row in which the needed fields have values, and no others. */
  readonly #bitmap: Uint8Array;
  /** Fields of an entry, in its order: those that it is on, those of the primary key, and included ones. */
  readonly #fields: readonly LayoutField[];
  /** The fields before the primary key, and up to its end. */
  readonly #keyAt: number;
  readonly #behindKey: number;
  /** Bytes of the component of each field that has a value; 0 where they differ. */
  readonly #widths: readonly number[];
  /** Which of them rows are made with. */
  readonly #needed: readonly boolean[];
  /** Where the component of each field ends in {@link key}. */
  readonly #ends: number[];
  /** Whether null may stand for a value in a field: at a path that the query reads as another type than entries hold. */
  readonly #unsure: readonly boolean[];
  /** Whether a field is at a path: rows have its value inside of a json field. */
  readonly #isOfPath: readonly boolean[];
  readonly #json: EntryJson | undefined;
  /** The key of the entry, and beyond {@link length} anything. Replaced where it is too short. */
  key: Uint8Array = new Uint8Array(256);
  length = 0;

  /** `use`: which fields rows made of entries are to have. */
  constructor({ layout, keyFields }: TableShape, index: TableIndex, use: EntryUse | undefined) {
    const needed = use?.fields ?? new Set();
    this.#stride = layout.stride;
    this.#fields = [...index.fields, ...keyFields, ...(index.included?.fields ?? [])];
    this.#keyAt = index.fields.length;
    this.#behindKey = this.#keyAt + keyFields.length;
    this.#widths = this.#fields.map((field) => (isTextField(field) ? 0 : 1 + widthOf(field.typeId)));
    this.#needed = this.#fields.map((field) => needed.has(field));
    this.#ends = this.#fields.map(() => 0);
    this.#bitmap = layout.nullRow.slice(0, layout.bitmapBytes);
    this.#unsure = this.#fields.map((field) => use?.unsure.has(field) === true);
    this.#isOfPath = this.#fields.map((field) => pathIn(field) !== undefined);
    if (this.#isOfPath.some((is, f) => is && this.#needed[f])) this.#json = new EntryJson(this.#fields, this.#needed);
    for (const [f, { nullByte, nullMask }] of this.#fields.entries()) {
      if (this.#needed[f] === true && this.#isOfPath[f] !== true)
        this.#setNull(this.#bitmap, nullByte, nullMask, false);
    }
  }

  #setNull(rows: Uint8Array, at: number, mask: number, isNull: boolean): void {
    rows[at] = isNull ? (rows[at] as number) | mask : (rows[at] as number) & ~mask;
  }

  /** Where the primary key begins in {@link key}. */
  get primaryKeyStart(): number {
    return this.#ends[this.#keyAt - 1] as number;
  }

  /** Where the primary key ends in {@link key}. */
  get primaryKeyEnd(): number {
    return this.#ends[this.#behindKey - 1] as number;
  }

  /** The primary key; a copy. */
  get primaryKey(): Uint8Array {
    return this.key.slice(this.primaryKeyStart, this.primaryKeyEnd);
  }

  /** Reads entry `i` of a leaf. Throws `CorruptionError` if it is none. */
  read(node: Node, i: number): void {
    const length = node.keyLength(i);
    if (length > this.key.length) this.key = new Uint8Array(length * 2);
    const { key } = this;
    node.copyKey(i, key, 0);
    this.length = length;
    const ends = this.#ends;
    let end = 0;
    for (let f = 0; f < ends.length; f++) {
      const width = this.#widths[f] as number;
      if (width > 0 && key[end] === valueTag) end += width;
      else end = this.#skip(node, f, end);
      ends[f] = end;
    }
    if (end !== length) throw new CorruptionError(node.name, 'An index entry does not end where its last value does');
  }

  #skip(node: Node, f: number, start: number): number {
    try {
      return skipKeyComponent(this.key, start, (this.#fields[f] as LayoutField).typeId);
    } catch (error) {
      if (!(error instanceof MalformedKey)) throw error;
      throw new CorruptionError(node.name, `An index entry is malformed: ${error.message}`, { cause: error });
    }
  }

  /**
   * Appends a row with the needed fields of the entry; the others are null in it. Returns false if the entry does not hold one
   * of them completely: then the row must not be used.
   */
  appendRow(rows: EntryRows): boolean {
    const { writer } = rows;
    const { bytes, view, length: base } = writer;
    writer.length += this.#stride;
    rows.count++;
    const bitmap = this.#bitmap;
    for (let i = 0; i < bitmap.length; i++) bytes[base + i] = bitmap[i] as number;
    const { key } = this;
    let start = 0;
    for (let f = 0; f < this.#ends.length; f++) {
      const end = this.#ends[f] as number;
      if (this.#needed[f] === true) {
        const { typeId, offset, nullByte, nullMask } = this.#fields[f] as LayoutField;
        const isOfPath = this.#isOfPath[f] === true;
        if (key[start] === nullTag) {
          if (this.#unsure[f] === true) return false;
          if (!isOfPath) this.#setNull(bytes, base + nullByte, nullMask, true);
        } else if (isTruncatedComponent(key, end, typeId)) return false;
        else if (!isOfPath) copyComponent(key, start, end, typeId, bytes, view, base + offset, rows.heapWriter);
      }
      start = end;
    }
    this.#json?.write(this, rows, base);
    return true;
  }

  startOf(component: number): number {
    return component === 0 ? 0 : (this.#ends[component - 1] as number);
  }

  endOf(component: number): number {
    return this.#ends[component] as number;
  }

  isNull(component: number): boolean {
    return this.key[this.startOf(component)] === nullTag;
  }
}
