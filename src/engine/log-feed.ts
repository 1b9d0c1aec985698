/**
 * Reads the commits of the log one by one, in order, from a position on: pending commits are taken from the view, merged commits are
 * read from the store again, and later commits are awaited.
 *
 * Invariants:
 * - Every commit that is given out is confirmed (docs/protocol.md, "Read"), and follows the one before it.
 * - While nobody asks for the next commit, nothing is read and no timer runs. Held are at most the commits of one window,
 *   which count in the memory of the instance.
 */
import { sleep } from '../base/env.ts';
import type { Environment } from '../base/env.ts';
import {
  BackpressureError,
  ChangesExpiredError,
  CorruptionError,
  DeadlineExceededError,
  InvalidOptionError,
  MemoryBudgetError,
  StorageError,
} from '../base/errors.ts';
import { newAbortController } from '../base/abort.ts';
import { Scratch } from '../cache/memory-budget.ts';
import { emptyCommit } from '../format/commit.ts';
import { commitName } from '../format/object-names.ts';
import type { LoggedCommit } from '../view/view.ts';
import type { Engine } from './engine.ts';
import { sizeOf } from '../log/log-follower.ts';
import type { Polling } from '../coordination/polling-pace.ts';

export interface LogFeedOptions {
  readonly engine: Engine;
  readonly environment: Environment;
  readonly intervalMs: number;
  readonly polling: Polling;
}

/** Slots that are read at the same time: at first, and at most. */
const firstWindow = 4;
const maxWindow = 16;
/** A window of more bytes is followed by a smaller one, and one of less by a larger one. */
const windowBytes = 1024 * 1024;

export class LogFeed {
  readonly #options: LogFeedOptions;
  /** Ends the wait for a commit. */
  readonly #signal: AbortSignal;
  /** The last slot that was returned, or that the caller skipped. */
  #at: number;
  /** Confirmed commits that follow it. */
  #ready: readonly LoggedCommit[] = [];
  /** The memory of the commits that were read together. */
  readonly #memory: Scratch;
  #window = firstWindow;

