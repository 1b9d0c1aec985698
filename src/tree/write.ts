/**
 * Copy-on-write: applies a sorted stream of changes to a tree and gives the root of a new one. Nodes that no change
 * falls into are shared with the old tree, which stays as it is.
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
import { LevelWriter } from './block-writer.ts';
import type { LevelContext, NodeSink, WriteCounters } from './block-writer.ts';
import { loadChild } from './tree.ts';
import type { RowRef, Tree } from './tree.ts';

/** Changes in strictly ascending key order; positioned on one of them until `done`. */
export interface ChangeStream extends Upcoming {
  readonly done: boolean;
  /** The present key is `key[keyStart .. keyEnd)`. */
  readonly key: Uint8Array;
  readonly keyStart: number;
  readonly keyEnd: number;
  /** Whether the entry goes; otherwise it is added or replaced, by the row at `base` of `source` if it has one. */
  readonly remove: boolean;
  readonly source: RowSource | undefined;
  readonly base: number;
  advance(): void | Promise<void>;
  /**
   * The present change and those after it that only add or replace rows, lie one after the other in a node, and have keys
   * below `limit`; undefined where that is not known. What is taken of them is passed with {@link advanceRun}.
   */
  run?(limit: Uint8Array | undefined): RowRun | undefined;
  /** The changes, where all of them are keys without values. */
  readonly keyed?: KeyChanges;
  advanceRun?(count: number): void | Promise<void>;
}

/** Rows that lie one after the other in a node. */
export interface RowRun {
  readonly node: Node;
  readonly from: number;
  readonly to: number;
}

/** Told of every entry that changes, before it does: the old row if there was one, and the change. */
export type ChangeObserver = (old: RowRef | undefined, change: ChangeStream) => void;
/** Receives rows that are new, many at once. */
export type RunObserver = (added: RowRun) => void;

/** Root of a new tree: none, a node of the old tree, or entries that are not stored yet. */
export type NewRoot =
  | { readonly kind: 'empty' }
  | { readonly kind: 'stored'; readonly ref: BlockRef; readonly level: number }
  | { readonly kind: 'new'; readonly entries: NodeEntries };

export interface WriteOptions {
  readonly sink: NodeSink;
  /** Shape of the tree's leaves. */
  readonly leaf: EntryShape;
  /** Size that nodes should have, in bytes. */
  readonly blockSizeBytes: number;
  readonly pacer: Pacer;
  readonly counters: WriteCounters;
  readonly observe?: ChangeObserver;
  /** Without it, `observe` is told of these, too. */
  readonly observeRun?: RunObserver;
}

/** Rows, or changes of keys, that are applied at once: a millisecond's work at most. */
export const longestRun = 1024;

