/** How far work has come that goes through a tree in the order of its keys, as Block 0 holds it. */

import { compareBytes } from '../base/bytes.ts';

/** The last key that was dealt with; undefined before the first, null once all were. */
export type Bound = Uint8Array | undefined | null;

/** The same as base64: empty before the first key. */
export function encodeBound(bound: Bound): string | null {
  return bound === null ? null : Buffer.from(bound ?? []).toString('base64');
}

export function decodeBound(stored: string | null): Bound {
  if (stored === null) return null;
  return stored === '' ? undefined : new Uint8Array(Buffer.from(stored, 'base64'));
}

/** Whether the turn of a key has not come yet. */
export function isBehind(key: Uint8Array, bound: Bound): boolean {
  return bound !== null && (bound === undefined || compareBytes(key, bound) > 0);
}
