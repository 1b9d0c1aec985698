/**
 * Paths into json fields, such as `address.city`, and the values there. A path is read in one of a few types: what is missing or of
 * another type is null. Read as `bytes`, every value has a form whose bytes sort as values of all types together do.
 */
import { ByteWriter, encodeUtf8, decodeUtf8 } from '../base/bytes.ts';
import { readKeyComponent, writeKeyComponent } from './ordered-key.ts';
import { Types } from './types.ts';
import type { TypeId } from './types.ts';

/** Returns the value that some parts of a path lead to: own properties of objects, and elements of lists by their positions. */
function valueAt(json: unknown, keys: readonly string[]): unknown {
  let value = json;
  for (const key of keys) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, key)) return null;
    // A list has a length of its own, which is none of its elements.
    if (Array.isArray(value) && key === 'length') return null;
    value = (value as Record<string, unknown>)[key];
  }
  return value ?? null;
}

/** Returns the time of a text as JSON holds Dates; null for any other text. */
function timeOf(text: string): Date | null {
  if (!text.endsWith('Z')) return null;
  const time = new Date(text);
  return !Number.isNaN(time.getTime()) && time.toISOString() === text ? time : null;
}

/** The first byte of a value's form as bytes, in the order of the types. */
const falseTag = 1;
const trueTag = 2;
const numberTag = 3;
const textTag = 4;
const objectTag = 5;

/** Returns bytes that sort as the values do: false, true, numbers, texts, then objects and lists by their JSON. */
export function sortableBytes(value: unknown): Uint8Array {
  const writer = new ByteWriter(16);
  if (typeof value === 'boolean') writer.u8(value ? trueTag : falseTag);
  else if (typeof value === 'number') {
    writer.u8(numberTag);
    writeKeyComponent(writer, Types.float64, value);
  } else {
    const isText = typeof value === 'string';
    writer.u8(isText ? textTag : objectTag);
    writer.append(encodeUtf8(isText ? value : JSON.stringify(value)));
  }
  return writer.finish();
}

/** Returns the value of {@link sortableBytes}. */
export function valueOfSortable(bytes: Uint8Array): unknown {
  switch (bytes[0]) {
    case falseTag:
      return false;
    case trueTag:
      return true;
    case numberTag:
      return readKeyComponent(bytes, 1, bytes.length, Types.float64);
    case textTag:
      return decodeUtf8(bytes.subarray(1));
    default:
      return JSON.parse(decodeUtf8(bytes.subarray(1)));
  }
}

/** Returns the value at a path as a type reads it, or null. As json, it is any value. */
export function valueOfPath(json: unknown, keys: readonly string[], typeId: TypeId): unknown {
  const value = valueAt(json, keys);
  if (value === null) return null;
  switch (typeId) {
    case Types.varchar:
      return typeof value === 'string' && value.isWellFormed() ? value : null;
    case Types.float64:
      return typeof value === 'number' ? value : null;
    case Types.boolean:
      return typeof value === 'boolean' ? value : null;
    case Types.timestamp:
      return typeof value === 'string' ? timeOf(value) : null;
    case Types.bytes:
      return sortableBytes(value);
    default:
      return value;
  }
}

/** Returns the value as JSON has it, for one that a path gave in the type it is read in. */
export function shownValue(
  { path, typeId }: { readonly path?: unknown; readonly typeId: TypeId },
  value: unknown,
): unknown {
  if (path === undefined || value === null) return value;
  if (typeId === Types.bytes) return valueOfSortable(value as Uint8Array);
  return typeId === Types.timestamp ? (value as Date).toISOString() : value;
}
