/**
 * A driver for buckets of object stores with the S3 API: Amazon S3, Ceph, R2, MinIO and others that honour conditional writes.
 *
 * Invariants: a conditional put is sent once, and its response decides only its own result. The result is `lost`, or the outcome
 * `none`, only if the response proves it; everything else is `unknown`.
 */
import { isBytes } from '../../base/brands.ts';
import { StorageError } from '../../base/errors.ts';
import { newId } from '../../base/ids.ts';
import { defined } from '../../base/options.ts';
import { cacheControlOf } from '../../format/object-names.ts';
import type {
  CopyResult,
  DeleteResult,
  GetOptions,
  GetResult,
  ListOptions,
  ListPage,
  ObjectCopyOptions,
  PresignOptions,
  PutBody,
  PutOptions,
  PutResult,
  RemoveUploadsOptions,
  RequestOptions,
  StorageDriver,
} from '../contract/driver.ts';
import { sendFinal } from '../contract/final-request.ts';
import { checkKey, checkList, checkNotAborted, clipRange, readBody } from '../contract/requests.ts';
import { severalOf } from '../contract/request-attempts.ts';
import type { RequestTally } from '../contract/request-attempts.ts';
import { copyObject, isCopyRefusal } from './object-store-copy.ts';
import { ObjectDeletion } from './object-store-delete.ts';
import { codeOf, statusOf, toStorageError } from './object-store-errors.ts';
import { checkDriverOptions } from './object-store-options.ts';
import type { CheckedDriverOptions, ObjectStoreDriverOptions } from './object-store-options.ts';
import { readObject, statObject, listObjects } from './object-store-read.ts';
import { uploadMark, ObjectStoreRequests } from './object-store-requests.ts';
import type { RequestSender } from './object-store-requests.ts';
import { removeUploads, uploadStream } from './object-store-upload.ts';
import { environmentEndpoint } from './open-s3-api.ts';
import type { ObjectProperties, WriteCondition, WrittenObject } from './s3-api.ts';

/** Attempts to look for the object of an upload whose outcome is unknown. */
const lookAttempts = 4;

type Answer = PutResult['status'];

/** Keeps objects in a bucket. Loads the modules for that when the first request is made. */
export class ObjectStoreDriver implements StorageDriver {
  readonly name = 'object-store';
  readonly identity?: string;
  readonly #options: CheckedDriverOptions;
  readonly #requests: ObjectStoreRequests;
  readonly #deletion: ObjectDeletion;
  readonly #etags = new EtagForm();
  /** The status of the store's response when the object to replace is missing. */
  #missingAnswer: string | undefined;

  /** Makes a driver for a bucket that exists. Throws `InvalidOptionError`; nothing is requested yet. */
  constructor(options: ObjectStoreDriverOptions) {
    const checked = checkDriverOptions(options);
    this.#options = checked;
    this.#requests = new ObjectStoreRequests(checked);
    this.#deletion = new ObjectDeletion(this.#requests, checked.bucket);
    const { client, endpoint, bucket } = checked;
    // The endpoint of a client passed by the caller is not known.
    if (client === undefined) this.identity = `${shownEndpoint(endpoint ?? environmentEndpoint() ?? 's3')} ${bucket}`;
  }

