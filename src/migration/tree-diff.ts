/**
 * Finds the differences between two trees whose rows have the same layout. Subtrees that both trees share are skipped unread,
 * so the work is proportional to the difference if one tree was made from the other by changes.
 */
import { compareBytes } from '../base/bytes.ts';
import { isSameBlock } from '../format/block.ts';
import type { BlockRef } from '../format/block.ts';
import type { Node } from '../format/node.ts';
import { sameRow } from '../format/row-decode.ts';
import type { RowLayout } from '../format/row-layout.ts';
import { loadChild } from '../tree/tree.ts';
import type { RowRef, Tree } from '../tree/tree.ts';

/** A key whose rows differ; the row may be missing on one side. */
export interface RowDifference {
  readonly key: Uint8Array;
  readonly before: RowRef | undefined;
  readonly after: RowRef | undefined;
}

interface Step {
  readonly node: Node;
  at: number;
  /** Bounds of the keys below the node: `low` is inclusive, `high` exclusive. Undefined means unbounded. */
  readonly low: Uint8Array | undefined;
  readonly high: Uint8Array | undefined;
}

/** A position in a tree: an entry of a leaf, or a subtree that has not been entered. */
class Walker {
  readonly #tree: Tree;
  readonly #path: Step[] = [];
  /** Whether the root has not been entered. */
  #above: boolean;

  constructor(tree: Tree) {
    this.#tree = tree;
    this.#above = tree.ref !== null;
  }

  get #step(): Step | undefined {
    return this.#path[this.#path.length - 1];
  }

  get done(): boolean {
    return !this.#above && this.#path.length === 0;
  }

  get onEntry(): boolean {
    return !this.#above && this.#step?.node.level === 0;
  }

  /** The subtree at the position. */
  get ref(): BlockRef {
    const step = this.#step;
    return this.#above || step === undefined ? (this.#tree.ref as BlockRef) : step.node.child(step.at);
  }

  /** The level of the subtree. */
  get level(): number {
    return this.#above ? (this.#tree.ref?.level ?? 0) : (this.#step as Step).node.level - 1;
  }

  /** The first key that may be in the subtree; for an entry, its key. */
  get low(): Uint8Array | undefined {
    const step = this.#step;
    if (this.#above || step === undefined) return undefined;
    return step.node.level > 0 && step.at === 0 ? step.low : step.node.key(step.at);
  }

  /** The first key after the subtree. */
  get high(): Uint8Array | undefined {
    const step = this.#step;
    if (this.#above || step === undefined) return undefined;
    return step.at + 1 < step.node.count ? step.node.key(step.at + 1) : step.high;
  }

  get rowRef(): RowRef {
    const { node, at } = this.#step as Step;
    return { source: node, base: node.rowBase(at) };
  }

  /** Moves past the entry or subtree. */
  pass(): void {
    this.#above = false;
    for (let step = this.#step; step !== undefined; step = this.#step) {
      if (++step.at < step.node.count) return;
      this.#path.pop();
    }
  }

  /** Enters the subtree. */
  async enter(): Promise<void> {
    const { low, high } = this;
    const step = this.#step;
    const tree = this.#tree;
    let node: Node;
    if (this.#above || step === undefined) {
      node = tree.getCachedRoot() ?? (await tree.loadRoot());
      this.#above = false;
    } else node = tree.source.getCachedChild(step.node, step.at) ?? (await loadChild(tree.source, step.node, step.at));
    if (node.count > 0) this.#path.push({ node, at: 0, low, high });
    else if (step !== undefined) this.pass();
  }
}

/** Yields the keys whose rows differ between two trees of a layout, in ascending order. */
export async function* diffTrees(before: Tree, after: Tree, layout: RowLayout): AsyncGenerator<RowDifference> {
  const [a, b] = [new Walker(before), new Walker(after)];
  while (!a.done || !b.done) {
    if (!a.done && !b.done && !a.onEntry && !b.onEntry) {
      if (isSameBlock(a.ref, b.ref) && a.level === b.level) {
        a.pass();
        b.pass();
      } else await enterOne(a, b);
      continue;
    }
    const order = a.done ? 1 : b.done ? -1 : compareLows(a, b);
    // An entry is yielded once the other side can no longer have its key.
    const first = order <= 0 ? a : b;
    const other = first === a ? b : a;
    if (!first.onEntry) await first.enter();
    else if (order === 0 && !other.onEntry) await other.enter();
    else {
      const key = first.low as Uint8Array;
      const old = order <= 0 ? a.rowRef : undefined;
      const next = order >= 0 ? b.rowRef : undefined;
      if (old === undefined || next === undefined || !sameRow(layout, old, next)) {
        yield { key, before: old, after: next };
      }
      if (order <= 0) a.pass();
      if (order >= 0) b.pass();
    }
  }
}

/** Compares two walkers by the first key that each may hold. */
function compareLows(a: Walker, b: Walker): number {
  const [x, y] = [a.low, b.low];
  if (x === undefined || y === undefined) return x === y ? 0 : x === undefined ? -1 : 1;
  return compareBytes(x, y);
}

function endsBefore(a: Walker, b: Walker): boolean {
  const [end, begin] = [a.high, b.low];
  return end !== undefined && begin !== undefined && compareBytes(end, begin) <= 0;
}

/**
 * Enters one of two subtrees that differ: the one that comes first, else the larger one. Enters both if they have the same
 * level.
 */
async function enterOne(a: Walker, b: Walker): Promise<void> {
  if (endsBefore(a, b)) return a.enter();
  if (endsBefore(b, a)) return b.enter();
  if (a.level === b.level) {
    await Promise.all([a.enter(), b.enter()]);
    return;
  }
  return a.level > b.level ? a.enter() : b.enter();
}
