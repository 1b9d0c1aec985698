/** Decodes row bytes: one field, or a whole row as a new plain object. Also compares encoded rows, wherever their bytes are. */
import { copyBytes } from '#platform';
import type { Bytes } from '#platform';
import { isError } from '../base/brands.ts';
import { encodeUtf8, readLatin1, readShortAscii, readUtf8, shortTextBytes, compareRanges } from '../base/bytes.ts';
import { CorruptionError } from '../base/errors.ts';
import { formatUuid } from '../base/ids.ts';
import { valueOfPath } from './json-path.ts';
import { inlineBytes, nonAsciiFlag, nullObjectOf } from './row-layout.ts';
import type { FieldPath, LayoutField, NullObject, RowLayout, RowSource } from './row-layout.ts';
import { maxTimestampMs, Types } from './types.ts';
import type { TypeId } from './types.ts';

/** Whether the field of the row at `base` is null. */
export function isNull(source: RowSource, base: number, field: LayoutField): boolean {
  if (field.path !== undefined) return readPath(source, base, field.path, field.typeId) === null;
  return ((source.rows[base + field.nullByte] as number) & field.nullMask) !== 0;
}

function corrupt(source: RowSource, field: LayoutField, what: string): never {
  throw new CorruptionError(source.name, `field '${field.name}' holds ${what}`);
}

/** Returns the offset in `source.heap` of a value longer than {@link inlineBytes}. Checks bounds. */
export function heapPlace(source: RowSource, at: number, length: number, field: LayoutField): number {
  const start = source.heapStart + source.rowsView.getUint32(at + 8, true);
  if (start + length > source.heapEnd) corrupt(source, field, 'a reference outside the heap');
  return start;
}

