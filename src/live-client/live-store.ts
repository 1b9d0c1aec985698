/**
 * A store of one live query: the data that it has now, and calls of those who want to know when that changes. Frameworks read it by
 * `subscribe` and `getSnapshot`.
 */
import { newAbortController, ownSignal } from '../base/abort.ts';
import type { Environment, Timer } from '../base/env.ts';
import { AbortedError, InvalidOptionError } from '../base/errors.ts';
import { describeValue } from '../base/messages.ts';
import { kinds, OptionTable } from '../base/options.ts';

/** The contents of a store at one moment. The same object until something changes. */
export interface LiveSnapshot<T> {
  /**
   * `loading`: nothing has come yet. `live`: the data is current. `reconnecting`: the connection is lost, and the data is what came last.
   * `failed`: the server refuses the query; `retry()` asks again.
   */
  readonly status: 'loading' | 'live' | 'reconnecting' | 'failed';
  /** The rows, or the value; undefined before the first. Rows that did not change are the same objects as before. */
  readonly data: T | undefined;
  /** The state of the database that the data is of. */
  readonly position: number | undefined;
  /** Why the store is reconnecting, or has failed. */
  readonly error: Error | undefined;
}

/** A store of one live query. Its functions may be passed on without the object. */
export interface LiveQueryStore<T> {
  /**
   * Calls `listener` after each change, until the returned function is called. The query is watched while anybody listens. An error that
   * a listener throws is an unhandled rejection of the process or page. Throws `InvalidOptionError` if `listener` is no function.
   */
  readonly subscribe: (listener: () => void) => () => void;
  /** Returns the present snapshot. */
  readonly getSnapshot: () => LiveSnapshot<T>;
  /** Returns the snapshot that a page was rendered with on the server, as long as the page is hydrated with it. */
  readonly getServerSnapshot: () => LiveSnapshot<T>;
  /**
   * Resolves once there is data. Begins to watch if nobody listens. Rejects if the query fails before, and with `AbortedError` once the
   * signal is aborted. As long as the server cannot be reached, or answers with 500 and more, it waits.
   */
  readonly ready: (options?: ReadyOptions) => Promise<LiveSnapshot<T>>;
  /** Asks again after a failure, or at once instead of after a pause. */
  readonly retry: () => void;
}

/** Options of `ready()`. */
export interface ReadyOptions {
  /** Ends the wait, as `AbortSignal.timeout(5000)` does. The error names the error of the last attempt, if one has failed. Default: none. */
  readonly signal?: AbortSignal;
}

const readyOptions: OptionTable<ReadyOptions> = new OptionTable({ signal: kinds.signal });

/** How results come to a store. */
export interface Feed<T> {
  /** Tells of results until `signal` is aborted. Ends with the error that nothing but `retry()` may mend. */
  follow(sink: Sink<T>, signal: AbortSignal): Promise<void>;
}

/** Gets the results of a feed. */
export interface Sink<T> {
  readonly snapshot: LiveSnapshot<T>;
  show(data: T, position: number): void;
  reconnecting(error: Error): void;
}

export interface StoreOptions<T> {
  readonly environment: Environment;
  readonly feed: Feed<T>;
  /** How long the query is watched after the last listener has left. */
  readonly keepMs: number;
  /** The least of that time after `ready()`: whoever has waited begins to listen only then. */
  readonly keepReadyMs?: number;
  readonly initial: LiveSnapshot<T> | undefined;
  /** The store is used from now on, or not any more. A store that has failed is used as long as anybody may look why. */
  readonly onUse?: (isUsed: boolean) => void;
}

const loading: LiveSnapshot<never> = Object.freeze({
  status: 'loading',
  data: undefined,
  position: undefined,
  error: undefined,
});

export class FedStore<T> implements LiveQueryStore<T>, Sink<T> {
  readonly #options: StoreOptions<T>;
  readonly #listeners = new Set<() => void>();
  #snapshot: LiveSnapshot<T>;
  #following: AbortController | undefined;
  #leaving: Timer | undefined;
  #ready: Promise<LiveSnapshot<T>> | undefined;

  constructor(options: StoreOptions<T>) {
    this.#options = options;
    this.#snapshot = options.initial ?? loading;
  }

  get snapshot(): LiveSnapshot<T> {
    return this.#snapshot;
  }

  readonly getSnapshot = (): LiveSnapshot<T> => this.#snapshot;

  readonly getServerSnapshot = (): LiveSnapshot<T> => this.#options.initial ?? this.#snapshot;

