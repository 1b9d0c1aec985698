/** Encodes documents as row bytes. Every value is checked here, before anything is written. */
import { copyRange, ByteWriter } from '../base/bytes.ts';
import { CorruptionError } from '../base/errors.ts';
import { describeValue } from '../base/messages.ts';
import { nearestName } from '../base/options.ts';
import { inlineBytes, nonAsciiFlag } from './row-layout.ts';
import type { LayoutField, RowLayout, RowSource } from './row-layout.ts';
import { Types } from './types.ts';
import type { TypeId } from './types.ts';
import { maxValueBytes, normalizeValue, ValueProblem, writeUuid } from './values.ts';

/** A field of a document cannot be encoded. The caller, which knows the table, throws an `EncodeError` for it. */
export class FieldProblem extends Error {
  readonly field: string;
  readonly value: unknown;
  constructor(field: string, value: unknown, message: string) {
    super(message);
    this.field = field;
    this.value = value;
  }
}

/** Returns the value of a field in a document; undefined if it has none. Properties that every object inherits do not count. */
export function documentValue(document: object, field: LayoutField): unknown {
  if (field.inherited && !Object.hasOwn(document, field.name)) return undefined;
  return (document as Record<string, unknown>)[field.name];
}

/** Throws unless a value is a document. */
export function checkDocument(document: unknown): asserts document is object {
  if (typeof document !== 'object' || document === null || Array.isArray(document)) {
    throw new FieldProblem('', document, `a row is an object of fields, not ${describeValue(document)}`);
  }
}

/**
 * Throws if a document has a key that is no field. `present` is the number of fields found in it. Mostly that is the number of
 * its keys, so counting the keys suffices, without an array of them.
 */
export function checkKeys(layout: RowLayout, document: object, present: number): void {
  let keys = 0;
  // oxlint-disable-next-line guard-for-in -- inherited keys only lead to the slower check
  for (const _ in document) keys++;
  if (keys !== present) refuseUnknown(layout, document);
}

/**
 * Returns the end of a sentence that says that a layout has no field of a name, with the likely intended field if there is one.
 */
export function noFieldText({ declared }: RowLayout, name: string): string {
  const meant = nearestName(
    name,
    declared.map((field) => field.name),
  );
  return `the schema has no field '${name}'${meant === undefined ? '' : `: did you mean ${meant}`}`;
}

function refuseUnknown(layout: RowLayout, document: object): void {
  for (const name of Object.keys(document)) {
    if (layout.field(name) === undefined) {
      const known = layout.declared.map((field) => field.name);
      const meant = nearestName(name, known);
      const hint = meant === undefined ? 'register it, or leave it out' : `did you mean '${meant}'`;
      throw new FieldProblem(
        name,
        (document as Record<string, unknown>)[name],
        `the schema has no field '${name}' (it has ${known.join(', ')}): ${hint}`,
      );
    }
  }
}

/** Appends a row of nulls to `rows` and returns its offset. */
export function appendNullRow(layout: RowLayout, rows: ByteWriter): number {
  const base = rows.length;
  rows.append(layout.nullRow);
  return base;
}

/** Writes a value that is not null into the row at `base`, which holds null there. */
export function writeField(rows: ByteWriter, base: number, heap: ByteWriter, field: LayoutField, value: unknown): void {
  if (!writePlain(rows, base + field.offset, field.typeId, value)) writeChecked(rows, base, heap, field, value);
  const at = base + field.nullByte;
  rows.bytes[at] = (rows.bytes[at] as number) & ~field.nullMask;
}

/**
 * Writes a value of the most frequent types that is stored as it is. Returns false for all others, and then has changed nothing:
 * {@link writeChecked} writes or refuses those.
 */
