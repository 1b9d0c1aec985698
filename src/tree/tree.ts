/**
 * A B+Tree at one moment: an immutable handle on a root. Reading never changes it, so that any number of queries can
 * use it while merges make new roots.
 */
import { CorruptionError } from '../base/errors.ts';
import { CachedNode } from '../cache/cached-node.ts';
import type { CacheEntry } from '../cache/cached-node.ts';
import type { BlockRef, BlockKind } from '../format/block.ts';
import type { Node } from '../format/node.ts';
import type { RowSource } from '../format/row-layout.ts';
import { noBlocks } from './block-source.ts';
import type { BlockSource } from './block-source.ts';
import { estimateTree } from './tree-estimate.ts';
import type { TreeEstimate } from './tree-estimate.ts';

/** A found row: where its bytes are. */
export interface RowRef {
  readonly source: RowSource;
  readonly base: number;
}

/**
 * Where a look-up leaves the way that it went. The caller of the look-up owns it: a tree is shared, and keeps nothing of those who
 * read it.
 */
export interface LookupPath {
  /**
   * The way to the leaf in which the last look-up that was answered at once ended: the child in each node on it, from the
   * root down, as the digits of a number to the base 65536. Infinite where it cannot be told.
   */
  path: number;
}

/** Children of a node of which a path can be told: 16 bits for each level, and no more than two of them. */
const maxChildren = 0x1_0000;
const maxPathLevels = 2;

/** Stands for a tree where it is remembered, without keeping it in memory. */
export type TreeIdentity = object;

/** No tree is deeper: with two children a node, this would be more rows than there are atoms at hand. */
const maxLevel = 40;

export class Tree {
  readonly source: BlockSource;
  /** Reference to the root; null for an empty tree. */
  readonly ref: (BlockRef & { readonly level: number }) | null;
  /** The root itself where it is in memory for good (inlined in Block 0, or part of a commit). */
  readonly node: Node | undefined;

  readonly #identity: TreeIdentity = {};
  #entry: CacheEntry | undefined;
  /** The last estimate, and the turnover of the cache for which it holds. */
  #estimated: { readonly estimate: TreeEstimate; readonly turnover: number } | undefined;

  constructor(source: BlockSource, ref: (BlockRef & { readonly level: number }) | null, node?: Node) {
    this.source = source;
    this.ref = ref;
    this.node = node;
  }

  /** For those who remember paths in the tree; undefined where it has none to be remembered. No other tree has the same. */
  get identity(): TreeIdentity | undefined {
    return (this.ref?.level ?? 0) > maxPathLevels ? undefined : this.#identity;
  }

  /** Entries in the tree. */
  get count(): number {
    return this.ref?.count ?? 0;
  }

  /** Whether it may have rows that could not be made, so that a scan of it must look. */
  get mayBreak(): boolean {
    return this.node instanceof PartialNode;
  }

  /** The root if it is in memory; undefined if it is not. Not for empty trees. */
  peekRoot(): Node | undefined {
    if (this.node !== undefined) return this.node;
    let entry = this.#entry;
    if (entry?.node !== undefined) {
      entry.used = true;
      this.source.counters.hits++;
      return entry.node;
    }
    entry = this.source.find(this.ref as BlockRef);
    if (entry?.node === undefined || entry.node.level !== this.ref?.level) return undefined;
    this.#entry = entry;
    return entry.node;
  }

  /** The root if it is in memory, for planning: it does not count as used. Not for empty trees. */
  glanceRoot(): Node | undefined {
    const root = this.node ?? this.#entry?.node ?? this.source.glance(this.ref as BlockRef);
    return root?.level === this.ref?.level ? root : undefined;
  }

  /** Estimates the shape of the tree from its blocks in memory: again only when a block has come into memory or gone since. */
  estimate(): TreeEstimate {
    const { turnover } = this.source.counters;
    if (this.#estimated?.turnover !== turnover) {
      const estimate = estimateTree(this.source, this.ref, this.ref === null ? undefined : this.glanceRoot());
      this.#estimated = { estimate, turnover };
    }
    return this.#estimated.estimate;
  }

