/**
 * Deletes rows that have expired, in the turns of this node, in commits of at most {@link maxRows} rows.
 *
 * Invariants:
 * - A row is deleted only if it has been expired for {@link clockBoundMs} by the clock of this machine, and by that of the store where
 *   the store tells its time. So a clock that is less than that ahead deletes nothing early.
 * - A commit deletes only rows that have expired in the state that it follows: a row that another commit gave a later time stays.
 */
import type { Environment } from '../base/env.ts';
import type { Logger } from '../base/logger.ts';
import type { Role } from '../coordination/membership.ts';
import type { Engine } from '../engine/engine.ts';
import type { CommitMember } from '../format/commit.ts';
import type { BridgedTable } from '../migration/bridge.ts';
import { ChunkWork } from '../migration/chunk-work.ts';
import type { Step } from '../migration/chunk-work.ts';
import { RowsByExpiry } from '../query/rows-by-expiry.ts';
import type { PriceTable } from '../storage/prices.ts';
import { isSameShape } from '../schema/same-shape.ts';
import type { KeyValue, TableShape } from '../schema/table-shape.ts';
import type { TableState } from '../view/table-state.ts';
import type { View } from '../view/view.ts';
import { makeMember } from './make-member.ts';
import type { FlushContext } from './flush.ts';
import { TableOperations } from './table-operations.ts';

/** How far ahead a clock may be, in milliseconds, before a row is deleted early: rows stay for so long after they have expired. */
export const clockBoundMs = 300_000;
/** The most rows that one commit deletes. */
export const maxRows = 1000;
/** How long a table that had no row to delete is left alone, in milliseconds. */
const restMs = 60_000;

export interface ExpiredRowsOptions {
  readonly environment: Environment;
  readonly logger: Logger;
  readonly engine: Engine;
  readonly flushing: FlushContext;
  readonly prices: PriceTable;
  readonly role: Role;
  readonly intervalMs: number;
  /** The shape of a table that is registered; undefined if it is not. */
  readonly shapeOf: (table: string) => TableShape | undefined;
}

/** The last look at a table. */
interface Known {
  /** The state that was looked at. */
  readonly state: TableState;
  /** When its next row can be deleted, unless the state has changed. */
  readonly dueMs: number;
  /** When it was looked at. */
  readonly lookedMs: number;
}

export class ExpiredRows {
  readonly #options: ExpiredRowsOptions;
  readonly #chunks: ChunkWork;
  readonly #known = new Map<string, Known>();

  constructor(options: ExpiredRowsOptions) {
    this.#options = options;
    this.#chunks = new ChunkWork(options, {
      name: 'Deleting expired rows',
      maxRows,
      delayMs: (atOnce) => (this.#due().length === 0 ? undefined : this.#chunks.untilTurn(atOnce)),
      work: async () => {
        for (const table of this.#due()) await this.#chunks.repeat(() => this.#step(table));
      },
    });
  }

  /** Looks for work: the log was read. */
  look(): void {
    if (this.#due().length > 0) this.#chunks.look();
  }

  stop(): void {
    this.#chunks.stop();
  }

  /** The time by which rows are deleted that have expired. */
  get #deletionMs(): number {
    const { environment, engine } = this.#options;
    return Math.min(environment.now(), engine.clock.now()) - clockBoundMs;
  }

  /** The tables that may have rows to delete. */
  #due(): string[] {
    const { engine, environment } = this.#options;
    const { view } = engine;
    const names: string[] = [];
    for (const [name, state] of view.tables) {
      if (!this.#isMeant(view, state)) continue;
      const known = this.#known.get(name);
      const isNew =
        known === undefined || (known.state !== state && environment.monotonicMs() - known.lookedMs >= restMs);
      if (isNew || known.dueMs <= this.#deletionMs) names.push(name);
    }
    return names;
  }

  /** Whether rows of a table expire, in the only version of it that is stored, and in that of this instance if it has one. */
  #isMeant(view: View, { shape }: TableState): boolean {
    if (shape.expiry === undefined || view.nextVersion(shape.name) !== undefined) return false;
    const known = this.#options.shapeOf(shape.name);
    return known === undefined || isSameShape(known, shape);
  }

  /** Deletes the next rows of a table, if it is the turn of this node. */
  async #step(table: string): Promise<Step> {
    const { engine, environment, logger } = this.#options;
    const { view } = engine;
    const state = view.table(table);
    if (state === undefined || !this.#isMeant(view, state) || !this.#chunks.isOwnTurn()) return 'nothing';
    const nowMs = this.#deletionMs;
    const stored = this.#rowsOf(state);
    const keys = await stored.keys({ untilMs: nowMs, limit: maxRows });
    if (keys.length === 0) {
      this.#known.set(table, { state, dueMs: await stored.nextMs(), lookedMs: environment.monotonicMs() });
      return 'nothing';
    }
    let rows = 0;
    await engine.append({
      signal: engine.stopping,
      sizeBytes: keys.length * 64,
      prepare: async (present) => {
        const list = await this.#deletions(present, table, keys, nowMs);
        rows = list?.count ?? 0;
        return list === undefined || rows === 0 ? { changes: [] } : this.#member(present, list);
      },
    });
    const tell = (): void => logger.debug(`${rows} expired rows of table ${table} were deleted`, { table, rows });
    return { rows: keys.length, isSized: false, tell };
  }

  #rowsOf(state: TableState): RowsByExpiry {
    const { environment, engine, prices } = this.#options;
    const { databaseId } = engine.view.block0;
    const viewMovedOn = (): Promise<boolean> => Promise.resolve(false);
    return new RowsByExpiry({ environment, prices, databaseId, state: () => state, viewMovedOn });
  }

  /** Returns the deletions of those rows that have still expired in a view; undefined where the table takes none now. */
  async #deletions(
    view: View,
    table: string,
    keys: readonly unknown[],
    nowMs: number,
  ): Promise<TableOperations | undefined> {
    const state = view.table(table);
    if (state === undefined || !this.#isMeant(view, state)) return undefined;
    const { shape } = state;
    const list = new TableOperations(shape, this.#options.environment);
    for (const value of keys) {
      const key = shape.keyBytes(value as KeyValue);
      const row = await state.lookup(key);
      if (row !== undefined && shape.isExpired(row, nowMs)) list.addExpiry(key);
    }
    return list;
  }

  #member(view: View, list: TableOperations): Promise<CommitMember> {
    const tableOf = async ({ shape: { name } }: TableOperations): Promise<BridgedTable> => {
      const { bridge } = this.#options.flushing;
      const state = view.table(name);
      // The table may not be registered here.
      if (state?.shape !== list.shape) return bridge.writableTable(view, name);
      return { state, isWhole: true, isSole: true, active: undefined, checked: [] };
    };
    return makeMember([list], new Map(), tableOf, { ...this.#options.flushing, slot: view.tail + 1 });
  }
}
