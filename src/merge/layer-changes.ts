/** The rows that unmerged commits have changed, as a stream of changes to a table's tree. */
import { isPromise } from '../base/brands.ts';
import { isDeleted } from '../view/merged-cursor.ts';
import type { TableState } from '../view/table-state.ts';
import type { RunCursor } from '../tree/cursor.ts';
import { longestRun } from '../tree/write.ts';
import type { ChangeStream, RowRun } from '../tree/write.ts';
import type { Tree } from '../tree/tree.ts';
import type { Node } from '../format/node.ts';

/** Fewer rows are added one by one. */
const shortestRun = 4;

export class LayerChanges implements ChangeStream {
  readonly #cursor: RunCursor;
  readonly #layers: readonly Tree[];
  #at = 0;
  done = false;
  key: Uint8Array = new Uint8Array(256);
  readonly keyStart = 0;
  keyEnd = 0;

  private constructor(table: TableState) {
    this.#cursor = table.scanLayers({}, true);
    this.#layers = table.layers;
  }

  static async of(table: TableState): Promise<LayerChanges> {
    const changes = new LayerChanges(table);
    changes.#take(await changes.#cursor.next());
    return changes;
  }

  get source(): Node {
    return this.#cursor.node;
  }

  get base(): number {
    return this.#cursor.node.rowBase(this.#at);
  }

  get remove(): boolean {
    return isDeleted(this.#cursor.node, this.#at);
  }

  advance(): void | Promise<void> {
    this.#at++;
    if (this.#at < this.#cursor.to) {
      this.#loadKey();
      return undefined;
    }
    const moved = this.#cursor.next();
    if (isPromise(moved)) return moved.then((more) => this.#take(more));
    this.#take(moved);
    return undefined;
  }

  mayChange(from: Uint8Array, to: Uint8Array): boolean {
    // Of layers that are not wholly in memory it is not known.
    return this.#layers.some((layer) => layer.node?.level === 0 && !layer.holdsNone(from, to));
  }

  run(limit: Uint8Array | undefined): RowRun | undefined {
    const { node, to } = this.#cursor;
    const from = this.#at;
    // No more is taken at once.
    const most = Math.min(to, from + longestRun);
    const bound = limit === undefined ? most : Math.min(most, node.boundFrom(from, limit, 0, limit.length));
    let end = from;
    while (end < bound && !isDeleted(node, end)) end++;
    return end - from < shortestRun ? undefined : { node, from, to: end };
  }

  advanceRun(count: number): void | Promise<void> {
    this.#at += count - 1;
    return this.advance();
  }

  #take(more: boolean): void {
    if (!more) {
      this.done = true;
      return;
    }
    this.#at = this.#cursor.from;
    this.#loadKey();
  }

  #loadKey(): void {
    const { node } = this.#cursor;
    this.keyEnd = node.keyLength(this.#at);
    if (this.key.length < this.keyEnd) this.key = new Uint8Array(this.keyEnd * 2);
    node.copyKey(this.#at, this.key, 0);
  }
}
