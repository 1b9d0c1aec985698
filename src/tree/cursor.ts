/**
 * Cursors over trees. A cursor moves from run to run; a run is a sequence of entries of one leaf. Its user processes a whole
 * run at a time, so nothing is awaited, called or allocated per row.
 */
import { isPromise } from '../base/brands.ts';
import { compareBytes } from '../base/bytes.ts';
import type { Node } from '../format/node.ts';
import type { BlockSource } from './block-source.ts';
import { loadChild } from './tree.ts';
import type { Tree } from './tree.ts';

/** Bounds of keys: `from` inclusive, `to` exclusive; undefined means unbounded. */
export interface KeyRange {
  readonly from?: Uint8Array | undefined;
  readonly to?: Uint8Array | undefined;
}

/** Whether a key is in a range. */
export function isInRange(key: Uint8Array, { from, to }: KeyRange): boolean {
  return (from === undefined || compareBytes(key, from) >= 0) && (to === undefined || compareBytes(key, to) < 0);
}

/** Moves over runs of entries, ascending or descending. */
export interface RunCursor {
  /** The leaf of the current run. */
  readonly node: Node;
  /** First entry of the run. */
  readonly from: number;
  /** The entry after the last one of the run. A run of a descending cursor also is `from` to `to`, and is read from its end. */
  readonly to: number;
  /** Moves to the next run. Returns true, or false at the end; a promise of it if the run is not in memory. */
  next(): boolean | Promise<boolean>;
  /**
   * Sets the number of entries that are likely to be wanted after the current run, so that leaves are read ahead. Without it
   * none are. `together`: how many of them are processed before it is decided whether more are wanted.
   */
  expect?(entries: number, together?: number): void;
}

/** Returns a cursor over all entries in a range, which is likely to be read to its end: leaves are read ahead. */
export function readAll(tree: Tree, range: KeyRange = {}): TreeCursor {
  const cursor = new TreeCursor(tree, range);
  cursor.expect(Number.POSITIVE_INFINITY);
  return cursor;
}

export class TreeCursor implements RunCursor {
  readonly #tree: Tree;
  readonly #range: KeyRange;
  readonly #descending: boolean;
  readonly #path: LeafPath;
  #started = false;
  #done = false;
  /** Whether a leaf was reached: the leaves after it are part of a scan. */
  #scanning = false;
  #expected = 0;
  #readAhead: ReadAhead | undefined;
  node!: Node;
  from = 0;
  to = 0;

  constructor(tree: Tree, range: KeyRange = {}, descending = false) {
    this.#tree = tree;
    this.#range = range;
    this.#descending = descending;
    this.#path = new LeafPath(range.from, range.to, descending);
  }

  expect(entries: number): void {
    this.#expected = entries;
  }

  next(): boolean | Promise<boolean> {
    if (this.#done) return false;
    if (!this.#started) {
      this.#started = true;
      if (this.#tree.ref === null) return this.#end();
      const root = this.#tree.getCachedRoot();
      if (root === undefined) return this.#tree.loadRoot().then((node) => this.#descend(node));
      return this.#descend(root);
    }
    return this.#advance();
  }

  #end(): false {
    this.#done = true;
    this.#readAhead = undefined;
    return false;
  }

  /** Descends from a node to the first leaf in the range. */
  #descend(start: Node): boolean | Promise<boolean> {
    let node = start;
    while (node.level > 0) {
      const step = this.#path.enter(node);
      if (node.level === 1) return this.#openLeaf(step);
      const below = this.#tree.source.getCachedChild(node, step.child);
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
    const leaf = this.#readAhead?.arrive(step) ?? source.getCachedChild(node, child, passing);
    if (leaf === undefined || isPromise(leaf)) return this.#waitForLeaf(step, passing, leaf);
    this.#readAhead?.fill(this.#path, this.#expected - node.childCount(child));
    return this.#enter(leaf);
  }

  #waitForLeaf({ node, child }: Step, passing: boolean, early: Promise<Node> | undefined): Promise<boolean> {
    const { source } = this.#tree;
    const loading = early ?? loadChild(source, node, child, passing);
    const rest = this.#expected - node.childCount(child);
    // Reading ahead begins after the first leaf, which often is the only one needed.
    if (passing && rest > 0) {
      if (this.#readAhead === undefined) this.#readAhead = new ReadAhead(source);
      else this.#readAhead.widen();
      this.#readAhead.fill(this.#path, rest);
    }
    return loading.then((leaf) => this.#enter(leaf));
  }

  /** Selects the part of a leaf that lies in the range. If it is empty, moves on. */
  #enter(leaf: Node): boolean | Promise<boolean> {
    const { from, to } = this.#range;
    this.node = leaf;
    this.from = from === undefined ? 0 : leaf.lowerBound(from);
    this.to = to === undefined ? leaf.count : leaf.lowerBound(to);
    if (this.from < this.to) return true;
    return this.#advance();
  }

  #advance(): boolean | Promise<boolean> {
    const leaf = this.node;
    // A leaf whose range ended within it was the last one.
    if (this.#descending ? this.from > 0 : this.to < leaf.count) return this.#end();
    const step = this.#path.advance();
    if (step === undefined) return this.#end();
    if (step.node.level === 1) return this.#openLeaf(step);
    const below = this.#tree.source.getCachedChild(step.node, step.child);
    return below === undefined ? this.#loadBelow(step) : this.#descend(below);
  }
}

/** An inner node, and the child that the path leads to. */
interface Step {
  readonly node: Node;
  child: number;
}

/** The path from a root to a leaf, which moves from leaf to leaf within a range of keys. */
class LeafPath {
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

