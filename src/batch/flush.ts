/**
 * A flush, from the operations of a batch to the answer. {@link Flush.run} reads from top to bottom: the flush's blobs are uploaded, it is
 * validated against the tail of the log and made a member of a commit, the commit wins a slot, the slot is confirmed, and the
 * promise is answered. The log writer (log/log-writer.ts) puts flushes that wait at the same time into one commit, and asks each of them
 * for its member, again after each slot that was lost.
 *
 * Invariants:
 * - No commit names a blob whose bytes are not in the store (docs/protocol.md, "gc without clocks").
 * - A commit was validated on exactly the state that it follows: the view whose tail is the slot before it.
 */
import type { SignalPool } from '../base/deadline.ts';
import { namingAborts } from '../base/until-aborted.ts';
import type { BlobStore } from '../blob/blob-store.ts';
import { refuseRetired } from '../catalog/retired-versions.ts';
import type { Engine } from '../engine/engine.ts';
import type { CommitMember } from '../format/commit.ts';
import type { Bridge } from '../migration/bridge.ts';
import type { View } from '../view/view.ts';
import { BlobUploads } from './blob-uploads.ts';
import type { OperationSet } from './operation-set.ts';
import type { TableOperations } from './operations.ts';
import { prepareMember } from './prepare.ts';
import type { PrepareOptions } from './prepare.ts';

/** The parts of an instance that its flushes use. */
export interface FlushContext extends Omit<PrepareOptions, 'slot'> {
  readonly engine: Engine;
  readonly bridge: Bridge;
  readonly blobs: BlobStore;
  /** Signals that deadlines use again: once a deadline has ended, nothing listens to its signal any more. */
  readonly signals: SignalPool;
  /** Aborted when the instance is being stopped. */
  readonly ending: AbortSignal;
}

/** A condition that a flush must meet in addition to the rules of the tables. */
export interface CommitGuard {
  /** Names the call in errors. */
  readonly what: string;
  /** Rejects if the commit must not follow the state that `view` shows. Its last changes are those of the members in `earlier`. */
  validate(view: View, earlier: readonly CommitMember[]): Promise<void>;
}

/** What is to be flushed. */
export interface FlushOrder {
  readonly operations: OperationSet;
  /** Gives the flush up. */
  readonly signal: AbortSignal | undefined;
  /** Throws if the batch must not be committed any more. Called before each validation. */
  readonly check: () => void;
  readonly guard: CommitGuard | undefined;
  /** Names the call in errors. */
  readonly what: string;
}

/** One flush of one batch. */
export class Flush {
  readonly #context: FlushContext;
  readonly #order: FlushOrder;
  readonly #lists: readonly TableOperations[];
  readonly #uploads: BlobUploads;

  constructor(context: FlushContext, order: FlushOrder) {
    const { environment, blobs, ending } = context;
    this.#context = context;
    this.#order = order;
    this.#lists = order.operations.lists;
    this.#uploads = new BlobUploads(order.operations, blobs, { environment, signal: order.signal, ending });
  }

  get #hasBlobs(): boolean {
    return this.#order.operations.blobs.size > 0;
  }

  /**
   * Resolves once the operations are durable, and this instance shows them. Rejects with the verdict where they contradict what is
   * stored; with `CommitOutcomeUnknownError` where they may have been committed; and otherwise with the reason why they were not committed.
   */
  async run(): Promise<void> {
    const { engine, signals } = this.#context;
    const { what, signal } = this.#order;
    // Blobs are uploaded first, so that the commit refers to bytes that are there: in vain if a table is known to have moved on
    // to a newer version.
    if (this.#hasBlobs) await this.#refuseRetired(engine.view);
    await namingAborts(what, signal, () => this.#uploads.upload(engine.view.tail));
    await engine.withDeadline(what, signal, (deadline) => this.#winSlot(deadline.signal), signals);
  }

  /** Commits the flush in the first free slot after a state on which it is valid, and waits until that slot is confirmed. */
  #winSlot(signal: AbortSignal): Promise<void> {
    const sizeBytes = this.#lists.reduce((bytes, list) => bytes + list.sizeBytes, 0);
    const prepare = (view: View, earlier: readonly CommitMember[]): Promise<CommitMember> =>
      this.#validate(view, earlier);
    return this.#context.engine.append({ signal, sizeBytes, prepare });
  }

  /** Validates the operations on the state that a commit is to follow, and makes a member of that commit from them. */
  async #validate(view: View, earlier: readonly CommitMember[]): Promise<CommitMember> {
    const { check, guard, operations } = this.#order;
    const { bridge } = this.#context;
    check();
    await guard?.validate(view, earlier);
    if (this.#hasBlobs) await this.#uploads.check(view);
    await this.#refuseRetired(view);
    const tableOf = ({ shape }: TableOperations): ReturnType<Bridge['writableTable']> =>
      bridge.writableTable(view, shape.name);
    return prepareMember(this.#lists, operations.blobs, tableOf, { ...this.#context, slot: view.tail + 1 });
  }

  /** Rejects if a table has moved on to a newer version than the one in which the operations on it are written. */
  async #refuseRetired(view: View): Promise<void> {
    for (const { shape } of this.#lists) await refuseRetired(view, shape);
  }
}
