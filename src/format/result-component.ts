/**
 * The component of an index entry that stands for what a function made of a row. Every row has one, whatever the function
 * does: results that are not of the declared type, and failures, have tags of their own, so that the index tells which rows
 * they are.
 */
import type { ByteWriter } from '../base/bytes.ts';
import type { OrderedValue } from '../base/order.ts';
import { MalformedKey, skipKeyComponent, writeKeyComponent } from './ordered-key.ts';
import { bigintBounds, isIntegerOf, Types } from './types.ts';
import type { TypeId } from './types.ts';

/** A result of another type than the declared one, and a row on which the function failed; behind all values. */
const tagOther = 2;
const tagFailed = 3;

const lowerCaseUuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

/**
 * Whether a key component holds a value, or as much of it as keys hold: two values with one component are then equal as
 * `===` has it. Null is one of every type.
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

/** Where the component of a result ends, which a key begins with. Throws `MalformedKey`. */
export function endOfResult(key: Uint8Array, typeId: TypeId): number {
  const tag = key[0];
  if (tag === tagOther || tag === tagFailed) return 1;
  return skipKeyComponent(key, 0, typeId);
}

/** Whether an entry is of a row on which the function failed. */
export function isFailedEntry(key: Uint8Array): boolean {
  if (key.length === 0) throw new MalformedKey('key ends within a component');
  return key[0] === tagFailed;
}