  /** The leaf in which a key belongs if all blocks on the way are in memory, for planning as well. */
  glanceLeaf(key: Uint8Array): Node | undefined {
    if (this.ref === null) return undefined;
    let node = this.glanceRoot();
    while (node !== undefined && node.level > 0) node = this.source.glanceChild(node, node.childFor(key));
    return node instanceof PartialNode ? undefined : node;
  }

  async loadRoot(): Promise<Node> {
    if (this.node !== undefined) return this.node;
    const root = await this.source.load(this.ref as BlockRef);
    if (root.level !== this.ref?.level) {
      throw new CorruptionError(
        root.name,
        `The root is of level ${root.level}, not ${this.ref?.level} as Block 0 says`,
      );
    }
    return root;
  }

  /**
   * The row with a key: at once if every block on the way is in memory, else a promise of it. The key's bytes may be
   * reused as soon as the call returns. `way` is told the path of a look-up that is answered at once. Throws, or rejects,
   * if the row could not be made.
   */
  lookup(
    key: Uint8Array,
    length: number = key.length,
    way?: LookupPath,
  ): RowRef | undefined | Promise<RowRef | undefined> {
    if (this.ref === null) return undefined;
    let node = this.peekRoot();
    if (node === undefined) return this.#lookupFromRoot(key.slice(0, length));
    let path = 0;
    while (node.level > 0) {
      const i: number = node.childFor(key, length);
      const child: Node | undefined = this.source.peekChild(node, i);
      if (child === undefined) return this.#lookupBelow(node, i, key.slice(0, length));
      path = i < maxChildren ? path * maxChildren + i : Number.POSITIVE_INFINITY;
      node = child;
    }
    if (way !== undefined) way.path = path;
    return hitAt(node, node.find(key, length));
  }

  /** The leaf at the end of a {@link LookupPath} of at most two levels, if all nodes on it are in memory. */
  leafAt(path: number): Node | undefined {
    let node = this.peekRoot();
    if (node?.level === 2) node = this.source.peekChild(node, path >>> 16);
    if (node?.level === 1) node = this.source.peekChild(node, path & 0xffff);
    return node?.level === 0 && !(node instanceof PartialNode) ? node : undefined;
  }

  /**
   * Whether there is certainly no key from `first` to `last`, both included, for all that is in memory. False where that
   * is not known.
   */
  holdsNone(first: Uint8Array, last: Uint8Array): boolean {
    if (this.ref === null) return true;
    let node = this.peekRoot();
    while (node !== undefined && node.level > 0) {
      const i: number = node.childFor(first);
      // Where more than one child has keys of the range, there mostly are some.
      if (node.childFor(last) !== i) return false;
      node = this.source.peekChild(node, i);
    }
    if (node === undefined) return false;
    const from = node.lowerBound(first);
    return from === node.count || node.compareKey(from, last, last.length) > 0;
  }

  async #lookupFromRoot(key: Uint8Array): Promise<RowRef | undefined> {
    return this.#finish(await this.loadRoot(), key);
  }

  async #lookupBelow(parent: Node, i: number, key: Uint8Array): Promise<RowRef | undefined> {
    return this.#finish(await loadChild(this.source, parent, i), key);
  }

  async #finish(start: Node, key: Uint8Array): Promise<RowRef | undefined> {
    let node = start;
    while (node.level > 0) {
      const i = node.childFor(key);
      node = this.source.peekChild(node, i) ?? (await loadChild(this.source, node, i));
    }
    return hitAt(node, node.find(key));
  }
}

/** Whether two trees are of the same blocks. */
export function isSameTree(a: Tree | undefined, b: Tree | undefined): boolean {
  return a?.ref?.birth === b?.ref?.birth && a?.ref?.id === b?.ref?.id;
}

