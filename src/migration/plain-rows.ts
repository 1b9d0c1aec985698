/** Encoded rows in memory that are made one by one: from plain rows, or field by field from encoded ones. */
import { copyRange } from '../base/bytes.ts';
import { heapPlace, isNull } from '../format/row-decode.ts';
import { RowArena } from '../format/row-arena.ts';
import { appendNullRow, copyRow, writeField } from '../format/row-encode.ts';
import { inlineBytes, nonAsciiFlag, rowDeletedFlag } from '../format/row-layout.ts';
import type { LayoutField, RowLayout, RowSource } from '../format/row-layout.ts';
import { widthOf } from '../format/types.ts';
import type { PlainRow } from '../schema/migrate-function.ts';
import type { RowHit } from '../tree/tree.ts';

export class PlainRows extends RowArena {
  constructor() {
    super('memory/migration');
  }

  /** Adds a row with all fields of a layout and returns where it begins. Throws `FieldProblem`. */
  add(layout: RowLayout, row: PlainRow): number {
    const base = this.begin(layout);
    for (const field of layout.fields) {
      const value = row[field.name];
      if (value !== null && value !== undefined) this.write(base, field, value);
    }
    return base;
  }

  /** Adds a copy of a row of the same layout and returns where it begins: whatever else its source holds can go. */
  addCopy(layout: RowLayout, { source, base }: RowHit): number {
    return copyRow(layout, source, base, this.writer, this.heapWriter);
  }

  /** Adds a row that says that the row is gone, and returns where it begins. */
  addDeleted(layout: RowLayout): number {
    const base = this.begin(layout);
    this.rows[base] = (this.rows[base] as number) | rowDeletedFlag;
    return base;
  }

  /** Adds a row of nulls and returns where it begins. */
  begin(layout: RowLayout): number {
    return appendNullRow(layout, this.writer);
  }

  /** Sets a field that is null to a value that is not. Throws `FieldProblem`. */
  write(base: number, field: LayoutField, value: unknown): void {
    writeField(this.writer, base, this.heapWriter, field, value);
  }

  /** Sets a field that is null to that of a row in another layout, where it is of the same type. */
  copy(base: number, field: LayoutField, from: RowSource, fromBase: number, fromField: LayoutField): void {
    if (isNull(from, fromBase, fromField)) return;
    const { writer, heapWriter } = this;
    const at = base + field.offset;
    const fromAt = fromBase + fromField.offset;
    copyRange(from.rows, fromAt, fromAt + widthOf(field.typeId), writer.bytes, at);
    writer.bytes[base + field.nullByte] = (writer.bytes[base + field.nullByte] as number) & ~field.nullMask;
    if (!field.variable) return;
    const length = (from.rowsView.getUint32(fromAt, true) & ~nonAsciiFlag) >>> 0;
    if (length <= inlineBytes) return;
    const start = heapPlace(from, fromAt, length, fromField);
    writer.view.setUint32(at + 8, heapWriter.length, true);
    heapWriter.appendRange(from.heap, start, start + length);
  }
}
