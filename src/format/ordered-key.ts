/**
 * Order-preserving keys: their bytes, compared as unsigned values, have the order of the values (base/bytes.ts).
 *
 * A key is a sequence of components. Each begins with a tag (0 null, 1 value) and delimits itself, so a compound key is the
 * concatenation of its components, and an index entry is [indexed value][primary key]. Numbers are big-endian with the sign bit
 * flipped; strings and bytes escape 0x00 as 0x00 0xFF and end with 0x00 0x01, or with 0x00 0x02 if only the first {@link
 * maxKeyBytes} bytes are held. docs/format.md has the layout to the byte.
 *
 * The component of an index entry that holds the result of a function exists for every row: results
 * of another type than the declared one, and failures, have their own tags, so the index shows which rows they are.
 *
 * Components can also be copied to the field of a row byte by byte, without making a value. All key types come out unchanged,
 * except for truncated text, and -0, which keys hold as 0.
 */
import { copyBytes } from '#platform';
import { encodeUtf8, decodeUtf8, copyRange } from '../base/bytes.ts';
import type { ByteWriter, OrderedValue } from '../base/bytes.ts';
import { formatUuid } from '../base/ids.ts';
import { inlineBytes, nonAsciiFlag } from './row-layout.ts';
import { Types, maxTimestampMs, typeName, widthOf, bigintBounds, isIntegerOf } from './types.ts';
import type { TypeId } from './types.ts';
import { maxKeyBytes, writeUuid } from './values.ts';

const tagNull = 0;
const tagValue = 1;
const escape = 0x00;
const escapedZero = 0xff;
const endWhole = 0x01;
const endTruncated = 0x02;

/** Malformed key bytes. The caller, which knows the object's name, throws a `CorruptionError` for it. */
export class MalformedKey extends Error {}

function writeText(writer: ByteWriter, bytes: Uint8Array, start: number, end: number, maxBytes = maxKeyBytes): void {
  const whole = end - start <= maxBytes;
  const length = whole ? end - start : maxBytes;
  writer.ensure(length * 2 + 2);
  const out = writer.bytes;
  let at = writer.length;
  for (let i = 0; i < length; i++) {
    const byte = bytes[start + i] as number;
    out[at++] = byte;
    if (byte === escape) out[at++] = escapedZero;
  }
  out[at++] = escape;
  out[at++] = whole ? endWhole : endTruncated;
  writer.length = at;
}

function writeWhole(writer: ByteWriter, bytes: Uint8Array): void {
  writeText(writer, bytes, 0, bytes.length);
}

/** Appends a component for the bytes of a text or of a bytes field, without making a value first. */
export function writeTextComponent(writer: ByteWriter, bytes: Uint8Array, start: number, end: number): void {
  writer.ensure(1);
  writer.bytes[writer.length++] = tagValue;
  writeText(writer, bytes, start, end);
}

/** Appends a component with all bytes, even more than a stored key holds. */
export function writeWholeTextComponent(writer: ByteWriter, bytes: Uint8Array, start: number, end: number): void {
  writer.ensure(1);
  writer.bytes[writer.length++] = tagValue;
  writeText(writer, bytes, start, end, Number.POSITIVE_INFINITY);
}

/** Appends a component in the form of a stored key, truncated if it is long. Returns whether it was truncated. */
export function writeHeldComponent(
  writer: ByteWriter,
  key: Uint8Array,
  start: number,
  end: number,
  typeId: TypeId,
): boolean {
  const isText = (typeId === Types.varchar || typeId === Types.bytes) && key[start] === tagValue;
  if (!isText || end - start <= maxKeyBytes) {
    writer.appendRange(key, start, end);
    return false;
  }
  const text = readText(key, start + 1, end - 2);
  writeTextComponent(writer, text, 0, text.length);
  return text.length > maxKeyBytes;
}

/** Writes short ASCII text without zeros, the common case, without an encoder. Returns false if the text is another one. */
function writeShortAscii(writer: ByteWriter, text: string): boolean {
  const length = text.length;
  if (length > 64) return false;
  writer.ensure(length + 2);
  const out = writer.bytes;
  let at = writer.length;
  for (let i = 0; i < length; i++) {
    const unit = text.charCodeAt(i);
    if (unit === 0 || unit > 0x7f) return false;
    out[at++] = unit;
  }
  out[at++] = escape;
  out[at++] = endWhole;
  writer.length = at;
  return true;
}

function flipFloat64(view: DataView, at: number): void {
  // Negative: invert all bits; positive: set the sign bit. Then the bytes sort like the numbers.
  const high = view.getUint32(at, false);
  if (high >= 0x80000000) {
    view.setUint32(at, ~high >>> 0, false);
    view.setUint32(at + 4, ~view.getUint32(at + 4, false) >>> 0, false);
  } else view.setUint32(at, (high | 0x80000000) >>> 0, false);
}

