/**
 * Appends to the log: wins a slot for a commit, or learns for certain that it did not (docs/protocol.md, "Commit").
 *
 * Invariants:
 * - A put at slot n happens only on a view whose tail is n - 1, so the commit was validated against exactly the state
 *   that it will be applied to.
 * - Any answer but "written" is settled by reading the slot and then Block 0; the same bytes are put at the same slot
 *   again while it is missing. No flush goes into another commit before its old one is decided.
 * - A definite error means: not applied, now or later. Everything else is `CommitOutcomeUnknownError`.
 */
import { backOff } from '../base/backoff.ts';
import type { Backoff } from '../base/backoff.ts';
import { sleep } from '../base/env.ts';
import type { Environment } from '../base/env.ts';
import { StorageError, TransactionConflictError } from '../base/errors.ts';
import { randomUuid } from '../base/ids.ts';
import { encodeCommit } from '../format/commit.ts';
import type { Commit, CommitMember } from '../format/commit.ts';
import type { Block0Register } from '../block0/block0-register.ts';
import type { View } from '../view/view.ts';
import { BlockGone } from '../tree/block-source.ts';
import type { CommitLog } from './commit-log.ts';
import { deadSlotFate, DefiniteFailure, lostForCertain, outcomeUnknown, readFate, refKey } from './commit-outcome.ts';
import type { CommitRef, Fate, Undecided } from './commit-outcome.ts';
import type { Follower } from './log-follower.ts';
import { GroupDelay } from './group-delay.ts';
import type { NodeId } from '../block0/node-identity.ts';
import { SlotRace } from './slot-race.ts';
import { untilAborted } from '../base/until-aborted.ts';

/** A flush that wants to be committed. */
export interface FlushRequest {
  /**
   * Validates against a view, which shows the `earlier` members of the same commit as well, and gives what to commit;
   * rejects with the verdict if it cannot be. May run again.
   */
  prepare(view: View, earlier: readonly CommitMember[]): Promise<CommitMember>;
  /** Gives the flush up when aborted; its reason is the error where nothing was put yet. */
  readonly signal: AbortSignal;
  /** Bytes that it will about take. */
  readonly sizeBytes: number;
}

interface Waiting {
  readonly request: FlushRequest;
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
  /** The commit that it is in, from its put on until that is decided. */
  inFlight: Required<CommitRef> | undefined;
  /** Whether the tail was refreshed since the flush was called: before that no rejection is final. */
  refreshed: boolean;
  settled: boolean;
}

/** A flush that does not go with those before it in its group, and why. */
interface Contradicted {
  readonly waiting: Waiting;
  readonly verdict: unknown;
}

interface PreparedGroup {
  readonly accepted: Waiting[];
  readonly members: CommitMember[];
  readonly contradicted: readonly Contradicted[];
}

/** What keeps the view fresh. */
export interface ViewFreshness {
  /** Whether the view is so old that a put on it would only be lost. */
  readonly isStale: boolean;
  /** Freshens a view that is. True if it then shows all that was committed before the call. */
  freshen(signal: AbortSignal | undefined): Promise<boolean>;
  /** Catches up with everything that was committed before the call. */
  catchUp(signal?: AbortSignal): Promise<void>;
}

/** What keeps room for commits. */
export interface FlushRoom {
  /** Waits where too much is pending. Rejects with `BackpressureError` if it stays so. */
  makeRoom(): Promise<void>;
}

/** Between attempts to learn the outcome of a commit. */
const whileUnknown: Backoff = { firstMs: 20, longestMs: 1000, jitter: 'around' };

export interface LogWriterOptions {
  readonly environment: Environment;
  readonly register: Block0Register;
  readonly follower: Follower;
  readonly log: CommitLog;
  readonly node: NodeId;
  readonly freshness: ViewFreshness;
  readonly backlog: FlushRoom;
  /** By commit id. Outlives this writer, so that what is undecided when an instance is stopped is settled after its start. */
  readonly undecided: Map<string, Undecided>;
  /** How long an undecided commit is settled before its flushes are told that it is unknown, in milliseconds. */
  readonly settleTimeoutMs: number;
}

/** Flushes that share a commit have at most this many bytes together. */
const maxGroupBytes = 4 * 1024 * 1024;

