/**
 * A running (or stopped) instance: the registered schemas and functions, the engine while it runs, and the parts of both that batches
 * and queries need. The facade (api/database.ts) puts the public calls on top of it.
 */
import { searching } from '../query/searching.ts';
import { SignalPool } from '../base/abort.ts';
import { signalOptions } from '../base/options.ts';
import type { Environment } from '../base/env.ts';
import { NotStartedError, ReadOnlyError } from '../base/errors.ts';
import { Later, loadSoon } from '../base/later.ts';
import { filteredLogger } from '../base/logger.ts';
import type { Logger } from '../base/logger.ts';
import type { BatchOwner, FlushOptions } from '../batch/batch.ts';
import { HeldSnapshots } from '../maintenance/snapshots/held-snapshot.ts';
import type { HeldSnapshot } from '../maintenance/snapshots/held-snapshot.ts';
import { BlobStore } from '../blob/blob-store.ts';
import { readHealth } from '../maintenance/health.ts';
import type { DatabaseHealth } from '../maintenance/health.ts';
import { RecentRequests } from '../maintenance/recent-requests.ts';
import { readStats } from '../maintenance/stats.ts';
import { TableRequestCounts } from '../maintenance/table-requests.ts';
import type { DatabaseStats, TransactionStats } from '../maintenance/stats.ts';
import type { StoreReport } from '../maintenance/store-report.ts';
import type { CommitRef, InDoubtCommit } from '../log/commit-outcome.ts';
import { Engine } from '../engine/engine.ts';
import type { ExpectedState } from '../engine/open-or-create.ts';
import type { Block0 } from '../format/block0.ts';
import { isSystemTable } from '../format/stored-schema.ts';
import { EngineHost, stopTimeoutMs } from './engine-host.ts';
import { ChangeFeed, feedTables, givesTable } from './change-feed.ts';
import type { ChangesOptions } from './change-feed.ts';
import type { FeedStatesOptions } from './feed-states.ts';
import type { LiveQueries } from '../live/live-queries.ts';
import { Bridge } from '../migration/bridge.ts';
import { FieldChangeLog } from '../migration/field-changes.ts';
import { Maintenance } from './maintenance.ts';
import { checkNodes } from './options.ts';
import type { CheckedOptions } from './options.ts';
import { EncryptedCache } from '../storage/wrap/envelopes.ts';
import { protectedDriver } from '../storage/wrap/envelope-driver.ts';
import { ObservedDriver, harmlessHook } from '../storage/wrap/observed-driver.ts';
import { ReadOnlyDriver } from '../storage/wrap/wrapped-driver.ts';
import { OwnWrites } from '../storage/contract/own-writes.ts';
import { TracedDriver } from '../storage/wrap/traced-driver.ts';
import { RetryingDriver } from '../storage/wrap/retrying-driver.ts';
import type { StorageDriver } from '../storage/contract/driver.ts';
import { LiveResults } from '../query/live-results.ts';
import type { LiveCursor } from '../query/live-results.ts';
import type { QueryHost, QueryTrace, StateKeeper, WatchedQuery } from '../query/planner/query-host.ts';
import { QueryMemory } from '../query/planner/query-host.ts';
import { isStoredOtherwise, refuseOtherDefinition, Registry, refuseRenames } from '../catalog/registry.ts';
import { refuseOtherCode } from '../catalog/migration-code.ts';
import { refuseEnding, refuseRegistered } from '../catalog/retired-versions.ts';
import { sayOldVersions } from '../migration/migration-status.ts';
import type { TableShape } from '../schema/table-shape.ts';
import { prepareToWrite } from '../schema/text-indexes.ts';
import type { TableState } from '../view/table-state.ts';
import type { PriceTable } from '../storage/prices.ts';

const watching = new Later('watched queries', () => import('../live/live-queries.ts'));

/** The most bytes of changes that a commit holds itself; larger flushes go into staged runs. */
const defaultMaxCommitBytes = 8 * 1024 * 1024;