function hitAt(node: Node, at: number): RowRef | undefined {
  if (at < 0) return undefined;
  const problem = brokenIn(node)?.get(at);
  if (problem !== undefined) throw problem;
  return { source: node, base: node.rowBase(at) };
}

/** Loads child `i` and checks that it stands where it should: damage must not turn into a loop or a wrong row. */
export async function loadChild(source: BlockSource, parent: Node, i: number, passing = false): Promise<Node> {
  const child = await source.load(parent.child(i), passing);
  if (child.level !== parent.level - 1 || child.count === 0 || parent.level > maxLevel) {
    throw new CorruptionError(child.name, `The node is of level ${child.level} under one of level ${parent.level}`);
  }
  return child;
}

/** A leaf in memory as a tree. */
export function treeOfNode(node: Node, source: BlockSource = noBlocks): Tree {
  const ref = { birth: 0, id: '0'.repeat(16), count: node.totalCount(), sizeBytes: node.sizeBytes, level: node.level };
  return new Tree(source, ref, node);
}

// Nodes that only memory holds, with rows that could not be made: they hide what lies below them, and must not be shown.

export class PartialNode extends CachedNode {
  /** For each entry whose row could not be made, why. */
  readonly broken: ReadonlyMap<number, Error>;

  constructor(name: string, kind: BlockKind, bytes: Uint8Array, broken: ReadonlyMap<number, Error>) {
    super(name, kind, bytes);
    this.broken = broken;
  }
}

/** The entries of a node whose rows could not be made, and why; undefined where there are none. */
export function brokenIn(node: Node): ReadonlyMap<number, Error> | undefined {
  return node instanceof PartialNode ? node.broken : undefined;
}

// The way from a root to a leaf, and from there to the next leaf within a range of keys.

/** An inner node and the child that the way leads to. */
export interface Step {
  readonly node: Node;
  child: number;
}

export class LeafPath {
  readonly #from: Uint8Array | undefined;
  readonly #to: Uint8Array | undefined;
  readonly #descending: boolean;
  #steps: Step[] = [];

  /** `from` inclusive, `to` exclusive; undefined means unbounded. */
  constructor(from: Uint8Array | undefined, to: Uint8Array | undefined, descending: boolean) {
    this.#from = from;
    this.#to = to;
    this.#descending = descending;
  }

  /** A path of its own that leads where this one does. */
  copy(): LeafPath {
    const copied = new LeafPath(this.#from, this.#to, this.#descending);
    copied.#steps = this.#steps.map(({ node, child }) => ({ node, child }));
    return copied;
  }

  /** Goes on below an inner node: to its first child that can have keys of the range, in the path's direction. */
  enter(node: Node): Step {
    const from = this.#from;
    const to = this.#to;
    let child: number;
    // Below a node that was entered from its side, that is simply its first or last.
    if (!this.#descending) child = from === undefined ? 0 : node.childFor(from);
    else child = to === undefined ? node.count - 1 : node.childFor(to);
    const step = { node, child };
    this.#steps.push(step);
    return step;
  }

  /** Goes to the next child, perhaps of a node further up; undefined once nothing more is in the range. */
  advance(): Step | undefined {
    for (;;) {
      const step = this.#steps[this.#steps.length - 1];
      if (step === undefined) return undefined;
      if (this.#descending && this.#endsBefore(step)) return undefined;
      step.child += this.#descending ? -1 : 1;
      if (step.child < 0 || step.child >= step.node.count) {
        this.#steps.pop();
        continue;
      }
      if (!this.#descending && this.#endsBefore(step)) return undefined;
      return step;
    }
  }

  /** Whether the separator at a step shows that nothing beyond it is in the range, which spares reading a block. */
  #endsBefore({ node, child }: Step): boolean {
    const from = this.#from;
    const to = this.#to;
    if (this.#descending) return from !== undefined && node.compareKey(child, from, from.length) <= 0;
    return to !== undefined && node.compareKey(child, to, to.length) >= 0;
  }
}
