/**
 * Uploads streams: with one put up to the size of a block, with staged blocks above it. Memory is bounded by the blocks sent at
 * the same time. Azure removes staged blocks that are never committed after a week, and as soon as the blob is written.
 */
import type { BlobHTTPHeaders, BlobRequestConditions } from '@azure/storage-blob';
import { newAbortController } from '../../base/abort.ts';
import { StorageError } from '../../base/errors.ts';
import { sendFinal } from '../contract/final-request.ts';
import type { RequestTally } from '../contract/request-attempts.ts';
import { streamChunks } from '../contract/stream-chunks.ts';
import { codeOf } from './azure-errors.ts';
import { statBlob, uploadMark } from './azure-read.ts';
import type { AzureRequests } from './azure-requests.ts';

/** Size of a block, and of the largest stream that is sent in one request, in bytes. */
export const blockBytes: number = 8 * 1024 * 1024;
/** Blocks sent at the same time. */
const blocksAtOnce = 3;
/** Most blocks of a blob. */
const maxBlocks = 50_000;
/** Attempts at requests that may be repeated: blocks have names, and have no effect until they are committed. */
export const blockAttempts = 4;

/** A stream to upload. */
export interface StreamUpload {
  readonly requests: AzureRequests;
  readonly monotonicMs: () => number;
  readonly key: string;
  readonly chunks: AsyncIterable<Uint8Array>;
  readonly conditions: BlobRequestConditions;
  readonly headers: BlobHTTPHeaders;
  /** Random text that identifies the upload. */
  readonly mark: string;
  readonly signal: AbortSignal | undefined;
  readonly tally: RequestTally;
  /** Whether an error means that the condition of the write did not hold. */
  readonly isAnswer: (error: unknown) => boolean;
}

/** Returns the id of a block: all ids of a blob must have the same length. */
export function blockId(mark: string, index: number): string {
  return Buffer.from(`${mark}-${String(index).padStart(5, '0')}`).toString('base64');
}

/**
 * Uploads a stream; resolves with the new ETag. Rejects with `StorageError`, or with an error for which `isAnswer` is true if the
 * condition did not hold. No request runs after it has settled.
 */
export async function uploadStream(upload: StreamUpload): Promise<string> {
  const { chunks, signal } = upload;
  const stopped = newAbortController();
  const onAbort = (): void => stopped.abort(signal?.reason);
  if (signal?.aborted === true) onAbort();
  else signal?.addEventListener('abort', onAbort, { once: true });
  const blocks = streamChunks(chunks, blockBytes, stopped.signal);
  const staging = new Staging(upload, stopped);
  try {
    for await (const { bytes, isLast } of blocks) {
      // The SDK takes nothing but a Buffer.
      const block = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
      if (isLast && staging.isEmpty) return await putOnce(upload, block, stopped.signal);
      await staging.add(block);
    }
    return await commit(upload, await staging.finish(), stopped.signal);
  } catch (error) {
    const failure = staging.failure ?? error;
    stopped.abort(failure);
    await staging.end();
    throw failure;
  } finally {
    signal?.removeEventListener('abort', onAbort);
    blocks.return().catch(() => undefined);
  }
}

/** The blocks of an upload that are being sent. */
class Staging {
  readonly #upload: StreamUpload;
  readonly #stopped: AbortController;
  readonly #ids: string[] = [];
  readonly #running = new Set<Promise<void>>();
  /** The first failure: one failed block makes the other blocks useless. */
  failure: unknown;

  constructor(upload: StreamUpload, stopped: AbortController) {
    this.#upload = upload;
    this.#stopped = stopped;
  }

  /** Whether no block has been added. */
  get isEmpty(): boolean {
    return this.#ids.length === 0;
  }

