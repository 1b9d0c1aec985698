/**
 * What is stored of a version beside the truth, with pending commits on top. Nothing here makes rows of one version from
 * those of another: it takes no code of the application, so that every node can merge.
 *
 * Invariant: for every key in `rows`, `base` holds the row of the truth that it goes with. A key that the truth has lost
 * since is in neither, unless keys of the two versions are of different types.
 */
import { NodeEntries } from '../format/node-entries.ts';
import type { Node } from '../format/node.ts';
import { RowArena } from '../format/row-arena.ts';
import { appendNullRow } from '../format/row-encode.ts';
import { rowDeletedFlag } from '../format/row-layout.ts';
import type { TableChange } from '../format/commit.ts';
import { TreeCursor } from '../tree/cursor.ts';
import { treeOfNode } from '../tree/tree.ts';
import type { Tree } from '../tree/tree.ts';
import { isDeleted } from './merged-cursor.ts';
import type { MemberChange } from './member-changes.ts';
import type { TableShape } from './table-shape.ts';
import type { TableState } from './table-state.ts';
import type { Beside, View } from './view.ts';

/** Opens a change as a layer over a state. */
type OpenLayer = (change: TableChange, shape: TableShape) => Tree;

export class BesideRows {
  /** Rows of the version beside the truth, perhaps not all. */
  readonly rows: TableState;
  /** Rows of the truth that they go with. */
  readonly base: TableState;

  private constructor(rows: TableState, base: TableState) {
    this.rows = rows;
    this.base = base;
  }

  /** What the blocks hold. */
  static stored({ rows, base }: Beside): BesideRows {
    return new BesideRows(rows, base);
  }

  /** What a view shows; undefined where a table has no version beside its truth. */
  static async in(view: View, table: string): Promise<BesideRows | undefined> {
    const beside = view.beside(table);
    if (beside === undefined) return undefined;
    let rows = BesideRows.stored(beside);
    for (const change of view.changesOf(table)) rows = await rows.with(change, (...given) => view.layer(...given));
    return rows;
  }

  /** Whether nothing is stored of the version. */
  get isEmpty(): boolean {
    return this.rows.tree.ref === null && this.rows.layers.length === 0;
  }

  /** The same after another change. */
  async with({ truth, twin }: MemberChange, layer: OpenLayer): Promise<BesideRows> {
    const { rows, base } = this;
    if (twin !== undefined) {
      return new BesideRows(rows.withLayer(layer(twin, rows.shape)), base.withLayer(layer(truth, base.shape)));
    }
    if (this.isEmpty || rows.shape.primaryKey.typeId !== base.shape.primaryKey.typeId) return this;
    const deleted = await deletedKeys(layer(truth, base.shape));
    if (deleted.length === 0) return this;
    const marks = (shape: TableShape): Tree => treeOfNode(deletionsOf(shape, deleted));
    return new BesideRows(rows.withLayer(marks(rows.shape)), base.withLayer(marks(base.shape)));
  }
}

async function deletedKeys(layer: Tree): Promise<Uint8Array[]> {
  const cursor = new TreeCursor(layer);
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
