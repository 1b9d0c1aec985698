/**
 * How much may wait to be merged. Commits that wait are held in memory by every node, since reads show them; beyond a
 * bound a node merges out of turn, and beyond twice that it takes no more: flushes are refused, and whoever catches up
 * merges what it has read before it reads on.
 */
import type { Environment } from '../base/env.ts';
import { sleep } from '../base/env.ts';
import { BackpressureError } from '../base/errors.ts';
import type { View } from '../view/view.ts';

export interface BacklogOptions {
  readonly environment: Environment;
  readonly maxMemoryBytes: number;
  /** What may wait in this instance, by what waits in others that it shares its memory with, in bytes. */
  readonly mostBytes: () => number;
  /** The newest view. */
  readonly view: () => View;
  /** Merges what the view has pending, unless another node is faster. */
  readonly merge: () => Promise<unknown>;
  /** Reads on as far as there is room. True once the view shows everything. */
  readonly readOn: (signal?: AbortSignal) => Promise<boolean>;
  /** Whether this node is to merge now: others that read the same backlog wait a moment, for they need not do it too. */
  readonly isOwnTurn: () => boolean;
}

/** Pending commits after which a node merges out of turn. */
const maxPendingCommits = 2000;
/** Merges that a flush waits for until there is room for it. */
const maxTries = 3;
/** How long a node waits for another to merge a backlog that both have read, at most, in milliseconds. */
const courtesyMs = 500;

export class Backlog {
  readonly #options: BacklogOptions;
  /** Bytes of pending commits after which a node merges out of turn. */
  readonly #maxBytes: number;

  constructor(options: BacklogOptions) {
    this.#options = options;
    this.#maxBytes = Math.floor(options.maxMemoryBytes / 8);
  }

  /** Whether so much waits that it is merged whatever the policy says. */
  get isLarge(): boolean {
    const { pending, pendingBytes, isSlow } = this.#options.view();
    return isSlow || pending.length > maxPendingCommits || pendingBytes > this.#maxBytes;
  }

  /** Whether no more is to be read or written until something is merged. */
  get #isFull(): boolean {
    return this.roomBytes(this.#options.view()) === 0;
  }

  /** Bytes of commits that may still be read on top of a view. */
  roomBytes({ pending, pendingBytes }: View): number {
    if (pending.length >= maxPendingCommits * 2) return 0;
    return Math.max(0, Math.min(this.#maxBytes * 2, this.#options.mostBytes()) - pendingBytes);
  }

  /** Waits until there is room for a flush. Rejects with `BackpressureError` if there is none even then. */
  async makeRoom(): Promise<void> {
    let cause: unknown;
    for (let tries = 0; this.#isFull; tries++) {
      if (tries === maxTries) throw this.#error('Nothing was written: flush the batch again later.', cause);
      try {
        await this.#options.merge();
      } catch (error) {
        cause = error;
      }
    }
  }

  /** Reads everything that was committed before the call, and merges it step by step where it is too much to hold. */
  async catchUp(signal?: AbortSignal): Promise<void> {
    for (let complete = await this.#options.readOn(signal); !complete; ) complete = await this.step(signal);
  }

  /** Merges what was read, as there is no room for more, and reads on. True once that was all. */
  async step(signal?: AbortSignal): Promise<boolean> {
    const { environment, readOn, merge, isOwnTurn, view } = this.#options;
    if (!isOwnTurn()) {
      const { appliedSeq } = view().block0;
      await sleep(environment, courtesyMs * environment.random(), signal);
      const complete = await readOn(signal);
      if (complete || view().block0.appliedSeq > appliedSeq) return complete;
    }
    try {
      await merge();
    } catch (error) {
      throw this.#error('Until they are merged, this instance cannot show the newest state.', error);
    }
    signal?.throwIfAborted();
    return readOn(signal);
  }

  #error(consequence: string, cause: unknown): BackpressureError {
    const { pending, pendingBytes, block0 } = this.#options.view();
    const mebibytes = (pendingBytes / 1024 / 1024).toFixed(1);
    return new BackpressureError(
      `${pending.length} commits (${mebibytes} MiB) after slot ${block0.appliedSeq} wait to be merged into blocks, more ` +
        `than maxMemoryBytes, or the memory that is shared, has room for, and they could not be merged. ${consequence} Look whether the store takes ` +
        'writes, and whether a node with write authority is running.',
      { cause },
    );
  }
}
