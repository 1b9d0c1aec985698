/**
 * Sends requests to a container: opens the client when it is first needed, gives every request a deadline, and retries only the
 * requests that the caller says are repeatable.
 */
import type { StorageError } from '../../base/errors.ts';
import { ClientInUse } from '../contract/client-in-use.ts';
import { RequestAttempts } from '../contract/request-attempts.ts';
import type { AttemptOptions } from '../contract/request-attempts.ts';
import { openClient } from './azure-client.ts';
import type { OpenClient } from './azure-client.ts';
import { isMisdated, notLoaded, toStorageError } from './azure-errors.ts';
import type { FailedRequest } from './azure-errors.ts';
import type { CheckedAzureOptions } from './azure-options.ts';

/** A request: its operation, and the key that it is about. */
export type RequestName = Omit<FailedRequest, 'container'>;

/** The requests of a driver, and the clients that they go through. */
export class AzureRequests {
  readonly container: string;
  readonly #attempts: RequestAttempts;
  readonly #client: ClientInUse<OpenClient>;

  constructor(options: CheckedAzureOptions) {
    this.container = options.container;
    this.#attempts = new RequestAttempts(options.environment);
    this.#client = new ClientInUse(async () => {
      try {
        return await openClient(options);
      } catch (error) {
        throw notLoaded(options.container, error);
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

  /** Opens the client, and loads the SDK at the first call. Rejects with `StorageError`; the next call tries again. */
  open(): Promise<OpenClient> {
    return this.#client.open();
  }

  /** Closes the client once its running requests have ended. Does not wait for that. */
  close(): Promise<void> {
    return this.#client.close();
  }

  /**
   * Sends a request. Rejects with `StorageError`, except for errors that `isAnswer` accepts, which are thrown as they
   * are for the caller to read.
   */
  send<T>(
    name: RequestName,
    options: AttemptOptions,
    attempt: (open: OpenClient, signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    const { container } = this;
    const failure = (error: unknown): StorageError => toStorageError({ ...name, container }, error);
    return this.#client.use((open) =>
      this.#attempts.repeat(options, () =>
        this.#attempts.once({ ...name, store: container }, options, failure, async (signal, sending) => {
          const isTimeKnown = open.timeMs() !== undefined;
          sending();
          try {
            return await attempt(open, signal);
          } catch (error) {
            // The store has stated its time now, and the next request is signed by it.
            if (isTimeKnown || signal.aborted || !isMisdated(error)) throw error;
            sending();
            return attempt(open, signal);
          }
        }),
      ),
    );
  }

  /**
   * Decides whether to send a failed request again that was first sent at `firstSentMs` on the monotonic clock. If so, pauses
   * first.
   */
  isWorthAnother(error: unknown, firstSentMs: number, tried: number, signal?: AbortSignal): Promise<boolean> {
    return this.#attempts.isWorthAnother(error, firstSentMs, tried, signal);
  }
}
