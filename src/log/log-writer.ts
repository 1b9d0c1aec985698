/**
 * Appends to the log: wins a slot for a commit, learns for certain that it did not, or fails with an unknown outcome
 * (docs/protocol.md, "Commit"). Flushes that wait
 * at the same time share one commit; each is a member of it.
 *
 * Invariants:
 * - A put at slot n happens only on a view whose tail is n - 1, so the commit was validated against exactly the state
 *   that it will be applied to.
 * - After the answer "written", Block 0 is read; after any other answer the slot, and then Block 0. The same bytes are put at the
 *   same slot again while the slot is empty. No flush goes into another commit before the outcome of the commit that it was put in is known.
 * - Every error but `CommitOutcomeUnknownError` is definite: the flush was not applied, and never will be.
 */
import { untilAborted } from '../base/abort.ts';
import { backOff } from '../base/env.ts';
import type { Environment, Backoff } from '../base/env.ts';
import { StorageError, TransactionConflictError } from '../base/errors.ts';
import { randomUuid } from '../base/ids.ts';
import type { Block0Register } from '../block0/block0-register.ts';
import type { NodeId } from '../block0/node-identity.ts';
import { CommitEncoder, isEmptyMember } from '../format/commit.ts';
import type { Commit, CommitMember } from '../format/commit.ts';
import { BlockGone } from '../tree/block-source.ts';
import type { View } from '../view/view.ts';
import type { CommitLog } from './commit-log.ts';
import {
  outcomeInBlock0,
  deadSlotOutcome,
  NotCommittedError,
  outcomeOfFailure,
  outcomeUnknown,
  readOutcome,
  refKey,
} from './commit-outcome.ts';
import type { CommitRef, CommitOutcome, InDoubtCommit } from './commit-outcome.ts';
import type { EngineEvents } from './engine-events.ts';
import { GroupDelay } from './group-delay.ts';
import { LogEnd } from './log-end.ts';
import type { LogFollower } from './log-follower.ts';
import { Rivals, SlotRace } from './rivals.ts';

/** A flush that waits to be committed. */
export interface FlushRequest {
  /**
   * Validates the flush against a view, which also shows the `earlier` members of the same commit, and returns the member to commit;
   * rejects with the verdict if the flush cannot be committed. May be called again.
   */
  prepare(view: View, earlier: readonly CommitMember[]): Promise<CommitMember>;
  /** Aborting it gives the flush up: with its reason as the error, unless the outcome of a put is open. */
  readonly signal: AbortSignal;
  /** About how many bytes the flush will take. */
  readonly sizeBytes: number;
}

interface Waiting {
  readonly request: FlushRequest;
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
  /** The commit that the flush is in, from its put until its outcome is known. */
  inFlight: Required<CommitRef> | undefined;
  /** Whether the tail was refreshed after the flush was called. Until then no rejection is final, except for a transaction's conflict. */
  refreshed: boolean;
  /** Whether the caller has its answer. */
  answered: boolean;
}

/** A flush that was rejected on top of the flushes before it in its group, and the reason. */
interface Contradicted {
  readonly waiting: Waiting;
  readonly verdict: unknown;
}

interface PreparedGroup {
  readonly accepted: Waiting[];
  readonly members: CommitMember[];
  readonly contradicted: readonly Contradicted[];
}

/** The part of the engine that keeps the view fresh. */
export interface ViewFreshness {
  /** Whether the view is so old that a put after its tail would only be lost. */
  readonly isStale: boolean;
  /** Refreshes the view if it is stale. True if the view then shows everything that was committed before the call. */
  freshen(signal: AbortSignal | undefined): Promise<boolean>;
  /** Catches up with everything that was committed before the call. */
  catchUp(signal?: AbortSignal): Promise<void>;
}

/** The part of the engine that holds flushes back while too many commits wait to be merged. */
export interface FlushBackpressure {
  /** Whether no commit may be put at the end of the log until some are merged. */
  readonly isFull: boolean;
  /** Waits while too much is pending to take another commit. Rejects with `BackpressureError` if that does not change. */
  makeRoom(): Promise<void>;
}

