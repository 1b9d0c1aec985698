/**
 * Uploads the blobs of a flush, and sees to it that they are still there on exactly the state that its commit is for.
 *
 * Collecting garbage condemns uploads that nothing names, by a commit (docs/protocol.md, "gc without clocks"). So a blob is
 * safe on a state that does not list it as condemned while its object exists: the row goes only after the object went. An
 * upload that is or may be condemned is made again under a new reference, since a deletion of the old one may be on its
 * way.
 */
import { AbortedError, BatchStateError, StorageError } from '../base/errors.ts';
import type { BlobStore } from '../blob/blob-store.ts';
import { isListed } from '../table/blob-lists.ts';
import type { View } from '../table/view.ts';
import type { NewBlob } from './new-blob.ts';
import type { OperationSet } from './operation-set.ts';

export class BlobUploads {
  readonly #operations: OperationSet;
  readonly #store: BlobStore;
  readonly #signal: AbortSignal | undefined;

  constructor(operations: OperationSet, store: BlobStore, signal: AbortSignal | undefined) {
    this.#operations = operations;
    this.#store = store;
    this.#signal = signal;
  }

  /** Uploads what was not uploaded yet. `tail`: last slot of a state that is current now. */
  async upload(tail: number): Promise<void> {
    // Renaming one moves it to the end of the map.
    const blobs = Array.from(this.#operations.blobs.values());
    for (const blob of blobs) {
      // A stream that failed is refused where a row still holds it (BlobChanges): the batch can be repaired.
      if (blob.record !== undefined || blob.value.isSpent) continue;
      // What an attempt before left behind may have been condemned since.
      if (blob.checkedTail !== -1 && blob.checkedTail !== tail) this.#operations.renameBlob(blob);
      blob.checkedTail = tail;
      await this.#upload(blob);
    }
  }

  async #upload(blob: NewBlob): Promise<void> {
    try {
      blob.record = await this.#store.upload(blob.reference, blob.value, this.#signal);
    } catch (error) {
      if (this.#signal?.aborted !== true || !(error instanceof StorageError)) throw error;
      throw new AbortedError('batch.flush() was given up because its signal was aborted', { cause: error });
    }
  }

  /** Uploads again what was collected as garbage before `view`. Throws `BatchStateError` for a stream. */
  async check(view: View): Promise<void> {
    // Renaming one moves it to the end of the map.
    const blobs = Array.from(this.#operations.blobs.values());
    for (const blob of blobs) {
      if (blob.record === undefined) continue;
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
