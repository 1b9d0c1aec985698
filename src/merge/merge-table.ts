/**
 * The part of a merge that is about one table: its rows, and the entries of its indexes that follow from them; while a
 * migration is under way, the same for the next version, and the base that its rows go with.
 */
import { invariant } from '../base/errors.ts';
import type { StoredMigration } from '../format/stored-table.ts';
import type { Block0 } from '../format/block0.ts';
import { NextVersionRows } from '../view/next-version-rows.ts';
import { entryShape } from '../schema/text-postings.ts';
import { prepareTexts } from '../schema/text-indexes.ts';
import type { AddedIndex, TableIndex, TableShape } from '../schema/table-shape.ts';
import { indexedFunctions, isSameIndex, isWhole, FunctionEntries } from '../view/index-version.ts';
import type { IndexVersion, IndexedFunction } from '../view/index-version.ts';
import type { TableState } from '../view/table-state.ts';
import type { NextVersion, View } from '../view/view.ts';
import { isSameTree } from '../tree/tree.ts';
import type { RowRef, Tree } from '../tree/tree.ts';
import type { ChangeStream, RowRun } from '../tree/write.ts';
import { areFull, GrowingIndex, makeRoom } from './growing-index.ts';
import { GrowingTree } from './growing-tree.ts';
import type { MergedTree, TableMergeContext } from './growing-tree.ts';
import { IndexChanges, LayerChanges } from './index-changes.ts';

/** Writes new trees of some tables, with the writers of the context. */
export type TreeBuild = (block0: Block0, context: TableMergeContext) => Promise<readonly MergedTable[]>;

/** A version of a table with new trees. */
export interface MergedVersion {
  readonly shape: TableShape;
  readonly tree: MergedTree;
  readonly indexes: ReadonlyMap<string, MergedTree>;
  /** The index versions that stay, and new ones. */
  readonly indexVersions: readonly MergedIndexVersion[];
  /** Indexes that are being added, those that have just begun included. */
  readonly added: readonly MergedAddedIndex[];
}

/** A version of a table whose trees may grow on. */
export interface GrownVersion extends MergedVersion {
  readonly tree: GrowingTree;
  readonly indexes: ReadonlyMap<string, GrowingTree>;
}

/** An index that is being added, after a merge. */
export interface MergedAddedIndex extends Pick<AddedIndex, 'stored' | 'built' | 'rows' | 'birth' | 'problem'> {
  readonly tree: MergedTree;
}

/** An index version after a merge. */
export interface MergedIndexVersion extends Pick<IndexVersion, 'index' | 'built' | 'failed' | 'behindFrom'> {
  readonly tree: MergedTree;
  readonly base: MergedTree;
}

/** The parts of a table that a merge or a migration changes. Parts that are absent stay as they are. */
export interface MergedTable {
  readonly name: string;
  readonly versions: readonly MergedVersion[];
  /** Whether it was dropped: whatever Block 0 has of the name goes. Without versions, the table is not there afterwards. */
  readonly anew?: true;
  /** Versions that go. */
  readonly dropped?: readonly number[];
  /** The base of its migration. */
  readonly base?: MergedTree;
  /** Makes its migration, without the base, from the one that is stored then; undefined: the migration ends. */
  readonly migration?: (present: StoredMigration | undefined) => StoredMigration | undefined;
}

/** Merges the changes of pending commits to a table into its trees. */
export async function mergeTable(view: View, name: string, context: TableMergeContext): Promise<MergedTable> {
  const table = view.table(name);
  invariant(table !== undefined, `Table ${name} was changed by a commit but is not in the view`);
  const active = await mergeVersion(table, context);
  const nextVersion = view.nextVersion(name);
  const changed = await NextVersionRows.in(view, name);
  if (nextVersion === undefined || changed === undefined) return { name, versions: [active] };
  const { rows, base } = changed;
  const [from, to] = [table.shape.version, rows.shape.version];
  const nothing = { base: null, built: '', users: [], problems: [] };
  const started: StoredMigration = { table: name, from, to, phase: 'beside', ...nothing, birth: context.birth };
  return {
    name,
    versions: [active, await mergeVersion(rows, context)],
    // Where the same was done to the same, they go on sharing all blocks.
    base: isInStep(view, nextVersion, table) ? active.tree : await mergeBase(base, context),
    migration: (present) => present ?? started,
  };
}

/** Whether the base goes the way of the active version: it is the same now, and every change is of both versions. */
function isInStep(view: View, { base }: NextVersion, { shape, tree }: TableState): boolean {
  return isSameTree(base.tree, tree) && view.changesOf(shape.name).every(({ shadow }) => shadow !== undefined);
}

