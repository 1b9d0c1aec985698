/** JSON with a checksum in front: `{"crc32":"9f3a01c2",` and the other fields. The checksum is of the bytes after its eight digits. */
import { checksum, decodeUtf8, encodeUtf8 } from '../base/bytes.ts';

const prefix = '{"crc32":"';
const digits = 8;
/** Offset of the bytes that the checksum is of. */
const restAt = prefix.length + digits;

function checksumText(rest: Uint8Array): string {
  return checksum(rest).toString(16).padStart(digits, '0');
}

/** Encodes an object that has at least one field. */
export function encodeCheckedJson(fields: object): Uint8Array {
  const rest = `",${JSON.stringify(fields).slice(1)}`;
  return encodeUtf8(prefix + checksumText(encodeUtf8(rest)) + rest);
}

/** The fields of an object, and whether they match the checksum. */
export interface CheckedJson {
  readonly fields: Readonly<Record<string, unknown>>;
  readonly matches: boolean;
}

/** Decodes an object. Throws `SyntaxError` and `TypeError` for bytes that are no such JSON. */
export function decodeCheckedJson(bytes: Uint8Array): CheckedJson {
  const text = decodeUtf8(bytes);
  if (!text.startsWith(prefix)) throw new SyntaxError('it does not begin with its checksum');
  const { crc32: _, ...fields } = JSON.parse(text) as Record<string, unknown>;
  return { fields, matches: checksumText(bytes.subarray(restAt)) === text.slice(prefix.length, restAt) };
}
