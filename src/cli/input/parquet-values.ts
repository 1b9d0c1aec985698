/** Reads the values of Parquet columns, by the types that the file declares. */
import type { SchemaElement, SchemaTree } from 'hyparquet';
import { isBytes, isDate } from '../../base/brands.ts';
import { defined } from '../../base/options.ts';
import { Types } from '../../format/types.ts';
import type { TypeId } from '../../format/types.ts';
import { jsonReader } from './field-values.ts';
import type { ValueOptions, ValueReader } from './field-values.ts';
import { LargeInteger, parseExactly } from './json-parser.ts';
import { ValueError } from '../../text/cell-values.ts';

/** A stored value that cannot be read. It is an error of its row only. */
class Unreadable {
  readonly message: string;

  constructor(message: string) {
    this.message = message;
  }
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

function textOfBytes(bytes: Uint8Array): string | Unreadable {
  try {
    return utf8.decode(bytes);
  } catch {
    return new Unreadable('its bytes are not UTF-8');
  }
}

function jsonOfBytes(bytes: Uint8Array): unknown {
  const text = textOfBytes(bytes);
  if (typeof text !== 'string') return text;
  try {
    return parseExactly(text);
  } catch (error) {
    return new Unreadable(`it is not JSON: ${(error as Error).message}`);
  }
}

function hexOf(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('hex');
}

function uuidOfBytes(bytes: Uint8Array): string {
  return hexOf(bytes).replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
}

function floorDivide(value: bigint, by: bigint): bigint {
  const quotient = value / by;
  return value % by < 0n ? quotient - 1n : quotient;
}

function dateOf(milliseconds: bigint | number): Date | Unreadable {
  const date = new Date(Number(milliseconds));
  return Number.isNaN(date.getTime()) ? new Unreadable(`the time ${milliseconds} is too far away`) : date;
}

/** The parsers of the decoder, which never throw. All other values are left as they are stored, and read by `readingOf`. */
export const parsers = {
  stringFromBytes: (bytes: Uint8Array | undefined): unknown => bytes && textOfBytes(bytes),
  jsonFromBytes: (bytes: Uint8Array | undefined): unknown => bytes && jsonOfBytes(bytes),
  uuidFromBytes: (bytes: Uint8Array | undefined): unknown => bytes && uuidOfBytes(bytes),
  timestampFromMilliseconds: (value: bigint | undefined): unknown => value && dateOf(value),
  timestampFromMicroseconds: (value: bigint | undefined): unknown => value && dateOf(floorDivide(value, 1000n)),
  timestampFromNanoseconds: (value: bigint | undefined): unknown => value && dateOf(floorDivide(value, 1_000_000n)),
  dateFromDays: (days: number | undefined): unknown => days && dateOf(days * 86_400_000),
};

function float16Of(bytes: Uint8Array): number {
  const bits = ((bytes[1] as number) << 8) | (bytes[0] as number);
  const sign = bits >> 15 === 0 ? 1 : -1;
  const exponent = (bits >> 10) & 0x1f;
  const fraction = bits & 0x3ff;
  if (exponent === 0x1f) return fraction === 0 ? sign * Infinity : Number.NaN;
  return exponent === 0 ? sign * 2 ** -24 * fraction : sign * 2 ** (exponent - 15) * (1 + fraction / 1024);
}

/** Returns a decimal as text, which is exact. */
function decimalOf(stored: unknown, scale: number): string {
  const unscaled = isBytes(stored)
    ? BigInt.asIntN(stored.length * 8, BigInt(`0x${hexOf(stored) || '0'}`))
    : BigInt(stored as number | bigint);
  const digits = (unscaled < 0n ? -unscaled : unscaled).toString().padStart(scale + 1, '0');
  const whole = digits.slice(0, digits.length - scale);
  return `${unscaled < 0n ? '-' : ''}${whole}${scale === 0 ? '' : `.${digits.slice(-scale)}`}`;
}

/** Returns a time of day as text. */
function timeOfDay(stored: bigint | number, digits: number): string {
  const perSecond = 10n ** BigInt(digits);
  const seconds = Number(BigInt(stored) / perSecond);
  const parts = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60, seconds % 60];
  const fraction = String(BigInt(stored) % perSecond).padStart(digits, '0');
  return `${parts.map((part) => String(part).padStart(2, '0')).join(':')}.${fraction}`;
}

