/**
 * One step of adding indexes to a table, which is stored as one generation: it begins missing indexes and makes entries for
 * some rows that have none yet. An index whose entries are all made becomes part of the table's schema. The step reads and
 * writes only the state in Block 0, so any node can take the next step.
 */
import {
  growingAdded,
  growingEntries,
  growingIndex,
  growingRows,
  keptAdded,
  keptIndexVersion,
} from '../merge/merge-table.ts';
import type { GrowingTree, MergedTree, TableMergeContext } from '../merge/growing-tree.ts';
import type { MergedAddedIndex, MergedTable, MergedVersion } from '../merge/merge-table.ts';
import { compareBytes, keyAfter } from '../base/bytes.ts';
import { prepareTexts } from '../schema/text-indexes.ts';
import { IndexChanges } from '../merge/index-changes.ts';
import type { Bound } from '../format/stored-table.ts';
import type { StoredSchema } from '../format/stored-schema.ts';
import { maxIndexes } from '../format/stored-schema.ts';
import { isComplete, shapeOf, tableIndex } from '../schema/table-shape.ts';
import { isSameShape, lackedIndexes } from '../schema/same-shape.ts';
import type { MissingIndexes } from '../schema/same-shape.ts';
import type { AddedIndex, TableShape } from '../schema/table-shape.ts';
import type { TableState } from '../view/table-state.ts';
import { TreeCursor } from '../tree/cursor.ts';
import { Tree } from '../tree/tree.ts';
import type { ChunkLimits } from './chunk-work.ts';

export interface AddedChunk {
  readonly table: MergedTable;
  /** Rows read. */
  readonly rows: number;
  /** Names of the indexes that begin with this chunk. */
  readonly begun: readonly string[];
  /** Names of the indexes that become part of the table's schema. */
  readonly ready: readonly string[];
}

const nothingMissing: MissingIndexes = { indexes: [], functionIndexes: [] };

/**
 * Returns the indexes that a definition of the same version has and a table does not. An index whose name another index of the
 * table has is left out.
 */
export function missingIndexes({ shape, added }: TableState, defined: TableShape | undefined): MissingIndexes {
  if (defined === undefined || defined === shape || defined.version !== shape.version || !isSameShape(shape, defined)) {
    return nothingMissing;
  }
  const missing = lackedIndexes(shape, defined);
  if (missing === undefined) return nothingMissing;
  const names = new Set(added.map(({ stored }) => stored.name));
  const isNew = ({ name }: { readonly name: string }): boolean => !names.has(name);
  const indexes = missing.indexes.filter(isNew);
  const functionIndexes = missing.functionIndexes.filter(isNew);
  const present = shape.indexes.length + shape.functionIndexes.length + added.length;
  const count = present + indexes.length + functionIndexes.length;
  return count > maxIndexes ? nothingMissing : { indexes, functionIndexes };
}

/** Whether there is work: entries to make, or indexes to begin. */
export function hasAddedWork(table: TableState, defined: TableShape | undefined): boolean {
  if (table.added.some(isUnderWay)) return true;
  const { indexes, functionIndexes } = missingIndexes(table, defined);
  return indexes.length + functionIndexes.length > 0;
}

/** Whether some entries of an index are still to be made. */
function isUnderWay({ problem, built }: AddedIndex): boolean {
  return problem === undefined && built !== null;
}

/** Returns a unique index whose entries are all made, and whose rows must still be checked for duplicates. */
export function uniqueToCheck({ added }: TableState): AddedIndex | undefined {
  return added.find((one) => one.index.unique && isComplete(one));
}

/** Computes the next chunk; undefined if there is nothing to do. `emptyIndex` returns the tree of an index without entries. */
export async function nextAddedChunk(
  table: TableState,
  defined: TableShape | undefined,
  limits: ChunkLimits,
  context: TableMergeContext,
  emptyIndex: (index: string) => Tree,
): Promise<AddedChunk | undefined> {
  if (!hasAddedWork(table, defined)) return undefined;
  const builder = new AddedBuilder(table, missingIndexes(table, defined), limits, context, emptyIndex);
  await builder.build();
  return builder.finish();
}

