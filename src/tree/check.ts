/**
 * Checks a whole tree, for `verify()` and tests: reads every block, and checks everything that readers and writers rely on. It
 * reports problems and continues, so that one damaged block does not hide the next; only a store that does not answer ends the
 * check.
 */
import { isUnreadable } from '../base/errors.ts';
import type { Pacer } from '../base/pacer.ts';
import type { EntryShape } from '../format/node-entries.ts';
import type { BlockRef } from '../format/block.ts';
import type { Node } from '../format/node.ts';
import { leafProblem } from './block-source.ts';
import { loadChild } from './tree.ts';
import type { Tree } from './tree.ts';

/** A problem, and the object in which it was found. */
export interface Finding {
  /** Name of the object. */
  readonly name: string;
  /** The problem, in words. */
  readonly message: string;
  /** The table of the problem, if it concerns one. */
  readonly table?: string;
  /** The index of that table, if it concerns one. */
  readonly index?: string;
  /** Generation of the earlier state with the problem, of a snapshot or of history, if the present state does not have it. */
  readonly generation?: number;
  /** Id of the snapshot with the problem, if the present state does not have it. */
  readonly snapshot?: string;
}

/** A node that was checked before, with all nodes below it. */
export interface KnownNode {
  readonly name: string;
  readonly level: number;
  /** Rows (or index entries) in it and below it. */
  readonly count: number;
}

/** A node that could not be read, with the reference in its parent or Block 0. The nodes below it were not checked. */
export interface UnreadableNode extends Bounds {
  readonly ref: BlockRef;
  readonly level: number;
}

export interface CheckOptions {
  /** The shape that the leaves of the tree must have. */
  readonly leaf: EntryShape;
  readonly pacer?: Pacer;
  /** Called for every readable leaf with the right shape, in key order, with the range of its entries. */
  readonly onRun?: (leaf: Node, from: number, to: number) => void | Promise<void>;
  /** Called for every readable node, before the nodes below it. */
  readonly onNode?: (node: Node) => void;
  /** Returns the result of an earlier check of a node; such a node is not entered. */
  readonly known?: (ref: BlockRef) => KnownNode | undefined;
  /** Called for every node that could not be read. */
  readonly onUnreadable?: (node: UnreadableNode) => void;
  /** Number of findings after which the check ends. Default 100. */
  readonly maxFindings?: number;
}

/** Bounds of the keys of a subtree: `lower` is inclusive, `upper` exclusive; undefined means unbounded. */
export interface Bounds {
  readonly lower: Uint8Array | undefined;
  readonly upper: Uint8Array | undefined;
}

export const defaultMaxFindings = 100;

/** Reads a whole tree and returns the problems found. */
export async function checkTree(tree: Tree, options: CheckOptions): Promise<Finding[]> {
  if (tree.ref === null) return [];
  return new TreeCheck(tree, options).run(tree.ref);
}

/** Most children of a node that are read at the same time, and most bytes of them. */
const maxReads = 16;
const maxReadBytes = 4 * 1024 * 1024;

/** Reads children of a node one after the other, and those behind them meanwhile. */
class ChildReads {
  readonly #tree: Tree;
  readonly #node: Node;
  /** Whether a child is not read. */
  readonly #isKnown: (ref: BlockRef) => boolean;
  readonly #reads = new Map<number, Promise<Node>>();
  #bytes = 0;
  /** The next child to be read ahead. */
  #next = 0;

  constructor(tree: Tree, node: Node, isKnown: (ref: BlockRef) => boolean) {
    this.#tree = tree;
    this.#node = node;
    this.#isKnown = isKnown;
  }

