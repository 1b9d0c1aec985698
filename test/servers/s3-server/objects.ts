/** Reading, writing and deleting single objects, and deleting many at once. */
import type { StoredObject } from './bucket.ts';
import { checkRead, writeObject } from './conditions.ts';
import type { Exchange } from './exchange.ts';
import { checksumHeaders, encryptionHeaders, etagOf, objectHeaders, parseProperties } from './object-properties.ts';
import { S3Error } from './s3-error.ts';
import { headerOf, xmlAnswer } from './s3-message.ts';
import type { S3Answer, S3Request } from './s3-message.ts';
import { childText, parseXml } from './xml.ts';

const maxKeySizeBytes = 1024;
const maxDeletions = 1000;

/** Time as an object has it. */
export function wholeSeconds(timeMs: number): number {
  return Math.floor(timeMs / 1000) * 1000;
}

export function checkKeySize(key: string): void {
  const sizeBytes = Buffer.byteLength(key);
  if (sizeBytes > maxKeySizeBytes) throw new S3Error('KeyTooLongError', { Size: sizeBytes, MaxSizeAllowed: 1024 });
}

export async function putObject(x: Exchange): Promise<S3Answer> {
  const { request, payload } = x;
  checkKeySize(request.key);
  const properties = parseProperties(request);
  const object = await writeObject(x, () => ({
    ...properties,
    bytes: payload.bytes,
    etag: etagOf(payload.bytes, properties.encryption),
    lastModifiedMs: wholeSeconds(x.now()),
    checksum: payload.checksum,
  }));
  return {
    status: 200,
    headers: { etag: object.etag, ...encryptionHeaders(object.encryption), ...checksumHeaders(object) },
  };
}

function findObject({ request, bucket, dialect, now }: Exchange): StoredObject {
  const object = bucket.getAsOf(request.key, now() - dialect.staleReadsMs);
  if (object !== undefined) return object;
  // Whoever may not list must not learn what there is not.
  if (dialect.noListBucket) throw new S3Error('AccessDenied');
  throw new S3Error('NoSuchKey', { Key: request.key });
}

interface Range {
  readonly start: number;
  /** Exclusive. */
  readonly end: number;
}

/** Undefined for the whole object, also where the header makes no sense to S3. */
function parseRange(header: string | undefined, sizeBytes: number): Range | undefined {
  const match = /^bytes=(\d*)-(\d*)$/.exec(header ?? '');
  const [first, last] = [match?.[1] ?? '', match?.[2] ?? ''];
  if (first === '' && last === '') return undefined;
  const start = first === '' ? Math.max(0, sizeBytes - Number(last)) : Number(first);
  const end = first === '' || last === '' ? sizeBytes : Math.min(sizeBytes, Number(last) + 1);
  if (first !== '' && last !== '' && Number(last) < Number(first)) return undefined;
  if (start < end) return { start, end };
  throw new S3Error('InvalidRange', { RangeRequested: header, ActualObjectSize: sizeBytes });
}

/** Headers that a URL asks for. Only who signs may ask, which all that comes here does. */
function askedHeaders({ query }: S3Request): Record<string, string> {
  const names = [
    'content-type',
    'content-disposition',
    'cache-control',
    'content-encoding',
    'content-language',
    'expires',
  ];
  return Object.fromEntries(
    names.flatMap((name) => {
      const value = query[`response-${name}`];
      return value === undefined ? [] : [[name, value]];
    }),
  );
}

export function getObject(x: Exchange): S3Answer {
  const { request } = x;
  const object = findObject(x);
  const unchanged = checkRead(request, object);
  if (unchanged !== undefined) return unchanged;
  const headers = { ...objectHeaders(object, request), ...askedHeaders(request) };
  const sizeBytes = object.bytes.length;
  const range = parseRange(request.headers['range'], sizeBytes);
  if (range === undefined) {
    // A checksum covers the whole object, so an answer with a part of it has none.
    const asked = headerOf(request, 'x-amz-checksum-mode')?.toUpperCase() === 'ENABLED';
    return { status: 200, headers: { ...headers, ...(asked ? checksumHeaders(object) : {}) }, body: object.bytes };
  }
  const { start, end } = range;
  return {
    status: 206,
    headers: { ...headers, 'content-range': `bytes ${start}-${end - 1}/${sizeBytes}` },
    body: object.bytes.subarray(start, end),
  };
}

export function headObject(x: Exchange): S3Answer {
  const { body, ...answer } = getObject(x);
  return { ...answer, sizeBytes: body?.length ?? 0 };
}

export function deleteObject({ request, bucket, dialect, now }: Exchange): S3Answer {
  if (dialect.noDelete) throw new S3Error('AccessDenied');
  bucket.delete(request.key, now());
  return { status: 204 };
}

/** What cannot be written in XML, a control character for instance, cannot be deleted this way. */
export function deleteObjects({ request, payload, bucket, dialect, now, mayDelete }: Exchange): S3Answer {
  if (dialect.noDeleteObjects) throw new S3Error('NotImplemented');
  if (payload.checksum === undefined && request.headers['content-md5'] === undefined) {
    throw new S3Error('InvalidRequest', {}, 'Missing required header for this request: Content-MD5');
  }
  const root = parseXml(payload.bytes);
  const objects = root.children.filter(({ name }) => name === 'Object');
  const keys = objects.map((object) => childText(object, 'Key') ?? '');
  if (root.name !== 'Delete' || keys.length === 0 || keys.length > maxDeletions || keys.includes('')) {
    throw new S3Error('MalformedXML');
  }
  if (dialect.noDelete) {
    const errors = keys.map((Key) => ({ Key, Code: 'AccessDenied', Message: 'Access Denied' }));
    return xmlAnswer('DeleteResult', { Error: errors });
  }
  const allowed = keys.filter(mayDelete);
  for (const key of allowed) bucket.delete(key, now());
  const isQuiet = childText(root, 'Quiet')?.trim() === 'true';
  return xmlAnswer('DeleteResult', {
    Deleted: isQuiet ? [] : allowed.map((Key) => ({ Key })),
    Error: keys
      .filter((key) => !mayDelete(key))
      .map((Key) => ({ Key, Code: 'AccessDenied', Message: 'Access Denied' })),
  });
}