/** Pauses between attempts to learn the outcome of a commit. */
const whileUnknown: Backoff = { firstMs: 20, maxMs: 1000, jitter: 'around' };

export interface LogWriterOptions {
  readonly environment: Environment;
  readonly register: Block0Register;
  readonly follower: LogFollower;
  readonly log: CommitLog;
  readonly node: NodeId;
  readonly events: EngineEvents;
  readonly freshness: ViewFreshness;
  readonly backpressure: FlushBackpressure;
  /**
   * Commits in doubt by id. The map outlives this writer, so that a commit that is in doubt when an instance is stopped is
   * resolved after its next start.
   */
  readonly inDoubt: Map<string, InDoubtCommit>;
  /** How long the writer tries to learn the outcome of a commit before it rejects the flushes with an unknown outcome, in milliseconds. */
  readonly outcomeTimeoutMs: number;
}

/** Flushes that share a commit have at most this many bytes together. */
const maxGroupBytes = 4 * 1024 * 1024;

export class LogWriter {
  readonly #options: LogWriterOptions;
  readonly #delay: GroupDelay;
  readonly #encoder = new CommitEncoder();
  #queue: Waiting[] = [];
  #running: Promise<void> | undefined;
  readonly #rivals: Rivals;
  readonly #end: LogEnd;
  readonly #inDoubt: Map<string, InDoubtCommit>;
  readonly #resolutions = new Set<Promise<boolean>>();
  /** Outcomes that a caller may still ask for, by slot and commit id. */
  readonly #decided = new Map<string, 'committed' | 'lost'>();

  constructor(options: LogWriterOptions) {
    this.#options = options;
    this.#delay = new GroupDelay(options.environment);
    const { environment, follower, freshness, events } = options;
    const rivals = new Rivals(environment);
    events.committed.on((news) => {
      for (const { slot, commit } of news) rivals.noteWinner(slot, commit.since ?? slot, commit.atMs);
    });
    this.#rivals = rivals;
    this.#end = new LogEnd({ environment, follower, rivals, catchUp: () => freshness.catchUp() });
    this.#inDoubt = options.inDoubt;
  }

  /** Commits a flush; resolves once it is durable and confirmed. */
  append(request: FlushRequest): Promise<void> {
    return new Promise((resolve, reject) => {
      const { signal } = request;
      const rejectWith = reject as (error: unknown) => void;
      const waiting: Waiting = {
        request,
        resolve: () => answer(resolve),
        reject: (error) => answer(() => rejectWith(error)),
        inFlight: undefined,
        refreshed: false,
        answered: false,
      };
      const onAbort = (): void => {
        const { inFlight } = waiting;
        waiting.reject(inFlight === undefined ? signal.reason : outcomeUnknown(inFlight, signal.reason));
      };
      const answer = (how: () => void): void => {
        if (waiting.answered) return;
        waiting.answered = true;
        signal.removeEventListener('abort', onAbort);
        how();
      };
      if (signal.aborted) onAbort();
      else {
        signal.addEventListener('abort', onAbort, { once: true });
        this.#delay.noteArrival(this.#queue.push(waiting));
        this.#running ??= this.#run();
      }
    });
  }

