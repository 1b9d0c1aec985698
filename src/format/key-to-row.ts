/**
 * From the component of a key to the field of a row, byte by byte, without a value in between. All types that keys can hold
 * come out as they went in, but for two: a text that is held in part, and -0, which keys hold as 0.
 */
import type { ByteWriter } from '../base/bytes.ts';
import { copyRange } from '../base/bytes.ts';
import { MalformedKey } from './ordered-key.ts';
import { inlineBytes, nonAsciiFlag } from './row-layout.ts';
import { typeName, Types, widthOf } from './types.ts';
import type { TypeId } from './types.ts';

/** Whether keys hold two values of a type as one: 0 and -0. */
export function mergesZeros(typeId: TypeId): boolean {
  return typeId === Types.float64 || typeId === Types.float32;
}

/** Big-endian to little-endian; `mask` is for the first byte, `rest` for all others. */
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

/** Takes the escapes out of the bytes of a text from `start` to `end`, and makes a view of them. */
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
 * Writes the value of the component from `start` to `end`, which is not null and held whole, to where a field of its type
 * lies in a row. All bytes there are zero before.
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
      // A whole number of milliseconds, which a float holds exactly.
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