  read(i: number): Promise<Node> {
    this.#next = Math.max(this.#next, i);
    while (this.#next < this.#node.count && this.#hasRoom) this.#begin(this.#next++);
    const read = this.#reads.get(i);
    if (read === undefined) return loadChild(this.#tree.source, this.#node, i);
    this.#reads.delete(i);
    this.#bytes -= this.#node.child(i).sizeBytes;
    return read;
  }

  get #hasRoom(): boolean {
    return this.#reads.size === 0 || (this.#reads.size < maxReads && this.#bytes < maxReadBytes);
  }

  #begin(i: number): void {
    const ref = this.#node.child(i);
    if (this.#isKnown(ref)) return;
    const read = loadChild(this.#tree.source, this.#node, i);
    // Whoever asks for the child gets the error.
    read.catch(() => undefined);
    this.#reads.set(i, read);
    this.#bytes += ref.sizeBytes;
  }
}

class TreeCheck {
  readonly #tree: Tree;
  readonly #options: CheckOptions;
  readonly #maxFindings: number;
  readonly #findings: Finding[] = [];

  constructor(tree: Tree, options: CheckOptions) {
    this.#tree = tree;
    this.#options = options;
    this.#maxFindings = options.maxFindings ?? defaultMaxFindings;
  }

  async run(ref: NonNullable<Tree['ref']>): Promise<Finding[]> {
    const { level } = ref;
    const whole = { ref, level, lower: undefined, upper: undefined };
    if (this.#isKnown(ref, level)) return this.#findings;
    const root = await this.#read('the root', whole, () => this.#tree.loadRoot());
    if (root === undefined) return this.#findings;
    if (root.count === 0) this.#report(root.name, 'The root has no entries, and an empty tree has no root');
    await this.#checkNode(root, whole, ref.count);
    return this.#findings;
  }

  /** Whether a node was checked before. Its level and count are compared with the reference all the same. */
  #isKnown(ref: BlockRef, level: number): boolean {
    const known = this.#options.known?.(ref);
    if (known === undefined) return false;
    if (known.level !== level) {
      this.#report(
        known.name,
        `The node is of level ${known.level}, and another tree refers to it as a node of level ${level}`,
      );
    }
    this.#checkCount(known.name, known.count, ref.count);
    return true;
  }

  get #enough(): boolean {
    return this.#findings.length >= this.#maxFindings;
  }

  #report(name: string, message: string): void {
    if (!this.#enough) this.#findings.push({ name, message });
  }

  /** Reads a node. If it is damaged, missing or misplaced, reports that and returns undefined. */
  async #read(parent: string, node: UnreadableNode, load: () => Promise<Node>): Promise<Node | undefined> {
    try {
      return await load();
    } catch (error) {
      if (!isUnreadable(error)) throw error;
      this.#report(error.key === '' ? parent : error.key, error.message);
      this.#options.onUnreadable?.(node);
      return undefined;
    }
  }

  #checkCount(name: string, total: number, count: number): void {
    if (total !== count) this.#report(name, `There are ${total} entries in and below the node, not ${count}`);
  }

  /** Checks a node and all nodes below it. `count`: the number of rows according to its parent. */
  async #checkNode(node: Node, bounds: Bounds, count: number): Promise<void> {
    const { pacer, onNode, onRun } = this.#options;
    if (pacer?.due() === true) await pacer.pause();
    onNode?.(node);
    this.#checkKeys(node, bounds);
    this.#checkCount(node.name, node.totalCount(), count);
    if (node.level === 0) {
      if (this.#isOfShape(node) && onRun !== undefined && node.count > 0) await onRun(node, 0, node.count);
      return;
    }
    const children = new ChildReads(this.#tree, node, (ref) => this.#options.known?.(ref) !== undefined);
    for (let i = 0; i < node.count && !this.#enough; i++) {
      const ref = node.child(i);
      const level = node.level - 1;
      if (this.#isKnown(ref, level)) continue;
      const lower = i === 0 ? bounds.lower : node.key(i);
      const upper = i + 1 < node.count ? node.key(i + 1) : bounds.upper;
      const at = { ref, level, lower, upper };
      const child = await this.#read(node.name, at, () => children.read(i));
      if (child !== undefined) await this.#checkNode(child, at, ref.count);
    }
  }

  /**
   * Checks that keys ascend strictly, and lie within the separators above them. The first separator of an inner node bounds
   * nothing: all keys below the second separator belong to the first child.
   */
  #checkKeys(node: Node, { lower, upper }: Bounds): void {
    let previous: Uint8Array | undefined;
    for (let i = 0; i < node.count && !this.#enough; i++) {
      const key = node.key(i);
      if (previous !== undefined && node.compareKey(i, previous, previous.length) <= 0) {
        this.#report(node.name, `Entry ${i} is not above the one before it`);
      }
      const free = node.level > 0 && i === 0;
      if (!free && lower !== undefined && node.compareKey(i, lower, lower.length) < 0) {
        this.#report(node.name, `Entry ${i} is below the separator of its node`);
      }
      if (!free && upper !== undefined && node.compareKey(i, upper, upper.length) >= 0) {
        this.#report(node.name, `Entry ${i} is not below the separator of the next node`);
      }
      previous = key;
    }
  }

  /** Whether a leaf has the right shape; reports it if not. */
  #isOfShape(node: Node): boolean {
    const problem = leafProblem(node, this.#options.leaf);
    if (problem === undefined) return true;
    this.#report(node.name, problem);
    return false;
  }
}
