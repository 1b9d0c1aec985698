/**
 * The field types. Their ids are stored on disk and never change meaning.
 * Every type has a fixed width in the row; text, json and bytes hold a 16-byte view there (see row-layout.ts).
 */

/** Type ids by name, for schema definitions: `{ typeId: Types.varchar }`. */
export const Types = {
  /** An integer from 0 to 255. */
  uint8: 1,
  /** An integer from 0 to 65,535. */
  uint16: 2,
  /** An integer from 0 to 4,294,967,295. */
  uint32: 3,
  /** 64 bits; takes bigints and safe integers, reads back bigints. */
  uint64: 4,
  /** An integer from -128 to 127. */
  int8: 5,
  /** An integer from -32,768 to 32,767. */
  int16: 6,
  /** An integer from -2,147,483,648 to 2,147,483,647. */
  int32: 7,
  /** 64 bits; takes bigints and safe integers, reads back bigints. */
  int64: 8,
  /** Any number but NaN. */
  float64: 9,
  /** A string of any length. */
  varchar: 10,
  /** A managed blob: takes the result of `db.Blob()`, reads back its reference, a UUID string. Cannot be a key. */
  blob: 11,
  /** True or false. */
  boolean: 12,
  /** A `Date`, to the millisecond. */
  timestamp: 13,
  /** Anything that JSON gives back unchanged. Has no order, and cannot be a key. */
  json: 14,
  /** A UUID as a string; it is read back in lower case. */
  uuid: 15,
  /** A `Buffer` or `Uint8Array` of any length, read back as a `Buffer`. */
  bytes: 16,
  /** 32 bits: values are rounded to the nearest float32. */
  float32: 17,
} as const;

/** Name of a field type. */
export type TypeName = keyof typeof Types;
/** Id of a field type, as it is stored on disk. */
export type TypeId = (typeof Types)[TypeName];

const names = new Map<number, TypeName>(Object.entries(Types).map(([name, id]) => [id, name as TypeName]));

export function isTypeId(value: unknown): value is TypeId {
  return typeof value === 'number' && names.has(value);
}

/** Returns the name of a type for messages, for instance `uint8`. */
export function typeName(typeId: TypeId): TypeName {
  return names.get(typeId) as TypeName;
}

/** Returns the bytes that a value of this type takes in the fixed part of a row. */
export function widthOf(typeId: TypeId): number {
  switch (typeId) {
    case Types.uint8:
    case Types.int8:
    case Types.boolean:
      return 1;
    case Types.uint16:
    case Types.int16:
      return 2;
    case Types.uint32:
    case Types.int32:
    case Types.float32:
      return 4;
    case Types.uint64:
    case Types.int64:
    case Types.float64:
    case Types.timestamp:
      return 8;
    case Types.varchar:
    case Types.json:
    case Types.bytes:
    case Types.uuid:
    case Types.blob:
      return 16;
  }
}

/** Whether the row holds a 16-byte view of a value of any length. */
export function isVariable(typeId: TypeId): boolean {
  return typeId === Types.varchar || typeId === Types.json || typeId === Types.bytes;
}

/** Whether a field of this type may be a primary key or be indexed. */
export function isKeyType(typeId: TypeId): boolean {
  return typeId !== Types.json && typeId !== Types.blob;
}

/** Returns the inclusive bounds of an integer type of up to 32 bits; undefined for other types. */
export function integerBounds(typeId: TypeId): { readonly min: number; readonly max: number } | undefined {
  switch (typeId) {
    case Types.uint8:
      return { min: 0, max: 0xff };
    case Types.uint16:
      return { min: 0, max: 0xffff };
    case Types.uint32:
      return { min: 0, max: 0xffffffff };
    case Types.int8:
      return { min: -0x80, max: 0x7f };
    case Types.int16:
      return { min: -0x8000, max: 0x7fff };
    case Types.int32:
      return { min: -0x80000000, max: 0x7fffffff };
    default:
      return undefined;
  }
}

/** Whether a value is an integer that a type of up to 32 bits holds. */
export function isIntegerOf(typeId: TypeId, value: unknown): boolean {
  const bounds = integerBounds(typeId);
  return (
    bounds !== undefined &&
    Number.isInteger(value) &&
    (value as number) >= bounds.min &&
    (value as number) <= bounds.max
  );
}

/** Returns the inclusive bounds of a 64-bit integer type; undefined for other types. */
export function bigintBounds(typeId: TypeId): { readonly min: bigint; readonly max: bigint } | undefined {
  if (typeId === Types.uint64) return { min: 0n, max: 0xffff_ffff_ffff_ffffn };
  if (typeId === Types.int64) return { min: -0x8000_0000_0000_0000n, max: 0x7fff_ffff_ffff_ffffn };
  return undefined;
}

/** Latest and earliest time that a `Date` can hold, in milliseconds (ECMA-262, time values). */
export const maxTimestampMs = 8_640_000_000_000_000;

/** A value of a json field. */
export type JsonValue = null | boolean | number | string | JsonValue[] | { [key: string]: JsonValue };
