/**
 * A driver for containers of Azure Blob Storage.
 *
 * Invariants: a conditional put is sent once, and its response decides only its own result. The result is `lost`, or the outcome
 * `none`, only if the response proves it; everything else is `unknown`.
 */
import type { BlobHTTPHeaders, BlobRequestConditions } from '@azure/storage-blob';
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
  PutCondition,
  PutOptions,
  PutResult,
  RequestOptions,
  StorageDriver,
} from '../contract/driver.ts';
import { checkKey, checkList, checkNotAborted, clipRange, readBody } from '../contract/requests.ts';
import { severalOf } from '../contract/request-attempts.ts';
import type { RequestTally } from '../contract/request-attempts.ts';
import { copyBlob, isCopyRefusal } from './azure-copy.ts';
import { codeOf, statusOf } from './azure-errors.ts';
import { azureIdentity, checkAzureOptions } from './azure-options.ts';
import type { AzureBlobDriverOptions, CheckedAzureOptions } from './azure-options.ts';
import { BlobListing, isMissing, readBlob } from './azure-read.ts';
import { AzureRequests } from './azure-requests.ts';
import { UrlSigner } from './azure-signing.ts';
import { BlocksLostError, uploadStream } from './azure-upload.ts';

/** Concurrent requests when several keys are deleted. */
const deletionsAtOnce = 16;

/** Keeps objects in a container of Azure Blob Storage. Loads the package `@azure/storage-blob` when the first request is made. */
export class AzureBlobDriver implements StorageDriver {
  readonly name = 'azure-blob';
  readonly identity: string;
  readonly #options: CheckedAzureOptions;
  readonly #requests: AzureRequests;
  readonly #listing: BlobListing;
  readonly #signer: UrlSigner;

  /** Makes a driver for a container that exists. Throws `InvalidOptionError`; nothing is requested yet. */
  constructor(options: AzureBlobDriverOptions) {
    const checked = checkAzureOptions(options);
    this.#options = checked;
    this.#requests = new AzureRequests(checked);
    this.#listing = new BlobListing(this.#requests);
    this.#signer = new UrlSigner(this.#requests, checked);
    this.identity = azureIdentity(checked);
  }

  async get(key: string, options: GetOptions = {}): Promise<GetResult> {
    checkBlobName(key);
    if (options.range !== undefined) clipRange(key, options.range, 0);
    checkNotAborted(key, options.signal);
    return readBlob(this.#requests, key, options);
  }

  async put(key: string, body: PutBody, options: PutOptions): Promise<PutResult> {
    checkBlobName(key);
    checkNotAborted(key, options.signal);
    return isBytes(body) ? this.#putBytes(key, body, options) : this.#putStream(key, body, options);
  }

  /** Sends one put of bytes, once. */
  async #putBytes(key: string, body: Uint8Array, options: PutOptions): Promise<PutResult> {
    const { signal } = options;
    const conditions = conditionsOf(options.if);
    const tally: RequestTally = { requests: 0 };
    const sending = { signal, sizeBytes: body.length, tally, isAnswer: (error: unknown) => isLost(error, conditions) };
    const bytes = Buffer.from(body.buffer, body.byteOffset, body.byteLength);
    const headers = { blobHTTPHeaders: this.#headers(key, options) };
    try {
      const { etag } = await this.#requests.send(
        { operation: 'Put Blob', key },
        sending,
        ({ container }, abortSignal) =>
          container.getBlockBlobClient(key).upload(bytes, bytes.length, { ...headers, conditions, abortSignal }),
      );
      if (etag === undefined) throw new StorageError(key, 'unknown', `The store answered ${key} without an ETag.`);
      return { status: 'written', etag, ...severalOf(tally) };
    } catch (error) {
      if (error instanceof StorageError) throw error;
      return { status: 'lost', ...severalOf(tally) };
    }
  }

