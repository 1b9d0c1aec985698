/**
 * An index that grows with its table. Changes are collected in any order, and applied in the order of their keys. If they take more memory
 * than there is, those so far are applied where they all come behind the entries of the index. Otherwise that would write most of the
 * index again each time. So they are written as a sorted run, and in the end all runs are merged into the index at once.
 *
 * A run is a tree of the same place and birth, which nothing will ever refer to: gc deletes it like the blocks of a lost merge.
 */
import type { Tree } from '../tree/tree.ts';
import { TreeEntries } from '../tree/tree-entries.ts';
import type { GrowingTree, TableMergeContext } from './growing-tree.ts';
import type { IndexChanges } from './index-changes.ts';
import { changedTwice } from './sorted-keys.ts';

/** As many runs are merged into one run. */
const maxRuns = 64;
/** So many are merged at once even where a leaf of each takes more memory than there is for changes. */
const minRuns = 8;

export class GrowingIndex {
  readonly changes: IndexChanges;
  readonly tree: GrowingTree;
  readonly #context: TableMergeContext;
  #runs: Tree[] = [];

  constructor(changes: IndexChanges, tree: GrowingTree, context: TableMergeContext) {
    this.changes = changes;
    this.tree = tree;
    this.#context = context;
  }

  /** Takes the changes so far out of memory. */
  async makeRoom(): Promise<void> {
    const { changes, tree } = this;
    const { pacer, uploads } = this.#context;
    if (changes.count === 0) return;
    const { onlyAdd } = changes;
    const sorted = await changes.take(pacer);
    const first = sorted.key.slice(sorted.keyStart, sorted.keyEnd);
    // An entry changes once in a merge, so that the order of the rounds does not matter.
    if (!onlyAdd || (await tree.isBelow(first))) await tree.apply(sorted);
    else await this.#addRun(await tree.writeApart(sorted));
    // What was written may be read again, where the cache has not kept it.
    await uploads.finish();
  }

  async #addRun(run: Tree): Promise<void> {
    this.#runs.push(run);
    const { indexBufferBytes, blockSizeBytes } = this.#context;
    const most = Math.min(maxRuns, Math.max(minRuns, Math.floor(indexBufferBytes / blockSizeBytes)));
    if (this.#runs.length >= most) this.#runs = [await this.tree.writeApart(await this.#entriesOfRuns())];
  }

  /** Applies all changes that are not applied yet. */
  async finish(): Promise<void> {
    if (this.#runs.length === 0) {
      if (this.changes.count > 0) await this.tree.apply(await this.changes.take(this.#context.pacer));
      return;
    }
    await this.makeRoom();
    await this.tree.apply(await this.#entriesOfRuns());
    this.#runs = [];
  }

  async #entriesOfRuns(): Promise<TreeEntries> {
    const { table, index } = this.tree.place;
    const entries = await TreeEntries.of(this.#runs, () => changedTwice(`indexes/${table}/${index}`));
    if (this.changes.index.text !== undefined) {
      entries.words = this.#runs.reduce((sum, { ref }) => sum + (ref?.words ?? 0), 0);
    }
    return entries;
  }
}

/** Whether the changes of indexes take more memory than there is for them. */
export function areFull(indexes: readonly GrowingIndex[], { indexBufferBytes }: TableMergeContext): boolean {
  let bytes = 0;
  for (const { changes } of indexes) bytes += changes.sizeBytes;
  return bytes > indexBufferBytes;
}

/** Takes the changes of the indexes that have many out of memory. */
export async function makeRoom(
  indexes: readonly GrowingIndex[],
  { indexBufferBytes }: TableMergeContext,
): Promise<void> {
  const fewBytes = indexBufferBytes / (2 * indexes.length);
  for (const index of indexes) if (index.changes.sizeBytes > fewBytes) await index.makeRoom();
}