  /** Resolves once no flush is under way and no call of {@link resolve} is either. */
  async idle(): Promise<void> {
    while (this.#running !== undefined || this.#resolutions.size > 0) {
      await Promise.allSettled([this.#running, ...this.#resolutions]);
    }
  }

  /**
   * Learns the outcome of a commit in doubt, and returns whether it was applied. Rejects with `CommitOutcomeUnknownError` if the
   * outcome is still unknown.
   */
  resolve(commitId: string, slot: number, signal?: AbortSignal): Promise<boolean> {
    const asked = this.#resolve(commitId, slot, signal).finally(() => this.#resolutions.delete(asked));
    this.#resolutions.add(asked);
    return asked;
  }

  async #resolve(commitId: string, slot: number, signal?: AbortSignal): Promise<boolean> {
    const isOwn = this.#ownOf(commitId, slot) !== undefined;
    const { databaseId } = this.#options.register.current.block0;
    let outcome: CommitOutcome;
    try {
      outcome = this.#decided.get(refKey({ commitId, slot })) ?? (await this.#resolveAgain(commitId, slot, signal));
      // A caller that learns that the commit was applied must see it.
      if (outcome === 'committed' && this.#options.follower.view.tail < slot)
        await this.#options.freshness.catchUp(signal);
    } catch (error) {
      // A failure while asking is no answer: the old commit may still be applied.
      throw outcomeUnknown({ commitId, slot, databaseId }, error);
    }
    if (outcome === 'unknown') throw outcomeUnknown({ commitId, slot, databaseId }, this.#failureOf(commitId));
    if (isOwn) {
      this.#inDoubt.delete(commitId);
      this.#decided.set(refKey({ commitId, slot }), outcome);
    }
    return outcome === 'committed';
  }

  /** The commit in doubt of this instance with this id and slot. A question about it that names a wrong slot must not decide it. */
  #ownOf(commitId: string, slot: number): InDoubtCommit | undefined {
    const inDoubt = this.#inDoubt.get(commitId);
    return inDoubt?.slot === slot ? inDoubt : undefined;
  }

  async #resolveAgain(commitId: string, slot: number, signal?: AbortSignal): Promise<CommitOutcome> {
    const inDoubt = this.#ownOf(commitId, slot);
    if (inDoubt?.commit.databaseId === this.#options.register.current.block0.databaseId) {
      const { resolving } = inDoubt;
      // A commit is never resolved twice at once: its first put may yet be refused, and that is definite only if there is no other put.
      const outcome = resolving && (await untilAborted(resolving.catch(outcomeOfFailure), signal));
      return outcome === undefined || outcome === 'unknown' ? this.#putUntilDecided(inDoubt, false, signal) : outcome;
    }
    return readOutcome({ commitId, slot }, this.#options.log, this.#options.register, signal);
  }

  async #run(): Promise<void> {
    while (this.#queue.length > 0) {
      await this.#delay.wait(() => this.#queue.length);
      const group = this.#takeGroup();
      try {
        await this.#commitGroup(group);
      } catch (error) {
        rejectAll(group, error);
      }
      this.#delay.noteEnd(group.length + this.#queue.length);
    }
    // Without an await after the look at the queue: no run would commit a flush that was queued in between.
    this.#running = undefined;
  }

  #takeGroup(): Waiting[] {
    let bytes = 0;
    let n = 0;
    for (const { request } of this.#queue) {
      bytes += request.sizeBytes;
      if (n > 0 && bytes > maxGroupBytes) break;
      n++;
    }
    return this.#queue.splice(0, n);
  }

  async #commitGroup(group: readonly Waiting[]): Promise<void> {
    const { follower, freshness, backpressure } = this.#options;
    follower.throwIfDamaged();
    await backpressure.makeRoom();
    if (freshness.isStale) await this.#refreshFor(group, freshness.freshen(undefined));
    const isOver = (): boolean => group.every((waiting) => waiting.answered);
    let isOwnTurn = false;
    for (const race = new SlotRace(); ; ) {
      // Where others write all the time, a look is cheaper than a put that comes too late.
      if (!isOwnTurn) await this.#end.awaitTurn(race, isOver);
      if (isOver()) return;
      isOwnTurn = true;
      if (backpressure.isFull) {
        isOwnTurn = false;
        await backpressure.makeRoom();
        continue;
      }
      const view = follower.view;
      const { accepted, members, contradicted } = await this.#prepare(group, view);
      // A flush was given up, or the view was refreshed: flushes validated on top of the old state must be validated again.
      if (accepted.length === 0 || accepted.some((waiting) => waiting.answered) || follower.view !== view) continue;
      const conclude = (): void => {
        for (const waiting of accepted) waiting.resolve();
        for (const { waiting, verdict } of contradicted) waiting.reject(verdict);
      };
      if (members.every(isEmptyMember)) {
        // Nothing is to be written. Like a rejection, that is final only on a tail refreshed after the call.
        if (group.every((waiting) => waiting.refreshed)) return conclude();
        await this.#refreshFor(group);
        continue;
      }
      const fail = (failure: unknown): void => {
        // Flushes that contradicted the accepted ones may be valid now: they are validated again.
        this.#queue.unshift(...contradicted.map(({ waiting }) => waiting));
        rejectAll(accepted, failure);
      };
      let outcome: CommitOutcome;
      try {
        outcome = await this.#commitMembers(accepted, view, members, race.since);
      } catch (error) {
        return fail(error);
      }
      if (outcome === 'committed') return conclude();
      if (outcome === 'unknown') return fail(this.#failureOf(accepted[0]?.inFlight?.commitId));
      for (const waiting of accepted) waiting.inFlight = undefined;
      isOwnTurn = false;
      this.#rivals.noteLoss();
      race.noteLoss();
    }
  }