/** The rows of a table, or of a base, to be changed or kept. */
export function growingRows(
  { shape, tree }: Pick<TableState, 'shape' | 'tree'>,
  context: TableMergeContext,
): GrowingTree {
  return new GrowingTree(context, { table: shape.name }, shape.leafShape, tree);
}

/** The entries of an index of a table, to be changed or kept. */
export function growingEntries(
  { shape, added }: TableState,
  index: string,
  tree: Tree,
  context: TableMergeContext,
): GrowingTree {
  const isOf = ({ name }: TableIndex): boolean => name === index;
  const known = shape.indexes.find(isOf) ?? added.find((each) => isOf(each.index))?.index;
  return new GrowingTree(context, { table: shape.name, index }, entryShape(known), tree);
}

/** Begins to change the entries of an index on fields. */
export function growingIndex(table: TableState, index: string, context: TableMergeContext): GrowingTree {
  return growingEntries(table, index, table.indexes.get(index) as Tree, context);
}

/** Merges a base, which has no indexes. */
export async function mergeBase(
  base: TableState,
  context: TableMergeContext,
  changes?: ChangeStream,
): Promise<MergedTree> {
  const tree = growingRows(base, context);
  await tree.apply(changes ?? (await LayerChanges.of(base)));
  context.counters.blocksWritten += tree.writer.written;
  return tree;
}

/** Returns the indexes on fields whose entries a merge of a state makes: those of its definition, and those that are being added. */
export function indexesToMerge({ shape, added }: TableState): TableIndex[] {
  return [...shape.indexes, ...added.map(({ index }) => index)];
}

/** Merges the layers of a state into its trees, or other changes in their place. */
export async function mergeVersion(
  table: TableState,
  context: TableMergeContext,
  given?: ChangeStream,
): Promise<GrownVersion> {
  const { shape } = table;
  await prepareTexts(indexesToMerge(table));
  const rows = growingRows(table, context);
  const indexes = shape.indexes.map((index) => {
    const changes = new IndexChanges(shape, index, undefined, null);
    return new GrowingIndex(changes, growingIndex(table, index.name, context), context);
  });
  const indexVersions = growingIndexVersions(table, context);
  // Every node that merges does it: Block 0 knows these indexes, not only the nodes that define them.
  const added = table.added.map((index) => {
    const changes = new IndexChanges(shape, index.index, undefined, index.built);
    return { index, growing: new GrowingIndex(changes, growingAdded(table, index, context), context) };
  });
  const growing = [...indexes, ...indexVersions, ...added.map((index) => index.growing)];
  const changes = new IndexedChanges(given ?? (await LayerChanges.of(table)), growing, context);
  await rows.apply(
    changes,
    (old, change) => changes.observe(old, change),
    (run) => changes.observeRun(run),
  );
  for (const index of growing) await index.finish();
  for (const tree of [rows, ...growing.map((index) => index.tree)])
    context.counters.blocksWritten += tree.writer.written;
  return {
    shape,
    tree: rows,
    indexes: new Map(indexes.map(({ changes: { index }, tree }) => [index.name, tree])),
    indexVersions: [
      ...leftBehind(table, rows, indexVersions, context),
      ...indexVersions.map((indexVersion) => indexVersion.merged(rows)),
    ],
    added: added.map((each) => mergedAdded(each.index, each.growing.tree)),
  };
}

/** The entries of an index that is being added, to be changed or kept. */
export function growingAdded(table: TableState, { index, tree }: AddedIndex, context: TableMergeContext): GrowingTree {
  return growingEntries(table, index.name, tree, context);
}

function mergedAdded({ stored, built, rows, birth, problem }: AddedIndex, tree: MergedTree): MergedAddedIndex {
  return { stored, built, rows, birth, problem, tree };
}

/** The indexes that are being added to a table, as they are. */
export function keptAdded(table: TableState, context: TableMergeContext): MergedAddedIndex[] {
  return table.added.map((index) => mergedAdded(index, growingAdded(table, index, context)));
}

/** The number of generations that an index version may be behind its table before it is given up. */
const maxGenerationsBehind = 256;

/** The index versions that grow with their table: this node has the function in that version, and they are of all its rows. */
function growingIndexVersions(table: TableState, context: TableMergeContext): GrowingIndexVersion[] {
  return indexedFunctions(table.shape, context.functions).flatMap((indexed) => {
    const stored = table.indexVersions.find(({ index }) => isSameIndex(index, indexed.index));
    // Of no rows, it is there without having been made.
    const isThere = stored === undefined ? table.tree.ref === null : isWhole(stored);
    return isThere ? [new GrowingIndexVersion(table, indexed, context, stored)] : [];
  });
}

