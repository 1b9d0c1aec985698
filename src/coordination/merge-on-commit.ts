/**
 * The merges of an ephemeral instance, which takes no turns: it lives for a request or a job, and nobody merges after it. So the
 * instance whose commit fills the log up to a limit merges, and no ephemeral instance appends to a log that is full. So at most as many
 * commits wait as the limit says, and an instance that opens the database reads no more.
 *
 * The limit only decides who tries to merge, and when. As always, Block 0 decides which merge counts.
 */
import { untilAborted, withinDeadline } from '../base/abort.ts';
import { sleep } from '../base/env.ts';
import type { Environment } from '../base/env.ts';
import type { Logger } from '../base/logger.ts';
import type { LogFollower } from '../log/log-follower.ts';
import type { FlushBackpressure } from '../log/log-writer.ts';
import type { PendingRoom } from '../log/pending-room.ts';
import type { Merger } from '../merge/merger.ts';
import type { Backpressure } from './backpressure.ts';
import type { FailureReports } from './failure-reports.ts';

export interface MergeOnCommitOptions {
  readonly environment: Environment;
  readonly logger: Logger;
  readonly follower: LogFollower;
  readonly room: PendingRoom;
  readonly merger: Merger;
  readonly backpressure: Backpressure;
  readonly failures: FailureReports;
  /** Catches up with everything that was committed before the call. */
  readonly catchUp: () => Promise<void>;
  /** The number of pending commits at which an instance merges before it commits. */
  readonly maxPending: number;
  /** Keeps the process running until a promise is settled, after the answer of a request was sent; undefined where answers wait. */
  readonly waitUntil: ((work: Promise<unknown>) => void) | undefined;
}

/** Where the log is full, an instance merges at once with this chance; the chance doubles with each look at the store. */
const firstChance = 0.25;
/** About how long an instance waits between two looks for a merge by another instance, in milliseconds. */
const pauseMs = 200;
/** How long the answer of a flush waits for the merge after it, at most, in milliseconds. */
const maxWaitMs = 10_000;

export class MergeOnCommit implements FlushBackpressure {
  readonly #options: MergeOnCommitOptions;
  /** Whether the last merge has failed. */
  #hasFailed = false;

  constructor(options: MergeOnCommitOptions) {
    this.#options = options;
  }

  get isFull(): boolean {
    return this.#options.backpressure.isFull || (this.#isAtLimit && !this.#hasFailed);
  }

  get #isAtLimit(): boolean {
    return this.#options.follower.view.pending.length >= this.#options.maxPending;
  }

  /**
   * Resolves once the log has room for a commit. The instance that has filled it mostly merges at this moment. So others wait, and
   * merge themselves if that takes too long. If merging fails, commits go on up to the limit of memory.
   */
  async makeRoom(): Promise<void> {
    const { environment, backpressure, catchUp } = this.#options;
    await backpressure.makeRoom();
    for (let chance = firstChance; this.#isAtLimit; chance *= 2) {
      if (environment.random() < chance) {
        await this.#merge();
        if (this.#hasFailed) return;
      } else {
        await sleep(environment, pauseMs * (0.5 + environment.random()));
        await catchUp();
      }
    }
  }

  /** Merges, or finds that another instance was faster. A failure is reported. */
  async #merge(): Promise<void> {
    const { merger, failures } = this.#options;
    try {
      await merger.merge();
      failures.worked('Merging');
      this.#hasFailed = false;
    } catch (error) {
      failures.report('Merging', error);
      this.#hasFailed = true;
    }
  }

  /**
   * Whether the instance whose commit is the last of so many merges: at half of the limit, so that the log does not fill up meanwhile, and
   * again after each quarter, if that instance has ended too early.
   */
  #mustMerge(pending: number): boolean {
    const { maxPending } = this.#options;
    const half = Math.ceil(maxPending / 2);
    return pending >= half && (pending - half) % Math.ceil(maxPending / 4) === 0;
  }

  /**
   * Merges after a commit that has filled the log. Where the platform lets work go on after an answer, it resolves at once. Otherwise
   * it resolves after the merge, since the process may be frozen with the answer. Never rejects: the commit counts in any case.
   */
  async afterCommit(signal: AbortSignal | undefined): Promise<void> {
    const { environment, follower, room, logger, waitUntil } = this.#options;
    const { view } = follower;
    if (!this.#mustMerge(view.pending.length) && !room.isLarge(view)) return;
    const merging = this.#merge();
    if (waitUntil !== undefined) {
      try {
        waitUntil(merging);
        return;
      } catch (error) {
        logger.warn('The option waitUntil threw an error, so the flush waits for the merge after it', { error });
      }
    }
    const awaited = withinDeadline(environment, 'Merging', maxWaitMs, signal, (deadline) =>
      untilAborted(merging, deadline.signal),
    );
    await awaited.catch(() => undefined);
  }
}
