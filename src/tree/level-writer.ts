/** Writes the nodes of new trees, level by level: cuts the entries of a level into nodes, splits large nodes, and joins small ones. */
import { isPromise } from '../base/brands.ts';
import type { BlockRef } from '../format/block.ts';
import { NodeEntries } from '../format/node-entries.ts';
import type { EntryShape } from '../format/node-entries.ts';
import type { Node } from '../format/node.ts';

/** The receiver of finished nodes. */
export interface NodeSink {
  /**
   * Encodes a node and starts to store it. A returned promise resolves once there is room for more, not once the node is
   * durable. The entries are encoded when the call returns, because the caller reuses them.
   */
  put(entries: NodeEntries, from: number, to: number): BlockRef | Promise<BlockRef>;
}

/** Counts of changes to the nodes of a tree, for tests and statistics. */
export interface WriteCounters {
  /** Nodes that were split. */
  splits: number;
  /** Nodes that were joined with a neighbour. */
  joins: number;
  /** Trees that grew by a level. */
  rootSplits: number;
}

export interface LevelContext {
  readonly sink: NodeSink;
  readonly load: (ref: BlockRef) => Promise<Node>;
  readonly maxBytes: number;
  readonly counters: WriteCounters;
}

/** A finished node that is held back: intact, or still as entries. */
export interface HeldNode {
  readonly separator: Uint8Array;
  readonly ref?: BlockRef;
  readonly entries?: NodeEntries;
}

/**
 * Below this fraction of a block, a node is joined with a neighbour if both together take at most {@link joinedFill} of a
 * block.
 */
const minimumFill = 0.3;
const joinedFill = 0.9;
/**
 * The least children of a part when an inner node is split, even if the node is larger than a block. Otherwise, with keys
 * nearly as long as blocks, a level would have as many nodes as the level below, and there would never be a root.
 */
const minimumChildren = 4;

/** Returns the shortest byte string that is above `left` and not above `right`. */
export function shortestSeparator(left: Uint8Array, right: Uint8Array): Uint8Array {
  const limit = Math.min(left.length, right.length);
  let shared = 0;
  while (shared < limit && left[shared] === right[shared]) shared++;
  return right.slice(0, shared + 1);
}

/**
 * Writes the nodes of one level of a new tree, in key order. Entries are added, or intact nodes of the old tree passed on; nodes that
 * come out too small are joined with a neighbour, and finished nodes go up to the next level. The last finished node is held back, so
 * that a small one after it can still be joined with it.
 */
export class LevelWriter {
  readonly shape: EntryShape;
  readonly #context: LevelContext;
  readonly #push: (separator: Uint8Array, ref: BlockRef) => void | Promise<void>;
  pending: NodeEntries;
  /**
   * Separator of the first node made from `pending`; undefined if it is the separator between {@link #last} and the first
   * entry.
   */
  #separator: Uint8Array | undefined = new Uint8Array(0);
  /** The last key of the last finished node. */
  #last: Uint8Array = new Uint8Array(0);
  #held: HeldNode | undefined;
  /** Stored entries whose memory is reused: allocating it takes longer than filling it. */
  #spare: NodeEntries | undefined;
  #handedUp = false;

  constructor(
    shape: EntryShape,
    context: LevelContext,
    push: (separator: Uint8Array, ref: BlockRef) => void | Promise<void>,
  ) {
    this.shape = shape;
    this.#context = context;
    this.#push = push;
    this.pending = new NodeEntries(shape);
  }

  /** Sets the separator before the entries that are added next, if they begin a node. */
  begin(separator: Uint8Array): void {
    if (this.pending.count === 0) this.#separator = separator;
  }

