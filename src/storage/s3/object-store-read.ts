/** Reads objects, ranges of objects, their metadata, and listings. */
import { StorageError } from '../../base/errors.ts';
import { defined } from '../../base/options.ts';
import type { FoundObject, GetOptions, GetResult, ListEntry, ListOptions, ListPage } from '../contract/driver.ts';
import { checkWholeBytes, clipRange, MAX_WHOLE_BYTES } from '../contract/requests.ts';
import { severalOf } from '../contract/request-attempts.ts';
import type { AttemptOptions, RequestTally } from '../contract/request-attempts.ts';
import { codeOf, statusOf, toStorageError } from './object-store-errors.ts';
import { uploadMark } from './object-store-requests.ts';
import type { RequestSender } from './object-store-requests.ts';
import type { GetObjectOutput } from './s3-api.ts';

/** How often a range read starts again because the object has changed its size meanwhile. */
const maxRereads = 8;

function isMissing(error: unknown): boolean {
  // A 404 without this code may come from a server that is not an object store.
  return statusOf(error) === 404 && codeOf(error) === 'NoSuchKey';
}

function isAnswer(error: unknown): boolean {
  return statusOf(error) === 304 || statusOf(error) === 416 || isMissing(error);
}

function requiredEtag(key: string, etag: string | undefined): string {
  if (etag === undefined) throw new StorageError(key, 'none', `The store answered ${key} without an ETag.`);
  return etag;
}

/** The metadata of an object. */
export interface ObjectStat extends Omit<FoundObject, 'bytes' | 'status'> {
  /** The mark of the upload that wrote the object. */
  readonly mark: string | undefined;
}

/** Reads the metadata of an object; undefined if there is none. Rejects with `StorageError`. */
export async function statObject(
  requests: RequestSender,
  bucket: string,
  key: string,
  signal: AbortSignal | undefined,
  sending: Pick<AttemptOptions, 'attempts' | 'tally'> = {},
): Promise<ObjectStat | undefined> {
  const request = { operation: 'HeadObject', bucket, key };
  try {
    const head = await requests.send(
      request,
      // A response to HEAD has no body, and so no code that distinguishes a missing key from a missing bucket.
      { ...sending, signal, isAnswer: (error) => statusOf(error) === 404 },
      (api, inner) => api.headObject({ Key: key }, inner),
    );
    return {
      etag: requiredEtag(key, head.ETag),
      sizeBytes: head.ContentLength ?? 0,
      lastModifiedMs: head.LastModified?.getTime() ?? 0,
      mark: head.Metadata?.[uploadMark],
    };
  } catch (error) {
    if (statusOf(error) === 404) return undefined;
    throw toStorageError(request, error);
  }
}

/** Returns the size of the whole object, from a response with a range (`bytes 0-9/1234`) or without one. */
function sizeOf({ ContentRange, ContentLength }: GetObjectOutput, bytes: Uint8Array): number {
  const total = ContentRange === undefined ? undefined : Number(ContentRange.split('/')[1]);
  return total !== undefined && Number.isSafeInteger(total) ? total : (ContentLength ?? bytes.length);
}

function found(key: string, output: GetObjectOutput, body: Uint8Array, range: GetOptions['range']): FoundObject {
  const sizeBytes = sizeOf(output, body);
  const clipped = clipRange(key, range, sizeBytes);
  // A server may respond to a range request with the whole object.
  const isWhole = output.ContentRange === undefined && body.length === sizeBytes;
  const bytes = isWhole ? body.subarray(clipped.start, clipped.end) : body;
  if (bytes.length !== clipped.end - clipped.start) {
    const message = `The answer for ${key} has ${bytes.length} bytes instead of ${clipped.end - clipped.start}.`;
    throw new StorageError(key, 'none', message);
  }
  const lastModifiedMs = output.LastModified?.getTime() ?? 0;
  return { status: 'found', bytes, etag: requiredEtag(key, output.ETag), sizeBytes, lastModifiedMs };
}

/**
 * Reads an empty range. HTTP cannot express one, so it requests the first byte. A HEAD request is not enough: its response has no
 * code, so a 404 of a server that is not an object store would look like a missing object.
 */
async function readNothing(
  requests: RequestSender,
  bucket: string,
  key: string,
  options: GetOptions,
  tally: RequestTally,
): Promise<GetResult> {
  const { ifNoneMatch, signal } = options;
  const empty = new Uint8Array(0);
  const first = await getObject(requests, bucket, key, { ...options, range: { start: 0, end: 1 } }, tally);
  if (first === 'behind') {
    // The object exists, and has no first byte: it is empty.
    const known = await statObject(requests, bucket, key, signal, { tally });
    if (known === undefined)
      throw new StorageError(key, 'none', `The object ${key} was deleted while it was looked at.`);
    const { etag, sizeBytes, lastModifiedMs } = known;
    if (etag === ifNoneMatch) return { status: 'unchanged' };
    return { status: 'found', bytes: empty, etag, sizeBytes, lastModifiedMs };
  }
  return first.status === 'found' ? { ...first, bytes: empty } : first;
}

