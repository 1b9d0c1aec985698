/**
 * Rows with some of their fields. Values are copied one by one, with their length and nothing else, so that no byte of another field,
 * or of an earlier value, comes along.
 */
import { inlineBytes, nonAsciiFlag } from '../../format/row-layout.ts';
import type { LayoutField, RowLayout, RowSource } from '../../format/row-layout.ts';
import { heapPlace, isNull } from '../../format/row-decode.ts';
import { widthOf } from '../../format/types.ts';

interface CopiedField {
  readonly from: LayoutField;
  readonly to: LayoutField;
  readonly width: number;
}

/** Offset of the place in the heap in the view of a long value. */
const placeAt = 8;

export class RowProjection {
  readonly #to: RowLayout;
  readonly #fields: readonly CopiedField[];

  /** Every field of `to` must be one of `from`, with the same type. */
  constructor(from: RowLayout, to: RowLayout) {
    this.#to = to;
    this.#fields = to.fields.map((field) => {
      return { from: from.field(field.name) as LayoutField, to: field, width: widthOf(field.typeId) };
    });
  }

  /** Returns the rows that begin at `bases`, one behind the other from offset 0 on. Their long values stay in the heap of `source`. */
  rows(source: RowSource, bases: readonly number[]): RowSource {
    const { stride, nullRow } = this.#to;
    const rows = new Uint8Array(bases.length * stride);
    const view = new DataView(rows.buffer);
    for (let i = 0; i < bases.length; i++) {
      rows.set(nullRow, i * stride);
      for (const field of this.#fields) copyValue(field, source, bases[i] as number, rows, view, i * stride);
    }
    const { heap, heapStart, heapEnd, name } = source;
    return { rows, rowsView: view, rowsStart: 0, heap, heapStart, heapEnd, name, text: undefined };
  }
}

function copyValue(
  { from, to, width }: CopiedField,
  source: RowSource,
  base: number,
  rows: Uint8Array,
  view: DataView,
  at: number,
): void {
  if (isNull(source, base, from)) return;
  rows[at + to.nullByte] = (rows[at + to.nullByte] as number) & ~to.nullMask;
  const value = base + from.offset;
  let bytes = width;
  if (from.variable) {
    const length = source.rowsView.getUint32(value, true) & ~nonAsciiFlag;
    if (length <= inlineBytes) bytes = 4 + length;
    else {
      // Throws for a place outside the heap.
      heapPlace(source, value, length, from);
      bytes = placeAt;
      view.setUint32(at + to.offset + placeAt, source.rowsView.getUint32(value + placeAt, true), true);
    }
  }
  rows.set(source.rows.subarray(value, value + bytes), at + to.offset);
}
