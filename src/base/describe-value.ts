/** Values in the messages of errors. */
import { isBytes, isDate } from './brands.ts';

const longest = 2n ** 256n;

/** Whether it would take long to write out: that grows faster than the digits do. */
function isLong(value: bigint): boolean {
  return value > longest || value < -longest;
}

/** A short, safe rendering of any value for a message. */
export function describeValue(value: unknown): string {
  if (typeof value === 'string') return value.length > 60 ? `'${value.slice(0, 57)}...'` : `'${value}'`;
  if (typeof value === 'bigint') return isLong(value) ? 'a bigint of more than 77 digits' : `${value}n`;
  if (typeof value === 'symbol') return 'a symbol';
  if (typeof value === 'function') return 'a function';
  if (isDate(value)) {
    return Number.isNaN(value.getTime()) ? 'an invalid Date' : `the Date ${value.toISOString()}`;
  }
  if (isBytes(value)) return `${value.length} bytes`;
  if (Array.isArray(value)) return 'an array';
  if (typeof value === 'object' && value !== null) return 'an object';
  return String(value);
}

/** A primary key for messages: the values of one that is made of several. */
export function describeKey(key: unknown): string {
  return Array.isArray(key) ? `[${key.map(describeValue).join(', ')}]` : describeValue(key);
}
