/** How far work has come that goes through a tree in the order of its keys, as Block 0 holds it. */

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
