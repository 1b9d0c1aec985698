/** Row bytes to values: one field at a time, or a whole row as a fresh plain object. */
import { CorruptionError } from '../base/errors.ts';
import { decodeUtf8 } from '../base/bytes.ts';
import { readLatin1 } from '../base/text.ts';
import { inlineBytes, nonAsciiFlag } from './row-layout.ts';
import type { LayoutField, RowLayout, RowSource } from './row-layout.ts';
import { maxTimestampMs, Types } from './types.ts';
import { readUuid } from './values.ts';

/** Whether the field of the row at `base` is null. */
export function isNull(source: RowSource, base: number, field: LayoutField): boolean {
  return ((source.rows[base + field.nullByte] as number) & field.nullMask) !== 0;
}

function corrupt(source: RowSource, field: LayoutField, what: string): never {
  throw new CorruptionError(source.name, `field '${field.name}' holds ${what}`);
}

/** Start of a view's bytes in `source.heap` if they are there (longer than {@link inlineBytes}), bounds checked. */
export function heapPlace(source: RowSource, at: number, length: number, field: LayoutField): number {
  const start = source.heapStart + source.rowsView.getUint32(at + 8, true);
  if (start + length > source.heapEnd) corrupt(source, field, 'a place outside the heap');
  return start;
}

/** The text of a 16-byte view at `at`. */
export function readText(source: RowSource, at: number, field: LayoutField): string {
  const raw = source.rowsView.getUint32(at, true);
  const length = (raw & ~nonAsciiFlag) >>> 0;
  const inline = length <= inlineBytes;
  const start = inline ? at + 4 : heapPlace(source, at, length, field);
  const bytes = inline ? source.rows : source.heap;
  if (raw >= nonAsciiFlag) {
    try {
      return decodeUtf8(bytes.subarray(start, start + length));
    } catch {
      return corrupt(source, field, 'text that is not UTF-8');
    }
  }
  if (source.text !== undefined) {
    const from = start - source.rowsStart;
    return source.text.slice(from, from + length);
  }
  return readLatin1(bytes, start, start + length);
}

function readBytes(source: RowSource, at: number, field: LayoutField): Buffer {
  const length = source.rowsView.getUint32(at, true) & ~nonAsciiFlag;
  if (length <= inlineBytes) return Buffer.from(source.rows.subarray(at + 4, at + 4 + length));
  const start = heapPlace(source, at, length, field);
  return Buffer.from(source.heap.subarray(start, start + length));
}

function readJson(source: RowSource, at: number, field: LayoutField): unknown {
  try {
    return JSON.parse(readText(source, at, field));
  } catch (error) {
    if (error instanceof SyntaxError) corrupt(source, field, 'text that is not JSON');
    throw error;
  }
}

function readTimestamp(source: RowSource, at: number, field: LayoutField): Date {
  const time = source.rowsView.getFloat64(at, true);
  if (!(Math.abs(time) <= maxTimestampMs)) corrupt(source, field, 'a time that no Date can hold');
  return new Date(time);
}

/** Value of a field that is not null. */
export function readValue(source: RowSource, base: number, field: LayoutField): unknown {
  const at = base + field.offset;
  const view = source.rowsView;
  switch (field.typeId) {
    case Types.uint8:
      return view.getUint8(at);
    case Types.uint16:
      return view.getUint16(at, true);
    case Types.uint32:
      return view.getUint32(at, true);
    case Types.uint64:
      return view.getBigUint64(at, true);
    case Types.int8:
      return view.getInt8(at);
    case Types.int16:
      return view.getInt16(at, true);
    case Types.int32:
      return view.getInt32(at, true);
    case Types.int64:
      return view.getBigInt64(at, true);
    case Types.float64:
      return view.getFloat64(at, true);
    case Types.float32:
      return view.getFloat32(at, true);
    case Types.varchar:
      return readText(source, at, field);
    case Types.boolean:
      return view.getUint8(at) !== 0;
    case Types.timestamp:
      return readTimestamp(source, at, field);
    case Types.json:
      return readJson(source, at, field);
    case Types.uuid:
    case Types.blob:
      return readUuid(source.rows, at);
    case Types.bytes:
      return readBytes(source, at, field);
  }
}

/** Value of a field, null if it is null. */
export function readField(source: RowSource, base: number, field: LayoutField): unknown {
  return isNull(source, base, field) ? null : readValue(source, base, field);
}

/** Sets a property even where its name is `__proto__`, which assignment would take for the prototype. */
export function setProperty(row: Record<string, unknown>, field: LayoutField, value: unknown): void {
  if (field.inherited) {
    Object.defineProperty(row, field.name, { value, writable: true, enumerable: true, configurable: true });
  } else row[field.name] = value;
}

/** The row at `base` as a fresh plain object with the given fields, by default all, in the order of the definition. */
export function decodeRow(
  layout: RowLayout,
  source: RowSource,
  base: number,
  fields: readonly LayoutField[] = layout.declared,
): Record<string, unknown> {
  const row: Record<string, unknown> = {};
  for (let i = 0; i < fields.length; i++) {
    const field = fields[i] as LayoutField;
    const value = readField(source, base, field);
    if (field.inherited) setProperty(row, field, value);
    else row[field.name] = value;
  }
  return row;
}
