/** Removes parts of multipart uploads that nobody will complete: they are in no listing, and are paid for. */
import type { MultipartUpload } from '@aws-sdk/client-s3';
import type { RemoveUploadsOptions } from '../contract/driver.ts';
import type { ObjectStoreRequests } from './object-store-requests.ts';

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
