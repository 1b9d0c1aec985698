/**
 * Channels of `node:diagnostics_channel` on which the package tells what it does, each a `TracingChannel`: `store-db:flush` and the
 * others. Where the runtime has none, and while nobody listens, nothing is told.
 */
import { tracingChannel } from '#platform';
import { realEnvironment } from './env.ts';

/** The payload of every event. A runtime adds `result` or `error` before the work's last event. */
export interface TracedWork {
  /** The prefix of the database. */
  readonly database: string;
  /** When it began, by `performance.now()`. */
  readonly startedMs: number;
}

/** The payload of `store-db:flush`. */
export interface TracedFlush extends TracedWork {
  /** The tables that the flush changes, blobs included. */
  readonly tables: readonly string[];
  /** About how many bytes the changes take in a commit. */
  readonly sizeBytes: number;
}

/** The payload of `store-db:get`: only gets that memory does not answer are told. */
export interface TracedGet extends TracedWork {
  readonly table: string;
}

/** The payload of `store-db:query`: a query, or one portion of a stream. */
export interface TracedQuery extends TracedWork {
  readonly table: string;
  /** Whether it needed more than memory. Known at its last event; queries that did not are told only to those who listen to `start`. */
  waited: boolean;
}

/** The payload of `store-db:merge`. */
export interface TracedMerge extends TracedWork {
  /** How many commits are merged. */
  readonly commits: number;
  /** The last of them. */
  readonly position: number;
}

/** The payload of `store-db:gc`. */
export interface TracedGc extends TracedWork {
  readonly dryRun: boolean;
}

/** The payload of `store-db:migration`: one portion of the work, which may be that of an index. */
export interface TracedMigration extends TracedWork {
  /** Its name, in words. */
  readonly work: string;
}

/** The payload of `store-db:request`: one attempt of a request to the store. */
export interface TracedRequest extends TracedWork {
  readonly kind: 'get' | 'put' | 'copy' | 'delete' | 'list';
  /** The key; for `list` the prefix, for `delete` the first key, for `copy` the key of the copy. */
  readonly key: string;
}

/** Returns the time for `startedMs` of a payload, of work that begins now. */
export function startOfWork(): number {
  return realEnvironment.monotonicMs();
}

export class WorkChannel<Payload extends TracedWork> {
  readonly #channel: ReturnType<NonNullable<typeof tracingChannel>> | undefined;

  constructor(name: string) {
    this.#channel = tracingChannel?.(`store-db:${name}`);
  }

  /** Whether anybody listens: to the end at least, as everybody does who listens to a whole channel. It costs next to nothing. */
  get isWatched(): boolean {
    return this.#channel?.asyncEnd.hasSubscribers === true;
  }

  /** Whether anybody listens to the beginning. */
  get isWatchedFromStart(): boolean {
    return this.#channel?.start.hasSubscribers === true;
  }

  /** Whether anybody listens to more than the end. If not, {@link end} or {@link fail} tell all that is heard. */
  get isFollowed(): boolean {
    if (this.#channel === undefined) return false;
    const { start, end, asyncStart, error } = this.#channel;
    return start.hasSubscribers || end.hasSubscribers || asyncStart.hasSubscribers || error.hasSubscribers;
  }

  /** Does the work, and tells its beginning and its end if anybody listens. `payloadOf` gets the time for `startedMs`. */
  run<T>(payloadOf: (startedMs: number) => Payload, work: () => Promise<T>): Promise<T> {
    return this.isWatched ? this.tell(payloadOf(startOfWork()), work) : work();
  }

  /** Does the work, and tells its beginning and its end: call it only if {@link isWatched}. */
  tell<T>(payload: Payload, work: () => Promise<T>): Promise<T> {
    if (this.isFollowed) return this.#channel?.tracePromise(work, payload) as Promise<T>;
    const working = work();
    working.then(
      (result) => this.end(payload, result),
      (error: unknown) => this.fail(payload, error),
    );
    return working;
  }

  /** Tells that work is done. Called within the work, it takes half of the time of {@link tell}: no promise is made for it. */
  end(payload: TracedWork, result: unknown): void {
    (payload as { result?: unknown }).result = result;
    this.#channel?.asyncEnd.publish(payload);
  }

  /** Tells that work has failed, as {@link end} does. */
  fail(payload: TracedWork, error: unknown): void {
    (payload as { error?: unknown }).error = error;
    this.#channel?.asyncEnd.publish(payload);
  }
}

export const flushes: WorkChannel<TracedFlush> = new WorkChannel('flush');
export const queries: WorkChannel<TracedQuery> = new WorkChannel('query');
export const gets: WorkChannel<TracedGet> = new WorkChannel('get');
export const merges: WorkChannel<TracedMerge> = new WorkChannel('merge');
export const collections: WorkChannel<TracedGc> = new WorkChannel('gc');
export const migrations: WorkChannel<TracedMigration> = new WorkChannel('migration');
export const requests: WorkChannel<TracedRequest> = new WorkChannel('request');
