/** The `dbApi` of triggers, and the type of the rows that they receive. */
import type { Batch, KeyFor } from '../batch/batch.ts';
import { tableName } from '../schema/table-ref.ts';
import type { TableRef } from '../schema/table-ref.ts';
import type { BlobValue } from '../blob/blob-value.ts';
import type { Types } from '../format/types.ts';
import { Query } from '../query/query.ts';
import { byKey } from '../query/row-getter.ts';
import type { QueryHost } from '../query/planner/query-host.ts';
import type { RowOf, SchemaDefinition } from '../schema/schema.ts';
import type { TableShape } from '../schema/table-shape.ts';

/** The rows of a table: typed where it is given by its schema definition. */
export type RowFor<T extends TableRef> = T extends SchemaDefinition ? RowOf<T> : Record<string, unknown>;

/** The row that a trigger gets: a blob field holds the result of `db.Blob()` while the blob is new. */
export type TriggerRow<T extends TableRef> = T extends SchemaDefinition
  ? {
      [F in keyof RowOf<T>]:
        | RowOf<T>[F]
        | (T['fields'][F & string]['typeId'] extends typeof Types.blob ? BlobValue : never);
    }
  : Record<string, unknown>;

/** The `dbApi` of a trigger: reads the database with the writes of the batch that the trigger fires in on top. */
export class TriggerApi {
  readonly #host: QueryHost;
  readonly #requireShape: (table: string) => TableShape;
  readonly #batch: Batch;

  /** @internal Triggers are given one. */
  constructor(host: QueryHost, requireShape: (table: string) => TableShape, batch: Batch) {
    this.#host = host;
    this.#requireShape = requireShape;
    this.#batch = batch;
  }

  /** A query that sees the batch's own writes. */
  query<T extends TableRef>(table: T): Query<RowFor<T>> {
    this.#batch.checkOpen();
    return new Query<RowFor<T>>(this.#host, tableName(table)).overlay(this.#batch);
  }

  /** The row with a primary key, the batch's own writes included; undefined if there is none. */
  async get<T extends TableRef>(table: T, primaryKey: KeyFor<T>): Promise<RowFor<T> | undefined> {
    const shape = this.#requireShape(tableName(table));
    return byKey(this.query(table), shape, primaryKey).first();
  }
}
