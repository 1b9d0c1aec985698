/**
 * The one total order of values: null first, then by value. Numbers numerically (-0 equals 0), strings by Unicode code
 * point, booleans false first, bytes bytewise. JavaScript's `<` on strings compares UTF-16 code units, which is a
 * different order (U+FFFF against U+10000), so no other code compares strings with it.
 */
import { isBytes } from './brands.ts';
import { compareBytes } from './bytes.ts';

/** Compares two strings by Unicode code point, which is also the order of their UTF-8 bytes. */
export function compareStrings(a: string, b: string): number {
  const shared = Math.min(a.length, b.length);
  for (let i = 0; i < shared; i++) {
    let x = a.charCodeAt(i);
    let y = b.charCodeAt(i);
    if (x === y) continue;
    // Surrogates (U+D800 to U+DFFF) stand for code points above every other unit: move them up, the rest down.
    if (x >= 0xd800) x = x >= 0xe000 ? x - 0x800 : x + 0x2000;
    if (y >= 0xd800) y = y >= 0xe000 ? y - 0x800 : y + 0x2000;
    return x - y;
  }
  return a.length - b.length;
}

/** A value that the order knows. Both sides of a comparison are of one field, hence of one kind (or null). */
export type OrderedValue = null | boolean | number | bigint | string | Date | Uint8Array;

/** Compares two values of one field. Negative, zero or positive. */
export function compareValues(a: OrderedValue, b: OrderedValue): number {
  if (a === null) return b === null ? 0 : -1;
  if (b === null) return 1;
  if (typeof a === 'string') return compareStrings(a, b as string);
  if (typeof a === 'object') {
    return isBytes(a) ? compareBytes(a, b as Uint8Array) : a.getTime() - (b as Date).getTime();
  }
  // Numbers, bigints (mixed comparisons are exact in JavaScript) and booleans.
  const x = a as number;
  const y = b as number;
  return x < y ? -1 : x > y ? 1 : 0;
}
