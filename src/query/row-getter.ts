/**
 * `db.get()`: the row with a primary key, without a promise more than is handed out where its block is in memory; and
 * `db.getCached()`, without any.
 */
import { isPromise } from '../base/brands.ts';
import { ByteWriter } from '../base/bytes.ts';
import { normalizeKey } from '../schema/table-shape.ts';
import type { TableShape } from '../schema/table-shape.ts';
import { FieldProblem } from '../format/row-encode.ts';
import type { QueryHost } from './planner/query-host.ts';
import { isHidden } from './planner/query-spec.ts';
import type { TableState } from '../view/table-state.ts';
import { BlockGone } from '../tree/block-source.ts';
import type { RowRef } from '../tree/tree.ts';
import { Query } from './query.ts';
import type { Row } from './operators/executor.ts';
import { runSpeculatively } from './run-on-state.ts';

/** Adds the condition that a row has a primary key, which is an array of values for a key of several fields. */
export function byKey<R extends object>(query: Query<R>, { keyNames }: TableShape, primaryKey: unknown): Query<R> {
  return (query as Query<object> as Query).where(keyNames as string, '=', primaryKey) as Query<object> as Query<R>;
}

export class RowGetter {
  readonly #host: QueryHost;
  readonly #key = new ByteWriter(64);

  constructor(host: QueryHost) {
    this.#host = host;
  }

  /** May throw instead of rejecting. */
  get(table: string, primaryKey: unknown): Promise<Row | undefined> {
    const state = this.#host.tableState(table);
    if (!isPromise(state)) return this.#getIn(state, primaryKey);
    const early = this.#host.earlyState?.(table);
    const get = (from: TableState): Promise<Row | undefined> => this.#getIn(from, primaryKey);
    return early === undefined ? state.then(get) : runSpeculatively(early, state, get);
  }

  #getIn(state: TableState, primaryKey: unknown): Promise<Row | undefined> {
    const { shape } = state;
    const key = this.#key;
    if (!this.#writeKey(shape, primaryKey)) {
      // A query finds out whether the value is only out of range or of another kind.
      return byKey(new Query(this.#host, shape.name), shape, primaryKey).first();
    }
    const found = state.lookup(key.bytes, key.length);
    if (isPromise(found)) return this.#getSlowly(state, found, key.finish());
    return Promise.resolve(this.#decoded(shape, found));
  }

  /** Returns the row with a key in a state; null if there is none, and undefined if that is not known from memory. Reads nothing. */
  getCached(state: TableState | undefined, primaryKey: unknown): Row | null | undefined {
    if (state === undefined) return undefined;
    const { shape } = state;
    const key = this.#key;
    if (!this.#writeKey(shape, primaryKey)) return undefined;
    const found = state.lookupCached(key.bytes, key.length);
    if (found === undefined || found === null) return found;
    if (shape.expiry !== undefined && isHidden(this.#host, shape, found)) return null;
    return shape.decoder.decode(found.source, found.base);
  }

  /** Writes the key of a row. Returns false if no key can have the value. */
  #writeKey(shape: TableShape, primaryKey: unknown): boolean {
    this.#key.length = 0;
    try {
      shape.writeKey(this.#key, normalizeKey(shape, primaryKey));
      return true;
    } catch (error) {
      if (!(error instanceof FieldProblem)) throw error;
      return false;
    }
  }

  #decoded(shape: TableShape, row: RowRef | undefined): Row | undefined {
    if (row === undefined || (shape.expiry !== undefined && isHidden(this.#host, shape, row))) return undefined;
    return shape.decoder.decode(row.source, row.base);
  }

  async #getSlowly(state: TableState, first: Promise<RowRef | undefined>, key: Uint8Array): Promise<Row | undefined> {
    let found = first;
    for (let present = state; ; ) {
      try {
        return this.#decoded(present.shape, await found);
      } catch (error) {
        if (!(error instanceof BlockGone) || !(await this.#host.viewMovedOn(present))) throw error;
        present = await this.#host.tableState(present.shape.name);
        found = Promise.resolve(present.lookup(key));
      }
    }
  }
}
