/**
 * A driver for buckets of Google Cloud Storage, on its JSON API.
 *
 * Invariants: a conditional put is sent once, and its response decides only its own result. The result is `lost`, or the outcome
 * `none`, only if the response proves it; everything else is `unknown`. The ETag of an object is its generation, which the store
 * never uses twice for a key.
 */
import { createHash } from 'node:crypto';
import { isBytes, isPlainObject } from '../../base/brands.ts';
import { StorageError } from '../../base/errors.ts';
import { forEachOf } from '../../base/pacer.ts';
import { defined } from '../../base/options.ts';
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
  RequestOptions,
  StorageDriver,
} from '../contract/driver.ts';
import { checkKey, checkList, checkNotAborted, clipRange } from '../contract/requests.ts';
import { severalOf } from '../contract/request-attempts.ts';
import type { RequestTally } from '../contract/request-attempts.ts';
import { GoogleResponseError, isMissingObject } from './google-errors.ts';
import { checkGoogleOptions, googleIdentity } from './google-options.ts';
import type { CheckedGoogleOptions, GoogleCloudStorageDriverOptions } from './google-options.ts';
import { listObjects, readObject } from './google-read.ts';
import { GoogleRequests, skipBody } from './google-requests.ts';
import type { GoogleRequest, SendOptions } from './google-requests.ts';
import { GoogleUpload } from './google-upload.ts';

/** Concurrent deletions. */
const deletionsAtOnce = 16;
/** Attempts at steps of a copy, which are idempotent. */
const copyAttempts = 4;
/** Most steps of a copy. A step copies many megabytes, and an object has at most 5 TiB. */
const maxCopySteps = 10_000;
/** Statuses of a store that cannot copy the object; reading and writing may still work. */
const copyRefusals = new Set([400, 403, 404, 405, 501]);

/** Keeps objects in a bucket of Google Cloud Storage. */
export class GoogleCloudStorageDriver implements StorageDriver {
  readonly name = 'google-cloud-storage';
  readonly identity: string;
  readonly #options: CheckedGoogleOptions;
  readonly #requests: GoogleRequests;

