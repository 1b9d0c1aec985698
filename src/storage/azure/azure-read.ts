/** Reads blobs, ranges of blobs, their properties, and listings. */
import type { BlobDownloadResponseParsed, ContainerListBlobFlatSegmentResponse } from '@azure/storage-blob';
import { compareStrings } from '../../base/bytes.ts';
import { StorageError } from '../../base/errors.ts';
import { defined } from '../../base/options.ts';
import type { FoundObject, GetOptions, GetResult, ListEntry, ListOptions, ListPage } from '../contract/driver.ts';
import { checkWholeBytes, clipRange, MAX_WHOLE_BYTES } from '../contract/requests.ts';
import type { AttemptOptions } from '../contract/request-attempts.ts';
import { codeOf, statusOf } from './azure-errors.ts';
import type { AzureRequests } from './azure-requests.ts';

/** Name of the metadata that marks the blob of an upload. The mark identifies the blob whatever its ETag. */
export const uploadMark = 'storedb_upload';

/** How often a range read starts again because the blob has changed its size meanwhile. */
const maxRereads = 8;

/** Whether an error means that there is no blob. A 404 without this code may be of another server, or of a missing container. */
export function isMissing(error: unknown): boolean {
  return statusOf(error) === 404 && codeOf(error) === 'BlobNotFound';
}

function isAnswer(error: unknown): boolean {
  return statusOf(error) === 304 || statusOf(error) === 416 || isMissing(error);
}

function etagOf(key: string, etag: string | undefined): string {
  if (etag === undefined) throw new StorageError(key, 'none', `The store answered ${key} without an ETag.`);
  return etag;
}

/** The properties of a blob. */
export interface BlobStat extends Omit<FoundObject, 'bytes' | 'status'> {
  /** The mark of the upload that wrote the blob. */
  readonly mark: string | undefined;
}

/** Reads the properties of a blob; undefined if there is none. Rejects with `StorageError`. */
export async function statBlob(
  requests: AzureRequests,
  key: string,
  signal: AbortSignal | undefined,
  sending: Pick<AttemptOptions, 'attempts' | 'tally'> = {},
): Promise<BlobStat | undefined> {
  const options = { ...sending, signal, isAnswer: isMissing };
  try {
    return await requests.send(
      { operation: 'Get Blob Properties', key },
      options,
      async ({ container }, abortSignal) => {
        const head = await container.getBlobClient(key).getProperties({ abortSignal });
        const mark = Object.entries(head.metadata ?? {}).find(([name]) => name.toLowerCase() === uploadMark)?.[1];
        return {
          etag: etagOf(key, head.etag),
          sizeBytes: head.contentLength ?? 0,
          lastModifiedMs: head.lastModified?.getTime() ?? 0,
          mark,
        };
      },
    );
  } catch (error) {
    if (error instanceof StorageError) throw error;
    return undefined;
  }
}

/** Returns the size of the whole blob, from a response with a range (`bytes 0-9/1234`) or without one. */
function sizeOf({ contentRange, contentLength }: BlobDownloadResponseParsed, bytes: Uint8Array): number {
  const total = contentRange === undefined ? undefined : Number(contentRange.split('/')[1]);
  return total !== undefined && Number.isSafeInteger(total) ? total : (contentLength ?? bytes.length);
}

function found(
  key: string,
  output: BlobDownloadResponseParsed,
  body: Uint8Array,
  range: GetOptions['range'],
): FoundObject {
  const sizeBytes = sizeOf(output, body);
  const clipped = clipRange(key, range, sizeBytes);
  // A server may respond to a range request with the whole blob.
  const isWhole = output.contentRange === undefined && body.length === sizeBytes;
  const bytes = isWhole ? body.subarray(clipped.start, clipped.end) : body;
  if (bytes.length !== clipped.end - clipped.start) {
    const message = `The answer for ${key} has ${bytes.length} bytes instead of ${clipped.end - clipped.start}.`;
    throw new StorageError(key, 'none', message);
  }
  const lastModifiedMs = output.lastModified?.getTime() ?? 0;
  return { status: 'found', bytes, etag: etagOf(key, output.etag), sizeBytes, lastModifiedMs };
}

/** The failure of a response that ended too early. The SDK gives no code for it. */
function cutOff(key: string, cause: unknown): Error {
  return Object.assign(new Error(`The response for ${key} was cut off`, { cause }), { code: 'ECONNRESET' });
}

/** Reads the body of a response, and rejects if it is longer than the range or than a blob may be that is read at once. */
async function readAnswer(
  key: string,
  output: BlobDownloadResponseParsed,
  range: GetOptions['range'],
): Promise<Uint8Array> {
  const asked = range !== undefined && output.contentRange !== undefined ? range.end - range.start : undefined;
  const maxBytes = Math.min(asked ?? MAX_WHOLE_BYTES, output.contentLength ?? MAX_WHOLE_BYTES);
  const chunks: Uint8Array[] = [];
  let length = 0;
  const body = (output.readableStreamBody ?? []) as AsyncIterable<Uint8Array>;
  try {
    for await (const chunk of body) {
      if (asked === undefined) checkWholeBytes(key, output.contentLength ?? 0);
      length += chunk.length;
      if (length > maxBytes) {
        const message = `The response for ${key} is longer than the ${maxBytes} bytes that it may have.`;
        throw new StorageError(key, 'none', message);
      }
      chunks.push(chunk);
    }
  } catch (error) {
    throw error instanceof StorageError ? error : cutOff(key, error);
  }
  return chunks.length === 1 ? (chunks[0] as Uint8Array) : Buffer.concat(chunks, length);
}