  readonly subscribe = (listener: () => void): (() => void) => {
    if (typeof listener !== 'function') {
      throw new InvalidOptionError('listener', `subscribe() takes a function; it is ${describeValue(listener)}.`);
    }
    return this.#listen(listener, this.#options.keepMs);
  };

  readonly ready = async (options: ReadyOptions = {}): Promise<LiveSnapshot<T>> => {
    const { signal } = readyOptions.check('ready()', options);
    if (signal !== undefined) return this.#whenReady(ownSignal(signal));
    this.#ready ??= this.#whenReady().finally(() => {
      this.#ready = undefined;
    });
    return this.#ready;
  };

  readonly retry = (): void => {
    this.#stop();
    if (this.#snapshot.status === 'failed') {
      const { data, position } = this.#snapshot;
      this.#set(data === undefined ? loading : { status: 'reconnecting', data, position, error: undefined });
    }
    if (this.#listeners.size > 0) this.#use();
    else this.#leave(this.#options.keepMs);
  };

  show(data: T, position: number): void {
    const { status, data: shown, position: before } = this.#snapshot;
    if (status === 'live' && shown === data && before === position) return;
    this.#set({ status: 'live', data, position, error: undefined });
  }

  reconnecting(error: Error): void {
    const { data, position } = this.#snapshot;
    if (data === undefined) this.#set({ status: 'loading', data, position, error });
    else this.#set({ status: 'reconnecting', data, position, error });
  }

  /** Ends the watch. Listeners stay, and get nothing. */
  close(): void {
    this.#forget();
  }

  #listen(listener: () => void, keepMs: number): () => void {
    // The same function may be passed twice.
    const own = (): void => listener();
    this.#listeners.add(own);
    this.#use();
    return () => {
      this.#listeners.delete(own);
      this.#leave(keepMs);
    };
  }

  #whenReady(signal?: AbortSignal): Promise<LiveSnapshot<T>> {
    return new Promise((resolve, reject) => {
      const look = (): boolean => {
        const { status, data, error } = this.#snapshot;
        if (data !== undefined) resolve(this.#snapshot);
        // oxlint-disable-next-line typescript/prefer-promise-reject-errors -- a failed store has one
        else if (status === 'failed') reject(error);
        else if (signal?.aborted === true) reject(this.#givenUp(signal));
        else return false;
        return true;
      };
      if (look()) return;
      const { keepMs, keepReadyMs = 0 } = this.#options;
      const changed = (): void => {
        if (!look()) return;
        end();
        signal?.removeEventListener('abort', changed);
      };
      const end = this.#listen(changed, Math.max(keepMs, keepReadyMs));
      signal?.addEventListener('abort', changed);
    });
  }

  #givenUp({ reason }: AbortSignal): AbortedError {
    const { error } = this.#snapshot;
    const last = error === undefined ? '' : ` The last attempt has failed: ${error.message}`;
    const message = `ready() was given up because its signal was aborted before there was data.${last}`;
    return new AbortedError(message, { cause: error ?? reason });
  }

  #use(): void {
    this.#leaving?.cancel();
    this.#leaving = undefined;
    this.#options.onUse?.(true);
    if (this.#following !== undefined || this.#snapshot.status === 'failed') return;
    const following = newAbortController();
    this.#following = following;
    void this.#follow(following.signal);
  }

  #leave(keepMs: number): void {
    if (this.#listeners.size > 0 || this.#leaving !== undefined) return;
    this.#leaving = this.#options.environment.setTimer(() => this.#forget(), keepMs, { background: true });
  }

  #forget(): void {
    this.#stop();
    this.#options.onUse?.(false);
  }

  #stop(): void {
    this.#leaving?.cancel();
    this.#leaving = undefined;
    this.#following?.abort();
    this.#following = undefined;
  }

  async #follow(signal: AbortSignal): Promise<void> {
    try {
      await this.#options.feed.follow(this, signal);
    } catch (error) {
      if (signal.aborted) return;
      const { data, position } = this.#snapshot;
      this.#stop();
      this.#set({ status: 'failed', data, position, error: error as Error });
      this.#leave(this.#options.keepMs);
    }
  }

  #set(snapshot: LiveSnapshot<T>): void {
    this.#snapshot = snapshot;
    // Without those that listen from now on.
    for (const listener of Array.from(this.#listeners)) {
      try {
        listener();
      } catch (error) {
        // An error of the application, and none of the connection: others hear of the change all the same.
        // oxlint-disable-next-line typescript/prefer-promise-reject-errors -- what it has thrown
        void Promise.reject(error);
      }
    }
  }
}
