/**
 * Estimates ranges of a tree from the blocks in memory: the number of entries, the number of leaves, and how many of the leaves must be
 * read. Reads nothing, and counts no block as used.
 */
import type { Node } from '../../format/node.ts';
import type { KeyRange } from '../../tree/cursor.ts';
import { countCached, countChildren } from '../../tree/tree-estimate.ts';
import type { TreeEstimate } from '../../tree/tree-estimate.ts';
import type { Tree } from '../../tree/tree.ts';
import type { IndexAccess } from './access-paths.ts';

/** The assumed part of a block outside memory that a range within the block covers. */
const partWithin = 0.1;
/** The assumed part of such a block that a range covers if it only begins or ends there. */
const partAtEnd = 0.5;
/** The assumed part of such a block that one value covers if it fills no whole block. */
const partOfPair = 0.15;
/**
 * The assumed entries of one value within a block outside memory. The guess is low, since a wrong low guess costs little: the rows of
 * many entries are in all leaves of the table, which a scan of the table would read as well.
 */
const entriesOfValue = 2;

/** Up to so many ranges are estimated one by one. Of more, some hundreds are taken at even distances. */
const fewRanges = 1024;
/** The fewest counted values from which the entries of others are extrapolated. */
const minCounted = 2;

/** The estimated size of a range of a tree. */
interface RangeEstimate {
  readonly entries: number;
  /** Whether `entries` was counted rather than guessed. */
  readonly exact: boolean;
  /** The leaves that hold the range. */
  readonly leaves: number;
  /** The leaves that must be read. */
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

  /** Adds whole subtrees. */
  #addChildren(node: Node, from: number, to: number): void {
    if (from > to) return;
    const entries = countChildren(node, from, to);
    this.entries += entries;
    if (node.level === 1) {
      this.leaves += to - from + 1;
      this.missing += to - from + 1 - countCached(this.#tree.source, node, from, to);
    } else this.#addUnseen(entries);
  }

  /** Adds entries in leaves that are not examined. */
  #addUnseen(entries: number): void {
    const leaves = (entries / Math.max(1, this.#shape.entries)) * this.#shape.leaves;
    this.leaves += leaves;
    this.missing += leaves * (1 - this.#shape.cachedFraction);
  }

  /** Adds the entries below a node that lie between the bounds. An undefined bound lies outside the node. */
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
      const below = this.#tree.source.peekChild(node, first);
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
    const below = this.#tree.source.peekChild(node, i);
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

/** Estimates a range of a tree, or the entries of one value. `shape`: the result of `Tree.estimate`. */
function estimateRange(tree: Tree, { from, to }: KeyRange, shape: TreeEstimate, ofValue: boolean): RangeEstimate {
  if (tree.ref === null) return nothing;
  const { entries, leaves, cachedFraction } = shape;
  if (from === undefined && to === undefined)
    return { entries, exact: true, leaves, missing: leaves * (1 - cachedFraction) };
  const root = tree.peekRoot();
  if (root === undefined) {
    const guess = ofValue ? Math.min(entries, entriesOfValue) : Math.max(1, entries * partWithin);
    return { entries: guess, exact: false, leaves: 1, missing: 1 };
  }
  const counter = new RangeCounter(tree, shape, ofValue);
  counter.add(root, from, to);
  return counter;
}

/** Estimates ranges of a tree together. If some values were counted, the others are assumed to have as many entries. */
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

/** Estimates the entries that an access reads. Several ranges are assumed to have one value each. */
export function estimateEntries(tree: Tree, { ofValues, ranges }: IndexAccess): RangeEstimate {
  return estimateRanges(tree, ranges, ofValues || ranges.length > 1);
}
