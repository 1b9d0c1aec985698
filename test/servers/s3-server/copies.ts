/** Copies within a bucket, of whole objects and as parts of uploads. */
import type { StoredObject } from './bucket.ts';
import { writeObject } from './conditions.ts';
import type { Exchange } from './exchange.ts';
import { isoTime } from './listing.ts';
import { storePart } from './multipart.ts';
import { encryptionHeaders, etagOf, parseProperties } from './object-properties.ts';
import { checkKeySize, wholeSeconds } from './objects.ts';
import { S3Error } from './s3-error.ts';
import { parseCopySource, xmlAnswer } from './s3-message.ts';
import type { S3Answer } from './s3-message.ts';

function sourceOf({ request, bucket, dialect }: Exchange): StoredObject {
  if (dialect.noCopies) throw new S3Error('NotImplemented', { Header: 'x-amz-copy-source' });
  const source = parseCopySource(request);
  if (source.bucket !== bucket.name) throw new S3Error('NotImplemented', {}, 'Copies stay within a bucket here.');
  const object = bucket.get(source.key);
  if (object === undefined) throw new S3Error('NoSuchKey', { Key: source.key });
  return object;
}

export async function copyObject(x: Exchange): Promise<S3Answer> {
  const { request, now } = x;
  checkKeySize(request.key);
  const source = sourceOf(x);
  const { encryption } = parseProperties(request);
  const { etag, lastModifiedMs } = await writeObject(x, () => ({
    ...source,
    encryption,
    etag: etagOf(source.bytes, encryption),
    lastModifiedMs: wholeSeconds(now()),
  }));
  const fields = { ETag: etag, LastModified: isoTime(lastModifiedMs) };
  return xmlAnswer('CopyObjectResult', fields, encryptionHeaders(encryption));
}

export function copyPart(x: Exchange): S3Answer {
  const { bytes } = sourceOf(x);
  const range = x.request.headers['x-amz-copy-source-range'] ?? `bytes=0-${bytes.length - 1}`;
  const match = /^bytes=(\d+)-(\d+)$/.exec(range);
  const [start, last] = [Number(match?.[1]), Number(match?.[2])];
  // Unlike a read, a copy does not clip its range.
  if (match === null || last < start || last >= bytes.length)
    throw new S3Error('InvalidRange', { RangeRequested: range });
  const { etag, uploadedMs } = storePart(x, bytes.subarray(start, last + 1), undefined);
  return xmlAnswer('CopyPartResult', { ETag: etag, LastModified: isoTime(uploadedMs) });
}
