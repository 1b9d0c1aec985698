/** What a query needs of the database that it runs in. */
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
   * The state with the overlay's writes on top; the same state if it has none for this table. What that takes to be read
   * is read through `through`, if it is given.
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

/** What a query can have seen: rows with certain keys, or in a range of them, and of those the ones that match. */
export interface QueryRead {
  /** Undefined: any key. */
  readonly keys: readonly Uint8Array[] | undefined;
  readonly range: KeyRange | undefined;
  /** Undefined: every row matches. May throw what a registered function throws. */
  readonly matches: ((source: RowSource, base: number) => boolean) | undefined;
}

export interface QueryHost {
  readonly environment: Environment;
  /** The database instance that all of this belongs to: what another one made is refused. */
  readonly owner: object;
  /** What queries read: the owner, a snapshot or a transaction. */
  readonly source: object;
  /** The id of the database: bookmarks of another one are refused. Throws `NotStartedError`. */
  readonly databaseId: string;
  /** What the instance remembers for its queries. */
  readonly queryMemory: QueryMemory;
  /** What requests cost. */
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
   * What can hold on to a state that was just given out, for `loop`: it must be released when that ends. Undefined where the state is
   * held already, or cannot be.
   */
  keeperOf(state: TableState, loop: object): StateKeeper | undefined;
  /** Told of every query that is run, by hosts that must know what was read. */
  queried?(shape: TableShape, read: QueryRead): void;
}
