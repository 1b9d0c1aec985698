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

/** Tells the end alone, as `tracePromise` tells it: in half of its time. The listeners hear of it before the caller does. */
function tellEnd<T>(asyncEnd: { publish(payload: object): void }, payload: TracedWork, work: Promise<T>): Promise<T> {
  work.then(
    (result) => asyncEnd.publish(Object.assign(payload, { result })),
    (error: unknown) => asyncEnd.publish(Object.assign(payload, { error })),
  );
  return work;
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

  /** Does the work, and tells its beginning and its end if anybody listens. `payloadOf` gets the time for `startedMs`. */
  run<T>(payloadOf: (startedMs: number) => Payload, work: () => Promise<T>): Promise<T> {
    return this.isWatched ? this.tell(payloadOf(startOfWork()), work) : work();
  }

  /** Does the work, and tells its beginning and its end: call it only if {@link isWatched}. */
  tell<T>(payload: Payload, work: () => Promise<T>): Promise<T> {
    const channel = this.#channel;
    if (channel === undefined) return work();
    const { start, end, asyncStart, error } = channel;
    if (start.hasSubscribers || end.hasSubscribers || asyncStart.hasSubscribers || error.hasSubscribers) {
      return channel.tracePromise(work, payload);
    }
    return tellEnd(channel.asyncEnd, payload, work());
  }
}

export const flushes: WorkChannel<TracedFlush> = new WorkChannel('flush');
export const queries: WorkChannel<TracedQuery> = new WorkChannel('query');
export const gets: WorkChannel<TracedGet> = new WorkChannel('get');
export const merges: WorkChannel<TracedMerge> = new WorkChannel('merge');
export const collections: WorkChannel<TracedGc> = new WorkChannel('gc');
export const migrations: WorkChannel<TracedMigration> = new WorkChannel('migration');
export const requests: WorkChannel<TracedRequest> = new WorkChannel('request');