  async get(key: string, options: GetOptions = {}): Promise<GetResult> {
    checkKey(key);
    if (options.range !== undefined) clipRange(key, options.range, 0);
    checkNotAborted(key, options.signal);
    return readObject(this.#requests, this.#options.bucket, key, options);
  }

  async put(key: string, body: PutBody, options: PutOptions): Promise<PutResult> {
    checkKey(key);
    checkNotAborted(key, options.signal);
    if (!isBytes(body)) return this.#putStream(key, body, options);
    const condition = options.if;
    if (typeof condition === 'string') return this.#putBytes(key, body, options, undefined);
    const { etag } = condition;
    const first = await this.#putBytes(key, body, options, this.#etags.write(etag));
    if (first.status === 'written' && !this.#etags.isKnown) this.#etags.accepted('given');
    if (first.status === 'written' || this.#etags.isKnown) return first;
    return this.#putInOtherForm(key, body, options, etag);
  }

  /**
   * Puts again after a store that has not accepted any ETag yet refused one. It may have refused the form of the ETag: if the
   * object still has the required ETag, the other form is tried.
   */
  async #putInOtherForm(key: string, body: Uint8Array, options: PutOptions, etag: string): Promise<PutResult> {
    const found = await statObject(this.#requests, this.#options.bucket, key, options.signal);
    if (found === undefined) this.#missingAnswer ??= '412';
    if (found?.etag !== etag) return { status: 'lost', requests: 2 };
    const second = await this.#putBytes(key, body, options, this.#etags.writeOther(etag));
    if (second.status === 'written') this.#etags.accepted('other');
    return { ...second, requests: 3 };
  }

  /** Sends one put of bytes, once. `ifMatch` is the ETag in the form to send. */
  async #putBytes(key: string, body: Uint8Array, options: PutOptions, ifMatch: string | undefined): Promise<PutResult> {
    const input = this.#input(key, options, ifMatch);
    const request = { operation: 'PutObject', bucket: this.#options.bucket, key };
    const isAnswer = (error: unknown): boolean => answerOf(error, ifMatch !== undefined) !== undefined;
    const tally: RequestTally = { requests: 0 };
    try {
      const { signal } = options;
      const { ETag } = await this.#requests.send(
        request,
        { signal, sizeBytes: body.length, tally, isAnswer },
        (api, inner) => api.putObject({ ...input, Body: body }, inner),
      );
      if (ETag === undefined) throw new StorageError(key, 'unknown', `The store answered ${key} without an ETag.`);
      return { status: 'written', etag: ETag, ...severalOf(tally) };
    } catch (error) {
      if (error instanceof StorageError) throw error;
      if (statusOf(error) === 404) this.#missingAnswer = '404';
      return { status: 'lost', ...severalOf(tally) };
    }
  }

  #input(key: string, options: PutOptions, ifMatch: string | undefined): ObjectProperties & WriteCondition {
    return {
      Key: key,
      ...this.#options.encryption,
      ...defined({
        ContentType: options.contentType,
        CacheControl: this.#options.cacheHeaders ? (options.cacheControl ?? cacheControlOf(key)) : undefined,
      }),
      ...(options.if === 'absent' ? { IfNoneMatch: '*' } : {}),
      ...defined({ IfMatch: ifMatch }),
    };
  }

  async #putStream(key: string, body: AsyncIterable<Uint8Array>, options: PutOptions): Promise<PutResult> {
    const { bucket } = this.#options;
    const { signal } = options;
    const tally: RequestTally = { requests: 0 };
    const condition = typeof options.if === 'string' ? undefined : this.#etags.write(options.if.etag);
    const isAnswer = (error: unknown): boolean => answerOf(error, condition !== undefined) !== undefined;
    const mark = newId(this.#options.environment, 16);
    const input = { ...this.#input(key, options, condition), Metadata: { [uploadMark]: mark } };
    const upload = (requests: RequestSender): Promise<string> =>
      uploadStream({
        input,
        chunks: readBody(key, body, signal),
        signal,
        send: (operation, sending, attempt) =>
          requests.send({ operation, bucket, key }, { ...sending, tally, isAnswer }, attempt),
        sendFinal: (operation, inner, sizeBytes, attempt) => {
          const firstSentMs = this.#options.environment.monotonicMs();
          return sendFinal<WrittenObject>({
            send: () =>
              requests.send({ operation, bucket, key }, { signal: inner, sizeBytes, tally, isAnswer }, attempt),
            look: async () => {
              const stat = await statObject(requests, bucket, key, inner, { attempts: lookAttempts, tally });
              return stat?.mark === mark ? { ETag: stat.etag } : undefined;
            },
            isAnswer,
            isWorthAnother: (error, tried) => this.#requests.isWorthAnother(error, firstSentMs, tried, inner),
          });
        },
      });
    try {
      const etag = await this.#requests.keepOpen(upload);
      return { status: 'written', etag, requests: tally.requests };
    } catch (error) {
      if (isAnswer(error)) return { status: 'lost', requests: tally.requests };
      if (error instanceof StorageError) throw error;
      checkNotAborted(key, signal, tally.requests === 0 ? 'none' : 'unknown');
      throw new StorageError(key, 'unknown', `Uploading ${key} failed: ${(error as Error).message}`, { cause: error });
    }
  }

  async delete(keys: readonly string[], options: RequestOptions = {}): Promise<DeleteResult> {
    keys.forEach(checkKey);
    checkNotAborted(keys[0] ?? '', options.signal);
    return keys.length === 0 ? { failed: [] } : this.#deletion.delete(keys, options.signal);
  }

  async list(prefix: string, options: ListOptions = {}): Promise<ListPage> {
    const limit = checkList(prefix, options);
    checkNotAborted(prefix, options.signal);
    return listObjects(this.#requests, this.#options.bucket, prefix, { ...options, limit });
  }

  async copy(from: string, to: string, options: ObjectCopyOptions = {}): Promise<CopyResult> {
    checkKey(from);
    checkKey(to);
    checkNotAborted(to, options.signal);
    const tally: RequestTally = { requests: 0 };
    try {
      await copyObject({ ...this.#options, requests: this.#requests, from, to, options, tally });
      return { status: 'copied', ...severalOf(tally) };
    } catch (error) {
      if (!isCopyRefusal(error)) throw error;
      return { status: 'refused', ...severalOf(tally) };
    }
  }

  removeUploads(prefix: string, options: RemoveUploadsOptions): Promise<number> {
    return removeUploads(this.#requests, this.#options.bucket, prefix, options);
  }

  /** Returns a presigned URL. It expires after the time requested, or earlier with the credentials that signed it. */
  async presign(key: string, { expiresInSeconds, contentType, contentDisposition }: PresignOptions): Promise<string> {
    checkKey(key);
    const api = await this.#requests.open();
    const headers = defined({ ResponseContentType: contentType, ResponseContentDisposition: contentDisposition });
    try {
      return await api.presign({ Key: key, ...headers }, expiresInSeconds);
    } catch (error) {
      throw toStorageError({ operation: 'GetObject', bucket: this.#options.bucket, key }, error);
    }
  }

  /** Returns the store's time, by the date of its last response. */
  storeTimeMs(): number | undefined {
    return this.#requests.timeMs;
  }

  describe(): Readonly<Record<string, string>> {
    const { bucket, endpoint } = this.#options;
    return {
      bucket,
      ...(endpoint === undefined ? {} : { endpoint: shownEndpoint(endpoint) }),
      ...defined({ server: this.#requests.server }),
      'ETags in If-Match': this.#etags.toString(),
      ...defined({ 'If-Match on a missing key': this.#missingAnswer }),
      deletion: this.#deletion.manner,
    };
  }

  async close(): Promise<void> {
    await this.#requests.close();
  }
}

/** Removes the query of an endpoint, which may hold a key of a gateway. */
function shownEndpoint(endpoint: string): string {
  return endpoint.replace(/[?#].*$/s, '');
}

/** Returns the result of a conditional put that an error means; undefined if it says nothing about the condition. */
function answerOf(error: unknown, hadEtag: boolean): Answer | undefined {
  if (statusOf(error) === 412) return 'lost';
  // Amazon's response if the object to replace is missing.
  return hadEtag && statusOf(error) === 404 && codeOf(error) === 'NoSuchKey' ? 'lost' : undefined;
}

/**
 * The form of ETags that a store accepts in `If-Match`. Most accept an ETag as they returned it, in quotes; some (Ceph 16 and 18,
 * DigitalOcean Spaces) compare the header with the text without quotes and refuse every quoted one.
 */
class EtagForm {
  #isOther: boolean | undefined;

  /** Whether a conditional write has shown the form. */
  get isKnown(): boolean {
    return this.#isOther !== undefined;
  }

  /** Returns the ETag in the form that the store is assumed to accept. */
  write(etag: string): string {
    return this.#isOther === true ? otherForm(etag) : etag;
  }

  /** Returns the ETag in the form that was not tried. */
  writeOther(etag: string): string {
    return this.#isOther === true ? etag : otherForm(etag);
  }

  /** Notes that a write was accepted with the ETag in the other form, or as it was returned. */
  accepted(form: 'given' | 'other'): void {
    this.#isOther = form === 'other';
  }

  /** Returns the form, for reports. */
  toString(): string {
    if (this.#isOther === undefined) return 'not tried yet';
    return this.#isOther ? 'without quotes' : 'as given';
  }
}

function otherForm(etag: string): string {
  return etag.startsWith('"') && etag.endsWith('"') ? etag.slice(1, -1) : `"${etag}"`;
}