function unflipFloat64(high: number, low: number): number {
  const scratch = new DataView(new ArrayBuffer(8));
  const negative = high < 0x80000000;
  scratch.setUint32(0, negative ? ~high >>> 0 : (high & 0x7fffffff) >>> 0, false);
  scratch.setUint32(4, negative ? ~low >>> 0 : low, false);
  return scratch.getFloat64(0, false);
}

function writeFloat(view: DataView, at: number, typeId: TypeId, value: number): void {
  if (typeId === Types.float64) {
    view.setFloat64(at, value, false);
    flipFloat64(view, at);
    return;
  }
  view.setFloat32(at, value, false);
  const raw = view.getUint32(at, false);
  view.setUint32(at, (raw >= 0x80000000 ? ~raw : raw | 0x80000000) >>> 0, false);
}

/** Appends the component of a float that keeps the sign of -0, which then sorts before 0. */
export function writeSignedComponent(writer: ByteWriter, typeId: TypeId, value: number): void {
  writer.ensure(9);
  writer.bytes[writer.length++] = tagValue;
  writeFloat(writer.view, writer.length, typeId, value);
  writer.length += widthOf(typeId);
}

const timestampBias = 0x8000_0000_0000_0000n;

/** Appends one component. The value must be null or normalized (values.ts). */
export function writeKeyComponent(writer: ByteWriter, typeId: TypeId, value: OrderedValue): void {
  writer.ensure(18);
  if (value === null) {
    writer.bytes[writer.length++] = tagNull;
    return;
  }
  writer.bytes[writer.length++] = tagValue;
  const at = writer.length;
  const { view, bytes } = writer;
  switch (typeId) {
    case Types.varchar:
      if (!writeShortAscii(writer, value as string)) writeWhole(writer, encodeUtf8(value as string));
      return;
    case Types.bytes:
      writeWhole(writer, value as Uint8Array);
      return;
    case Types.uint8:
      bytes[at] = value as number;
      break;
    case Types.boolean:
      bytes[at] = value === true ? 1 : 0;
      break;
    case Types.int8:
      bytes[at] = (value as number) + 0x80;
      break;
    case Types.uint16:
      view.setUint16(at, value as number, false);
      break;
    case Types.int16:
      view.setUint16(at, (value as number) + 0x8000, false);
      break;
    case Types.uint32:
      view.setUint32(at, value as number, false);
      break;
    case Types.int32:
      view.setUint32(at, (value as number) + 0x80000000, false);
      break;
    case Types.uint64:
      view.setBigUint64(at, value as bigint, false);
      break;
    case Types.int64:
      view.setBigUint64(at, (value as bigint) + timestampBias, false);
      break;
    case Types.float64:
    case Types.float32:
      writeFloat(view, at, typeId, value === 0 ? 0 : (value as number));
      break;
    case Types.timestamp:
      view.setBigUint64(at, BigInt((value as Date).getTime()) + timestampBias, false);
      break;
    case Types.uuid:
      writeUuid(value as string, bytes, at);
      break;
    default:
      throw new MalformedKey(`a ${typeName(typeId)} field cannot be a key`);
  }
  writer.length = at + widthOf(typeId);
}

/** Returns the end of the component that begins at `at`. Throws {@link MalformedKey} if it does not end within the key. */
export function skipKeyComponent(key: Uint8Array, at: number, typeId: TypeId): number {
  const tag = key[at];
  if (tag === tagNull) return at + 1;
  if (tag !== tagValue) throw new MalformedKey(`unknown key tag ${tag}`);
  if (typeId !== Types.varchar && typeId !== Types.bytes) {
    const end = at + 1 + widthOf(typeId);
    if (end > key.length) throw new MalformedKey('key ends within a component');
    return end;
  }
  for (let i = at + 1; i + 1 < key.length; i++) {
    if (key[i] !== escape) continue;
    const next = key[i + 1];
    if (next === endWhole || next === endTruncated) return i + 2;
    if (next !== escapedZero) throw new MalformedKey(`unknown escape ${next} in a key`);
    i++;
  }
  throw new MalformedKey('key ends within a component');
}

/** Returns the end of the component at `at` if it is within the first `limit` bytes of a key that is well formed; otherwise -1. */
export function endWithin(key: Uint8Array, at: number, limit: number, typeId: TypeId): number {
  if (at >= limit) return -1;
  if (key[at] === tagNull) return at + 1;
  if (typeId !== Types.varchar && typeId !== Types.bytes) {
    const end = at + 1 + widthOf(typeId);
    return end <= limit ? end : -1;
  }
  for (let i = at + 1; i + 1 < limit; i++) {
    if (key[i] !== escape) continue;
    if (key[i + 1] !== escapedZero) return i + 2;
    i++;
  }
  return -1;
}

