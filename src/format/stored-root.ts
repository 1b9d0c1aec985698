/** The root of a tree, as Block 0 holds it. */
import type { BlockRef } from './child-ref.ts';

/** Root of a tree, null while the tree is empty. */
export type StoredRoot = (BlockRef & { readonly level: number }) | null;

export function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

export function isBase64(value: unknown): value is string {
  return typeof value === 'string' && /^[A-Za-z0-9+/]*={0,2}$/.test(value) && value.length % 4 === 0;
}

export function isRoot(value: unknown): value is StoredRoot {
  if (value === null) return true;
  if (typeof value !== 'object') return false;
  const { birth, id, count, sizeBytes, level } = value as Record<string, unknown>;
  return [birth, count, sizeBytes, level].every(isCount) && typeof id === 'string' && /^[0-9a-f]{16}$/.test(id);
}
