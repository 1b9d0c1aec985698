/**
 * Rebuilds indexes from the rows of their tables. Nothing is read from the old trees, so any damage in them does not matter. But
 * every row must be readable, or the new index would hide that some are lost.
 */
import { ByteWriter, compareBytes } from '../../base/bytes.ts';
import { CorruptionError, isUnreadable, invariant } from '../../base/errors.ts';
import type { Pacer } from '../../base/pacer.ts';
import { prepareTexts } from '../../schema/text-indexes.ts';
import { areFull, GrowingIndex, makeRoom } from '../../merge/growing-index.ts';
import { IndexChanges } from '../../merge/index-changes.ts';
import {
  GrowingIndexVersion,
  growingEntries,
  growingIndex,
  growingRows,
  keptAdded,
  keptIndexVersion,
} from '../../merge/merge-table.ts';
import type { GrowingTree, TableMergeContext } from '../../merge/growing-tree.ts';
import type { MergedAddedIndex, MergedTable } from '../../merge/merge-table.ts';
import type { Block0 } from '../../format/block0.ts';
import type { Node } from '../../format/node.ts';
import type { StoredIndex } from '../../format/stored-schema.ts';
import { BlockCache } from '../../cache/block-cache.ts';
import type { StorageDriver } from '../../storage/contract/driver.ts';
import { writeIndexEntries } from '../../schema/index-entries.ts';
import { isOfElements } from '../../schema/table-shape.ts';
import type { AddedIndex, TableIndex } from '../../schema/table-shape.ts';
import { FunctionEntries, indexedFunctions } from '../../view/index-version.ts';
import type { IndexedFunction } from '../../view/index-version.ts';
import type { TableState } from '../../view/table-state.ts';
import { View, ViewContext } from '../../view/view.ts';
import { StoredBlocks } from '../../tree/stored-blocks.ts';
import { readAll } from '../../tree/cursor.ts';
import { Tree } from '../../tree/tree.ts';

/** An index that was rebuilt, as `db.repair()` reports it. */
export interface RepairedIndex {
  /** Name of the table. */
  readonly table: string;
  /** Name of the index. */
  readonly index: string;
  /**
   * Number of entries that it has now: the number of rows of the table, or of rows for which its condition holds. It is 0 for an
   * index that is being added, and for one on a function that is not registered here: their entries are made in the background.
   */
  readonly entries: number;
}

/** Thrown when not all rows of a table can be read. */
export class RowsUnreadable extends Error {
  readonly table: string;
  /** The generation that was read. */
  readonly generation: number;

  constructor(table: string, generation: number, cause: Error) {
    super(cause.message, { cause });
    this.table = table;
    this.generation = generation;
  }
}

export interface RebuildOptions {
  readonly driver: StorageDriver;
  readonly prefix: string;
  /** Memory for blocks, in bytes. */
  readonly cacheBytes: number;
  /** Names of the indexes to rebuild, by table. */
  readonly indexes: ReadonlyMap<string, readonly string[]>;
  /** The functions that are registered here. */
  readonly functions: TableMergeContext['functions'];
  readonly signal: AbortSignal | undefined;
}

/** The indexes of one table to rebuild. */
interface WantedIndexes {
  readonly table: TableState;
  readonly indexes: readonly TableIndex[];
  readonly functions: readonly IndexedFunction[];
  /**
   * Names of indexes on functions that are not registered here, and of indexes that are being added. Their entries are dropped, and
   * made in the background by the instances that make them anyway.
   */
  readonly given: ReadonlySet<string>;
}

export class IndexRebuild {
  readonly #options: RebuildOptions;
  readonly #cache: BlockCache;
  readonly #view: View;
  readonly repaired: RepairedIndex[] = [];

  constructor(options: RebuildOptions, block0: Block0) {
    const { driver, prefix, cacheBytes } = options;
    this.#options = options;
    this.#cache = new BlockCache(cacheBytes);
    this.#view = View.ofBlock0(new ViewContext(new StoredBlocks(driver, prefix, this.#cache)), block0);
  }