/** An index in the state that the chunk brings it to. */
interface Growing {
  readonly added: AddedIndex;
  readonly changes: IndexChanges;
  readonly tree: GrowingTree;
}

class AddedBuilder {
  readonly #table: TableState;
  readonly #missing: MissingIndexes;
  readonly #limits: ChunkLimits;
  readonly #context: TableMergeContext;
  readonly #all: readonly Growing[];
  /** The indexes with the fewest entries made. They continue together, so that each row is read once. */
  readonly #behind: readonly Growing[];
  #built: Bound;
  #seen = 0;

  constructor(
    table: TableState,
    missing: MissingIndexes,
    limits: ChunkLimits,
    context: TableMergeContext,
    emptyIndex: (index: string) => Tree,
  ) {
    this.#table = table;
    this.#missing = missing;
    this.#limits = limits;
    this.#context = context;
    const { shape } = table;
    const begun = missing.indexes.map((stored): AddedIndex => {
      const index = tableIndex(shape.layout, shape.keyFields, stored);
      const tree = emptyIndex(stored.name);
      return { stored, index, tree, built: undefined, rows: 0, birth: context.birth, problem: undefined };
    });
    this.#all = [...table.added, ...begun].map((added) => ({
      added,
      changes: new IndexChanges(shape, added.index, undefined, null),
      tree: growingAdded(table, added, context),
    }));
    const underWay = this.#all.filter(({ added }) => isUnderWay(added));
    this.#built = leastOf(underWay.map(({ added }) => added.built));
    this.#behind = underWay.filter(({ added }) => compareBounds(added.built, this.#built) === 0);
  }

  get #isFull(): boolean {
    const { rows, bytes, isOver } = this.#limits;
    const sizeBytes = this.#behind.reduce((sum, { changes }) => sum + changes.sizeBytes, 0);
    return this.#seen > 0 && (this.#seen >= rows || sizeBytes >= bytes || isOver());
  }

  /** Makes missing entries, in the order of the table's keys, until the chunk is full. */
  async build(): Promise<void> {
    await prepareTexts(this.#behind.map(({ added }) => added.index));
    if (this.#behind.length === 0 || this.#built === null) return;
    const { pacer } = this.#context;
    const cursor = new TreeCursor(this.#table.tree, { from: this.#built && keyAfter(this.#built) });
    cursor.expect(this.#limits.rows - this.#seen);
    while (await cursor.next()) {
      const { node } = cursor;
      for (let i = cursor.from; i < cursor.to; i++) {
        if (this.#isFull) return;
        const key = node.key(i);
        const row = { source: node, base: node.rowBase(i) };
        for (const { changes } of this.#behind) changes.add(undefined, row, key);
        this.#built = key;
        if ((++this.#seen & 0x1f) === 0 && pacer.due()) await pacer.pause();
      }
    }
    this.#built = null;
  }

  async finish(): Promise<AddedChunk> {
    const { schema, name } = this.#table.shape;
    const context = this.#context;
    for (const { changes, tree } of this.#behind) {
      if (changes.count > 0) await tree.apply(await changes.take(context.pacer));
      context.counters.blocksWritten += tree.writer.written;
    }
    const all = this.#all.map((growing): MergedAddedIndex => {
      const { stored, built, rows, birth, problem } = growing.added;
      const { tree } = growing;
      const isBehind = this.#behind.includes(growing);
      return isBehind
        ? { stored, built: this.#built, rows: rows + this.#seen, birth, problem, tree }
        : { stored, built, rows, birth, problem, tree };
    });
    // A unique index is not ready before the check that no two rows agree.
    const ready = all.filter((index) => isComplete(index) && index.stored.unique === undefined);
    const { indexes, functionIndexes } = this.#missing;
    const functions = [...(schema.functionIndexes ?? []), ...functionIndexes];
    const changed = {
      ...schema,
      indexes: [...schema.indexes, ...ready.map(({ stored }) => stored)],
      ...(functions.length > 0 && { functionIndexes: functions }),
    };
    const added = all.filter((index) => !ready.includes(index));
    return {
      table: { name, versions: [withIndexes(this.#table, changed, ready, added, context)] },
      rows: this.#seen,
      begun: [...indexes, ...functionIndexes].map((index) => index.name),
      ready: ready.map(({ stored }) => stored.name),
    };
  }
}

/**
 * Returns a table with other indexes and otherwise unchanged: the indexes of a schema, of which `made` were completed just now,
 * and the indexes that are being added.
 */
function withIndexes(
  table: TableState,
  schema: StoredSchema,
  made: readonly MergedAddedIndex[],
  added: readonly MergedAddedIndex[],
  context: TableMergeContext,
): MergedVersion {
  const shape = shapeOf(schema);
  const trees = new Map(made.map(({ stored, tree }): [string, MergedTree] => [stored.name, tree]));
  const indexes = shape.indexes.map(({ name }): [string, MergedTree] => {
    return [name, trees.get(name) ?? growingIndex(table, name, context)];
  });
  const known = new Set(shape.functionIndexes.map(({ name }) => name));
  const indexVersions = table.indexVersions.filter(({ index }) => known.has(index.name));
  return {
    shape,
    tree: growingRows(table, context),
    indexes: new Map(indexes),
    indexVersions: indexVersions.map((indexVersion) => keptIndexVersion(table, indexVersion, context)),
    added,
  };
}

/** Returns the table with an added index moved into its schema. */
export function readyIndex(table: TableState, name: string, context: TableMergeContext): MergedTable {
  const { schema } = table.shape;
  const all = keptAdded(table, context);
  const made = all.filter(({ stored }) => stored.name === name);
  const changed = { ...schema, indexes: [...schema.indexes, ...made.map(({ stored }) => stored)] };
  const added = all.filter(({ stored }) => stored.name !== name);
  return { name: schema.name, versions: [withIndexes(table, changed, made, added, context)] };
}

/** Returns the table with the reason why an index cannot be added. The entries of the index are dropped. */
export function failedIndex(
  table: TableState,
  failed: AddedIndex,
  problem: string,
  context: TableMergeContext,
): MergedTable {
  const { schema } = table.shape;
  const { stored, birth } = failed;
  const empty = growingEntries(table, stored.name, new Tree(failed.tree.source, null), context);
  const added = [
    ...keptAdded(table, context).filter((index) => index.stored.name !== stored.name),
    { stored, built: undefined, rows: 0, birth, problem, tree: empty },
  ];
  return { name: schema.name, versions: [withIndexes(table, schema, [], added, context)] };
}

/** Returns the table without an index of any kind. */
export function droppedIndex(table: TableState, name: string, context: TableMergeContext): MergedTable {
  const { functionIndexes = [], ...schema } = table.shape.schema;
  const isOther = (index: { readonly name: string }): boolean => index.name !== name;
  const functions = functionIndexes.filter(isOther);
  const changed = {
    ...schema,
    indexes: schema.indexes.filter(isOther),
    ...(functions.length > 0 && { functionIndexes: functions }),
  };
  const added = keptAdded(table, context).filter(({ stored }) => isOther(stored));
  return { name: schema.name, versions: [withIndexes(table, changed, [], added, context)] };
}

/** Compares two bounds: less than 0 if the first is farther behind. */
function compareBounds(a: Bound, b: Bound): number {
  if (a === null || b === null) return Number(a === null) - Number(b === null);
  if (a === undefined || b === undefined) return Number(a !== undefined) - Number(b !== undefined);
  return compareBytes(a, b);
}

function leastOf(bounds: readonly Bound[]): Bound {
  return bounds.reduce((least, bound) => (compareBounds(bound, least) < 0 ? bound : least), null);
}
