/** The parts of a database instance that a query uses. */
import type { Environment } from '../../base/env.ts';
import type { RowSource } from '../../format/row-layout.ts';
import type { KeyRange } from '../../tree/cursor.ts';
import type { RegisteredFunction } from '../../schema/registered-functions.ts';
import type { TableShape } from '../../schema/table-shape.ts';
import type { TableState } from '../../view/table-state.ts';
import type { PriceTable } from '../../storage/prices.ts';
import type { QueryMemory } from './query-memory.ts';

/** Returns a state that reports its reads to the maker of the function. */
export type ReadThrough = (state: TableState) => TableState;

/** Something whose unflushed writes can be laid over a table: a batch. */
export interface Overlay {
  /**
   * Returns the state with the overlay's writes on top; the same state if it has none for this table. Reads that this takes go
   * through `through`, if it is given.
   *
   * @hidden
   */
  overlayOn(state: TableState, through?: ReadThrough): Promise<TableState>;
  /**
   * Returns whether a database instance made it.
   *
   * @hidden
   */
  isOf(owner: object): boolean;
}

/** Holds on to a state on behalf of a loop that takes long. */
export interface StateKeeper {
  /**
   * If it is time for that and not done yet, nothing that the state shows is deleted from the time at which this resolves. Never
   * rejects: a loop whose state cannot be kept may yet end. Undefined where there is nothing to wait for.
   */
  holdIfDue(): Promise<void> | undefined;
  /** Holds the state at any time. */
  hold(): Promise<void>;
  /** The loop has ended. */
  release(): void;
}

/** The read set of a query: matching rows among those with certain keys, or in a range of keys. */
export interface QueryRead {
  /** Undefined: any key. */
  readonly keys: readonly Uint8Array[] | undefined;
  readonly range: KeyRange | undefined;
  /** Undefined: every row matches. May throw what a registered function throws. */
  readonly matches: ((source: RowSource, base: number) => boolean) | undefined;
}

export interface QueryHost {
  readonly environment: Environment;
  /** The database instance. Batches of other instances are refused. */
  readonly owner: object;
  /** The source that queries read: the owner, a snapshot or a transaction. */
  readonly source: object;
  /** The id of the database: bookmarks of another one are refused. Throws `NotStartedError`. */
  readonly databaseId: string;
  /** The memory of earlier queries of the instance. */
  readonly queryMemory: QueryMemory;
  /** The prices of requests. */
  readonly prices: PriceTable;
  /** The registered shape of a table; undefined while it is not registered. */
  shapeOf(table: string): TableShape | undefined;
  registeredFunction(name: string): RegisteredFunction | undefined;
  /**
   * The present state of a table, of one view, for the whole of a query: at once where the view is fresh enough.
   * Rejects with `NotStartedError` or `SchemaNotFoundError`.
   */
  tableState(table: string): TableState | Promise<TableState>;
  /**
   * The state that a table most likely has, while {@link tableState} finds out whether it is the present one: a query may begin
   * with it, and keep what it finds if it was. Undefined where there is none.
   */
  earlyState?(table: string): TableState | undefined;
  /**
   * A block that a view refers to was missing: catches up, and resolves to whether the view has moved on, so that the
   * query can run again. If it has not, the block is lost.
   */
  viewMovedOn(state: TableState): Promise<boolean>;
  /**
   * Returns a keeper for a state that was just given out to `loop`, to be released when the loop ends. Undefined if the state is held
   * already, or cannot be held.
   */
  keeperOf(state: TableState, loop: object): StateKeeper | undefined;
  /** Called with the read set of every query that is run, for hosts that need it. */
  queried?(shape: TableShape, read: QueryRead): void;
}