/** The logical type of a column, from either of the two annotations that Parquet has for it. */
type Meaning =
  | 'text'
  | 'json'
  | 'uuid'
  | 'float16'
  | 'decimal'
  | 'date'
  | 'null'
  | 'time'
  | 'timestamp'
  | 'unsigned'
  | 'signed'
  | 'none';

const convertedMeanings: Readonly<Record<string, Meaning>> = {
  UTF8: 'text',
  ENUM: 'text',
  JSON: 'json',
  DECIMAL: 'decimal',
  DATE: 'date',
  TIME_MILLIS: 'time',
  TIME_MICROS: 'time',
  TIMESTAMP_MILLIS: 'timestamp',
  TIMESTAMP_MICROS: 'timestamp',
  UINT_8: 'unsigned',
  UINT_16: 'unsigned',
  UINT_32: 'unsigned',
  UINT_64: 'unsigned',
};

const logicalMeanings: Readonly<Record<string, Meaning>> = {
  STRING: 'text',
  ENUM: 'text',
  JSON: 'json',
  UUID: 'uuid',
  FLOAT16: 'float16',
  DECIMAL: 'decimal',
  DATE: 'date',
  NULL: 'null',
  TIME: 'time',
  TIMESTAMP: 'timestamp',
};

function meaningOf({ type, converted_type: converted, logical_type: logical }: SchemaElement): Meaning {
  if (type === 'INT96') return 'timestamp';
  if (logical?.type === 'INTEGER') return logical.isSigned ? 'signed' : 'unsigned';
  return logicalMeanings[logical?.type ?? ''] ?? convertedMeanings[converted ?? ''] ?? 'none';
}

/** Returns the number of fractional digits of a second in a column. */
function fractionDigits({ converted_type: converted, logical_type: logical }: SchemaElement): number {
  const unit =
    logical !== undefined && 'unit' in logical ? logical.unit : converted?.endsWith('MICROS') ? 'MICROS' : 'MILLIS';
  return { MILLIS: 3, MICROS: 6, NANOS: 9 }[unit];
}

function bitsOf({ type, converted_type: converted, logical_type: logical }: SchemaElement): number {
  if (logical?.type === 'INTEGER') return logical.bitWidth;
  const [, bits] = /^U?INT_(\d+)$/.exec(converted ?? '') ?? [];
  return Number(bits ?? (type === 'INT64' ? 64 : 32));
}

function decimalType({ precision = 38, scale = 0 }: SchemaElement): TypeId {
  if (scale > 0) return precision <= 15 ? Types.float64 : Types.varchar;
  if (precision <= 9) return Types.int32;
  return precision <= 18 ? Types.int64 : Types.varchar;
}

function integerType(element: SchemaElement, isSigned: boolean): TypeId {
  switch (bitsOf(element)) {
    case 8:
      return isSigned ? Types.int8 : Types.uint8;
    case 16:
      return isSigned ? Types.int16 : Types.uint16;
    case 64:
      return isSigned ? Types.int64 : Types.uint64;
    default:
      return isSigned ? Types.int32 : Types.uint32;
  }
}