/** Sends one request for a blob. `behind`: the range begins after the end of the blob. */
async function getBlob(
  requests: AzureRequests,
  key: string,
  { range, ifNoneMatch, signal }: GetOptions,
): Promise<GetResult | 'behind'> {
  const [start, count] = range === undefined ? [0, undefined] : [range.start, range.end - range.start];
  const conditions = defined({ ifNoneMatch });
  try {
    return await requests.send(
      { operation: 'Get Blob', key },
      { signal, isAnswer },
      async ({ container }, abortSignal) => {
        const options = { abortSignal, conditions, maxRetryRequests: 0 };
        const output = await container.getBlobClient(key).download(start, count, options);
        return found(key, output, await readAnswer(key, output, range), range);
      },
    );
  } catch (error) {
    if (error instanceof StorageError) throw error;
    if (statusOf(error) === 304) return { status: 'unchanged' };
    return statusOf(error) === 416 ? 'behind' : { status: 'missing' };
  }
}

/** Reads an empty range, which HTTP cannot express: the properties of the blob say the rest. */
async function readNothing(
  requests: AzureRequests,
  key: string,
  { ifNoneMatch, signal }: GetOptions,
): Promise<GetResult> {
  const known = await statBlob(requests, key, signal);
  if (known === undefined) return { status: 'missing' };
  const { etag, sizeBytes, lastModifiedMs } = known;
  if (etag === ifNoneMatch) return { status: 'unchanged' };
  return { status: 'found', bytes: new Uint8Array(0), etag, sizeBytes, lastModifiedMs };
}

export async function readBlob(requests: AzureRequests, key: string, options: GetOptions): Promise<GetResult> {
  const { range } = options;
  if (range !== undefined && range.start === range.end) return readNothing(requests, key, options);
  for (let reread = 0; ; reread++) {
    const result = await getBlob(requests, key, options);
    if (result !== 'behind') return result;
    const known = await readNothing(requests, key, options);
    if (known.status !== 'found' || range === undefined || known.sizeBytes <= range.start) return known;
    if (reread >= maxRereads) {
      throw new StorageError(key, 'none', `The blob ${key} changes faster than it can be read.`);
    }
  }
}

/** Empty pages that one call skips: the store may return a page without entries and say that more follow. */
const maxEmptyPages = 100;

/** Whether a key comes before another in both orders of keys that servers have: by UTF-8 bytes and by UTF-16 units. */
function isBefore(key: string, other: string): boolean {
  return key < other && compareStrings(key, other) < 0;
}

interface StorePage {
  readonly entries: readonly ListEntry[];
  /** Where the next page begins; undefined on the last page. */
  readonly marker: string | undefined;
}

interface PageRequest {
  readonly limit: number;
  /** The key to leave out: a listing includes the key from which it starts. */
  readonly after?: string;
  readonly startFrom?: string;
  readonly marker?: string;
}

/** The listings of a container. */
export class BlobListing {
  readonly #requests: AzureRequests;
  /** Whether the server has ignored `startFrom`, as Azurite does, whose markers are keys. */
  #ignoresStart = false;

  constructor(requests: AzureRequests) {
    this.#requests = requests;
  }

  /** Lists one page of keys. */
  async list(prefix: string, { after, limit, signal }: ListOptions & { readonly limit: number }): Promise<ListPage> {
    // A listing from a key before the prefix begins with the prefix.
    if (after === undefined || isBefore(after, prefix)) {
      return cut(await this.#pageWithEntries(prefix, { limit }, signal), limit);
    }
    for (;;) {
      const isIgnored = this.#ignoresStart;
      const start = isIgnored ? { marker: after } : { startFrom: after };
      const page = await this.#pageWithEntries(prefix, { ...start, after, limit: limit + 1 }, signal);
      const [first] = page.entries;
      if (first === undefined || !isBefore(first.key, after)) return cut(page, limit);
      if (isIgnored) {
        const message = `The listing of ${prefix} does not begin after ${after}: the server supports neither startFrom nor keys as markers. Update it.`;
        throw new StorageError(prefix, 'none', message);
      }
      this.#ignoresStart = true;
    }
  }

  /** Lists a page that has entries, unless nothing follows. */
  async #pageWithEntries(prefix: string, request: PageRequest, signal: AbortSignal | undefined): Promise<StorePage> {
    let { marker } = request;
    for (let empty = 0; ; empty++) {
      const page = await this.#page(prefix, { ...request, ...defined({ marker }) }, signal);
      if (page.entries.length > 0 || page.marker === undefined) return page;
      if (empty >= maxEmptyPages) {
        throw new StorageError(prefix, 'none', `The listing of ${prefix} promises more pages, but has no entries.`);
      }
      marker = page.marker;
    }
  }

  #page(prefix: string, request: PageRequest, signal: AbortSignal | undefined): Promise<StorePage> {
    const { limit, after, startFrom, marker } = request;
    const name = { operation: 'List Blobs', key: prefix };
    return this.#requests.send(name, { signal }, async ({ container }, abortSignal) => {
      const pages = container
        .listBlobsFlat({ abortSignal, prefix, ...defined({ startFrom }) })
        .byPage({ maxPageSize: limit, ...defined({ continuationToken: marker }) });
      const { value } = (await pages.next()) as { value: ContainerListBlobFlatSegmentResponse };
      const { segment, continuationToken } = value;
      const entries = segment.blobItems
        .map(
          ({ name: key, properties }): ListEntry => ({
            key,
            sizeBytes: properties.contentLength ?? 0,
            lastModifiedMs: properties.lastModified.getTime(),
          }),
        )
        .filter(({ key }) => key !== after);
      return { entries, marker: continuationToken === '' ? undefined : continuationToken };
    });
  }
}

function cut({ entries, marker }: StorePage, limit: number): ListPage {
  return { entries: entries.slice(0, limit), more: marker !== undefined || entries.length > limit };
}
