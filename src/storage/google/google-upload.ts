/**
 * Uploads objects: bytes with one request, and streams with one request up to the size of a chunk, with a resumable session above
 * it. Memory is bounded by the chunk that is sent.
 */
import { isPlainObject } from '../../base/brands.ts';
import { encodeUtf8 } from '../../base/bytes.ts';
import type { Environment } from '../../base/env.ts';
import { StorageError } from '../../base/errors.ts';
import { newId } from '../../base/ids.ts';
import { cacheControlOf } from '../../format/object-names.ts';
import type { PutCondition, PutOptions, PutResult } from '../contract/driver.ts';
import { sendFinal } from '../contract/final-request.ts';
import { checkNotAborted, readBody } from '../contract/requests.ts';
import { streamChunks } from '../contract/stream-chunks.ts';
import { severalOf } from '../contract/request-attempts.ts';
import type { RequestTally } from '../contract/request-attempts.ts';
import { md5Metadata, newMd5 } from './google-checksums.ts';
import { GoogleResponseError, isMissingObject } from './google-errors.ts';
import type { CheckedGoogleOptions } from './google-options.ts';
import { etagOf, generationOf, statObject, uploadMark } from './google-read.ts';
import { skipBody } from './google-requests.ts';
import type { GoogleAnswer, GoogleRequest, GoogleRequests, SendOptions } from './google-requests.ts';

/** Size of a chunk of a session, a multiple of 256 KiB, and of the largest stream that is sent in one request, in bytes. */
const chunkBytes = 8 * 1024 * 1024;
/** Attempts at requests of an upload that may be repeated. */
const attempts = 4;
const defaultType = 'application/octet-stream';
/** How often one chunk is sent although the store has kept nothing of it. */
const maxIdleSends = 8;

/**
 * Returns the query for a condition; undefined if no object can fulfil it. Generation 0 stands for "no object".
 */
function conditionQuery(condition: PutCondition): string | undefined {
  if (condition === 'any') return '';
  const generation = condition === 'absent' ? '0' : generationOf(condition.etag);
  return generation === undefined ? undefined : `&ifGenerationMatch=${generation}`;
}

function isStatus(error: unknown, status: number): boolean {
  return error instanceof GoogleResponseError && error.status === status;
}

/** Whether an error says that the condition of a put did not hold. */
function isLost(condition: PutCondition, error: unknown): boolean {
  if (condition === 'any') return false;
  return isStatus(error, 412) || (condition !== 'absent' && isMissingObject(error));
}

/** Returns the ETag in the response to an upload. */
function writtenEtag(key: string, { body }: GoogleAnswer<unknown>): string {
  return etagOf(key, isPlainObject(body) ? body['generation'] : undefined, 'unknown');
}

/** An upload of one object. */
export class GoogleUpload {
  readonly #requests: GoogleRequests;
  readonly #environment: Environment;
  readonly #cacheHeaders: boolean;
  readonly #key: string;
  readonly #options: PutOptions;
  readonly #tally: RequestTally = { requests: 0 };
  readonly #isLost: (error: unknown) => boolean;

  constructor(
    requests: GoogleRequests,
    { environment, cacheHeaders }: Pick<CheckedGoogleOptions, 'environment' | 'cacheHeaders'>,
    key: string,
    options: PutOptions,
  ) {
    this.#requests = requests;
    this.#environment = environment;
    this.#cacheHeaders = cacheHeaders;
    this.#key = key;
    this.#options = options;
    this.#isLost = (error) => isLost(options.if, error);
  }

