/**
 * Backpressure: work where many commits wait to be merged. Beyond a bound (log/pending-room.ts) an instance merges out of turn, and
 * beyond twice that it takes no more commits: a flush first merges, up to three times, and is then refused; and an instance that catches up merges the commits that it has
 * read before it reads on.
 */
import type { Environment } from '../base/env.ts';
import { sleep } from '../base/env.ts';
import { BackpressureError } from '../base/errors.ts';
import type { LogFollower } from '../log/log-follower.ts';
import type { PendingRoom } from '../log/pending-room.ts';
import type { Merger } from '../merge/merger.ts';
import type { View } from '../view/view.ts';
import type { FailureReports } from './failure-reports.ts';
import type { Role } from './membership.ts';
import type { MergeRotation } from './merge-rotation.ts';

export interface BackpressureOptions {
  readonly environment: Environment;
  readonly role: Role;
  readonly room: PendingRoom;
  readonly follower: LogFollower;
  readonly merger: Merger;
  readonly rotation: MergeRotation;
  readonly failures: FailureReports;
}

/** Merges that a flush waits for until there is room for it. */
const maxTries = 3;
/** How long a node waits for another to merge a backlog that both have read, at most, in milliseconds. */
const courtesyMs = 500;

export class Backpressure {
  readonly #options: BackpressureOptions;

  constructor(options: BackpressureOptions) {
    this.#options = options;
  }

  /** Whether no more commits may be read or written until some are merged. */
  get isFull(): boolean {
    const { room, follower } = this.#options;
    return room.bytesFor(follower.view) === 0;
  }

  /** Merges out of turn, in the background, if many commits wait in a view. */
  mergeIfLarge(view: View): void {
    if (this.#options.room.isLarge(view)) void this.mergeOutOfTurn();
  }

  /** Merges the waiting commits. Never rejects: a failure is reported. */
  async mergeOutOfTurn(): Promise<void> {
    const { merger, failures } = this.#options;
    try {
      await merger.merge();
      failures.worked('Merging');
    } catch (error) {
      failures.report('Merging', error);
    }
  }

  /** Waits until there is room for a flush. Rejects with `BackpressureError` if there is none even then. */
  async makeRoom(): Promise<void> {
    let cause: unknown;
    for (let tries = 0; this.isFull; tries++) {
      if (tries === maxTries) throw this.#error('Nothing was written: flush the batch again later.', cause);
      try {
        await this.#options.merger.merge();
      } catch (error) {
        cause = error;
      }
    }
  }

  /** Reads everything that was committed before the call, and merges it step by step where it is too much to hold. */
  async catchUp(signal?: AbortSignal): Promise<void> {
    for (let complete = await this.#options.follower.refresh(signal); !complete; ) complete = await this.step(signal);
  }

  /** Merges the commits that were read, since there is no room for more, and reads on. True once all were read. */
  async step(signal?: AbortSignal): Promise<boolean> {
    const { environment, role, follower, merger, rotation } = this.#options;
    const { block0 } = follower.view;
    // Others that have read the same backlog wait a moment, for they need not merge it too.
    if (role === 'replica' || !rotation.isOwnTurn(environment.now(), block0)) {
      const { appliedSeq } = block0;
      await sleep(environment, courtesyMs * environment.random(), signal);
      const complete = await follower.refresh(signal);
      if (complete || follower.view.block0.appliedSeq > appliedSeq) return complete;
    }
    try {
      await merger.merge();
    } catch (error) {
      throw this.#error('Until they are merged, this instance cannot show the newest state.', error);
    }
    signal?.throwIfAborted();
    return follower.refresh(signal);
  }

  #error(consequence: string, cause: unknown): BackpressureError {
    const { pending, pendingBytes, block0 } = this.#options.follower.view;
    const mebibytes = (pendingBytes / 1024 / 1024).toFixed(1);
    return new BackpressureError(
      `${pending.length} commits (${mebibytes} MiB) after slot ${block0.appliedSeq} wait to be merged into blocks, more ` +
        `than maxMemoryBytes, or the memory that is shared, has room for, and they could not be merged. ${consequence} Look whether the store takes ` +
        'writes, and whether a node with write authority is running.',
      { cause },
    );
  }
}