/**
 * Reads the body of a response, and rejects if it is longer than the range or than an object may be: not every server ends its
 * response.
 */
async function readAnswer(key: string, output: GetObjectOutput, range: GetOptions['range']): Promise<Uint8Array> {
  const body = output.Body;
  if (body === undefined) return new Uint8Array(0);
  const asked = range !== undefined && output.ContentRange !== undefined ? range.end - range.start : undefined;
  const maxBytes = Math.min(asked ?? MAX_WHOLE_BYTES, output.ContentLength ?? MAX_WHOLE_BYTES);
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of body) {
    if (asked === undefined) checkWholeBytes(key, output.ContentLength ?? 0);
    length += chunk.length;
    if (length > maxBytes) {
      throw new StorageError(
        key,
        'none',
        `The response for ${key} is longer than the ${maxBytes} bytes that it may have.`,
      );
    }
    chunks.push(chunk);
  }
  return chunks.length === 1 ? (chunks[0] as Uint8Array) : Buffer.concat(chunks, length);
}

/** Sends one GetObject request. `behind`: the range begins after the end of the object. */
async function getObject(
  requests: RequestSender,
  bucket: string,
  key: string,
  { range, ifNoneMatch, signal }: GetOptions,
  tally: RequestTally,
): Promise<GetResult | 'behind'> {
  const request = { operation: 'GetObject', bucket, key };
  const input = {
    Key: key,
    ...(range === undefined ? {} : { Range: `bytes=${range.start}-${range.end - 1}` }),
    ...defined({ IfNoneMatch: ifNoneMatch }),
  };
  try {
    return await requests.send(request, { signal, tally, isAnswer }, async (api, inner) => {
      const output = await api.getObject(input, inner);
      return found(key, output, await readAnswer(key, output, range), range);
    });
  } catch (error) {
    if (error instanceof StorageError) throw error;
    if (statusOf(error) === 304) return { status: 'unchanged' };
    if (isMissing(error)) return { status: 'missing' };
    if (statusOf(error) === 416) return 'behind';
    throw toStorageError(request, error);
  }
}

/** Reads an object, or a range of it. */
export async function readObject(
  requests: RequestSender,
  bucket: string,
  key: string,
  options: GetOptions,
): Promise<GetResult> {
  const tally: RequestTally = { requests: 0 };
  const result = await readCounted(requests, bucket, key, options, tally);
  return { ...result, ...severalOf(tally) };
}

async function readCounted(
  requests: RequestSender,
  bucket: string,
  key: string,
  options: GetOptions,
  tally: RequestTally,
): Promise<GetResult> {
  const { range } = options;
  if (range !== undefined && range.start === range.end) return readNothing(requests, bucket, key, options, tally);
  for (let reread = 0; ; reread++) {
    const result = await getObject(requests, bucket, key, options, tally);
    if (result !== 'behind') return result;
    const known = await readNothing(requests, bucket, key, options, tally);
    if (known.status !== 'found' || range === undefined || known.sizeBytes <= range.start) return known;
    if (reread >= maxRereads) {
      throw new StorageError(key, 'none', `The object ${key} changes faster than it can be read.`);
    }
  }
}

/** Empty pages that one call skips: a store may return a page without entries and say that more follow. */
const maxEmptyPages = 100;

function decodeKey(key: string, isEncoded: boolean): string {
  return isEncoded ? decodeURIComponent(key.replaceAll('+', ' ')) : key;
}

/** Lists one page of keys. */
export async function listObjects(
  requests: RequestSender,
  bucket: string,
  prefix: string,
  options: ListOptions & { readonly limit: number },
): Promise<ListPage> {
  const { after, limit, signal } = options;
  const request = { operation: 'ListObjectsV2', bucket, key: prefix };
  const tally: RequestTally = { requests: 0 };
  for (let token: string | undefined, empty = 0; ; empty++) {
    const input = {
      Prefix: prefix,
      MaxKeys: limit,
      ...(after === undefined || token !== undefined ? {} : { StartAfter: after }),
      ...defined({ ContinuationToken: token }),
    };
    const page = await requests.send(request, { signal, tally }, (api, inner) => api.listObjects(input, inner));
    const isEncoded = page.EncodingType === 'url';
    const entries = page.Contents.map(
      ({ Key, Size, LastModified }): ListEntry => ({
        key: decodeKey(Key ?? '', isEncoded),
        sizeBytes: Size ?? 0,
        lastModifiedMs: LastModified?.getTime() ?? 0,
      }),
    );
    const more = page.IsTruncated;
    if (entries.length > 0 || !more) return { entries, more, ...severalOf(tally) };
    token = page.NextContinuationToken;
    if (token === undefined || empty >= maxEmptyPages) {
      throw new StorageError(prefix, 'none', `The listing of ${prefix} promises more pages, but has no entries.`);
    }
  }
}
