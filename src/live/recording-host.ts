/** The host of one run of a watched query: all its reads are of one state, and it records them. */
import type { Environment } from '../base/env.ts';
import type { Engine } from '../engine/engine.ts';
import type { Bridge } from '../migration/bridge.ts';
import type { QueryHost, QueryTrace, QueryMemory, QueryRead } from '../query/planner/query-host.ts';
import type { RegisteredFunction } from '../schema/registered-functions.ts';
import { isSameShape } from '../schema/same-shape.ts';
import type { TableShape } from '../schema/table-shape.ts';
import type { PriceTable } from '../storage/prices.ts';
import type { TableState } from '../view/table-state.ts';

/** The instance while it runs. */
export interface LiveSource extends QueryHost {
  readonly engine: Engine;
  readonly bridge: Bridge;
}

export class RecordingHost implements QueryHost {
  readonly environment: Environment;
  readonly owner: object;
  readonly databaseId: string;
  readonly queryMemory: QueryMemory;
  readonly prices: PriceTable;
  readonly functions: ReadonlyMap<string, RegisteredFunction>;
  readonly reads: QueryRead[] = [];
  shape: TableShape | undefined;
  state: TableState | undefined;
  tail: number | undefined;
  /** Whether the rows of commits are those that queries return: the version that the instance uses is the active one. */
  isActiveVersion = false;
  /** For all reads of a run, so that no row expires between two of them. */
  expiryMs: number;
  readonly #source: LiveSource;
  readonly #isNewest: boolean;
  readonly #onState: (run: RecordingHost) => void;

  /** `isNewest`: the instance shows the newest state, for all that is known. `onState` is called when a run begins on a state. */
  constructor(source: LiveSource, isNewest: boolean, onState: (run: RecordingHost) => void) {
    this.#source = source;
    this.#isNewest = isNewest;
    this.#onState = onState;
    this.expiryMs = source.environment.now();
    this.environment = source.environment;
    this.owner = source.owner;
    this.databaseId = source.databaseId;
    this.queryMemory = source.queryMemory;
    this.prices = source.prices;
    this.functions = source.functions;
  }

  get kinds(): QueryHost['kinds'] {
    return this.#source.kinds;
  }

  get trace(): QueryTrace | undefined {
    return this.#source.trace;
  }

  get source(): object {
    return this.#source.source;
  }

  get searching(): QueryHost['searching'] {
    return this.#source.searching;
  }

  registeredShape(table: string): TableShape | undefined {
    return this.#source.registeredShape?.(table);
  }

  shapeOf(table: string): TableShape | undefined {
    return this.#source.shapeOf(table);
  }

  async tableState(table: string): Promise<TableState> {
    // Waits until the instance shows what others have committed, as every query does.
    if (!this.#isNewest) await this.#source.tableState(table);
    const { engine, bridge, environment } = this.#source;
    const { view } = engine;
    this.tail = view.tail;
    this.expiryMs = environment.now();
    this.reads.length = 0;
    this.#onState(this);
    this.state = await bridge.stateOf(view, table);
    const active = view.table(table);
    this.isActiveVersion = active === undefined || isSameShape(active.shape, this.state.shape);
    return this.state;
  }

  keeperOf(): undefined {
    return undefined;
  }

  viewMovedOn(state: TableState): Promise<boolean> {
    return this.#source.viewMovedOn(state);
  }

  queried(shape: TableShape, read: QueryRead): void {
    this.shape = shape;
    this.reads.push(read);
  }
}