  /** Reads all rows of the tables, and writes nothing. Throws {@link RowsUnreadable}. */
  async survey(pacer: Pacer): Promise<void> {
    const scratch = new ByteWriter();
    const sink = { writer: scratch, end: (): void => undefined };
    for (const wanted of this.#wanted()) {
      const { table, indexes, functions } = wanted;
      await prepareTexts(indexes);
      const entries = new Map<string, number>();
      const ofElements = functions
        .filter(({ index }) => isOfElements(index))
        .map((indexed) => ({ index: indexed.index, made: new FunctionEntries(table.shape, indexed) }));
      const onRow = (leaf: Node, i: number, key: Uint8Array): void => {
        for (const index of indexes) {
          scratch.length = 0;
          const made = writeIndexEntries(sink, index, leaf, leaf.rowBase(i), key);
          countEntries(entries, index, made);
        }
        for (const { index, made } of ofElements) {
          scratch.length = 0;
          countEntries(entries, index, made.write(sink, leaf, leaf.rowBase(i), key, false));
        }
      };
      const rows = await this.#scan(table, pacer, onRow);
      this.#note(wanted, rows, entries);
    }
  }

  /** Writes the new trees of the indexes; the trees of the rows stay as they are. Throws {@link RowsUnreadable}. */
  async build(given: TableMergeContext): Promise<readonly MergedTable[]> {
    const merged: MergedTable[] = [];
    for (const wanted of this.#wanted()) {
      const { table, indexes, functions } = wanted;
      await prepareTexts(indexes);
      const context = { ...given, cache: this.#cache };
      const indexVersions = functions.map((indexed) => new GrowingIndexVersion(table, indexed, context, undefined));
      const onFields = indexes.map((index): GrowingIndex => {
        const empty = new Tree((table.indexes.get(index.name) as Tree).source, null);
        const changes = new IndexChanges(table.shape, index, undefined, null);
        return new GrowingIndex(changes, growingEntries(table, index.name, empty, context), context);
      });
      const growing: GrowingIndex[] = [...onFields, ...indexVersions];
      const entries = new Map<string, number>();
      const onRow = (leaf: Node, i: number, key: Uint8Array): void => {
        const rowRef = { source: leaf, base: leaf.rowBase(i) };
        for (const { changes } of growing) {
          const { count } = changes;
          changes.add(undefined, rowRef, key);
          countEntries(entries, changes.index, changes.count - count);
        }
      };
      const onLeaf = async (): Promise<void> => {
        if (areFull(growing, context)) await makeRoom(growing, context);
      };
      const rows = await this.#scan(table, context.pacer, onRow, onLeaf);
      for (const index of growing) await index.finish();
      merged.push(withIndexes(wanted, growing, indexVersions, context));
      this.#note(wanted, rows, entries);
    }
    return merged;
  }

  #note({ table, indexes, functions, given }: WantedIndexes, rows: number, entries: ReadonlyMap<string, number>): void {
    const note = (index: string, count: number): void => {
      this.repaired.push({ table: table.shape.name, index, entries: count });
    };
    for (const { name } of indexes) note(name, entries.get(name) ?? 0);
    for (const { index } of functions) note(index.name, isOfElements(index) ? (entries.get(index.name) ?? 0) : rows);
    for (const name of given) note(name, 0);
  }

