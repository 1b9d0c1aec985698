/** Reads objects, ranges of objects, their metadata, and listings. */
import { isPlainObject } from '../../base/brands.ts';
import { StorageError } from '../../base/errors.ts';
import type { FoundObject, GetOptions, GetResult, ListEntry, ListOptions, ListPage } from '../contract/driver.ts';
import { checkWholeBytes, clipRange, MAX_PAGE_ENTRIES, MAX_WHOLE_BYTES } from '../contract/requests.ts';
import { readBytes } from '../http/http-connection.ts';
import type { HttpResponse } from '../http/http-connection.ts';
import { checkContent } from './google-checksums.ts';
import { isMissingObject } from './google-errors.ts';
import type { GoogleRequest, GoogleRequests, SendOptions } from './google-requests.ts';

/** How often a read starts again because the object has changed meanwhile. */
const maxRereads = 8;
/** Empty pages that one call skips: a store may return a page without entries and say that more follow. */
const maxEmptyPages = 100;
/** Name of the metadata that marks the object of an upload. The mark identifies it, whatever generation it has. */
export const uploadMark = 'storedb-upload';

/** Generations are positive integers of 64 bits. */
const generationPattern = /^[1-9]\d{0,18}$/;

/** Returns the generation in an ETag of the driver; undefined if no object can have this ETag. */
export function generationOf(etag: string): string | undefined {
  return generationPattern.test(etag) ? etag : undefined;
}

/** Returns a generation of a response as an ETag. */
export function etagOf(key: string, generation: unknown, outcome: 'none' | 'unknown'): string {
  if (typeof generation === 'string' && generationPattern.test(generation)) return generation;
  throw new StorageError(key, outcome, `The store answered ${key} without a generation.`);
}

/** The metadata of an object. */
export interface ObjectStat extends Omit<FoundObject, 'bytes' | 'status'> {
  /** The mark of the upload that wrote the object. */
  readonly mark: string | undefined;
}

/** Reads the metadata of an object; undefined if there is none. Rejects with `StorageError`. */
export async function statObject(
  requests: GoogleRequests,
  key: string,
  options: SendOptions,
  generation?: string,
): Promise<ObjectStat | undefined> {
  const query = generation === undefined ? '' : `&generation=${generation}`;
  const path = `${requests.path(key)}?fields=generation,size,timeCreated,metadata${query}`;
  try {
    const request: GoogleRequest = { operation: 'objects.get', key, method: 'GET', path };
    const { body } = await requests.json(request, { ...options, isAnswer: isMissingObject });
    const stat = isPlainObject(body) ? body : {};
    const metadata = isPlainObject(stat['metadata']) ? stat['metadata'] : {};
    const mark = metadata[uploadMark];
    return {
      etag: etagOf(key, stat['generation'], 'none'),
      sizeBytes: Number(stat['size'] ?? 0),
      lastModifiedMs: timeOf(key, stat['timeCreated']),
      mark: typeof mark === 'string' ? mark : undefined,
    };
  } catch (error) {
    if (isMissingObject(error)) return undefined;
    throw error;
  }
}

function timeOf(key: string, text: unknown): number {
  const timeMs = typeof text === 'string' ? Date.parse(text) : Number.NaN;
  if (Number.isFinite(timeMs)) return timeMs;
  throw new StorageError(key, 'none', `The store answered ${key} without the time of its last write.`);
}

/** Returns the size of the whole object, from a response with a range (`bytes 0-9/1234`) or without one. */
function sizeOf(headers: HttpResponse['headers'], bytes: Uint8Array): number {
  const range = headers['content-range'];
  const total = range === undefined ? undefined : Number(range.split('/')[1]);
  if (total !== undefined && Number.isSafeInteger(total)) return total;
  return bytes.length;
}

/**
 * Reads the body of a response, and rejects if it is longer than the range or than an object may be: not every server ends its
 * response. A whole object must have its checksum.
 */
async function readContent(
  key: string,
  { status, headers, body }: HttpResponse,
  range: GetOptions['range'],
): Promise<Uint8Array> {
  if (status === 304 || status === 416) return readBytes(body, MAX_WHOLE_BYTES);
  const asked = range !== undefined && headers['content-range'] !== undefined ? range.end - range.start : undefined;
  const saidBytes = Number(headers['content-length'] ?? MAX_WHOLE_BYTES);
  if (asked === undefined) checkWholeBytes(key, saidBytes);
  const bytes = await readBytes(body, Math.min(asked ?? MAX_WHOLE_BYTES, saidBytes));
  if (headers['content-length'] !== undefined && bytes.length !== saidBytes) {
    throw new StorageError(key, 'none', `The response for ${key} ended after ${bytes.length} of ${saidBytes} bytes.`);
  }
  checkContent(key, { headers }, bytes);
  return bytes;
}

