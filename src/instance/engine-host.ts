/**
 * The calls of an instance from one `start()` to the next `stop()`: they read and write through the engine of that time.
 *
 * Invariants:
 * - A call is let in while the instance runs. One that was let in goes on when the instance is being stopped: `stop()` waits for
 *   flushes and transactions, and only then is the engine closed.
 * - After that nothing reads or writes through this host any more.
 */
import { searching } from '../query/searching.ts';
import { withinDeadline, newAbortController, untilAborted } from '../base/abort.ts';
import type { SignalPool } from '../base/abort.ts';
import { messageOf } from '../base/brands.ts';
import type { Environment } from '../base/env.ts';
import {
  DeadlineExceededError,
  InvalidOptionError,
  NotStartedError,
  NotSupportedError,
  ReadOnlyError,
} from '../base/errors.ts';
import { Later } from '../base/later.ts';
import type { Logger } from '../base/logger.ts';
import type { Batch, BatchHost, FlushOptions } from '../batch/batch.ts';
import { ChannelTrace } from './query-trace.ts';
import type { ExpiredRows } from '../batch/expired-rows.ts';
import type { DropTableOptions } from '../batch/drop-table.ts';
import type { CommitGuard, FlushContext } from '../batch/flush.ts';
import type { OperationSet } from '../batch/operation-set.ts';
import type { BlobStore } from '../blob/blob-store.ts';
import type { HeldSnapshot, HeldSnapshots } from '../maintenance/snapshots/held-snapshot.ts';
import { StateKeepers } from '../maintenance/snapshots/state-keepers.ts';
import type { Engine, PinnedView } from '../engine/engine.ts';
import type { LoadOptions, LoadReport, ThreadCount } from '../load/load.ts';
import type { UnfinishedLoad } from '../load/unfinished.ts';
import type { CommitRef } from '../log/commit-outcome.ts';
import { StaleReads } from '../engine/stale-reads.ts';
import type { Bridge } from '../migration/bridge.ts';
import type { CheckedOptions } from './options.ts';
import type { StorageDriver } from '../storage/contract/driver.ts';
import type { PriceTable } from '../storage/prices.ts';
import type { QueryHost, StateKeeper, QueryMemory } from '../query/planner/query-host.ts';
import type { Registry } from '../catalog/registry.ts';
import { advised } from '../schema/field-kinds.ts';
import { firesFor } from '../schema/registered-functions.ts';
import { isSameShape } from '../schema/same-shape.ts';
import type { TableShape } from '../schema/table-shape.ts';
import { prepareToWrite } from '../schema/text-indexes.ts';
import type { TableState } from '../view/table-state.ts';
import { hasExpiry, View } from '../view/view.ts';
import { TriggerApi } from './trigger-api.ts';

const flushing = new Later('flushes', () => import('../batch/flush.ts'));
const expiring = new Later('deleting expired rows', () => import('../batch/expired-rows.ts'));
const loading = new Later('loads', () => import('../load/load.ts'));
const unfinished = new Later('unfinished loads', () => import('../load/unfinished.ts'));
const dropping = new Later('drops of tables', () => import('../batch/drop-table.ts'));

/** The pin of a state that a long loop holds counts as abandoned if it is not renewed for so long, in milliseconds. */
const loopPinMs = 600_000;
/** How long `stop()` waits for flushes and transactions before they are refused, in milliseconds. */
export const stopTimeoutMs = 60_000;

/** The parts of an instance that its host uses. */
export interface EngineHostParts {
  readonly environment: Environment;
  readonly owner: object;
  readonly queryMemory: QueryMemory;
  readonly options: CheckedOptions;
  readonly logger: Logger;
  readonly driver: StorageDriver;
  readonly registry: Registry;
  readonly bridge: Bridge;
  readonly blobs: BlobStore;
  readonly held: HeldSnapshots;
  readonly signals: SignalPool;
  readonly maxCommitBytes: number;
}

