/** The order of what is at a path into json, where groups are sorted by it: that of queries. */
import { compareBytes } from '../base/bytes.ts';
import { sortableBytes } from '../format/json-path.ts';

/** Compares values of any type: null comes first, then false, true, numbers, texts, objects and lists. */
export function compareJson(a: unknown, b: unknown): number {
  if (a === null || b === null) return Number(b === null) - Number(a === null);
  return compareBytes(sortableBytes(a), sortableBytes(b));
}