export class LogWriter {
  readonly #options: LogWriterOptions;
  readonly #delay: GroupDelay;
  #queue: Waiting[] = [];
  #running: Promise<void> | undefined;
  /** Whether others had been faster when the last flush came to put. */
  #cameLate = false;
  readonly #undecided: Map<string, Undecided>;
  readonly #asked = new Set<Promise<boolean>>();
  /** By slot and commit id. */
  readonly #decided = new Map<string, 'applied' | 'lost'>();

  constructor(options: LogWriterOptions) {
    this.#options = options;
    this.#delay = new GroupDelay(options.environment);
    this.#undecided = options.undecided;
  }

  /** Commits a flush; resolves once it is durable and confirmed. */
  append(request: FlushRequest): Promise<void> {
    return new Promise((resolve, reject) => {
      const { signal } = request;
      const rejectWith = reject as (error: unknown) => void;
      const waiting: Waiting = {
        request,
        resolve: () => settle(resolve),
        reject: (error) => settle(() => rejectWith(error)),
        inFlight: undefined,
        refreshed: false,
        settled: false,
      };
      const onAbort = (): void => {
        const { inFlight } = waiting;
        waiting.reject(inFlight === undefined ? signal.reason : outcomeUnknown(inFlight, signal.reason));
      };
      const settle = (how: () => void): void => {
        if (waiting.settled) return;
        waiting.settled = true;
        signal.removeEventListener('abort', onAbort);
        how();
      };
      if (signal.aborted) onAbort();
      else {
        signal.addEventListener('abort', onAbort, { once: true });
        this.#delay.came(this.#queue.push(waiting));
        this.#running ??= this.#run();
      }
    });
  }

