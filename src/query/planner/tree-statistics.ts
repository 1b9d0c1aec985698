/**
 * What can be told of a tree, and of a range of it, from the blocks that are in memory: how many entries there are, in how
 * many leaves, and how many of those would have to be read. Nothing is read, and no block counts as used.
 */
import { childRefBytes } from '../../format/block.ts';
import type { BlockRef } from '../../format/block.ts';
import type { Node } from '../../format/node.ts';
import type { KeyRange } from '../../tree/cursor.ts';
import type { Tree } from '../../tree/tree.ts';
import type { IndexAccess } from './access-paths.ts';

/** Bytes of a key in an inner node that is not in memory. */
const usualKeyBytes = 6;
/** Entries of a leaf where not even the root tells. */
const usualLeafEntries = 500;
/** Children of a node that are looked at one by one; of more, as many are taken at even distances. */
const fewChildren = 16;
/** The part of a block that is not in memory which a range that lies within it is taken to have. */
const partWithin = 0.1;
/** The part of such a block that a range is taken to have if it only begins or ends in the block. */
const partAtEnd = 0.5;
/** The part of such a block that one value is taken to have if it has no block of its own. */
const partOfPair = 0.15;
/**
 * Entries of one value in a block that is not in memory. Few: if they are many, their rows are in all the leaves of the table,
 * which reading the table instead would read as well, so that little is lost by the wrong guess.
 */
const entriesOfValue = 2;

/** Ranges that are looked at one by one; of more, some hundreds are taken at even distances. */
const fewRanges = 1024;
/** Of fewer values the number of entries says nothing of others. */
const minCounted = 2;

/** The shape of a tree. */
export interface TreeEstimate {
  readonly entries: number;
  readonly leaves: number;
  /** Levels above the leaves. */
  readonly level: number;
  /** Which part of the leaves is in memory, from 0 to 1. */
  readonly cachedFraction: number;
  /** Size of a leaf, in bytes. */
  readonly leafBytes: number;
}

/** A range of a tree. */
interface RangeEstimate {
  readonly entries: number;
  /** Whether `entries` was counted rather than guessed. */
  readonly exact: boolean;
  /** Leaves that hold the range. */
  readonly leaves: number;
  /** Those of them that would have to be read. */
  readonly missing: number;
}

const emptyTree: TreeEstimate = { entries: 0, leaves: 0, level: 0, cachedFraction: 1, leafBytes: 0 };
const nothing: RangeEstimate = { entries: 0, exact: true, leaves: 0, missing: 0 };

/** A sum over the children `from` to `to`, both included; of many, from some of them. */
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

/** Sum of the entries below children `from` to `to`. */
function countChildren(node: Node, from: number, to: number): number {
  return sumOver(from, to, (i) => node.childCount(i));
}

/** How many of the children `from` to `to` are in memory. */
function countCached(tree: Tree, node: Node, from: number, to: number): number {
  return sumOver(from, to, (i) => (tree.source.glanceChild(node, i) === undefined ? 0 : 1));
}

/** An inner node as far down as there is one in memory, of those in the middle. */
function lowestInner(tree: Tree, root: Node): Node {
  let node = root;
  while (node.level > 1) {
    const middle = node.count >> 1;
    let below: Node | undefined;
    for (let i = 0; i < Math.min(node.count, fewChildren) && below === undefined; i++) {
      below = tree.source.glanceChild(node, (middle + i) % node.count);
    }
    if (below === undefined) return node;
    node = below;
  }
  return node;
}

/** Leaves below an inner node whose children are not in memory: by their sizes, of which each entry takes as much as in the node. */
function leavesBelow(node: Node): number {
  const entryBytes = Math.max(1, (node.sizeBytes - node.prefixStart) / node.count);
  const childBytes = sumOver(0, node.count - 1, (i) => node.child(i).sizeBytes) / node.count;
  return node.count * Math.max(1, childBytes / entryBytes) ** (node.level - 1);
}

interface KnownEstimate {
  readonly turnover: number;
  readonly estimate: TreeEstimate;
}

const known = new WeakMap<Tree, KnownEstimate>();

/** The tree as a whole. Worked out anew only when a block has come into memory or gone since. */
export function estimateTree(tree: Tree): TreeEstimate {
  if (tree.ref === null) return emptyTree;
  const { turnover } = tree.source.counters;
  const before = known.get(tree);
  if (before?.turnover === turnover) return before.estimate;
  const estimate = estimateAnew(tree, tree.ref);
  known.set(tree, { turnover, estimate });
  return estimate;
}

function estimateAnew(tree: Tree, ref: BlockRef & { readonly level: number }): TreeEstimate {
  const { count: entries, level, sizeBytes } = ref;
  const root = tree.glanceRoot();
  if (level === 0)
    return { entries, leaves: 1, level, cachedFraction: root === undefined ? 0 : 1, leafBytes: sizeBytes };
  if (root === undefined) {
    // The length of a root right above the leaves tells how many there are.
    const leaves = level === 1 ? sizeBytes / (childRefBytes + usualKeyBytes) : entries / usualLeafEntries;
    return { entries, leaves: Math.min(entries, Math.max(1, leaves)), level, cachedFraction: 0, leafBytes: sizeBytes };
  }
  const inner = lowestInner(tree, root);
  const last = inner.count - 1;
  const below = countChildren(inner, 0, last);
  const perLeaf = below / (inner.level === 1 ? inner.count : leavesBelow(inner));
  const cachedFraction = inner.level === 1 ? countCached(tree, inner, 0, last) / inner.count : 0;
  const leafBytes = inner.child(inner.count >> 1).sizeBytes;
  return { entries, leaves: Math.max(1, entries / Math.max(1, perLeaf)), level, cachedFraction, leafBytes };
}

