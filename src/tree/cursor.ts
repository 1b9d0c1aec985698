/**
 * Cursors over trees. A cursor moves from run to run: consecutive entries of one leaf. Whoever uses it works through a
 * whole run at a time, so that nothing is awaited, called or allocated per row.
 */
import { isPromise } from '../base/brands.ts';
import type { Node } from '../format/node.ts';
import { LeafPath } from './leaf-path.ts';
import type { Step } from './leaf-path.ts';
import { ReadAhead } from './read-ahead.ts';
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
  /**
   * Says how many entries are likely to be wanted beyond the present run, so that leaves may be read ahead. Without it none
   * are. `together`: how many of them are looked at before it is decided whether there is to be more.
   */
  expect?(entries: number, together?: number): void;
}

export class TreeCursor implements RunCursor {
  readonly #tree: Tree;
  readonly #range: KeyRange;
  readonly #descending: boolean;
  readonly #path: LeafPath;
  #started = false;
  #done = false;
  /** Whether a leaf was come to: those after it are part of a scan. */
  #scanning = false;
  #expected = 0;
  #ahead: ReadAhead | undefined;
  #node: Node | undefined;
  from = 0;
  to = 0;

  constructor(tree: Tree, range: KeyRange = {}, descending = false) {
    this.#tree = tree;
    this.#range = range;
    this.#descending = descending;
    this.#path = new LeafPath(range.from, range.to, descending);
  }

  get node(): Node {
    return this.#node as Node;
  }

  expect(entries: number): void {
    this.#expected = entries;
  }

  next(): boolean | Promise<boolean> {
    if (this.#done) return false;
    if (!this.#started) {
      this.#started = true;
      if (this.#tree.ref === null) return this.#end();
      const root = this.#tree.peekRoot();
      if (root === undefined) return this.#tree.loadRoot().then((node) => this.#descend(node));
      return this.#descend(root);
    }
    return this.#advance();
  }

  #end(): false {
    this.#done = true;
    this.#ahead = undefined;
    return false;
  }

  /** Goes from a node down to the first leaf within the range. */
  #descend(start: Node): boolean | Promise<boolean> {
    let node = start;
    while (node.level > 0) {
      const step = this.#path.enter(node);
      if (node.level === 1) return this.#openLeaf(step);
      const below = this.#tree.source.peekChild(node, step.child);
      if (below === undefined) return this.#loadBelow(step);
      node = below;
    }
    return this.#enter(node);
  }

  async #loadBelow({ node, child }: Step): Promise<boolean> {
    return this.#descend(await loadChild(this.#tree.source, node, child));
  }

  #openLeaf(step: Step): boolean | Promise<boolean> {
    const { source } = this.#tree;
    const { node, child } = step;
    const passing = this.#scanning;
    this.#scanning = true;
    const leaf = this.#ahead?.arrive(step) ?? source.peekChild(node, child, passing);
    if (leaf === undefined || isPromise(leaf)) return this.#waitForLeaf(step, passing, leaf);
    this.#ahead?.fill(this.#path, this.#expected - node.childCount(child));
    return this.#enter(leaf);
  }

  #waitForLeaf({ node, child }: Step, passing: boolean, early: Promise<Node> | undefined): Promise<boolean> {
    const { source } = this.#tree;
    const loading = early ?? loadChild(source, node, child, passing);
    const rest = this.#expected - node.childCount(child);
    // The first leaf is often all that is needed.
    if (passing && rest > 0) {
      if (this.#ahead === undefined) this.#ahead = new ReadAhead(source);
      else this.#ahead.widen();
      this.#ahead.fill(this.#path, rest);
    }
    return loading.then((leaf) => this.#enter(leaf));
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
    const step = this.#path.advance();
    if (step === undefined) return this.#end();
    if (step.node.level === 1) return this.#openLeaf(step);
    const below = this.#tree.source.peekChild(step.node, step.child);
    return below === undefined ? this.#loadBelow(step) : this.#descend(below);
  }
}
