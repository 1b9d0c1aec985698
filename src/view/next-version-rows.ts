/**
 * The stored rows of a next version, with pending commits on top. Nothing here converts rows between versions: it needs no code of
 * the application, so that every node can merge.
 *
 * Invariant: for every key in `rows`, `base` holds the row of the active version that it goes with. A key that the active version has lost
 * since is in neither, unless keys of the two versions are of different types.
 *
 * A field that the older version has written since differs between `base` and the active version, even if its old value was written
 * back: the later write counts, not the difference in the end.
 */
import { NodeEntries } from '../format/node-entries.ts';
import type { Node } from '../format/node.ts';
import { RowArena, appendNullRow, copyField, copyRow } from '../format/row-encode.ts';
import { sameField } from '../format/row-decode.ts';
import { rowDeletedFlag } from '../format/row-layout.ts';
import type { RowLayout } from '../format/row-layout.ts';
import { widthOf } from '../format/types.ts';
import type { TableChange } from '../format/commit.ts';
import { readAll } from '../tree/cursor.ts';
import { isSameTree, treeOfNode } from '../tree/tree.ts';
import type { RowRef, Tree } from '../tree/tree.ts';
import { isDeleted } from './merged-cursor.ts';
import type { MemberChange, NextVersion, View } from './view.ts';
import { haveSameKeys } from '../schema/same-shape.ts';
import type { TableShape } from '../schema/table-shape.ts';
import { layeredState } from './layered-state.ts';
import type { TableState } from './table-state.ts';

/** Opens a change as a layer over a state. */
type OpenLayer = (change: TableChange, shape: TableShape) => Tree;

export class NextVersionRows {
  /** Rows of the next version, perhaps not all. */
  readonly rows: TableState;
  /** Rows of the active version that they go with. */
  readonly base: TableState;

  /** The active version itself, after the same commits. */
  readonly #active: TableState;

  private constructor(rows: TableState, base: TableState, active: TableState) {
    this.rows = rows;
    this.base = base;
    this.#active = active;
  }

  /** Returns the rows in the blocks. `active`: the table, whose pending changes do not count. */
  static stored({ rows, base }: NextVersion, active: TableState): NextVersionRows {
    return new NextVersionRows(rows, base, layeredState(active.shape, active.tree, active.indexes));
  }

  /** Returns the rows that a view shows; undefined where a table has no next version. */
  static async in(view: View, table: string): Promise<NextVersionRows | undefined> {
    const nextVersion = view.nextVersion(table);
    const active = view.table(table);
    if (nextVersion === undefined || active === undefined) return undefined;
    let rows = NextVersionRows.stored(nextVersion, active);
    for (const change of view.changesOf(table)) rows = await rows.with(change, (...given) => view.layer(...given));
    return rows;
  }

  /** Whether nothing is stored of the version. */
  get isEmpty(): boolean {
    return this.rows.tree.ref === null && this.rows.layers.length === 0;
  }

  /** Returns the rows of the next version after another change. */
  async with({ active, shadow }: MemberChange, layer: OpenLayer): Promise<NextVersionRows> {
    const { rows } = this;
    const written = layer(active, this.base.shape);
    const after = this.#active.withLayer(written);
    if (shadow !== undefined) {
      return new NextVersionRows(rows.withLayer(layer(shadow, rows.shape)), this.base.withLayer(written), after);
    }
    if (this.isEmpty) return new NextVersionRows(rows, this.base, after);
    const base = await this.#withTouched(written);
    if (!haveSameKeys(rows.shape, base.shape)) return new NextVersionRows(rows, base, after);
    const deleted = await deletedKeys(written);
    if (deleted.length === 0) return new NextVersionRows(rows, base, after);
    const marks = (shape: TableShape): Tree => treeOfNode(deletionsOf(shape, deleted));
    return new NextVersionRows(rows.withLayer(marks(rows.shape)), base.withLayer(marks(base.shape)), after);
  }

  /** The base, different from the active version in every field that a change of that alone has written. */
  async #withTouched(written: Tree): Promise<TableState> {
    const { base } = this;
    const { layout, changeShape } = base.shape;
    const arena = new RowArena('memory/touched');
    const entries = new NodeEntries(changeShape);
    // Where both are one tree, only rows that pending commits have changed can have been written back.
    const isSame = isSameTree(base.tree, this.#active.tree);
    const cursor = readAll(written);
    while (await cursor.next()) {
      const { node } = cursor;
      for (let i = cursor.from; i < cursor.to; i++) {
        if (isDeleted(node, i)) continue;
        const key = node.key(i);
        if (isSame && !base.mayBeOverlaid(key) && !this.#active.mayBeOverlaid(key)) continue;
        const [then, before] = [await base.lookup(key), await this.#active.lookup(key)];
        if (then === undefined || before === undefined) continue;
        const at = addTouched(layout, then, before, { source: node, base: node.rowBase(i) }, arena);
        if (at !== undefined) entries.addRow(key, 0, key.length, arena, at);
      }
    }
    return entries.count === 0 ? base : base.withLayer(treeOfNode(entries.toNode('memory/touched')));
  }
}

/**
 * Adds the row of the base that goes with a row of the active version once that was written over `before`: where a field has come back to
 * what it was `then`, it takes the value in between. Undefined: it stays.
 */
function addTouched(
  layout: RowLayout,
  then: RowRef,
  before: RowRef,
  after: RowRef,
  arena: RowArena,
): number | undefined {
  let at: number | undefined;
  for (const field of layout.fields) {
    if (!sameField(layout, field, then, after) || sameField(layout, field, before, after)) continue;
    const { writer, heapWriter } = arena;
    at ??= copyRow(layout, then.source, then.base, writer, heapWriter);
    copyField(field, widthOf(field.typeId), before.source, before.base, writer, at, heapWriter);
  }
  return at;
}

async function deletedKeys(layer: Tree): Promise<Uint8Array[]> {
  const cursor = readAll(layer);
  const keys: Uint8Array[] = [];
  while (await cursor.next()) {
    for (let i = cursor.from; i < cursor.to; i++) if (isDeleted(cursor.node, i)) keys.push(cursor.node.key(i));
  }
  return keys;
}

/** Name of nodes that only memory holds. */
const memoryName = 'memory/deleted';

/** A change that deletes rows. */
function deletionsOf({ changeShape, layout }: TableShape, keys: readonly Uint8Array[]): Node {
  const rows = new RowArena(memoryName);
  const base = appendNullRow(layout, rows.writer);
  rows.rows[base] = (rows.rows[base] as number) | rowDeletedFlag;
  const entries = new NodeEntries(changeShape);
  for (const key of keys) entries.addRow(key, 0, key.length, rows, base);
  return entries.toNode(memoryName);
}
