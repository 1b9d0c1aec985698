/**
 * Copy-on-write: applies a sorted stream of changes to a tree and returns the root of a new tree. Nodes without changes are
 * shared with the old tree, which stays unchanged.
 */
import { compareRanges } from '../base/bytes.ts';
import { invariant } from '../base/errors.ts';
import type { Pacer } from '../base/pacer.ts';
import { BlockKind } from '../format/block.ts';
import type { BlockRef } from '../format/block.ts';
import type { KeyChanges, NodeEntries, EntryShape } from '../format/node-entries.ts';
import type { Node } from '../format/node.ts';
import type { RowSource } from '../format/row-layout.ts';
import type { BlockSource } from './block-source.ts';
import { LevelWriter } from './level-writer.ts';
import type { LevelContext, NodeSink, WriteCounters } from './level-writer.ts';
import { loadChild } from './tree.ts';
import type { RowRef, Tree } from './tree.ts';

/** Changes in strictly ascending key order, with a current change until `done`. */
export interface ChangeStream extends Upcoming {
  readonly done: boolean;
  /** The current key is `key[keyStart .. keyEnd)`. */
  readonly key: Uint8Array;
  readonly keyStart: number;
  readonly keyEnd: number;
  /** Whether the entry is removed. Otherwise it is added or replaced, by the row at `base` of `source` if it has one. */
  readonly remove: boolean;
  readonly source: RowSource | undefined;
  readonly base: number;
  advance(): void | Promise<void>;
  /**
   * Returns the current change and those after it that only add or replace rows, are adjacent in a node, and have keys below
   * `limit`; undefined if that is not known. {@link advanceRun} moves past the changes that were applied.
   */
  run?(limit: Uint8Array | undefined): RowRun | undefined;
  /** The number of words that come less those that go, if they are changes to an index on texts. */
  readonly words?: number;
  /** The changes, if all of them are keys without values. */
  readonly keyed?: KeyChanges;
  advanceRun?(count: number): void | Promise<void>;
}

/** Adjacent rows of a node. */
export interface RowRun {
  readonly node: Node;
  readonly from: number;
  readonly to: number;
}

/** Called for every entry before it changes, with the old row if there is one, and the change. */
export type ChangeObserver = (old: RowRef | undefined, change: ChangeStream) => void;
/** Called with new rows, many at once. */
export type RunObserver = (added: RowRun) => void;

/** The root of a new tree: none, a node of the old tree, or entries that are not stored yet. */
export type NewRoot =
  | { readonly kind: 'empty' }
  | { readonly kind: 'stored'; readonly ref: BlockRef; readonly level: number }
  | { readonly kind: 'new'; readonly entries: NodeEntries };

export interface WriteOptions {
  readonly sink: NodeSink;
  /** Shape of the tree's leaves. */
  readonly leaf: EntryShape;
  /** Target size of nodes, in bytes. */
  readonly blockSizeBytes: number;
  readonly pacer: Pacer;
  readonly counters: WriteCounters;
  readonly observe?: ChangeObserver;
  /** Without it, `observe` is called for new rows too. */
  readonly observeRun?: RunObserver;
}

/** Most rows, or changes of keys, that are applied without a pause: at most a millisecond's work. */
export const longestRun = 1024;

/** Applies changes to a tree. When it resolves, all blocks except the root have been passed to the sink. */
export async function applyChanges(tree: Tree, changes: ChangeStream, options: WriteOptions): Promise<NewRoot> {
  const writer = new TreeWriter(tree, changes, options);
  if (tree.ref === null) await writer.fill();
  else {
    const root = tree.getCachedRoot() ?? (await tree.loadRoot());
    await writer.rewrite(root, new Uint8Array(0), undefined);
  }
  invariant(changes.done, 'Changes were left over after the last node of a tree');
  return writer.finish();
}

const innerKind = BlockKind.inner;

