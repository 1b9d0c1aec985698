/**
 * A flush, from the operations of a batch to the answer. The steps, in order:
 * 1. `Batch.flush` resolves an earlier flush in doubt, takes the operations, and passes them to `EngineHost.commit`, which calls
 *    {@link Flush.run}.
 * 2. {@link Flush.run} uploads the new blobs, and appends the flush to the log (`Engine.append`) under a deadline.
 * 3. `LogWriter.append` queues it. Flushes that wait at the same time form a group, which shares one commit (`LogWriter.#commitGroup`).
 * 4. The writer asks each flush of the group for its member of the commit ({@link Flush.#makeMember}), validated on this instance's view
 *    and the members before it; and asks again whenever that view has changed before the slot is won.
 * 5. The writer puts the commit at the slot after that view (`LogWriter.#putAndConfirm`), and confirms the slot by a read of Block 0.
 * 6. `LogFollower.advance` moves the view over the commit, and the promise of each flush is answered. If another writer won the slot,
 *    the writer catches up and goes back to step 4; after 32 lost slots the flushes fail with `ContentionError`.
 * 7. While the slot is empty and the put had no clear answer, the same bytes are put again. After half a minute the flushes fail with
 *    `CommitOutcomeUnknownError`.
 *
 * Invariants:
 * - No commit names a blob whose bytes are not in the store (docs/protocol.md, "gc without clocks").
 * - A commit was validated on exactly the state that it follows: the view whose tail is the slot before it.
 */
import { namingAborts } from '../base/abort.ts';
import type { SignalPool } from '../base/abort.ts';
import { flushes, startOfWork } from '../base/tracing.ts';
import type { TracedFlush } from '../base/tracing.ts';
import type { Environment } from '../base/env.ts';
import { BatchStateError, StorageError } from '../base/errors.ts';
import type { BlobStore } from '../blob/blob-store.ts';
import { uploadBlob } from '../blob/blob-upload.ts';
import type { StreamLimits } from '../blob/live-stream.ts';
import { isListed } from '../catalog/blob-lists.ts';
import type { DroppedTables } from '../catalog/dropped-tables.ts';
import { refuseRetired } from '../catalog/retired-versions.ts';
import type { Engine } from '../engine/engine.ts';
import type { CommitMember } from '../format/commit.ts';
import type { Bridge } from '../migration/bridge.ts';
import { prepareToWrite } from '../schema/text-indexes.ts';
import { Patience } from '../storage/contract/retries.ts';
import type { StorageDriver } from '../storage/contract/driver.ts';
import type { View } from '../view/view.ts';
import type { NewBlob } from './blob-changes.ts';
import type { TableOperations } from './table-operations.ts';
import { makeMember } from './make-member.ts';
import type { MemberOptions } from './make-member.ts';
import type { OperationSet } from './operation-set.ts';

/** The parts of an instance that its flushes use. */
export interface FlushContext extends Omit<MemberOptions, 'slot'> {
  readonly driver: StorageDriver;
  readonly engine: Engine;
  readonly bridge: Bridge;
  readonly blobs: BlobStore;
  /** A pool of signals for deadlines: once a deadline has ended, nothing listens to its signal any more. */
  readonly signals: SignalPool;
  /** Aborted when the instance is being stopped. */
  readonly ending: AbortSignal;
  /** Tells which tables were dropped since they were registered. */
  readonly dropped: DroppedTables;
}

/** A condition that a flush must meet in addition to the rules of the tables. */
export interface CommitGuard {
  /** Names the call in errors. */
  readonly callName: string;
  /** The time at which rows that had expired count as not there. */
  readonly expiryMs: number;
  /** Rejects if the commit must not follow the state that `view` shows. The view already includes the members in `earlier`. */
  validate(view: View, earlier: readonly CommitMember[]): Promise<void>;
}

/** The operations of a flush, and its conditions. */
export interface FlushInput {
  readonly operations: OperationSet;
  /** Gives the flush up. */
  readonly signal: AbortSignal | undefined;
  /** Throws if the batch must not be committed any more. Called before each validation. */
  readonly check: () => void;
  readonly guard: CommitGuard | undefined;
  /** Names the call in errors. */
  readonly callName: string;
}

/** One flush of one batch. */
export class Flush {
  readonly #context: FlushContext;
  readonly #order: FlushInput;
  readonly #lists: readonly TableOperations[];
  /** About how many bytes the operations take in a commit. */
  readonly #sizeBytes: number;
  readonly #uploads: BlobUploads;

  constructor(context: FlushContext, order: FlushInput) {
    const { environment, blobs, ending } = context;
    this.#context = context;
    this.#order = order;
    this.#lists = order.operations.lists;
    this.#sizeBytes = this.#lists.reduce((bytes, list) => bytes + list.sizeBytes, 0);
    this.#uploads = new BlobUploads(order.operations, blobs, { environment, signal: order.signal, ending });
  }