/** How long closing may take where waiting for flushes took all the time that `stop()` has, in milliseconds. */
const minCloseMs = 1000;

interface Transition {
  readonly kind: 'start' | 'stop';
  readonly done: Promise<void>;
}

const stopped: Transition = { kind: 'stop', done: Promise.resolve() };

export class Instance implements BatchOwner, QueryHost {
  readonly environment: Environment;
  readonly registry: Registry;
  readonly functions: Registry['functions'];
  readonly kinds: Registry['kinds'];
  readonly bridge: Bridge;
  readonly #fieldChangeLog: FieldChangeLog;
  /** The user's driver, counted. */
  readonly observed: ObservedDriver;
  readonly #tableRequests: TableRequestCounts;
  readonly #recent = new RecentRequests();
  readonly blobs: BlobStore;
  readonly #options: CheckedOptions;
  readonly #logger: Logger;
  readonly #driver: StorageDriver;
  readonly #createdMs: number;
  readonly #maxCommitBytes: number;
  readonly #held: HeldSnapshots;
  readonly maintenance: Maintenance;
  readonly queryMemory: QueryMemory = new QueryMemory();
  readonly transactions: TransactionStats = { committed: 0, conflicts: 0, failed: 0 };
  /** For flushes: nothing has the signal of one that has ended. */
  readonly #signals = new SignalPool();
  /** Commits in doubt: their flushes were rejected with an unknown outcome, and ask for it again, even after a restart. */
  readonly #inDoubt = new Map<string, InDoubtCommit>();
  readonly #writes = new OwnWrites();
  /** The newest Block 0 that was seen before the last stop. */
  #seen: Block0 | undefined;
  /** The host of calls while the instance runs. */
  #host: EngineHost | undefined;
  /** Ends the look for drops in the views of the last engine. */
  #ignoreDrops: (() => void) | undefined;
  /** Watched queries, from the first one on. */
  #live: LiveQueries | undefined;
  /** The last start or stop that was asked for; each begins when the one before it has ended. */
  #last: Transition = stopped;

