/** A state of a B+tree: an immutable handle on a root. Any number of queries can read it while merges make new roots. */
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

/** The position of a row's bytes. */
export interface RowRef {
  readonly source: RowSource;
  readonly base: number;
}

/**
 * The path of a lookup, which the lookup stores in an object of its caller: a tree is shared, and keeps nothing for its
 * readers.
 */
export interface LookupPath {
  /**
   * The path to the leaf of the last lookup that was answered without a promise: the child in each node from the root down, as
   * the digits of a number to the base 65536. Infinite if the path cannot be expressed.
   */
  path: number;
}

/** Limits of nodes that a path can express: 16 bits for each level, and at most two levels. */
const maxChildren = 0x1_0000;
const maxPathLevels = 2;

/** Represents a tree in the caches of its readers, without keeping the tree in memory. */
export type TreeIdentity = object;

/** Deepest level of a tree: with two children per node, that would be more rows than anyone can store. */
const maxLevel = 40;

export class Tree {
  readonly source: BlockSource;
  /** Reference to the root; null for an empty tree. */
  readonly ref: (BlockRef & { readonly level: number; readonly words?: number }) | null;
  /** The root itself if it always is in memory (inlined in Block 0, or part of a commit). */
  readonly node: Node | undefined;
  /** Entries in the tree. */
  readonly count: number;
  /** Whether the tree may have rows that could not be translated, which a scan must check for. */
  readonly mayBreak: boolean;

  readonly #identity: TreeIdentity = {};
  #entry: CacheEntry | undefined;
  /** The last estimate, and the turnover of the cache when it was made. */
  #estimated: { readonly estimate: TreeEstimate; readonly turnover: number } | undefined;

  constructor(source: BlockSource, ref: Tree['ref'], node?: Node, mayBreak: boolean = node instanceof PartialNode) {
    this.source = source;
    this.ref = ref;
    this.node = node;
    this.count = ref?.count ?? 0;
    this.mayBreak = mayBreak;
  }

  /**
   * Identifies the tree for readers that remember paths in it; undefined if its paths cannot be expressed. No two trees have
   * the same.
   */
  get identity(): TreeIdentity | undefined {
    return (this.ref?.level ?? 0) > maxPathLevels ? undefined : this.#identity;
  }