  /** Returns the headers that the store keeps with a blob. */
  #headers(key: string, { contentType, cacheControl }: PutOptions): BlobHTTPHeaders {
    const blobCacheControl = this.#options.cacheHeaders ? (cacheControl ?? cacheControlOf(key)) : undefined;
    return defined({ blobContentType: contentType, blobCacheControl });
  }

  async #putStream(key: string, body: AsyncIterable<Uint8Array>, options: PutOptions): Promise<PutResult> {
    const { signal } = options;
    const { environment } = this.#options;
    const tally: RequestTally = { requests: 0 };
    const conditions = conditionsOf(options.if);
    const isAnswer = (error: unknown): boolean => error instanceof BlocksLostError || isLost(error, conditions);
    // Opened first: a client that cannot be had takes nothing from the stream.
    await this.#requests.open();
    try {
      const etag = await uploadStream({
        requests: this.#requests,
        monotonicMs: () => environment.monotonicMs(),
        key,
        chunks: readBody(key, body, signal),
        conditions,
        headers: this.#headers(key, options),
        mark: newId(environment, 16),
        signal,
        tally,
        isAnswer,
      });
      return { status: 'written', etag, requests: tally.requests };
    } catch (error) {
      if (isAnswer(error)) return { status: 'lost', requests: tally.requests };
      if (error instanceof StorageError) throw error;
      checkNotAborted(key, signal, tally.requests === 0 ? 'none' : 'unknown');
      throw new StorageError(key, 'unknown', `Uploading ${key} failed: ${(error as Error).message}`, { cause: error });
    }
  }

  async delete(keys: readonly string[], options: RequestOptions = {}): Promise<DeleteResult> {
    keys.forEach(checkBlobName);
    checkNotAborted(keys[0] ?? '', options.signal);
    const failed: { readonly key: string; readonly message: string }[] = [];
    const tally: RequestTally = { requests: 0 };
    for (let at = 0; at < keys.length; at += deletionsAtOnce) {
      const chunk = keys.slice(at, at + deletionsAtOnce);
      const results = await Promise.allSettled(chunk.map((key) => this.#deleteOne(key, options.signal, tally)));
      for (const [i, result] of results.entries()) {
        if (result.status === 'fulfilled') continue;
        const reason: unknown = result.reason;
        // With a single key, its failure is the failure of the call.
        if (!(reason instanceof StorageError) || reason.outcome !== 'none' || keys.length === 1) throw reason;
        failed.push({ key: chunk[i] as string, message: reason.message });
      }
    }
    return keys.length === 0 || tally.requests === 1 ? { failed } : { failed, requests: tally.requests };
  }

  async #deleteOne(key: string, signal: AbortSignal | undefined, tally: RequestTally): Promise<void> {
    const sending = { signal, tally, isAnswer: isMissing };
    try {
      await this.#requests.send({ operation: 'Delete Blob', key }, sending, ({ container }, abortSignal) =>
        container.getBlobClient(key).delete({ deleteSnapshots: 'include', abortSignal }),
      );
    } catch (error) {
      if (error instanceof StorageError) throw error;
    }
  }

  async list(prefix: string, options: ListOptions = {}): Promise<ListPage> {
    const limit = checkList(prefix, options);
    checkNotAborted(prefix, options.signal);
    return this.#listing.list(prefix, { ...options, limit });
  }

  async copy(from: string, to: string, options: ObjectCopyOptions = {}): Promise<CopyResult> {
    checkBlobName(from);
    checkBlobName(to);
    checkNotAborted(to, options.signal);
    const { environment, cacheHeaders } = this.#options;
    const tally: RequestTally = { requests: 0 };
    try {
      await copyBlob({ requests: this.#requests, environment, cacheHeaders, from, to, options, tally });
      return { status: 'copied', ...severalOf(tally) };
    } catch (error) {
      if (!isCopyRefusal(error)) throw error;
      return { status: 'refused', ...severalOf(tally) };
    }
  }

  /**
   * Returns a URL with a shared access signature. Needs the account's key, or a credential whose role allows user delegation keys.
   */
  async presign(key: string, options: PresignOptions): Promise<string> {
    checkBlobName(key);
    return this.#signer.sign(key, options);
  }

  /** Returns the store's time, by the date of its last response. */
  storeTimeMs(): number | undefined {
    return this.#requests.timeMs;
  }

  describe(): Readonly<Record<string, string>> {
    const { container, endpoint, accountKey, sasToken } = this.#options;
    const withToken = sasToken === undefined ? 'token' : 'shared access signature';
    return {
      container,
      endpoint,
      ...defined({ server: this.#requests.server }),
      authorization: accountKey === undefined ? withToken : 'account key',
      deletion: 'one by one',
    };
  }

  async close(): Promise<void> {
    await this.#requests.close();
  }
}

/** Throws for a key that Azure would change: it takes `.` and `..` out of paths, and makes slashes of backslashes. */
function checkBlobName(key: string): void {
  checkKey(key);
  if (key.includes('\\')) {
    throw new StorageError(
      key,
      'none',
      `The key ${key} has a backslash, which Azure changes into a slash: use another key.`,
    );
  }
  if (!key.includes('.') || !key.split('/').some((part) => part === '.' || part === '..')) return;
  throw new StorageError(
    key,
    'none',
    `The key ${key} has a part . or .., which names of blobs cannot have: use another key.`,
  );
}

function conditionsOf(condition: PutCondition): BlobRequestConditions {
  if (condition === 'any') return {};
  return condition === 'absent' ? { ifNoneMatch: '*' } : { ifMatch: condition.etag };
}

/** Whether an error says that the condition of a put did not hold. Other errors have the same statuses, for instance of leases. */
function isLost(error: unknown, { ifMatch, ifNoneMatch }: BlobRequestConditions): boolean {
  const [code, status] = [codeOf(error), statusOf(error)];
  if (status === 412) return (ifMatch ?? ifNoneMatch) !== undefined && /^(?:Target)?ConditionNotMet$/.test(code);
  if (status === 409) return ifNoneMatch !== undefined && code === 'BlobAlreadyExists';
  // The response of some servers if the blob to replace is missing.
  return status === 404 && ifMatch !== undefined && code === 'BlobNotFound';
}
