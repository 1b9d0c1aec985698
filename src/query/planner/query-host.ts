/** The parts of a database instance that a query uses, and the plans and sums that an instance remembers for its queries. */
import type { Environment } from '../../base/env.ts';
import type { Later } from '../../base/later.ts';
import type { RowSource } from '../../format/row-layout.ts';
import type { KeyRange } from '../../tree/cursor.ts';
import type { FieldKinds } from '../../schema/field-kinds.ts';
import type { RegisteredFunction } from '../../schema/registered-functions.ts';
import type { TableShape } from '../../schema/table-shape.ts';
import type { TableState } from '../../view/table-state.ts';
import type { PriceTable } from '../../storage/prices.ts';
import { ByteWriter } from '../../base/bytes.ts';
import type { BlockSource } from '../../tree/block-source.ts';
import type { SearchOptions, WrittenSearch } from '../conditions/search-options.ts';
import type { Condition } from '../conditions/condition.ts';
import type { CompiledQuery, Plan } from './access-paths.ts';

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

/** Tells of queries to those who listen. */
export interface QueryTrace {
  /** Whether anybody listens. If not, the other calls are left out. */
  readonly isWatched: boolean;
  /** Runs a query for those who listen from its beginning on; undefined if nobody does, and the caller runs it. */
  told<T>(table: string, run: () => Promise<T>): Promise<T> | undefined;
  /** Tells that the query that was begun last waits for more than memory. Returns the promise to use instead, if any. */
  waited<T>(result: Promise<T>): Promise<T> | undefined;
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
  /** Undefined: every row matches. May throw the error of a registered function. */
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
  /** The time at which rows that had expired are not shown; undefined: the present one. */
  readonly expiryMs?: number;
  /** The registered shape of a table; undefined while it is not registered. */
  shapeOf(table: string): TableShape | undefined;
  /** The shape of a table as it was registered, also with indexes that are not there yet. Absent: as {@link shapeOf} says. */
  registeredShape?(table: string): TableShape | undefined;
  /** Searches. Absent where there are no indexes on texts. */
  readonly searching?: Searching | undefined;
  /** The registered functions by name. */
  readonly functions: ReadonlyMap<string, RegisteredFunction>;
  /** The fields of each table that are more than their type. Absent: none. */
  readonly kinds?: ReadonlyMap<string, FieldKinds> | undefined;
  /**
   * The present state of a table, of one view, for the whole of a query: at once where the view is fresh enough.
   * Rejects with `NotStartedError` or `SchemaNotFoundError`.
   */
  tableState(table: string): TableState | Promise<TableState>;
  /**
   * Returns the state that a table most likely has, while {@link tableState} determines the present one. A query may begin with it, and
   * keep its result if the two are the same. Undefined if there is none.
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
  /** Returns the results of a query as `LiveResults`, for hosts whose queries can be watched. */
  watch?(query: WatchedQuery): object;
  /** Tells of queries, for hosts that do. */
  readonly trace?: QueryTrace | undefined;
  /** Called with the read set of every query that is run, for hosts that need it. */
  queried?(shape: TableShape, read: QueryRead): void;
}

/** The calls for searches. */
export interface Searching {
  /** The code that carries them out: the module `query/search-module.ts`. */
  readonly code: Later<object>;
  /** Checks the arguments of `query.search()` on a table. Throws `InvalidQueryError` or `InvalidOptionError`. */
  written(host: QueryHost, table: string, text: unknown, options: SearchOptions): WrittenSearch;
}

/** A query to watch. */
export interface WatchedQuery {
  /** Names the call in errors. */
  readonly callName: string;
  readonly table: string;
  /** Options that are not checked yet. */
  readonly options: { readonly signal?: AbortSignal };
  /** The result: `rows`, which their primary keys identify; `groups`, which `groupedBy` identifies; or one `value`. */
  readonly kind: 'rows' | 'groups' | 'value';
  readonly groupedBy: readonly string[];
  readonly asked: {
    /** The fields of the rows that the caller gets; undefined: all. */
    readonly fields: readonly string[] | undefined;
    readonly orders: readonly { readonly name: string; readonly direction: 'asc' | 'desc' }[];
    readonly limit: number | undefined;
    readonly offset: number;
    /** Without orders, it decides which rows come first. */
    readonly search?: WrittenSearch | undefined;
  };
  /** Runs the query on a host, for rows with these fields. Resolves to rows, groups or the value. */
  run(host: QueryHost, fields: readonly string[] | undefined): Promise<unknown>;
}

/** A query with its plan, and when it was planned. */
export interface KnownPlan {
  readonly query: CompiledQuery;
  readonly plan: Plan;
  /** The turnover of the cache when the plan was made. */
  readonly turnover: number;
  /** Its conditions that leave out rows which had expired by then. */
  readonly unexpired: readonly Condition[];
}

/** Plans that are remembered of a state. When there are more, all of them are forgotten. */
const maxPlans = 64;

export class QueryMemory {
  /** A writer for the key of one look-up. A look-up that must wait copies the key. */
  readonly key: ByteWriter = new ByteWriter(64);
  readonly #plans = new WeakMap<TableState, Map<string, KnownPlan>>();
  readonly #deferredMicros = new WeakMap<BlockSource, Map<string, number>>();

  /** Returns the plan that was made for a query with these words on a state of its table. */
  planOf(state: TableState, words: string): KnownPlan | undefined {
    return this.#plans.get(state)?.get(words);
  }

  /** Remembers the plan of a query with these words on a state of its table. */
  remember(state: TableState, words: string, planned: KnownPlan): void {
    let plans = this.#plans.get(state);
    if (plans === undefined) {
      plans = new Map();
      this.#plans.set(state, plans);
    } else if (plans.size >= maxPlans && !plans.has(words)) plans.clear();
    plans.set(words, planned);
  }

  /** Returns the microseconds lost by deferred reads on a tree, by the table and the index that the plans did not read. */
  deferredMicros(source: BlockSource): Map<string, number> {
    let byIndex = this.#deferredMicros.get(source);
    if (byIndex === undefined) {
      byIndex = new Map();
      this.#deferredMicros.set(source, byIndex);
    }
    return byIndex;
  }
}