/** Returns the type of field that holds every value of a column. */
export function fieldTypeOf({ element, children }: SchemaTree): TypeId {
  if (children.length > 0 || element.repetition_type === 'REPEATED') return Types.json;
  switch (meaningOf(element)) {
    case 'text':
    case 'time':
    case 'null':
      return Types.varchar;
    case 'json':
      return Types.json;
    case 'uuid':
      return Types.uuid;
    case 'float16':
      return Types.float32;
    case 'decimal':
      return decimalType(element);
    case 'date':
    case 'timestamp':
      return Types.timestamp;
    case 'unsigned':
      return integerType(element, false);
    default:
  }
  switch (element.type) {
    case 'BOOLEAN':
      return Types.boolean;
    case 'INT32':
    case 'INT64':
      return integerType(element, true);
    case 'FLOAT':
      return Types.float32;
    case 'DOUBLE':
      return Types.float64;
    default:
      return Types.bytes;
  }
}

type Reading = (stored: unknown) => unknown;

const asIs: Reading = (stored) => stored;

function leafReading(element: SchemaElement): Reading {
  const digits = fractionDigits(element);
  switch (meaningOf(element)) {
    case 'float16':
      return (stored) => float16Of(stored as Uint8Array);
    case 'decimal':
      return (stored) => decimalOf(stored, element.scale ?? 0);
    case 'date':
      return (stored) => dateOf((stored as number) * 86_400_000);
    case 'time':
      return (stored) => timeOfDay(stored as bigint | number, digits);
    case 'timestamp':
      // The decoder itself turns 96-bit times into dates.
      if (element.type === 'INT96') return asIs;
      return (stored) => dateOf(floorDivide(stored as bigint, 10n ** BigInt(digits - 3)));
    case 'unsigned':
      return (stored) => (typeof stored === 'bigint' ? BigInt.asUintN(64, stored) : (stored as number) >>> 0);
    default:
      return asIs;
  }
}

/** Returns a value as JSON has it. Integers beyond 2^53 become `LargeInteger`. */
export function plainOf(value: unknown): unknown {
  if (typeof value === 'bigint') {
    const number = Number(value);
    return Number.isSafeInteger(number) ? number : new LargeInteger(String(value));
  }
  if (typeof value === 'number' && !Number.isFinite(value)) return String(value);
  if (isDate(value)) return value.toISOString();
  if (isBytes(value)) return Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString('base64');
  if (typeof value !== 'object' || value === null || value instanceof LargeInteger || value instanceof Unreadable) {
    return value ?? null;
  }
  if (Array.isArray(value)) return value.map(plainOf);
  return Object.fromEntries(Object.entries(value).map(([name, part]) => [name, plainOf(part)]));
}

/** Wraps a reading for a value within another one, in JSON. Throws `ValueError` for a value that cannot be read. */
function partOf(reading: Reading): Reading {
  return (stored) => {
    if (stored === null || stored === undefined) return null;
    const value = stored instanceof Unreadable ? stored : plainOf(reading(stored));
    if (value instanceof Unreadable) throw new ValueError(value.message);
    return value;
  };
}

const isVariant = ({ element }: SchemaTree): boolean => element.logical_type?.type === 'VARIANT';
const isList = ({ element, children }: SchemaTree): boolean =>
  element.converted_type === 'LIST' && children.length === 1 && children[0]?.element.repetition_type === 'REPEATED';
const isMap = ({ element, children }: SchemaTree): boolean =>
  element.converted_type === 'MAP' && children.length === 1 && children[0]?.children.length === 2;

function groupReading(tree: SchemaTree): Reading {
  const [only] = tree.children as [SchemaTree];
  if (isVariant(tree)) return asIs;
  if (isList(tree)) {
    const item = nestedReading(only.children.length === 1 ? (only.children[0] as SchemaTree) : only, true);
    return (stored) => (stored as unknown[]).map(item);
  }
  if (isMap(tree)) {
    const item = nestedReading(only.children[1] as SchemaTree);
    return (stored) => Object.fromEntries(Object.entries(stored as object).map(([name, part]) => [name, item(part)]));
  }
  const members = tree.children.map((child) => [child.element.name, nestedReading(child)] as const);
  return (stored) =>
    Object.fromEntries(members.map(([name, read]) => [name, read((stored as Record<string, unknown>)[name])]));
}

