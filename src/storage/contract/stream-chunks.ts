/** Cuts a stream into chunks of one size, for uploads in parts. */
import { uncleared } from '#platform';
import { untilAborted } from '../../base/abort.ts';

/** A part of a stream. */
export interface StreamChunk {
  readonly bytes: Uint8Array;
  /** Whether nothing follows. */
  readonly isLast: boolean;
}

/** Length of the memory for the first bytes of a stream: most streams are short. */
const firstBytes = 64 * 1024;

/** The memory of a chunk that is being filled with copies of bytes, because their owner may reuse its memory. */
class ChunkBuffer {
  readonly #chunkBytes: number;
  #bytes: Uint8Array;
  #length = 0;

  /** `sizeBytes` is the memory to begin with. */
  constructor(chunkBytes: number, sizeBytes: number) {
    this.#chunkBytes = chunkBytes;
    this.#bytes = uncleared(Math.min(chunkBytes, sizeBytes));
  }

  /** Adds as many bytes as the chunk has room for; returns the others. */
  fill(bytes: Uint8Array): Uint8Array {
    const taken = bytes.subarray(0, this.#chunkBytes - this.#length);
    const needed = this.#length + taken.length;
    if (needed > this.#bytes.length) {
      const grown = uncleared(Math.min(this.#chunkBytes, Math.max(needed, 2 * this.#bytes.length)));
      grown.set(this.#bytes.subarray(0, this.#length));
      this.#bytes = grown;
    }
    this.#bytes.set(taken, this.#length);
    this.#length = needed;
    return bytes.subarray(taken.length);
  }

  /** Returns the bytes that were added. */
  bytes(): Uint8Array {
    return this.#bytes.subarray(0, this.#length);
  }
}

/**
 * Yields the bytes of a stream in chunks of `chunkBytes`. The last chunk may be shorter; it is only empty if the stream is. Copies
 * the bytes, because their owner may reuse the memory. Rejects as soon as the signal is aborted, even if the stream is stuck.
 */
export async function* streamChunks(
  stream: AsyncIterable<Uint8Array>,
  chunkBytes: number,
  signal: AbortSignal | undefined,
): AsyncGenerator<StreamChunk, void, undefined> {
  const iterator = stream[Symbol.asyncIterator]();
  let isDone = false;
  let chunk = new ChunkBuffer(chunkBytes, firstBytes);
  try {
    for (;;) {
      const next = await untilAborted(iterator.next(), signal);
      if (next.done === true) {
        isDone = true;
        yield { bytes: chunk.bytes(), isLast: true };
        return;
      }
      let rest = chunk.fill(next.value);
      // A full chunk is only yielded once there is a byte after it: it may be the last one.
      while (rest.length > 0) {
        yield { bytes: chunk.bytes(), isLast: false };
        chunk = new ChunkBuffer(chunkBytes, chunkBytes);
        rest = chunk.fill(rest);
      }
    }
  } finally {
    // Not awaited: a source that is stuck would block the caller that aborted the upload.
    if (!isDone) iterator.return?.().catch(() => undefined);
  }
}