/** Whether a text component that ends at `end` holds only the first bytes of its value. */
export function isTruncatedComponent(key: Uint8Array, end: number, typeId: TypeId): boolean {
  return (
    (typeId === Types.varchar || typeId === Types.bytes) &&
    end >= 3 &&
    key[end - 1] === endTruncated &&
    key[end - 2] === escape
  );
}

function readText(key: Uint8Array, start: number, end: number): Uint8Array {
  const bytes = new Uint8Array(end - start);
  let length = 0;
  for (let i = start; i < end; i++) {
    bytes[length++] = key[i] as number;
    if (key[i] === escape) i++;
  }
  return bytes.subarray(0, length);
}

/**
 * If a key was cut off within the text or bytes that it begins with, returns the part of them that it holds; else undefined.
 */
export function readCutText(key: Uint8Array, typeId: TypeId): Uint8Array | undefined {
  if ((typeId !== Types.varchar && typeId !== Types.bytes) || key[0] !== tagValue) return undefined;
  let at = 1;
  while (at < key.length && (key[at] !== escape || key[at + 1] === escapedZero)) at += key[at] === escape ? 2 : 1;
  // The rest may be half of an escape.
  return at + 1 < key.length ? undefined : readText(key, 1, at);
}

/** Returns the length of UTF-8 text without a character that was cut in two at its end. */
function wholeCharacters(text: Uint8Array): number {
  let last = text.length - 1;
  while (last >= 0 && text.length - last < 4 && ((text[last] as number) & 0xc0) === 0x80) last--;
  const first = text[last] ?? 0;
  const expected = first < 0xc0 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
  return text.length - last < expected ? last : text.length;
}

/**
 * Returns the value of the component from `at` to `end` (from {@link skipKeyComponent}). Of a truncated text it returns the
 * part that is held. Throws {@link MalformedKey}.
 */
export function readKeyComponent(key: Uint8Array, at: number, end: number, typeId: TypeId): OrderedValue {
  if (key[at] === tagNull) return null;
  const start = at + 1;
  const view = new DataView(key.buffer, key.byteOffset + start, end - start);
  switch (typeId) {
    case Types.varchar:
      try {
        const text = readText(key, start, end - 2);
        return decodeUtf8(key[end - 1] === endTruncated ? text.subarray(0, wholeCharacters(text)) : text);
      } catch (cause) {
        throw new MalformedKey('key holds text that is not UTF-8', { cause });
      }
    case Types.bytes:
      return copyBytes(readText(key, start, end - 2));
    case Types.uint8:
      return view.getUint8(0);
    case Types.boolean:
      return view.getUint8(0) !== 0;
    case Types.int8:
      return view.getUint8(0) - 0x80;
    case Types.uint16:
      return view.getUint16(0, false);
    case Types.int16:
      return view.getUint16(0, false) - 0x8000;
    case Types.uint32:
      return view.getUint32(0, false);
    case Types.int32:
      return view.getUint32(0, false) - 0x80000000;
    case Types.uint64:
      return view.getBigUint64(0, false);
    case Types.int64:
      return view.getBigUint64(0, false) - timestampBias;
    case Types.float64:
      return unflipFloat64(view.getUint32(0, false), view.getUint32(4, false));
    case Types.float32: {
      const raw = view.getUint32(0, false);
      const scratch = new DataView(new ArrayBuffer(4));
      scratch.setUint32(0, (raw >= 0x80000000 ? raw & 0x7fffffff : ~raw) >>> 0, false);
      return scratch.getFloat32(0, false);
    }
    case Types.timestamp: {
      const time = Number(view.getBigUint64(0, false) - timestampBias);
      if (Math.abs(time) > maxTimestampMs) throw new MalformedKey('key holds a time that no Date can hold');
      return new Date(time);
    }
    case Types.uuid:
      return formatUuid(key, start);
    default:
      throw new MalformedKey(`a ${typeName(typeId)} field cannot be a key`);
  }
}

/**
 * Tags of a result of another type than the declared one, and of a row on which the function failed; they sort after all
 * values.
 */
export const tagOther = 2;
const tagFailed = 3;

const lowerCaseUuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

/**
 * Whether a result is null or of the index's type. Results with equal components are then equal by `===`, as far as keys hold
 * them.
 */
export function isOfResultType(typeId: TypeId, result: unknown): result is OrderedValue {
  if (result === null) return true;
  switch (typeId) {
    case Types.varchar:
      return typeof result === 'string' && result.isWellFormed();
    case Types.uuid:
      return typeof result === 'string' && lowerCaseUuid.test(result);
    case Types.boolean:
      return typeof result === 'boolean';
    case Types.float64:
      return typeof result === 'number' && !Number.isNaN(result);
    case Types.float32:
      return typeof result === 'number' && Math.fround(result) === result;
    case Types.uint64:
    case Types.int64: {
      const bounds = bigintBounds(typeId);
      return typeof result === 'bigint' && bounds !== undefined && result >= bounds.min && result <= bounds.max;
    }
    default:
      return isIntegerOf(typeId, result);
  }
}

