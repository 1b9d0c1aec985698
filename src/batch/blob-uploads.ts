/**
 * Uploads the blobs of a flush, and sees to it that they are still there on exactly the state that its commit is for.
 *
 * Collecting garbage condemns uploads that nothing names, by a commit (docs/protocol.md, "gc without clocks"). So a blob is
 * safe on a state that does not list it as condemned while its object exists: the row goes only after the object went. An
 * upload that is or may be condemned is made again under a new reference, since a deletion of the old one may be on its
 * way. So is one that failed, since it may yet reach the store: nothing ever comes to be under a name a second time.
 */
import type { Environment } from '../base/env.ts';
import { BatchStateError, StorageError } from '../base/errors.ts';
import type { BlobStore } from '../blob/blob-store.ts';
import type { StreamLimits } from '../blob/live-stream.ts';
import { Patience } from '../storage/contract/patience.ts';
import { isListed } from '../catalog/blob-lists.ts';
import type { View } from '../view/view.ts';
import type { NewBlob } from './new-blob.ts';
import type { OperationSet } from './operation-set.ts';

const maxAttempts = 4;
/** Before bytes are sent again to a store that is away, in milliseconds: it doubles with every attempt. */
const firstPauseMs = 100;

export class BlobUploads {
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
