/**
 * Sends requests to a bucket: opens the connections when they are first needed, gives every request a deadline, and retries only
 * the requests that the caller says are repeatable.
 */
import type { StorageError } from '../../base/errors.ts';
import { ClientInUse } from '../contract/client-in-use.ts';
import { RequestAttempts } from '../contract/request-attempts.ts';
import type { AttemptOptions } from '../contract/request-attempts.ts';
import { correctionOf, isConflict, notLoaded, toStorageError } from './object-store-errors.ts';
import type { FailedRequest } from './object-store-errors.ts';
import { openS3Api } from './open-s3-api.ts';
import type { BucketSettings } from './open-s3-api.ts';
import type { S3Api } from './s3-api.ts';

/** Attempts at a write that conflicts with other writes of the same key. */
const conflictAttempts = 6;

/** Sends the requests of a bucket. */
export type RequestSender = Pick<ObjectStoreRequests, 'send'>;

type Attempt<T> = (api: S3Api, signal: AbortSignal) => Promise<T>;

/** The requests of a driver, and the connections that they go through. */
export class ObjectStoreRequests {
  readonly #attempts: RequestAttempts;
  readonly #client: ClientInUse<S3Api>;

  constructor(settings: BucketSettings) {
    this.#attempts = new RequestAttempts(settings.environment);
    this.#client = new ClientInUse(async () => {
      try {
        return await openS3Api(settings);
      } catch (error) {
        throw notLoaded(settings.bucket, error);
      }
    });
  }

  /** The header `Server` of the store's responses, if there is one. */
  get server(): string | undefined {
    return this.#client.opened?.server();
  }

  /** The store's time, once it has responded. */
  get timeMs(): number | undefined {
    return this.#client.opened?.timeMs();
  }

  /** Opens the connections, and loads the modules for them at the first call. Rejects with `StorageError`; the next call tries again. */
  open(): Promise<S3Api> {
    return this.#client.open();
  }

  /** Closes the connections once their running requests and uploads have ended. Does not wait for that. */
  close(): Promise<void> {
    return this.#client.close();
  }

  /**
   * Sends a request. Rejects with `StorageError`, except for errors that `isAnswer` accepts, which are thrown as they
   * are for the caller to read.
   */
  send<T>(request: FailedRequest, options: AttemptOptions, attempt: Attempt<T>): Promise<T> {
    return this.#client.use((api) => this.#sendTo(api, request, options, attempt));
  }

  /** Runs several requests on the same connections, which stay open until they have all ended, also if they are closed meanwhile. */
  keepOpen<T>(run: (requests: RequestSender) => Promise<T>): Promise<T> {
    return this.#client.use((api) =>
      run({ send: (request, options, attempt) => this.#sendTo(api, request, options, attempt) }),
    );
  }

  /**
   * Decides whether to send a failed request again that was first sent at `firstSentMs` on the monotonic clock. If so, pauses
   * first.
   */
  isWorthAnother(error: unknown, firstSentMs: number, tried: number, signal?: AbortSignal): Promise<boolean> {
    return this.#attempts.isWorthAnother(error, firstSentMs, tried, signal);
  }

  #sendTo<T>(api: S3Api, request: FailedRequest, options: AttemptOptions, attempt: Attempt<T>): Promise<T> {
    const failure = (error: unknown): StorageError => toStorageError(request, error);
    const named = { ...request, store: request.bucket };
    return this.#attempts.repeat(options, () =>
      this.#attempts.once(named, options, failure, async (signal, sending) => {
        const corrected = new Set<string>();
        for (let tried = 1; ; tried++) {
          try {
            sending();
            return await attempt(api, signal);
          } catch (error) {
            if (signal.aborted) throw error;
            // In all cases the store refused the request without effect: for its region, its credentials or its date, or because
            // another write of the key was under way.
            const correction = correctionOf(error);
            if (correction !== undefined && !corrected.has(correction)) {
              corrected.add(correction);
              continue;
            }
            const isConflicting = tried < conflictAttempts && isConflict(error);
            if (!isConflicting || options.isAnswer?.(error) === true) throw error;
            if (!(await this.#attempts.pause(tried, signal))) throw error;
          }
        }
      }),
    );
  }
}

/** Name of the metadata that marks the object of an upload. The mark identifies it, whatever ETags the store makes. */
export const uploadMark = 'storedb-upload';
