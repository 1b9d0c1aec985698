/**
 * Encodes the values of rows as JSON and as text, and decodes them exactly, by the type of their field: for exports, imports, the
 * conditions of the command line, and Studio.
 */
import { isBytes, isDate } from '../base/brands.ts';
import { fromBase64, toBase64 } from '../base/bytes.ts';
import { isBase64 } from '../format/stored-table.ts';
import { bigintBounds, isTypeId, typeName, Types } from '../format/types.ts';
import type { TypeId } from '../format/types.ts';

/** A value that does not fit its type. The message does not name the field or line. */
export class ValueError extends Error {
  override readonly name = 'ValueError';
}

const isFloat = (typeId: TypeId): boolean => typeId === Types.float64 || typeId === Types.float32;

/** Encodes a value of a row for JSON. */
export function toJson(typeId: TypeId, value: unknown): unknown {
  if (value === null || value === undefined) return null;
  if (typeof value === 'bigint') {
    const number = Number(value);
    return Number.isSafeInteger(number) ? number : String(value);
  }
  if (isDate(value)) return value.toISOString();
  if (isBytes(value)) return toBase64(value);
  if (isFloat(typeId) && typeof value === 'number' && (!Number.isFinite(value) || Object.is(value, -0))) {
    // JSON has no infinities, and `JSON.stringify` writes -0 as 0.
    return Object.is(value, -0) ? '-0' : String(value);
  }
  return value;
}

function fail(typeId: TypeId, value: unknown, allowed: string): never {
  const text = JSON.stringify(value) ?? String(value);
  const shown = text.length > 60 ? `${text.slice(0, 60)}\u2026` : text;
  throw new ValueError(`${shown} is no ${typeName(typeId)}: ${allowed}`);
}

function toInteger(typeId: TypeId, value: unknown): number | bigint {
  const text = typeof value === 'number' ? String(value) : value;
  if (typeof text !== 'string' || !/^-?[0-9]+$/.test(text)) fail(typeId, value, 'it takes whole numbers');
  if (bigintBounds(typeId) === undefined) return Number(text);
  if (typeof value === 'number' && !Number.isSafeInteger(value)) {
    fail(typeId, value, 'JSON numbers beyond 2^53 are not exact, so write it as a string');
  }
  return BigInt(text);
}

function toFloat(typeId: TypeId, value: unknown): number {
  if (typeof value === 'number') return value;
  const isText = typeof value === 'string' && /^(-?Infinity|-?(\d+(?:\.\d*)?|\.\d+)([eE][-+]?\d+)?)$/.test(value);
  return isText ? Number(value) : fail(typeId, value, 'it takes numbers');
}

const timeText = /^([-+]?\d{4,6}-\d{2}-\d{2})(?:([T ]\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?)(Z|[-+]\d{2}:\d{2})?)?$/;

/** Parses a time, in UTC if it names no zone. NaN for other text, and for a day that does not exist. */
export function timeOf(text: string): number {
  const [, day, time = 'T00:00', zone = 'Z'] = timeText.exec(text) ?? [];
  if (day === undefined) return Number.NaN;
  // The runtime would read the 31st of February as the 3rd of March.
  const midnight = new Date(`${day}T00:00Z`);
  if (Number.isNaN(midnight.getTime()) || !midnight.toISOString().startsWith(day)) return Number.NaN;
  return Date.parse(`${day}T${time.slice(1)}${zone}`);
}

function toDate(typeId: TypeId, value: unknown): Date {
  const date = new Date(typeof value === 'number' ? value : typeof value === 'string' ? timeOf(value) : Number.NaN);
  return Number.isNaN(date.getTime()) ? fail(typeId, value, 'it takes times such as 2026-01-31T12:00:00.000Z') : date;
}

/** Decodes a value from JSON. Throws `ValueError`. */
export function fromJson(typeId: TypeId, value: unknown): unknown {
  if (value === null) return null;
  switch (typeId) {
    case Types.float64:
    case Types.float32:
      return toFloat(typeId, value);
    case Types.timestamp:
      return toDate(typeId, value);
    case Types.boolean:
      return typeof value === 'boolean' ? value : fail(typeId, value, 'it takes true and false');
    case Types.bytes:
      if (!isBase64(value)) fail(typeId, value, 'it takes base64');
      return fromBase64(value);
    case Types.json:
      return value;
    case Types.varchar:
    case Types.uuid:
    case Types.blob:
      return typeof value === 'string' ? value : fail(typeId, value, 'it takes strings');
    default:
      return toInteger(typeId, value);
  }
}

/** Encodes a value as text without quotes, for CSV. The caller must handle null. */
export function toText(typeId: TypeId, value: unknown): string {
  if (typeId === Types.json) return JSON.stringify(value);
  const json = toJson(typeId, value);
  return typeof json === 'string' ? json : JSON.stringify(json);
}

/** Decodes a value from such a text. Throws `ValueError`. */
export function fromText(typeId: TypeId, text: string): unknown {
  if (typeId === Types.json) {
    try {
      return JSON.parse(text) as unknown;
    } catch {
      return fail(typeId, text, 'it takes JSON');
    }
  }
  if (typeId === Types.boolean) {
    if (text === 'true' || text === '1') return true;
    return text === 'false' || text === '0' ? false : fail(typeId, text, 'it takes true and false');
  }
  if (typeId === Types.timestamp && /^-?\d+$/.test(text)) return fromJson(typeId, Number(text));
  return fromJson(typeId, text);
}

/** Returns the id of a type that a schema file gives by its id or its name; undefined if there is no such type. */
export function typeIdOf(type: unknown): TypeId | undefined {
  if (isTypeId(type)) return type;
  return typeof type === 'string' && Object.hasOwn(Types, type) ? Types[type as keyof typeof Types] : undefined;
}
