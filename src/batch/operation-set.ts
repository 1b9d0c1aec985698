/** The operations of a batch by table, and the new blobs that they bring with them. */
import type { Environment } from '../base/env.ts';
import { randomUuid } from '../base/ids.ts';
import { Later } from '../base/later.ts';
import type { TableShape } from '../schema/table-shape.ts';
import type { ReadThrough } from '../query/planner/query-host.ts';
import type { TableState } from '../view/table-state.ts';
import type { NewBlob } from './blob-changes.ts';
import { Operation, TableOperations } from './table-operations.ts';

const overlaying = new Later('overlays of batches', () => import('./overlay-layer.ts'));

/** Operations that keep a part of the row below: the fields that they do not name, or the numbers that they add to. */
const showsThrough: ReadonlySet<Operation> = new Set([Operation.update, Operation.upsertFields, Operation.increment]);

/** A state with the first `count` operations of a list on top. */
interface KnownOverlay {
  readonly base: TableState;
  readonly list: TableOperations;
  readonly count: number;
  readonly overlaid: TableState;
}

/** Records the rows that an overlay depends on. */
interface RowReader {
  rowRead?(shape: TableShape, key: Uint8Array): void;
}

export class OperationSet {
  readonly environment: Environment;
  readonly #lists = new Map<string, TableOperations>();
  /** The last overlay that was made for each table. */
  readonly #overlays = new Map<string, KnownOverlay>();
  /** By reference. */
  readonly blobs: Map<string, NewBlob> = new Map();

  constructor(environment: Environment) {
    this.environment = environment;
  }

  /** The number of operations. */
  get count(): number {
    let count = 0;
    for (const list of this.#lists.values()) count += list.count;
    return count;
  }

  /** Gives a new blob another reference: the upload under the old one is, or may be, lost. */
  renameBlob(blob: NewBlob): void {
    const { reference } = blob;
    blob.reference = randomUuid(this.environment);
    blob.record = undefined;
    this.blobs.delete(reference);
    this.blobs.set(blob.reference, blob);
    for (const list of this.#lists.values()) list.replaceReference(reference, blob.reference);
    this.#overlays.clear();
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

  /** Adds another set's operations after these. The other set must not be used again. */
  append(other: OperationSet): void {
    for (const [table, list] of other.#lists) {
      const own = this.#lists.get(table);
      if (own === undefined) this.#lists.set(table, list);
      else own.append(list);
    }
    for (const [reference, blob] of other.blobs) this.blobs.set(reference, blob);
  }

  /**
   * Returns a state with these operations on top; the given state if there are none on its table. `reader` records the rows below
   * updates, whose other fields show through; the rows are read through `through`.
   */
  async overlayOn(state: TableState, reader?: RowReader, through?: ReadThrough): Promise<TableState> {
    const { name } = state.shape;
    const list = this.#lists.get(name);
    if (list === undefined || list.count === 0) return state;
    // Mostly the same state is asked for again, with a few operations more: these go on top of the last overlay.
    const known = this.#overlays.get(name);
    const valid = known?.base === state && known.list === list;
    const { count } = list;
    const from = valid ? known.count : 0;
    const below = valid ? known.overlaid : state;
    if (from === count) return below;
    for (let i = from; i < count; i++) {
      const kind = list.kind(i);
      if (showsThrough.has(kind)) reader?.rowRead?.(state.shape, list.keys.key(i));
    }
    const { overlayLayer } = overlaying.loaded ?? (await overlaying.load());
    const layer = await overlayLayer(list, from, through?.(below) ?? below, this.environment);
    const overlaid = layer === undefined ? below : below.withLayer(layer);
    if (list.count === count) this.#overlays.set(name, { base: state, list, count, overlaid });
    return overlaid;
  }
}