export class EngineHost implements BatchHost, QueryHost {
  readonly searching: typeof searching = searching;
  readonly environment: Environment;
  readonly owner: object;
  readonly queryMemory: QueryMemory;
  readonly engine: Engine;
  readonly bridge: Bridge;
  readonly registry: Registry;
  readonly functions: Registry['functions'];
  readonly kinds: Registry['kinds'];
  readonly blobs: BlobStore;
  readonly trace: ChannelTrace;
  readonly #parts: EngineHostParts;
  /** Flushes and transactions that `stop()` waits for. */
  readonly #underWay = new Set<Promise<unknown>>();
  /** Aborted when the instance is being stopped. */
  readonly #ending = newAbortController();
  readonly #staleReads: StaleReads;
  readonly #keepers: StateKeepers;
  readonly #flushing: FlushContext;
  readonly #loadThreads: ThreadCount = { running: 0 };
  #expired: ExpiredRows | undefined;
  #hasEnded = false;

  constructor(engine: Engine, parts: EngineHostParts) {
    const { environment, logger, options } = parts;
    this.#staleReads = new StaleReads({ environment, logger, engine, maxWaitMs: options.maxStaleWaitMs });
    this.#keepers = new StateKeepers({
      environment,
      logger,
      generation: () => engine.view.block0.generation,
      pin: (view) => this.hold('A query', this.#pinned(view), loopPinMs),
      inBackground: (work) => void engine.whileRunning(work),
    });
    this.engine = engine;
    this.trace = new ChannelTrace(engine.prefix);
    this.environment = parts.environment;
    this.owner = parts.owner;
    this.queryMemory = parts.queryMemory;
    this.bridge = parts.bridge;
    this.registry = parts.registry;
    this.functions = parts.registry.functions;
    this.kinds = parts.registry.kinds;
    this.blobs = parts.blobs;
    this.#parts = parts;
    const { bridge, blobs, driver, maxCommitBytes, signals } = parts;
    const { blockSizeBytes, dbPrefix: prefix } = options;
    const place = { driver, prefix, blockSizeBytes, maxCommitBytes };
    const validatorOf: FlushContext['validatorOf'] = (shape) => parts.registry.validator(shape);
    this.#flushing = {
      environment,
      engine,
      bridge,
      blobs,
      ...place,
      signals,
      validatorOf,
      ending: this.#ending.signal,
      dropped: parts.registry.dropped,
    };
  }

  get source(): object {
    return this.owner;
  }

  /** Begins to delete rows that have expired, in the background, where tables have any. */
  expireRows(): void {
    const { engine } = this;
    const { writeForwardInterval: intervalMs } = this.#parts.options;
    let lookedMs = Number.NEGATIVE_INFINITY;
    const look = (): void => {
      const nowMs = this.environment.monotonicMs();
      if (this.#hasEnded || nowMs - lookedMs < intervalMs / 2) return;
      lookedMs = nowMs;
      if (this.#expired !== undefined) this.#expired.look();
      else if (hasExpiry(engine.view)) this.#beginToExpire();
    };
    engine.events.viewChanged.on(look);
    engine.events.looked.on(look);
    look();
  }

  #beginToExpire(): void {
    const { environment, engine } = this;
    const { logger, options } = this.#parts;
    const begin = async (): Promise<void> => {
      const { ExpiredRows: Rows } = expiring.loaded ?? (await expiring.load());
      if (this.#hasEnded) return;
      const { role, prices, writeForwardInterval: intervalMs } = options;
      const place = { environment, engine, logger, flushing: this.#flushing };
      this.#expired ??= new Rows({ ...place, role, prices, intervalMs, shapeOf: (table) => this.shapeOf(table) });
      this.#expired.look();
    };
    begin().catch((error: unknown) => logger.error(`Expired rows are not deleted: ${messageOf(error)}`));
  }

  get prices(): PriceTable {
    return this.#parts.options.prices;
  }

  get databaseId(): string {
    return this.engine.view.block0.databaseId;
  }

  admit(callName: string): this {
    if (this.#hasEnded) throw new NotStartedError(callName);
    return this;
  }

  waitFor(work: Promise<unknown>): void {
    const ended: Promise<unknown> = work.catch(() => undefined).finally(() => this.#underWay.delete(ended));
    this.#underWay.add(ended);
  }

  /**
   * Waits for the flushes and transactions that were let in, and refuses all that comes after them. Rejects with
   * `DeadlineExceededError` where one of them does not end.
   */
  async end(): Promise<void> {
    const allEnded = async (): Promise<void> => {
      // A transaction that is waited for may begin a flush.
      while (this.#underWay.size > 0) await Promise.all(this.#underWay);
    };
    this.#ending.abort();
    this.#expired?.stop();
    try {
      if (this.#underWay.size === 0) return;
      await withinDeadline(this.environment, 'db.stop()', stopTimeoutMs, undefined, ({ signal }) =>
        untilAborted(allEnded(), signal),
      );
    } catch (error) {
      throw new DeadlineExceededError(
        `db.stop() waited ${stopTimeoutMs / 1000} s for flushes and transactions that were called before it, and ` +
          `${this.#underWay.size} of them have not ended. They are refused now. (A function or trigger that awaits stop() ` +
          'waits for itself.)',
        { cause: error },
      );
    } finally {
      this.#hasEnded = true;
      this.#keepers.end();
    }
  }

  registeredShape(table: string): TableShape | undefined {
    return this.registry.shape(table);
  }

  shapeOf(table: string): TableShape | undefined {
    const shape = this.registry.shape(table);
    // If the two shapes are equal, the view's own one: the plans of its states are compiled for that object.
    const stored = this.engine.view.table(table)?.shape;
    return stored !== undefined && shape !== undefined && isSameShape(stored, shape) ? stored : shape;
  }

  tableState(table: string): TableState | Promise<TableState> {
    const { engine } = this.admit('A query');
    engine.asked();
    if (!engine.isStale) return this.bridge.presentState(engine, table);
    return this.#staleReads.freshen().then(() => this.bridge.presentState(engine, table));
  }

  /** Returns the present state of a table if it is known without a request or a promise, else undefined. */
  stateInMemory(table: string): TableState | undefined {
    const { engine } = this.admit('db.getCached()');
    const state = this.bridge.stateInMemory(engine.view, table);
    engine.asked();
    return engine.isStale ? undefined : state;
  }

  earlyState(table: string): TableState | undefined {
    if (!this.engine.isLooking) return undefined;
    const stored = this.engine.view.table(table);
    return stored?.shape === this.shapeOf(table) ? stored : undefined;
  }

  keeperOf(state: TableState, loop: object): StateKeeper | undefined {
    const { view } = this.engine;
    // A replica cannot pin a state. Nor can a state from before a merge be pinned, since the present view has another Block 0; a
    // state from before later commits can, since the view has the same Block 0.
    if (this.#hasEnded || this.#parts.options.role === 'replica') return undefined;
    return this.bridge.isOutdated(state, view) ? undefined : this.#keepers.keep(view, loop);
  }

  /** Keeps the state of a view for a feed of changes; undefined on a replica, which cannot. */
  keeperOfView(view: View, feed: object): StateKeeper | undefined {
    if (this.#hasEnded || this.#parts.options.role === 'replica') return undefined;
    return this.#keepers.keep(view, feed);
  }

  async #pinned(view: View, readsLog: boolean = view.readsLog): Promise<PinnedView> {
    return { pin: await this.engine.pins.pin({ block0: view.block0, readsLog }, loopPinMs), view };
  }

  /** Makes every loop of this instance that is under way hold on to its state. */
  holdLoops(): Promise<void> {
    return this.#keepers.holdAll();
  }

  /** Holds a state that is being pinned. If the instance is stopped meanwhile, the pin is released, and stopping waits for that. */
  hold(callName: string, pinning: Promise<PinnedView>, timeToLiveMs: number): Promise<HeldSnapshot> {
    const { engine } = this;
    const hold = async (): Promise<HeldSnapshot> => {
      const held = this.#parts.held.hold(engine.pins, await pinning, timeToLiveMs);
      if (!this.#hasEnded) return held;
      await held.release();
      throw new NotStartedError(callName);
    };
    return engine.whileRunning(hold());
  }

  async viewMovedOn(state: TableState): Promise<boolean> {
    const { engine } = this.admit('A query');
    await engine.refresh();
    return this.bridge.isOutdated(state, engine.view);
  }

  writableShape(table: string): TableShape {
    return this.registry.writableShape(table);
  }

  triggers(table: string): ReturnType<Registry['triggers']> {
    return this.registry.triggers(table);
  }

  triggerApi(batch: Batch): TriggerApi {
    return new TriggerApi(this, (table) => this.registry.requireShape(table), batch);
  }

  async commit(operations: OperationSet, options: FlushOptions, check: () => void, guard?: CommitGuard): Promise<void> {
    const callName = guard?.callName ?? 'batch.flush()';
    const { engine } = this.admit(callName);
    if (this.#parts.options.role === 'replica') throw new ReadOnlyError(callName);
    engine.register.checkNotReplaced();
    const run = async (): Promise<void> => {
      const { Flush } = flushing.loaded ?? (await flushing.load());
      await new Flush(this.#flushing, { callName, operations, signal: options.signal, check, guard }).run();
    };
    // Closing the engine waits for this, uploads included: otherwise the next engine could miss a flush that is acknowledged after it
    // has started.
    await engine.whileRunning(run());
    await engine.afterCommit(options.signal);
  }

  /** Loads rows into a table as one commit. */
  async load(table: string, source: unknown, given: LoadOptions): Promise<LoadReport> {
    const callName = 'db.load()';
    const { engine } = this.admit(callName);
    const { Load, loadOptions } = loading.loaded ?? (await loading.load());
    const options = loadOptions.check(callName, given);
    if (this.#parts.options.role === 'replica') throw new ReadOnlyError(callName);
    engine.register.checkNotReplaced();
    const shape = this.writableShape(table);
    if (this.triggers(table).some((trigger) => firesFor(trigger, 'insert'))) {
      throw new NotSupportedError(
        `${callName} cannot load into table '${table}', which has triggers for inserts here: they add changes to a batch, and a load has ` +
          'none. Nothing was written: use batches, or load through an instance without these triggers.',
      );
    }
    await prepareToWrite(shape);
    const { logger } = this.#parts;
    const pinLog = ({ block0 }: View): Promise<HeldSnapshot> =>
      this.hold(callName, this.#pinned(View.ofBlock0(engine.context, block0), true), loopPinMs);
    const threads = this.#loadThreads;
    const load = new Load(this.#flushing, { shape, source, options, logger, pinLog, threads });
    const run = engine.whileRunning(load.run());
    this.waitFor(run);
    const report = await run.catch((error: unknown): never => {
      throw advised(error, this.kinds);
    });
    await engine.afterCommit(options.signal);
    return report;
  }

  /** Lists the loads that can be resumed. */
  async unfinishedLoads(signal: AbortSignal | undefined): Promise<UnfinishedLoad[]> {
    const callName = 'db.unfinishedLoads()';
    const { engine } = this.admit(callName);
    const { listLoads } = unfinished.loaded ?? (await unfinished.load());
    return engine.withDeadline(callName, signal, ({ signal: inner }) => listLoads(engine, inner));
  }

  /** Gives a load up. False if there is none with this name. */
  async discardLoad(name: string, given: AbortSignal | undefined): Promise<boolean> {
    const callName = 'db.discardLoad()';
    const { engine } = this.admit(callName);
    const { logger, options } = this.#parts;
    if (options.role === 'replica') throw new ReadOnlyError(callName);
    engine.register.checkNotReplaced();
    const { discardLoad } = unfinished.loaded ?? (await unfinished.load());
    const discarding = engine.withDeadline(callName, given, ({ signal }) =>
      discardLoad(this.#flushing, name, { callName, logger, signal }),
    );
    return engine.whileRunning(discarding);
  }

  /** Drops a table. Resolves to whether there was one. */
  async dropTable(table: string, given: DropTableOptions): Promise<boolean> {
    const callName = 'db.dropTable()';
    const { engine } = this.admit(callName);
    const { dropTable, dropTableOptions } = dropping.loaded ?? (await dropping.load());
    const options = dropTableOptions.check(callName, given);
    if (this.#parts.options.role === 'replica') throw new ReadOnlyError(callName);
    engine.register.checkNotReplaced();
    const run = engine.whileRunning(dropTable(this.#flushing, table, options));
    this.waitFor(run);
    const found = await run;
    await engine.afterCommit(options.signal);
    return found;
  }

  async resolveCommit(commit: CommitRef, options: FlushOptions, callName: string = 'batch.flush()'): Promise<boolean> {
    const { engine, databaseId: own } = this.admit(callName);
    const { commitId, slot, databaseId } = commit;
    if (databaseId !== undefined && databaseId !== own) {
      throw new InvalidOptionError(
        'commit',
        `${callName} was asked for commit ${commitId} to database ${databaseId}, and this one is ${own}. Ask the database that ` +
          'the commit was for; if a new one has taken its place, drop the batch with clear().',
      );
    }
    return engine.withDeadline(callName, options.signal, ({ signal }) => engine.resolveCommit(commitId, slot, signal));
  }
}
