/** Copies objects within a bucket on the store's side, with one request or as a multipart copy. */
import { forEachOf } from '../../base/pacer.ts';
import { defined } from '../../base/options.ts';
import { cacheControlOf } from '../../format/object-names.ts';
import type { ObjectCopyOptions } from '../contract/driver.ts';
import type { AttemptOptions, RequestTally } from '../contract/request-attempts.ts';
import { statusOf } from './object-store-errors.ts';
import type { CheckedDriverOptions } from './object-store-options.ts';
import type { ObjectStoreRequests } from './object-store-requests.ts';
import type { UploadedPart, UploadTarget } from './s3-api.ts';

/** Largest object that one request copies, and smallest part of a multipart copy, in bytes. */
const partBytes = 256 * 1024 * 1024;
const maxParts = 10_000;
const partsAtOnce = 4;
/** Attempts: copies and their parts are idempotent. */
const attempts = 4;

/** A copy to make. */
export interface ObjectCopy extends Pick<CheckedDriverOptions, 'bucket' | 'encryption' | 'cacheHeaders'> {
  readonly requests: ObjectStoreRequests;
  readonly from: string;
  readonly to: string;
  readonly options: ObjectCopyOptions;
  readonly tally: RequestTally;
  /** For tests; no store takes parts of less than 5 MiB. */
  readonly partBytes?: number;
}

/** Statuses of a store that cannot copy the object, or cannot copy at all; reading and writing may still work. */
const refusals = new Set([400, 403, 404, 405, 411, 501]);

/** Whether the store refused a copy without effect. */
export function isCopyRefusal(error: unknown): boolean {
  return refusals.has(statusOf(error) ?? 0);
}

/** Returns the source in the form of the header `x-amz-copy-source`. */
function sourceOf(bucket: string, key: string): string {
  const path = key.split('/').map(encodeURIComponent).join('/');
  return bucket.startsWith('arn:') ? `${bucket}/object/${path}` : `${bucket}/${path}`;
}

/** Copies an object. Rejects with `StorageError`, or with an error for which {@link isCopyRefusal} is true. */
export async function copyObject(copy: ObjectCopy): Promise<void> {
  const { requests, bucket, encryption, from, to, options, tally } = copy;
  const { sizeBytes = 0, signal } = options;
  if (sizeBytes > (copy.partBytes ?? partBytes)) {
    await copyInParts(copy, sizeBytes);
    return;
  }
  const input = { Key: to, CopySource: sourceOf(bucket, from), ...encryption };
  const send: AttemptOptions = { signal, sizeBytes, attempts, tally, isAnswer: isCopyRefusal };
  await requests.send({ operation: 'CopyObject', bucket, key: to }, send, (api, inner) => api.copyObject(input, inner));
}

async function copyInParts(copy: ObjectCopy, sizeBytes: number): Promise<void> {
  const { requests, bucket, encryption, to, options, tally } = copy;
  const { contentType, signal } = options;
  const input = {
    Key: to,
    ...encryption,
    ...defined({ ContentType: contentType, CacheControl: copy.cacheHeaders ? cacheControlOf(to) : undefined }),
  };
  const send: AttemptOptions = { signal, attempts, tally, isAnswer: isCopyRefusal };
  // Without a signal: an upload whose id was not received could not be aborted.
  const { UploadId = '' } = await requests.send(
    { operation: 'CreateMultipartUpload', bucket, key: to },
    { attempts, tally, isAnswer: isCopyRefusal },
    (api, inner) => api.createUpload(input, inner),
  );
  const upload = { Key: to, UploadId };
  try {
    const Parts = await copyParts(copy, upload, sizeBytes);
    await requests.send(
      { operation: 'CompleteMultipartUpload', bucket, key: to },
      { ...send, attempts: 1 },
      (api, inner) => api.completeUpload({ ...upload, Parts }, inner),
    );
  } catch (error) {
    const request = { operation: 'AbortMultipartUpload', bucket, key: to };
    // If the abort fails, a later gc removes the parts.
    await requests
      .send(request, { attempts, tally }, (api, inner) => api.abortUpload(upload, inner))
      .catch(() => undefined);
    throw error;
  }
}

async function copyParts(copy: ObjectCopy, upload: UploadTarget, sizeBytes: number): Promise<UploadedPart[]> {
  const { requests, bucket, from, to, options, tally } = copy;
  const bytes = Math.max(copy.partBytes ?? partBytes, Math.ceil(sizeBytes / maxParts));
  const count = Math.ceil(sizeBytes / bytes);
  const parts: UploadedPart[] = [];
  const numbers = Array.from({ length: count }, (_, i) => i + 1);
  // Resolves or rejects only after all requests have ended, so that the upload can be aborted.
  await forEachOf(numbers, partsAtOnce, async (PartNumber) => {
    const start = (PartNumber - 1) * bytes;
    const end = Math.min(start + bytes, sizeBytes);
    const CopySourceRange = `bytes=${start}-${end - 1}`;
    const input = { ...upload, PartNumber, CopySource: sourceOf(bucket, from), CopySourceRange };
    const send: AttemptOptions = {
      signal: options.signal,
      sizeBytes: end - start,
      attempts,
      tally,
      isAnswer: isCopyRefusal,
    };
    const copied = await requests.send({ operation: 'UploadPartCopy', bucket, key: to }, send, (api, inner) =>
      api.uploadPartCopy(input, inner),
    );
    parts.push({ ...copied, PartNumber });
  });
  return parts.toSorted((a, b) => a.PartNumber - b.PartNumber);
}
