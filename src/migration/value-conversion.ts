/**
 * How a value of one type becomes a value of another where two versions of a table have a field of the same name. What
 * the new type cannot hold is refused, never bent. (float32 rounds float64: that is what it is for.)
 */
import { compareBytes } from '../base/bytes.ts';
import { bigintBounds, integerBounds, typeName, Types } from '../format/types.ts';
import type { TypeId } from '../format/types.ts';
import { describeValue } from '../base/describe-value.ts';
import { isUuid, normalizeValue, ValueProblem } from '../format/values.ts';

function isInteger(typeId: TypeId): boolean {
  return integerBounds(typeId) !== undefined || bigintBounds(typeId) !== undefined;
}

function isNumeric(typeId: TypeId): boolean {
  return isInteger(typeId) || typeId === Types.float64 || typeId === Types.float32;
}

/** A value that is not null as a row would read it back: a fresh object where it is one. Throws {@link ValueProblem}. */
export function canonicalValue(typeId: TypeId, value: unknown): unknown {
  const normal = normalizeValue(typeId, value);
  switch (typeId) {
    case Types.json:
      return JSON.parse(normal as string) as unknown;
    case Types.bytes:
      return Buffer.from(normal as Uint8Array);
    case Types.timestamp:
      return new Date((normal as Date).getTime());
    default:
      return integerBounds(typeId) !== undefined && normal === 0 ? 0 : normal;
  }
}

/** Whether two values of a type, null or as rows read them back, are stored as the same. */
export function sameValue(typeId: TypeId, a: unknown, b: unknown): boolean {
  if (a === null || b === null) return a === b;
  switch (typeId) {
    case Types.json:
      return JSON.stringify(a) === JSON.stringify(b);
    case Types.bytes:
      return compareBytes(a as Uint8Array, b as Uint8Array) === 0;
    case Types.timestamp:
      return (a as Date).getTime() === (b as Date).getTime();
    default:
      return Object.is(a, b);
  }
}

function inexact(value: unknown, to: TypeId): never {
  throw new ValueProblem(`${describeValue(value)} does not fit type ${typeName(to)} exactly`);
}

function convertNumber(value: number | bigint, from: TypeId, to: TypeId): unknown {
  if (bigintBounds(to) !== undefined) {
    if (typeof value === 'number' && !Number.isInteger(value)) inexact(value, to);
    return canonicalValue(to, BigInt(value));
  }
  if (integerBounds(to) !== undefined) {
    const isSafe = typeof value === 'bigint' && BigInt(Number(value)) === value;
    return canonicalValue(to, isSafe ? Number(value) : value);
  }
  const number = Number(value);
  if (isInteger(from)) {
    const held = to === Types.float32 ? Math.fround(number) : number;
    if (BigInt(held) !== BigInt(value)) inexact(value, to);
  }
  return canonicalValue(to, number);
}

/** Text of an integer as it is written out, and nothing else: every integer has one text. */
const integerText = /^(0|-?[1-9][0-9]{0,19})$/;

/** A value that is not null in another type. Throws {@link ValueProblem}. */
export function convertValue(value: unknown, from: TypeId, to: TypeId): unknown {
  if (from === to) return canonicalValue(to, value);
  if (isNumeric(from) && isNumeric(to)) return convertNumber(value as number | bigint, from, to);
  if (isInteger(from) && to === Types.varchar) return String(value);
  if (from === Types.varchar && isInteger(to)) {
    if (!integerText.test(value as string)) {
      throw new ValueProblem(`${describeValue(value)} is not an integer's text, as type ${typeName(to)} needs it`);
    }
    return convertNumber(BigInt(value as string), Types.int64, to);
  }
  if (from === Types.uuid && to === Types.varchar) return value;
  if (from === Types.varchar && to === Types.uuid) {
    if (!isUuid(value as string)) throw new ValueProblem(`${describeValue(value)} is not a UUID`);
    return canonicalValue(to, value);
  }
  throw new ValueProblem(
    `a value of type ${typeName(from)} does not become one of type ${typeName(to)} by itself: give the new version a ` +
      '`migrate` function',
  );
}

/** Whether keys of two types correspond one to one, where the values fit. */
export function keysCorrespond(from: TypeId, to: TypeId): boolean {
  if (from === to || (isInteger(from) && isInteger(to))) return true;
  const other = from === Types.varchar ? to : to === Types.varchar ? from : undefined;
  return other !== undefined && (isInteger(other) || other === Types.uuid);
}

/** A primary key in another type. Throws {@link ValueProblem} also where another key could become the same. */
export function convertKey(value: unknown, from: TypeId, to: TypeId): unknown {
  const converted = convertValue(value, from, to);
  if (from !== to && convertValue(converted, to, from) !== value) {
    throw new ValueProblem(
      `${describeValue(value)} is not how the ${typeName(to)} ${describeValue(converted)} is written`,
    );
  }
  return converted;
}
