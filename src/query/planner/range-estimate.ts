/**
 * Estimates of ranges of a tree from the blocks that are in memory: how many entries there are, in how many leaves, and how
 * many of those would have to be read. Nothing is read, and no block counts as used.
 */
import type { Node } from '../../format/node.ts';
import type { KeyRange } from '../../tree/cursor.ts';
import { countCached, countChildren } from '../../tree/tree-estimate.ts';
import type { TreeEstimate } from '../../tree/tree-estimate.ts';
import type { Tree } from '../../tree/tree.ts';
import type { IndexAccess } from './access-paths.ts';

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

const nothing: RangeEstimate = { entries: 0, exact: true, leaves: 0, missing: 0 };

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
      this.missing += to - from + 1 - countCached(this.#tree.source, node, from, to);
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

/** A range of the tree, or the entries of one value. `shape`: as `Tree.estimate` gives it. */
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
  const shape = tree.estimate();
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