  /** Resolves once no flush is under way, nor anybody asks what became of one. */
  async idle(): Promise<void> {
    while (this.#running !== undefined || this.#asked.size > 0) {
      await Promise.allSettled([this.#running, ...this.#asked]);
    }
  }

  /**
   * Settles a commit whose outcome was unknown: whether it was applied. Throws `CommitOutcomeUnknownError` if the store
   * still cannot tell.
   */
  resolve(commitId: string, slot: number, signal?: AbortSignal): Promise<boolean> {
    const asked = this.#resolve(commitId, slot, signal).finally(() => this.#asked.delete(asked));
    this.#asked.add(asked);
    return asked;
  }

  async #resolve(commitId: string, slot: number, signal?: AbortSignal): Promise<boolean> {
    const isOwn = this.#ownOf(commitId, slot) !== undefined;
    const { databaseId } = this.#options.register.current.block0;
    let fate: Fate;
    try {
      fate = this.#decided.get(refKey({ commitId, slot })) ?? (await this.#settleAgain(commitId, slot, signal));
      // Who is told that it was applied must see it.
      if (fate === 'applied' && this.#options.follower.view.tail < slot) await this.#options.freshness.catchUp(signal);
    } catch (error) {
      // Whatever went wrong while asking is no answer: the old commit may still be applied.
      throw outcomeUnknown({ commitId, slot, databaseId }, error);
    }
    if (fate === 'unknown') throw outcomeUnknown({ commitId, slot, databaseId }, this.#failureOf(commitId));
    if (isOwn) {
      this.#undecided.delete(commitId);
      this.#decided.set(refKey({ commitId, slot }), fate);
    }
    return fate === 'applied';
  }

  /** An undecided commit of this instance: what somebody hears of it by a wrong slot must not decide it. */
  #ownOf(commitId: string, slot: number): Undecided | undefined {
    const undecided = this.#undecided.get(commitId);
    return undecided?.slot === slot ? undecided : undefined;
  }

  async #settleAgain(commitId: string, slot: number, signal?: AbortSignal): Promise<Fate> {
    const undecided = this.#ownOf(commitId, slot);
    if (undecided?.commit.databaseId === this.#options.register.current.block0.databaseId) {
      const { settling } = undecided;
      // Never twice at once: the first put may yet be refused, which is definite only while there is no other one.
      const fate = settling && (await untilAborted(settling.catch(lostForCertain), signal));
      return fate === undefined || fate === 'unknown' ? this.#settle(undecided, false, signal) : fate;
    }
    return readFate({ commitId, slot }, this.#options.log, this.#options.register, signal);
  }

  async #run(): Promise<void> {
    while (this.#queue.length > 0) {
      await this.#delay.over(() => this.#queue.length);
      const group = this.#takeGroup();
      try {
        await this.#commitGroup(group);
      } catch (error) {
        rejectAll(group, error);
      }
      this.#delay.ended(group.length + this.#queue.length);
    }
    // In one step with the look at the queue: a flush that came in between would wait for nobody.
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
    const { follower, environment, freshness, backlog } = this.#options;
    follower.checkWhole();
    await backlog.makeRoom();
    if (freshness.isStale) await this.#refreshFor(group, freshness.freshen(undefined));
    // Where others write all the time, a look is cheaper than a put that comes too late.
    else if (this.#cameLate) this.#cameLate = await follower.peek();
    for (const race = new SlotRace(); ; ) {
      const view = follower.view;
      const { accepted, members, contradicted } = await this.#prepare(group, view);
      if (accepted.length === 0 && group.every((waiting) => waiting.settled)) return;
      // Somebody gave up, or was told to look again: what was validated on top of it must be validated anew.
      if (accepted.length === 0 || accepted.some((waiting) => waiting.settled) || follower.view !== view) continue;
      const conclude = (): void => {
        for (const waiting of accepted) waiting.resolve();
        for (const { waiting, verdict } of contradicted) waiting.reject(verdict);
      };
      if (members.every(({ changes }) => changes.length === 0)) {
        // Nothing is to be written. That there is nothing to change is a verdict like a rejection.
        if (group.every((waiting) => waiting.refreshed)) return conclude();
        await this.#refreshFor(group);
        continue;
      }
      let fate: Fate = 'unknown';
      let failure: unknown;
      try {
        fate = await this.#put(accepted, view, members);
      } catch (error) {
        failure = error;
      }
      if (fate === 'applied') return conclude();
      if (fate === 'unknown') {
        // What contradicted them may now be right: it is validated anew.
        this.#queue.unshift(...contradicted.map(({ waiting }) => waiting));
        return rejectAll(accepted, failure ?? this.#failureOf(accepted[0]?.inFlight?.commitId));
      }
      for (const waiting of accepted) waiting.inFlight = undefined;
      await sleep(environment, race.lost(environment.random()));
      // The winner was seldom the last one: without a look, each slot since then would cost a put to find out.
      this.#cameLate = true;
      await follower.peek();
    }
  }

  /**
   * Validates each flush on top of those before it. A rejection counts only on a tail refreshed after the call, and only
   * on what is in the log: what contradicts a flush of the same group is rejected once that one is committed.
   */
  async #prepare(group: readonly Waiting[], view: View): Promise<PreparedGroup> {
    const accepted: Waiting[] = [];
    const members: CommitMember[] = [];
    const contradicted: Contradicted[] = [];
    let state = view;
    let shown = 0;
    for (const waiting of group) {
      if (waiting.settled) continue;
      // Shown only to those that come after: the last one's changes are shown once they are committed.
      for (; shown < members.length; shown++) state = state.withMember(members[shown] as CommitMember);
      try {
        const member = await waiting.request.prepare(state, members);
        accepted.push(waiting);
        members.push(member);
      } catch (error) {
        if (error instanceof BlockGone && (await this.#isOvertaken(view))) {
          return { accepted: [], members: [], contradicted: [] };
        }
        if (accepted.length > 0) {
          contradicted.push({ waiting, verdict: error });
          continue;
        }
        // What was read and has changed since is out of date on every later tail as well.
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

  /** Whether garbage was collected past a view, so that a block it shows is gone and not lost. Catches up. */
  async #isOvertaken({ block0 }: View): Promise<boolean> {
    await this.#options.freshness.catchUp();
    return this.#options.follower.view.block0.generation > block0.generation;
  }

  /** After this, what is found holds on a tail that was refreshed after all of these were called. */
  async #refreshFor(
    group: readonly Waiting[],
    refresh: Promise<unknown> = this.#options.freshness.catchUp(),
  ): Promise<void> {
    if ((await refresh) !== false) for (const waiting of group) waiting.refreshed = true;
  }

  /** Puts a commit at the slot behind the view that it was validated on, and finds out whether it has it. */
  async #put(accepted: readonly Waiting[], view: View, members: readonly CommitMember[]): Promise<Fate> {
    const { environment, register, node } = this.#options;
    const slot = view.tail + 1;
    const { databaseId } = register.current.block0;
    const commit: Commit = {
      databaseId,
      commitId: randomUuid(environment),
      previousId: view.tailId,
      nodeId: node.id,
      atMs: environment.now(),
      members,
    };
    const bytes = encodeCommit(slot, commit);
    for (const waiting of accepted) waiting.inFlight = { commitId: commit.commitId, slot, databaseId };
    const { commitId } = commit;
    const undecided: Undecided = { slot, commit, bytes, settling: undefined };
    this.#undecided.set(commitId, undecided);
    undecided.settling = this.#settle(undecided, true);
    try {
      const fate = await undecided.settling;
      if (fate !== 'unknown') this.#decide(undecided, fate, accepted);
      return fate;
    } catch (error) {
      if (error instanceof DefiniteFailure) {
        this.#decide(undecided, 'lost', accepted);
        for (const waiting of accepted) waiting.inFlight = undefined;
      }
      throw error;
    } finally {
      undecided.settling = undefined;
    }
  }

  #failureOf(commitId: string | undefined): StorageError | undefined {
    return commitId === undefined ? undefined : this.#undecided.get(commitId)?.failure;
  }

  /** It is known what became of a commit. Somebody who gave up meanwhile was told "unknown", and may ask. */
  #decide({ commit, slot }: Undecided, fate: 'applied' | 'lost', flushes: readonly Waiting[]): void {
    this.#undecided.delete(commit.commitId);
    if (flushes.some((waiting) => waiting.settled))
      this.#decided.set(refKey({ commitId: commit.commitId, slot }), fate);
  }

  /** Puts the commit at its slot until it is decided who has the slot, or time is up. `fresh`: never put before. */
  async #settle(undecided: Undecided, fresh: boolean, signal?: AbortSignal): Promise<Fate> {
    const { environment, settleTimeoutMs } = this.#options;
    const until = environment.monotonicMs() + settleTimeoutMs;
    for (let attempt = 1; ; attempt++) {
      try {
        const fate = await this.#settleOnce(undecided, fresh && attempt === 1, signal);
        if (fate !== undefined) return fate;
      } catch (error) {
        if (!(error instanceof StorageError) || error instanceof DefiniteFailure) throw error;
        undecided.failure = error;
      }
      if (environment.monotonicMs() >= until || signal?.aborted === true) return 'unknown';
      await backOff(environment, whileUnknown, attempt);
    }
  }