  /** Fewest entries of a node that has neighbours. */
  get #minimumCount(): number {
    return this.shape.level > 0 ? minimumChildren : 1;
  }

  /** Whether {@link drain} must be awaited before more entries are added. */
  get full(): boolean {
    const limit = this.#context.maxBytes * 2;
    if (this.pending.count < this.#minimumCount * 2) return false;
    return this.pending.roughBytes >= limit && this.pending.sizeOf(0, this.pending.count) >= limit;
  }

  /** Finishes full nodes until less than two nodes are pending. */
  async drain(): Promise<void> {
    while (this.full) await this.#finishPart(this.#context.maxBytes);
  }

  /** Ends a node of the old tree: if enough entries are pending, they become one node or more. `append`: nothing follows. */
  async endNode(append: boolean): Promise<void> {
    const { maxBytes } = this.#context;
    if (this.pending.count < this.#minimumCount) return;
    if (this.pending.sizeOf(0, this.pending.count) < maxBytes * minimumFill) return;
    await this.#finishAll(append);
  }

  /** Adds an intact node of the old tree. */
  async passIntact(separator: Uint8Array, ref: BlockRef): Promise<void> {
    if (this.pending.count > 0) {
      const size = this.pending.sizeOf(0, this.pending.count);
      const { maxBytes } = this.#context;
      if (size < maxBytes * minimumFill && size + ref.sizeBytes <= maxBytes * joinedFill) {
        const node = await this.#context.load(ref);
        this.pending.addNodeEntries(node, 0, node.count);
        this.#context.counters.joins++;
        return;
      }
      await this.#finishAll(false);
    }
    await this.#hold({ separator, ref });
  }

  /** Finishes all pending entries, and adds the nodes to the next level. */
  async close(): Promise<void> {
    if (this.pending.count > 0) await this.#finishAll(true);
    const held = this.#held;
    this.#held = undefined;
    if (held !== undefined) await this.#handUp(held);
  }

  /** Finishes all pending entries. Returns the node if it is the only one; otherwise adds all nodes to the next level. */
  async closeAsRoot(nothingAbove: boolean): Promise<HeldNode | undefined> {
    if (this.pending.count > 0) await this.#finishAll(true);
    const held = this.#held;
    this.#held = undefined;
    if (held !== undefined && nothingAbove && !this.#handedUp) return held;
    if (held !== undefined) await this.#handUp(held);
    return undefined;
  }

  /** Whether this level has received no entries at all. */
  get empty(): boolean {
    return this.pending.count === 0 && this.#held === undefined && !this.#handedUp;
  }

  /** Returns the only child of this level, which then is the root itself; undefined if there is not exactly one child. */
  onlyChild(): BlockRef | undefined {
    return this.pending.count === 1 && this.#held === undefined && !this.#handedUp ? this.pending.child(0) : undefined;
  }

  async #finishAll(append: boolean): Promise<void> {
    const { maxBytes, counters } = this.#context;
    let split = false;
    while (this.pending.count >= Math.max(2, this.#minimumCount * 2)) {
      const size = this.pending.sizeOf(0, this.pending.count);
      if (size <= maxBytes) break;
      split = true;
      // If nothing follows, the nodes are filled; otherwise they are split in halves, so that both have room to grow.
      await this.#finishPart(append ? maxBytes : Math.min(maxBytes, size / 2));
    }
    if (split) counters.splits++;
    if (await this.#joinWithHeld()) return;
    await this.#finish(this.pending.count);
  }

  /** Joins the pending entries with the node before them, if they are small and fit together. */
  async #joinWithHeld(): Promise<boolean> {
    const held = this.#held;
    const { maxBytes, load, counters } = this.#context;
    const size = this.pending.sizeOf(0, this.pending.count);
    if (held === undefined || size >= maxBytes * minimumFill) return false;
    const heldSize = held.ref?.sizeBytes ?? held.entries?.sizeOf(0, held.entries.count) ?? 0;
    if (heldSize + size > maxBytes * joinedFill) return false;
    const joined = new NodeEntries(this.shape);
    if (held.entries !== undefined) joined.addFrom(held.entries, 0, held.entries.count);
    else {
      const node = await load(held.ref as BlockRef);
      joined.addNodeEntries(node, 0, node.count);
    }
    joined.addFrom(this.pending, 0, this.pending.count);
    // Together they may share a shorter prefix than each alone, and so be longer than both.
    if (joined.sizeOf(0, joined.count) > maxBytes) return false;
    this.#taken(this.pending);
    this.#held = { separator: held.separator, entries: joined };
    counters.joins++;
    return true;
  }

  /** Finishes a node of up to `sizeBytes` from the first pending entries, and leaves enough entries for another node. */
  async #finishPart(sizeBytes: number): Promise<void> {
    const { count } = this.pending;
    const least = this.#minimumCount;
    const n = Math.max(this.pending.fitting(0, sizeBytes), least);
    await this.#finish(count > least ? Math.min(n, count - least) : count);
  }

  /** Finishes a node with the first `n` pending entries. */
  async #finish(n: number): Promise<void> {
    const done = this.pending;
    const separator = this.#firstSeparator();
    const rest = this.#noEntries();
    rest.addFrom(done, n, done.count);
    done.truncate(n);
    this.#taken(done, rest);
    await this.#hold({ separator, entries: done });
  }

  /** Returns the separator of the node that begins with the first pending entry. */
  #firstSeparator(): Uint8Array {
    if (this.#separator !== undefined) return this.#separator;
    // Entries of inner nodes are separators already; only keys of rows can be shortened.
    const first = this.pending.key(0);
    return this.shape.level > 0 ? first : shortestSeparator(this.#last, first);
  }

  /** Records that the entries of `done` are finished, and that `rest` is pending and begins another node. */
  #taken(done: NodeEntries, rest: NodeEntries = this.#noEntries()): void {
    this.#last = done.key(done.count - 1);
    this.#separator = undefined;
    this.pending = rest;
  }

  #noEntries(): NodeEntries {
    const entries = this.#spare ?? new NodeEntries(this.shape);
    this.#spare = undefined;
    return entries;
  }

  async #hold(next: HeldNode): Promise<void> {
    const held = this.#held;
    this.#held = next;
    if (held !== undefined) await this.#handUp(held);
  }

  async #handUp({ separator, ref, entries }: HeldNode): Promise<void> {
    this.#handedUp = true;
    const stored = ref ?? this.#put(entries as NodeEntries);
    await this.#push(separator, isPromise(stored) ? await stored : stored);
  }

  #put(entries: NodeEntries): BlockRef | Promise<BlockRef> {
    const stored = this.#context.sink.put(entries, 0, entries.count);
    entries.truncate(0);
    this.#spare = entries;
    return stored;
  }
}
