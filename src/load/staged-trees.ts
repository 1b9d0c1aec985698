/**
 * The trees that a load stages: sorted runs of its rows, all rows merged into one tree, and the entries of its unique indexes.
 *
 * The slots in the names of their objects lie ahead of the log, so that the load need not be staged again for each slot that it loses
 * (docs/protocol.md, "Large flushes").
 */
import type { Environment } from '../base/env.ts';
import { randomUuid } from '../base/ids.ts';
import type { Logger } from '../base/logger.ts';
import type { Pacer } from '../base/pacer.ts';
import { stageChanges } from '../batch/make-member.ts';
import type { StagedChanges } from '../batch/make-member.ts';
import type { StagedRuns } from '../format/commit.ts';
import { CachedNode } from '../cache/cached-node.ts';
import type { EntryShape } from '../format/node-entries.ts';
import type { Node } from '../format/node.ts';
import { stagedName, stagedRun } from '../format/object-names.ts';
import type { BlockRef } from '../format/block.ts';
import type { StorageDriver } from '../storage/contract/driver.ts';
import type { BlockReader } from '../tree/block-source.ts';
import { Tree, treeOfNode } from '../tree/tree.ts';
import type { ChangeStream } from '../tree/write.ts';
import { TreeEntries } from '../tree/tree-entries.ts';

/** A staged tree. */
export interface StagedTree extends StagedPart {
  /** Its root, as a commit holds it. */
  readonly node: Node;
}

/** A tree that was staged, perhaps by an earlier process. */
export interface StagedPart {
  readonly tree: Tree;
  readonly staged: StagedRuns;
  readonly node?: Node;
  /** The stored root, if it is one of a load that can be resumed: the last block of the last run. */
  readonly root?: BlockRef;
}

export interface StagingOptions {
  readonly environment: Environment;
  readonly driver: StorageDriver;
  readonly prefix: string;
  readonly blockSizeBytes: number;
  readonly reader: BlockReader;
  readonly pacer: Pacer;
  readonly logger: Logger;
  /** Returns the last slot that this instance knows. */
  readonly tail: () => number;
  /** The most trees that are merged at once: a leaf of each is in memory. */
  readonly maxMerged: number;
}

/** The slots between the tail and the name of a run, at least. */
const minRoom = 64;
/** These slots, as a multiple of the slots that have passed since the load began. */
const roomFactor = 4;
/** Objects deleted by one request. */
const deletedTogether = 500;

/** Stages the trees of one load, and deletes them. */
export class Staging {
  readonly #options: StagingOptions;
  readonly #firstTail: number;
  /** The runs that were begun, whether or not they are stored. */
  readonly #runs = new Set<string>();
  /** Runs that are not deleted, because a record names them. */
  readonly #recorded = new Set<string>();

  constructor(options: StagingOptions) {
    this.#options = options;
    this.#firstTail = options.tail();
  }