function writePlain(rows: ByteWriter, at: number, typeId: TypeId, value: unknown): boolean {
  if (typeof value === 'string') return typeId === Types.varchar && writeInlineAscii(rows, at, value);
  if (typeof value !== 'number') return false;
  switch (typeId) {
    case Types.float64:
      if (Number.isNaN(value)) return false;
      rows.view.setFloat64(at, value, true);
      return true;
    case Types.uint32:
      if (value >>> 0 !== value) return false;
      rows.view.setUint32(at, value, true);
      return true;
    case Types.int32:
      if ((value | 0) !== value) return false;
      rows.view.setInt32(at, value, true);
      return true;
    default:
      return false;
  }
}

function writeChecked(rows: ByteWriter, base: number, heap: ByteWriter, field: LayoutField, value: unknown): void {
  try {
    writeValue(rows, base + field.offset, heap, field.typeId, value);
  } catch (error) {
    if (error instanceof ValueProblem) throw new FieldProblem(field.name, value, error.message);
    throw error;
  }
}

function writeValue(rows: ByteWriter, at: number, heap: ByteWriter, typeId: TypeId, value: unknown): void {
  const normal = normalizeValue(typeId, value);
  const { view } = rows;
  switch (typeId) {
    case Types.varchar:
    case Types.json:
      return writeText(rows, at, heap, normal as string);
    case Types.bytes:
      return writeView(rows, at, heap, normal as Uint8Array);
    case Types.uint8:
    case Types.int8:
      return view.setUint8(at, normal as number);
    case Types.boolean:
      return view.setUint8(at, normal === true ? 1 : 0);
    case Types.uint16:
    case Types.int16:
      return view.setUint16(at, normal as number, true);
    case Types.uint32:
    case Types.int32:
      return view.setUint32(at, normal as number, true);
    case Types.uint64:
    case Types.int64:
      return view.setBigUint64(at, normal as bigint, true);
    case Types.float32:
      return view.setFloat32(at, normal as number, true);
    case Types.float64:
      return view.setFloat64(at, normal as number, true);
    case Types.timestamp:
      return view.setFloat64(at, (normal as Date).getTime(), true);
    case Types.uuid:
    case Types.blob:
      return writeUuid(normal as string, rows.bytes, at);
  }
}

function writeInlineAscii(rows: ByteWriter, at: number, text: string): boolean {
  const length = text.length;
  if (length > inlineBytes) return false;
  const { bytes } = rows;
  for (let i = 0; i < length; i++) {
    const unit = text.charCodeAt(i);
    if (unit > 0x7f) {
      bytes.fill(0, at + 4, at + 16);
      return false;
    }
    bytes[at + 4 + i] = unit;
  }
  bytes[at] = length;
  return true;
}

function writeText(rows: ByteWriter, at: number, heap: ByteWriter, text: string): void {
  if (text.length > maxValueBytes) throw new ValueProblem(`${text.length} characters are more than a row can hold`);
  const place = heap.length;
  const length = heap.utf8(text);
  rows.view.setUint32(at, length, true);
  if (length <= inlineBytes) {
    copyRange(heap.bytes, place, place + length, rows.bytes, at + 4);
    heap.length = place;
  } else {
    checkHeap(heap, length);
    copyRange(heap.bytes, place, place + 4, rows.bytes, at + 4);
    rows.view.setUint32(at + 8, place, true);
  }
  if (length !== text.length) markNonAscii(rows.view, at);
}

function markNonAscii(view: DataView, at: number): void {
  view.setUint32(at, (view.getUint32(at, true) | nonAsciiFlag) >>> 0, true);
}

function writeView(rows: ByteWriter, at: number, heap: ByteWriter, bytes: Uint8Array): void {
  if (bytes.length > maxValueBytes) throw new ValueProblem(`${bytes.length} bytes are more than a row can hold`);
  rows.view.setUint32(at, bytes.length, true);
  if (bytes.length <= inlineBytes) {
    copyRange(bytes, 0, bytes.length, rows.bytes, at + 4);
    return;
  }
  const place = heap.length;
  heap.append(bytes);
  checkHeap(heap, bytes.length);
  copyRange(bytes, 0, 4, rows.bytes, at + 4);
  rows.view.setUint32(at + 8, place, true);
}

