/** Reads, listings, deletions and copies of objects. */
import { randomBytes } from 'node:crypto';
import { compareStrings } from '../../../src/base/bytes.ts';
import { checkName, md5Of } from './bucket.ts';
import type { GcsBucket, GcsObject } from './bucket.ts';
import { GcsError } from './gcs-error.ts';
import { jsonAnswer, resourceOf } from './gcs-message.ts';
import type { GcsAnswer, GcsRequest } from './gcs-message.ts';

function readable({ key, query }: GcsRequest, bucket: GcsBucket): GcsObject {
  checkName(key);
  const object = bucket.get(key);
  if (query['generation'] !== undefined && query['generation'] !== object.generation) {
    throw new GcsError(404, `No such object: ${bucket.name}/${key}#${query['generation']}`);
  }
  bucket.checkRead(object, query);
  return object;
}

export function getObject(request: GcsRequest, bucket: GcsBucket): GcsAnswer {
  return jsonAnswer(resourceOf(bucket, readable(request, bucket)), request.query);
}

function rangeOf(
  header: string | undefined,
  size: number,
): { readonly start: number; readonly end: number } | undefined {
  if (header === undefined) return undefined;
  const [, first, last] = /^bytes=(\d+)-(\d*)$/.exec(header) ?? [];
  if (first === undefined) throw new GcsError(501, 'The test server does not know this range.');
  const start = Number(first);
  if (start >= size) throw new GcsError(416);
  return { start, end: last === '' || last === undefined ? size : Math.min(Number(last) + 1, size) };
}

function withFlippedBit(bytes: Uint8Array): Uint8Array {
  const flipped = Uint8Array.from(bytes);
  const middle = flipped.length >> 1;
  flipped[middle] = (flipped[middle] ?? 0) ^ 1;
  return flipped;
}

/** Answers with the content of an object. */
export function contentAnswer(object: GcsObject, request: GcsRequest, bucket: GcsBucket): GcsAnswer {
  const { generation, contentType, cacheControl, timeCreatedMs } = object;
  const bytes = bucket.dialect.flippedDownloads ? withFlippedBit(object.bytes) : object.bytes;
  const range = rangeOf(request.headers['range'], bytes.length);
  const headers = {
    'content-type': contentType,
    'cache-control': cacheControl ?? 'private, max-age=0',
    'x-goog-generation': generation,
    'x-goog-metageneration': '1',
    // The driver reads the MD5 alone.
    'x-goog-hash': `crc32c=AAAAAA==,md5=${md5Of(object.bytes)}`,
    'x-goog-stored-content-encoding': 'identity',
    'x-goog-stored-content-length': String(bytes.length),
    'last-modified': bucket.dialect.noLastModified ? undefined : new Date(timeCreatedMs).toUTCString(),
  };
  if (range === undefined) return { status: 200, headers, body: bytes };
  const { start, end } = range;
  const contentRange = `bytes ${start}-${end - 1}/${bytes.length}`;
  return { status: 206, headers: { ...headers, 'content-range': contentRange }, body: bytes.subarray(start, end) };
}

export function downloadObject(request: GcsRequest, bucket: GcsBucket): GcsAnswer {
  return contentAnswer(readable(request, bucket), request, bucket);
}

/** Answers to a signed URL, with the headers that the URL asks for. */
export function downloadLink(request: GcsRequest, bucket: GcsBucket): GcsAnswer {
  const answer = contentAnswer(bucket.get(request.key), request, bucket);
  const { query } = request;
  return {
    ...answer,
    headers: {
      ...answer.headers,
      ...(query['response-content-type'] === undefined ? {} : { 'content-type': query['response-content-type'] }),
      'content-disposition': query['response-content-disposition'],
    },
  };
}

export function deleteObject({ key, query }: GcsRequest, bucket: GcsBucket): GcsAnswer {
  if (bucket.dialect.noDelete) throw new GcsError(403);
  bucket.delete(key, query);
  return { status: 204 };
}

export function listObjects({ query }: GcsRequest, bucket: GcsBucket): GcsAnswer {
  if (bucket.dialect.noList) throw new GcsError(403);
  const { prefix = '', startOffset = '', pageToken } = query;
  const limit = Math.min(Number(query['maxResults'] ?? 1000), 1000);
  if (!Number.isInteger(limit) || limit < 1) throw new GcsError(400);
  const after = pageToken === undefined ? undefined : Buffer.from(pageToken, 'base64url').toString();
  const names = bucket
    .names()
    .filter((name) => name.startsWith(prefix) && compareStrings(name, startOffset) >= 0)
    .filter((name) => after === undefined || compareStrings(name, after) > 0);
  const page = names.slice(0, limit);
  const items = page.map((name) => resourceOf(bucket, bucket.get(name)));
  const nextPageToken = names.length > limit ? Buffer.from(page.at(-1) ?? '').toString('base64url') : undefined;
  // There is no list of items where there is none.
  const document = { kind: 'storage#objects', ...(items.length === 0 ? {} : { items }) };
  return jsonAnswer(nextPageToken === undefined ? document : { ...document, nextPageToken }, query);
}

/** Copies an object, or some more bytes of it. */
export async function rewriteObject(request: GcsRequest, bucket: GcsBucket): Promise<GcsAnswer> {
  const { source, key, query, body } = request;
  if (bucket.dialect.noCopies) throw new GcsError(403);
  if (body.length > 0) throw new GcsError(501, 'The test server copies the metadata, and takes no other.');
  checkName(key);
  const object = bucket.get(source);
  bucket.checkRead(object, query, 'Source');
  const token = query['rewriteToken'];
  const before = token === undefined ? 0 : bucket.rewrites.get(token);
  if (before === undefined) throw new GcsError(400, 'Invalid rewriteToken');
  if (token !== undefined) bucket.rewrites.delete(token);
  const objectSize = String(object.bytes.length);
  const copied = Math.min(before + bucket.dialect.rewrittenBytesPerCall, object.bytes.length);
  const common = { kind: 'storage#rewriteResponse', totalBytesRewritten: String(copied), objectSize };
  if (copied < object.bytes.length) {
    const rewriteToken = randomBytes(12).toString('base64url');
    bucket.rewrites.set(rewriteToken, copied);
    return jsonAnswer({ ...common, done: false, rewriteToken }, query);
  }
  const { generation: _, timeCreatedMs: __, ...content } = object;
  const written = await bucket.write({ ...content, name: key }, query);
  return jsonAnswer({ ...common, done: true, resource: resourceOf(bucket, written) }, query);
}
