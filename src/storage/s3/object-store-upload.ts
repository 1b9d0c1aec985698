/**
 * Uploads streams: with one put up to the size of a part, with a multipart upload above it. Memory is bounded by the parts sent
 * at the same time; an upload that fails or is aborted leaves no parts behind.
 */
import { Readable } from 'node:stream';
import type { PutObjectCommandInput, S3Client, MultipartUpload } from '@aws-sdk/client-s3';
import type { Upload as UploadOfSdk } from '@aws-sdk/lib-storage';
import { newAbortController, untilAborted } from '../../base/abort.ts';
import { StorageError } from '../../base/errors.ts';
import type { RemoveUploadsOptions } from '../contract/driver.ts';
import type { ObjectStoreRequests } from './object-store-requests.ts';

/** Size of a part, and of the largest stream that is sent in one request, in bytes. */
const partBytes = 8 * 1024 * 1024;
/** Parts sent at the same time. */
const partsAtOnce = 3;

/** Sends one command of the SDK. `isRepeatable`: the command is idempotent. */
export type SendCommand = (command: object, isRepeatable: boolean, signal?: AbortSignal) => Promise<unknown>;

/** Idempotent commands: parts have numbers, and an upload has no effect until it is completed. */
const repeatable = new Set(['CreateMultipartUploadCommand', 'UploadPartCommand', 'AbortMultipartUploadCommand']);

/** A stream to upload. */
export interface StreamUpload {
  /** The SDK's class, loaded by the caller. */
  readonly Upload: typeof UploadOfSdk;
  /** The client whose configuration the upload reads; requests go through `send`. */
  readonly client: S3Client;
  readonly send: SendCommand;
  readonly input: Omit<PutObjectCommandInput, 'Body'>;
  readonly chunks: AsyncIterable<Uint8Array>;
  readonly signal: AbortSignal | undefined;
}

/** Yields copies of the chunks, because their owner may reuse the memory. Ends as soon as the signal is aborted. */
async function* copies(
  chunks: AsyncIterable<Uint8Array>,
  signal: AbortSignal,
): AsyncGenerator<Buffer, void, undefined> {
  const iterator = chunks[Symbol.asyncIterator]();
  let isDone = false;
  try {
    for (;;) {
      const next = await untilAborted(iterator.next(), signal);
      if (next.done === true) {
        isDone = true;
        return;
      }
      yield Buffer.from(next.value);
    }
  } finally {
    // Not awaited: a source that is stuck would block the caller that aborted the upload.
    if (!isDone) iterator.return?.().catch(() => undefined);
  }
}

/** Uploads a stream; resolves with the new ETag. On failure it aborts the multipart upload before it rejects. */
export async function uploadStream({ Upload, client, send, input, chunks, signal }: StreamUpload): Promise<string> {
  const stopped = newAbortController();
  const stop = (reason: unknown): void => stopped.abort(reason);
  const onAbort = (): void => stop(signal?.reason);
  if (signal?.aborted === true) onAbort();
  else signal?.addEventListener('abort', onAbort, { once: true });
  let failure: unknown;

  const sendUnlessStopped = async (command: object): Promise<unknown> => {
    const { name } = command.constructor;
    // The abort comes last, after everything else has stopped, and must be sent.
    if (name === 'AbortMultipartUploadCommand') return send(command, true);
    stopped.signal.throwIfAborted();
    try {
      // Waits for the upload id even if the upload is stopped: without the id it could not be aborted.
      const inner = name === 'CreateMultipartUploadCommand' ? undefined : stopped.signal;
      return await send(command, repeatable.has(name), inner);
    } catch (error) {
      // One failed part makes the other parts and the rest of the stream useless.
      failure ??= error;
      stop(error);
      throw error;
    }
  };
  const body = Readable.from(copies(chunks, stopped.signal), { objectMode: false });
  const upload = new Upload({
    client: Object.create(client, { send: { value: sendUnlessStopped } }) as S3Client,
    params: { ...input, Body: body },
    partSize: partBytes,
    queueSize: partsAtOnce,
  });
  try {
    const { ETag } = await upload.done();
    if (ETag === undefined) throw new StorageError(input.Key ?? '', 'unknown', 'The store answered without an ETag.');
    return ETag;
  } catch (error) {
    throw failure ?? error;
  } finally {
    signal?.removeEventListener('abort', onAbort);
    body.destroy();
  }
}

/**
 * Aborts multipart uploads that began before a time and will not be completed: their parts are in no listing, but cost money.
 * Resolves with the number of aborted uploads.
 */
export async function removeUploads(
  requests: ObjectStoreRequests,
  bucket: string,
  prefix: string,
  { startedBeforeMs, signal }: RemoveUploadsOptions,
): Promise<number> {
  const uploads = await listUploads(requests, bucket, prefix, signal);
  if (uploads.length === 0) return 0;
  const before = await startedBeforeMs();
  const old = uploads.filter(({ Initiated }) => Initiated !== undefined && Initiated.getTime() < before);
  for (const { Key = '', UploadId } of old) {
    const request = { operation: 'AbortMultipartUpload', bucket, key: Key };
    await requests.send(request, { signal }, ({ s3, client }, inner) =>
      client.send(new s3.AbortMultipartUploadCommand({ Bucket: bucket, Key, UploadId }), { abortSignal: inner }),
    );
  }
  return old.length;
}

async function listUploads(
  requests: ObjectStoreRequests,
  bucket: string,
  prefix: string,
  signal: AbortSignal | undefined,
): Promise<MultipartUpload[]> {
  const uploads: MultipartUpload[] = [];
  const request = { operation: 'ListMultipartUploads', bucket, key: prefix };
  for (let KeyMarker: string | undefined, UploadIdMarker: string | undefined; ; ) {
    const input = {
      Bucket: bucket,
      Prefix: prefix,
      ...(KeyMarker && { KeyMarker }),
      ...(UploadIdMarker && { UploadIdMarker }),
    };
    const page = await requests.send(request, { signal }, ({ s3, client }, inner) =>
      client.send(new s3.ListMultipartUploadsCommand(input), { abortSignal: inner }),
    );
    uploads.push(...(page.Uploads ?? []));
    if (page.IsTruncated !== true || page.NextKeyMarker === undefined) return uploads;
    KeyMarker = page.NextKeyMarker;
    UploadIdMarker = page.NextUploadIdMarker;
  }
}
