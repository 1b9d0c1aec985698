/** Attempts at the requests of a driver: a deadline for each, and another attempt where a request may be repeated. */
import { Deadline } from '../../base/abort.ts';
import type { Environment } from '../../base/env.ts';
import { StorageError } from '../../base/errors.ts';
import { Patience } from './retries.ts';

/** Counts the requests that a call takes. */
export interface RequestTally {
  requests: number;
}

/** Returns the requests of a call for its result, if there were several: one needs no mention. */
export function severalOf({ requests }: RequestTally): Partial<RequestTally> {
  return requests > 1 ? { requests } : {};
}

/** How a request is sent. */
export interface AttemptOptions {
  readonly signal?: AbortSignal | undefined;
  /** Size of the body, or of the object that the store copies: a large one has more time. */
  readonly sizeBytes?: number;
  /** Attempts, the first included. Default 1. */
  readonly attempts?: number;
  readonly tally?: RequestTally;
  /** Whether an error is an answer that the caller reads, such as a status 404: it is thrown as it is, and not retried. */
  readonly isAnswer?: (error: unknown) => boolean;
}

/** The request of an attempt, for errors. */
export interface AttemptedRequest {
  /** The operation by the name that the store has for it. */
  readonly operation: string;
  readonly key: string;
  /** The bucket or container, which errors name if the request is not about a key. */
  readonly store: string;
}

const requestTimeoutMs = 30_000;
/** The time limit grows by a millisecond per this many bytes of a body: 0.5 MB per second. */
const slowBytesPerMs = 500;
const firstPauseMs = 20;

/** Makes the attempts of a driver's requests. */
export class RequestAttempts {
  readonly #environment: Environment;
  readonly #patience: Patience;

  constructor(environment: Environment) {
    this.#environment = environment;
    this.#patience = new Patience(environment);
  }

  /**
   * Sends a request up to `attempts` times, and for longer if the store is away for some seconds. Only failures to get an answer are
   * repeated: `sendOnce` rejects with `StorageError` for these, and with other errors for the caller to read.
   */
  async repeat<T>({ attempts = 1, signal }: AttemptOptions, sendOnce: () => Promise<T>): Promise<T> {
    const firstSentMs = this.#environment.monotonicMs();
    for (let tried = 1; ; tried++) {
      try {
        const result = await sendOnce();
        this.#patience.answered();
        return result;
      } catch (error) {
        if (!(error instanceof StorageError)) this.#patience.answered();
        const isFinal = attempts === 1 || signal?.aborted === true || !(error instanceof StorageError);
        if (isFinal || error.reason === 'forbidden') throw error;
        if (tried >= attempts && !this.#patience.isLeft(error, firstSentMs)) throw error;
        if (!(await this.pause(tried, signal))) throw error;
      }
    }
  }

  /**
   * Decides whether to send a failed request again that was first sent at `firstSentMs` on the monotonic clock. If so, pauses
   * first.
   */
  async isWorthAnother(error: unknown, firstSentMs: number, tried: number, signal?: AbortSignal): Promise<boolean> {
    if (signal?.aborted === true || !this.#patience.isLeft(error, firstSentMs)) return false;
    return this.pause(tried, signal);
  }

  /** Pauses before another attempt. Resolves with false if the signal is aborted: then there must not be another one. */
  pause(tried: number, signal: AbortSignal | undefined): Promise<boolean> {
    return this.#patience.pause(firstPauseMs, tried, signal);
  }

  /**
   * Makes one attempt within its deadline. Rejects with the errors that `isAnswer` accepts, as they are, and with what `failure`
   * makes of others. If the deadline or the signal ends the attempt, it rejects with a `StorageError` whose outcome is `unknown`, or
   * `none` before `attempt` has called `sending`, which also counts the request.
   */
  async once<T>(
    { operation, key, store }: AttemptedRequest,
    { signal, sizeBytes = 0, tally, isAnswer }: AttemptOptions,
    failure: (error: unknown) => StorageError,
    attempt: (signal: AbortSignal, sending: () => void) => Promise<T>,
  ): Promise<T> {
    const limitMs = requestTimeoutMs + sizeBytes / slowBytesPerMs;
    const deadline = new Deadline(this.#environment, `${operation} of ${key || store}`, limitMs, signal);
    let wasSent = false;
    try {
      return await attempt(deadline.signal, () => {
        wasSent = true;
        if (tally !== undefined) tally.requests++;
      });
    } catch (error) {
      if (deadline.signal.aborted) {
        const reason = deadline.signal.reason as Error;
        throw new StorageError(key, wasSent ? 'unknown' : 'none', reason.message, { cause: reason });
      }
      throw isAnswer?.(error) === true ? error : failure(error);
    } finally {
      deadline.clear();
    }
  }
}
