/** Whether encoded rows hold the same values, wherever their bytes are. */
import { compareRanges } from '../base/bytes.ts';
import { heapPlace, isNull } from './row-decode.ts';
import { inlineBytes, nonAsciiFlag } from './row-layout.ts';
import type { LayoutField, RowLayout, RowSource } from './row-layout.ts';

/** A row and where it begins in its source. */
interface PlacedRow {
  readonly source: RowSource;
  readonly base: number;
}

/** Whether two rows of a layout hold the same values. */
export function sameRow(layout: RowLayout, a: PlacedRow, b: PlacedRow): boolean {
  const { stride, variableFields } = layout;
  if (compareRanges(a.source.rows, a.base, a.base + stride, b.source.rows, b.base, b.base + stride) === 0) {
    if (variableFields.length === 0 || a.source === b.source) return true;
  }
  return layout.fields.every((field) => sameField(layout, field, a, b));
}

/** Whether two rows of a layout hold the same value in a field. */
export function sameField({ fields, stride }: RowLayout, field: LayoutField, a: PlacedRow, b: PlacedRow): boolean {
  if (isNull(a.source, a.base, field) !== isNull(b.source, b.base, field)) return false;
  const [from, to] = [field.offset, fields[field.index + 1]?.offset ?? stride];
  if (!field.variable || isNull(a.source, a.base, field)) {
    return compareRanges(a.source.rows, a.base + from, a.base + to, b.source.rows, b.base + from, b.base + to) === 0;
  }
  const [ours, theirs] = [a, b].map(({ source, base }) => valueRange(source, base + from, field)) as [Range, Range];
  return compareRanges(ours.bytes, ours.start, ours.end, theirs.bytes, theirs.start, theirs.end) === 0;
}

interface Range {
  readonly bytes: Uint8Array;
  readonly start: number;
  readonly end: number;
}

function valueRange(source: RowSource, at: number, field: LayoutField): Range {
  const length = (source.rowsView.getUint32(at, true) & ~nonAsciiFlag) >>> 0;
  if (length <= inlineBytes) return { bytes: source.rows, start: at + 4, end: at + 4 + length };
  const start = heapPlace(source, at, length, field);
  return { bytes: source.heap, start, end: start + length };
}
