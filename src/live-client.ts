/** The exports of `store-db/live-client`: live queries in the browser, for any framework. */
import { realEnvironment } from './base/env.ts';
import { InvalidOptionError } from './base/errors.ts';
import { describeValue } from './base/messages.ts';
import { LiveQueryClient } from './live-client/live-client.ts';
import type { LiveClientOptions } from './live-client/live-client.ts';
import { FedStore } from './live-client/live-store.ts';
import type { LiveData } from './live-client/local-feed.ts';
import type { LiveQueryStore } from './live-client/live-store.ts';
import { LocalFeed } from './live-client/local-feed.ts';
import type { LiveResults, LiveRows, LiveValue } from './query/live-results.ts';

/**
 * Makes a client of the queries that `liveHandler()` of `store-db/live` serves at `url`. It connects with the first use of a query. Throws
 * `InvalidOptionError`.
 */
export function liveClient<Api = Record<string, unknown>>(
  url: string,
  options: LiveClientOptions = {},
): LiveQueryClient<Api> {
  return new LiveQueryClient<Api>(realEnvironment, url, options);
}

/**
 * Makes a store of a watched query in the same process, for rendering on a server, and for tests: `liveStore(() => query.watch())`. The
 * function is called whenever somebody begins to listen. Throws `InvalidOptionError` if `watch` is no function.
 */
export function liveStore<T extends LiveRows<object> | LiveValue<unknown>>(
  watch: () => LiveResults<T>,
): LiveQueryStore<LiveData<T>> {
  if (typeof watch !== 'function') {
    throw new InvalidOptionError(
      'watch',
      `liveStore() takes a function that returns query.watch(); it is ${describeValue(watch)}.`,
    );
  }
  return new FedStore<LiveData<T>>({
    environment: realEnvironment,
    feed: new LocalFeed(watch),
    keepMs: 0,
    initial: undefined,
  });
}

export type { LiveQueryClient, LiveClientOptions, LiveParams } from './live-client/live-client.ts';
export { LiveQueryError } from './live-client/live-query-error.ts';
export type { LiveData } from './live-client/local-feed.ts';
export type { LiveSnapshot, LiveQueryStore, ReadyOptions } from './live-client/live-store.ts';
export type { LiveFetch, LiveHeaders } from './live-client/remote-feed.ts';
