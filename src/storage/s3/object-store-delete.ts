/**
 * Deletes objects a thousand at a time; one by one if the store does not support multi-object deletes or a key cannot be written
 * in XML.
 */
import { StorageError } from '../../base/errors.ts';
import type { DeleteResult } from '../contract/driver.ts';
import type { RequestTally } from '../contract/request-attempts.ts';
import type { ObjectStoreRequests } from './object-store-requests.ts';

/** Most keys in one request. */
const maxKeys = 1000;
/** Concurrent requests when keys are deleted one by one. */
const singlesAtOnce = 16;

interface Failure {
  readonly key: string;
  readonly message: string;
}

/** Whether a key can be written in XML 1.0, which has no characters for most control codes. */
function fitsInXml(key: string): boolean {
  for (let at = 0; at < key.length; at++) {
    const unit = key.charCodeAt(at);
    if (unit < 0x20 || unit === 0x7f || unit === 0xfffe || unit === 0xffff) return false;
  }
  return true;
}

/** Deletes objects of a bucket, and remembers whether the store supports multi-object deletes. */
export class ObjectDeletion {
  readonly #requests: ObjectStoreRequests;
  readonly #bucket: string;
  /** Whether the store has refused a request with many keys. */
  #takesOne = false;

  constructor(requests: ObjectStoreRequests, bucket: string) {
    this.#requests = requests;
    this.#bucket = bucket;
  }

  /** The way of deleting, for reports. */
  get manner(): string {
    return this.#takesOne ? 'one by one' : 'many at once';
  }

  async delete(keys: readonly string[], signal: AbortSignal | undefined): Promise<DeleteResult> {
    // Opens the client first: a failure to do so must not count as a refusal of many keys.
    await this.#requests.open();
    const tally: RequestTally = { requests: 0 };
    const failed: Failure[] = [];
    const singles = keys.length === 1 ? [...keys] : keys.filter((key) => !fitsInXml(key));
    const many = keys.length === 1 ? [] : keys.filter(fitsInXml);
    for (let at = 0; at < many.length; at += maxKeys) {
      const chunk = many.slice(at, at + maxKeys);
      if (this.#takesOne || !(await this.#deleteMany(chunk, signal, tally, failed))) singles.push(...chunk);
    }
    for (let at = 0; at < singles.length; at += singlesAtOnce) {
      const chunk = singles.slice(at, at + singlesAtOnce);
      const results = await Promise.allSettled(chunk.map((key) => this.#deleteOne(key, signal, tally)));
      for (const [i, result] of results.entries()) {
        if (result.status === 'fulfilled') continue;
        const reason: unknown = result.reason;
        // With a single key, its failure is the failure of the call.
        if (!(reason instanceof StorageError) || reason.outcome !== 'none' || keys.length === 1) throw reason;
        failed.push({ key: chunk[i] as string, message: reason.message });
      }
    }
    return tally.requests === 1 ? { failed } : { failed, requests: tally.requests };
  }

  async #deleteOne(key: string, signal: AbortSignal | undefined, tally: RequestTally): Promise<void> {
    const request = { operation: 'DeleteObject', bucket: this.#bucket, key };
    await this.#requests.send(request, { signal, tally }, (api, inner) => api.deleteObject({ Key: key }, inner));
  }

  /** Deletes several keys in one request. Resolves with false if the store does not support that. */
  async #deleteMany(
    keys: readonly string[],
    signal: AbortSignal | undefined,
    tally: RequestTally,
    failed: Failure[],
  ): Promise<boolean> {
    const request = { operation: 'DeleteObjects', bucket: this.#bucket, key: keys[0] ?? '' };
    try {
      const result = await this.#requests.send(request, { signal, tally }, (api, inner) =>
        api.deleteObjects(keys, inner),
      );
      for (const { Key, Code, Message } of result.Errors) {
        failed.push({ key: Key ?? '', message: [Code, Message].filter((part) => part !== undefined).join(': ') });
      }
      return true;
    } catch (error) {
      const isRefused = error instanceof StorageError && error.outcome === 'none' && error.reason === undefined;
      if (!isRefused || isBucketMissing(error)) throw error;
      this.#takesOne = true;
      return false;
    }
  }
}

function isBucketMissing(error: StorageError): boolean {
  return (error.cause as { name?: string } | undefined)?.name === 'NoSuchBucket';
}
