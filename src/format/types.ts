/**
 * The field types. Their ids are stored on disk and never change meaning.
 * Every type has a fixed width in the row; text, json and bytes hold a 16-byte view there (see row-layout.ts).
 */

/** Type ids by name, for schema definitions: `{ typeId: Types.varchar }`. */
export const Types = {
  uint8: 1,
  uint16: 2,
  uint32: 3,
  /** 64 bits; takes bigints and safe integers, reads back bigints. */
  uint64: 4,
  int8: 5,
  int16: 6,
  int32: 7,
  /** 64 bits; takes bigints and safe integers, reads back bigints. */
  int64: 8,
  float64: 9,
  varchar: 10,
  /** Managed blob: the row holds its UUID reference. */
  blob: 11,
  boolean: 12,
  /** A `Date`, in milliseconds. */
  timestamp: 13,
  json: 14,
  uuid: 15,
  bytes: 16,
  /** 32 bits: values are rounded to the nearest float32. */
  float32: 17,
} as const;

export type TypeName = keyof typeof Types;
export type TypeId = (typeof Types)[TypeName];

const names = new Map<number, TypeName>(Object.entries(Types).map(([name, id]) => [id, name as TypeName]));

export function isTypeId(value: unknown): value is TypeId {
  return typeof value === 'number' && names.has(value);
}

/** Name of a type for messages, for instance `uint8`. */
export function typeName(typeId: TypeId): TypeName {
  return names.get(typeId) as TypeName;
}

/** Bytes that a value of this type takes in the fixed part of a row. */
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

/** Inclusive bounds of the integer types of up to 32 bits. */
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

/** Inclusive bounds of the 64-bit integer types. */
export function bigintBounds(typeId: TypeId): { readonly min: bigint; readonly max: bigint } | undefined {
  if (typeId === Types.uint64) return { min: 0n, max: 0xffff_ffff_ffff_ffffn };
  if (typeId === Types.int64) return { min: -0x8000_0000_0000_0000n, max: 0x7fff_ffff_ffff_ffffn };
  return undefined;
}

/** Latest and earliest time that a `Date` can hold, in milliseconds (ECMA-262, time values). */
export const maxTimestampMs = 8_640_000_000_000_000;

export type JsonValue = null | boolean | number | string | JsonValue[] | { [key: string]: JsonValue };
