/**
 * An order of rows, by one or several fields and at last by primary key, as keys whose bytes sort as the rows do. Unlike
 * the keys of indexes they hold every value whole; a descending field has its bytes inverted.
 */
import { ByteWriter, prefixEnd } from '../../base/bytes.ts';
import type { OrderedValue } from '../../base/bytes.ts';
import {
  readCutText,
  readKeyComponent,
  skipKeyComponent,
  writeKeyComponent,
  writeWholeTextComponent,
} from '../../format/ordered-key.ts';
import { heapPlace, isNull, readValue } from '../../format/row-decode.ts';
import { inlineBytes, nonAsciiFlag } from '../../format/row-layout.ts';
import type { LayoutField, RowSource } from '../../format/row-layout.ts';
import { Types } from '../../format/types.ts';
import type { TypeId } from '../../format/types.ts';
import type { TableShape } from '../../schema/table-shape.ts';
import type { Comparison } from './comparison.ts';

export interface OrderField {
  readonly field: LayoutField;
  readonly descending: boolean;
}

/** Bytes of the value of a variable field that is not null. */
export function valueLength(source: RowSource, base: number, field: LayoutField): number {
  return source.rowsView.getUint32(base + field.offset, true) & ~nonAsciiFlag;
}

/** An order that no two rows tie in: at last, ascending primary keys decide. */
export function withKey(keyFields: readonly LayoutField[], order: readonly OrderField[]): readonly OrderField[] {
  if (keyFields.length === 1 && order.some(({ field }) => field === keyFields[0])) return order;
  const missing = keyFields.filter((keyField) => !order.some(({ field }) => field === keyField));
  return missing.length === 0 ? order : [...order, ...missing.map((field) => ({ field, descending: false }))];
}

export class RowOrder {
  /** Never empty, and with all fields of the primary key. */
  readonly fields: readonly OrderField[];
  readonly #scratch = new ByteWriter(256);

  constructor(shape: TableShape, fields: readonly OrderField[]) {
    this.fields = withKey(shape.keyFields, fields);
  }

  /** The field that decides first. */
  get lead(): OrderField {
    return this.fields[0] as OrderField;
  }

  /** The key of a row. */
  key(source: RowSource, base: number): Uint8Array {
    this.#scratch.length = 0;
    this.write(this.#scratch, source, base);
    return this.#scratch.finish();
  }

  /**
   * What the row with a key, and all that come before it, have in the field that decides first; undefined if nothing is
   * known of it. Rows that come after it may have it too. Of the key, which may be cut short, enough is held to tell.
   */
  leadUpTo(key: Uint8Array): Comparison | undefined {
    const { field, descending } = this.lead;
    const bytes = descending ? key.map((byte) => ~byte) : key;
    const typeId = keyTypeOf(field);
    const cut = readCutText(bytes, typeId);
    // Null comes first, or last when descending.
    const orNull = !descending;
    if (cut !== undefined) {
      const value = descending ? cut : prefixEnd(cut);
      return value && { kind: 'value', operator: descending ? '>=' : '<', value, orNull };
    }
    const value = readKeyComponent(bytes, 0, skipKeyComponent(bytes, 0, typeId), typeId);
    if (value === null) return descending ? undefined : { kind: 'null' };
    return { kind: 'value', operator: descending ? '>=' : '<=', value, orNull };
  }

  /** Appends the key of a row. */
  write(writer: ByteWriter, source: RowSource, base: number): void {
    for (let i = 0; i < this.fields.length; i++) {
      const { field, descending } = this.fields[i] as OrderField;
      const start = writer.length;
      writeOrderComponent(writer, source, base, field);
      if (!descending) continue;
      const { bytes } = writer;
      for (let at = start; at < writer.length; at++) bytes[at] = ~(bytes[at] as number);
    }
  }
}

/** Blobs have no place in keys, but their references order as the UUIDs that they are. */
export function keyTypeOf({ typeId }: LayoutField): TypeId {
  return typeId === Types.blob ? Types.uuid : typeId;
}

/** Appends what stands for a field's value in keys that hold every value whole. */
export function writeOrderComponent(writer: ByteWriter, source: RowSource, base: number, field: LayoutField): void {
  const { typeId } = field;
  if (isNull(source, base, field)) writer.u8(0);
  else if (typeId === Types.varchar || typeId === Types.bytes) writeText(writer, source, base, field);
  else {
    writeKeyComponent(writer, keyTypeOf(field), readValue(source, base, field) as OrderedValue);
  }
}

/** Bytes as in an index key, but all of them, straight from the row. */
function writeText(writer: ByteWriter, source: RowSource, base: number, field: LayoutField): void {
  const at = base + field.offset;
  const length = valueLength(source, base, field);
  const inline = length <= inlineBytes;
  const bytes = inline ? source.rows : source.heap;
  const start = inline ? at + 4 : heapPlace(source, at, length, field);
  writeWholeTextComponent(writer, bytes, start, start + length);
}
