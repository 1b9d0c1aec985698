/** Listings: ListObjectsV2, and the parts that it shares with listings of uploads. */
import { compareKeys } from './bucket.ts';
import type { Exchange } from './exchange.ts';
import { S3Error } from './s3-error.ts';
import { xmlAnswer } from './s3-message.ts';
import type { S3Answer, S3Request } from './s3-message.ts';

const maxPage = 1000;

/** How a listing writes keys: S3 encodes as forms do, but leaves slashes as they are. */
export function keyEncoder({ query }: S3Request): (key: string) => string {
  const encoding = query['encoding-type'];
  if (encoding === undefined) return (key) => key;
  if (encoding !== 'url') throw new S3Error('InvalidArgument', { ArgumentName: 'encoding-type' });
  return (key) =>
    encodeURIComponent(key)
      .replace(/[!'()~]/g, (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`)
      .replaceAll('%2F', '/')
      .replaceAll('%20', '+');
}

/** A parameter that says how many there may be in a page. */
export function pageSize({ query }: S3Request, name: string): number {
  const text = query[name];
  if (text === undefined || text === '') return maxPage;
  if (!/^\d{1,10}$/.test(text)) throw new S3Error('InvalidArgument', { ArgumentName: name, ArgumentValue: text });
  return Math.min(maxPage, Number(text));
}

export function isoTime(timeMs: number): string {
  return new Date(timeMs).toISOString();
}

const tokenPrefix = 'after ';

function encodeToken(key: string): string {
  return Buffer.from(`${tokenPrefix}${key}`).toString('base64');
}

function decodeToken(token: string): string {
  const text = Buffer.from(token, 'base64').toString();
  if (text.startsWith(tokenPrefix) && encodeToken(text.slice(tokenPrefix.length)) === token) {
    return text.slice(tokenPrefix.length);
  }
  throw new S3Error('InvalidArgument', { ArgumentName: 'continuation-token' }, 'The continuation token is incorrect');
}

export function listObjects({ request, bucket, dialect, now }: Exchange): S3Answer {
  if (dialect.noListBucket) throw new S3Error('AccessDenied');
  const { query } = request;
  const encode = keyEncoder(request);
  const limit = pageSize(request, 'max-keys');
  const token = query['continuation-token'];
  const asOfMs = now() - dialect.staleListsMs;
  const after = token === undefined ? (query['start-after'] ?? '') : decodeToken(token);
  const prefix = query['prefix'] ?? '';
  const delimiter = query['delimiter'] ?? '';
  /** What a key is listed as: itself, or what it has in common with its like up to a delimiter behind the prefix. */
  const nameOf = (key: string): string => {
    const at = delimiter === '' ? -1 : key.indexOf(delimiter, prefix.length);
    return at === -1 ? key : key.slice(0, at + delimiter.length);
  };
  const following = new Set<string>();
  for (const key of bucket.keysAsOf(asOfMs)) {
    if (!key.startsWith(prefix)) continue;
    const name = nameOf(key);
    if (after === '' || (compareKeys(key, after) > 0 && name !== after)) following.add(name);
  }
  const page = [...following].slice(0, limit);
  // A page of none at all says that there is nothing more.
  const next = page.length < following.size ? page.at(-1) : undefined;
  const isCommon = (name: string): boolean => delimiter !== '' && name.indexOf(delimiter, prefix.length) !== -1;
  const contents = page
    .filter((name) => !isCommon(name))
    .map((key) => {
      const object = bucket.getAsOf(key, asOfMs);
      return {
        Key: encode(key),
        LastModified: isoTime(object?.lastModifiedMs ?? 0),
        ETag: object?.etag,
        ChecksumAlgorithm: object?.checksum?.algorithm.toUpperCase(),
        Size: object?.bytes.length,
        StorageClass: 'STANDARD',
      };
    });
  return xmlAnswer('ListBucketResult', {
    Name: bucket.name,
    Prefix: encode(prefix),
    MaxKeys: limit,
    EncodingType: query['encoding-type'],
    KeyCount: page.length,
    IsTruncated: next !== undefined,
    ContinuationToken: token,
    NextContinuationToken: next === undefined ? undefined : encodeToken(next),
    StartAfter: query['start-after'] === undefined ? undefined : encode(query['start-after']),
    Delimiter: delimiter === '' ? undefined : encode(delimiter),
    Contents: contents,
    CommonPrefixes: page.filter(isCommon).map((name) => ({ Prefix: encode(name) })),
  });
}