  /** Stages a tree of changes that only add entries. */
  async stage(table: string, leaf: EntryShape, changes: ChangeStream, storesRoot = false): Promise<StagedTree> {
    const stored = await stageChanges(table, leaf, changes, this.#options.pacer, {
      ...this.#options,
      newRun: () => {
        const run = this.newRun();
        this.began(run);
        return run;
      },
      storesRoot,
    });
    return this.opened(leaf, stored);
  }

  /** Returns the tree of changes that are staged. */
  opened(leaf: EntryShape, stored: StagedChanges): StagedTree {
    const { node, staged } = stored;
    const root = new CachedNode(node.name, node.kind, node.rows);
    return { ...stored, tree: treeOfNode(root, this.#options.reader.staged(staged.runs, stagedName, leaf)) };
  }

  /** Opens a tree that an earlier process has staged and recorded. */
  open(leaf: EntryShape, runs: readonly string[], root: BlockRef & { readonly level: number }): StagedPart {
    const part = { tree: new Tree(this.#options.reader.staged(runs, stagedName, leaf), root), staged: { runs } };
    this.keep([part]);
    return part;
  }

  /** Keeps trees from being deleted, because a record names them. */
  keep(parts: readonly StagedPart[]): void {
    for (const run of parts.flatMap(({ staged }) => staged.runs)) {
      this.#runs.add(run);
      this.#recorded.add(run);
    }
  }

  /** Lets trees go that were kept, by default all: no record names them, or names them any more. */
  letGo(parts?: readonly StagedPart[]): void {
    if (parts === undefined) this.#recorded.clear();
    else for (const run of parts.flatMap(({ staged }) => staged.runs)) this.#recorded.delete(run);
  }

  /** Returns the name of a run that may be stored next. */
  newRun(): string {
    const tail = this.#options.tail();
    const { environment } = this.#options;
    return stagedRun(tail + minRoom + roomFactor * (tail - this.#firstTail), randomUuid(environment));
  }

  /** Notes that a run is being stored, so that it is deleted unless something names it. */
  began(run: string): void {
    this.#runs.add(run);
  }

  /** Merges staged trees into one, and deletes those that no record names. Rejects with the error that `refused` returns for a key that two of them have. */
  async merge(
    table: string,
    leaf: EntryShape,
    parts: readonly StagedPart[],
    refused: (key: Uint8Array) => Error,
  ): Promise<StagedTree> {
    return this.mergeBy(parts, async (some) => {
      const trees = some.map(({ tree }) => tree);
      return this.stage(table, leaf, await TreeEntries.of(trees, refused));
    });
  }

  /** Merges staged trees into one, as {@link merge} does. `stage`: stages the entries of some of them. */
  async mergeBy(
    parts: readonly StagedPart[],
    stage: (some: readonly StagedPart[]) => Promise<StagedTree>,
  ): Promise<StagedTree> {
    const { maxMerged } = this.#options;
    let left = parts;
    while (left.length > maxMerged) {
      const merged: StagedPart[] = [];
      for (let i = 0; i < left.length; i += maxMerged) {
        const some = left.slice(i, i + maxMerged);
        const [alone] = some;
        merged.push(some.length === 1 && alone !== undefined ? alone : await this.#mergeAll(some, stage));
      }
      left = merged;
    }
    const [first] = left;
    if (left.length === 1 && first?.node !== undefined) return { ...first, node: first.node };
    return this.#mergeAll(left, stage);
  }

  async #mergeAll(
    parts: readonly StagedPart[],
    stage: (some: readonly StagedPart[]) => Promise<StagedTree>,
  ): Promise<StagedTree> {
    const merged = await stage(parts);
    await this.drop(parts);
    return merged;
  }

  /** Stages a tree again, with names that lie further ahead. The old one stays until {@link drop}. */
  async again(
    table: string,
    leaf: EntryShape,
    { tree }: StagedTree,
    refused: (key: Uint8Array) => Error,
  ): Promise<StagedTree> {
    return this.stage(table, leaf, await TreeEntries.of([tree], refused));
  }

  /** Deletes trees that no commit and no record names and never will. What cannot be deleted is left to gc. */
  async drop(trees: readonly StagedPart[]): Promise<void> {
    await this.#delete(trees.flatMap(({ staged }) => [...staged.runs]));
  }

  /** Deletes all trees but some. */
  async dropOthers(kept: readonly StagedTree[] = []): Promise<void> {
    const keep = new Set(kept.flatMap(({ staged }) => staged.runs));
    await this.#delete([...this.#runs].filter((run) => !keep.has(run)));
  }

  async #delete(given: readonly string[]): Promise<void> {
    const { driver, prefix, logger } = this.#options;
    const runs = given.filter((run) => !this.#recorded.has(run));
    for (let i = 0; i < runs.length; i += deletedTogether) {
      const some = runs.slice(i, i + deletedTogether);
      try {
        await driver.delete(some.map((run) => `${prefix}/${stagedName(run)}`));
        for (const run of some) this.#runs.delete(run);
      } catch (cause) {
        logger.debug('Rows that a load staged could not be deleted; gc will delete them', { cause });
      }
    }
  }
}
