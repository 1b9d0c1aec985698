/**
 * The running parts of an opened database, wired together: the register, the follower of the log, the writer to it,
 * the merger and its turns.
 */
import { withinDeadline, anySignal, newAbortController, namingAborts, untilAborted } from '../base/abort.ts';
import type { Deadline, SignalPool } from '../base/abort.ts';
import { sleep, backOff } from '../base/env.ts';
import type { Environment, Backoff } from '../base/env.ts';
import {
  ContentionError,
  DeadlineExceededError,
  NotStartedError,
  SnapshotExpiredError,
  StorageError,
} from '../base/errors.ts';
import type { Logger } from '../base/logger.ts';
import { Block0Register } from '../block0/block0-register.ts';
import { ephemeralId, isEphemeralId, NodeIdentity } from '../block0/node-identity.ts';
import { ExternalCache } from '../cache/external-cache.ts';
import type { SharedMemory } from '../cache/memory-budget.ts';
import { InstanceMemory } from '../cache/instance-memory.ts';
import { Backpressure } from '../coordination/backpressure.ts';
import { FailureReports } from '../coordination/failure-reports.ts';
import { Freshness, momentNow } from '../coordination/freshness.ts';
import { MergeOnCommit } from '../coordination/merge-on-commit.ts';
import { Membership } from '../coordination/membership.ts';
import { MergeRotation } from '../coordination/merge-rotation.ts';
import { WriteForwardLoop } from '../coordination/write-forward-loop.ts';
import type { TurnSettings } from '../coordination/write-forward-loop.ts';
import type { Block0, StoredSnapshot } from '../format/block0.ts';
import { CommitLog } from '../log/commit-log.ts';
import type { InDoubtCommit } from '../log/commit-outcome.ts';
import { EngineEvents } from '../log/engine-events.ts';
import { LogFollower } from '../log/log-follower.ts';
import { PendingRoom } from '../log/pending-room.ts';
import { LogWriter } from '../log/log-writer.ts';
import type { FlushRequest } from '../log/log-writer.ts';
import { Leftovers } from '../merge/leftovers.ts';
import { Merger } from '../merge/merger.ts';
import type { MergeMembers } from '../merge/merger.ts';
import type { StorageDriver, CacheDriver } from '../storage/contract/driver.ts';
import type { OwnWrites } from '../storage/contract/own-writes.ts';
import { StoreClock } from '../storage/contract/store-clock.ts';
import { StoredBlocks } from '../tree/stored-blocks.ts';
import type { RegisteredFunction } from '../schema/registered-functions.ts';
import { View, ViewContext } from '../view/view.ts';
import type { LoggedCommit } from '../view/view.ts';
import { History } from './history.ts';
import { openOrCreate } from './open-or-create.ts';
import type { ExpectedState } from './open-or-create.ts';
import { Pins } from './snapshot-pins.ts';

export interface EngineOptions extends TurnSettings, BlockMemoryOptions {
  /** `'auto'`: the instance takes an id that is free. An ephemeral instance has no id of a node. */
  readonly nodeId: number | 'auto';
  /** Of an ephemeral instance: lets work go on after an answer was sent. */
  readonly waitUntil: ((work: Promise<unknown>) => void) | undefined;
  /** The driver as its user gave it. */
  readonly given: StorageDriver;
  readonly blockSizeBytes: number;
  /** The objects that the instance wrote since it last saw Block 0. */
  readonly writes: OwnWrites;
  /** Commits in doubt: their outcome was not known when an engine before this one was closed. */
  readonly inDoubt: Map<string, InDoubtCommit>;
  readonly expectAtLeast: ExpectedState | undefined;
  /** Looks up a function that is registered on this instance. */
  readonly functions: (name: string) => RegisteredFunction | undefined;
}

const operationTimeoutMs = 60_000;
const outcomeTimeoutMs = 30_000;
/** Attempts at pinning a state before garbage is collected past it. */
const maxPinAttempts = 8;
/** A checkpoint gives up after so many merges that the store failed, or (the constant below) so many in which others were faster. */
const maxFailedMerges = 8;
const maxLostMerges = 40;
/** Pauses after a merge of a checkpoint that failed, or came too late. */
const betweenMerges: Backoff = { firstMs: 10, maxMs: 1000, jitter: 'full' };

