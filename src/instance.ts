/**
 * A running (or stopped) instance: what is registered, the engine while it runs, and what batches and queries need of
 * the two. The facade (database.ts) puts the public calls on top of it.
 */
import { SignalPool } from './base/deadline.ts';
import type { Deadline } from './base/deadline.ts';
import type { Environment } from './base/env.ts';
import { InvalidOptionError, NotStartedError, ReadOnlyError } from './base/errors.ts';
import { filteredLogger } from './base/logger.ts';
import type { Logger } from './base/logger.ts';
import type { Batch, BatchHost, FlushOptions } from './batch/batch.ts';
import type { OperationSet } from './batch/operation-set.ts';
import { prepareMember } from './batch/prepare.ts';
import { PinningKeeper } from './care/state-keeper.ts';
import type { HeldSnapshot } from './care/held-snapshot.ts';
import { HeldSnapshots } from './care/held-snapshots.ts';
import { BlobUploads } from './batch/blob-uploads.ts';
import { BlobStore } from './blob/blob-store.ts';
import { readStats } from './care/stats.ts';
import type { DatabaseStats } from './care/stats.ts';
import type { TransactionCounters } from './care/transaction-counters.ts';
import type { StoreReport } from './care/doctor.ts';
import type { CommitRef, Undecided } from './cluster/fate.ts';
import { Engine } from './cluster/engine.ts';
import type { PinnedView } from './cluster/engine.ts';
import { LogFeed } from './cluster/log-feed.ts';
import { ChangeFeed } from './changes.ts';
import { Bridge } from './migration/bridge.ts';
import { Maintenance } from './maintenance.ts';
import { checkNodes } from './options.ts';
import type { CheckedOptions } from './options.ts';
import { CapsuleCache } from './storage/capsule-cache.ts';
import { protectedDriver } from './storage/capsule-driver.ts';
import { ObservedDriver } from './storage/observed.ts';
import { harmlessHook } from './storage/request-hook.ts';
import { ReadOnlyDriver } from './storage/read-only.ts';
import { OwnWrites } from './storage/own-writes.ts';
import { RetryingDriver } from './storage/retry.ts';
import type { StorageDriver } from './storage/driver.ts';
import type { QueryHost, StateKeeper } from './table/query-host.ts';
import { Registry } from './table/registry.ts';
import { refuseRetired } from './table/retired-versions.ts';
import type { TableShape } from './table/table-shape.ts';
import { TriggerApi } from './trigger-api.ts';
import type { TableState } from './table/table-state.ts';
import type { View } from './table/view.ts';
import type { CommitMember } from './format/commit.ts';
import type { PriceTable } from './storage/prices.ts';

/** After how long a state that a long loop holds counts as abandoned unless it is renewed, in milliseconds. */
const loopPinMs = 600_000;
/** What a flush may hold in its commit itself, in bytes; more goes into staged runs. */
const defaultMaxCommitBytes = 8 * 1024 * 1024;

/** What else a commit is subject to, and the call that it is for. */
export interface CommitGuard {
  readonly what: string;
  /** Rejects if the commit must not follow the state that a view shows, whose last changes are those of `earlier`. */
  validate(view: View, earlier: readonly CommitMember[]): Promise<void>;
}

interface Transition {
  readonly kind: 'start' | 'stop';
  readonly done: Promise<void>;
}

const stopped: Transition = { kind: 'stop', done: Promise.resolve() };

export class Instance implements BatchHost, QueryHost {
  readonly environment: Environment;
  readonly registry: Registry;
  readonly bridge: Bridge;
  /** The user's driver, counted. */
  readonly observed: ObservedDriver;
  readonly blobs: BlobStore;
  readonly #options: CheckedOptions;
  readonly #logger: Logger;
  readonly #driver: StorageDriver;
  readonly #createdMs: number;
  readonly #maxCommitBytes: number;
  readonly #held: HeldSnapshots;
  readonly maintenance: Maintenance;
  readonly transactions: TransactionCounters = { committed: 0, conflicts: 0, failed: 0 };
  /** For flushes: nothing has the signal of one that has ended. */
  readonly #signals = new SignalPool();
  /** Flushes that were told that their outcome is unknown ask for it again, also after a restart. */
  readonly #undecided = new Map<string, Undecided>();
  readonly #writes = new OwnWrites();
  #engine: Engine | undefined;
  /** The last start or stop that was asked for; each begins when the one before it has ended. */
  #last: Transition = stopped;