  /** Makes a driver for a bucket that exists. Throws `InvalidOptionError`; nothing is requested yet. */
  constructor(options: GoogleCloudStorageDriverOptions) {
    this.#options = checkGoogleOptions(options);
    this.#requests = new GoogleRequests(this.#options);
    this.identity = googleIdentity(this.#options);
  }

  async get(key: string, options: GetOptions = {}): Promise<GetResult> {
    checkObjectName(key);
    if (options.range !== undefined) clipRange(key, options.range, 0);
    checkNotAborted(key, options.signal);
    return readObject(this.#requests, key, options);
  }

  async put(key: string, body: PutBody, options: PutOptions): Promise<PutResult> {
    checkObjectName(key);
    checkNotAborted(key, options.signal);
    const upload = new GoogleUpload(this.#requests, this.#options, key, options);
    return isBytes(body) ? upload.putBytes(body) : upload.putStream(body);
  }

  async delete(keys: readonly string[], options: RequestOptions = {}): Promise<DeleteResult> {
    keys.forEach(checkObjectName);
    checkNotAborted(keys[0] ?? '', options.signal);
    const failed: { key: string; message: string }[] = [];
    await forEachOf(keys, deletionsAtOnce, async (key) => {
      try {
        await this.#deleteOne(key, options.signal);
      } catch (error) {
        // With a single key, its failure is the failure of the call.
        if (!(error instanceof StorageError) || error.outcome !== 'none' || keys.length === 1) throw error;
        failed.push({ key, message: error.message });
      }
    });
    return keys.length === 1 ? { failed } : { failed, requests: keys.length };
  }

  async #deleteOne(key: string, signal: AbortSignal | undefined): Promise<void> {
    const path = this.#requests.path(key);
    const request: GoogleRequest = { operation: 'objects.delete', key, method: 'DELETE', path };
    try {
      await this.#requests.send(request, { signal, isAnswer: isMissingObject }, skipBody);
    } catch (error) {
      if (!isMissingObject(error)) throw error;
    }
  }

  async list(prefix: string, options: ListOptions = {}): Promise<ListPage> {
    const limit = checkList(prefix, options);
    checkNotAborted(prefix, options.signal);
    return listObjects(this.#requests, prefix, { ...options, limit });
  }

  async copy(from: string, to: string, options: ObjectCopyOptions = {}): Promise<CopyResult> {
    checkObjectName(from);
    checkObjectName(to);
    checkNotAborted(to, options.signal);
    const tally: RequestTally = { requests: 0 };
    const isRefusal = (error: unknown): boolean =>
      error instanceof GoogleResponseError && copyRefusals.has(error.status);
    const { signal, sizeBytes = 0 } = options;
    const sending: SendOptions = { signal, sizeBytes, tally, attempts: copyAttempts, isAnswer: isRefusal };
    const target = this.#requests.path(to, '');
    const path = `${this.#requests.path(from)}/rewriteTo${target}?fields=done,rewriteToken`;
    try {
      for (let step = 1, token = ''; ; step++) {
        const query = token === '' ? '' : `&rewriteToken=${encodeURIComponent(token)}`;
        const request: GoogleRequest = { operation: 'objects.rewrite', key: to, method: 'POST', path: path + query };
        const { body } = await this.#requests.json(request, sending);
        const { done, rewriteToken } = isPlainObject(body) ? body : {};
        if (done === true) return { status: 'copied', ...severalOf(tally) };
        if (typeof rewriteToken !== 'string' || step >= maxCopySteps) {
          throw new StorageError(to, 'unknown', `The store does not complete the copy to ${to}.`);
        }
        token = rewriteToken;
      }
    } catch (error) {
      if (!isRefusal(error)) throw error;
      return { status: 'refused', ...severalOf(tally) };
    }
  }

  /** Returns a signed URL. Only a service account can sign one: with its key, or through the IAM Credentials API. */
  async presign(key: string, { expiresInSeconds, contentType, contentDisposition }: PresignOptions): Promise<string> {
    checkObjectName(key);
    const { bucket, endpoint, environment } = this.#options;
    const email = await this.#requests.access.email();
    // The store's clock, as far as its responses have shown it.
    const time = new Date(this.#requests.timeMs ?? environment.now()).toISOString().replace(/\.\d+|[-:]/g, '');
    const scope = `${time.slice(0, 8)}/auto/storage/goog4_request`;
    const parameters: Readonly<Record<string, string>> = {
      'X-Goog-Algorithm': 'GOOG4-RSA-SHA256',
      'X-Goog-Credential': `${email}/${scope}`,
      'X-Goog-Date': time,
      'X-Goog-Expires': String(expiresInSeconds),
      'X-Goog-SignedHeaders': 'host',
      ...defined({ 'response-content-disposition': contentDisposition, 'response-content-type': contentType }),
    };
    const query = Object.entries(parameters)
      .map(([name, value]) => `${name}=${encodeStrictly(value)}`)
      .join('&');
    const path = `/${bucket}/${key.split('/').map(encodeStrictly).join('/')}`;
    const canonical = ['GET', path, query, `host:${endpoint.host}`, '', 'host', 'UNSIGNED-PAYLOAD'].join('\n');
    const hash = createHash('sha256').update(canonical).digest('hex');
    const signature = await this.#requests.access.sign(['GOOG4-RSA-SHA256', time, scope, hash].join('\n'));
    return `${endpoint.origin}${path}?${query}&X-Goog-Signature=${Buffer.from(signature, 'base64').toString('hex')}`;
  }

  /** Returns the store's time, by the date of its last response. */
  storeTimeMs(): number | undefined {
    return this.#requests.timeMs;
  }

  describe(): Readonly<Record<string, string>> {
    const { bucket, endpoint } = this.#options;
    return { bucket, endpoint: endpoint.origin, ETags: 'generations', deletion: 'one by one' };
  }

  async close(): Promise<void> {
    await Promise.resolve(this.#requests.close());
  }
}

/** Encodes all characters but those that a signature leaves as they are. */
function encodeStrictly(text: string): string {
  return encodeURIComponent(text).replace(/[!'()*]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`);
}

/** Throws for a key that cannot be the name of an object of Cloud Storage. */
function checkObjectName(key: string): void {
  checkKey(key);
  const isRefused = key === '.' || key === '..' || /[\r\n]/.test(key) || key.startsWith('.well-known/acme-challenge/');
  if (!isRefused) return;
  throw new StorageError(
    key,
    'none',
    'Cloud Storage has no objects named . or .., with line breaks, or under .well-known/acme-challenge/: use another key.',
  );
}
