/**
 * The values that each type accepts: every value is checked before it is encoded in a row or a key. A value that does not fit
 * is refused, never changed: nothing is truncated, wrapped or coerced. (Only float32 rounds, by design, to the nearest
 * float32.)
 */
import { isBytes, isDate, isPlainObject } from '../base/brands.ts';
import { describeValue } from '../base/messages.ts';
import type { OrderedValue } from '../base/bytes.ts';
import { bigintBounds, integerBounds, typeName, Types } from './types.ts';
import type { TypeId } from './types.ts';

/** Longest primary key, and longest part of an indexed value that an index holds, in bytes. */
export const maxKeyBytes = 1024;

/** Longest value and longest row, in bytes: far less than the 32-bit offsets of a block allow. */
export const maxValueBytes: number = 256 * 1024 * 1024;

/** A value does not fit its type. The caller, which knows table and field, throws an `EncodeError` for it. */
export class ValueProblem extends Error {}

function problem(typeId: TypeId, value: unknown, allowed: string): never {
  throw new ValueProblem(`${describeValue(value)} does not fit type ${typeName(typeId)}, which takes ${allowed}`);
}

const dash = 45;

/** Returns a UUID in lower case; undefined if the text is none. A regular expression would take ten times as long. */
function canonicalUuid(text: string): string | undefined {
  if (text.length !== 36) return undefined;
  let isLower = true;
  for (let i = 0; i < 36; i++) {
    const unit = text.charCodeAt(i);
    if (i === 8 || i === 13 || i === 18 || i === 23) {
      if (unit !== dash) return undefined;
    } else if (unit >= 0x41 && unit <= 0x46) isLower = false;
    else if (!(unit >= 0x30 && unit <= 0x39) && !(unit >= 0x61 && unit <= 0x66)) return undefined;
  }
  return isLower ? text : text.toLowerCase();
}

/** Whether a string is a UUID, in either case. */
export function isUuid(text: string): boolean {
  return canonicalUuid(text) !== undefined;
}

function checkNumber(typeId: TypeId, value: unknown): number {
  const bounds = integerBounds(typeId);
  if (bounds !== undefined) {
    if (typeof value !== 'number' || !Number.isInteger(value) || value < bounds.min || value > bounds.max) {
      problem(typeId, value, `integers from ${bounds.min} to ${bounds.max}`);
    }
    return value;
  }
  if (typeof value !== 'number' || Number.isNaN(value)) problem(typeId, value, 'numbers other than NaN');
  if (typeId !== Types.float32) return value;
  const rounded = Math.fround(value);
  if (Number.isFinite(value) && !Number.isFinite(rounded)) problem(typeId, value, 'numbers up to about 3.4e38');
  return rounded;
}

function checkBigint(typeId: TypeId, value: unknown): bigint {
  const bounds = bigintBounds(typeId) as { min: bigint; max: bigint };
  const allowed = `bigints from ${bounds.min} to ${bounds.max} and safe integers`;
  if (typeof value === 'number') {
    if (!Number.isSafeInteger(value)) problem(typeId, value, allowed);
    return checkBigint(typeId, BigInt(value));
  }
  if (typeof value !== 'bigint' || value < bounds.min || value > bounds.max) problem(typeId, value, allowed);
  return value;
}

function checkText(typeId: TypeId, value: unknown): string {
  if (typeof value !== 'string') problem(typeId, value, 'strings');
  if (!value.isWellFormed()) {
    throw new ValueProblem(`${describeValue(value)} has a lone surrogate, which UTF-8 cannot hold`);
  }
  return value;
}

/**
 * Checks a value that is not null and returns it in the form to encode: float32 rounded, 64-bit integers as bigint, UUIDs in
 * lower case, JSON as its text. Throws {@link ValueProblem}.
 */
export function normalizeValue(typeId: TypeId, value: unknown): Exclude<OrderedValue, null> {
  switch (typeId) {
    case Types.uint64:
    case Types.int64:
      return checkBigint(typeId, value);
    case Types.varchar:
      return checkText(typeId, value);
    case Types.boolean:
      return typeof value === 'boolean' ? value : problem(typeId, value, 'true and false');
    case Types.timestamp:
      if (!isDate(value) || Number.isNaN(value.getTime())) problem(typeId, value, 'valid Dates');
      return value;
    case Types.json:
      return encodeJson(value);
    case Types.uuid:
    case Types.blob:
      return (typeof value === 'string' ? canonicalUuid(value) : undefined) ?? problem(typeId, value, 'UUID strings');
    case Types.bytes:
      return isBytes(value) ? value : problem(typeId, value, 'a Buffer or Uint8Array');
    default:
      return checkNumber(typeId, value);
  }
}

const maxJsonDepth = 512;

function checkJson(value: unknown, depth: number): void {
  if (value === null || typeof value === 'boolean' || typeof value === 'string') return;
  if (typeof value === 'number') {
    if (!Number.isFinite(value)) throw new ValueProblem(`JSON cannot hold ${value}`);
    if (Object.is(value, -0)) throw new ValueProblem('JSON cannot hold -0: it would read back as 0');
    return;
  }
  if (typeof value !== 'object') throw new ValueProblem(`JSON cannot hold ${describeValue(value)}`);
  if (depth > maxJsonDepth) {
    throw new ValueProblem(`JSON that is nested deeper than ${maxJsonDepth} levels, or refers to itself`);
  }
  if (typeof (value as { toJSON?: unknown }).toJSON === 'function') {
    throw new ValueProblem(
      'JSON cannot hold an object with a method toJSON: it would read back as the result of that method',
    );
  }
  if (Array.isArray(value)) {
    // By index, so that holes are seen: JSON would turn them into null.
    for (let i = 0; i < value.length; i++) {
      if (!Object.hasOwn(value, i)) throw new ValueProblem('JSON cannot hold an array with holes');
      checkJson(value[i], depth + 1);
    }
    if (Object.keys(value).length !== value.length)
      throw new ValueProblem('JSON cannot hold an array with named fields');
    return;
  }
  if (!isPlainObject(value)) {
    throw new ValueProblem('JSON holds plain objects only: an instance of a class would not read back as it was');
  }
  if (Object.getOwnPropertySymbols(value).length > 0) throw new ValueProblem('JSON cannot hold symbol keys');
  for (const key of Object.keys(value)) {
    const inner = value[key];
    // JSON.stringify() leaves out keys whose value is undefined.
    if (inner !== undefined) checkJson(inner, depth + 1);
  }
}

/** Returns the JSON text of a value that reads back unchanged; throws {@link ValueProblem} for other values. */
function encodeJson(value: unknown): string {
  checkJson(value, 0);
  return JSON.stringify(value);
}

/** Writes the 16 bytes of a normalized UUID string. */
export function writeUuid(text: string, bytes: Uint8Array, at: number): void {
  let out = at;
  for (let i = 0; i < 36; i++) {
    if (text.charCodeAt(i) === dash) continue;
    bytes[out++] = (hexDigit(text.charCodeAt(i)) << 4) | hexDigit(text.charCodeAt(++i));
  }
}

function hexDigit(unit: number): number {
  return unit < 58 ? unit - 48 : unit - 87;
}