/** Index versions that this node cannot maintain stay as they are: an instance with the function finds the later changes by the base. */
function leftBehind(
  table: TableState,
  rows: GrowingTree,
  growing: readonly GrowingIndexVersion[],
  context: TableMergeContext,
): MergedIndexVersion[] {
  const { root } = rows;
  const isMoved =
    root.kind === 'stored' ? root.ref.id !== table.tree.ref?.id : root.kind !== 'empty' || table.tree.ref !== null;
  return table.indexVersions.flatMap((indexVersion) => {
    if (growing.some(({ changes }) => isSameIndex(changes.index, indexVersion.index))) return [];
    const behindFrom = isMoved ? (indexVersion.behindFrom ?? context.birth) : indexVersion.behindFrom;
    if (behindFrom !== null && context.birth - behindFrom >= maxGenerationsBehind) return [];
    return [{ ...keptIndexVersion(table, indexVersion, context), behindFrom }];
  });
}

/** An index version as it is. */
export function keptIndexVersion(
  table: TableState,
  indexVersion: IndexVersion,
  context: TableMergeContext,
): MergedIndexVersion {
  const { index, built, failed, behindFrom, tree, base } = indexVersion;
  return {
    index,
    built,
    failed,
    behindFrom,
    tree: growingEntries(table, index.name, tree, context),
    base: growingRows({ shape: table.shape, tree: base }, context),
  };
}

/** An index version that changes with rows of its table. */
export class GrowingIndexVersion extends GrowingIndex {
  readonly #entries: FunctionEntries;
  readonly #failedBefore: number;

  /** `stored`: the tree that it begins with; undefined: an empty one. */
  constructor(
    table: TableState,
    indexed: IndexedFunction,
    context: TableMergeContext,
    stored: IndexVersion | undefined,
  ) {
    const { shape, blanks } = table;
    const { index } = indexed;
    const entries = new FunctionEntries(shape, indexed);
    const changes = new IndexChanges(shape, index, (...entry) => entries.write(...entry), null);
    const blank = blanks.get(index.name) as Tree;
    super(changes, growingEntries(table, index.name, stored?.tree ?? blank, context), context);
    this.#entries = entries;
    this.#failedBefore = stored?.failed ?? 0;
  }

  /** Rows on which the function fails. */
  get failed(): number {
    // Less than none only where the function is not pure; then it is as good as any number that is not 0.
    return Math.abs(this.#failedBefore + this.#entries.failed);
  }

  /** The index version with the entries of all rows of a tree. */
  merged(base: MergedTree): MergedIndexVersion {
    const { changes, tree, failed } = this;
    return { index: changes.index, tree, base, built: null, failed, behindFrom: null };
  }
}

/** The changes of the rows, which takes changes of indexes out of memory whenever they are too many. */
class IndexedChanges implements ChangeStream {
  readonly #rows: ChangeStream;
  readonly #indexes: readonly GrowingIndex[];
  readonly #context: TableMergeContext;

  constructor(rows: ChangeStream, indexes: readonly GrowingIndex[], context: TableMergeContext) {
    this.#rows = rows;
    this.#indexes = indexes;
    this.#context = context;
  }

  get done(): boolean {
    return this.#rows.done;
  }

  get key(): Uint8Array {
    return this.#rows.key;
  }

  get keyStart(): number {
    return this.#rows.keyStart;
  }

  get keyEnd(): number {
    return this.#rows.keyEnd;
  }

  get remove(): boolean {
    return this.#rows.remove;
  }

  get source(): ChangeStream['source'] {
    return this.#rows.source;
  }

  get base(): number {
    return this.#rows.base;
  }

  observe(old: RowRef | undefined, change: ChangeStream): void {
    if (this.#indexes.length === 0) return;
    const primaryKey = change.key.subarray(change.keyStart, change.keyEnd);
    const next =
      change.remove || change.source === undefined ? undefined : { source: change.source, base: change.base };
    for (const { changes } of this.#indexes) changes.add(old, next, primaryKey);
  }

  observeRun(run: RowRun): void {
    for (const { changes } of this.#indexes) changes.addRun(run);
  }

  run(limit: Uint8Array | undefined): RowRun | undefined {
    return this.#rows.run?.(limit);
  }

  mayChange(from: Uint8Array, to: Uint8Array): boolean | undefined {
    return this.#rows.mayChange?.(from, to);
  }

  advance(): void | Promise<void> {
    return this.#isFull ? this.#makeRoom().then(() => this.#rows.advance()) : this.#rows.advance();
  }

  advanceRun(count: number): void | Promise<void> {
    return this.#isFull ? this.#makeRoom().then(() => this.#rows.advanceRun?.(count)) : this.#rows.advanceRun?.(count);
  }

  get #isFull(): boolean {
    return areFull(this.#indexes, this.#context);
  }

  #makeRoom(): Promise<void> {
    return makeRoom(this.#indexes, this.#context);
  }
}
