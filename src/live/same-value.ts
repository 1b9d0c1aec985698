/** Compares values of rows, and results of aggregates. */
import { isBytes, isDate } from '../base/brands.ts';
import { compareBytes } from '../base/bytes.ts';

/** Whether two values of a row, or two rows, are the same by value. */
export function isSameValue(a: unknown, b: unknown): boolean {
  if (Object.is(a, b)) return true;
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return false;
  if (isBytes(a)) return isBytes(b) && compareBytes(a, b) === 0;
  if (isDate(a)) return isDate(b) && Object.is(a.getTime(), b.getTime());
  if (Array.isArray(a) !== Array.isArray(b)) return false;
  const names = Object.keys(a);
  if (names.length !== Object.keys(b).length) return false;
  const [first, second] = [a as Record<string, unknown>, b as Record<string, unknown>];
  return names.every((name) => Object.hasOwn(second, name) && isSameValue(first[name], second[name]));
}