  #wanted(): WantedIndexes[] {
    return [...this.#options.indexes].map(([name, wanted]): WantedIndexes => {
      const table = this.#view.table(name);
      invariant(table !== undefined, `Table ${name} has an index and is not in the view`);
      const isWanted = (index: { readonly name: string }): boolean => wanted.includes(index.name);
      const functions = indexedFunctions(table.shape, this.#options.functions).filter(({ index }) => isWanted(index));
      const added = table.added.map(({ stored }) => stored).filter(isWanted);
      const given = new Set([...table.shape.functionIndexes.filter(isWanted), ...added].map((index) => index.name));
      for (const { index } of functions) given.delete(index.name);
      return { table, indexes: table.shape.indexes.filter(isWanted), functions, given };
    });
  }

  /** Calls `onRow` for every row, in order, and returns how many there are. */
  async #scan(
    table: TableState,
    pacer: Pacer,
    onRow: (leaf: Node, i: number, key: Uint8Array) => void,
    onLeaf: () => Promise<void> = async () => {},
  ): Promise<number> {
    const cursor = readAll(table.tree);
    let rows = 0;
    let last: Uint8Array | undefined;
    try {
      while (await cursor.next()) {
        this.#options.signal?.throwIfAborted();
        const { node, from, to } = cursor;
        for (let i = from; i < to; i++) {
          const key = node.key(i);
          if (last !== undefined && compareBytes(last, key) >= 0) {
            throw new CorruptionError(node.name, `Row ${i} is not above the one before it`);
          }
          last = key;
          onRow(node, i, key);
        }
        // If a lookup finds the first and the last row of a run, it finds all rows between them.
        for (const i of [from, to - 1]) await checkFindable(table.tree, node, i);
        rows += to - from;
        await onLeaf();
        if (pacer.due()) await pacer.pause();
      }
    } catch (error) {
      if (!isUnreadable(error)) throw error;
      throw new RowsUnreadable(table.shape.name, this.#view.block0.generation, error);
    }
    return rows;
  }
}

async function checkFindable(tree: Tree, leaf: Node, i: number): Promise<void> {
  const found = await tree.lookup(leaf.key(i));
  if (found === undefined) throw new CorruptionError(leaf.name, `Row ${i} is not where the nodes above say`);
}

/** A table with some of its indexes replaced. A replaced index on a function keeps no index version but the new one. */
function withIndexes(
  { table, given }: WantedIndexes,
  growing: readonly GrowingIndex[],
  made: readonly GrowingIndexVersion[],
  context: TableMergeContext,
): MergedTable {
  const { shape } = table;
  const indexes = shape.indexes.map((index): [string, GrowingTree] => {
    const grown = growing.find(({ changes }) => changes.index === index)?.tree;
    return [index.name, grown ?? growingIndex(table, index.name, context)];
  });
  for (const { tree: grown } of growing) context.counters.blocksWritten += grown.writer.written;
  const rows = growingRows(table, context);
  const gone = new Set([...given, ...made.map(({ changes }) => changes.index.name)]);
  const kept = table.indexVersions.filter(({ index }) => !gone.has(index.name));
  const indexVersions = [
    ...kept.map((indexVersion) => keptIndexVersion(table, indexVersion, context)),
    ...made.map((indexVersion) => indexVersion.merged(rows)),
  ];
  const isGone = ({ stored }: { readonly stored: StoredIndex }): boolean => given.has(stored.name);
  const added = [
    ...keptAdded(table, context).filter((index) => !isGone(index)),
    ...table.added.filter(isGone).map((index) => restarted(table, index, context)),
  ];
  return { name: shape.name, versions: [{ shape, tree: rows, indexes: new Map(indexes), indexVersions, added }] };
}

/** An index that is being added, back at the start: the instance whose turn it is makes its entries. */
function restarted(table: TableState, { stored, tree }: AddedIndex, context: TableMergeContext): MergedAddedIndex {
  const empty = growingEntries(table, stored.name, new Tree(tree.source, null), context);
  // A problem that was found with the old entries does not count any more.
  return { stored, built: undefined, rows: 0, birth: context.birth, problem: undefined, tree: empty };
}

/** Counts entries that the rebuilt index gets. */
function countEntries(entries: Map<string, number>, { name }: { readonly name: string }, made: number): void {
  if (made > 0) entries.set(name, (entries.get(name) ?? 0) + made);
}
