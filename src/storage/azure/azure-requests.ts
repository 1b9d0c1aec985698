/**
 * Sends requests to a container: opens the client when it is first needed, gives every request a deadline, and retries only the
 * requests that the caller says are repeatable.
 */
import { Deadline } from '../../base/abort.ts';
import { StorageError } from '../../base/errors.ts';
import { Patience } from '../contract/retries.ts';
import { openClient } from './azure-client.ts';
import type { OpenClient } from './azure-client.ts';
import { notLoaded, toStorageError } from './azure-errors.ts';
import type { FailedRequest } from './azure-errors.ts';
import type { CheckedAzureOptions } from './azure-options.ts';

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

/** A request: its operation, and the key that it is about. */
export type RequestName = Omit<FailedRequest, 'container'>;

type Attempt<T> = (open: OpenClient, signal: AbortSignal) => Promise<T>;

const requestTimeoutMs = 30_000;
/** The time limit grows by a millisecond per this many bytes of a body: 0.5 MB per second. */
const slowBytesPerMs = 500;
const firstPauseMs = 20;

/** The requests of a driver, and the clients that they go through. */
export class AzureRequests {
  readonly container: string;
  readonly #options: CheckedAzureOptions;
  readonly #patience: Patience;
  #open: Promise<OpenClient> | undefined;
  /** The open client, for synchronous getters. */
  #opened: OpenClient | undefined;
  /** Number of running requests per client. */
  readonly #underWay = new Map<OpenClient, number>();
  /** Clients to close as soon as they have no running requests. */
  readonly #closing = new Set<OpenClient>();

  constructor(options: CheckedAzureOptions) {
    this.#options = options;
    this.container = options.container;
    this.#patience = new Patience(options.environment);
  }

  /** The header `Server` of the store's responses, if there is one. */
  get server(): string | undefined {
    return this.#opened?.server();
  }

  /** The store's time, once it has responded. */
  get timeMs(): number | undefined {
    return this.#opened?.timeMs();
  }

  /** Opens the client, and loads the SDK at the first call. Rejects with `StorageError`; the next call tries again. */
  async open(): Promise<OpenClient> {
    this.#open ??= openClient(this.#options).then((opened) => (this.#opened = opened));
    const open = this.#open;
    try {
      return await open;
    } catch (error) {
      if (this.#open === open) this.#open = undefined;
      throw notLoaded(this.container, error);
    }
  }

  /**
   * Closes the client once its running requests have ended, because other databases may share the driver. Does not wait for that.
   * The next request opens another client.
   */
  async close(): Promise<void> {
    const open = this.#open;
    this.#open = undefined;
    // A client that could not be opened has nothing to close.
    const client = await open?.catch(() => undefined);
    if (client === undefined) return;
    this.#closing.add(client);
    this.#closeUnused(client);
  }

  #closeUnused(client: OpenClient): void {
    if (this.#underWay.has(client) || !this.#closing.delete(client)) return;
    client.destroy();
  }

  /**
   * Sends a request. Rejects with `StorageError`, except for errors that `isAnswer` accepts, which are thrown as they
   * are for the caller to read.
   */
  async send<T>(name: RequestName, options: SendOptions, attempt: Attempt<T>): Promise<T> {
    const open = await this.open();
    this.#underWay.set(open, (this.#underWay.get(open) ?? 0) + 1);
    try {
      return await this.#sendTo(open, { ...name, container: this.container }, options, attempt);
    } finally {
      const left = (this.#underWay.get(open) ?? 1) - 1;
      if (left > 0) this.#underWay.set(open, left);
      else this.#underWay.delete(open);
      this.#closeUnused(open);
    }
  }

  async #sendTo<T>(open: OpenClient, request: FailedRequest, options: SendOptions, attempt: Attempt<T>): Promise<T> {
    const { attempts = 1, signal } = options;
    const firstSentMs = this.#options.environment.monotonicMs();
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
        if (!(await this.#patience.pause(firstPauseMs, tried, signal))) throw error;
      }
    }
  }

  /**
   * Decides whether to send a failed request again that was first sent at `firstSentMs` on the monotonic clock. If so, pauses
   * first.
   */
  async isWorthAnother(error: unknown, firstSentMs: number, tried: number, signal?: AbortSignal): Promise<boolean> {
    if (signal?.aborted === true || !this.#patience.isLeft(error, firstSentMs)) return false;
    return this.#patience.pause(firstPauseMs, tried, signal);
  }

  async #sendOnce<T>(
    request: FailedRequest,
    { signal, sizeBytes = 0, tally, isAnswer }: SendOptions,
    attempt: (signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    const what = `${request.operation} of ${request.key || request.container}`;
    const timeoutMs = requestTimeoutMs + sizeBytes / slowBytesPerMs;
    const deadline = new Deadline(this.#options.environment, what, timeoutMs, signal);
    try {
      if (tally !== undefined) tally.requests++;
      return await attempt(deadline.signal);
    } catch (error) {
      if (deadline.signal.aborted) {
        const reason = deadline.signal.reason as Error;
        throw new StorageError(request.key, 'unknown', reason.message, { cause: reason });
      }
      if (isAnswer?.(error) === true) throw error;
      throw toStorageError(request, error);
    } finally {
      deadline.clear();
    }
  }
}