  /**
   * One put and what it takes to learn its outcome; undefined if the slot is still missing. Only the failure of the
   * first put of all can be definite: after any other, an earlier one may have landed, or may yet.
   */
  async #settleOnce(undecided: Undecided, first: boolean, signal?: AbortSignal): Promise<Fate | undefined> {
    const { log, register, follower, freshness } = this.#options;
    const { slot, commit, bytes } = undecided;
    let written = false;
    try {
      written = (await log.put(slot, bytes, signal)).status === 'written';
    } catch (error) {
      if (!(error instanceof StorageError)) throw error;
      if (first && error.outcome === 'none') throw new DefiniteFailure(error);
      undecided.failure = error;
    }
    const stored = written ? commit : await log.read(slot, signal);
    // This read of Block 0 starts after the slot was won or read: only it confirms the slot.
    const versioned = await register.refresh(signal);
    if (versioned.block0.logFloor >= slot) {
      const fate = deadSlotFate(versioned.block0, slot, commit.commitId);
      await freshness.catchUp(signal);
      return fate;
    }
    if (stored === undefined) return undefined;
    const own = stored.commitId === commit.commitId;
    follower.advance(versioned, [{ seq: slot, commit: own ? commit : stored }]);
    return own ? 'applied' : 'lost';
  }
}

/** Rejects flushes: with the failure itself where nothing of them was put, so that it is definite. */
function rejectAll(flushes: readonly Waiting[], failure: unknown): void {
  for (const { inFlight, reject } of flushes)
    reject(inFlight === undefined ? failure : outcomeUnknown(inFlight, failure));
}
