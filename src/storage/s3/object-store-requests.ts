/**
 * Sends requests to a bucket: opens the connections when they are first needed, gives every request a deadline, and retries only
 * the requests that the caller says are repeatable.
 */
import { Deadline } from '../../base/abort.ts';
import type { Environment } from '../../base/env.ts';
import { StorageError } from '../../base/errors.ts';
import { Patience } from '../contract/retries.ts';
import { isConflict, isSkewCorrected, notLoaded, toStorageError } from './object-store-errors.ts';
import type { FailedRequest } from './object-store-errors.ts';
import { openS3Api } from './open-s3-api.ts';
import type { BucketSettings } from './open-s3-api.ts';
import type { S3Api } from './s3-api.ts';

/** Counts the requests that a call takes. */
export interface RequestTally {
  requests: number;
}

/** How a request is sent. */
export interface SendOptions {
  readonly signal?: AbortSignal | undefined;
  /** Size of the body: a large body has more time. */
  readonly sizeBytes?: number;
  /** Attempts, the first included. Default 1. */
  readonly attempts?: number;
  readonly tally?: RequestTally;
  /** Whether an error is an answer that the caller reads, such as a status 404: it is thrown as it is, and not retried. */
  readonly isAnswer?: (error: unknown) => boolean;
}

const requestTimeoutMs = 30_000;
/** The time limit grows by a millisecond per this many bytes of a body: 0.5 MB per second. */
const slowBytesPerMs = 500;
const firstPauseMs = 20;
/** Attempts at a write that conflicts with other writes of the same key. */
const conflictAttempts = 6;

/** Sends the requests of a bucket. */
export type RequestSender = Pick<ObjectStoreRequests, 'send'>;

/** The requests of a driver, and the connections that they go through. */
export class ObjectStoreRequests {
  readonly #environment: Environment;
  readonly #settings: BucketSettings;
  readonly #patience: Patience;
  #open: Promise<S3Api> | undefined;
  /** The open operations, for synchronous getters. */
  #opened: S3Api | undefined;
  /** Number of running requests and uploads by their connections. */
  readonly #underWay = new Map<S3Api, number>();
  /** Connections to close as soon as they have no running requests. */
  readonly #closing = new Set<S3Api>();

  constructor(settings: BucketSettings) {
    this.#settings = settings;
    this.#environment = settings.environment;
    this.#patience = new Patience(settings.environment);
  }

  /** The header `Server` of the store's responses, if there is one. */
  get server(): string | undefined {
    return this.#opened?.server();
  }

  /** The store's time, once it has responded. */
  get timeMs(): number | undefined {
    return this.#opened?.timeMs();
  }