  /** Once `signal` is aborted, it holds nothing any more. */
  constructor(options: LogFeedOptions, after: number, signal: AbortSignal) {
    this.#options = options;
    this.#at = after;
    this.#signal = signal;
    this.#memory = new Scratch(options.engine.memory);
    signal.addEventListener('abort', () => this.#hold([]), { once: true });
  }

  /** The next commit. Rejects once the signal is aborted, and with `ChangesExpiredError`. */
  async next(): Promise<LoggedCommit> {
    for (;;) {
      this.#signal.throwIfAborted();
      const next = this.#take();
      if (next !== undefined) return next;
      await untilItWorks(this.#options, this.#signal, () => this.#step());
    }
  }

  #take(): LoggedCommit | undefined {
    const { pending, block0 } = this.#options.engine.view;
    if (this.#ready.length === 0) this.#memory.release();
    const [first, ...rest] = this.#ready;
    // Pending commits are consecutive, and begin after the last applied slot.
    const next = first ?? pending[this.#at - block0.appliedSeq];
    this.#ready = rest;
    if (next !== undefined) this.#at = next.slot;
    return next;
  }

  #step(): Promise<void> {
    const { view } = this.#options.engine;
    if (this.#at > view.tail) return this.#checkPosition();
    return this.#at < view.block0.appliedSeq ? this.#readAgain() : this.#wait();
  }

  /** Only a commit has a position, and a view that is refreshed now shows all commits. */
  async #checkPosition(): Promise<void> {
    await this.#refresh();
    const { tail } = this.#options.engine.view;
    if (this.#at <= tail) return;
    throw new InvalidOptionError(
      'after',
      `Option after is ${this.#at}, and the newest commit has position ${tail}. Is it a position of another database, ` +
        'or was this one restored from a copy? Then read the tables again, and follow from db.position.',
    );
  }

  /** Reads slots that the view has merged already. */
  async #readAgain(): Promise<void> {
    const { engine } = this.#options;
    const { log, register } = engine;
    this.#checkFloor(register.current.block0.logFloor);
    const { databaseId, appliedSeq, applied } = engine.view.block0;
    const count = Math.min(this.#window, appliedSeq - this.#at);
    const slots = Array.from({ length: count }, (_, i) => this.#at + 1 + i);
    // All of them are waited for, also when one fails: nothing goes on behind the back of who called.
    const reads = await Promise.allSettled(slots.map((slot) => log.read(slot, this.#signal)));
    // This read of Block 0 starts after the slots were read: only it confirms them, all of them if it does the first.
    this.#checkFloor((await register.refresh(this.#signal)).block0.logFloor);
    const found: LoggedCommit[] = [];
    for (const [i, read] of reads.entries()) {
      const slot = slots[i] as number;
      const givenUp = applied.find((entry) => entry.seq === slot && entry.givenUp === true);
      if (givenUp !== undefined) {
        found.push({ slot, commit: emptyCommit(databaseId, givenUp.id), givenUp: true });
        continue;
      }
      if (read.status === 'rejected') throw read.reason;
      if (read.value === undefined) throw new CorruptionError(commitName(slot), 'A commit is missing from the log');
      if (read.value.databaseId !== databaseId) {
        throw new CorruptionError(commitName(slot), 'The commit belongs to another database');
      }
      found.push({ slot, commit: read.value });
    }
    this.#signal.throwIfAborted();
    this.#hold(found);
    const isLarge = found.reduce((bytes, logged) => bytes + sizeOf(logged.commit), 0) > windowBytes;
    this.#window = isLarge ? Math.max(1, this.#window >> 1) : Math.min(maxWindow, this.#window * 2);
  }

  /** Holds commits: the first of them, and of the others as many as the memory of the instance has room for. */
  #hold(commits: readonly LoggedCommit[]): void {
    this.#memory.release();
    let count = 0;
    try {
      for (const { commit } of commits) {
        this.#memory.add(sizeOf(commit));
        count++;
      }
    } catch (error) {
      if (!(error instanceof MemoryBudgetError)) throw error;
      // The others are read again when it is their turn.
      count = Math.max(1, count);
    }
    this.#ready = commits.slice(0, count);
  }

  #checkFloor(floor: number): void {
    if (floor > this.#at) throw new ChangesExpiredError(this.#at, floor);
  }

  /** Waits until the view moves on, and looks by itself where the instance does so less often than at every interval. */
  async #wait(): Promise<void> {
    const { engine, environment, intervalMs, polling } = this.#options;
    const woken = newAbortController();
    const wake = (): void => woken.abort();
    this.#signal.addEventListener('abort', wake, { once: true });
    const ignore = engine.events.committed.on((news) => {
      if (this.#ready.length === 0) this.#hold(this.#following(news));
      if (this.#ready.length > 0 || engine.view.tail > this.#at) wake();
    });
    try {
      await sleep(environment, intervalMs, woken.signal).catch(() => undefined);
      if (woken.signal.aborted) return;
      // The view is older than it should be: the instance cannot catch up, and the loop must reject with the reason.
      if (isLookDue(engine, polling, intervalMs)) await this.#refresh();
    } finally {
      ignore();
      this.#signal.removeEventListener('abort', wake);
    }
  }

  /** Returns the next commits among slots that were confirmed just now: they need not be read again if they are merged already. */
  #following(news: readonly LoggedCommit[]): readonly LoggedCommit[] {
    const { databaseId } = this.#options.engine.view.block0;
    const from = news.findIndex(({ slot }) => slot === this.#at + 1);
    if (from < 0 || news.some(({ commit }) => commit.databaseId !== databaseId)) return [];
    return news.slice(from, from + maxWindow);
  }

  #refresh(): Promise<void> {
    const { engine } = this.#options;
    return engine.withDeadline('db.changes()', this.#signal, ({ signal }) => engine.refresh(signal));
  }
}

/** Does a step of following the log, again and again while the store cannot be reached. Rejects once the signal is aborted. */
export async function untilItWorks<T>(
  { engine, environment, intervalMs }: Pick<LogFeedOptions, 'engine' | 'environment' | 'intervalMs'>,
  signal: AbortSignal,
  step: () => Promise<T>,
): Promise<T> {
  for (;;) {
    try {
      const done = await step();
      engine.failures.worked('Following the log');
      return done;
    } catch (error) {
      signal.throwIfAborted();
      if (!mayPass(error)) throw error;
      engine.failures.report('Following the log', error);
      await sleep(environment, intervalMs, signal);
    }
  }
}

/** Whether somebody who waits for commits must look by himself: the instance does so less often than at every interval, or cannot. */
export function isLookDue(engine: Engine, polling: Polling, intervalMs: number): boolean {
  return polling === 'interval' ? engine.isStale : engine.viewAgeMs >= intervalMs;
}

/** Whether a failure to follow the log is one that time may mend. */
export function mayPass(error: unknown): boolean {
  if (error instanceof StorageError) return error.reason !== 'forbidden';
  return error instanceof DeadlineExceededError || error instanceof BackpressureError;
}