class TreeWriter {
  readonly #tree: Tree;
  readonly #changes: ChangeStream;
  readonly #options: WriteOptions;
  readonly #levels: LevelWriter[] = [];
  readonly #context: LevelContext;
  /** For each level of inner nodes, from the lowest. */
  readonly #readAhead: ChildReadAhead[] = [];

  constructor(tree: Tree, changes: ChangeStream, options: WriteOptions) {
    this.#tree = tree;
    this.#changes = changes;
    this.#options = options;
    this.#context = {
      sink: options.sink,
      load: (ref) => tree.source.load(ref),
      maxBytes: options.blockSizeBytes,
      counters: options.counters,
    };
  }

  #level(level: number): LevelWriter {
    for (let next = this.#levels.length; next <= level; next++) {
      const shape: EntryShape = next === 0 ? this.#options.leaf : { kind: innerKind, level: next };
      const above = next + 1;
      this.#levels.push(
        new LevelWriter(shape, this.#context, (separator, ref) => this.#addChild(above, separator, ref)),
      );
    }
    return this.#levels[level] as LevelWriter;
  }

  #addChild(level: number, separator: Uint8Array, ref: BlockRef): void | Promise<void> {
    const writer = this.#level(level);
    writer.begin(separator);
    writer.pending.addChild(separator, ref);
    return writer.full ? writer.drain() : undefined;
  }

  /** Builds a new tree. */
  async fill(): Promise<void> {
    const { keyed } = this.#changes;
    while (!this.#changes.done) {
      if (keyed !== undefined && this.#options.observe === undefined) {
        this.#level(0).pending.addNewKeys(keyed, longestRun);
        await this.#drain(this.#level(0), undefined);
        continue;
      }
      if (this.#takesRuns) {
        const run = this.#changes.run?.(undefined);
        if (run !== undefined) {
          await this.#addRun(run);
          continue;
        }
      }
      const added = this.#addChange();
      if (added !== undefined) await added;
    }
  }

  /** Whether many rows may be added at once, which the observer must support. */
  get #takesRuns(): boolean {
    const { observe, observeRun } = this.#options;
    return observe === undefined || observeRun !== undefined;
  }

  /** Adds rows in a range of keys where the old tree has none, and moves on. */
  async #addRun({ node, from, to }: RowRun): Promise<void> {
    const leaf = this.#level(0);
    const end = Math.min(to, from + longestRun);
    this.#options.observeRun?.({ node, from, to: end });
    leaf.pending.addNodeEntries(node, from, end);
    await this.#changes.advanceRun?.(end - from);
    await this.#drain(leaf, undefined);
  }

  /** Applies the current change where the old tree has no entry, and moves on. */
  #addChange(): void | Promise<void> {
    const changes = this.#changes;
    this.#options.observe?.(undefined, changes);
    const leaf = this.#level(0);
    if (!changes.remove) this.#addEntry(leaf);
    const advanced = changes.advance();
    if (leaf.full || this.#pauseDue()) return this.#drain(leaf, advanced);
    return advanced;
  }

  #steps = 0;

  /** Checks the clock now and then, because a leaf may take many changes before it is full. */
  #pauseDue(): boolean {
    return (++this.#steps & 0xff) === 0 && this.#options.pacer.due();
  }

  #addEntry(leaf: LevelWriter): void {
    const { key, keyStart, keyEnd, source, base } = this.#changes;
    if (source === undefined) leaf.pending.addKey(key, keyStart, keyEnd);
    else leaf.pending.addRow(key, keyStart, keyEnd, source, base);
  }

  async #drain(leaf: LevelWriter, advanced: void | Promise<void>): Promise<void> {
    await advanced;
    await leaf.drain();
    if (this.#options.pacer.due()) await this.#options.pacer.pause();
  }

  /** Whether the next change belongs below `upper`. */
  #changesBelow(upper: Uint8Array | undefined): boolean {
    const { done, key, keyStart, keyEnd } = this.#changes;
    return !done && (upper === undefined || compareRanges(key, keyStart, keyEnd, upper, 0, upper.length) < 0);
  }

  /** Rewrites a node of the old tree with the changes between its separator and `upper`. */
  async rewrite(node: Node, separator: Uint8Array, upper: Uint8Array | undefined): Promise<void> {
    if (this.#options.pacer.due()) await this.#options.pacer.pause();
    // Entries that were too few for a node are joined with this node.
    if (this.#level(node.level).pending.count > 0) this.#options.counters.joins++;
    if (node.level === 0) {
      await this.#rewriteLeaf(node, separator, upper);
      return;
    }
    let next = 0;
    while (next < node.count && this.#changesBelow(upper)) {
      const { key, keyStart, keyEnd } = this.#changes;
      const i = Math.max(next, node.childFor(key.subarray(keyStart, keyEnd)));
      await this.#passIntact(node, next, i, separator);
      const cached = this.#tree.source.getCachedChild(node, i);
      next = i + 1;
      const readAhead = (this.#readAhead[node.level - 1] ??= new ChildReadAhead(this.#tree.source));
      readAhead.arrive(node, next, this.#changes, cached === undefined);
      const child = cached ?? (await loadChild(this.#tree.source, node, i));
      await this.rewrite(child, i === 0 ? separator : node.key(i), next < node.count ? node.key(next) : upper);
    }
    await this.#passIntact(node, next, node.count, separator);
    // Entries still pending in the leaves also go to the next sibling, but the entries of this level may end here.
    if (upper !== undefined) await this.#level(node.level).endNode(false);
  }

  /** Adds children `from` up to `to` of a node as they are. `separator`: the separator of the node. */
  async #passIntact(node: Node, from: number, to: number, separator: Uint8Array): Promise<void> {
    if (from === to) return;
    const level = node.level - 1;
    for (let below = 0; below < level; below++) await this.#level(below).close();
    const writer = this.#level(level);
    for (let i = from; i < to; i++) await writer.passIntact(i === 0 ? separator : node.key(i), node.child(i));
  }

  async #rewriteLeaf(node: Node, separator: Uint8Array, upper: Uint8Array | undefined): Promise<void> {
    const leaf = this.#level(0);
    const changes = this.#changes;
    leaf.begin(separator);
    if (changes.keyed !== undefined && this.#options.observe === undefined) {
      await this.#rewriteKeys(node, upper, changes.keyed);
      return;
    }
    let i = 0;
    let appended = false;
    /** The entry before which the last change was added. */
    let added = -1;
    while (this.#changesBelow(upper)) {
      const { key, keyStart, keyEnd } = changes;
      const at = node.boundFrom(i, key, keyStart, keyEnd);
      leaf.pending.addNodeEntries(node, i, at);
      i = at;
      const exists = at < node.count && node.hasKey(at, key, keyStart, keyEnd);
      // One new row is mostly followed by others.
      if (!exists && added === at && this.#takesRuns) {
        const run = changes.run?.(at < node.count ? node.key(at) : upper);
        if (run !== undefined) {
          appended = at === node.count;
          await this.#addRun(run);
          continue;
        }
      }
      added = exists ? -1 : at;
      this.#options.observe?.(exists ? { source: node, base: node.rowBase(at) } : undefined, changes);
      if (exists) i = at + 1;
      appended = !exists && at === node.count;
      if (!changes.remove) this.#addEntry(leaf);
      const advanced = changes.advance();
      if (advanced !== undefined) await advanced;
      if (leaf.full || this.#pauseDue()) await this.#drain(leaf, undefined);
    }
    leaf.pending.addNodeEntries(node, i, node.count);
    // A leaf that got rows at its end is being appended to: it is split into full nodes, with the rest in the last one.
    await leaf.endNode(appended && upper === undefined);
  }

  async #rewriteKeys(node: Node, upper: Uint8Array | undefined, keyed: KeyChanges): Promise<void> {
    const leaf = this.#level(0);
    let i = 0;
    while (this.#changesBelow(upper)) {
      i = leaf.pending.addChangedKeys(node, i, keyed, upper, longestRun);
      if (leaf.full || this.#options.pacer.due()) await this.#drain(leaf, undefined);
    }
    // If the last change is after all entries of the node, the leaf is being appended to.
    const appended = i === node.count;
    leaf.pending.addNodeEntries(node, i, node.count);
    await leaf.endNode(appended && upper === undefined);
  }

  async finish(): Promise<NewRoot> {
    for (let level = 0; ; level++) {
      const writer = this.#levels[level];
      if (writer === undefined) return { kind: 'empty' };
      if (level > 0) {
        const only = writer.onlyChild();
        if (only !== undefined && this.#nothingAbove(level)) {
          return { kind: 'stored', ref: only, level: level - 1 };
        }
      }
      const nothingAbove = this.#nothingAbove(level);
      const root = await writer.closeAsRoot(nothingAbove);
      if (root === undefined) {
        if (nothingAbove && this.#nothingAbove(level)) return { kind: 'empty' };
        continue;
      }
      if (root.ref !== undefined) return { kind: 'stored', ref: root.ref, level };
      const entries = root.entries as NodeEntries;
      if (level > (this.#tree.ref?.level ?? 0)) this.#options.counters.rootSplits++;
      return { kind: 'new', entries };
    }
  }

  /** Whether all levels above are empty: then a single node on this level is the root. */
  #nothingAbove(level: number): boolean {
    return this.#levels.slice(level + 1).every((writer) => writer.empty);
  }
}

/** Information about later changes of a stream. */
interface Upcoming {
  /**
   * Whether changes may have keys from `from` to `to`, inclusive; undefined if the blocks in memory do not show that yet. The nodes of
   * such keys are read ahead; without this function none are.
   */
  mayChange?(from: Uint8Array, to: Uint8Array): boolean | undefined;
}

/** Most children that are read ahead, those included that have arrived and wait for the writer. */
const maxReadAhead = 16;

/**
 * Reads ahead the nodes of one level that the next changes affect, so that the writer waits once for many of them. Otherwise a merge of
 * changes all over a large table would take a round trip for each.
 */
class ChildReadAhead {
  readonly #source: BlockSource;
  /** The node whose children were read last. */
  #node: Node | undefined;
  /** Position of its next child to read. */
  #next = 0;
  /** Positions of the children that were read ahead and that the writer has not reached, ascending. */
  #ahead: number[] = [];
  /** Whether a child was not in memory. */
  #isNeeded = false;

  constructor(source: BlockSource) {
    this.#source = source;
  }

  /**
   * Called when the writer reaches a child. Once one `isMissing` from memory, starts to read the children of the node from `from` on that
   * are not in memory and that changes may affect.
   */
  arrive(node: Node, from: number, changes: Upcoming, isMissing: boolean): void {
    if (isMissing) this.#isNeeded = true;
    if (!this.#isNeeded || changes.mayChange === undefined) return;
    if (this.#node !== node) {
      this.#node = node;
      this.#next = 0;
      this.#ahead = [];
    }
    while ((this.#ahead[0] ?? from) < from) this.#ahead.shift();
    this.#next = Math.max(from, this.#next);
    // The last child is left out, because its upper bound is not known here.
    for (; this.#next + 1 < node.count && this.#ahead.length < maxReadAhead; this.#next++) {
      const i = this.#next;
      const may = changes.mayChange(node.key(i), node.key(i + 1));
      if (may === undefined) return;
      if (may && this.#source.peekChild(node, i) === undefined && !this.#load(node, i)) return;
    }
  }

  /** Starts to read a child. Returns false if there is no memory for it. */
  #load(node: Node, i: number): boolean {
    const { memory } = this.#source;
    const { sizeBytes } = node.child(i);
    if (!memory.beginReadAhead(sizeBytes)) return false;
    this.#ahead.push(i);
    const end = (): void => memory.endReadAhead(sizeBytes);
    // The reader of the node gets the error.
    void loadChild(this.#source, node, i).then(end, end);
    return true;
  }
}
