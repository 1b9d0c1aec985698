/**
 * Cursors over trees. A cursor moves from run to run: consecutive entries of one leaf. Whoever uses it works through a
 * whole run at a time, so that nothing is awaited, called or allocated per row.
 */
import type { Node } from '../format/node.ts';
import { loadChild } from './tree.ts';
import type { Tree } from './tree.ts';

/** Bounds of keys: `from` inclusive, `to` exclusive; undefined means unbounded. */
export interface KeyRange {
  readonly from?: Uint8Array | undefined;
  readonly to?: Uint8Array | undefined;
}

/** Moves over runs of entries, ascending or descending. */
export interface RunCursor {
  /** The leaf of the present run. */
  readonly node: Node;
  /** First entry of the run. */
  readonly from: number;
  /** One past its last entry. In a descending cursor too, a run is `from` to `to`, to be read from its end. */
  readonly to: number;
  /** Moves to the next run; at once (true, or false at the end) if it is in memory, else a promise of that. */
  next(): boolean | Promise<boolean>;
}

interface Step {
  readonly node: Node;
  child: number;
}

export class TreeCursor implements RunCursor {
  readonly #tree: Tree;
  readonly #range: KeyRange;
  readonly #descending: boolean;
  readonly #path: Step[] = [];
  #started = false;
  #done = false;
  #node: Node | undefined;
  from = 0;
  to = 0;

  constructor(tree: Tree, range: KeyRange = {}, descending = false) {
    this.#tree = tree;
    this.#range = range;
    this.#descending = descending;
  }

  get node(): Node {
    return this.#node as Node;
  }

  next(): boolean | Promise<boolean> {
    if (this.#done) return false;
    if (!this.#started) {
      this.#started = true;
      if (this.#tree.ref === null) return this.#end();
      const root = this.#tree.peekRoot();
      if (root === undefined) return this.#tree.loadRoot().then((node) => this.#descendSlowly(node));
      return this.#descend(root);
    }
    return this.#advance();
  }

  #end(): false {
    this.#done = true;
    return false;
  }

  /** Goes from a node down to the first leaf within the range. */
  #descend(start: Node): boolean | Promise<boolean> {
    let node = start;
    while (node.level > 0) {
      const child = this.#firstChild(node);
      this.#path.push({ node, child });
      const below = this.#tree.source.peekChild(node, child);
      if (below === undefined) return this.#loadBelow(node, child);
      node = below;
    }
    return this.#enter(node);
  }

  async #loadBelow(parent: Node, child: number): Promise<boolean> {
    return this.#descendSlowly(await loadChild(this.#tree.source, parent, child));
  }

  async #descendSlowly(node: Node): Promise<boolean> {
    return this.#descend(node);
  }

  /** The child to begin with. Below a node that was entered from its side, that is simply its first or last. */
  #firstChild(node: Node): number {
    const { from, to } = this.#range;
    if (!this.#descending) return from === undefined ? 0 : node.childFor(from);
    return to === undefined ? node.count - 1 : node.childFor(to);
  }

  /** Takes the part of a leaf that lies in the range; an empty part means to look further, or the end. */
  #enter(leaf: Node): boolean | Promise<boolean> {
    const { from, to } = this.#range;
    this.#node = leaf;
    this.from = from === undefined ? 0 : leaf.lowerBound(from);
    this.to = to === undefined ? leaf.count : leaf.lowerBound(to);
    if (this.from < this.to) return true;
    return this.#advance();
  }

  #advance(): boolean | Promise<boolean> {
    const leaf = this.#node as Node;
    // A leaf whose range ended within it was the last one.
    if (this.#descending ? this.from > 0 : this.to < leaf.count) return this.#end();
    for (;;) {
      const step = this.#path[this.#path.length - 1];
      if (step === undefined) return this.#end();
      if (this.#descending && this.#endsBefore(step)) return this.#end();
      step.child += this.#descending ? -1 : 1;
      if (step.child < 0 || step.child >= step.node.count) {
        this.#path.pop();
        continue;
      }
      if (!this.#descending && this.#endsBefore(step)) return this.#end();
      const below = this.#tree.source.peekChild(step.node, step.child);
      return below === undefined ? this.#loadBelow(step.node, step.child) : this.#descend(below);
    }
  }
  /** Whether the separator at a step shows that nothing beyond it is in the range, which spares reading a block. */
  #endsBefore({ node, child }: Step): boolean {
    const { from, to } = this.#range;
    if (this.#descending) return from !== undefined && node.compareKey(child, from, from.length) <= 0;
    return to !== undefined && node.compareKey(child, to, to.length) >= 0;
  }
}