/** Appends the component of a result. */
export function writeResult(writer: ByteWriter, typeId: TypeId, result: unknown): void {
  if (isOfResultType(typeId, result)) writeKeyComponent(writer, typeId, result);
  else writer.u8(tagOther);
}

/** Appends the component of a failure. */
export function writeFailure(writer: ByteWriter): void {
  writer.u8(tagFailed);
}

/** Returns the end of the component of a result at the beginning of a key. Throws `MalformedKey`. */
export function endOfResult(key: Uint8Array, typeId: TypeId): number {
  const tag = key[0];
  if (tag === tagOther || tag === tagFailed) return 1;
  return skipKeyComponent(key, 0, typeId);
}

/** Whether an entry belongs to a row on which the function failed. */
export function isFailedEntry(key: Uint8Array): boolean {
  if (key.length === 0) throw new MalformedKey('key ends within a component');
  return key[0] === tagFailed;
}

/** Whether keys do not distinguish 0 and -0 of a type. */
export function mergesZeros(typeId: TypeId): boolean {
  return typeId === Types.float64 || typeId === Types.float32;
}

/** Copies a number from big-endian to little-endian. The first byte is XORed with `mask`, all others with `rest`. */
function reverse(
  key: Uint8Array,
  start: number,
  rows: Uint8Array,
  at: number,
  width: number,
  mask: number,
  rest: number,
): void {
  const last = width - 1;
  rows[at + last] = (key[start] as number) ^ mask;
  for (let i = 1; i < width; i++) rows[at + last - i] = (key[start + i] as number) ^ rest;
}

function uint32At(key: Uint8Array, at: number): number {
  const low = ((key[at + 1] as number) << 16) | ((key[at + 2] as number) << 8) | (key[at + 3] as number);
  return (key[at] as number) * 0x1000000 + low;
}

/** Copies the text from `start` to `end` without its escapes, and writes a view of it. */
function copyText(
  key: Uint8Array,
  start: number,
  end: number,
  rows: DataView,
  at: number,
  heap: ByteWriter,
  isText: boolean,
): void {
  heap.ensure(end - start);
  const place = heap.length;
  const out = heap.bytes;
  let to = place;
  let seen = 0;
  for (let i = start; i < end; i++) {
    const byte = key[i] as number;
    out[to++] = byte;
    seen |= byte;
    if (byte === 0) i++;
  }
  const length = to - place;
  rows.setUint32(at, isText && seen > 0x7f ? (length | nonAsciiFlag) >>> 0 : length, true);
  const shown = length <= inlineBytes ? length : 4;
  for (let i = 0; i < shown; i++) rows.setUint8(at + 4 + i, out[place + i] as number);
  if (length <= inlineBytes) return;
  rows.setUint32(at + 8, place, true);
  heap.length = to;
}

/**
 * Writes the value of the component from `start` to `end`, which must not be null or truncated, to a field of its type in a
 * row. The bytes of the field must be zero before.
 */
export function copyComponent(
  key: Uint8Array,
  start: number,
  end: number,
  typeId: TypeId,
  rows: Uint8Array,
  view: DataView,
  at: number,
  heap: ByteWriter,
): void {
  const first = start + 1;
  switch (typeId) {
    case Types.uint8:
    case Types.boolean:
      rows[at] = key[first] as number;
      return;
    case Types.uint16:
    case Types.uint32:
    case Types.uint64:
      return reverse(key, first, rows, at, widthOf(typeId), 0, 0);
    case Types.int8:
    case Types.int16:
    case Types.int32:
    case Types.int64:
      return reverse(key, first, rows, at, widthOf(typeId), 0x80, 0);
    case Types.float32:
    case Types.float64: {
      const isPositive = (key[first] as number) >= 0x80;
      return reverse(key, first, rows, at, widthOf(typeId), isPositive ? 0x80 : 0xff, isPositive ? 0 : 0xff);
    }
    case Types.timestamp:
      // An integer number of milliseconds, which a float holds exactly.
      view.setFloat64(at, (uint32At(key, first) - 0x80000000) * 2 ** 32 + uint32At(key, first + 4), true);
      return;
    case Types.uuid:
      return copyRange(key, first, first + widthOf(typeId), rows, at);
    case Types.varchar:
    case Types.bytes:
      return copyText(key, first, end - 2, view, at, heap, typeId === Types.varchar);
    default:
      throw new MalformedKey(`a ${typeName(typeId)} field cannot be a key`);
  }
}