/** Reads the text of a 16-byte view at `at`. */
export function readText(source: RowSource, at: number, field: LayoutField): string {
  const raw = source.rowsView.getUint32(at, true);
  if (raw <= shortTextBytes) return readShortAscii(source.rowsView.getUint32(at + 4, true), raw);
  const length = (raw & ~nonAsciiFlag) >>> 0;
  const inline = length <= inlineBytes;
  const start = inline ? at + 4 : heapPlace(source, at, length, field);
  const bytes = inline ? source.rows : source.heap;
  if (raw >= nonAsciiFlag) {
    try {
      return readUtf8(bytes, start, start + length);
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

function readBytes(source: RowSource, at: number, field: LayoutField): Bytes {
  const length = source.rowsView.getUint32(at, true) & ~nonAsciiFlag;
  if (length <= inlineBytes) return copyBytes(source.rows.subarray(at + 4, at + 4 + length));
  const start = heapPlace(source, at, length, field);
  return copyBytes(source.heap.subarray(start, start + length));
}

function readJson(source: RowSource, at: number, field: LayoutField): unknown {
  try {
    return JSON.parse(readText(source, at, field));
  } catch (error) {
    if (isError(error) && error.name === 'SyntaxError') corrupt(source, field, 'text that is not JSON');
    throw error;
  }
}

function readTimestamp(source: RowSource, at: number, field: LayoutField): Date {
  const time = source.rowsView.getFloat64(at, true);
  if (!(Math.abs(time) <= maxTimestampMs)) corrupt(source, field, 'a time that no Date can hold');
  return new Date(time);
}

/** Reads the value at a path as a type, or null. */
function readPath(source: RowSource, base: number, { of, keys }: FieldPath, typeId: TypeId): unknown {
  return isNull(source, base, of) ? null : valueOfPath(readJson(source, base + of.offset, of), keys, typeId);
}

/** Returns the bytes of a text, or of bytes, at a path. It must not be null. */
export function bytesAtPath(source: RowSource, base: number, field: LayoutField): Uint8Array {
  const value = readField(source, base, field) as string | Uint8Array;
  return typeof value === 'string' ? encodeUtf8(value) : value;
}

/** Reads the value of a field that is not null. */
export function readValue(source: RowSource, base: number, field: LayoutField): unknown {
  if (field.path !== undefined) return readPath(source, base, field.path, field.typeId);
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
      return formatUuid(source.rows, at);
    case Types.bytes:
      return readBytes(source, at, field);
  }
}

/**
 * Reads a field like {@link readField}, but not a path. The commonest types need no further call, which would cost more than the reading.
 */
function readQuickly(source: RowSource, base: number, field: LayoutField): unknown {
  const view = source.rowsView;
  if ((view.getUint8(base + field.nullByte) & field.nullMask) !== 0) return null;
  const at = base + field.offset;
  switch (field.typeId) {
    case Types.varchar:
      return readText(source, at, field);
    case Types.uint32:
      return view.getUint32(at, true);
    case Types.int32:
      return view.getInt32(at, true);
    case Types.float64:
      return view.getFloat64(at, true);
    default:
      return readValue(source, base, field);
  }
}

/** Reads the value of a field, or null. */
export function readField(source: RowSource, base: number, field: LayoutField): unknown {
  if (field.path !== undefined) return readPath(source, base, field.path, field.typeId);
  return isNull(source, base, field) ? null : readValue(source, base, field);
}

/**
 * Decodes rows with the same fields. Each row begins as a copy of a template with all fields. So all rows have the same shape
 * in the runtime and take no extra memory, and a field called `__proto__` does not set the prototype.
 */
export class RowDecoder {
  readonly #fields: readonly LayoutField[];
  readonly #template: NullObject;
  readonly #hasPaths: boolean;

  constructor(fields: readonly LayoutField[], template: NullObject = nullObjectOf(fields)) {
    this.#fields = fields;
    this.#template = template;
    this.#hasPaths = fields.some(({ path }) => path);
  }

  /** Decodes the row at `base` to a new plain object. */
  decode(source: RowSource, base: number): Record<string, unknown> {
    const row: Record<string, unknown> = { ...this.#template };
    const fields = this.#fields;
    const { length } = fields;
    if (this.#hasPaths) {
      for (const field of fields) row[field.name] = readField(source, base, field);
      return row;
    }
    // The first fields are stored line by line, because the runtime caches the location of the property for each store in the
    // code. In a loop, one store would serve all fields and look up each name, which takes twice as long.
    let field = fields[0] as LayoutField;
    row[field.name] = readQuickly(source, base, field);
    if (length === 1) return row;
    field = fields[1] as LayoutField;
    row[field.name] = readQuickly(source, base, field);
    if (length === 2) return row;
    field = fields[2] as LayoutField;
    row[field.name] = readQuickly(source, base, field);
    if (length === 3) return row;
    field = fields[3] as LayoutField;
    row[field.name] = readQuickly(source, base, field);
    if (length === 4) return row;
    field = fields[4] as LayoutField;
    row[field.name] = readQuickly(source, base, field);
    if (length === 5) return row;
    field = fields[5] as LayoutField;
    row[field.name] = readQuickly(source, base, field);
    if (length === 6) return row;
    field = fields[6] as LayoutField;
    row[field.name] = readQuickly(source, base, field);
    if (length === 7) return row;
    field = fields[7] as LayoutField;
    row[field.name] = readQuickly(source, base, field);
    for (let i = 8; i < length; i++) {
      field = fields[i] as LayoutField;
      row[field.name] = readQuickly(source, base, field);
    }
    return row;
  }
}

/** Returns a decoder for all fields of a layout, in the order of the definition. */
export function rowDecoder({ declared, nullObject }: RowLayout): RowDecoder {
  return new RowDecoder(declared, nullObject);
}

/** Decodes the row at `base` to a new plain object with all fields, in the order of the definition. */
export function decodeRow(layout: RowLayout, source: RowSource, base: number): Record<string, unknown> {
  return rowDecoder(layout).decode(source, base);
}

/** A row: a source, and the offset in it. */
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
