/**
 * An order of rows, by one or several fields and finally by primary key, as keys whose bytes sort as the rows do. Unlike keys of indexes
 * they hold every value in full. The bytes of descending fields are inverted.
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
import { bytesAtPath, heapPlace, isNull, readValue } from '../../format/row-decode.ts';
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

/** Returns the length in bytes of the value of a field of variable length. The value must not be null. */
export function valueLength(source: RowSource, base: number, field: LayoutField): number {
  if (field.path !== undefined) return bytesAtPath(source, base, field).length;
  return source.rowsView.getUint32(base + field.offset, true) & ~nonAsciiFlag;
}

/** Appends the missing fields of the primary key, ascending, to an order, so that no two rows tie. */
export function withKey(keyFields: readonly LayoutField[], order: readonly OrderField[]): readonly OrderField[] {
  if (keyFields.length === 1 && order.some(({ field }) => field === keyFields[0])) return order;
  const missing = keyFields.filter((keyField) => !order.some(({ field }) => field === keyField));
  return missing.length === 0 ? order : [...order, ...missing.map((field) => ({ field, descending: false }))];
}

export class RowOrder {
  /** The fields of the order, with all fields of the primary key. */
  readonly fields: readonly OrderField[];
  readonly #scratch = new ByteWriter(256);

  constructor(shape: TableShape, fields: readonly OrderField[]) {
    this.fields = withKey(shape.keyFields, fields);
  }

  /** The first field of the order. */
  get lead(): OrderField {
    return this.fields[0] as OrderField;
  }

  /** Returns the key of a row. */
  key(source: RowSource, base: number): Uint8Array {
    this.#scratch.length = 0;
    this.write(this.#scratch, source, base);
    return this.#scratch.finish();
  }

  /**
   * Returns a comparison of the first field that the row with a key and all rows before it match; undefined if there is none. Rows
   * after it may match as well. The key may be cut short, but is long enough for this.
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

/** Returns the type of a field's values in keys. Blobs cannot be indexed, but their references are UUIDs and sort as such. */
export function keyTypeOf({ typeId }: LayoutField): TypeId {
  return typeId === Types.blob ? Types.uuid : typeId;
}

/** Appends the component of a field's value to a key that holds every value in full. */
export function writeOrderComponent(writer: ByteWriter, source: RowSource, base: number, field: LayoutField): void {
  const { typeId } = field;
  if (isNull(source, base, field)) writer.u8(0);
  else if (typeId === Types.varchar || typeId === Types.bytes) writeText(writer, source, base, field);
  else {
    writeKeyComponent(writer, keyTypeOf(field), readValue(source, base, field) as OrderedValue);
  }
}

/** Appends a text or bytes, copied from the row: encoded as in an index key, but in full. */
function writeText(writer: ByteWriter, source: RowSource, base: number, field: LayoutField): void {
  if (field.path !== undefined) {
    const value = bytesAtPath(source, base, field);
    writeWholeTextComponent(writer, value, 0, value.length);
    return;
  }
  const at = base + field.offset;
  const length = valueLength(source, base, field);
  const inline = length <= inlineBytes;
  const bytes = inline ? source.rows : source.heap;
  const start = inline ? at + 4 : heapPlace(source, at, length, field);
  writeWholeTextComponent(writer, bytes, start, start + length);
}