  /** Returns an independent copy of the path. */
  copy(): LeafPath {
    const copied = new LeafPath(this.#from, this.#to, this.#descending);
    copied.#steps = this.#steps.map(({ node, child }) => ({ node, child }));
    return copied;
  }

  /** Continues the path to the first child of an inner node that can have keys of the range, in the path's direction. */
  enter(node: Node): Step {
    const from = this.#from;
    const to = this.#to;
    let child: number;
    // Below a node that was entered from its edge, this simply is the first or last child.
    if (!this.#descending) child = from === undefined ? 0 : node.childFor(from);
    else child = to === undefined ? node.count - 1 : node.childFor(to);
    const step = { node, child };
    this.#steps.push(step);
    return step;
  }

  /** Moves to the next child, perhaps of a node further up; undefined after the end of the range. */
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

  /** Whether the separator at a step shows that the range ends there, which saves reading a block. */
  #endsBefore({ node, child }: Step): boolean {
    const from = this.#from;
    const to = this.#to;
    if (this.#descending) return from !== undefined && node.compareKey(child, from, from.length) <= 0;
    return to !== undefined && node.compareKey(child, to, to.length) >= 0;
  }
}

/** A leaf after the cursor's leaf. */
interface ReadAheadLeaf {
  readonly parent: string;
  readonly child: number;
  readonly rows: number;
  /** Bytes of the block if it is read here; 0 if it was in memory. */
  readonly bytes: number;
  loading: Promise<Node> | undefined;
  node: Node | undefined;
}

/** Number of leaves read ahead: at first, and at most. */
const firstWindow = 2;
const widestWindow = 32;

/**
 * Reads the leaves that a cursor will reach next, so that it waits once for many of them. Their number depends on how often the
 * cursor had to wait, and they never hold more rows than are wanted: a scan that ends soon reads no leaf needlessly.
 */
class ReadAhead {
  readonly #source: BlockSource;
  /** The path to the last leaf in the queue; undefined until the start is known. */
  #path: LeafPath | undefined;
  /** The leaves after the cursor's leaf, in its order. */
  readonly #queue: ReadAheadLeaf[] = [];
  #rows = 0;
  #bytes = 0;
  #window = firstWindow;
  #wanted = 0;
  #ended = false;
  /** The step to an inner node that must be read before reading ahead can continue. */
  #waiting: Step | undefined;

  constructor(source: BlockSource) {
    this.#source = source;
  }

  /** Called when the cursor reaches a leaf. Returns the leaf, or a promise of it, if it was read ahead. */
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

  /** Called when the cursor must wait: reads more leaves ahead from now on. */
  widen(): void {
    this.#window = Math.min(this.#window * 2, widestWindow);
  }

  /** Starts to read the leaves after the cursor's leaf, to which `path` leads, until `wanted` rows are covered. */
  fill(path: LeafPath, wanted: number): void {
    this.#wanted = wanted;
    if (this.#waiting !== undefined) return;
    this.#path ??= path.copy();
    this.#readOn(this.#path);
  }

  get #isFull(): boolean {
    const tooMuch = this.#bytes >= this.#source.memory.readAheadBytes;
    return tooMuch || this.#queue.length >= this.#window || this.#rows >= this.#wanted;
  }

  #readOn(path: LeafPath): void {
    while (!this.#ended && !this.#isFull) {
      const step = path.advance();
      if (step === undefined) this.#ended = true;
      else if (!this.#descend(path, step)) return;
    }
  }

  /** Descends to a leaf and starts to read it. Returns false if an inner node must be awaited, or if there is no memory. */
  #descend(path: LeafPath, start: Step): boolean {
    let step = start;
    while (step.node.level > 1) {
      const below = this.#source.getCachedChild(step.node, step.child);
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
      // The cursor will reach the node, and get the error.
    }
    if (this.#waiting !== step) return;
    this.#waiting = undefined;
    if (below === undefined) this.#ended = true;
    else if (this.#descend(path, path.enter(below))) this.#readOn(path);
  }

  #add({ node, child }: Step): boolean {
    const source = this.#source;
    const inMemory = source.getCachedChild(node, child, true);
    const leaf: ReadAheadLeaf = {
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

  #load(leaf: ReadAheadLeaf, parent: Node): boolean {
    const { memory } = this.#source;
    if (!memory.beginReadAhead(leaf.bytes)) {
      // Other readers take the memory. When the cursor reaches this leaf, it starts to read ahead again.
      this.#ended = true;
      return false;
    }
    const loading = loadChild(this.#source, parent, leaf.child, true);
    leaf.loading = loading;
    void this.#arrived(leaf, loading);
    return true;
  }

  async #arrived(leaf: ReadAheadLeaf, loading: Promise<Node>): Promise<void> {
    try {
      leaf.node = await loading;
    } catch {
      // The reader of the leaf gets the error.
    } finally {
      this.#source.memory.endReadAhead(leaf.bytes);
    }
  }
}
