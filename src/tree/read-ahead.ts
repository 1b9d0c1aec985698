/**
 * Reads the leaves that a cursor is about to come to, so that it waits once for many of them. How many depends on how
 * often it had to wait, and never on more rows than are wanted: a scan that ends soon reads nothing in vain.
 */
import type { Node } from '../format/node.ts';
import type { BlockSource } from './block-source.ts';
import type { LeafPath, Step } from './leaf-path.ts';
import { loadChild } from './tree.ts';

/** A leaf that comes after the cursor's. */
interface AheadLeaf {
  readonly parent: string;
  readonly child: number;
  readonly rows: number;
  /** Of the block, if it is read here; none if it was in memory. */
  readonly bytes: number;
  loading: Promise<Node> | undefined;
  node: Node | undefined;
}

/** How many leaves are read ahead: at first, and at most. */
const firstWindow = 2;
const widestWindow = 32;

export class ReadAhead {
  readonly #source: BlockSource;
  /** Leads to the last leaf in the queue; undefined until it is known where to begin. */
  #path: LeafPath | undefined;
  /** The leaves after the cursor's, in its order. */
  readonly #queue: AheadLeaf[] = [];
  #rows = 0;
  #bytes = 0;
  #window = firstWindow;
  #wanted = 0;
  #ended = false;
  /** The inner node that is read before it can go on. */
  #waiting: Step | undefined;

  constructor(source: BlockSource) {
    this.#source = source;
  }

  /** The cursor has come to a leaf. Gives the leaf, or a promise of it, if it was foreseen. */
  arrive({ node, child }: Step): Node | Promise<Node> | undefined {
    const leaf = this.#queue.shift();
    if (leaf === undefined || leaf.parent !== node.name || leaf.child !== child) {
      this.#restart();
      return undefined;
    }
    this.#rows -= leaf.rows;
    this.#bytes -= leaf.bytes;
    return leaf.node ?? leaf.loading;
  }

  #restart(): void {
    this.#queue.length = 0;
    this.#rows = 0;
    this.#bytes = 0;
    this.#path = undefined;
    this.#waiting = undefined;
    this.#ended = false;
  }

  /** The cursor must wait: more should have been read ahead. */
  widen(): void {
    this.#window = Math.min(this.#window * 2, widestWindow);
  }

  /** Begins to read what comes after the cursor's leaf, to which `path` leads, as far as `wanted` rows may take it. */
  fill(path: LeafPath, wanted: number): void {
    this.#wanted = wanted;
    if (this.#waiting !== undefined) return;
    this.#path ??= path.copy();
    this.#readOn(this.#path);
  }

  get #isFull(): boolean {
    const tooMuch = this.#bytes >= this.#source.memory.aheadBytes;
    return tooMuch || this.#queue.length >= this.#window || this.#rows >= this.#wanted;
  }

  #readOn(path: LeafPath): void {
    while (!this.#ended && !this.#isFull) {
      const step = path.advance();
      if (step === undefined) this.#ended = true;
      else if (!this.#descend(path, step)) return;
    }
  }

  /** Goes down to a leaf and reads it; false where an inner node must be waited for, or there is no room. */
  #descend(path: LeafPath, start: Step): boolean {
    let step = start;
    while (step.node.level > 1) {
      const below = this.#source.peekChild(step.node, step.child);
      if (below === undefined) {
        void this.#wait(path, step);
        return false;
      }
      step = path.enter(below);
    }
    return this.#add(step);
  }

  async #wait(path: LeafPath, step: Step): Promise<void> {
    this.#waiting = step;
    let below: Node | undefined;
    try {
      below = await loadChild(this.#source, step.node, step.child);
    } catch {
      // The cursor will come to it, and say what is wrong.
    }
    if (this.#waiting !== step) return;
    this.#waiting = undefined;
    if (below === undefined) this.#ended = true;
    else if (this.#descend(path, path.enter(below))) this.#readOn(path);
  }

  #add({ node, child }: Step): boolean {
    const source = this.#source;
    const inMemory = source.peekChild(node, child, true);
    const leaf: AheadLeaf = {
      parent: node.name,
      child,
      rows: node.childCount(child),
      bytes: inMemory === undefined ? node.child(child).sizeBytes : 0,
      loading: undefined,
      node: inMemory,
    };
    if (inMemory === undefined && !this.#load(leaf, node)) return false;
    this.#queue.push(leaf);
    this.#rows += leaf.rows;
    this.#bytes += leaf.bytes;
    return true;
  }

  #load(leaf: AheadLeaf, parent: Node): boolean {
    const { memory } = this.#source;
    if (!memory.beginAhead(leaf.bytes)) {
      // Others read ahead too. The cursor will come to it, and begin anew from there.
      this.#ended = true;
      return false;
    }
    const loading = loadChild(this.#source, parent, leaf.child, true);
    leaf.loading = loading;
    void this.#settle(leaf, loading);
    return true;
  }

  async #settle(leaf: AheadLeaf, loading: Promise<Node>): Promise<void> {
    try {
      leaf.node = await loading;
    } catch {
      // Whoever comes to the leaf is told.
    } finally {
      this.#source.memory.endAhead(leaf.bytes);
    }
  }
}
