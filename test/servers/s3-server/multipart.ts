/** Uploads in parts: begun, filled part by part, and then completed in one step or aborted. */
import { createHash, randomBytes } from 'node:crypto';
import { compareKeys } from './bucket.ts';
import type { CompletedUpload, OpenUpload, Part } from './bucket.ts';
import { compositeChecksum, parseAlgorithm } from './checksums.ts';
import type { Checksum } from './checksums.ts';
import { writeObject } from './conditions.ts';
import type { Exchange } from './exchange.ts';
import { isoTime, keyEncoder, pageSize } from './listing.ts';
import { checksumHeaders, encryptionHeaders, etagOf, parseProperties } from './object-properties.ts';
import { checkKeySize, wholeSeconds } from './objects.ts';
import { S3Error } from './s3-error.ts';
import { headerOf, xmlAnswer } from './s3-message.ts';
import type { S3Answer } from './s3-message.ts';
import { childText, parseXml } from './xml.ts';

const minPartSizeBytes = 5 * 1024 * 1024;
const maxPartNumber = 10_000;

function findUpload({ request, bucket }: Exchange): OpenUpload {
  const upload = bucket.uploads.get(request.query['uploadId'] ?? '');
  if (upload === undefined || upload.key !== request.key) {
    throw new S3Error('NoSuchUpload', { UploadId: request.query['uploadId'] });
  }
  return upload;
}

export function createUpload({ request, bucket, now }: Exchange): S3Answer {
  checkKeySize(request.key);
  const algorithm = headerOf(request, 'x-amz-checksum-algorithm');
  if (headerOf(request, 'x-amz-checksum-type')?.toUpperCase() === 'FULL_OBJECT') {
    throw new S3Error('NotImplemented', { Header: 'x-amz-checksum-type' });
  }
  const upload: OpenUpload = {
    ...parseProperties(request),
    uploadId: randomBytes(24).toString('base64url'),
    key: request.key,
    initiatedMs: now(),
    checksumAlgorithm: algorithm === undefined ? undefined : parseAlgorithm(algorithm),
    parts: new Map(),
  };
  bucket.uploads.set(upload.uploadId, upload);
  return xmlAnswer(
    'InitiateMultipartUploadResult',
    { Bucket: bucket.name, Key: request.key, UploadId: upload.uploadId },
    { ...encryptionHeaders(upload.encryption), 'x-amz-checksum-algorithm': algorithm?.toUpperCase() },
  );
}

/** Keeps a part of an open upload. */
export function storePart(x: Exchange, bytes: Buffer, checksum: Checksum | undefined): Part {
  const { request, now } = x;
  const upload = findUpload(x);
  const number = Number(request.query['partNumber']);
  if (!Number.isInteger(number) || number < 1 || number > maxPartNumber) {
    throw new S3Error('InvalidArgument', { ArgumentName: 'partNumber' }, 'Part number must be from 1 to 10000');
  }
  if (upload.checksumAlgorithm !== undefined && checksum?.algorithm !== upload.checksumAlgorithm) {
    const given = checksum?.algorithm ?? 'null';
    throw new S3Error('InvalidRequest', {}, `Checksum Type mismatch: ${upload.checksumAlgorithm}, not ${given}`);
  }
  const md5 = createHash('md5').update(bytes).digest();
  const part = { bytes, etag: etagOf(bytes, upload.encryption), md5, uploadedMs: now(), checksum };
  upload.parts.set(number, part);
  return part;
}

export function uploadPart(x: Exchange): S3Answer {
  const { bytes, checksum } = x.payload;
  const { encryption } = findUpload(x);
  const { etag } = storePart(x, bytes, checksum);
  return { status: 200, headers: { etag, ...encryptionHeaders(encryption), ...checksumHeaders({ checksum }) } };
}

/** The parts that a completion names, in its order; refuses whatever is not as it says. */
function chooseParts(upload: OpenUpload, body: Uint8Array): Part[] {
  const root = parseXml(body);
  const elements = root.children.filter(({ name }) => name === 'Part');
  if (root.name !== 'CompleteMultipartUpload' || elements.length === 0) throw new S3Error('MalformedXML');
  let previous = 0;
  const chosen = elements.map((element) => {
    const number = Number(childText(element, 'PartNumber') ?? Number.NaN);
    const etag = childText(element, 'ETag');
    if (!Number.isInteger(number) || etag === undefined) throw new S3Error('MalformedXML');
    if (number <= previous) throw new S3Error('InvalidPartOrder', { UploadId: upload.uploadId });
    previous = number;
    const part = upload.parts.get(number);
    if (part === undefined || part.etag.replaceAll('"', '') !== etag.replaceAll('"', '')) {
      throw new S3Error('InvalidPart', { UploadId: upload.uploadId, PartNumber: number, ETag: etag });
    }
    const checksum = part.checksum;
    const claimed = checksum && childText(element, `Checksum${checksum.algorithm.toUpperCase()}`);
    if (claimed === undefined && upload.checksumAlgorithm !== undefined) {
      const message = 'The complete request must include the checksum for each part.';
      throw new S3Error('InvalidRequest', { UploadId: upload.uploadId, PartNumber: number }, message);
    }
    if (claimed !== undefined && claimed !== checksum?.value) {
      throw new S3Error('InvalidPart', { UploadId: upload.uploadId, PartNumber: number, ETag: etag });
    }
    return { number, part };
  });
  for (const { number, part } of chosen.slice(0, -1)) {
    if (part.bytes.length >= minPartSizeBytes) continue;
    throw new S3Error('EntityTooSmall', {
      ProposedSize: part.bytes.length,
      MinSizeAllowed: minPartSizeBytes,
      PartNumber: number,
      ETag: part.etag,
    });
  }
  return chosen.map(({ part }) => part);
}

