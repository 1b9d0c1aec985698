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
import { namingAborts } from '../base/abort.ts';
import type { SignalPool } from '../base/abort.ts';
import type { Environment } from '../base/env.ts';
import { BatchStateError, StorageError } from '../base/errors.ts';
import type { BlobStore } from '../blob/blob-store.ts';
import type { StreamLimits } from '../blob/live-stream.ts';
import { isListed } from '../catalog/blob-lists.ts';
import { refuseRetired } from '../catalog/retired-versions.ts';
import type { Engine } from '../engine/engine.ts';
import type { CommitMember } from '../format/commit.ts';
import type { Bridge } from '../migration/bridge.ts';
import { Patience } from '../storage/contract/put-repeatedly.ts';
import type { View } from '../view/view.ts';
import type { NewBlob } from './blob-changes.ts';
import type { TableOperations } from './table-operations.ts';
import { prepareMember } from './prepare-member.ts';
import type { OperationSet, PrepareOptions } from './prepare-member.ts';

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

// Uploads the blobs of a flush, and sees to it that they are still there on exactly the state that its commit is for.
//
// Collecting garbage condemns uploads that nothing names, by a commit (docs/protocol.md, "gc without clocks"). So a blob is
// safe on a state that does not list it as condemned while its object exists: the row goes only after the object went. An
// upload that is or may be condemned is made again under a new reference, since a deletion of the old one may be on its
// way. So is one that failed, since it may yet reach the store: nothing ever comes to be under a name a second time.

const maxAttempts = 4;
/** Before bytes are sent again to a store that is away, in milliseconds: it doubles with every attempt. */
const firstPauseMs = 100;

class BlobUploads {
  readonly #operations: OperationSet;
  readonly #store: BlobStore;
  readonly #limits: StreamLimits;
  readonly #signal: AbortSignal | undefined;
  readonly #environment: Environment;

  constructor(operations: OperationSet, store: BlobStore, limits: StreamLimits) {
    this.#operations = operations;
    this.#store = store;
    this.#limits = limits;
    this.#environment = limits.environment;
    this.#signal = limits.signal;
  }

  /** Uploads what was not uploaded yet. `tail`: last slot of a state that is current now. */
  async upload(tail: number): Promise<void> {
    // Renaming one moves it to the end of the map.
    const blobs = Array.from(this.#operations.blobs.values());
    for (const blob of blobs) if (blob.record === undefined) await this.#uploadNew(blob, tail);
  }

  async #uploadNew(blob: NewBlob, tail: number): Promise<void> {
    // A stream that failed is refused where a row still holds it (BlobChanges): the batch can be repaired.
    if (blob.value.isSpent) return;
    if (blob.checkedTail !== -1) this.#operations.renameBlob(blob);
    blob.checkedTail = tail;
    await this.#upload(blob);
  }

  /** Each attempt is made under a name of its own. Bytes are tried again; a stream cannot be read twice. */
  async #upload(blob: NewBlob): Promise<void> {
    const patience = new Patience(this.#environment);
    // The database is open, so that the store has answered before.
    patience.answered();
    const firstSentMs = this.#environment.monotonicMs();
    for (let attempt = 1; ; attempt++) {
      try {
        blob.record = await this.#store.upload(blob.reference, blob.value, this.#limits);
        return;
      } catch (error) {
        if (!(error instanceof StorageError)) throw error;
        if (this.#signal?.aborted === true) throw error;
        if (blob.value.isSpent) throw error;
        const isAway = patience.isLeft(error, firstSentMs);
        if (attempt >= maxAttempts && !isAway) throw error;
        if (isAway && !(await patience.pause(firstPauseMs, attempt, this.#signal))) throw error;
        this.#operations.renameBlob(blob);
      }
    }
  }

  /** Uploads again what was collected as garbage before `view`. Throws `BatchStateError` for a stream. */
  async check(view: View): Promise<void> {
    // Renaming one moves it to the end of the map.
    const blobs = Array.from(this.#operations.blobs.values());
    for (const blob of blobs) {
      if (blob.record === undefined) {
        // It was to be uploaded again for a view before this one, and that failed.
        await this.#uploadNew(blob, view.tail);
        continue;
      }
      const isCondemned = await isListed(view, '_deleted_blobs', blob.reference);
      // Uploaded after the very state that the commit follows: only what shares the commit can have condemned it since.
      if (!isCondemned && blob.checkedTail === view.tail) continue;
      if (isCondemned || !(await this.#store.exists(blob.reference, this.#signal))) await this.#replace(blob);
      blob.checkedTail = view.tail;
    }
  }

  async #replace(blob: NewBlob): Promise<void> {
    if (blob.value.isSpent) {
      throw new BatchStateError(
        `The stream for blob ${blob.reference} was uploaded so long before this flush that it was collected as ` +
          'garbage, and it cannot be read again. Nothing was committed: drop the batch with clear(), and give the ' +
          'field a new db.Blob().',
      );
    }
    this.#operations.renameBlob(blob);
    await this.#upload(blob);
  }
}
