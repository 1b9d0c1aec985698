/**
 * Uploads streams: with one put up to the size of a part, with a multipart upload above it. Memory is bounded by the parts sent
 * at the same time; an upload that fails or is aborted leaves no parts behind.
 */
import { newAbortController } from '../../base/abort.ts';
import { StorageError } from '../../base/errors.ts';
import type { RemoveUploadsOptions } from '../contract/driver.ts';
import type { AttemptOptions } from '../contract/request-attempts.ts';
import { streamChunks } from '../contract/stream-chunks.ts';
import type { ObjectStoreRequests } from './object-store-requests.ts';
import type {
  ListUploadsOutput,
  ObjectProperties,
  S3Api,
  UploadedPart,
  WriteCondition,
  WrittenObject,
} from './s3-api.ts';

/** Size of a part, and of the largest stream that is sent in one request, in bytes. */
const partBytes = 8 * 1024 * 1024;
/** Parts sent at the same time. */
const partsAtOnce = 3;
/** Most parts of an upload. */
const maxParts = 10_000;
/** Attempts at requests that may be repeated: parts have numbers, and an upload has no effect until it is completed. */
const partAttempts = 4;

/** A request of an upload. */
type Attempt<T> = (api: S3Api, signal: AbortSignal) => Promise<T>;

/** A stream to upload. */
export interface StreamUpload {
  /** Sends a request that may be repeated. `operation` is its S3 name. */
  readonly send: <T>(
    operation: string,
    options: Pick<AttemptOptions, 'signal' | 'attempts' | 'sizeBytes'>,
    attempt: Attempt<T>,
  ) => Promise<T>;
  /** Sends the request that creates the object. */
  readonly sendFinal: (
    operation: string,
    signal: AbortSignal,
    sizeBytes: number,
    attempt: Attempt<WrittenObject>,
  ) => Promise<WrittenObject>;
  readonly input: ObjectProperties & WriteCondition;
  readonly chunks: AsyncIterable<Uint8Array>;
  readonly signal: AbortSignal | undefined;
}

/** Uploads a stream; resolves with the new ETag. On failure it aborts the multipart upload before it rejects. */
export async function uploadStream(upload: StreamUpload): Promise<string> {
  const { signal, input, sendFinal, chunks } = upload;
  const stopped = newAbortController();
  const onAbort = (): void => stopped.abort(signal?.reason);
  if (signal?.aborted === true) onAbort();
  else signal?.addEventListener('abort', onAbort, { once: true });
  try {
    const parts = streamChunks(chunks, partBytes, stopped.signal);
    const first = await parts.next();
    if (first.done === true) throw new StorageError(input.Key, 'none', `The stream of ${input.Key} has ended early.`);
    const { bytes, isLast } = first.value;
    const { ETag } = isLast
      ? await sendFinal('PutObject', stopped.signal, bytes.length, (api, inner) =>
          api.putObject({ ...input, Body: bytes }, inner),
        )
      : await uploadInParts(upload, bytes, parts, stopped);
    if (ETag === undefined) throw new StorageError(input.Key, 'unknown', 'The store answered without an ETag.');
    return ETag;
  } finally {
    signal?.removeEventListener('abort', onAbort);
  }
}

async function uploadInParts(
  upload: StreamUpload,
  first: Uint8Array,
  others: ReturnType<typeof streamChunks>,
  stopped: AbortController,
): Promise<WrittenObject> {
  const { IfMatch, IfNoneMatch, ...properties } = upload.input;
  const { Key } = properties;
  // Without a signal: an upload whose id was not received could not be aborted.
  const { UploadId } = await upload.send('CreateMultipartUpload', { attempts: partAttempts }, (api, inner) =>
    api.createUpload(properties, inner),
  );
  if (UploadId === undefined) throw new StorageError(Key, 'none', 'The store began an upload without an id.');
  const target = { Key, UploadId };
  try {
    const Parts = await sendParts(upload, target, first, others, stopped);
    const condition = { ...(IfMatch && { IfMatch }), ...(IfNoneMatch && { IfNoneMatch }) };
    return await upload.sendFinal('CompleteMultipartUpload', stopped.signal, 0, (api, inner) =>
      api.completeUpload({ ...target, ...condition, Parts }, inner),
    );
  } catch (error) {
    // Comes last, after everything else has stopped. If it fails, a later gc removes the parts.
    await upload
      .send('AbortMultipartUpload', { attempts: partAttempts }, (api, inner) => api.abortUpload(target, inner))
      .catch(() => undefined);
    throw error;
  } finally {
    await others.return();
  }
}

/** Sends the parts, a few at the same time. Resolves or rejects after all requests have ended. */
async function sendParts(
  { send }: StreamUpload,
  target: { readonly Key: string; readonly UploadId: string },
  first: Uint8Array,
  others: ReturnType<typeof streamChunks>,
  stopped: AbortController,
): Promise<UploadedPart[]> {
  const done: UploadedPart[] = [];
  const running = new Set<Promise<void>>();
  let failure: { readonly error: unknown } | undefined;
  const fail = (error: unknown): void => {
    failure ??= { error };
    // One failed part makes the other parts and the rest of the stream useless.
    stopped.abort(error);
  };
  const start = (PartNumber: number, Body: Uint8Array): void => {
    const options = { signal: stopped.signal, attempts: partAttempts, sizeBytes: Body.length };
    const part = send('UploadPart', options, (api, inner) => api.uploadPart({ ...target, PartNumber, Body }, inner))
      .then((written) => void done.push({ ...written, PartNumber }), fail)
      .finally(() => running.delete(part));
    running.add(part);
  };
  try {
    start(1, first);
    let number = 1;
    for await (const { bytes } of others) {
      number++;
      if (number > maxParts) throw tooLong(target.Key);
      start(number, bytes);
      // The next part is only read when there is room for it.
      if (running.size >= partsAtOnce) await Promise.race(running);
      stopped.signal.throwIfAborted();
    }
  } catch (error) {
    fail(error);
  }
  await Promise.all(running);
  if (failure !== undefined) throw failure.error;
  return done.toSorted((a, b) => a.PartNumber - b.PartNumber);
}

function tooLong(key: string): StorageError {
  const most = (maxParts * partBytes) / 2 ** 30;
  return new StorageError(
    key,
    'none',
    `The stream of ${key} is longer than ${most} GiB, the most that one object takes.`,
  );
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
  for (const { Key = '', UploadId = '' } of old) {
    const request = { operation: 'AbortMultipartUpload', bucket, key: Key };
    await requests.send(request, { signal }, (api, inner) => api.abortUpload({ Key, UploadId }, inner));
  }
  return old.length;
}

type Upload = ListUploadsOutput['Uploads'][number];

async function listUploads(
  requests: ObjectStoreRequests,
  bucket: string,
  prefix: string,
  signal: AbortSignal | undefined,
): Promise<Upload[]> {
  const uploads: Upload[] = [];
  const request = { operation: 'ListMultipartUploads', bucket, key: prefix };
  for (let KeyMarker: string | undefined, UploadIdMarker: string | undefined; ; ) {
    const input = {
      Prefix: prefix,
      ...(KeyMarker && { KeyMarker }),
      ...(UploadIdMarker && { UploadIdMarker }),
    };
    const page = await requests.send(request, { signal }, (api, inner) => api.listUploads(input, inner));
    uploads.push(...page.Uploads);
    if (!page.IsTruncated || page.NextKeyMarker === undefined) return uploads;
    KeyMarker = page.NextKeyMarker;
    UploadIdMarker = page.NextUploadIdMarker;
  }
}