/** Returns the object of a response. `replaced`: the response lacked its time, and another version has taken its place. */
async function found(
  requests: GoogleRequests,
  key: string,
  headers: HttpResponse['headers'],
  body: Uint8Array,
  { range, signal }: GetOptions,
): Promise<FoundObject | 'replaced'> {
  const sizeBytes = sizeOf(headers, body);
  const clipped = clipRange(key, range, sizeBytes);
  // A server may respond to a range request with the whole object.
  const bytes = headers['content-range'] === undefined ? body.subarray(clipped.start, clipped.end) : body;
  if (bytes.length !== clipped.end - clipped.start) {
    const message = `The response for ${key} has ${bytes.length} bytes instead of ${clipped.end - clipped.start}.`;
    throw new StorageError(key, 'none', message);
  }
  const etag = etagOf(key, headers['x-goog-generation'], 'none');
  const headerMs = Date.parse(headers['last-modified'] ?? '');
  if (Number.isFinite(headerMs)) return { status: 'found', bytes, etag, sizeBytes, lastModifiedMs: headerMs };
  const stat = await statObject(requests, key, { signal }, etag);
  if (stat !== undefined) return { status: 'found', bytes, etag, sizeBytes, lastModifiedMs: stat.lastModifiedMs };
  return 'replaced';
}

/** Sends one download request. `behind`: the range begins after the end of the object. */
async function download(
  requests: GoogleRequests,
  key: string,
  options: GetOptions,
): Promise<GetResult | 'behind' | 'replaced'> {
  const { range, ifNoneMatch, signal } = options;
  const known = ifNoneMatch === undefined ? undefined : generationOf(ifNoneMatch);
  const condition = known === undefined ? '' : `&ifGenerationNotMatch=${known}`;
  const request: GoogleRequest = {
    operation: 'objects.get',
    key,
    method: 'GET',
    path: `${requests.path(key)}?alt=media${condition}`,
    headers: range === undefined ? {} : { range: `bytes=${range.start}-${range.end - 1}` },
  };
  try {
    const sending: SendOptions = { signal, statuses: [304, 416], isAnswer: isMissingObject };
    const answer = await requests.send(request, sending, (response) => readContent(key, response, range));
    if (answer.status === 304 && known !== undefined) return { status: 'unchanged' };
    if (answer.status === 416 && range !== undefined) return 'behind';
    if (answer.status > 299) {
      throw new StorageError(
        key,
        'none',
        `The store answered ${key} with status ${answer.status}, which nothing asked for.`,
      );
    }
    return await found(requests, key, answer.headers, answer.body, options);
  } catch (error) {
    if (isMissingObject(error)) return { status: 'missing' };
    throw error;
  }
}

/** Reads an empty range. HTTP cannot express one, so the metadata is read. */
async function readNothing(requests: GoogleRequests, key: string, options: GetOptions): Promise<GetResult> {
  const stat = await statObject(requests, key, { signal: options.signal });
  if (stat === undefined) return { status: 'missing' };
  const { etag, sizeBytes, lastModifiedMs } = stat;
  if (etag === options.ifNoneMatch) return { status: 'unchanged' };
  return { status: 'found', bytes: new Uint8Array(0), etag, sizeBytes, lastModifiedMs };
}

/** Reads an object, or a range of it. */
export async function readObject(requests: GoogleRequests, key: string, options: GetOptions): Promise<GetResult> {
  const { range } = options;
  if (range !== undefined && range.start === range.end) return readNothing(requests, key, options);
  for (let reread = 0; ; reread++) {
    const result = await download(requests, key, options);
    if (typeof result === 'object') return result;
    if (result === 'behind' && range !== undefined) {
      const known = await readNothing(requests, key, options);
      if (known.status !== 'found' || known.sizeBytes <= range.start) return known;
    }
    if (reread >= maxRereads) {
      throw new StorageError(key, 'none', `The object ${key} changes faster than it can be read.`);
    }
  }
}

function entryOf(item: unknown): ListEntry {
  const { name, size, timeCreated } = isPlainObject(item) ? item : {};
  if (typeof name !== 'string') throw new StorageError('', 'none', 'The store listed an object without a name.');
  return { key: name, sizeBytes: Number(size ?? 0), lastModifiedMs: timeOf(name, timeCreated) };
}

/** Lists one page of keys. */
export async function listObjects(
  requests: GoogleRequests,
  prefix: string,
  { after, limit, signal }: ListOptions & { readonly limit: number },
): Promise<ListPage> {
  const query = new URLSearchParams({ prefix, fields: 'items(name,size,timeCreated),nextPageToken' });
  // The offset is inclusive: the page may begin with the key itself, which is skipped.
  if (after !== undefined) query.set('startOffset', after);
  query.set('maxResults', String(Math.min(limit + (after === undefined ? 0 : 1), MAX_PAGE_ENTRIES)));
  for (let empty = 0; ; empty++) {
    const path = `${requests.path()}?${query.toString()}`;
    const request: GoogleRequest = { operation: 'objects.list', key: prefix, method: 'GET', path };
    const { body } = await requests.json(request, { signal });
    const page = isPlainObject(body) ? body : {};
    const items: unknown[] = Array.isArray(page['items']) ? page['items'] : [];
    const listed = items.map(entryOf).filter(({ key }) => key !== after);
    const entries = listed.slice(0, limit);
    const token = page['nextPageToken'];
    const more = (typeof token === 'string' && token !== '') || listed.length > limit;
    if (entries.length > 0 || !more) return { entries, more };
    if (empty >= maxEmptyPages) {
      throw new StorageError(prefix, 'none', `The listing of ${prefix} promises more pages, but has no entries.`);
    }
    query.set('pageToken', String(token));
  }
}