  /** Simulations stage commits that are not large: `maxCommitBytes`. */
  constructor(options: CheckedOptions, environment: Environment, maxCommitBytes: number = defaultMaxCommitBytes) {
    this.environment = environment;
    this.#options = options;
    this.#maxCommitBytes = maxCommitBytes;
    this.#logger = filteredLogger(options.logger, options.logLevel);
    this.registry = new Registry(this.#logger);
    this.functions = this.registry.functions;
    this.kinds = this.registry.kinds;
    this.#fieldChangeLog = new FieldChangeLog(this.registry, this.#logger, options.role);
    this.bridge = new Bridge(this.registry, this.#fieldChangeLog);
    this.#held = new HeldSnapshots(environment, this.#logger);
    const onRequest = options.onRequest && harmlessHook(options.onRequest, this.#logger);
    this.#tableRequests = new TableRequestCounts(options.dbPrefix);
    this.observed = new ObservedDriver(options.driver, {
      environment,
      onRequest: (request) => {
        this.#tableRequests.note(request);
        this.#recent.note(request, environment.monotonicMs());
        onRequest?.(request);
      },
    });
    this.#createdMs = environment.monotonicMs();
    const { dbPrefix: prefix, protection } = options;
    const traced = new TracedDriver(this.observed, prefix);
    const driver = new RetryingDriver(traced, environment, { writes: this.#writes });
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
      fieldChangeLog: this.#fieldChangeLog,
      maxCommitBytes,
      running: (callName) => this.running(callName),
      writing: (callName) => this.writing(callName),
      hold: (callName, ...pinning) => this.admit(callName).hold(callName, ...pinning),
      holdLoops: () => this.#host?.holdLoops() ?? Promise.resolve(),
    });
  }

  /** The prefix of the database. */
  get prefix(): string {
    return this.#options.dbPrefix;
  }

  get prices(): PriceTable {
    return this.#options.prices;
  }

  get owner(): this {
    return this;
  }

  get trace(): QueryTrace | undefined {
    return this.#host?.trace;
  }

  get source(): this {
    return this;
  }

  get databaseId(): string {
    return this.admit('A query').databaseId;
  }

  /** The engine from `start()` to `stop()`. */
  get engine(): Engine | undefined {
    return this.#host?.engine;
  }

  start(expectAtLeast?: ExpectedState): Promise<void> {
    if (this.#last.kind === 'start') return this.#last.done;
    // The caller of stop() hears how it was stopped.
    const ended = this.#last.done.catch(() => undefined);
    return this.#become(
      'start',
      ended.then(() => this.#open(expectAtLeast)),
    );
  }

  async #open(expectAtLeast: ExpectedState | undefined): Promise<void> {
    const { writeForwardInterval, dbPrefix, nodes, protection, cacheDriver: cache } = this.#options;
    await this.#prepareToWrite();
    const isSecret = cache !== undefined && protection?.hasKeys === true;
    const engine = new Engine({
      given: this.#options.driver,
      ...this.#options,
      environment: this.environment,
      driver: this.#driver,
      prefix: dbPrefix,
      cacheDriver: isSecret ? new EncryptedCache(cache, protection, this.environment) : cache,
      logger: this.#logger,
      inDoubt: this.#inDoubt,
      writes: this.#writes,
      expectAtLeast,
      functions: (name) => this.registry.registeredFunction(name),
      intervalMs: writeForwardInterval,
      nodes: async () => (typeof nodes === 'function' ? checkNodes(await nodes()) : nodes),
    });
    await engine.open();
    this.#followDrops(engine);
    this.#compareWithSeen(engine.register.current.block0);
    await this.#unlessFailed(engine, async () => {
      await this.#keepHistory(engine);
      const refuses = this.#options.retiredVersions === 'refuse';
      if (refuses) await refuseRegistered(engine.view, this.registry.newest);
      if (refuses) refuseEnding(engine.view.block0, this.registry.newest);
      for (const shape of this.registry.newest) {
        await this.#refuseStoredOtherwise(engine, shape);
        refuseRenames(engine.view, shape);
        refuseOtherCode(engine.view, shape, this.registry);
      }
      this.#fieldChangeLog.tellAll(engine.view);
      await sayOldVersions(engine, this.registry);
      // It was asked for before this instance had said that it uses the version, or not at all while that is listed.
      if (refuses) refuseEnding(engine.register.current.block0, this.registry.newest);
    });
    this.#host = new EngineHost(engine, {
      environment: this.environment,
      owner: this,
      queryMemory: this.queryMemory,
      options: this.#options,
      logger: this.#logger,
      driver: this.#driver,
      registry: this.registry,
      bridge: this.bridge,
      blobs: this.blobs,
      held: this.#held,
      signals: this.#signals,
      maxCommitBytes: this.#maxCommitBytes,
    });
    this.#live?.attach(this.#host);
    if (this.#options.role === 'writer') this.#host.expireRows();
    this.registry.warnOfTriggers();
    this.maintenance.begin(engine);
    const { databaseId, revision, generation } = engine.view.block0;
    this.#logger.debug('Started', { databaseId, revision, generation, nodeId: engine.node.id });
    if (this.#options.role !== 'ephemeral') loadSoon(this.environment);
  }

  /** Throws `InvalidSchemaError` if a table is stored with another definition of this version. It may have been dropped since the last merge. */
  async #refuseStoredOtherwise(engine: Engine, shape: TableShape): Promise<void> {
    if (!isStoredOtherwise(engine.view, shape)) return;
    await engine.withDeadline('db.start()', undefined, ({ signal }) => engine.refresh(signal));
    if (isStoredOtherwise(engine.view, shape)) refuseOtherDefinition(engine.view, shape);
  }

