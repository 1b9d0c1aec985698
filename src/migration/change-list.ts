/** Rows that a migration writes into a tree: collected in any order, then laid over it as one layer. */
import { compareBytes } from '../base/bytes.ts';
import { NodeEntries } from '../format/node-entries.ts';
import { openNode } from '../format/node.ts';
import type { RowSource } from '../format/row-layout.ts';
import type { TableShape } from '../table/table-shape.ts';
import { TableState } from '../table/table-state.ts';
import { treeOfNode } from '../tree/tree.ts';
import type { RowHit } from '../tree/tree.ts';
import { PlainRows } from './plain-rows.ts';

interface Change {
  readonly key: Uint8Array;
  readonly source: RowSource;
  readonly base: number;
}

const memoryName = 'memory/migration';

export class ChangeList {
  readonly #shape: TableShape;
  readonly #changes: Change[] = [];
  readonly rows: PlainRows = new PlainRows();
  #keyBytes = 0;

  constructor(shape: TableShape) {
    this.#shape = shape;
  }

  get count(): number {
    return this.#changes.length;
  }

  /** Bytes that the changes hold by themselves. */
  get sizeBytes(): number {
    return this.rows.sizeBytes + this.#keyBytes;
  }

  /** Adds a row that was written into {@link rows}. No key may be added twice. */
  set(key: Uint8Array, base: number): void {
    this.#add(key, this.rows, base);
  }

  /** Adds a row that lies somewhere else, or says that there is none. */
  put(key: Uint8Array, hit: RowHit | undefined): void {
    if (hit === undefined) this.set(key, this.rows.addDeleted(this.#shape.layout));
    else this.#add(key, hit.source, hit.base);
  }

  #add(key: Uint8Array, source: RowSource, base: number): void {
    this.#keyBytes += key.length;
    this.#changes.push({ key, source, base });
  }

  /** A state of the same shape with the changes on top. */
  over(state: TableState): TableState {
    const { tree, indexes } = state;
    if (this.#changes.length === 0) return new TableState(this.#shape, tree, indexes);
    const entries = new NodeEntries(this.#shape.changeShape);
    for (const { key, source, base } of this.#changes.toSorted((a, b) => compareBytes(a.key, b.key))) {
      entries.addRow(key, 0, key.length, source, base);
    }
    const node = openNode(memoryName, entries.encode(memoryName, 0, entries.count));
    return new TableState(this.#shape, tree, indexes, [treeOfNode(node)]);
  }
}