/** A pinned state: its pin, and the view that shows it. */
export interface PinnedView {
  readonly pin: StoredSnapshot;
  readonly view: View;
}

export class Engine {
  readonly #options: EngineOptions;
  readonly memory: InstanceMemory;
  readonly node: NodeIdentity;
  readonly register: Block0Register;
  readonly log: CommitLog;
  readonly follower: LogFollower;
  readonly merger: Merger;
  readonly pins: Pins;
  readonly history: History;
  readonly context: ViewContext;
  readonly clock: StoreClock;
  readonly events: EngineEvents = new EngineEvents();
  readonly failures: FailureReports;
  readonly #second: ExternalCache | undefined;
  readonly #writer: LogWriter;
  readonly #room: PendingRoom;
  readonly #backpressure: Backpressure;
  /** Merges with commits instead of turns; undefined unless the instance is ephemeral. */
  readonly #mergeOnCommit: MergeOnCommit | undefined;
  readonly #membership: Membership;
  readonly #freshness: Freshness;
  readonly #turns: WriteForwardLoop;
  readonly #leftovers: Leftovers;
  readonly #stopping = newAbortController();
  /** The end of the wait of the last call that waits for the first look at the log. Later calls run after it, as they were called. */
  #lastWaiting: Promise<void> | undefined;
  #seesEphemeral = false;
  /** Other work under way that must end before the engine is closed. */
  readonly #work = new Set<Promise<unknown>>();

