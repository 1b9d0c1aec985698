/**
 * One step towards an index version of an index on a function that has the entries of all rows, to be stored as one generation: it
 * catches up with what the table has changed since, and then makes some of the entries that are missing. It begins and ends
 * with what Block 0 says, so that any node that has the function in that version can take the next step.
 */
import { compareBytes, keyAfter } from '../base/bytes.ts';
import {
  GrowingIndexVersion,
  growingIndex,
  growingRows,
  keptAdded,
  keptIndexVersion,
  mergeBase,
} from '../merge/merge-table.ts';
import type { MergedIndexVersion, MergedTable, TableMergeContext } from '../merge/merge-table.ts';
import type { Bound } from '../format/stored-bound.ts';
import { isSameIndex, isWhole } from '../view/index-version.ts';
import type { IndexVersion, IndexedFunction } from '../view/index-version.ts';
import { TableState } from '../view/table-state.ts';
import { TreeCursor } from '../tree/cursor.ts';
import type { Tree } from '../tree/tree.ts';
import { ChangeList } from './change-list.ts';
import type { ChunkLimits } from './chunk-work.ts';
import { diffTrees } from './tree-diff.ts';

/** Index versions of one index that are kept at most. */
const maxIndexVersions = 4;

export interface FunctionIndexChunk {
  readonly table: MergedTable;
  /** Rows that were looked at. */
  readonly rows: number;
  readonly indexVersion: MergedIndexVersion;
}

/** Whether this node has an index version to make, or to catch up with its table. */
export function hasFunctionIndexWork(table: TableState, indexed: IndexedFunction): boolean {
  const stored = table.indexVersions.find(({ index }) => isSameIndex(index, indexed.index));
  if (stored !== undefined) return !isWhole(stored);
  // Of no rows it comes to be with the first ones.
  return table.tree.ref !== null && otherIndexVersions(table, indexed) !== undefined;
}

/**
 * The index versions beside one. To make room, the one goes that the table has left behind first; undefined: all of them are
 * in use.
 */
function otherIndexVersions(table: TableState, { index }: IndexedFunction): readonly IndexVersion[] | undefined {
  const others = table.indexVersions.filter((indexVersion) => !isSameIndex(indexVersion.index, index));
  const ofIndex = others.filter((indexVersion) => indexVersion.index.name === index.name);
  if (ofIndex.length < maxIndexVersions) return others;
  const left = ofIndex.filter(({ behindFrom }) => behindFrom !== null);
  if (left.length === 0) return undefined;
  const first = left.reduce((a, b) => ((a.behindFrom as number) <= (b.behindFrom as number) ? a : b));
  return others.filter((indexVersion) => indexVersion !== first);
}

/** Works out the next chunk; undefined if there is nothing to do. */
export async function nextFunctionIndexChunk(
  table: TableState,
  indexed: IndexedFunction,
  limits: ChunkLimits,
  context: TableMergeContext,
): Promise<FunctionIndexChunk | undefined> {
  if (!hasFunctionIndexWork(table, indexed)) return undefined;
  const builder = new IndexVersionBuilder(table, indexed, limits, context);
  await builder.catchUp();
  await builder.build();
  return builder.finish();
}

class IndexVersionBuilder {
  readonly #table: TableState;
  readonly #indexed: IndexedFunction;
  readonly #limits: ChunkLimits;
  readonly #context: TableMergeContext;
  readonly #growing: GrowingIndexVersion;
  readonly #base: Tree;
  readonly #toBase: ChangeList;
  /** The last key whose entry was made; undefined before the first, null once all are. */
  #built: Bound;
  #seen = 0;
  #isCaughtUp = false;

  constructor(table: TableState, indexed: IndexedFunction, limits: ChunkLimits, context: TableMergeContext) {
    const stored = table.indexVersions.find(({ index }) => isSameIndex(index, indexed.index));
    this.#table = table;
    this.#indexed = indexed;
    this.#limits = limits;
    this.#context = context;
    this.#growing = new GrowingIndexVersion(table, indexed, context, stored);
    this.#base = stored?.base ?? table.tree;
    this.#built = stored?.built;
    this.#toBase = new ChangeList(table.shape);
  }

  get #isFull(): boolean {
    const { rows, bytes, isOver } = this.#limits;
    const sizeBytes = this.#growing.changes.sizeBytes + this.#toBase.sizeBytes;
    return this.#seen > 0 && (this.#seen >= rows || sizeBytes >= bytes || isOver());
  }

  async #step(): Promise<void> {
    const { pacer } = this.#context;
    this.#seen++;
    if ((this.#seen & 0x1f) === 0 && pacer.due()) await pacer.pause();
  }

  /** Brings what the table has changed since into the entries that are there. */
  async catchUp(): Promise<void> {
    const built = this.#built;
    const { tree, shape } = this.#table;
    if (built !== undefined) {
      for await (const { key, before, after } of diffTrees(this.#base, tree, shape.layout)) {
        // What lies behind is still to be made.
        if (built !== null && compareBytes(key, built) > 0) break;
        if (this.#isFull) return;
        this.#growing.changes.add(before, after, key);
        this.#toBase.put(key, after);
        await this.#step();
      }
    }
    this.#isCaughtUp = true;
  }

  /** Makes entries that are missing, in the order of the table's keys, as many as there is room for. */
  async build(): Promise<void> {
    if (!this.#isCaughtUp || this.#built === null) return;
    const cursor = new TreeCursor(this.#table.tree, { from: this.#built && keyAfter(this.#built) });
    while (await cursor.next()) {
      const { node } = cursor;
      for (let i = cursor.from; i < cursor.to; i++) {
        if (this.#isFull) return;
        const key = node.key(i);
        this.#growing.changes.add(undefined, { source: node, base: node.rowBase(i) }, key);
        this.#built = key;
        await this.#step();
      }
    }
    this.#built = null;
  }

  async finish(): Promise<FunctionIndexChunk> {
    const { shape } = this.#table;
    const context = this.#context;
    const { changes, tree: entries } = this.#growing;
    const rows = growingRows(this.#table, context);
    if (changes.count > 0) await entries.apply(await changes.take(context.pacer));
    context.counters.blocksWritten += entries.writer.written;
    const caughtUp = this.#growing.merged(rows);
    // The base of a part of the changes is a tree of its own, until there are no others.
    const indexVersion: MergedIndexVersion = this.#isCaughtUp
      ? { ...caughtUp, built: this.#built }
      : { ...caughtUp, built: this.#built, base: await this.#partOfBase(), behindFrom: context.birth };
    const indexes = shape.indexes.map(({ name }) => [name, growingIndex(this.#table, name, context)] as const);
    const others = otherIndexVersions(this.#table, this.#indexed) ?? [];
    const indexVersions = [...others.map((other) => keptIndexVersion(this.#table, other, context)), indexVersion];
    const added = keptAdded(this.#table, context);
    const version = { shape, tree: rows, indexes: new Map(indexes), indexVersions, added };
    return { table: { name: shape.name, versions: [version] }, rows: this.#seen, indexVersion };
  }

  #partOfBase(): ReturnType<typeof mergeBase> {
    const base = new TableState(this.#table.shape, this.#base, new Map());
    return mergeBase(base, this.#context, this.#toBase.sorted());
  }
}
