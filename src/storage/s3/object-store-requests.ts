/**
 * Sends requests to a bucket: opens the client when it is first needed, gives every request a deadline, and repeats only
 * what the caller says may be repeated.
 */
import { Deadline } from '../../base/abort.ts';
import type { Environment } from '../../base/env.ts';
import { StorageError } from '../../base/errors.ts';
import { Patience, isOutage } from '../contract/put-repeatedly.ts';
import { openClient } from './object-store-client.ts';
import type { ClientOptions, OpenClient } from './object-store-client.ts';
import { isConflict, isSkewCorrected, notLoaded, toStorageError } from './object-store-errors.ts';
import type { FailedRequest } from './object-store-errors.ts';

/** Counts the requests that a call takes. */
export interface RequestTally {
  requests: number;
}

/** How a request is sent. */
export interface SendOptions {
  readonly signal?: AbortSignal | undefined;
  /** Bytes that it carries: a large body may take longer. */
  readonly sizeBytes?: number;
  /** How often it is tried in all. Default 1. */
  readonly attempts?: number;
  readonly tally?: RequestTally;
  /** Errors that are answers: their value is what the request resolves with. */
  readonly isAnswer?: (error: unknown) => boolean;
}

const requestTimeoutMs = 30_000;
/** A body may take a millisecond more for every so many bytes: 0.5 MB a second. */
const slowBytesPerMs = 500;
const firstPauseMs = 20;
/** Attempts at a write that meets others of the same key. */
const conflictAttempts = 6;

export class ObjectStoreRequests {
  readonly #environment: Environment;
  readonly #clientOptions: ClientOptions;
  readonly #bucket: string;
  readonly #patience: Patience;
  #open: Promise<OpenClient> | undefined;
  /** The open client, for those who cannot wait. */
  #opened: OpenClient | undefined;
  /** How many requests each client has under way. */
  readonly #underWay = new Map<OpenClient, number>();
  /** Clients that are closed as soon as they have none. */
  readonly #closing = new Set<OpenClient>();

  constructor(clientOptions: ClientOptions & { readonly bucket: string }, environment: Environment) {
    this.#clientOptions = clientOptions;
    this.#bucket = clientOptions.bucket;
    this.#environment = environment;
    this.#patience = new Patience(environment);
  }

  /** What the store calls itself, where it does. */
  get server(): string | undefined {
    return this.#opened?.server();
  }

  /** The store's time, once it has answered. */
  get timeMs(): number | undefined {
    return this.#opened?.timeMs();
  }

  /** The client; loads the SDK at the first call. Rejects with `StorageError`; the next call tries again. */
  async open(): Promise<OpenClient> {
    this.#open ??= openClient(this.#clientOptions).then((opened) => (this.#opened = opened));
    const open = this.#open;
    try {
      return await open;
    } catch (error) {
      if (this.#open === open) this.#open = undefined;
      throw notLoaded(this.#bucket, error);
    }
  }

  /** Loads a part of the SDK. Rejects with `StorageError`. */
  async load<T>(part: () => Promise<T>): Promise<T> {
    try {
      return await part();
    } catch (error) {
      throw notLoaded(this.#bucket, error);
    }
  }

  /**
   * Closes the client, once its requests under way have ended: other databases may share the driver. That is not waited for. The next
   * request opens another.
   */
  async close(): Promise<void> {
    const open = this.#open;
    this.#open = undefined;
    // One that could not be opened has nothing to close.
    const client = await open?.catch(() => undefined);
    if (client === undefined) return;
    this.#closing.add(client);
    this.#closeUnused(client);
  }

  #closeUnused(client: OpenClient): void {
    if (this.#underWay.has(client) || !this.#closing.delete(client)) return;
    client.destroy();
  }

  /** Counts a request of a client until it has ended. */
  async #counted<T>(client: OpenClient, request: () => Promise<T>): Promise<T> {
    this.#underWay.set(client, (this.#underWay.get(client) ?? 0) + 1);
    try {
      return await request();
    } finally {
      const left = (this.#underWay.get(client) ?? 1) - 1;
      if (left > 0) this.#underWay.set(client, left);
      else this.#underWay.delete(client);
      this.#closeUnused(client);
    }
  }

  /**
   * Sends a request. Rejects with `StorageError`, except for errors that `isAnswer` accepts, which are thrown as they
   * are for the caller to read.
   */
  async send<T>(
    request: FailedRequest,
    options: SendOptions,
    attempt: (open: OpenClient, signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    const open = await this.open();
    return this.#counted(open, () => this.#sendTo(open, request, options, attempt));
  }

  async #sendTo<T>(
    open: OpenClient,
    request: FailedRequest,
    options: SendOptions,
    attempt: (open: OpenClient, signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    const { attempts = 1, signal } = options;
    const firstSentMs = this.#environment.monotonicMs();
    for (let tried = 1; ; tried++) {
      try {
        const result = await this.#sendOnce(request, options, (inner) => attempt(open, inner));
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

  /** Whether a request that failed is to be made again, which was made first at a time of the monotonic clock. Pauses then. */
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
          // Both were refused without being looked at: for the date, or since another write of the key was under way.
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

// The last request of an upload, which makes the object: its answer may be lost, and the stream cannot be read again. Before
// the upload is given up, the store is asked whether the object is there. Each upload marks its object, so that nobody's else is
// taken for it, whatever ETags the store makes.

/** Name of the metadata that marks the object of an upload. */
export const uploadMark = 'storedb-upload';

export interface FinalRequest<T> {
  /** Sends it once. To send it again does no harm: it makes the same object, or finds that something is there. */
  readonly send: () => Promise<T>;
  /** What the request would have answered, if the object of this upload is there. */
  readonly look: () => Promise<T | undefined>;
  /** Whether an error says that the condition of the write did not hold. */
  readonly isAnswer: (error: unknown) => boolean;
  /** Whether to send it again after such an error. Pauses then. `tried`: how often it was sent. */
  readonly isWorthAnother: (error: unknown, tried: number) => Promise<boolean>;
}

/** Resolves once the object is there for certain. Rejects with the first failure that left it open, if there was one. */
export async function sendFinal<T>({ send, look, isAnswer, isWorthAnother }: FinalRequest<T>): Promise<T> {
  let open: StorageError | undefined;
  for (let tried = 1; ; tried++) {
    try {
      return await send();
    } catch (error) {
      const isUnknown = error instanceof StorageError && error.outcome === 'unknown';
      // Nothing of it can be there yet.
      if (open === undefined && !isUnknown && !isOutage(error)) throw error;
      if (isUnknown) open ??= error;
      const found = await look().catch(() => undefined);
      if (found !== undefined) return found;
      // What is there is somebody else's, and keeps out whatever of this one may still be on its way.
      if (isAnswer(error)) throw error;
      if (!(await isWorthAnother(error, tried))) throw open ?? error;
    }
  }
}
