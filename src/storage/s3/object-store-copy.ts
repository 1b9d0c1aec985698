/** Copies objects within a bucket: the store does it, in one request or part by part. */
import { forEachOf } from '../../base/pacer.ts';
import { defined } from '../../base/options.ts';
import type { ObjectCopyOptions } from '../contract/driver.ts';
import { statusOf } from './object-store-errors.ts';
import type { CheckedDriverOptions } from './object-store-options.ts';
import type { ObjectStoreRequests, RequestTally, SendOptions } from './object-store-requests.ts';

/** The largest object that is copied by one request, and the least size of a part otherwise, in bytes. */
const partBytes = 256 * 1024 * 1024;
const maxParts = 10_000;
const partsAtOnce = 4;
/** Copies, and their parts, may be repeated: they do the same twice. */
const attempts = 4;

export interface ObjectCopy extends Pick<CheckedDriverOptions, 'bucket' | 'encryption'> {
  readonly requests: ObjectStoreRequests;
  readonly from: string;
  readonly to: string;
  readonly options: ObjectCopyOptions;
  readonly tally: RequestTally;
  /** For tests; no store takes parts of less than 5 MiB. */
  readonly partBytes?: number;
}

/** Statuses of a store that will not copy this, or not at all: reading and writing may work all the same. */
const refusals = new Set([400, 403, 404, 405, 411, 501]);

/** Whether a copy was refused and nothing was done. */
export function isCopyRefusal(error: unknown): boolean {
  return refusals.has(statusOf(error) ?? 0);
}

/** The name of the source, as the header wants it. */
function sourceOf(bucket: string, key: string): string {
  const path = key.split('/').map(encodeURIComponent).join('/');
  return bucket.startsWith('arn:') ? `${bucket}/object/${path}` : `${bucket}/${path}`;
}

/** Rejects with `StorageError`, or with what {@link isCopyRefusal} tells of. */
export async function copyObject(copy: ObjectCopy): Promise<void> {
  const { requests, bucket, encryption, from, to, options, tally } = copy;
  const { sizeBytes = 0, signal } = options;
  if (sizeBytes > (copy.partBytes ?? partBytes)) {
    await copyInParts(copy, sizeBytes);
    return;
  }
  const input = { Bucket: bucket, Key: to, CopySource: sourceOf(bucket, from), ...encryption };
  const send: SendOptions = { signal, sizeBytes, attempts, tally, isAnswer: isCopyRefusal };
  await requests.send({ operation: 'CopyObject', bucket, key: to }, send, ({ s3, client }, abortSignal) =>
    client.send(new s3.CopyObjectCommand(input), { abortSignal }),
  );
}

async function copyInParts(copy: ObjectCopy, sizeBytes: number): Promise<void> {
  const { requests, bucket, encryption, to, options, tally } = copy;
  const { contentType, signal } = options;
  const target = { Bucket: bucket, Key: to };
  const input = { ...target, ...encryption, ...defined({ ContentType: contentType }) };
  const send: SendOptions = { signal, attempts, tally, isAnswer: isCopyRefusal };
  // Without a signal: an upload whose name nobody waited for could not be aborted.
  const { UploadId } = await requests.send(
    { operation: 'CreateMultipartUpload', bucket, key: to },
    { attempts, tally, isAnswer: isCopyRefusal },
    ({ s3, client }, abortSignal) => client.send(new s3.CreateMultipartUploadCommand(input), { abortSignal }),
  );
  const upload = { ...target, UploadId };
  try {
    const Parts = await copyParts(copy, upload, sizeBytes);
    const command = { ...upload, MultipartUpload: { Parts } };
    await requests.send(
      { operation: 'CompleteMultipartUpload', bucket, key: to },
      { ...send, attempts: 1 },
      ({ s3, client }, abortSignal) => client.send(new s3.CompleteMultipartUploadCommand(command), { abortSignal }),
    );
  } catch (error) {
    const request = { operation: 'AbortMultipartUpload', bucket, key: to };
    // What stays where that fails is removed by a later gc.
    await requests
      .send(request, { attempts, tally }, ({ s3, client }, abortSignal) =>
        client.send(new s3.AbortMultipartUploadCommand(upload), { abortSignal }),
      )
      .catch(() => undefined);
    throw error;
  }
}

interface CopiedPart {
  readonly PartNumber: number;
  readonly ETag: string | undefined;
}

async function copyParts(
  copy: ObjectCopy,
  upload: { readonly Bucket: string; readonly Key: string; readonly UploadId: string | undefined },
  sizeBytes: number,
): Promise<CopiedPart[]> {
  const { requests, bucket, from, to, options, tally } = copy;
  const bytes = Math.max(copy.partBytes ?? partBytes, Math.ceil(sizeBytes / maxParts));
  const count = Math.ceil(sizeBytes / bytes);
  const parts: CopiedPart[] = [];
  const numbers = Array.from({ length: count }, (_, i) => i + 1);
  // All have ended before the upload is aborted.
  await forEachOf(numbers, partsAtOnce, async (PartNumber) => {
    const start = (PartNumber - 1) * bytes;
    const end = Math.min(start + bytes, sizeBytes);
    const CopySourceRange = `bytes=${start}-${end - 1}`;
    const input = { ...upload, PartNumber, CopySource: sourceOf(bucket, from), CopySourceRange };
    const send: SendOptions = {
      signal: options.signal,
      sizeBytes: end - start,
      attempts,
      tally,
      isAnswer: isCopyRefusal,
    };
    const { CopyPartResult } = await requests.send(
      { operation: 'UploadPartCopy', bucket, key: to },
      send,
      ({ s3, client }, abortSignal) => client.send(new s3.UploadPartCopyCommand(input), { abortSignal }),
    );
    parts.push({ PartNumber, ETag: CopyPartResult?.ETag });
  });
  return parts.toSorted((a, b) => a.PartNumber - b.PartNumber);
}