function checksumOfParts({ checksumAlgorithm }: OpenUpload, parts: readonly Part[]): Checksum | undefined {
  if (checksumAlgorithm === undefined) return undefined;
  return compositeChecksum(
    checksumAlgorithm,
    parts.map(({ checksum }) => checksum?.value ?? ''),
  );
}

function completionAnswer({ bucket }: Exchange, { key, etag, encryption, checksum }: CompletedUpload): S3Answer {
  const checksumField = checksum && { [`Checksum${checksum.algorithm.toUpperCase()}`]: checksum.value };
  return xmlAnswer(
    'CompleteMultipartUploadResult',
    {
      Location: `/${bucket.name}/${key}`,
      Bucket: bucket.name,
      Key: key,
      ETag: etag,
      ...checksumField,
      ChecksumType: checksum && 'COMPOSITE',
    },
    encryptionHeaders(encryption),
  );
}

export async function completeUpload(x: Exchange): Promise<S3Answer> {
  const { request, bucket, payload, dialect } = x;
  const before = bucket.completed.get(request.query['uploadId'] ?? '');
  // Asked once more, Amazon answers as before, whatever became of the object; its condition held once.
  if (before?.key === request.key && !dialect.forgetsCompleted) return completionAnswer(x, before);
  const upload = findUpload(x);
  const parts = chooseParts(upload, payload.bytes);
  const sums = createHash('md5').update(Buffer.concat(parts.map(({ md5 }) => md5)));
  const { uploadId, key, contentType, headers, metadata, encryption } = upload;
  const { etag, checksum } = await writeObject(x, () => ({
    contentType,
    headers,
    metadata,
    encryption,
    bytes: Buffer.concat(parts.map(({ bytes }) => bytes)),
    etag: `"${sums.digest('hex')}-${parts.length}"`,
    // As Amazon documents it: the object dates from when its upload was begun.
    lastModifiedMs: wholeSeconds(upload.initiatedMs),
    checksum: checksumOfParts(upload, parts),
  }));
  const completed = { key, etag, encryption, checksum };
  bucket.uploads.delete(uploadId);
  bucket.completed.set(uploadId, completed);
  return completionAnswer(x, completed);
}

export function abortUpload(x: Exchange): S3Answer {
  x.bucket.uploads.delete(findUpload(x).uploadId);
  return { status: 204 };
}

/** Uploads by key, and those of one key in the order in which they were begun. */
export function listUploads({ request, bucket, dialect }: Exchange): S3Answer {
  if (dialect.noListBucket) throw new S3Error('AccessDenied');
  const { query } = request;
  const encode = keyEncoder(request);
  const limit = pageSize(request, 'max-uploads');
  const [keyMarker, idMarker] = [query['key-marker'] ?? '', query['upload-id-marker'] ?? ''];
  const sorted = [...bucket.uploads.values()]
    .filter(({ key }) => key.startsWith(query['prefix'] ?? ''))
    .toSorted((a, b) => compareKeys(a.key, b.key));
  const markerAt = sorted.findIndex(({ key, uploadId }) => key === keyMarker && uploadId === idMarker);
  const following = sorted.filter(({ key }, index) => {
    return compareKeys(key, keyMarker) > 0 || (key === keyMarker && markerAt !== -1 && index > markerAt);
  });
  const page = following.slice(0, limit);
  const last = page.length < following.length ? page.at(-1) : undefined;
  return xmlAnswer('ListMultipartUploadsResult', {
    Bucket: bucket.name,
    KeyMarker: encode(keyMarker),
    UploadIdMarker: idMarker,
    NextKeyMarker: last && encode(last.key),
    NextUploadIdMarker: last?.uploadId,
    Prefix: query['prefix'] === undefined ? undefined : encode(query['prefix']),
    EncodingType: query['encoding-type'],
    MaxUploads: limit,
    IsTruncated: last !== undefined,
    Upload: page.map(({ key, uploadId, initiatedMs, checksumAlgorithm }) => ({
      Key: encode(key),
      UploadId: uploadId,
      StorageClass: 'STANDARD',
      Initiated: isoTime(initiatedMs),
      ChecksumAlgorithm: checksumAlgorithm?.toUpperCase(),
    })),
  });
}

export function listParts(x: Exchange): S3Answer {
  const { request, bucket } = x;
  const upload = findUpload(x);
  const limit = pageSize(request, 'max-parts');
  const marker = Number(request.query['part-number-marker'] ?? 0);
  const following = [...upload.parts].filter(([number]) => number > marker).toSorted(([a], [b]) => a - b);
  const page = following.slice(0, limit);
  const isTruncated = page.length < following.length;
  return xmlAnswer('ListPartsResult', {
    Bucket: bucket.name,
    Key: upload.key,
    UploadId: upload.uploadId,
    PartNumberMarker: marker,
    NextPartNumberMarker: isTruncated ? page.at(-1)?.[0] : undefined,
    MaxParts: limit,
    IsTruncated: isTruncated,
    Part: page.map(([number, { bytes, etag, uploadedMs }]) => ({
      PartNumber: number,
      ETag: etag,
      Size: bytes.length,
      LastModified: isoTime(uploadedMs),
    })),
  });
}
