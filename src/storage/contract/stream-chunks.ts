/** Cuts a stream into chunks of one size, for uploads in parts. */
import { untilAborted } from '../../base/abort.ts';

/** A part of a stream. */
export interface StreamChunk {
  readonly bytes: Uint8Array;
  /** Whether nothing follows. */
  readonly isLast: boolean;
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
  let pieces: Uint8Array[] = [];
  let length = 0;
  let isDone = false;
  try {
    for (;;) {
      const next = await untilAborted(iterator.next(), signal);
      if (next.done === true) {
        isDone = true;
        yield { bytes: Buffer.concat(pieces, length), isLast: true };
        return;
      }
      for (let at = 0; at < next.value.length; ) {
        // A full chunk is only yielded once there is a byte after it: it may be the last one.
        if (length === chunkBytes) {
          const bytes = Buffer.concat(pieces, length);
          [pieces, length] = [[], 0];
          yield { bytes, isLast: false };
        }
        const piece = Uint8Array.from(next.value.subarray(at, at + chunkBytes - length));
        pieces.push(piece);
        length += piece.length;
        at += piece.length;
      }
    }
  } finally {
    // Not awaited: a source that is stuck would block the caller that aborted the upload.
    if (!isDone) iterator.return?.().catch(() => undefined);
  }
}
