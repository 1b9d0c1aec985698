/**
 * Values of rows as text that gives them back exactly, by the type of their field: what exports write and imports read,
 * and what conditions on the command line are.
 */
import { isBytes, isDate } from '../../base/brands.ts';
import { isBase64 } from '../../format/stored-table.ts';
import { bigintBounds, isTypeId, typeName, Types } from '../../format/types.ts';
import type { TypeId } from '../../format/types.ts';

/** What is wrong with a value, without saying where it stands. */
export class ValueError extends Error {
  override readonly name = 'ValueError';
}

const isFloat = (typeId: TypeId): boolean => typeId === Types.float64 || typeId === Types.float32;

/** What JSON holds for a value that was read. */
export function toJson(typeId: TypeId, value: unknown): unknown {
  if (value === null || value === undefined) return null;
  if (typeof value === 'bigint') {
    const number = Number(value);
    return Number.isSafeInteger(number) ? number : String(value);
  }
  if (isDate(value)) return value.toISOString();
  if (isBytes(value)) return Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString('base64');
  if (isFloat(typeId) && typeof value === 'number' && (!Number.isFinite(value) || Object.is(value, -0))) {
    // JSON has neither infinities nor, as JavaScript writes it, a zero with a sign.
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

/** The time that text stands for: of a day that there is, and in UTC where it names no zone. NaN for other text. */
export function timeOf(text: string): number {
  const [, day, time = 'T00:00', zone = 'Z'] = timeText.exec(text) ?? [];
  if (day === undefined) return Number.NaN;
  // There is no 31st of February, though the runtime takes it for the 3rd of March.
  const midnight = new Date(`${day}T00:00Z`);
  if (Number.isNaN(midnight.getTime()) || !midnight.toISOString().startsWith(day)) return Number.NaN;
  return Date.parse(`${day}T${time.slice(1)}${zone}`);
}

function toDate(typeId: TypeId, value: unknown): Date {
  const date = new Date(typeof value === 'number' ? value : typeof value === 'string' ? timeOf(value) : Number.NaN);
  return Number.isNaN(date.getTime()) ? fail(typeId, value, 'it takes times such as 2026-01-31T12:00:00.000Z') : date;
}

/** The value that JSON stands for. Throws `ValueError`. */
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
      return Buffer.from(value, 'base64');
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

/** A value as text without quotes, as CSV has it; null is for the caller to tell. */
export function toText(typeId: TypeId, value: unknown): string {
  if (typeId === Types.json) return JSON.stringify(value);
  const json = toJson(typeId, value);
  return typeof json === 'string' ? json : JSON.stringify(json);
}

/** The value of such a text. Throws `ValueError`. */
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

/** The id of a type that is given by its id or its name, as people write schemas in files. */
export function typeIdOf(type: unknown): TypeId | undefined {
  if (isTypeId(type)) return type;
  return typeof type === 'string' && Object.hasOwn(Types, type) ? Types[type as keyof typeof Types] : undefined;
}
