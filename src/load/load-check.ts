/**
 * Checks the rows of a load against a state of their table: no row may have a key, or values of a unique index, that another row has.
 *
 * The first check looks at all rows. Later ones look only at the changes since the state before, so that the last check, on the very
 * state that the commit follows, is short.
 */
import { isPromise } from '../base/brands.ts';
import { keyAfter, toLatin1 } from '../base/bytes.ts';
import type { Environment } from '../base/env.ts';
import { UniqueIndexError } from '../base/errors.ts';
import type { Pacer } from '../base/pacer.ts';
import { duplicateKey } from '../batch/folded-changes.ts';
import { uniqueConflict, UniqueCheck } from '../batch/unique-check.ts';
import { findDuplicates } from '../catalog/checked-indexes.ts';
import { NodeEntries } from '../format/node-entries.ts';
import type { Node } from '../format/node.ts';
import { isNull, readField } from '../format/row-decode.ts';
import type { RowSource } from '../format/row-layout.ts';
import { IndexChanges } from '../merge/index-changes.ts';
import { diffTrees } from '../migration/tree-diff.ts';
import { maxLookups } from '../query/operators/lookups.ts';
import { indexLeafShape } from '../schema/table-shape.ts';
import type { AddedIndex, KeyValue, TableIndex, TableShape } from '../schema/table-shape.ts';
import { noBlocks } from '../tree/block-source.ts';
import { readAll } from '../tree/cursor.ts';
import type { RunCursor } from '../tree/cursor.ts';
import { isSameTree, Tree } from '../tree/tree.ts';
import type { RowRef } from '../tree/tree.ts';
import { layeredState } from '../view/layered-state.ts';
import type { TableState } from '../view/table-state.ts';
import { repeatedKey } from './row-stager.ts';
import type { StagedTree, Staging } from './staged-trees.ts';

/** If the table has more rows than this for each loaded row, each key is looked up. Otherwise both are read in the order of the keys. */
const sparse = 8;
/** Rows of the table that are checked together. */
const rowsTogether = 1024;
/** Name of nodes that only memory holds. */
const memoryName = 'memory/load';

/** The rows of a load. */
export interface LoadedRows {
  readonly tree: Tree;
  readonly firstKey: Uint8Array;
  readonly lastKey: Uint8Array;
}

export interface LoadCheckOptions {
  readonly shape: TableShape;
  readonly staging: Staging;
  readonly pacer: Pacer;
  readonly environment: Environment;
  /** Bytes of index entries that are sorted at once. */
  readonly bufferBytes: number;
}

/** A row of the table. */
interface ChangedRow extends RowRef {
  readonly key: Uint8Array;
}

export class LoadCheck {
  readonly #options: LoadCheckOptions;
  #rows: LoadedRows;
  /** The state against which the rows were checked last. */
  #checked: TableState | undefined;
  /** The rows as a table of its own, with the entries of its unique indexes. */
  #loaded: TableState | undefined;
  /** Tells the unique indexes that the rows were checked for. */
  #indexTexts = '';

  constructor(rows: LoadedRows, options: LoadCheckOptions) {
    this.#rows = rows;
    this.#options = options;
  }

