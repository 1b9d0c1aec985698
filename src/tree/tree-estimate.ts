/** Estimates how many entries and leaves a tree has, and which part of it is in memory. */
import { childRefBytes } from '../format/block.ts';
import type { BlockRef } from '../format/block.ts';
import type { Node } from '../format/node.ts';
import type { BlockSource } from './block-source.ts';

/** Assumed bytes of a key in an inner node that is not in memory. */
const usualKeyBytes = 6;
/** Assumed entries of a leaf if the root is not in memory. */
const usualLeafEntries = 500;
/**
 * Up to this number, all children of a node are examined; of more children, a sample of about this number at equal distances.
 */
const fewChildren = 16;

/** The shape of a tree. */
export interface TreeEstimate {
  readonly entries: number;
  readonly leaves: number;
  /** Levels above the leaves. */
  readonly level: number;
  /** Fraction of the leaves in memory, from 0 to 1. */
  readonly cachedFraction: number;
  /** Size of a leaf, in bytes. */
  readonly leafBytes: number;
}

const emptyTree: TreeEstimate = { entries: 0, leaves: 0, level: 0, cachedFraction: 1, leafBytes: 0 };

/** Returns a sum over the children `from` to `to`, inclusive; for many children, estimated from a sample. */
function sumOver(from: number, to: number, of: (child: number) => number): number {
  const children = to - from + 1;
  const step = Math.max(1, Math.floor(children / fewChildren));
  let sum = 0;
  let seen = 0;
  for (let i = from; i <= to; i += step) {
    sum += of(i);
    seen++;
  }
  return seen === 0 ? 0 : (sum / seen) * children;
}

/** Returns the number of entries below children `from` to `to`. */
export function countChildren(node: Node, from: number, to: number): number {
  return sumOver(from, to, (i) => node.childCount(i));
}

/** Returns the number of the children `from` to `to` that are in memory. */
export function countCached(source: BlockSource, node: Node, from: number, to: number): number {
  return sumOver(from, to, (i) => (source.peekChild(node, i) === undefined ? 0 : 1));
}

/** Returns an inner node near the middle, on the lowest level at which one is in memory. */
function lowestInner(source: BlockSource, root: Node): Node {
  let node = root;
  while (node.level > 1) {
    const middle = node.count >> 1;
    let below: Node | undefined;
    for (let i = 0; i < Math.min(node.count, fewChildren) && below === undefined; i++) {
      below = source.peekChild(node, (middle + i) % node.count);
    }
    if (below === undefined) return node;
    node = below;
  }
  return node;
}

/**
 * Estimates the leaves below an inner node whose children are not in memory. It assumes that an entry takes as many bytes in
 * the children as in the node.
 */
function leavesBelow(node: Node): number {
  const entryBytes = Math.max(1, (node.sizeBytes - node.prefixStart) / node.count);
  const childBytes = sumOver(0, node.count - 1, (i) => node.child(i).sizeBytes) / node.count;
  return node.count * Math.max(1, childBytes / entryBytes) ** (node.level - 1);
}

/**
 * Estimates the shape of a tree from its blocks in memory. It reads nothing, and no block counts as used. `root`: undefined if
 * it is not in memory.
 */
export function estimateTree(
  source: BlockSource,
  ref: (BlockRef & { readonly level: number }) | null,
  root: Node | undefined,
): TreeEstimate {
  if (ref === null) return emptyTree;
  const { count: entries, level, sizeBytes } = ref;
  if (level === 0)
    return { entries, leaves: 1, level, cachedFraction: root === undefined ? 0 : 1, leafBytes: sizeBytes };
  if (root === undefined) {
    // The length of a root directly above the leaves gives their number.
    const leaves = level === 1 ? sizeBytes / (childRefBytes + usualKeyBytes) : entries / usualLeafEntries;
    return { entries, leaves: Math.min(entries, Math.max(1, leaves)), level, cachedFraction: 0, leafBytes: sizeBytes };
  }
  const inner = lowestInner(source, root);
  const last = inner.count - 1;
  const below = countChildren(inner, 0, last);
  const perLeaf = below / (inner.level === 1 ? inner.count : leavesBelow(inner));
  const cachedFraction = inner.level === 1 ? countCached(source, inner, 0, last) / inner.count : 0;
  const leafBytes = inner.child(inner.count >> 1).sizeBytes;
  return { entries, leaves: Math.max(1, entries / Math.max(1, perLeaf)), level, cachedFraction, leafBytes };
}
