/**
 * Two trees that act as one, each with the keys on one side of a bound: the part of a tree that is already rebuilt, and the tree that it
 * is rebuilt from. Leaves of either tree may hold keys of the other side; they are not shown.
 */
import { compareBytes, compareRanges } from '../base/bytes.ts';
import type { Node } from '../format/node.ts';
import type { KeyRange } from './cursor.ts';
import { Tree } from './tree.ts';
import type { RowRef } from './tree.ts';

export class TwoPartTree extends Tree {
  /** The tree with the keys below the bound; undefined if there are none. */
  readonly lower: Tree | undefined;
  /** The tree with the keys from the bound on. */
  readonly upper: Tree;
  readonly bound: Uint8Array;

  /** The count of entries is that of `upper`, as if it had all keys. */
  constructor(lower: Tree | undefined, upper: Tree, bound: Uint8Array) {
    super(upper.source, upper.ref, undefined, upper.mayBreak || lower?.mayBreak === true);
    this.lower = lower;
    this.upper = upper;
    this.bound = bound;
  }

  override get identity(): undefined {
    return undefined;
  }

  override getCachedRoot(): Node | undefined {
    return this.upper.getCachedRoot();
  }

  override peekRoot(): Node | undefined {
    return this.upper.peekRoot();
  }

  override loadRoot(): Promise<Node> {
    return this.upper.loadRoot();
  }

  override lookup(key: Uint8Array, length: number = key.length): RowRef | undefined | Promise<RowRef | undefined> {
    return this.#isUnder(key, length) ? this.lower?.lookup(key, length) : this.upper.lookup(key, length);
  }

  override lookupCached(key: Uint8Array, length: number): RowRef | null | undefined {
    if (!this.#isUnder(key, length)) return this.upper.lookupCached(key, length);
    return this.lower === undefined ? null : this.lower.lookupCached(key, length);
  }

  #isUnder(key: Uint8Array, length: number): boolean {
    return compareRanges(key, 0, length, this.bound, 0, this.bound.length) < 0;
  }

  /** Always undefined, because leaves of one tree may hold keys of the other side. */
  override holds(): undefined {
    return undefined;
  }
}

/** Splits a range of keys into the part below a bound and the part from the bound on; an empty part is undefined. */
export function splitRange({ from, to }: KeyRange, bound: Uint8Array): [KeyRange | undefined, KeyRange | undefined] {
  const isUnder = (key: Uint8Array): boolean => compareBytes(key, bound) < 0;
  const [begins, ends] = [from === undefined || isUnder(from), to !== undefined && compareBytes(to, bound) <= 0];
  return [begins ? { from, to: ends ? to : bound } : undefined, ends ? undefined : { from: begins ? bound : from, to }];
}
