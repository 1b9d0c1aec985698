/** The exports of `store-db/react`: live queries in React 18 and 19. */
import { useSyncExternalStore } from 'react';
import type { LiveQueryStore, LiveSnapshot } from './live-client/live-store.ts';
import { requireStore } from './live-client/required-store.ts';

/** A snapshot that has data. */
export type LoadedSnapshot<T> = LiveSnapshot<T> & { readonly data: T };

/**
 * Returns the present data of a live query, and renders again when that changes. `store`: what `client.query()` of `liveClient()` returns,
 * which is the same for the same parameters, or `liveStore()`, made once. The query is watched while a component uses it. With
 * `suspense: true` the component waits in the nearest `Suspense` until there is data, and a failure before that reaches the nearest error
 * boundary. Throws `InvalidOptionError` for anything but a store.
 */
export function useLiveQuery<T, S extends boolean = false>(
  store: LiveQueryStore<T>,
  options: { readonly suspense?: S } = {},
): S extends true ? LoadedSnapshot<T> : LiveSnapshot<T> {
  requireStore('useLiveQuery()', store);
  const isWaiting = options.suspense === true;
  const snapshot = useSyncExternalStore(store.subscribe, store.getSnapshot, store.getServerSnapshot);
  if (!isWaiting || snapshot.data !== undefined) return snapshot as LoadedSnapshot<T>;
  if (snapshot.status === 'failed') throw snapshot.error as Error;
  // What React waits for. It renders again whether or not there is data then.
  // oxlint-disable-next-line typescript/only-throw-error
  throw store.ready().catch(() => undefined);
}

export type { LiveSnapshot, LiveQueryStore } from './live-client/live-store.ts';