  /** Begins to send a block, as soon as few enough are being sent. */
  async add(block: Buffer): Promise<void> {
    while (this.#running.size >= blocksAtOnce) await Promise.race(this.#running);
    this.#stopped.signal.throwIfAborted();
    const { key, mark } = this.#upload;
    if (this.#ids.length === maxBlocks) {
      const message = `The stream for ${key} is longer than the ${maxBlocks * blockBytes} bytes that a blob may have. Nothing was written.`;
      throw new StorageError(key, 'none', message);
    }
    const id = blockId(mark, this.#ids.length);
    this.#ids.push(id);
    const running = this.#stage(id, block).finally(() => this.#running.delete(running));
    this.#running.add(running);
  }

  /** Waits for all blocks, and returns their ids in order. */
  async finish(): Promise<readonly string[]> {
    await this.end();
    this.#stopped.signal.throwIfAborted();
    return this.#ids;
  }

  /** Waits until nothing is being sent. */
  async end(): Promise<void> {
    await Promise.all(this.#running);
  }

  async #stage(id: string, block: Buffer): Promise<void> {
    const { requests, key, tally } = this.#upload;
    const { signal } = this.#stopped;
    const options = { signal, sizeBytes: block.length, attempts: blockAttempts, tally };
    try {
      await requests.send({ operation: 'Put Block', key }, options, ({ container }, abortSignal) =>
        container.getBlockBlobClient(key).stageBlock(id, block, block.length, { abortSignal }),
      );
    } catch (error) {
      this.failure ??= error;
      this.#stopped.abort(error);
    }
  }
}

/** Sends the request that creates the blob, and finds out whether the blob exists if the response is lost. */
async function sendMarked(
  { requests, monotonicMs, key, mark, tally, isAnswer }: StreamUpload,
  signal: AbortSignal,
  send: () => Promise<string | undefined>,
): Promise<string> {
  const firstSentMs = monotonicMs();
  const etag = await sendFinal<string | undefined>({
    send,
    look: async () => {
      const stat = await statBlob(requests, key, signal, { attempts: blockAttempts, tally });
      return stat?.mark === mark ? stat.etag : undefined;
    },
    isAnswer,
    isWorthAnother: (error, tried) => requests.isWorthAnother(error, firstSentMs, tried, signal),
  });
  if (etag === undefined) throw new StorageError(key, 'unknown', `The store answered ${key} without an ETag.`);
  return etag;
}

/** Uploads a small stream with one request. */
function putOnce(upload: StreamUpload, bytes: Buffer, signal: AbortSignal): Promise<string> {
  const { requests, key, conditions, headers, mark, tally, isAnswer } = upload;
  const options = { conditions, blobHTTPHeaders: headers, metadata: { [uploadMark]: mark } };
  return sendMarked(upload, signal, () =>
    requests.send(
      { operation: 'Put Blob', key },
      { signal, sizeBytes: bytes.length, tally, isAnswer },
      async ({ container }, abortSignal) => {
        const { etag } = await container
          .getBlockBlobClient(key)
          .upload(bytes, bytes.length, { ...options, abortSignal });
        return etag;
      },
    ),
  );
}

/** Makes the blob of its blocks. */
async function commit(upload: StreamUpload, ids: readonly string[], signal: AbortSignal): Promise<string> {
  const { requests, key, conditions, headers, mark, tally, isAnswer } = upload;
  const options = { conditions, blobHTTPHeaders: headers, metadata: { [uploadMark]: mark } };
  try {
    return await sendMarked(upload, signal, () =>
      requests.send(
        { operation: 'Put Block List', key },
        { signal, tally, isAnswer },
        async ({ container }, abortSignal) => {
          const { etag } = await container
            .getBlockBlobClient(key)
            .commitBlockList([...ids], { ...options, abortSignal });
          return etag;
        },
      ),
    );
  } catch (error) {
    // A write of another process discards the blocks that are staged for the blob, and Azure may notice that first.
    if (error instanceof StorageError && codeOf(error.cause) === 'InvalidBlockList')
      throw await lostOr(error, upload, signal);
    throw error;
  }
}

/** The blocks of an upload are gone, because the blob was written: the condition did not hold. */
export class BlocksLostError extends Error {}

/** Returns the error for an upload whose blocks are gone: whether its condition holds decides. */
async function lostOr(
  error: StorageError,
  { requests, key, conditions }: StreamUpload,
  signal: AbortSignal,
): Promise<Error> {
  const stat = await statBlob(requests, key, signal, { attempts: blockAttempts });
  const isLost =
    conditions.ifMatch === undefined
      ? conditions.ifNoneMatch === '*' && stat !== undefined
      : stat?.etag !== conditions.ifMatch;
  if (isLost) return new BlocksLostError(`Another write of ${key} came first.`);
  const message = `Another write of ${key} discarded the blocks of this upload. Nothing was written; upload the stream again.`;
  return new StorageError(key, 'none', message, { cause: error.cause });
}
