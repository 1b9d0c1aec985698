/** Uploads blobs, with a checksum for every chunk. Readers of bundles do without this code. */
import { isBytes, messageOf } from '../base/brands.ts';
import { checksum, encodeUtf8 } from '../base/bytes.ts';
import { StorageError } from '../base/errors.ts';
import { withoutEnding } from '../base/messages.ts';
import { defined } from '../base/options.ts';
import type { PutBody } from '../storage/contract/driver.ts';
import type { BlobStore } from './blob-store.ts';
import { blobChunkBytes } from './blob-rows.ts';
import type { BlobRecord } from './blob-rows.ts';
import type { BlobValue } from './blob-value.ts';
import type { StreamLimits } from './live-stream.ts';

/** Larger blobs are passed to the driver in pieces, so that it can use a multipart upload. */
const maxWholeBytes = 8 * 1024 * 1024;
const pieceBytes = 1024 * 1024;

/** Calculates the checksums of a stream of bytes, in chunks that do not depend on the pieces of the stream. */
class ChunkChecksums {
  #sums: number[] = [];
  #current = 0;
  #filled = 0;
  sizeBytes = 0;

  add(bytes: Uint8Array): void {
    this.sizeBytes += bytes.length;
    for (let at = 0; at < bytes.length; ) {
      const end = Math.min(bytes.length, at + blobChunkBytes - this.#filled);
      this.#current = checksum(bytes.subarray(at, end), this.#current);
      this.#filled += end - at;
      at = end;
      if (this.#filled === blobChunkBytes) this.#close();
    }
  }

  #close(): void {
    this.#sums.push(this.#current);
    this.#current = 0;
    this.#filled = 0;
  }

  finish(): Uint8Array {
    if (this.#filled > 0) this.#close();
    const bytes = new Uint8Array(this.#sums.length * 4);
    const view = new DataView(bytes.buffer);
    this.#sums.forEach((sum, i) => view.setUint32(i * 4, sum, true));
    return bytes;
  }
}

async function* inPieces(bytes: Uint8Array): AsyncGenerator<Uint8Array, void, undefined> {
  for (let at = 0; at < bytes.length; at += pieceBytes) yield bytes.subarray(at, at + pieceBytes);
}

/** Adds up the pieces of a stream. Calls `broken` with the error if the stream fails. */
async function* observed(
  source: AsyncIterable<Uint8Array | string>,
  sums: ChunkChecksums,
  broken: (error: unknown) => void,
): AsyncGenerator<Uint8Array, void, undefined> {
  let isTaken = false;
  try {
    for await (const piece of source) {
      const bytes = typeof piece === 'string' ? encodeUtf8(piece) : piece;
      if (!isBytes(bytes)) throw new TypeError('A blob stream must give bytes or strings');
      sums.add(bytes);
      isTaken = true;
      yield bytes;
      isTaken = false;
    }
  } catch (error) {
    // A driver may throw its own error into the stream that it was reading.
    if (!isTaken) broken(error);
    throw error;
  }
}

function bodyOf(bytes: Uint8Array): PutBody {
  return bytes.length > maxWholeBytes ? inPieces(bytes) : bytes;
}

/**
 * Stores a blob under a new reference. Never use a reference twice: an upload that failed may reach the store at any later
 * time, even after a second upload under the same name was deleted as garbage. `field` names the field of the row in errors.
 */
export async function uploadBlob(
  store: BlobStore,
  reference: string,
  value: BlobValue,
  field: string,
  limits: StreamLimits,
): Promise<BlobRecord> {
  const { signal } = limits;
  const sums = new ChunkChecksums();
  const { source, contentType } = value;
  if (isBytes(source)) sums.add(source);
  // Of the stream. The error that the driver makes of it says less, and might be that of a failing store.
  let failure: Error | undefined;
  const stream = (): PutBody =>
    observed(
      value.read(limits, (error) => (failure = error)),
      sums,
      (error) => (failure ??= streamFailed(store.keyOf(reference), field, error)),
    );
  const body = isBytes(source) ? bodyOf(source) : stream();
  try {
    await store.put(reference, body, { contentType, ...defined({ signal }) });
  } catch (error) {
    throw failure ?? error;
  }
  return { sizeBytes: sums.sizeBytes, contentType, checksums: sums.finish() };
}

function streamFailed(key: string, field: string, cause: unknown): StorageError {
  const reason = withoutEnding(messageOf(cause), '.');
  return new StorageError(
    key,
    'none',
    `The stream for ${field} failed: ${reason}. Nothing was committed: drop the batch with clear(), or give the field a new ` +
      'db.Blob().',
    { cause },
  );
}
