/** Snapshots: states of the database that can be read for as long as they are held. */
import { searching } from '../query/searching.ts';
import { isPromise } from '../base/brands.ts';
import { BlobReference } from '../blob/blob-reference.ts';
import type { BlobStore } from '../blob/blob-store.ts';
import type { HeldSnapshot } from '../maintenance/snapshots/held-snapshot.ts';
import type { Environment } from '../base/env.ts';
import type { KeyFor } from '../batch/batch.ts';
import { tableName } from '../schema/table-ref.ts';
import type { TableRef } from '../schema/table-ref.ts';
import { readBlobRecord } from '../maintenance/blob-record.ts';
import type { Instance } from '../instance/instance.ts';
import type { RowFor } from '../instance/trigger-api.ts';
import { Query } from '../query/query.ts';
import { byKey } from '../query/row-getter.ts';
import type { FieldKinds } from '../schema/field-kinds.ts';
import type { RegisteredFunction } from '../schema/registered-functions.ts';
import type { QueryHost, QueryTrace, QueryMemory } from '../query/planner/query-host.ts';
import { haveSameRows } from '../schema/same-shape.ts';
import type { TableShape } from '../schema/table-shape.ts';
import type { TableState } from '../view/table-state.ts';
import { BlockGone } from '../tree/block-source.ts';
import type { PriceTable } from '../storage/prices.ts';

/** The host of queries on a snapshot, which returns the same state every time. */
class SnapshotHost implements QueryHost {
  readonly environment: Environment;
  readonly #instance: Instance;
  readonly #held: HeldSnapshot;
  /** The time of the snapshot: rows that expire later are shown until its end. */
  readonly expiryMs: number;

  constructor(instance: Instance, held: HeldSnapshot, expiryMs: number) {
    this.environment = instance.environment;
    this.#instance = instance;
    this.#held = held;
    this.expiryMs = expiryMs;
  }

  get prices(): PriceTable {
    return this.#instance.prices;
  }

  get owner(): Instance {
    return this.#instance;
  }

  get trace(): QueryTrace | undefined {
    return this.#instance.trace;
  }

  get queryMemory(): QueryMemory {
    return this.#instance.queryMemory;
  }

  get source(): this {
    return this;
  }

  get databaseId(): string {
    return this.#instance.databaseId;
  }

  readonly searching: typeof searching = searching;

  registeredShape(table: string): TableShape | undefined {
    return this.#instance.registry.shape(table);
  }

  shapeOf(table: string): TableShape | undefined {
    const shape = this.#instance.registry.shape(table);
    const stored = this.#held.view.table(table)?.shape;
    // An index of the state may have been dropped, and another one added by its name: queries use those of the state.
    return stored !== undefined && shape !== undefined && haveSameRows(stored, shape) ? stored : shape;
  }

  get functions(): ReadonlyMap<string, RegisteredFunction> {
    return this.#instance.functions;
  }

  get kinds(): ReadonlyMap<string, FieldKinds> {
    return this.#instance.registry.kinds;
  }

  tableState(table: string): TableState | Promise<TableState> {
    this.#instance.running('A query');
    this.#held.check();
    const { view } = this.#held;
    const stored = view.table(table);
    if (stored !== undefined && stored.shape === this.shapeOf(table)) return stored;
    const state = this.#instance.bridge.stateOf(view, table);
    return isPromise(state) ? state.catch((error: unknown) => this.#refuse(error)) : state;
  }

  /** A block of the state can be missing only if the snapshot has ended. */
  #refuse(error: unknown): never {
    throw error instanceof BlockGone ? this.#held.lost() : error;
  }

  keeperOf(): undefined {
    return undefined;
  }

  viewMovedOn(): Promise<boolean> {
    return Promise.reject(this.#held.lost());
  }
}

/**
 * A snapshot, as returned by `db.snapshot()`: it shows everything that was committed before the call, and nothing after it. The instance
 * renews it as long as it is held, and the data that it shows cannot be deleted until then: release it, or declare it with
 * `await using`. After its end all calls reject with `SnapshotExpiredError`.
 */
export class Snapshot {
  readonly #held: HeldSnapshot;
  readonly #host: SnapshotHost;
  readonly #blobs: BlobStore;

  /** @internal Use `db.snapshot()`. */
  constructor(instance: Instance, held: HeldSnapshot, expiryMs: number) {
    this.#held = held;
    this.#host = new SnapshotHost(instance, held, expiryMs);
    this.#blobs = instance.blobs;
  }

  /** The id of the snapshot, as `db.snapshots()` lists it. */
  get id(): string {
    return this.#held.pin.id;
  }

  /** The generation of the database that it shows. */
  get generation(): number {
    return this.#held.pin.generation;
  }

  /** The time at which it was taken, by the clock of the instance that took it. */
  get createdAt(): Date {
    return new Date(this.#held.pin.createdMs);
  }

  /** Starts a query on the table in this state. The table is given by name or, for typed rows, by its schema definition. */
  query<T extends TableRef>(table: T): Query<RowFor<T>> {
    return new Query<RowFor<T>>(this.#host, tableName(table));
  }

  /** Returns the row with a primary key in this state; undefined if there was none. */
  async get<T extends TableRef>(table: T, primaryKey: KeyFor<T>): Promise<RowFor<T> | undefined> {
    const { shape } = await this.#host.tableState(tableName(table));
    return byKey(this.query(table), shape, primaryKey).first();
  }

  /** Returns a blob that a row of the snapshot refers to, even if the row was deleted since. */
  getBlob(reference: string): BlobReference {
    return new BlobReference(
      reference,
      () => this.#blobs,
      (id) => readBlobRecord(this.#host, id),
      () => this.#held.lost(),
    );
  }

  /** Ends the snapshot. The next `db.gc()` can delete the objects that only it needed. Calling it again changes nothing. */
  async release(): Promise<void> {
    await this.#held.release();
  }

  /** Releases the snapshot at the end of a block with `await using snapshot = await db.snapshot()`. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.release();
  }
}
