/** Uploads blobs, with a checksum for every chunk. Readers of bundles do without this code. */
import { isBytes } from '../base/brands.ts';
import { checksum, encodeUtf8 } from '../base/bytes.ts';
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

async function* observed(
  source: AsyncIterable<Uint8Array | string>,
  sums: ChunkChecksums,
): AsyncGenerator<Uint8Array, void, undefined> {
  for await (const piece of source) {
    const bytes = typeof piece === 'string' ? encodeUtf8(piece) : piece;
    if (!isBytes(bytes)) throw new TypeError('A blob stream must give bytes or strings');
    sums.add(bytes);
    yield bytes;
  }
}

function bodyOf(bytes: Uint8Array): PutBody {
  return bytes.length > maxWholeBytes ? inPieces(bytes) : bytes;
}

/**
 * Stores a blob under a new reference. Never use a reference twice: an upload that failed may reach the store at any later
 * time, even after a second upload under the same name was deleted as garbage.
 */
export async function uploadBlob(
  store: BlobStore,
  reference: string,
  value: BlobValue,
  limits: StreamLimits,
): Promise<BlobRecord> {
  const { signal } = limits;
  const sums = new ChunkChecksums();
  const { source, contentType } = value;
  if (isBytes(source)) sums.add(source);
  let failure: Error | undefined;
  const stream = (): PutBody =>
    observed(
      value.read(limits, (error) => (failure = error)),
      sums,
    );
  const body = isBytes(source) ? bodyOf(source) : stream();
  try {
    await store.put(reference, body, { contentType, ...defined({ signal }) });
  } catch (error) {
    throw failure ?? error;
  }
  return { sizeBytes: sums.sizeBytes, contentType, checksums: sums.finish() };
}