  /** Takes the tree in which the same rows are staged now. */
  moved(tree: Tree): void {
    this.#rows = { ...this.#rows, tree };
    if (this.#loaded !== undefined) this.#loaded = layeredState(this.#loaded.shape, tree, this.#loaded.indexes);
  }

  /**
   * Forgets the state that was checked, because one of its blocks may be gone, and with it the changes since. Returns whether there was
   * such a state.
   */
  forget(): boolean {
    const hadChecked = this.#checked !== undefined;
    this.#checked = undefined;
    return hadChecked;
  }

  /**
   * Whether only the changes since the last check have to be looked at. `added`: the unique indexes that are being added, and that
   * flushes are checked for.
   */
  knows(state: TableState, added: readonly AddedIndex[]): boolean {
    return this.#checked !== undefined && this.#indexTexts === textOf(uniqueIndexes(state, added));
  }

  /** Checks the rows against a state. Rejects with `DuplicateKeyError` and `UniqueIndexError`. */
  async against(state: TableState, added: readonly AddedIndex[]): Promise<void> {
    if (this.#checked === state && this.knows(state, added)) return;
    if (this.#checked !== undefined && this.knows(state, added)) await this.#checkChanges(this.#checked, state, added);
    else await this.#checkAll(state, added);
    this.#checked = state;
  }

  async #checkAll(state: TableState, added: readonly AddedIndex[]): Promise<void> {
    this.#checked = undefined;
    this.#loaded = undefined;
    await this.#checkKeys(state);
    const indexes = uniqueIndexes(state, added);
    if (indexes.length > 0) {
      await this.#checkEachOther(state.shape, indexes);
      if (state.tree.ref !== null || state.layers.length > 0) await this.#checkValues(state, added);
    }
    this.#indexTexts = textOf(indexes);
  }

  /** Checks that no row of the table has a key of the load. */
  async #checkKeys(state: TableState): Promise<void> {
    const { tree, firstKey, lastKey } = this.#rows;
    const { shape } = this.#options;
    const range = { from: firstKey, to: keyAfter(lastKey) };
    if (!(await state.scan(range).next())) return;
    const isSparse = state.tree.count + state.layerRows > sparse * tree.count;
    for (const leaf = readAll(tree); await leaf.next(); ) {
      const { node } = leaf;
      const found = isSparse ? await this.#lookUp(node, state) : await this.#join(node, state);
      if (found !== undefined) throw duplicateKey(shape, found);
    }
  }

  /** Returns the first key of a leaf that a table has, by one scan of the rows between its keys. */
  async #join(leaf: Node, state: TableState): Promise<Uint8Array | undefined> {
    const { pacer } = this.#options;
    const cursor = state.scan({ from: leaf.key(0), to: keyAfter(leaf.key(leaf.count - 1)) });
    cursor.expect?.(leaf.count);
    for (;;) {
      const moved = cursor.next();
      if (!(isPromise(moved) ? await moved : moved)) return undefined;
      const { node, from, to } = cursor;
      for (let i = from; i < to; i++) {
        const key = node.key(i);
        const at = leaf.lowerBound(key);
        const isSame = at < leaf.count && leaf.compareKey(at, key, key.length) === 0;
        if (isSame && this.#isThere({ source: node, base: node.rowBase(i) })) return key;
      }
      if (pacer.due()) await pacer.pause();
    }
  }

  /** Returns the first key of a leaf that a table has, by lookups. */
  async #lookUp(leaf: Node, state: TableState): Promise<Uint8Array | undefined> {
    const { pacer } = this.#options;
    const together = maxLookups(state.tree.source.memory);
    for (let i = 0; i < leaf.count; i += together) {
      const keys: Uint8Array[] = [];
      for (let at = i; at < Math.min(leaf.count, i + together); at++) keys.push(leaf.key(at));
      const found = await Promise.all(keys.map(async (key) => state.lookup(key)));
      const at = found.findIndex((row) => this.#isThere(row));
      if (at >= 0) return keys[at];
      if (pacer.due()) await pacer.pause();
    }
    return undefined;
  }

  /** Makes the entries of unique indexes, and checks that no two rows of the load agree in one. */
  async #checkEachOther(shape: TableShape, indexes: readonly TableIndex[]): Promise<void> {
    const { pacer } = this.#options;
    const entries = new Map<string, Tree>();
    for (const index of indexes) entries.set(index.name, await this.#entriesOf(index));
    const loaded = layeredState(shape, this.#rows.tree, entries);
    this.#loaded = loaded;
    for (const index of indexes) {
      const [found] = await findDuplicates(loaded, index, pacer, 1, entries.get(index.name));
      if (found === undefined) continue;
      const row = (await loaded.tree.lookup(shape.keyBytes(found.key as KeyValue))) as RowRef;
      const values = index.fields.map((field) => readField(row.source, row.base, field));
      const value = values.length === 1 ? values[0] : values;
      throw uniqueConflict(shape, index, { value, primaryKey: found.key, otherKey: found.other });
    }
  }

  /** Sorts the entries of an index, in as many runs as memory asks for, and stages them. */
  async #entriesOf(index: TableIndex): Promise<Tree> {
    const { shape, staging, pacer, bufferBytes } = this.#options;
    const changes = new IndexChanges(shape, index, undefined, null);
    const parts: StagedTree[] = [];
    const stage = async (): Promise<void> => {
      if (changes.count > 0) parts.push(await staging.stage(shape.name, indexLeafShape, await changes.take(pacer)));
    };
    for (const leaf = readAll(this.#rows.tree); await leaf.next(); ) {
      const { node, from, to } = leaf;
      changes.addRun({ node, from, to });
      if (changes.sizeBytes >= bufferBytes) await stage();
      if (pacer.due()) await pacer.pause();
    }
    await stage();
    if (parts.length === 0) return new Tree(noBlocks, null);
    const merged = await staging.merge(shape.name, indexLeafShape, parts, (key) => repeatedKey(shape, key));
    return merged.tree;
  }

  /** Checks that no row of the table agrees with a row of the load in a unique index. */
  async #checkValues(state: TableState, added: readonly AddedIndex[]): Promise<void> {
    for (const leaf = readAll(this.#rows.tree); await leaf.next(); ) {
      await UniqueCheck.on(state, added)?.checkLeaf(leaf.node, this.#options.pacer);
    }
  }

  /** Checks the rows of a state that an earlier state did not have. */
  async #checkChanges(before: TableState, now: TableState, added: readonly AddedIndex[]): Promise<void> {
    const { pacer } = this.#options;
    let rows = new ChangedRows(this.#options.shape);
    for await (const row of changedRows(before, now, pacer)) {
      await this.#refuseKey(row.key, now);
      rows.add(row);
      if (rows.count >= rowsTogether) {
        await this.#checkAgree(rows, added);
        rows = new ChangedRows(this.#options.shape);
      }
      if (pacer.due()) await pacer.pause();
    }
    await this.#checkAgree(rows, added);
  }

  async #refuseKey(key: Uint8Array, now: TableState): Promise<void> {
    const loaded = await this.#rows.tree.lookup(key);
    if (loaded !== undefined && this.#isThere(await now.lookup(key))) throw duplicateKey(this.#options.shape, key);
  }

  /** Whether a row refuses its key: one that has expired does so only if it has blobs, since a load deletes none. */
  #isThere(row: RowRef | undefined): boolean {
    const { shape, environment } = this.#options;
    if (row === undefined || !shape.isExpired(row, environment.now())) return row !== undefined;
    return shape.blobFields.some((field) => !isNull(row.source, row.base, field));
  }

  /** Checks that rows of the table do not agree with rows of the load in a unique index. */
  async #checkAgree(rows: ChangedRows, added: readonly AddedIndex[]): Promise<void> {
    const loaded = this.#loaded;
    const { shape, pacer } = this.#options;
    if (loaded === undefined || rows.count === 0) return;
    const own = added.map((one) => ({ ...one, tree: loaded.indexes.get(one.index.name) as Tree }));
    try {
      await UniqueCheck.on(loaded, own)?.checkLeaf(rows.leaf(), pacer);
    } catch (error) {
      if (!(error instanceof UniqueIndexError)) throw error;
      const index = uniqueIndexes(loaded, added).find(({ name }) => name === error.index) as TableIndex;
      // For the caller, the row of the load is the one that is refused.
      const { value, primaryKey: otherKey, otherKey: primaryKey } = error;
      throw uniqueConflict(shape, index, { value, primaryKey, otherKey });
    }
  }
}

/** The unique indexes that flushes on a state are checked for. */
function uniqueIndexes({ shape }: TableState, added: readonly AddedIndex[]): TableIndex[] {
  return [...shape.indexes.filter(({ unique }) => unique), ...added.map(({ index }) => index)];
}

/** Returns a text that differs for indexes with other entries. */
function textOf(indexes: readonly TableIndex[]): string {
  return JSON.stringify(
    indexes.map(({ name, fields, where }) => [name, fields.map((field) => field.name), where?.text]),
  );
}

/**
 * The rows that a state has and an earlier state did not have like this; perhaps some more. Among them are all rows with keys in layers
 * that have gone into the tree since: a row that such a layer hid may be back, and then both trees have it.
 */
async function* changedRows(
  before: TableState,
  now: TableState,
  pacer: Pacer,
): AsyncGenerator<ChangedRow, void, undefined> {
  const known = new Set(before.layers);
  const newer = now.layers.filter((layer) => !known.has(layer));
  const allOf = (layers: TableState['layers'], showDeleted: boolean): RunCursor => {
    const only = layeredState(now.shape, new Tree(noBlocks, null), new Map(), layers);
    const cursor = only.scanLayers({}, showDeleted);
    cursor.expect?.(Number.POSITIVE_INFINITY);
    return cursor;
  };
  for (const cursor = allOf(newer, false); await cursor.next(); ) {
    const { node, from, to } = cursor;
    for (let i = from; i < to; i++) yield { key: node.key(i), source: node, base: node.rowBase(i) };
  }
  const kept = new Set(now.layers);
  const merged = before.layers.filter((layer) => !kept.has(layer));
  for (const cursor = allOf(merged, true); await cursor.next(); ) {
    const { node, from, to } = cursor;
    for (let i = from; i < to; i++) {
      const key = node.key(i);
      const row = await now.lookup(key);
      if (row !== undefined) yield { key, ...row };
      if (pacer.due()) await pacer.pause();
    }
  }
  if (isSameTree(before.tree, now.tree)) return;
  for await (const { key, after } of diffTrees(before.tree, now.tree, now.shape.layout)) {
    if (after !== undefined && !(await now.isOverlaid(key))) yield { key, ...after };
  }
}

/** Rows of a table, in the order of their keys at last. */
class ChangedRows {
  readonly #shape: TableShape;
  readonly #rows = new Map<string, { readonly key: Uint8Array; readonly source: RowSource; readonly base: number }>();

  constructor(shape: TableShape) {
    this.#shape = shape;
  }

  get count(): number {
    return this.#rows.size;
  }

  add({ key, source, base }: ChangedRow): void {
    this.#rows.set(toLatin1(key), { key, source, base });
  }

  leaf(): Node {
    const entries = new NodeEntries(this.#shape.changeShape, this.count);
    for (const name of [...this.#rows.keys()].toSorted()) {
      const { key, source, base } = this.#rows.get(name) as ChangedRow;
      entries.addRow(key, 0, key.length, source, base);
    }
    return entries.toNode(memoryName);
  }
}