  /** Puts bytes with one request, which is sent once. Its response alone decides. */
  async putBytes(bytes: Uint8Array): Promise<PutResult> {
    return this.#result(async (condition) => {
      return writtenEtag(this.#key, await this.#insert(bytes, condition, md5Metadata(bytes)));
    });
  }

  /** Puts a stream. */
  async putStream(stream: AsyncIterable<Uint8Array>): Promise<PutResult> {
    const { signal } = this.#options;
    return this.#result(async (condition) => {
      const chunks = streamChunks(readBody(this.#key, stream, signal), chunkBytes, signal);
      const first = await chunks.next();
      if (first.done === true) throw new StorageError(this.#key, 'none', 'The stream of the body has no end.');
      const mark = newId(this.#environment, 16);
      const metadata = { metadata: { [uploadMark]: mark } };
      const { bytes, isLast } = first.value;
      if (isLast) {
        const given = { ...metadata, ...md5Metadata(bytes) };
        return this.#final(mark, async () => writtenEtag(this.#key, await this.#insert(bytes, condition, given)));
      }
      const session = await this.#openSession(condition, metadata);
      try {
        return await this.#sendChunks(session, mark, bytes, chunks);
      } catch (error) {
        await this.#endSession(session);
        throw error;
      } finally {
        await chunks.return();
      }
    });
  }

  /** Returns the metadata of the object. `no-transform` keeps the store and caches from changing it, `private` from sharing it. */
  #metadata(more: object): Uint8Array {
    const { contentType = defaultType, cacheControl: given } = this.#options;
    const known = this.#cacheHeaders ? (given ?? cacheControlOf(this.#key)) : undefined;
    const cacheControl = `${known ?? 'private, max-age=0'}, no-transform`;
    return encodeUtf8(JSON.stringify({ contentType, cacheControl, ...more }));
  }

  async #result(write: (condition: string) => Promise<string>): Promise<PutResult> {
    const condition = conditionQuery(this.#options.if);
    // No object can have an ETag that is no generation.
    if (condition === undefined) return { status: 'lost', requests: 0 };
    try {
      const etag = await write(condition);
      return { status: 'written', etag, ...severalOf(this.#tally) };
    } catch (error) {
      if (this.#isLost(error)) return { status: 'lost', ...severalOf(this.#tally) };
      if (error instanceof StorageError) throw error;
      const outcome = this.#tally.requests === 0 ? 'none' : 'unknown';
      checkNotAborted(this.#key, this.#options.signal, outcome);
      const message = `Uploading ${this.#key} failed: ${(error as Error).message}`;
      throw new StorageError(this.#key, outcome, message, { cause: error });
    }
  }

  #sending(more: Partial<SendOptions> = {}): SendOptions {
    return { signal: this.#options.signal, tally: this.#tally, isAnswer: this.#isLost, ...more };
  }

  /** Sends metadata and bytes in one request. */
  #insert(bytes: Uint8Array, condition: string, more: object): Promise<GoogleAnswer<unknown>> {
    const boundary = newId(this.#environment, 16);
    const type = this.#options.contentType ?? defaultType;
    const body = Buffer.concat([
      encodeUtf8(`--${boundary}\r\nContent-Type: application/json; charset=UTF-8\r\n\r\n`),
      this.#metadata(more),
      encodeUtf8(`\r\n--${boundary}\r\nContent-Type: ${type.replace(/[\r\n]/g, ' ')}\r\n\r\n`),
      bytes,
      encodeUtf8(`\r\n--${boundary}--\r\n`),
    ]);
    const headers = { 'content-type': `multipart/related; boundary=${boundary}` };
    return this.#requests.json(this.#request('multipart', condition, headers, body), this.#sending());
  }

  #request(
    uploadType: 'multipart' | 'resumable',
    condition: string,
    headers: Readonly<Record<string, string>>,
    body: Uint8Array,
  ): GoogleRequest {
    const query = `uploadType=${uploadType}&name=${encodeURIComponent(this.#key)}&fields=generation,size,md5Hash`;
    const path = `${this.#requests.path(undefined, '/upload/storage/v1')}?${query}${condition}`;
    return { operation: 'objects.insert', key: this.#key, method: 'POST', path, headers, body };
  }

  /** Sends the last request of the upload. If its response is lost, the mark shows whether the object exists. */
  #final(mark: string, send: () => Promise<string>): Promise<string> {
    const { signal } = this.#options;
    const firstSentMs = this.#environment.monotonicMs();
    return sendFinal({
      send,
      look: async () => {
        const stat = await statObject(this.#requests, this.#key, this.#sending({ attempts }));
        return stat?.mark === mark ? stat.etag : undefined;
      },
      isAnswer: this.#isLost,
      isWorthAnother: (error, tried) => this.#requests.isWorthAnother(error, firstSentMs, tried, signal),
    });
  }

  /** Begins a resumable session. Returns its URL, which gives access to the upload: it stays out of errors. */
  async #openSession(condition: string, more: object): Promise<URL> {
    const headers = { 'content-type': 'application/json; charset=UTF-8' };
    const request = this.#request('resumable', condition, headers, this.#metadata(more));
    const { headers: answered } = await this.#requests.send(request, this.#sending({ attempts }), skipBody);
    const location = answered['location'] ?? '';
    if (URL.canParse(location)) return new URL(location);
    throw new StorageError(this.#key, 'none', 'The store began an upload without saying where to send it.');
  }

  /** Ends a session that will not be completed. If that fails, the store ends it after a week. */
  async #endSession(session: URL): Promise<void> {
    const request = { operation: 'objects.insert', key: this.#key, method: 'DELETE', path: '', session } as const;
    const options = { tally: this.#tally, statuses: [404, 410, 499] };
    await this.#requests.send(request, options, skipBody).catch(() => undefined);
  }

  async #sendChunks(
    session: URL,
    mark: string,
    first: Uint8Array,
    rest: AsyncGenerator<{ readonly bytes: Uint8Array; readonly isLast: boolean }>,
  ): Promise<string> {
    const digest = newMd5()?.update(first);
    await this.#sendChunk(session, first, 0);
    for (let start = first.length; ; ) {
      const next = await rest.next();
      if (next.done === true) throw new StorageError(this.#key, 'unknown', 'The stream of the body has no end.');
      const { bytes, isLast } = next.value;
      digest?.update(bytes);
      if (isLast) return this.#sendLast(session, mark, bytes, start, digest?.digest('base64'));
      await this.#sendChunk(session, bytes, start);
      start += bytes.length;
    }
  }

  /**
   * Sends a chunk that is not the last one, until the store has kept all of it. A chunk has no effect of its own, so it may be sent
   * again.
   */
  async #sendChunk(session: URL, bytes: Uint8Array, start: number): Promise<void> {
    const end = start + bytes.length;
    for (let at = start, idle = 0; at < end; ) {
      const part = bytes.subarray(at - start);
      const answer = await this.#sendPart(session, part, `bytes ${at}-${end - 1}/*`, attempts);
      const kept = keptBytes(answer);
      if (answer.status !== 308 || kept > end || (kept <= at && ++idle >= maxIdleSends) || kept < start) {
        throw new StorageError(this.#key, 'unknown', `The store does not keep the chunks of ${this.#key}.`);
      }
      at = kept;
    }
  }

  /** Sends the last chunk, which creates the object. After a lost response the session tells how much of the chunk it has. */
  async #sendLast(
    session: URL,
    mark: string,
    bytes: Uint8Array,
    start: number,
    md5Hash: string | undefined,
  ): Promise<string> {
    const total = start + bytes.length;
    let hasFailed = false;
    return this.#final(mark, async () => {
      let at = start;
      for (let sent = 0; ; sent++) {
        let answer: GoogleAnswer<unknown>;
        if (hasFailed && sent === 0) {
          answer = await this.#sendPart(session, new Uint8Array(0), `bytes */${total}`, 1);
        } else {
          hasFailed = true;
          answer = await this.#sendPart(session, bytes.subarray(at - start), `bytes ${at}-${total - 1}/${total}`, 1);
        }
        if (answer.status !== 308) return this.#checked(answer, total, md5Hash);
        at = keptBytes(answer);
        if (at < start || at >= total || sent >= maxIdleSends) {
          throw new StorageError(this.#key, 'unknown', `The store does not complete the upload of ${this.#key}.`);
        }
      }
    });
  }

  #sendPart(session: URL, body: Uint8Array, contentRange: string, times: number): Promise<GoogleAnswer<unknown>> {
    const headers = { 'content-range': contentRange };
    const request = {
      operation: 'objects.insert',
      key: this.#key,
      method: 'PUT',
      path: '',
      session,
      headers,
      body,
    } as const;
    // A session that is gone is answered with 404: that says nothing about the object.
    const isAnswer = (error: unknown): boolean => isStatus(error, 412) && this.#isLost(error);
    return this.#requests.json(request, this.#sending({ statuses: [308], attempts: times, isAnswer }));
  }

  /** Returns the ETag of a completed upload whose bytes are the bytes of the stream. */
  #checked(answer: GoogleAnswer<unknown>, total: number, md5Hash: string | undefined): string {
    const { size, md5Hash: stored = md5Hash } = isPlainObject(answer.body) ? answer.body : {};
    const isOther = md5Hash !== undefined && stored !== md5Hash;
    if (isOther || (size !== undefined && Number(size) !== total)) {
      throw new StorageError(this.#key, 'unknown', `The store has other bytes of ${this.#key} than were sent.`);
    }
    return writtenEtag(this.#key, answer);
  }
}

/** Returns how many bytes a session has kept: its response with status 308 has their range, or none if there are none. */
function keptBytes({ headers }: GoogleAnswer<unknown>): number {
  const last = /^bytes=0-(\d+)$/.exec(headers['range'] ?? '')?.[1];
  return last === undefined ? 0 : Number(last) + 1;
}
