/** A tree of a table that grows while commits are merged, or while a part of a migration is made. */
import type { Environment } from '../base/env.ts';
import { defined } from '../base/options.ts';
import type { Pacer } from '../base/pacer.ts';
import type { BlockCache } from '../cache/block-cache.ts';
import type { BlockRef } from '../format/block.ts';
import type { EntryShape, NodeEntries } from '../format/node-entries.ts';
import type { TreePlace } from '../format/object-names.ts';
import type { RegisteredFunction } from '../schema/registered-functions.ts';
import { BlockWriter } from '../tree/block-writer.ts';
import type { Uploads } from '../tree/block-writer.ts';
import { TreeCursor } from '../tree/cursor.ts';
import { Tree } from '../tree/tree.ts';
import { applyChanges } from '../tree/write.ts';
import type { ChangeObserver, ChangeStream, NewRoot, RunObserver, WriteOptions } from '../tree/write.ts';
import type { MergeStats } from './merge-policy.ts';

export interface TableMergeContext {
  readonly environment: Environment;
  readonly cache: BlockCache;
  readonly uploads: Uploads;
  readonly birth: number;
  readonly pacer: Pacer;
  readonly counters: MergeStats;
  readonly blockSizeBytes: number;
  readonly indexBufferBytes: number;
  /** The functions that are registered here. */
  readonly functions: (name: string) => RegisteredFunction | undefined;
}

/** A tree after a merge; a new root is not stored yet. */
export interface MergedTree {
  readonly place: TreePlace;
  readonly writer: BlockWriter;
  readonly root: NewRoot;
  /** The words of all rows, in an index on texts. */
  readonly words?: number | undefined;
}

/** A tree that changes are applied to, perhaps in several rounds. */
export class GrowingTree {
  readonly place: TreePlace;
  readonly writer: BlockWriter;
  readonly #context: TableMergeContext;
  readonly #leaf: EntryShape;
  #tree: Tree;
  root: NewRoot;
  words: number | undefined;

  constructor(context: TableMergeContext, place: TreePlace, leaf: EntryShape, tree: Tree) {
    this.#context = context;
    this.place = place;
    this.#leaf = leaf;
    this.#tree = tree;
    this.writer = new BlockWriter(context.uploads, context.cache, context.environment, place, context.birth);
    this.root = tree.ref === null ? { kind: 'empty' } : { kind: 'stored', ref: tree.ref, level: tree.ref.level };
    this.words = tree.ref?.words;
  }

  /** Applies another round. The root of the round before, if it was new, is stored first: it is the base of this one. */
  async apply(changes: ChangeStream, observe?: ChangeObserver, observeRun?: RunObserver): Promise<void> {
    if (changes.done) return;
    if (this.root.kind === 'new') await this.#storeRoot(this.root.entries);
    const { pacer, counters, blockSizeBytes } = this.#context;
    const options: WriteOptions = {
      sink: this.writer,
      leaf: this.#leaf,
      blockSizeBytes,
      pacer,
      counters,
      ...defined({ observe, observeRun }),
    };
    if (changes.words !== undefined) this.words = (this.words ?? 0) + changes.words;
    this.root = await applyChanges(this.#tree, changes, options);
    if (this.root.kind === 'empty') this.#tree = new Tree(this.#tree.source, null);
    else if (this.root.kind === 'stored') this.#takeStored(this.root.ref, this.root.level);
  }

  /** The tree knows its words: what is built on it goes on counting them. */
  #takeStored(ref: BlockRef, level: number): void {
    this.#tree = new Tree(this.#tree.source, { ...ref, level, ...defined({ words: this.words }) });
  }

  /** Stores the root, and returns the tree. */
  async stored(): Promise<Tree> {
    if (this.root.kind === 'new') {
      await this.#storeRoot(this.root.entries);
      const { ref } = this.#tree;
      if (ref !== null) this.root = { kind: 'stored', ref, level: ref.level };
    }
    return this.#tree;
  }

  async #storeRoot(entries: NodeEntries): Promise<void> {
    const stored = await this.writer.put(entries, 0, entries.count);
    // The next round may read the blocks of this one back, where the cache has not kept them.
    await this.#context.uploads.finish();
    this.#takeStored(stored, entries.shape.level);
  }

  /** Whether all entries are below a key. A new root is stored for that. */
  async isBelow(key: Uint8Array): Promise<boolean> {
    const tree = await this.stored();
    return !(await new TreeCursor(tree, { from: key }).next());
  }

  /** Writes changes that only add entries as a tree of its own, which has the birth and the place of this one, and returns it. */
  async writeApart(changes: ChangeStream): Promise<Tree> {
    const apart = new GrowingTree(this.#context, this.place, this.#leaf, new Tree(this.#tree.source, null));
    await apart.apply(changes);
    const tree = await apart.stored();
    this.writer.written += apart.writer.written;
    return tree;
  }
}