/** Returns the reading of a nested column. `isItem`: whether it is the item of a list, which itself repeats it. */
function nestedReading(tree: SchemaTree, isItem = false): Reading {
  const one = partOf(tree.children.length === 0 ? leafReading(tree.element) : groupReading(tree));
  if (isItem || tree.element.repetition_type !== 'REPEATED') return one;
  return (stored) => (stored === null || stored === undefined ? [] : (stored as unknown[]).map(one));
}

/** Returns the function that reads the decoded values of a column. The function throws `ValueError`. */
export function readingOf(tree: SchemaTree): Reading {
  const isNested = tree.children.length > 0 || tree.element.repetition_type === 'REPEATED';
  if (isNested) return nestedReading(tree);
  const reading = leafReading(tree.element);
  return (stored) => {
    if (stored === null || stored === undefined) return null;
    const value = stored instanceof Unreadable ? stored : reading(stored);
    if (value instanceof Unreadable) throw new ValueError(value.message);
    return value;
  };
}

/**
 * Returns the declaration of a column for the decoder. `isAssembled`: whether the column is the key of a map or part of a variant, which
 * the decoder assembles.
 */
function elementForDecoder(element: SchemaElement, isAssembled: boolean): SchemaElement {
  const { logical_type: logical, converted_type: converted, ...rest } = element;
  if (isAssembled) return element;
  if (element.type === undefined) {
    const isMapped = converted === 'MAP_KEY_VALUE' || logical?.type === 'MAP';
    const kind = isMapped ? 'MAP' : logical?.type === 'LIST' ? 'LIST' : converted;
    return { ...rest, ...defined({ converted_type: kind }), ...(logical && { logical_type: logical }) };
  }
  switch (meaningOf(element)) {
    case 'text':
      return { ...rest, converted_type: 'UTF8' };
    case 'json':
      return { ...rest, converted_type: 'JSON' };
    case 'uuid':
      return { ...rest, logical_type: { type: 'UUID' } };
    default:
      return rest;
  }
}

/** Returns the schema of a file for the decoder, without the types that it would round: it leaves values of these as they are stored. */
export function schemaForDecoder(root: SchemaTree): SchemaElement[] {
  const elements: SchemaElement[] = [];
  const visit = (tree: SchemaTree, isAssembled: boolean): void => {
    const element = elementForDecoder(tree.element, isAssembled);
    elements.push(element);
    const isWithin = isAssembled || isVariant(tree);
    const isEntry = element.converted_type === 'MAP' && tree.children.length === 1;
    for (const child of tree.children) {
      if (!isEntry) visit(child, isWithin);
      else {
        elements.push(child.element);
        child.children.forEach((part, i) => visit(part, isWithin || i === 0));
      }
    }
  };
  visit(root, false);
  return elements;
}

/** Returns the function that reads values of a Parquet file for a field. */
export function parquetReader(typeId: TypeId, options: ValueOptions): ValueReader {
  const json = jsonReader(typeId, { ...options, scalarsAsText: true });
  const is64 = typeId === Types.int64 || typeId === Types.uint64;
  const plain = (value: unknown): unknown => json(plainOf(value));
  return (value) => {
    if (value === null) return null;
    switch (typeof value) {
      case 'string':
      case 'boolean':
        return json(value);
      case 'bigint':
        return is64 ? value : plain(value);
      case 'number':
        if (Number.isNaN(value)) throw new ValueError('NaN is no value: --null NaN reads it as null');
        return json(value);
      default:
    }
    if (typeId === Types.timestamp && isDate(value)) return value;
    if (isBytes(value)) {
      if (typeId === Types.bytes) return value;
      if (typeId === Types.uuid && value.length === 16) return uuidOfBytes(value);
      if (typeId !== Types.varchar) return plain(value);
      const text = textOfBytes(value);
      if (text instanceof Unreadable) throw new ValueError(text.message);
      return text;
    }
    return plain(value);
  };
}
