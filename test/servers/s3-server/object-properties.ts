/** The properties of objects: read from the headers of an upload, and written into the headers of an answer. */
import { createHash } from 'node:crypto';
import type { Encryption, ObjectProperties, StoredObject } from './bucket.ts';
import { checksumHeader } from './checksums.ts';
import { S3Error } from './s3-error.ts';
import { headerOf } from './s3-message.ts';
import type { S3Answer, S3Request } from './s3-message.ts';

const keptHeaders = ['cache-control', 'content-disposition', 'content-encoding', 'content-language', 'expires'];
const encryptionHeader = 'x-amz-server-side-encryption';
const keyIdHeader = `${encryptionHeader}-aws-kms-key-id`;
const bucketKeyHeader = `${encryptionHeader}-bucket-key-enabled`;
const metadataPrefix = 'x-amz-meta-';

function parseEncryption(request: S3Request): Encryption {
  const algorithm = headerOf(request, encryptionHeader) ?? 'AES256';
  const keyId = headerOf(request, keyIdHeader);
  if (!['AES256', 'aws:kms', 'aws:kms:dsse'].includes(algorithm)) {
    throw new S3Error('InvalidArgument', {}, 'The encryption method specified is not supported');
  }
  if (algorithm === 'AES256' && keyId !== undefined) {
    throw new S3Error('InvalidArgument', {}, 'A key id needs the encryption method aws:kms');
  }
  return { algorithm, keyId, bucketKey: headerOf(request, bucketKeyHeader) };
}

function parseHeaders({ headers }: S3Request): Record<string, string> {
  const kept: Record<string, string> = {};
  for (const name of keptHeaders) {
    // `aws-chunked` is how the bytes travelled, and no property of the object.
    const value = (headers[name] ?? '')
      .split(',')
      .filter((part) => name !== 'content-encoding' || part.trim() !== 'aws-chunked')
      .join(',');
    if (value !== '') kept[name] = value.trim();
  }
  return kept;
}

export function parseProperties(request: S3Request): ObjectProperties {
  const names = [...Object.keys(request.headers), ...request.parameters.map(([name]) => name.toLowerCase())];
  const metadata = names
    .filter((name) => name.startsWith(metadataPrefix))
    .map((name) => [name.slice(metadataPrefix.length), headerOf(request, name) ?? '']);
  return {
    contentType: request.headers['content-type'] ?? 'binary/octet-stream',
    headers: parseHeaders(request),
    metadata: Object.fromEntries(metadata) as Record<string, string>,
    encryption: parseEncryption(request),
  };
}

let sealedCount = 0;

/** With quotes: the MD5 of the bytes, unless they are encrypted with a key of the caller's; then it is anything. */
export function etagOf(bytes: Uint8Array, { algorithm }: Encryption): string {
  const hash = createHash('md5').update(bytes);
  if (algorithm !== 'AES256') hash.update(`sealed ${(sealedCount += 1)}`);
  return `"${hash.digest('hex')}"`;
}

export function encryptionHeaders({ algorithm, keyId, bucketKey }: Encryption): Record<string, string | undefined> {
  return { [encryptionHeader]: algorithm, [keyIdHeader]: keyId, [bucketKeyHeader]: bucketKey };
}

export function checksumHeaders({ checksum }: Pick<StoredObject, 'checksum'>): Record<string, string | undefined> {
  if (checksum === undefined) return {};
  return {
    [checksumHeader(checksum.algorithm)]: checksum.value,
    'x-amz-checksum-type': checksum.value.includes('-') ? 'COMPOSITE' : 'FULL_OBJECT',
  };
}

/** Headers of an answer that carries the object, or would. */
export function objectHeaders(object: StoredObject, request: S3Request): NonNullable<S3Answer['headers']> {
  const metadata = Object.entries(object.metadata).map(([name, value]) => [`${metadataPrefix}${name}`, value]);
  // A presigned URL may say what the answer should claim of itself.
  const overrides = request.parameters
    .filter(([name]) => name.startsWith('response-'))
    .map(([name, value]) => [name.slice('response-'.length), value]);
  return {
    'accept-ranges': 'bytes',
    etag: object.etag,
    'last-modified': new Date(object.lastModifiedMs).toUTCString(),
    'content-type': object.contentType,
    ...object.headers,
    ...(Object.fromEntries(metadata) as Record<string, string>),
    ...encryptionHeaders(object.encryption),
    ...(Object.fromEntries(overrides) as Record<string, string>),
  };
}