  /**
   * Validates each flush on top of the flushes before it. A rejection counts only on a tail refreshed after the call, and only
   * on the commits in the log: a flush that contradicts another one of its group is rejected once that other one is committed.
   */
  async #prepare(group: readonly Waiting[], view: View): Promise<PreparedGroup> {
    const accepted: Waiting[] = [];
    const members: CommitMember[] = [];
    const contradicted: Contradicted[] = [];
    let state = view;
    let shown = 0;
    for (const waiting of group) {
      if (waiting.answered) continue;
      // A member is shown only to the flushes after it. None comes after the last one, so it is shown once it is committed.
      for (; shown < members.length; shown++) state = state.withMember(members[shown] as CommitMember);
      try {
        const member = await waiting.request.prepare(state, members);
        accepted.push(waiting);
        members.push(member);
      } catch (error) {
        if (error instanceof BlockGone && (await this.#isOutdated(view))) {
          return { accepted: [], members: [], contradicted: [] };
        }
        if (accepted.length > 0) {
          contradicted.push({ waiting, verdict: error });
          continue;
        }
        // If something that a transaction read has changed since, then so it has on every later tail: this is final at once.
        if (waiting.refreshed || error instanceof TransactionConflictError) {
          waiting.reject(error);
          continue;
        }
        await this.#refreshFor(group);
        return { accepted: [], members: [], contradicted: [] };
      }
    }
    return { accepted, members, contradicted };
  }