  get #hasBlobs(): boolean {
    return this.#order.operations.blobs.size > 0;
  }

  /**
   * Resolves once the operations are durable, and this instance shows them. Rejects with the error of validation where they contradict
   * the stored state; with `CommitOutcomeUnknownError` where they may have been committed; and otherwise with the reason why they were
   * not committed.
   */
  run(): Promise<void> {
    if (!flushes.isWatched) return this.#run(undefined);
    const told = this.#payload();
    return flushes.isFollowed ? flushes.tell(told, () => this.#run(undefined)) : this.#run(told);
  }

  #payload(): TracedFlush {
    const tables = this.#lists.map(({ shape }) => shape.name);
    return { database: this.#context.engine.prefix, startedMs: startOfWork(), tables, sizeBytes: this.#sizeBytes };
  }

  /** `told`: the payload to tell its end with; undefined if nobody hears that. */
  async #run(told: TracedFlush | undefined): Promise<void> {
    const { engine, signals } = this.#context;
    const { callName, signal } = this.#order;
    try {
      for (const { shape } of this.#lists) {
        const preparing = prepareToWrite(shape);
        if (preparing !== undefined) await preparing;
      }
      // Blobs are uploaded first, so that the commit refers to bytes that are there. A table that has moved on to a newer version
      // refuses the flush, and so does one that was dropped, so that is checked before the upload.
      if (this.#hasBlobs) {
        await this.#refuseOutdated(engine.view);
        await namingAborts(callName, signal, () => this.#uploads.upload(engine.view.tail));
      }
      await engine.withDeadline(callName, signal, (deadline) => this.#append(deadline.signal), signals);
    } catch (error) {
      if (told !== undefined) flushes.fail(told, error);
      throw error;
    }
    if (told !== undefined) flushes.end(told, undefined);
  }

  /** Appends the flush to the log: it goes into the first free slot after a state on which it is valid. Resolves once that is confirmed. */
  #append(signal: AbortSignal): Promise<void> {
    const prepare = (view: View, earlier: readonly CommitMember[]): Promise<CommitMember> =>
      this.#makeMember(view, earlier);
    return this.#context.engine.append({ signal, sizeBytes: this.#sizeBytes, prepare });
  }

  /** Validates the operations on the state that the commit will follow, and makes the member of the commit from them. */
  async #makeMember(view: View, earlier: readonly CommitMember[]): Promise<CommitMember> {
    const { check, guard, operations } = this.#order;
    const { bridge } = this.#context;
    check();
    await guard?.validate(view, earlier);
    if (this.#hasBlobs) await this.#uploads.ensureStored(view);
    await this.#refuseOutdated(view);
    const tableOf = ({ shape }: TableOperations): ReturnType<Bridge['writableTable']> =>
      bridge.writableTable(view, shape.name);
    const options = { ...this.#context, slot: view.tail + 1, expiryMs: guard?.expiryMs };
    return makeMember(this.#lists, operations.blobs, tableOf, options);
  }

  /**
   * Rejects if a table was dropped since the operations on it were added, or has moved on to a newer version than the one in which they
   * are written.
   */
  async #refuseOutdated(view: View): Promise<void> {
    for (const { shape } of this.#lists) {
      this.#context.dropped.refuseOn(view, shape);
      await refuseRetired(view, shape);
    }
  }
}

const maxAttempts = 4;
/** Before bytes are sent again to a store that is away, in milliseconds: it doubles with every attempt. */
const firstPauseMs = 100;

/**
 * Uploads the blobs of a flush, and makes sure that they are still there on exactly the state that its commit follows.
 *
 * The garbage collection condemns uploads that no row names, by a commit (docs/protocol.md, "gc without clocks"). A blob is safe on a
 * state if its object exists and the state does not list it as condemned: it is taken off the list only after its object is gone. A
 * blob that is listed or missing is uploaded again under a new reference, since a deletion of the old one may be on its way. So is
 * an upload that failed, since it may still reach the store: no name is written a second time.
 */
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

  /** Uploads the blobs that were not uploaded yet. `tail`: last slot of a state that is current now. */
  async upload(tail: number): Promise<void> {
    // A copy, since renaming a blob moves it to the end of the map.
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

  /** Uploads a blob, each attempt under a new name. Bytes are tried again; a stream cannot be read twice. */
  async #upload(blob: NewBlob): Promise<void> {
    const patience = new Patience(this.#environment);
    // The database is open, so that the store has answered before.
    patience.answered();
    const firstSentMs = this.#environment.monotonicMs();
    for (let attempt = 1; ; attempt++) {
      try {
        const field = `field '${blob.field}' of table '${blob.table}'`;
        blob.record = await uploadBlob(this.#store, blob.reference, blob.value, field, this.#limits);
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

  /**
   * Uploads again the blobs that `view` lists as condemned, that are missing, or whose upload failed. Throws `BatchStateError` for a
   * stream, which cannot be read again.
   */
  async ensureStored(view: View): Promise<void> {
    // A copy, since renaming a blob moves it to the end of the map.
    const blobs = Array.from(this.#operations.blobs.values());
    for (const blob of blobs) {
      if (blob.record === undefined) {
        // Its upload for an earlier view failed.
        await this.#uploadNew(blob, view.tail);
        continue;
      }
      const isCondemned = await isListed(view, '_deleted_blobs', blob.reference);
      // Uploaded after the very state that the commit follows: only another member of the same commit can have condemned it since.
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
