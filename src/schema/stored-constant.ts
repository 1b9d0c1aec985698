/** Values of fields as schemas hold them. Block 0 is JSON: what JSON cannot hold as it is travels as a text or a number, and is read back by type. */
import { isBytes, isDate } from '../base/brands.ts';
import { Types } from '../format/types.ts';
import type { TypeId } from '../format/types.ts';

/** A value of a field, but for json, as JSON. */
export function storedConstant(value: unknown): unknown {
  if (typeof value === 'bigint') return String(value);
  if (isDate(value)) return value.getTime();
  if (isBytes(value)) return Buffer.from(value).toString('base64');
  return value;
}

/** The value that a stored one stands for. */
export function constantValue(typeId: TypeId, constant: unknown): unknown {
  switch (typeId) {
    case Types.uint64:
    case Types.int64:
      return BigInt(constant as string | number);
    case Types.timestamp:
      return new Date(constant as number);
    case Types.bytes:
      return Buffer.from(constant as string, 'base64');
    default:
      return constant;
  }
}