  /**
   * Catches up, and returns whether the generation has moved on: then a missing block of the old view was collected as garbage,
   * and is not lost.
   */
  async #isOutdated({ block0 }: View): Promise<boolean> {
    await this.#options.freshness.catchUp();
    return this.#options.follower.view.block0.generation > block0.generation;
  }

  /** Waits for a refresh, begun after all of these flushes were called, and notes it for each of them unless it resolves to false. */
  async #refreshFor(
    group: readonly Waiting[],
    refresh: Promise<unknown> = this.#options.freshness.catchUp(),
  ): Promise<void> {
    if ((await refresh) !== false) for (const waiting of group) waiting.refreshed = true;
  }

  /**
   * Puts a commit at the slot after the view that it was validated on, and learns whether it won the slot. `since`: the first slot that
   * its flushes have found free.
   */
  async #commitMembers(
    accepted: readonly Waiting[],
    view: View,
    members: readonly CommitMember[],
    since: number | undefined,
  ): Promise<CommitOutcome> {
    const { environment, register, node } = this.#options;
    const slot = view.tail + 1;
    const { databaseId } = register.current.block0;
    const commit: Commit = {
      databaseId,
      commitId: randomUuid(environment),
      previousId: view.tailId,
      nodeId: node.id,
      atMs: environment.now(),
      ...(since !== undefined && since < slot && { since }),
      members,
    };
    const bytes = this.#encoder.encode(slot, commit);
    for (const waiting of accepted) waiting.inFlight = { commitId: commit.commitId, slot, databaseId };
    const { commitId } = commit;
    const inDoubt: InDoubtCommit = { slot, commit, bytes, resolving: undefined };
    this.#inDoubt.set(commitId, inDoubt);
    inDoubt.resolving = this.#putUntilDecided(inDoubt, true);
    try {
      const outcome = await inDoubt.resolving;
      if (outcome !== 'unknown') this.#noteOutcome(inDoubt, outcome, accepted);
      return outcome;
    } catch (error) {
      if (error instanceof NotCommittedError) {
        this.#noteOutcome(inDoubt, 'lost', accepted);
        for (const waiting of accepted) waiting.inFlight = undefined;
      }
      throw error;
    } finally {
      inDoubt.resolving = undefined;
    }
  }

  #failureOf(commitId: string | undefined): StorageError | undefined {
    return commitId === undefined ? undefined : this.#inDoubt.get(commitId)?.failure;
  }

  /** Notes the outcome of a commit. A caller that gave up meanwhile got "unknown", and may ask again. */
  #noteOutcome({ commit, slot }: InDoubtCommit, outcome: 'committed' | 'lost', flushes: readonly Waiting[]): void {
    this.#inDoubt.delete(commit.commitId);
    if (flushes.some((waiting) => waiting.answered))
      this.#decided.set(refKey({ commitId: commit.commitId, slot }), outcome);
  }

  /** Puts the commit at its slot until it is known which commit has the slot, or time is up. `isFirstPut`: it was never put before. */
  async #putUntilDecided(inDoubt: InDoubtCommit, isFirstPut: boolean, signal?: AbortSignal): Promise<CommitOutcome> {
    const { environment, outcomeTimeoutMs } = this.#options;
    const until = environment.monotonicMs() + outcomeTimeoutMs;
    for (let attempt = 1; ; attempt++) {
      try {
        const outcome = await this.#putAndConfirm(inDoubt, isFirstPut && attempt === 1, signal);
        if (outcome !== undefined) return outcome;
      } catch (error) {
        if (!(error instanceof StorageError) || error instanceof NotCommittedError) throw error;
        inDoubt.failure = error;
      }
      if (environment.monotonicMs() >= until || signal?.aborted === true) return 'unknown';
      await backOff(environment, whileUnknown, attempt);
    }
  }

  /**
   * Puts the commit once, and reads its slot and then Block 0 to learn the outcome; undefined if the slot is still empty. Only the
   * failure of the very first put can be definite: when a later one fails, an earlier one may have landed, or may still land.
   */
  async #putAndConfirm(
    inDoubt: InDoubtCommit,
    isFirstPut: boolean,
    signal?: AbortSignal,
  ): Promise<CommitOutcome | undefined> {
    const { log, register, follower, freshness } = this.#options;
    const { slot, commit, bytes } = inDoubt;
    // Where others write all the time, the slot is read at once: if the put is lost, the winner is known with its answer.
    const early = isFirstPut && this.#rivals.areThere ? log.read(slot, signal).catch(() => undefined) : undefined;
    let written = false;
    try {
      written = (await log.put(slot, bytes, signal)).status === 'written';
    } catch (error) {
      if (!(error instanceof StorageError)) throw error;
      if (isFirstPut && error.outcome === 'none') throw new NotCommittedError(error);
      inDoubt.failure = error;
    }
    const stored = written ? commit : ((await early) ?? (await log.read(slot, signal)));
    // This read of Block 0 starts after the slot was won or read: only it confirms the slot.
    const versioned = await register.refresh(signal);
    if (versioned.block0.logFloor >= slot) {
      const outcome = deadSlotOutcome(versioned.block0, slot, commit.commitId);
      await freshness.catchUp(signal);
      return outcome;
    }
    // A slot that a repair has given up may take a put, and yet Block 0 has gone on without it.
    if (outcomeInBlock0(versioned.block0, slot, commit.commitId) === 'lost') {
      await freshness.catchUp(signal);
      return 'lost';
    }
    if (stored === undefined) return undefined;
    const isOwn = stored.commitId === commit.commitId;
    follower.advance(versioned, [{ slot, commit: isOwn ? commit : stored }]);
    return isOwn ? 'committed' : 'lost';
  }
}

/**
 * Rejects flushes: with the failure itself if no put of the flush is open, so that it is definite; otherwise with
 * `CommitOutcomeUnknownError`.
 */
function rejectAll(flushes: readonly Waiting[], failure: unknown): void {
  for (const { inFlight, reject } of flushes)
    reject(inFlight === undefined ? failure : outcomeUnknown(inFlight, failure));
}
