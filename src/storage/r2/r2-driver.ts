/**
 * A driver for buckets of Cloudflare R2, inside of Workers.
 *
 * Invariants: a conditional put is sent once, and its response decides only its own result. The result is `lost`, or the outcome
 * `none`, only if the response proves it; everything else is `unknown`.
 */
import { untilAborted } from '../../base/abort.ts';
import { isBytes, messageOf } from '../../base/brands.ts';
import { realEnvironment } from '../../base/env.ts';
import type { Environment } from '../../base/env.ts';
import { StorageError } from '../../base/errors.ts';
import type { RequestOutcome, StorageFailure } from '../../base/errors.ts';
import { defined, kinds, OptionTable } from '../../base/options.ts';
import { cacheControlOf } from '../../format/object-names.ts';
import type {
  DeleteResult,
  GetOptions,
  GetResult,
  ListOptions,
  ListPage,
  PutBody,
  PutCondition,
  PutOptions,
  PutResult,
  RequestOptions,
  StorageDriver,
} from '../contract/driver.ts';
import {
  checkKey,
  checkList,
  checkNotAborted,
  checkWholeBytes,
  clipRange,
  readBody,
  wholeBody,
} from '../contract/requests.ts';
import { streamChunks } from '../contract/stream-chunks.ts';
import type { R2BucketBinding, R2EtagCondition, R2Headers, R2ObjectFacts, R2Part, R2Upload } from './r2-bucket.ts';

/** Options of `R2Driver`. */
export interface R2DriverOptions {
  /** The bucket: its binding in the `env` of a Worker. */
  readonly bucket: R2BucketBinding;
  /**
   * The name of the bucket. With it, the Workers that use the bucket check only once whether it keeps the promises that StoreDb
   * depends on. Default: none.
   */
  readonly name?: string;
  /** Whether objects that never change get a header that lets browsers and caches keep them. Default true. */
  readonly cacheHeaders?: boolean;
  /** Clock and randomness. Default: the runtime's own. */
  readonly environment?: Environment;
}

const driverOptions = new OptionTable<R2DriverOptions>({
  bucket: kinds.required(
    kinds.methods('a binding of an R2 bucket: env.BUCKET', 'get', 'put', 'delete', 'list', 'head'),
  ),
  name: kinds.text('the name of the bucket', (name) => name !== ''),
  cacheHeaders: kinds.flag,
  environment: kinds.environment,
});

/** The length of all parts of an upload but the last, in bytes. A shorter stream is one put. */
const partBytes = 16 * 1024 * 1024;
/** Most keys that a bucket deletes in one call. */
const maxDeletions = 1000;

/** The codes of errors that say more than that the request failed. Cloudflare's page "R2 error codes" lists them. */
const failures: Readonly<Record<string, StorageFailure>> = {
  '10001': 'unavailable',
  '10002': 'forbidden',
  '10003': 'forbidden',
  '10042': 'forbidden',
  '10043': 'unavailable',
  '10058': 'throttled',
};
/** The codes of errors of requests that were refused, and so had no effect. */
const refusals: ReadonlySet<string> = new Set(['10002', '10003', '10042', '10058']);

/** Returns the code at the end of an error's message, as in `get: The specified key does not exist. (10007)`. */
function codeOf(error: unknown): string {
  return /\((\d{5})\)\s*$/.exec(messageOf(error))?.[1] ?? '';
}

/** Whether an ETag may be one of the bucket's. Others match no object, and the bucket takes quotes for a mistake and `*` for any object. */
function isEtag(etag: string): boolean {
  return /^[\w-]+$/.test(etag);
}

function conditionOf(condition: PutCondition): R2EtagCondition | undefined {
  if (condition === 'any') return undefined;
  return condition === 'absent' ? { etagDoesNotMatch: '*' } : { etagMatches: condition.etag };
}

/** Keeps objects in a bucket of Cloudflare R2, by its binding in a Worker. */
export class R2Driver implements StorageDriver {
  readonly name = 'r2';
  readonly identity?: string;
  readonly #bucket: R2BucketBinding;
  readonly #cacheHeaders: boolean;
  readonly #environment: Environment;
  /** The store's clock less the monotonic clock, in milliseconds, by the last write. */
  #offsetMs: number | undefined;

