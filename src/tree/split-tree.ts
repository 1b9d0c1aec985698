/**
 * Two trees as one, each for the keys on one side of a bound: what has been made of a tree so far, and what it is made of.
 * Leaves of either may hold keys of the other side, which are not shown.
 */
import { compareBytes, compareRanges } from '../base/bytes.ts';
import type { Node } from '../format/node.ts';
import { CursorSequence } from './cursor-sequence.ts';
import { TreeCursor } from './cursor.ts';
import type { KeyRange, RunCursor } from './cursor.ts';
import { Tree } from './tree.ts';
import type { RowHit } from './tree.ts';

export class SplitTree extends Tree {
  /** Has the keys under the bound; undefined: there are none. */
  readonly lower: Tree | undefined;
  /** Has the keys from the bound on. */
  readonly upper: Tree;
  readonly bound: Uint8Array;

  /** Its number of entries is that of `upper`, which counts as if it had all keys. */
  constructor(lower: Tree | undefined, upper: Tree, bound: Uint8Array) {
    super(upper.source, upper.ref);
    this.lower = lower;
    this.upper = upper;
    this.bound = bound;
  }

  override get identity(): undefined {
    return undefined;
  }

  override peekRoot(): Node | undefined {
    return this.upper.peekRoot();
  }

  override glanceRoot(): Node | undefined {
    return this.upper.glanceRoot();
  }

  override loadRoot(): Promise<Node> {
    return this.upper.loadRoot();
  }

  override get mayBreak(): boolean {
    return this.upper.mayBreak || this.lower?.mayBreak === true;
  }

  override lookup(key: Uint8Array, length: number = key.length): RowHit | undefined | Promise<RowHit | undefined> {
    const isUnder = compareRanges(key, 0, length, this.bound, 0, this.bound.length) < 0;
    return isUnder ? this.lower?.lookup(key, length) : this.upper.lookup(key, length);
  }

  /** Not known: keys of either side may lie in leaves of the other. */
  override holdsNone(): boolean {
    return false;
  }
}

/** The part of a range of keys that is under a bound, and the part from the bound on; undefined where it is empty. */
export function splitRange({ from, to }: KeyRange, bound: Uint8Array): [KeyRange | undefined, KeyRange | undefined] {
  const isUnder = (key: Uint8Array): boolean => compareBytes(key, bound) < 0;
  const [begins, ends] = [from === undefined || isUnder(from), to !== undefined && compareBytes(to, bound) <= 0];
  return [begins ? { from, to: ends ? to : bound } : undefined, ends ? undefined : { from: begins ? bound : from, to }];
}

/** A cursor over any tree. */
export function openCursor(tree: Tree, range: KeyRange = {}, descending = false): RunCursor {
  if (!(tree instanceof SplitTree)) return new TreeCursor(tree, range, descending);
  const { lower, upper, bound } = tree;
  const [under, above] = splitRange(range, bound);
  const cursors = [
    ...(lower === undefined || under === undefined ? [] : [new TreeCursor(lower, under, descending)]),
    ...(above === undefined ? [] : [new TreeCursor(upper, above, descending)]),
  ];
  if (descending) cursors.reverse();
  return new CursorSequence(cursors.length, (i) => cursors[i] as RunCursor);
}