  /** Simulations stage commits that are not large: `maxCommitBytes`. */
  constructor(options: CheckedOptions, environment: Environment, maxCommitBytes: number = defaultMaxCommitBytes) {
    this.environment = environment;
    this.#options = options;
    this.#maxCommitBytes = maxCommitBytes;
    this.#logger = filteredLogger(options.logger, options.logLevel);
    this.registry = new Registry(this.#logger);
    this.bridge = new Bridge(this.registry);
    this.#held = new HeldSnapshots(environment, this.#logger);
    const onRequest = options.onRequest && harmlessHook(options.onRequest, this.#logger);
    this.observed = new ObservedDriver(options.driver, { environment, ...(onRequest && { onRequest }) });
    this.#createdMs = environment.monotonicMs();
    const { dbPrefix: prefix, protection } = options;
    const driver = new RetryingDriver(this.observed, environment, { onWrite: (key) => this.#writes.note(key) });
    const store = protectedDriver({ driver, prefix, protection, environment });
    this.#driver = options.role === 'replica' ? new ReadOnlyDriver(store) : store;
    this.blobs = new BlobStore(this.#driver, options.dbPrefix);
    this.maintenance = new Maintenance({
      environment,
      driver: this.#driver,
      store,
      logger: this.#logger,
      options,
      registry: this.registry,
      maxCommitBytes,
      running: (what) => this.running(what),
      writing: (what) => this.writing(what),
      hold: (...held) => this.#hold(...held),
    });
  }

  get prices(): PriceTable {
    return this.#options.prices;
  }

  get owner(): this {
    return this;
  }

  get databaseId(): string {
    return this.running('A query').view.block0.databaseId;
  }

  /** The engine from `start()` to `stop()`. */
  get engine(): Engine | undefined {
    return this.#engine;
  }

  start(): Promise<void> {
    if (this.#last.kind === 'start') return this.#last.done;
    // How it was stopped is told to whoever stopped it.
    const ended = this.#last.done.catch(() => undefined);
    return this.#become(
      'start',
      ended.then(() => this.#open()),
    );
  }

  async #open(): Promise<void> {
    const { writeForwardInterval, dbPrefix, nodes, protection, cacheDriver: cache } = this.#options;
    const isSecret = cache !== undefined && protection?.hasKeys === true;
    const engine = new Engine({
      ...this.#options,
      environment: this.environment,
      driver: this.#driver,
      prefix: dbPrefix,
      cacheDriver: isSecret ? new CapsuleCache(cache, protection, this.environment) : cache,
      logger: this.#logger,
      undecided: this.#undecided,
      writes: this.#writes,
      functions: (name) => this.registry.registeredFunction(name),
      intervalMs: writeForwardInterval,
      nodes: async () => (typeof nodes === 'function' ? checkNodes(await nodes()) : nodes),
    });
    await engine.open();
    await this.#keepHistory(engine);
    this.#engine = engine;
    this.maintenance.begin(engine);
  }

  /** Where it cannot be said in Block 0, the instance is not started, and nothing of it goes on. */
  async #keepHistory(engine: Engine): Promise<void> {
    const { history } = this.#options;
    if (history === undefined) return;
    try {
      await engine.withDeadline('db.start()', undefined, ({ signal }) => engine.history.keep(history, signal));
    } catch (error) {
      await engine.close().catch(() => undefined);
      throw error;
    }
  }

  stop(): Promise<void> {
    if (this.#last.kind === 'stop') return this.#last.done;
    const running = this.#engine;
    // Calls are refused from now on.
    this.#engine = undefined;
    const started = this.#last.done.catch(() => undefined);
    return this.#become(
      'stop',
      started.then(() => this.#close(running)),
    );
  }

  #become(kind: Transition['kind'], done: Promise<void>): Promise<void> {
    const transition: Transition = { kind, done };
    this.#last = transition;
    // One that failed can be asked for again.
    done.catch(() => {
      if (this.#last === transition) this.#last = stopped;
    });
    return done;
  }

  async #close(running: Engine | undefined): Promise<void> {
    const engine = running ?? this.#engine;
    this.#engine = undefined;
    this.maintenance.end();
    if (engine === undefined) return;
    try {
      await this.#held.release();
      await engine.close();
    } finally {
      await this.#driver.close?.();
    }
  }

  checkStarted(what: string): void {
    this.running(what);
  }

  stats(): DatabaseStats {
    const uptimeMs = this.environment.monotonicMs() - this.#createdMs;
    const { transactions, observed } = this;
    const { role, prices } = this.#options;
    return readStats(role, observed.snapshot(), prices, uptimeMs, this.#engine, transactions);
  }

  /** Looks at the store, started or not. */
  async doctor(signal: AbortSignal | undefined): Promise<StoreReport> {
    try {
      return await this.maintenance.doctor(signal);
    } finally {
      // Nobody else closes what was opened for this. How that goes is no news about the store.
      if (this.#last.kind === 'stop') await this.#driver.close?.().catch(() => undefined);
    }
  }

  /** The engine; throws `NotStartedError` unless the database is running. `what` names the call. */
  running(what: string): Engine {
    if (this.#engine === undefined) throw new NotStartedError(what);
    return this.#engine;
  }

  /** The same for a call that writes; throws `ReadOnlyError` on a replica. */
  writing(what: string): Engine {
    const engine = this.running(what);
    if (this.#options.role === 'replica') throw new ReadOnlyError(what);
    engine.register.checkNotReplaced();
    return engine;
  }

  shapeOf(table: string): TableShape | undefined {
    const shape = this.registry.shape(table);
    // Of two that are equal the view's own: what is compiled for it is recognised by the plans of its states.
    const stored = this.#engine?.view.table(table)?.shape;
    return stored !== undefined && shape !== undefined && stored.isSame(shape) ? stored : shape;
  }

  registeredFunction(name: string): ReturnType<Registry['registeredFunction']> {
    return this.registry.registeredFunction(name);
  }

  tableState(table: string): TableState | Promise<TableState> {
    const engine = this.running('A query');
    engine.asked();
    if (!engine.isStale) return this.bridge.presentState(engine, table);
    return engine
      .withDeadline('A query', undefined, ({ signal }) => engine.freshen(signal))
      .then(() => this.bridge.presentState(engine, table));
  }

  earlyState(table: string): TableState | undefined {
    if (this.#engine?.isLooking !== true) return undefined;
    const stored = this.#engine.view.table(table);
    return stored?.shape === this.shapeOf(table) ? stored : undefined;
  }

  keeperOf(state: TableState): StateKeeper | undefined {
    const engine = this.#engine;
    // A replica cannot hold on to a state. And only of the present view it is known which Block 0 it belongs to.
    const truth = this.bridge.truthOf(state);
    if (engine === undefined || this.#options.role === 'replica' || engine.view.table(state.shape.name) !== truth)
      return undefined;
    const { view } = engine;
    return new PinningKeeper(
      () => {
        const pinning = engine.pins.pin(view.block0, loopPinMs).then((pin) => ({ pin, view }));
        return this.#hold(engine, 'A query', pinning, loopPinMs);
      },
      this.#logger,
      (work) => void engine.whileRunning(work),
    );
  }

  async viewMovedOn(state: TableState): Promise<boolean> {
    const engine = this.running('A query');
    await engine.refresh();
    return this.bridge.isOvertaken(state, engine.view);
  }

  async commit(operations: OperationSet, options: FlushOptions, check: () => void, guard?: CommitGuard): Promise<void> {
    const what = guard?.what ?? 'batch.flush()';
    const engine = this.writing(what);
    // Also while its blobs are uploaded: what an engine acknowledges once the next one runs, that one would not show.
    await engine.whileRunning(this.#commit(engine, what, operations, options, check, guard));
  }

  async #commit(
    engine: Engine,
    what: string,
    operations: OperationSet,
    options: FlushOptions,
    check: () => void,
    guard: CommitGuard | undefined,
  ): Promise<void> {
    const { blockSizeBytes, dbPrefix: prefix } = this.#options;
    const prepareOptions = {
      environment: this.environment,
      driver: this.#driver,
      prefix,
      blockSizeBytes,
      maxCommitBytes: this.#maxCommitBytes,
    };
    const lists = operations.lists;
    // Before the commit that refers to them.
    const uploads = new BlobUploads(operations, this.blobs, options.signal);
    await uploads.upload(engine.view.tail);
    const commit = ({ signal }: Deadline): Promise<void> =>
      engine.append({
        signal,
        sizeBytes: lists.reduce((bytes, { sizeBytes }) => bytes + sizeBytes, 0),
        prepare: async (view, earlier) => {
          check();
          await guard?.validate(view, earlier);
          if (operations.blobs.size > 0) await uploads.check(view);
          for (const { shape } of lists) await refuseRetired(view, shape);
          return prepareMember(lists, operations.blobs, ({ shape }) => this.bridge.writableTable(view, shape.name), {
            ...prepareOptions,
            slot: view.tail + 1,
          });
        },
      });
    await engine.withDeadline(what, options.signal, commit, this.#signals);
  }

  /** Takes a snapshot of everything that was committed before the call, and holds it. */
  async takeSnapshot(timeToLiveMs: number, signal: AbortSignal | undefined): Promise<HeldSnapshot> {
    const what = 'db.snapshot()';
    const engine = this.writing(what);
    return this.#hold(engine, what, engine.pinPresent(timeToLiveMs, signal), timeToLiveMs);
  }

  /** Holds on to an earlier state. */
  async takeEarlier(
    which: number | Date,
    timeToLiveMs: number,
    signal: AbortSignal | undefined,
  ): Promise<HeldSnapshot> {
    const what = 'db.at()';
    const engine = this.writing(what);
    return this.#hold(engine, what, engine.pinEarlier(which, timeToLiveMs, signal), timeToLiveMs);
  }

  /** Holds what is being pinned. If the instance is stopped meanwhile, that waits until the pin is let go of again. */
  #hold(engine: Engine, what: string, pinning: Promise<PinnedView>, timeToLiveMs: number): Promise<HeldSnapshot> {
    const hold = async (): Promise<HeldSnapshot> => {
      const held = this.#held.hold(engine.pins, await pinning, timeToLiveMs);
      if (this.#engine === engine) return held;
      await held.release();
      throw new NotStartedError(what);
    };
    return engine.whileRunning(hold());
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

  changes(after: number | undefined, signal: AbortSignal | undefined): ChangeFeed {
    const engine = this.running('db.changes()');
    const { polling, writeForwardInterval: intervalMs } = this.#options;
    const { environment } = this;
    const options = { engine, environment, intervalMs, polling };
    const open = (from: number, ending: AbortSignal): LogFeed => new LogFeed(options, from, ending);
    const versionOf = (table: string): number | undefined => this.registry.shape(table)?.version;
    return new ChangeFeed({ engine, environment, after: after ?? engine.view.tail, signal, versionOf, open });
  }

  async resolveCommit(commit: CommitRef, options: FlushOptions, what: string = 'batch.flush()'): Promise<boolean> {
    const engine = this.running(what);
    const { commitId, slot, databaseId } = commit;
    const own = engine.view.block0.databaseId;
    if (databaseId !== undefined && databaseId !== own) {
      throw new InvalidOptionError(
        'commit',
        `${what} was asked for commit ${commitId} to database ${databaseId}, and this one is ${own}. Ask the database that ` +
          'the commit was for; if a new one has taken its place, drop the batch with clear().',
      );
    }
    return engine.withDeadline(what, options.signal, ({ signal }) => engine.resolveCommit(commitId, slot, signal));
  }
}