class RangeCounter {
  readonly #tree: Tree;
  readonly #shape: TreeEstimate;
  readonly #ofValue: boolean;
  entries = 0;
  exact = true;
  leaves = 0;
  missing = 0;

  constructor(tree: Tree, shape: TreeEstimate, ofValue: boolean) {
    this.#tree = tree;
    this.#shape = shape;
    this.#ofValue = ofValue;
  }

  /** A whole subtree, or what is known of several. */
  #addChildren(node: Node, from: number, to: number): void {
    if (from > to) return;
    const entries = countChildren(node, from, to);
    this.entries += entries;
    if (node.level === 1) {
      this.leaves += to - from + 1;
      this.missing += to - from + 1 - countCached(this.#tree, node, from, to);
    } else this.#addUnseen(entries);
  }

  /** So many entries in leaves that are not looked at. */
  #addUnseen(entries: number): void {
    const leaves = (entries / Math.max(1, this.#shape.entries)) * this.#shape.leaves;
    this.leaves += leaves;
    this.missing += leaves * (1 - this.#shape.cachedFraction);
  }

  /** What lies between the bounds below a node. A bound that is undefined lies outside. */
  add(start: Node, from: Uint8Array | undefined, to: Uint8Array | undefined): void {
    let node = start;
    while (node.level > 0) {
      const first = from === undefined ? 0 : node.childFor(from);
      const last = to === undefined ? node.count - 1 : node.childFor(to);
      if (first < last) {
        this.#addChildren(node, first + (from === undefined ? 0 : 1), last - (to === undefined ? 0 : 1));
        // A value that ends in the next block has fewer entries than one that has blocks of its own.
        const part = this.#ofValue && last === first + 1 ? partOfPair : partAtEnd;
        if (from !== undefined) this.#addPart(node, first, part, from, undefined);
        if (to !== undefined) this.#addPart(node, last, part, undefined, to);
        return;
      }
      if (from === undefined && to === undefined) {
        this.#addChildren(node, first, last);
        return;
      }
      const below = this.#tree.source.glanceChild(node, first);
      if (below === undefined) {
        const entries = node.childCount(first);
        const guess = this.#ofValue ? Math.min(entries, entriesOfValue) : entries * partWithin;
        this.#addUnseenPart(node, guess);
        return;
      }
      node = below;
    }
    const begin = from === undefined ? 0 : node.lowerBound(from);
    const end = to === undefined ? node.count : node.lowerBound(to);
    if (end <= begin) return;
    this.entries += end - begin;
    this.leaves++;
  }

  #addPart(node: Node, i: number, part: number, from: Uint8Array | undefined, to: Uint8Array | undefined): void {
    const below = this.#tree.source.glanceChild(node, i);
    if (below === undefined) this.#addUnseenPart(node, node.childCount(i) * part);
    else this.add(below, from, to);
  }

  #addUnseenPart(node: Node, guess: number): void {
    const entries = Math.max(1, guess);
    this.exact = false;
    this.entries += entries;
    if (node.level > 1) this.#addUnseen(entries);
    else {
      this.leaves++;
      this.missing++;
    }
  }
}

/** A range of the tree, or the entries of one value. `shape` is what {@link estimateTree} says of it. */
function estimateRange(tree: Tree, { from, to }: KeyRange, shape: TreeEstimate, ofValue: boolean): RangeEstimate {
  if (tree.ref === null) return nothing;
  const { entries, leaves, cachedFraction } = shape;
  if (from === undefined && to === undefined)
    return { entries, exact: true, leaves, missing: leaves * (1 - cachedFraction) };
  const root = tree.glanceRoot();
  if (root === undefined) {
    const guess = ofValue ? Math.min(entries, entriesOfValue) : Math.max(1, entries * partWithin);
    return { entries: guess, exact: false, leaves: 1, missing: 1 };
  }
  const counter = new RangeCounter(tree, shape, ofValue);
  counter.add(root, from, to);
  return counter;
}

/** Ranges of the tree, together. Where some values were counted, those that are guessed are taken to be like them. */
export function estimateRanges(tree: Tree, ranges: readonly KeyRange[], ofValues = false): RangeEstimate {
  const shape = estimateTree(tree);
  const sum = { entries: 0, leaves: 0, missing: 0, exact: true };
  let counted = 0;
  let guessed = 0;
  let seen = 0;
  const step = Math.ceil(ranges.length / fewRanges);
  for (let i = 0; i < ranges.length; i += step) {
    const found = estimateRange(tree, ranges[i] as KeyRange, shape, ofValues);
    seen++;
    sum.leaves += found.leaves;
    sum.missing += found.missing;
    sum.exact &&= found.exact;
    if (ofValues && !found.exact) guessed += found.entries;
    else {
      sum.entries += found.entries;
      counted++;
    }
  }
  const likeThem = counted < minCounted ? 0 : (sum.entries / counted) * (seen - counted);
  sum.entries += Math.max(guessed, likeThem);
  if (step === 1) return sum;
  const times = ranges.length / seen;
  sum.entries *= times;
  sum.leaves *= times;
  sum.missing *= times;
  return sum;
}

/** What is read of an index: several ranges are taken to be of one value each. */
export function estimateEntries(tree: Tree, { ofValues, ranges }: IndexAccess): RangeEstimate {
  return estimateRanges(tree, ranges, ofValues || ranges.length > 1);
}