  /** Nobody may write rows that this process could not merge, and a start may create the database. */
  async #prepareToWrite(): Promise<void> {
    if (this.#options.role === 'replica') return;
    for (const shape of this.registry.newest) {
      const preparing = prepareToWrite(shape);
      if (preparing !== undefined) await preparing;
    }
  }

  /** Notes the tables that are dropped from now on. */
  #followDrops(engine: Engine): void {
    const { registry } = this;
    this.#ignoreDrops?.();
    registry.renew(engine.view);
    this.#ignoreDrops = engine.events.viewChanged.on((view) => {
      // What the first look at the log finds was committed before the start.
      if (engine.isLooking) registry.renew(view);
      else registry.follow(view);
    });
  }

  /** Logs that a database was replaced between a stop and a start. A running instance would have stopped. */
  #compareWithSeen({ databaseId, revision }: Block0): void {
    const seen = this.#seen;
    if (seen?.databaseId !== databaseId || revision >= seen.revision) return;
    this.#logger.warn(
      `The database is of revision ${revision}, and this instance has seen revision ${seen.revision} of it before: an older ` +
        'state was restored. If nobody you know did that, stop, and see expectAtLeast of db.start().',
    );
  }

  /** Where that fails, the instance is not started, and nothing of it goes on. */
  async #unlessFailed(engine: Engine, work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      await engine.close().catch(() => undefined);
      throw error;
    }
  }

  async #keepHistory(engine: Engine): Promise<void> {
    const { history } = this.#options;
    if (history === undefined) return;
    await engine.withDeadline('db.start()', undefined, ({ signal }) => engine.history.keep(history, signal));
  }

  stop(): Promise<void> {
    if (this.#last.kind === 'stop') return this.#last.done;
    const running = this.#host;
    // Calls are refused from now on.
    this.#host = undefined;
    this.#live?.detach();
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

  async #close(running: EngineHost | undefined): Promise<void> {
    const host = running ?? this.#host;
    this.#host = undefined;
    this.#live?.detach();
    this.maintenance.end();
    if (host === undefined) return;
    this.#seen = host.engine.register.current.block0;
    try {
      // Work that does not end in time is reported, after the rest has been closed.
      const startedMs = this.environment.monotonicMs();
      const [ended] = await Promise.allSettled([host.end()]);
      await this.#held.release();
      await host.engine.close(Math.max(minCloseMs, stopTimeoutMs - (this.environment.monotonicMs() - startedMs)));
      if (ended.status === 'rejected') throw ended.reason;
      this.#logger.debug('Stopped', { databaseId: host.engine.view.block0.databaseId });
    } finally {
      await this.#driver.close?.();
    }
  }

  stats(): DatabaseStats {
    const uptimeMs = this.environment.monotonicMs() - this.#createdMs;
    const { transactions, observed } = this;
    const { role, prices, polling: mode, writeForwardInterval: intervalMs } = this.#options;
    const polling = { mode, intervalMs };
    const requests = observed.snapshot();
    const tables = this.#tableRequests.snapshot();
    return readStats(
      role,
      requests,
      tables,
      prices,
      uptimeMs,
      this.engine,
      transactions,
      polling,
      this.environment.now(),
    );
  }

  health(): DatabaseHealth {
    const { health: thresholds, polling } = this.#options;
    const nowMs = this.environment.monotonicMs();
    return readHealth({ engine: this.engine, recent: this.#recent, thresholds, polling, nowMs });
  }

  /** Looks at the store, started or not. */
  async doctor(signal: AbortSignal | undefined): Promise<StoreReport> {
    try {
      return await this.maintenance.doctor(signal);
    } finally {
      // The driver was opened only for this call. A failure to close it says nothing about the store.
      if (this.#last.kind === 'stop') await this.#driver.close?.().catch(() => undefined);
    }
  }

  /** Returns the host for a call that is made now. Throws `NotStartedError` unless the database is running. */
  admit(callName: string): EngineHost {
    if (this.#host === undefined) throw new NotStartedError(callName);
    return this.#host;
  }

  /** The engine; throws `NotStartedError` unless the database is running. `callName` names the call in errors. */
  running(callName: string): Engine {
    return this.admit(callName).engine;
  }

  /** The engine for a call that writes; throws `ReadOnlyError` on a replica. */
  writing(callName: string): Engine {
    const engine = this.running(callName);
    if (this.#options.role === 'replica') throw new ReadOnlyError(callName);
    engine.register.checkNotReplaced();
    return engine;
  }

  readonly searching: typeof searching = searching;

  registeredShape(table: string): TableShape | undefined {
    return this.registry.shape(table);
  }

  shapeOf(table: string): TableShape | undefined {
    return this.#host === undefined ? this.registry.shape(table) : this.#host.shapeOf(table);
  }

  tableState(table: string): TableState | Promise<TableState> {
    return this.admit('A query').tableState(table);
  }

  earlyState(table: string): TableState | undefined {
    return this.#host?.earlyState(table);
  }

  keeperOf(state: TableState, loop: object): StateKeeper | undefined {
    return this.#host?.keeperOf(state, loop);
  }

  viewMovedOn(state: TableState): Promise<boolean> {
    return this.admit('A query').viewMovedOn(state);
  }

  /** Takes a snapshot of everything that was committed before the call, and holds it. */
  async takeSnapshot(timeToLiveMs: number, signal: AbortSignal | undefined): Promise<HeldSnapshot> {
    const callName = 'db.snapshot()';
    const engine = this.writing(callName);
    return this.admit(callName).hold(callName, engine.pinPresent(timeToLiveMs, signal), timeToLiveMs);
  }

  /** Holds on to an earlier state. */
  async takeEarlier(
    which: number | Date,
    timeToLiveMs: number,
    signal: AbortSignal | undefined,
  ): Promise<HeldSnapshot> {
    const callName = 'db.at()';
    const engine = this.running(callName);
    return this.admit(callName).hold(callName, engine.pinEarlier(which, timeToLiveMs, signal), timeToLiveMs);
  }

  watch(query: WatchedQuery): LiveResults<object> {
    signalOptions.check(query.callName, query.options);
    return new LiveResults(() => this.#follow(query));
  }

  /** Begins a loop over the results of a query. It goes on over a later stop and start. Rejects with `NotStartedError`. */
  async #follow(query: WatchedQuery): Promise<LiveCursor<object>> {
    if (this.#last.kind === 'stop') throw new NotStartedError(query.callName);
    const { LiveQueries: Live } = await watching.get();
    if (this.#live === undefined) {
      const { writeForwardInterval: intervalMs, polling } = this.#options;
      this.#live = new Live({ environment: this.environment, intervalMs, polling });
      if (this.#host !== undefined) this.#live.attach(this.#host);
    }
    return this.#live.open(query);
  }

  /** Follows the log from a position on. */
  changes({ after, tables, before, signal }: ChangesOptions): ChangeFeed {
    const host = this.admit('db.changes()');
    const { engine } = host;
    const { polling, writeForwardInterval: intervalMs } = this.#options;
    const { environment, registry, bridge } = this;
    const { view: shown } = engine;
    const known = [...Array.from(registry.newest, ({ name }) => name), ...shown.tables.keys(), ...shown.drops.names];
    const names =
      tables &&
      feedTables(
        tables,
        known.filter((name) => !isSystemTable(name)),
      );
    const keep: FeedStatesOptions['keep'] = (view, feed) => host.keeperOfView(view, feed);
    return new ChangeFeed({
      engine,
      environment,
      intervalMs,
      polling,
      after: after ?? shown.tail,
      signal,
      bridge,
      gives: givesTable(names),
      versionOf: (table) => registry.shape(table)?.version,
      states: before === true ? { shown, keep } : undefined,
    });
  }

  async resolveCommit(commit: CommitRef, options: FlushOptions, callName: string): Promise<boolean> {
    return this.admit(callName).resolveCommit(commit, options, callName);
  }
}