function checkHeap(heap: ByteWriter, valueBytes: number): void {
  // Offsets have 32 bits. A batch flushes (or fails) long before its heap is that large.
  if (valueBytes > maxValueBytes || heap.length > 0xf0000000) {
    throw new ValueProblem(`the value and the rows before it do not fit in a batch (${heap.length} bytes): use a blob`);
  }
}

/**
 * Appends a copy of a row to `rows` and the values of its views to `heap`. Offsets in the copy count from the start of `heap`.
 * Returns the copy's offset.
 */
export function copyRow(
  layout: RowLayout,
  from: RowSource,
  fromBase: number,
  rows: ByteWriter,
  heap: ByteWriter,
): number {
  const base = rows.length;
  rows.appendRange(from.rows, fromBase, fromBase + layout.stride);
  moveHeapValues(layout, from, fromBase, rows, base, heap);
  return base;
}

/** Copies the heap values of a row, and makes the views of its copy at `base` point to them. */
export function moveHeapValues(
  layout: RowLayout,
  from: RowSource,
  fromBase: number,
  rows: ByteWriter,
  base: number,
  heap: ByteWriter,
): void {
  const { variableFields } = layout;
  for (let i = 0; i < variableFields.length; i++) {
    copyHeapValue(variableFields[i] as LayoutField, from, fromBase, rows, base, heap);
  }
}

/** Overwrites one field of the row at `base` with the same field of another row. */
export function copyField(
  field: LayoutField,
  width: number,
  from: RowSource,
  fromBase: number,
  rows: ByteWriter,
  base: number,
  heap: ByteWriter,
): void {
  copyRange(from.rows, fromBase + field.offset, fromBase + field.offset + width, rows.bytes, base + field.offset);
  const isNull = (from.rows[fromBase + field.nullByte] as number) & field.nullMask;
  const at = base + field.nullByte;
  rows.bytes[at] = ((rows.bytes[at] as number) & ~field.nullMask) | isNull;
  if (field.variable) copyHeapValue(field, from, fromBase, rows, base, heap);
}

function copyHeapValue(
  field: LayoutField,
  from: RowSource,
  fromBase: number,
  rows: ByteWriter,
  base: number,
  heap: ByteWriter,
): void {
  const at = fromBase + field.offset;
  const length = from.rowsView.getUint32(at, true) & ~nonAsciiFlag;
  if (length <= inlineBytes) return;
  const start = from.heapStart + from.rowsView.getUint32(at + 8, true);
  if (start + length > from.heapEnd) {
    throw new CorruptionError(from.name, `field '${field.name}' refers to bytes outside the heap`);
  }
  rows.view.setUint32(base + field.offset + 8, heap.length, true);
  heap.appendRange(from.heap, start, start + length);
}

/**
 * Rows in memory, one after the other, in buffers that grow. The offset of a row stays valid; the address of its bytes does
 * not.
 */
export class RowArena implements RowSource {
  readonly name: string;
  readonly writer: ByteWriter = new ByteWriter();
  readonly heapWriter: ByteWriter = new ByteWriter();
  readonly rowsStart = 0;
  readonly heapStart = 0;
  readonly text = undefined;

  /** `name`: the origin of the rows, for errors. */
  constructor(name: string) {
    this.name = name;
  }

  get rows(): Uint8Array {
    return this.writer.bytes;
  }

  get rowsView(): DataView {
    return this.writer.view;
  }

  get heap(): Uint8Array {
    return this.heapWriter.bytes;
  }

  get heapEnd(): number {
    return this.heapWriter.length;
  }

  get sizeBytes(): number {
    return this.writer.length + this.heapWriter.length;
  }

  /** Drops all bytes after these lengths. */
  rewind(rows: number, heap: number): void {
    this.writer.length = rows;
    this.heapWriter.length = heap;
  }
}