/** Applies changes to a tree. All blocks but the root have been given to the sink when it resolves. */
export async function applyChanges(tree: Tree, changes: ChangeStream, options: WriteOptions): Promise<NewRoot> {
  const writer = new TreeWriter(tree, changes, options);
  if (tree.ref === null) await writer.fill();
  else {
    const root = tree.peekRoot() ?? (await tree.loadRoot());
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
  readonly #ahead: WriteAhead;

  constructor(tree: Tree, changes: ChangeStream, options: WriteOptions) {
    this.#tree = tree;
    this.#changes = changes;
    this.#options = options;
    this.#ahead = new WriteAhead(tree.source);
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

  /** Builds a tree from nothing. */
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
      await this.#addChange();
    }
  }

  /** Whether rows may be added many at once: their observer must be able to. */
  get #takesRuns(): boolean {
    const { observe, observeRun } = this.#options;
    return observe === undefined || observeRun !== undefined;
  }

  /** Adds rows where the old tree has none, and moves on. */
  async #addRun({ node, from, to }: RowRun): Promise<void> {
    const leaf = this.#level(0);
    const end = Math.min(to, from + longestRun);
    this.#options.observeRun?.({ node, from, to: end });
    leaf.pending.addNodeEntries(node, from, end);
    await this.#changes.advanceRun?.(end - from);
    await this.#drain(leaf, undefined);
  }

  /** Adds the present change, if it adds anything, and moves on. */
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

  /** Asks the clock now and then: many changes can go by before a leaf is full. */
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

  /** Writes a node of the old tree anew, with the changes that fall between its separator and `upper`. */
  async rewrite(node: Node, separator: Uint8Array, upper: Uint8Array | undefined): Promise<void> {
    if (this.#options.pacer.due()) await this.#options.pacer.pause();
    // What was too small for a node of its own becomes one with what is in this node.
    if (this.#level(node.level).pending.count > 0) this.#options.counters.joins++;
    if (node.level === 0) {
      await this.#rewriteLeaf(node, separator, upper);
      return;
    }
    for (let i = 0; i < node.count; i++) {
      const childSeparator = i === 0 ? separator : node.key(i);
      const childUpper = i + 1 < node.count ? node.key(i + 1) : upper;
      if (this.#changesBelow(childUpper)) {
        const child = this.#tree.source.peekChild(node, i) ?? (await this.#load(node, i));
        await this.rewrite(child, childSeparator, childUpper);
      } else await this.#passIntact(node.level - 1, childSeparator, node.child(i));
    }
    // What the leaves still hold belongs to the next sibling as well; what came up to this level may end here.
    if (upper !== undefined) await this.#level(node.level).endNode(false);
  }

  /** Loads a child, and begins to load others after it that changes fall into. */
  #load(node: Node, child: number): Promise<Node> {
    this.#ahead.fill(node, child + 1, this.#changes);
    return loadChild(this.#tree.source, node, child);
  }

  async #passIntact(level: number, separator: Uint8Array, ref: BlockRef): Promise<void> {
    for (let below = 0; below < level; below++) await this.#level(below).close();
    await this.#level(level).passIntact(separator, ref);
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
    /** Before which entry the last change was added. */
    let added = -1;
    while (this.#changesBelow(upper)) {
      const { key, keyStart, keyEnd } = changes;
      const at = node.boundFrom(i, key, keyStart, keyEnd);
      leaf.pending.addNodeEntries(node, i, at);
      i = at;
      const exists = at < node.count && node.hasKey(at, key, keyStart, keyEnd);
      // After one comes mostly another.
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
    // A leaf with many rows added at its end is being appended to: full nodes then, and the rest in the last one.
    await leaf.endNode(appended && upper === undefined);
  }

  async #rewriteKeys(node: Node, upper: Uint8Array | undefined, keyed: KeyChanges): Promise<void> {
    const leaf = this.#level(0);
    let i = 0;
    while (this.#changesBelow(upper)) {
      i = leaf.pending.addChangedKeys(node, i, keyed, upper, longestRun);
      if (leaf.full || this.#options.pacer.due()) await this.#drain(leaf, undefined);
    }
    // Where the last of them came after all that was there, the leaf is being appended to.
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

  /** Whether no level above has anything in it: then a lone node at this one is the root. */
  #nothingAbove(level: number): boolean {
    return this.#levels.slice(level + 1).every((writer) => writer.empty);
  }
}

// Reads the nodes that changes to a tree are about to fall into, so that the writer waits once for many of them: a merge
// of few changes all over a large table would otherwise take a round trip for each.

/** What is known of changes that are still to come. */
interface Upcoming {
  /**
   * Whether some of them may be with keys from `from` to `to`, both included, for all that is in memory: then what they fall into
   * is read ahead. Without it, nothing is.
   */
  mayChange?(from: Uint8Array, to: Uint8Array): boolean;
}

/** Nodes that are read ahead at the same time. */
const maxAhead = 16;

class WriteAhead {
  readonly #source: BlockSource;
  /** The node whose children were read last, and which of them is next. */
  #node: Node | undefined;
  #next = 0;
  #running = 0;

  constructor(source: BlockSource) {
    this.#source = source;
  }

  /** Begins to read children of a node, from `from` on, that changes may fall into and that are not in memory. */
  fill(node: Node, from: number, changes: Upcoming): void {
    if (changes.mayChange === undefined) return;
    if (this.#node !== node) this.#next = 0;
    this.#node = node;
    // Of the last child, it is not known here where it ends.
    for (let i = Math.max(from, this.#next); i + 1 < node.count && this.#running < maxAhead; i++) {
      this.#next = i + 1;
      if (!changes.mayChange(node.key(i), node.key(i + 1))) continue;
      if (this.#source.glanceChild(node, i) === undefined && !this.#load(node, i)) return;
    }
  }

  /** False if there is no room for it. */
  #load(node: Node, i: number): boolean {
    const { memory } = this.#source;
    const { sizeBytes } = node.child(i);
    if (!memory.beginAhead(sizeBytes)) return false;
    this.#running++;
    const end = (): void => {
      this.#running--;
      memory.endAhead(sizeBytes);
    };
    // The reader of the node gets the error.
    void loadChild(this.#source, node, i).then(end, end);
    return true;
  }
}
