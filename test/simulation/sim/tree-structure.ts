/** Whether a block matches its parent or Block 0: a part of the oracle, so it uses the decoder and nothing else. */
import { compareBytes } from '../../../src/base/bytes.ts';
import type { BlockRef } from '../../../src/format/block.ts';
import type { Node } from '../../../src/format/node.ts';

/** What is above a block knows of it. Keys are from `lower` on, and below `upper`. */
export interface Expected {
  readonly level: number;
  /** Rows in it and below it. */
  readonly count: number;
  readonly lower?: Uint8Array | undefined;
  readonly upper?: Uint8Array | undefined;
}

/** What is wrong with a block; undefined if nothing is. */
export function structureProblem(node: Node, { level, count, lower, upper }: Expected): string | undefined {
  if (node.level !== level) return `is of level ${node.level}, not ${level}`;
  if (node.totalCount() !== count) return `has ${node.totalCount()} rows in it and below it, not ${count}`;
  if (node.count === 0) return 'is empty';
  let previous: Uint8Array | undefined;
  for (let i = 0; i < node.count; i++) {
    const key = node.key(i);
    if (previous !== undefined && compareBytes(previous, key) >= 0) return `has entry ${i} out of order`;
    previous = key;
    // The first separator of an inner node bounds nothing.
    if (level > 0 && i === 0) continue;
    if (lower !== undefined && compareBytes(key, lower) < 0) return `has entry ${i} before its separator`;
    if (upper !== undefined && compareBytes(key, upper) >= 0) return `has entry ${i} behind the next separator`;
  }
  return undefined;
}

/** A child, and what is to be expected of it. */
export interface ExpectedChild {
  readonly ref: BlockRef;
  readonly expected: Expected;
}

export function childrenOf(node: Node, { level, lower, upper }: Expected): ExpectedChild[] {
  return Array.from({ length: node.count }, (_, i) => {
    const ref = node.child(i);
    return {
      ref,
      expected: {
        level: level - 1,
        count: ref.count,
        lower: i === 0 ? lower : node.key(i),
        upper: i + 1 < node.count ? node.key(i + 1) : upper,
      },
    };
  });
}
