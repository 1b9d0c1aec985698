/** Listings: ListObjectsV2, and what listings of uploads share with it. */
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

interface Page {
  readonly keys: readonly string[];
  /** Keys up to a delimiter that stand for all that begin so. */
  readonly prefixes: readonly string[];
  /** Where the next page continues, if anything follows. */
  readonly next: string | undefined;
}

interface Selection {
  readonly prefix: string;
  readonly after: string;
  readonly delimiter: string | undefined;
  readonly limit: number;
}

/** The first keys and common prefixes after a key or a common prefix. */
function selectPage(sorted: readonly string[], { prefix, after, delimiter, limit }: Selection): Page {
  const keys: string[] = [];
  const prefixes: string[] = [];
  let last: string | undefined;
  for (const key of sorted) {
    if (!key.startsWith(prefix) || (after !== '' && compareKeys(key, after) <= 0)) continue;
    const at = delimiter === undefined ? -1 : key.indexOf(delimiter, prefix.length);
    const shown = at === -1 ? key : key.slice(0, at + (delimiter as string).length);
    // A common prefix comes once, also when the last page ended with it.
    if (shown === last || shown === after) continue;
    if (keys.length + prefixes.length === limit) return { keys, prefixes, next: limit === 0 ? undefined : last };
    (at === -1 ? keys : prefixes).push(shown);
    last = shown;
  }
  return { keys, prefixes, next: undefined };
}

export function listObjects({ request, bucket, dialect, now }: Exchange): S3Answer {
  if (dialect.noListBucket) throw new S3Error('AccessDenied');
  const { query } = request;
  const encode = keyEncoder(request);
  const limit = pageSize(request, 'max-keys');
  const token = query['continuation-token'];
  const asOfMs = now() - dialect.staleListsMs;
  const delimiter = query['delimiter'] === '' ? undefined : query['delimiter'];
  const after = token === undefined ? (query['start-after'] ?? '') : decodeToken(token);
  const prefix = query['prefix'] ?? '';
  const page = selectPage(bucket.keysAsOf(asOfMs), { prefix, after, delimiter, limit });
  const contents = page.keys.map((key) => {
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
    Delimiter: delimiter === undefined ? undefined : encode(delimiter),
    MaxKeys: limit,
    EncodingType: query['encoding-type'],
    KeyCount: page.keys.length + page.prefixes.length,
    IsTruncated: page.next !== undefined,
    ContinuationToken: token,
    NextContinuationToken: page.next === undefined ? undefined : encodeToken(page.next),
    StartAfter: query['start-after'] === undefined ? undefined : encode(query['start-after']),
    Contents: contents,
    CommonPrefixes: page.prefixes.map((common) => ({ Prefix: encode(common) })),
  });
}