  /** Returns the root if it is in memory, else undefined. Not for empty trees. */
  getCachedRoot(): Node | undefined {
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

  /** Returns the root if it is in memory, for planning: that does not count as a use. Not for empty trees. */
  peekRoot(): Node | undefined {
    const root = this.node ?? this.#entry?.node ?? this.source.peek(this.ref as BlockRef);
    return root?.level === this.ref?.level ? root : undefined;
  }

  /**
   * Estimates the shape of the tree from its blocks in memory. A new estimate is made only after blocks have entered or left
   * memory.
   */
  estimate(): TreeEstimate {
    const { turnover } = this.source.counters;
    if (this.#estimated?.turnover !== turnover) {
      const estimate = estimateTree(this.source, this.ref, this.ref === null ? undefined : this.peekRoot());
      this.#estimated = { estimate, turnover };
    }
    return this.#estimated.estimate;
  }

  /** Returns the leaf of a key if all blocks on the path are in memory, for planning as well. */
  peekLeaf(key: Uint8Array): Node | undefined {
    if (this.ref === null) return undefined;
    let node = this.peekRoot();
    while (node !== undefined && node.level > 0) node = this.source.peekChild(node, node.childFor(key));
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
   * Returns the row with a key, or a promise of it if a block on the path is not in memory. The key's bytes may be reused as
   * soon as the call returns. A lookup without a promise stores its path in `way`. Throws, or rejects, if the row could not be
   * translated.
   */
  lookup(
    key: Uint8Array,
    length: number = key.length,
    way?: LookupPath,
  ): RowRef | undefined | Promise<RowRef | undefined> {
    if (this.ref === null) return undefined;
    let node = this.getCachedRoot();
    if (node === undefined) return this.#lookupFromRoot(key.slice(0, length));
    let path = 0;
    while (node.level > 0) {
      const i: number = node.childFor(key, length);
      const child: Node | undefined = this.source.getCachedChild(node, i);
      if (child === undefined) return this.#lookupBelow(node, i, key.slice(0, length));
      path = i < maxChildren ? path * maxChildren + i : Number.POSITIVE_INFINITY;
      node = child;
    }
    if (way !== undefined) way.path = path;
    return hitAt(node, node.find(key, length));
  }

  /** Returns the row with a key; null if there is none, and undefined if a block on the path is not in memory. Reads nothing. */
  lookupCached(key: Uint8Array, length: number): RowRef | null | undefined {
    if (this.ref === null) return null;
    let node = this.getCachedRoot();
    while (node !== undefined && node.level > 0) {
      node = this.source.getCachedChild(node, node.childFor(key, length));
    }
    return node === undefined ? undefined : (hitAt(node, node.find(key, length)) ?? null);
  }

  /** Returns the leaf at the end of a {@link LookupPath} of at most two levels, if all nodes on it are in memory. */
  leafAt(path: number): Node | undefined {
    let node = this.getCachedRoot();
    if (node?.level === 2) node = this.source.getCachedChild(node, path >>> 16);
    if (node?.level === 1) node = this.source.getCachedChild(node, path & 0xffff);
    return node?.level === 0 && !(node instanceof PartialNode) ? node : undefined;
  }

  /**
   * Whether there are keys from `first` to `last`, inclusive, for planning: false is certain, true is likely, and undefined if the blocks
   * in memory do not show it.
   */
  holds(first: Uint8Array, last: Uint8Array): boolean | undefined {
    if (this.ref === null) return false;
    let node = this.peekRoot();
    while (node !== undefined && node.level > 0) {
      const i: number = node.childFor(first);
      // A range over several children mostly contains keys.
      if (node.childFor(last) !== i) return true;
      node = this.source.peekChild(node, i);
    }
    if (node === undefined) return undefined;
    const from = node.lowerBound(first);
    return from < node.count && node.compareKey(from, last, last.length) <= 0;
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
      node = this.source.getCachedChild(node, i) ?? (await loadChild(this.source, node, i));
    }
    return hitAt(node, node.find(key));
  }
}

/** Whether two trees have the same root, and so the same blocks. */
export function isSameTree(a: Tree | undefined, b: Tree | undefined): boolean {
  return a?.ref?.birth === b?.ref?.birth && a?.ref?.id === b?.ref?.id;
}

function hitAt(node: Node, at: number): RowRef | undefined {
  if (at < 0) return undefined;
  const problem = brokenIn(node)?.get(at);
  if (problem !== undefined) throw problem;
  return { source: node, base: node.rowBase(at) };
}

/** Loads child `i` and checks its level and count, so that damage does not lead to a loop or a wrong row. */
export async function loadChild(source: BlockSource, parent: Node, i: number, passing = false): Promise<Node> {
  const child = await source.load(parent.child(i), passing);
  if (child.level !== parent.level - 1 || child.count === 0 || parent.level > maxLevel) {
    throw new CorruptionError(child.name, `The node is of level ${child.level} under one of level ${parent.level}`);
  }
  return child;
}

/** Returns a tree of one node in memory. */
export function treeOfNode(node: Node, source: BlockSource = noBlocks): Tree {
  const ref = { birth: 0, id: '0'.repeat(16), count: node.totalCount(), sizeBytes: node.sizeBytes, level: node.level };
  return new Tree(source, ref, node);
}

/** A node in memory with rows that could not be translated. Their entries hide rows of lower layers, and must not be shown. */
export class PartialNode extends CachedNode {
  /** The error of each entry whose row could not be translated. */
  readonly broken: ReadonlyMap<number, Error>;

  constructor(name: string, kind: BlockKind, bytes: Uint8Array, broken: ReadonlyMap<number, Error>) {
    super(name, kind, bytes);
    this.broken = broken;
  }
}

/** Returns the errors of the entries of a node whose rows could not be translated; undefined if there are none. */
export function brokenIn(node: Node): ReadonlyMap<number, Error> | undefined {
  return node instanceof PartialNode ? node.broken : undefined;
}