  /** Makes a driver for the bucket of a binding. Throws `InvalidOptionError`; nothing is requested yet. */
  constructor(options: R2DriverOptions) {
    const { bucket, name, cacheHeaders = true, environment } = driverOptions.check('new R2Driver()', options);
    this.#bucket = bucket;
    this.#cacheHeaders = cacheHeaders;
    this.#environment = environment ?? realEnvironment;
    if (name !== undefined) this.identity = `r2 ${name}`;
  }

  async get(key: string, options: GetOptions = {}): Promise<GetResult> {
    const { range, ifNoneMatch, signal } = options;
    checkKey(key);
    if (range !== undefined) clipRange(key, range, 0);
    checkNotAborted(key, signal);
    // The bucket refuses empty ranges.
    if (range !== undefined && range.start === range.end) return this.#getNothing(key, options);
    const given = {
      ...(range !== undefined && { range: { offset: range.start, length: range.end - range.start } }),
      ...(ifNoneMatch !== undefined && isEtag(ifNoneMatch) && { onlyIf: { etagDoesNotMatch: ifNoneMatch } }),
    };
    try {
      return await this.#wait(key, signal, 'none', async () => {
        const object = await this.#bucket.get(key, given);
        if (object === null) return { status: 'missing' };
        if (!('arrayBuffer' in object)) return { status: 'unchanged' };
        if (range === undefined) checkWholeBytes(key, object.size);
        return this.#found(object, new Uint8Array(await object.arrayBuffer()));
      });
    } catch (error) {
      if (range === undefined || signal?.aborted === true) throw error;
      // The bucket refuses a range that begins at the end of the object or behind it.
      const nothing = await this.#getNothing(key, options);
      if (nothing.status === 'found' && nothing.sizeBytes > range.start) throw error;
      return { ...nothing, requests: 2 };
    }
  }

  /** Reads no bytes of an object. */
  async #getNothing(key: string, { ifNoneMatch, signal }: GetOptions): Promise<GetResult> {
    const object = await this.#wait(key, signal, 'none', () => this.#bucket.head(key));
    if (object === null) return { status: 'missing' };
    return object.etag === ifNoneMatch ? { status: 'unchanged' } : this.#found(object, new Uint8Array(0));
  }

  #found({ etag, size, uploaded }: R2ObjectFacts, bytes: Uint8Array): GetResult {
    return { status: 'found', bytes, etag, sizeBytes: size, lastModifiedMs: uploaded.getTime() };
  }

  async put(key: string, body: PutBody, options: PutOptions): Promise<PutResult> {
    checkKey(key);
    checkNotAborted(key, options.signal);
    if (typeof options.if === 'object' && !isEtag(options.if.etag)) return { status: 'lost', requests: 0 };
    if (isBytes(body)) return this.#putBytes(key, body, options);
    // Only a put of all bytes at once can depend on an ETag.
    if (typeof options.if === 'object') return this.#putBytes(key, await wholeBody(key, body, options.signal), options);
    return this.#putStream(key, body, options);
  }

  #headers(key: string, { contentType, cacheControl: given }: PutOptions): R2Headers {
    const cacheControl = this.#cacheHeaders ? (given ?? cacheControlOf(key)) : undefined;
    return defined({ contentType, cacheControl });
  }

  async #putBytes(key: string, bytes: Uint8Array, options: PutOptions): Promise<PutResult> {
    const onlyIf = conditionOf(options.if);
    const given = { httpMetadata: this.#headers(key, options), ...defined({ onlyIf }) };
    const object = await this.#wait(key, options.signal, 'unknown', () => this.#bucket.put(key, bytes, given));
    return object === null ? { status: 'lost' } : this.#written(object);
  }

  #written({ etag, uploaded }: R2ObjectFacts, requests?: number): PutResult {
    this.#offsetMs = uploaded.getTime() - this.#environment.monotonicMs();
    return { status: 'written', etag, ...defined({ requests }) };
  }

  async #putStream(key: string, body: AsyncIterable<Uint8Array>, options: PutOptions): Promise<PutResult> {
    const { signal } = options;
    let upload: R2Upload | undefined;
    const parts: R2Part[] = [];
    try {
      for await (const { bytes, isLast } of streamChunks(readBody(key, body, signal), partBytes, signal)) {
        if (isLast && upload === undefined) return await this.#putBytes(key, bytes, options);
        const given = { httpMetadata: this.#headers(key, options) };
        const started = (upload ??= await this.#wait(key, signal, 'none', () =>
          this.#bucket.createMultipartUpload(key, given),
        ));
        const part = parts.length + 1;
        parts.push(await this.#wait(key, signal, 'none', () => started.uploadPart(part, bytes)));
      }
      return await this.#complete(key, upload as R2Upload, parts, options);
    } catch (error) {
      // What is left of an upload is not an object, and the bucket removes it after some days.
      if (upload !== undefined) await upload.abort().catch(() => undefined);
      if (error instanceof StorageError) throw error;
      checkNotAborted(key, signal);
      throw error;
    }
  }

  /**
   * Makes an object of an upload. The bucket has no condition for that, so the driver looks before: StoreDb gives such objects names
   * that it uses once.
   */
  async #complete(
    key: string,
    upload: R2Upload,
    parts: R2Part[],
    { if: condition, signal }: PutOptions,
  ): Promise<PutResult> {
    const requests = parts.length + 3;
    if (condition === 'absent' && (await this.#wait(key, signal, 'none', () => this.#bucket.head(key))) !== null) {
      await upload.abort().catch(() => undefined);
      return { status: 'lost', requests };
    }
    return this.#written(await this.#wait(key, signal, 'unknown', () => upload.complete(parts)), requests);
  }

  async delete(keys: readonly string[], options: RequestOptions = {}): Promise<DeleteResult> {
    keys.forEach(checkKey);
    checkNotAborted(keys[0] ?? '', options.signal);
    let requests = 0;
    for (let at = 0; at < keys.length; at += maxDeletions) {
      const some = keys.slice(at, at + maxDeletions);
      await this.#wait(some[0] as string, options.signal, 'unknown', () => this.#bucket.delete(some));
      requests++;
    }
    return requests > 1 ? { failed: [], requests } : { failed: [] };
  }

  async list(prefix: string, options: ListOptions = {}): Promise<ListPage> {
    const { after, signal } = options;
    const limit = checkList(prefix, options);
    checkNotAborted(prefix, signal);
    const start = { prefix, limit, ...(after !== undefined && { startAfter: after }) };
    let page = await this.#wait(prefix, signal, 'none', () => this.#bucket.list(start));
    let requests = 1;
    // A page may be empty although others follow.
    while (page.truncated && page.objects.length === 0 && page.cursor !== undefined) {
      const { cursor } = page;
      page = await this.#wait(prefix, signal, 'none', () => this.#bucket.list({ prefix, limit, cursor }));
      requests++;
    }
    const entries = page.objects.map(({ key, size, uploaded }) => ({
      key,
      sizeBytes: size,
      lastModifiedMs: uploaded.getTime(),
    }));
    return { entries, more: page.truncated, ...(requests > 1 && { requests }) };
  }

  /** Returns the store's time, by the date of the last object that was written. */
  storeTimeMs(): number | undefined {
    return this.#offsetMs === undefined ? undefined : this.#offsetMs + this.#environment.monotonicMs();
  }

  /** Sends a request. `outcome`: whether a failed one may have had an effect. */
  async #wait<T>(
    key: string,
    signal: AbortSignal | undefined,
    outcome: RequestOutcome,
    request: () => Promise<T>,
  ): Promise<T> {
    try {
      return await untilAborted(request(), signal);
    } catch (error) {
      if (error instanceof StorageError) throw error;
      if (signal?.aborted === true) checkNotAborted(key, signal, outcome);
      const code = codeOf(error);
      const known = refusals.has(code) ? 'none' : outcome;
      throw new StorageError(key, known, `The request for ${key} failed: ${messageOf(error)}`, {
        cause: error,
        ...defined({ reason: failures[code] }),
      });
    }
  }
}
