/** The rows of a state by the time at which they expire, those that have expired among them. */
import type { Environment } from '../base/env.ts';
import { Types } from '../format/types.ts';
import { keyOfDocument } from '../schema/key-documents.ts';
import type { TableShape } from '../schema/table-shape.ts';
import type { PriceTable } from '../storage/prices.ts';
import type { TableState } from '../view/table-state.ts';
import { QueryMemory } from './planner/query-host.ts';
import type { QueryHost } from './planner/query-host.ts';
import { Query } from './query.ts';

/** The instance, for queries that go on where a block is gone. */
export interface ExpirySource {
  readonly environment: Environment;
  readonly prices: PriceTable;
  readonly databaseId: string;
  /** Returns the state to read: another one after {@link viewMovedOn}. */
  state(): TableState | Promise<TableState>;
  viewMovedOn(state: TableState): Promise<boolean>;
}

type AnyQuery = Query<Record<string, unknown>>;

/** Rows of one table. Nothing but the index of the field is read. */
export class RowsByExpiry {
  readonly #source: ExpirySource;

  constructor(source: ExpirySource) {
    this.#source = source;
  }

  /** Returns the primary keys of the first rows that expire up to a time, and after another one; at most `limit`. */
  async keys({ afterMs, untilMs, limit }: { afterMs?: number; untilMs: number; limit: number }): Promise<unknown[]> {
    const { shape, query } = await this.#query(afterMs);
    const { expiry } = shape;
    if (expiry === undefined) return [];
    const { name } = expiry.field;
    const rows = await query
      .where(name, '<=', valueOf(shape, untilMs))
      .orderBy(name)
      .limit(limit)
      .select(...shape.keyFields.map((field) => field.name))
      .execute();
    return rows.map((row) => keyOfDocument(shape, row));
  }

  /** Returns the time at which the first row expires, or the first one after a time; infinite if there is none. */
  async nextMs(afterMs?: number): Promise<number> {
    const { shape, query } = await this.#query(afterMs);
    const { expiry } = shape;
    if (expiry === undefined) return Number.POSITIVE_INFINITY;
    const { name } = expiry.field;
    const [first] = await query.where(name, '!=', null).orderBy(name).limit(1).select(name).execute();
    return first === undefined ? Number.POSITIVE_INFINITY : Number(first[name]) + expiry.afterMs;
  }

  async #query(afterMs: number | undefined): Promise<{ shape: TableShape; query: AnyQuery }> {
    const { environment, prices, databaseId } = this.#source;
    const { shape } = await this.#source.state();
    const host: QueryHost = {
      environment,
      prices,
      databaseId,
      owner: this,
      source: this,
      queryMemory: new QueryMemory(),
      expiryMs: Number.NEGATIVE_INFINITY,
      functions: new Map(),
      shapeOf: () => shape,
      tableState: () => this.#source.state(),
      viewMovedOn: (state) => this.#source.viewMovedOn(state),
      keeperOf: () => undefined,
    };
    const query: AnyQuery = new Query(host, shape.name);
    if (afterMs === undefined || shape.expiry === undefined) return { shape, query };
    return { shape, query: query.where(shape.expiry.field.name, '>', valueOf(shape, afterMs)) };
  }
}

/** The value of the field in rows that expire at a time. */
function valueOf({ expiry }: TableShape, expiryMs: number): Date | number {
  const ms = expiryMs - (expiry?.afterMs ?? 0);
  return expiry?.field.typeId === Types.timestamp ? new Date(ms) : ms;
}