  /** Each part receives only parts that were made before it; it reaches later parts by events. */
  constructor(options: EngineOptions) {
    const { environment, driver, prefix, logger, nodeId, maxMemoryBytes, intervalMs, role } = options;
    const { events, stopping } = this;
    this.#options = options;
    const { memory, second, reader } = makeBlockMemory(options);
    this.memory = memory;
    this.#second = second;
    const leftovers = new Leftovers(options);
    this.#leftovers = leftovers;
    const isEphemeral = role === 'ephemeral';
    const node = new NodeIdentity(isEphemeral ? ephemeralId(environment) : nodeId, environment);
    this.node = node;
    const register = new Block0Register(driver, prefix, environment, logger, node, {
      writes: options.writes,
      gone: (databaseId) => leftovers.removeAll(databaseId),
      another: (databaseId) => leftovers.removeCommits(databaseId),
    });
    this.register = register;
    const log = new CommitLog(environment, driver, prefix);
    this.log = log;
    this.context = new ViewContext(reader);
    const room = new PendingRoom(memory, maxMemoryBytes);
    this.#room = room;
    const follower = new LogFollower(environment, register, log, this.context, room, events);
    this.follower = follower;
    const clock = new StoreClock(driver, environment, logger);
    this.clock = clock;
    const parts = { ...options, node, register, log, follower, clock, room, events, stopping };
    this.pins = new Pins(parts);
    this.history = new History(parts);
    const failures = new FailureReports(environment, logger, register, events, stopping);
    this.failures = failures;
    const rotation = new MergeRotation(intervalMs, node);
    const membership = new Membership({ ...parts, rotation });
    this.#membership = membership;
    const members = isEphemeral ? membersAsTheyAre : membership;
    const indexBufferBytes = Math.floor(memory.workBytes / 12);
    const isReplica = role === 'replica';
    const merger = new Merger({ ...parts, isReplica, membership: members, cache: memory.cache, indexBufferBytes });
    this.merger = merger;
    const backpressure = new Backpressure({ ...parts, merger, rotation, failures });
    this.#backpressure = backpressure;
    const freshness = new Freshness({ ...parts, backpressure, timeoutMs: operationTimeoutMs, mayFreeze: isEphemeral });
    this.#freshness = freshness;
    const mergeOnCommit = isEphemeral
      ? new MergeOnCommit({
          ...parts,
          merger,
          backpressure,
          failures,
          catchUp: () => freshness.catchUp(),
          maxPending: options.mergePolicy.minCommits,
        })
      : undefined;
    this.#mergeOnCommit = mergeOnCommit;
    this.#writer = new LogWriter({
      ...parts,
      freshness,
      backpressure: mergeOnCommit ?? backpressure,
      outcomeTimeoutMs,
    });
    const turns = new WriteForwardLoop({ ...parts, freshness, merger, membership, rotation, failures });
    this.#turns = turns;
    if (!isReplica) memory.mergeWith(() => backpressure.mergeOutOfTurn());
  }

  /** The prefix of the database. */
  get prefix(): string {
    return this.#options.prefix;
  }

  /** Aborted when the engine is closed. */
  get stopping(): AbortSignal {
    return this.#stopping.signal;
  }

  get view(): View {
    return this.follower.view;
  }

  /**
   * Runs a call that reaches the store under the usual deadline. Calls that wait for the first look at the log run in their order. With
   * `pool`, the signal is used again: nothing may listen to it afterwards.
   */
  withDeadline<T>(
    callName: string,
    signal: AbortSignal | undefined,
    call: (deadline: Deadline) => Promise<T>,
    pool?: SignalPool,
  ): Promise<T> {
    const { environment } = this.#options;
    const run = (): Promise<T> => withinDeadline(environment, callName, operationTimeoutMs, signal, call, pool);
    if (!this.isLooking && this.#lastWaiting === undefined) return run();
    const before = this.#lastWaiting;
    // The first look at the log has a deadline of its own: where much has piled up, it would use up the deadline of the call.
    const looked = this.withSignal(callName, signal, async () => {
      await before;
      await this.#freshness.looked();
    });
    const running = looked.then(run);
    const ended = (): void => {
      if (this.#lastWaiting === waiting) this.#lastWaiting = undefined;
    };
    const waiting = looked.then(ended, ended);
    this.#lastWaiting = waiting;
    return running;
  }

  /** Runs a call that may take any time, and that only the caller's signal ends early. */
  async withSignal<T>(
    callName: string,
    signal: AbortSignal | undefined,
    call: (signal: AbortSignal | undefined) => Promise<T>,
  ): Promise<T> {
    return namingAborts(callName, signal, () => untilAborted(call(signal), signal));
  }

  /** Runs a call of any length that ends early with the caller's signal, and when the engine is closed, which waits for its end. */
  whileOpen<T>(
    callName: string,
    signal: AbortSignal | undefined,
    call: (signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    return this.withSignal(callName, signal, () => this.whileRunning(call(this.untilClosed(signal))));
  }

  /** Aborted with a call's own signal, and when the engine is closed. */
  untilClosed(signal: AbortSignal | undefined): AbortSignal {
    return anySignal(this.stopping, signal);
  }

  /** Opens or creates the database and begins to take turns. */
  async open(): Promise<void> {
    const { register, clock, node } = this;
    const { role } = this.#options;
    try {
      await this.#freshness.open(async (signal) => {
        const opened = await openOrCreate({ ...this.#options, register, clock, node }, signal);
        if (role === 'writer') node.chooseFirst(opened.block0, clock.now());
        this.#second?.useDatabase(opened.block0.databaseId);
        this.#noteEphemeral(opened.block0.writer);
        this.events.committed.on((news) => {
          for (const { commit } of news) this.#noteEphemeral(commit);
        });
        this.follower.open(opened);
      });
    } catch (error) {
      // Nobody calls close() on an engine that was never open.
      this.memory.close();
      throw error;
    }
    if (role !== 'ephemeral') this.#turns.start();
  }

  /** Whether another instance that is in no list of nodes has written since this one was opened, or just before. */
  get seesEphemeral(): boolean {
    return this.#seesEphemeral;
  }

  #noteEphemeral({ nodeId }: { readonly nodeId: number }): void {
    if (isEphemeralId(nodeId) && nodeId !== this.node.id) this.#seesEphemeral = true;
  }

  /** Takes no more turns, and waits for the work that is under way, `timeoutMs` milliseconds at most. */
  async close(timeoutMs: number = operationTimeoutMs): Promise<void> {
    this.#turns.stop();
    this.#stopping.abort(new NotStartedError('What was under way when the database was stopped'));
    const { environment } = this.#options;
    try {
      await withinDeadline(environment, 'db.stop()', timeoutMs, undefined, async ({ signal }) => {
        const idle = Promise.all([
          this.#writer.idle(),
          this.merger.idle(),
          this.#turns.idle(),
          this.#freshness.idle(),
          this.#second?.close(),
          ...this.#work,
        ]);
        await untilAborted(idle, signal);
        // Work that was under way when Block 0 was found to be gone has ended only now.
        if (this.register.isGone)
          await untilAborted(this.#leftovers.removeAll(this.register.current.block0.databaseId), signal);
        if (this.#options.role === 'writer') await this.#membership.leave(signal);
      });
    } finally {
      this.memory.close();
    }
  }

  /** The commits that wait to be merged, as a share of those that there is room for. */
  get backlogShare(): number {
    return this.#room.shareOf(this.view);
  }

  /** Whether the instance did not look at the store when it meant to. */
  get isLate(): boolean {
    return this.#turns.isLate;
  }

  get viewAgeMs(): number {
    return this.#freshness.viewAgeMs;
  }

  /** Whether the view is so old that a query should not trust it. */
  get isStale(): boolean {
    return this.#freshness.isStale;
  }

  /** Whether the instance is still finding out if the view that it opened is the newest. */
  get isLooking(): boolean {
    return this.#freshness.isLooking;
  }

  /** Makes a stale view as fresh as a query must have it. */
  async freshen(signal?: AbortSignal): Promise<void> {
    this.asked();
    await this.#freshness.freshen(signal);
    this.events.looked.emit(this.view);
  }

  /** Tells the turns that somebody reads through this instance. */
  asked(): void {
    this.#turns.asked();
  }

  /** Resolves once the view shows a slot: without a look at the store, where it does already. */
  async reach(slot: number, signal: AbortSignal): Promise<void> {
    const { environment, intervalMs } = this.#options;
    for (let tries = 0; this.view.tail < slot; tries++) {
      if (tries > 0) await sleep(environment, intervalMs, signal);
      await this.refresh(signal);
    }
  }

  /** Catches up with everything that was committed before the call. */
  refresh(signal?: AbortSignal): Promise<void> {
    this.asked();
    return this.catchUp(signal);
  }

  /** As {@link refresh}, but without telling the turns that somebody uses the instance. */
  catchUp(signal?: AbortSignal): Promise<void> {
    return this.#freshness.catchUp(signal);
  }

  get isRegistered(): boolean {
    return this.#membership.isRegistered;
  }

  /** Whether Block 0 must record other versions in use by this instance. `versionOf` returns the version of a table; null if it uses none. */
  mustSayVersions(versionOf: (table: string) => number | null): boolean {
    return this.#options.role === 'writer' && this.#membership.mustSayVersions(this.view.block0, versionOf);
  }

  async sayVersions(versionOf: (table: string) => number | null, signal: AbortSignal = this.stopping): Promise<void> {
    await this.#membership.sayVersions(versionOf, signal);
    this.follower.advance(this.register.current, []);
  }

  /** Commits one flush. */
  async append(request: FlushRequest): Promise<void> {
    this.#turns.asked(false);
    this.register.checkNotReplaced();
    const started = momentNow(this.#options.environment);
    try {
      await this.#writer.append(request);
      // When the slot was won it was the last one of the log, so the view was the newest then.
      this.#freshness.note(started);
    } finally {
      this.events.looked.emit(this.follower.view);
    }
    if (this.#mergeOnCommit === undefined) this.#backpressure.mergeIfLarge(this.follower.view);
  }

  /** Merges on an ephemeral instance whose commit has filled the log, unless it is being stopped. Never rejects. */
  async afterCommit(signal: AbortSignal | undefined): Promise<void> {
    if (this.stopping.aborted) return;
    await this.#mergeOnCommit?.afterCommit(signal);
  }

  async resolveCommit(commitId: string, slot: number, signal?: AbortSignal): Promise<boolean> {
    try {
      return await this.#writer.resolve(commitId, slot, signal);
    } finally {
      this.events.looked.emit(this.view);
    }
  }

  /** Pins an earlier state: the state of a given generation, or the state that was in force at a given time. */
  pinEarlier(which: number | Date, timeToLiveMs: number, signal?: AbortSignal): Promise<PinnedView> {
    return this.withDeadline('db.at()', signal, async ({ signal: inner }) => {
      const { history } = this;
      const block0 = await (typeof which === 'number'
        ? history.read(which, inner)
        : history.readAt(which.getTime(), inner));
      return this.#pin(block0, timeToLiveMs, inner);
    });
  }

  async #pin(block0: Block0, timeToLiveMs: number, signal: AbortSignal | undefined): Promise<PinnedView> {
    const pin = await this.pins.pin({ block0 }, timeToLiveMs, signal);
    return { pin, view: View.ofBlock0(this.context, block0) };
  }

  /** Pins a state that shows everything that was committed before the call. */
  pinPresent(timeToLiveMs: number, signal?: AbortSignal): Promise<PinnedView> {
    return this.withSignal('db.snapshot()', signal, async (inner) => {
      for (let attempt = 1; ; attempt++) {
        await this.#checkpoint(inner);
        const { block0 } = this.register.current;
        try {
          return await this.#pin(block0, timeToLiveMs, inner);
        } catch (error) {
          // Garbage was collected past this state meanwhile: the next attempt pins a newer one.
          if (!(error instanceof SnapshotExpiredError) || attempt >= maxPinAttempts) throw error;
        }
      }
    });
  }

  /** Takes note of work that must end before the engine does: close() waits for it. */
  whileRunning<T>(work: Promise<T>): Promise<T> {
    const ended: Promise<unknown> = work.catch(() => undefined).finally(() => this.#work.delete(ended));
    this.#work.add(ended);
    return work;
  }

  /** Merges everything that is committed, now. */
  checkpoint(signal?: AbortSignal): Promise<void> {
    return this.withSignal('db.checkpoint()', signal, (inner) => this.#checkpoint(inner));
  }

  async #checkpoint(signal: AbortSignal | undefined): Promise<void> {
    const { environment } = this.#options;
    await this.#look(signal);
    const target = this.view.tail;
    let answeredMs = environment.monotonicMs();
    for (let lost = 0, failed = 0; this.view.block0.appliedSeq < target; ) {
      signal?.throwIfAborted();
      try {
        if (await this.merger.merge()) continue;
        lost++;
      } catch (error) {
        if (!(error instanceof StorageError) || error.reason === 'forbidden' || ++failed >= maxFailedMerges)
          throw error;
        if (environment.monotonicMs() - answeredMs >= operationTimeoutMs) throw error;
      }
      if (lost >= maxLostMerges) {
        throw new ContentionError(
          'Other nodes replaced Block 0 before every attempt to merge. Nothing is lost: try it again.',
        );
      }
      await backOff(environment, betweenMerges, lost + failed, signal);
      await this.#look(signal);
      answeredMs = environment.monotonicMs();
    }
  }

  /** Catches up. If much has piled up that may take any time, provided that the view gets further within each usual deadline. */
  async #look(signal: AbortSignal | undefined): Promise<void> {
    const { environment } = this.#options;
    for (;;) {
      const { view } = this;
      try {
        await withinDeadline(environment, 'db.checkpoint()', operationTimeoutMs, signal, (deadline) =>
          this.refresh(deadline.signal),
        );
        return;
      } catch (error) {
        const isFurther = this.view.tail > view.tail || this.view.block0.appliedSeq > view.block0.appliedSeq;
        if (!isFurther || !(error instanceof DeadlineExceededError)) throw error;
      }
    }
  }

  /** Merges commits that a repair of the log gives, on top of the newest Block 0. False if others were faster. */
  async applyLog(slots: (block0: Block0) => Promise<readonly LoggedCommit[]>): Promise<boolean> {
    await this.merger.idle();
    const versioned = await this.register.refresh();
    this.follower.accept(versioned, await slots(versioned.block0));
    return this.merger.merge();
  }
}

/** The list of nodes after a merge by an instance that is in no list. */
const membersAsTheyAre: MergeMembers = { afterMerge: (present) => present };

/** Options of the memory of an instance, of the external cache behind it, and of the store. */
interface BlockMemoryOptions {
  readonly environment: Environment;
  readonly driver: StorageDriver;
  readonly prefix: string;
  readonly logger: Logger;
  readonly maxMemoryBytes: number;
  /** The memory that the instance shares with others, if it does. */
  readonly memory: SharedMemory | undefined;
  readonly cacheBlockSize: number;
  readonly cacheDriver: CacheDriver | undefined;
}

export interface BlockMemory {
  readonly memory: InstanceMemory;
  readonly second: ExternalCache | undefined;
  readonly reader: StoredBlocks;
}

function makeBlockMemory(options: BlockMemoryOptions): BlockMemory {
  const { environment, driver, prefix, logger, maxMemoryBytes: maxBytes, memory: shared, cacheDriver } = options;
  const memory = new InstanceMemory({ maxBytes, blockBytes: options.cacheBlockSize, shared });
  const second = cacheDriver && new ExternalCache({ driver: cacheDriver, environment, logger });
  return { memory, second, reader: new StoredBlocks(driver, prefix, memory.cache, { second, memory }) };
}
