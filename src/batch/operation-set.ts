/** Everything that a batch holds: its operations by table, and the blobs that they bring with them. */
import type { Environment } from '../base/env.ts';
import type { TableShape } from '../table/table-shape.ts';
import type { TableState } from '../table/table-state.ts';
import { TableOperations } from './operations.ts';
import type { NewBlob } from './new-blob.ts';
import { overlayLayer } from './prepare.ts';

export class OperationSet {
  readonly environment: Environment;
  readonly #lists = new Map<string, TableOperations>();
  /** By reference. */
  readonly blobs: Map<string, NewBlob> = new Map();

  constructor(environment: Environment) {
    this.environment = environment;
  }

  /** Operations in all. */
  get count(): number {
    let count = 0;
    for (const list of this.#lists.values()) count += list.count;
    return count;
  }

  /** The lists that hold anything. */
  get lists(): TableOperations[] {
    return [...this.#lists.values()].filter(({ count }) => count > 0);
  }

  /** The list of a table, made where there is none yet. */
  list(shape: TableShape): TableOperations {
    let list = this.#lists.get(shape.name);
    if (list === undefined) {
      list = new TableOperations(shape, this.environment);
      this.#lists.set(shape.name, list);
    }
    return list;
  }

  /** Adds another set's operations after these. The other set is used up. */
  append(other: OperationSet): void {
    for (const [table, list] of other.#lists) {
      const own = this.#lists.get(table);
      if (own === undefined) this.#lists.set(table, list);
      else own.append(list);
    }
    for (const [reference, blob] of other.blobs) this.blobs.set(reference, blob);
  }

  /** A state with these operations on top; the same state if there are none on its table. */
  async overlayOn(state: TableState): Promise<TableState> {
    const list = this.#lists.get(state.shape.name);
    if (list === undefined || list.count === 0) return state;
    const layer = await overlayLayer(list, state, this.environment);
    return layer === undefined ? state : state.withLayer(layer);
  }
}