  /** Opens the connections, and loads the modules for them at the first call. Rejects with `StorageError`; the next call tries again. */
  async open(): Promise<S3Api> {
    this.#open ??= openS3Api(this.#settings).then((opened) => (this.#opened = opened));
    const open = this.#open;
    try {
      return await open;
    } catch (error) {
      if (this.#open === open) this.#open = undefined;
      throw notLoaded(this.#settings.bucket, error);
    }
  }

  /**
   * Closes the connections once their running requests and uploads have ended, because other databases may share the driver. Does
   * not wait for that. The next request opens others.
   */
  async close(): Promise<void> {
    const open = this.#open;
    this.#open = undefined;
    // What could not be opened needs no closing.
    const api = await open?.catch(() => undefined);
    if (api === undefined) return;
    this.#closing.add(api);
    this.#closeUnused(api);
  }

  #closeUnused(api: S3Api): void {
    if (this.#underWay.has(api) || !this.#closing.delete(api)) return;
    api.close();
  }

  /** Runs a request or an upload, and counts it while it runs. */
  async #counted<T>(api: S3Api, run: () => Promise<T>): Promise<T> {
    this.#underWay.set(api, (this.#underWay.get(api) ?? 0) + 1);
    try {
      return await run();
    } finally {
      const left = (this.#underWay.get(api) ?? 1) - 1;
      if (left > 0) this.#underWay.set(api, left);
      else this.#underWay.delete(api);
      this.#closeUnused(api);
    }
  }

  /**
   * Sends a request. Rejects with `StorageError`, except for errors that `isAnswer` accepts, which are thrown as they
   * are for the caller to read.
   */
  async send<T>(
    request: FailedRequest,
    options: SendOptions,
    attempt: (api: S3Api, signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    const api = await this.open();
    return this.#counted(api, () => this.#sendTo(api, request, options, attempt));
  }

  /** Runs several requests on the same connections, which stay open until they have all ended, also if they are closed meanwhile. */
  async keepOpen<T>(run: (requests: RequestSender) => Promise<T>): Promise<T> {
    const api = await this.open();
    return this.#counted(api, () =>
      run({ send: (request, options, attempt) => this.#sendTo(api, request, options, attempt) }),
    );
  }

  async #sendTo<T>(
    api: S3Api,
    request: FailedRequest,
    options: SendOptions,
    attempt: (api: S3Api, signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    const { attempts = 1, signal } = options;
    const firstSentMs = this.#environment.monotonicMs();
    for (let tried = 1; ; tried++) {
      try {
        const result = await this.#sendOnce(request, options, (inner) => attempt(api, inner));
        this.#patience.answered();
        return result;
      } catch (error) {
        if (!(error instanceof StorageError)) this.#patience.answered();
        const isFinal = attempts === 1 || signal?.aborted === true || !(error instanceof StorageError);
        if (isFinal || error.reason === 'forbidden') throw error;
        if (tried >= attempts && !this.#patience.isLeft(error, firstSentMs)) throw error;
        if (!(await this.#pause(tried, signal))) throw error;
      }
    }
  }

  /**
   * Decides whether to send a failed request again that was first sent at `firstSentMs` on the monotonic clock. If so, pauses
   * first.
   */
  async isWorthAnother(error: unknown, firstSentMs: number, tried: number, signal?: AbortSignal): Promise<boolean> {
    if (signal?.aborted === true || !this.#patience.isLeft(error, firstSentMs)) return false;
    return this.#pause(tried, signal);
  }

  #pause(tried: number, signal: AbortSignal | undefined): Promise<boolean> {
    return this.#patience.pause(firstPauseMs, tried, signal);
  }

  async #sendOnce<T>(
    request: FailedRequest,
    { signal, sizeBytes = 0, tally, isAnswer }: SendOptions,
    attempt: (signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    const what = `${request.operation} of ${request.key || request.bucket}`;
    const deadline = new Deadline(this.#environment, what, requestTimeoutMs + sizeBytes / slowBytesPerMs, signal);
    try {
      for (let tried = 1; ; tried++) {
        try {
          if (tally !== undefined) tally.requests++;
          return await attempt(deadline.signal);
        } catch (error) {
          if (deadline.signal.aborted) throw gaveUp(request, deadline.signal.reason as Error);
          if (isAnswer?.(error) === true) throw error;
          // In both cases the store refused the request without effect: for its date, or because another write of the key was
          // under way.
          const mayRepeat = (tried === 1 && isSkewCorrected(error)) || (tried < conflictAttempts && isConflict(error));
          if (!mayRepeat) throw toStorageError(request, error);
          if (!(await this.#pause(tried, deadline.signal))) throw gaveUp(request, deadline.signal.reason as Error);
        }
      }
    } finally {
      deadline.clear();
    }
  }
}

function gaveUp({ key }: FailedRequest, reason: Error): StorageError {
  return new StorageError(key, 'unknown', reason.message, { cause: reason });
}

/** Name of the metadata that marks the object of an upload. The mark identifies it, whatever ETags the store makes. */
export const uploadMark = 'storedb-upload';
