/** The exports of `store-db/tanstack`: live queries as collections of TanStack DB. */
import type { CollectionConfig, SyncConfig } from '@tanstack/db';
import { realEnvironment } from './base/env.ts';
import { InvalidOptionError } from './base/errors.ts';
import { describeValue } from './base/messages.ts';
import type { LiveQueryStore } from './live-client/live-store.ts';
import { requireStore } from './live-client/required-store.ts';

/** Calls of a collection of `storeDbCollectionOptions()`, in its `utils`. */
export interface StoreDbCollectionUtils {
  /**
   * Waits until the collection shows a position: with that of a commit, a handler such as `onInsert` ends when the row has come, and not
   * before. Resolves to false if that takes longer than `timeoutMs`, 5000 by default: a commit that leaves the query as it is shows no position.
   * Rejects with `InvalidOptionError` for anything but a position.
   */
  readonly awaitPosition: (position: number, timeoutMs?: number) => Promise<boolean>;
  /** Index signature of TanStack DB. */
  readonly [name: string]: (...given: never[]) => unknown;
}

/** Waits until a store shows a position. */
async function awaitPosition(store: LiveQueryStore<unknown>, position: number, timeoutMs: number): Promise<boolean> {
  if (!Number.isSafeInteger(position)) {
    const given = describeValue(position);
    const message = `awaitPosition() takes db.position of the server after its commit; it is ${given}.`;
    throw new InvalidOptionError('position', message);
  }
  return new Promise((resolve) => {
    const isShown = (): boolean => (store.getSnapshot().position ?? -1) >= position;
    const finish = (result: boolean): void => {
      timer.cancel();
      end();
      resolve(result);
    };
    const timer = realEnvironment.setTimer(() => finish(false), timeoutMs, { background: true });
    const end = store.subscribe(() => {
      if (isShown()) finish(true);
    });
    if (isShown()) finish(true);
  });
}

/** Writes the differences of each result into a collection. */
function syncOf<T extends object, K extends string | number>(
  store: LiveQueryStore<readonly T[]>,
  getKey: (row: T) => K,
): SyncConfig<T, K> {
  return {
    rowUpdateMode: 'full',
    sync: ({ begin, write, commit, markReady, markError }) => {
      let shown: ReadonlyMap<K, T> | undefined;
      let data: readonly T[] | undefined;
      const show = (): void => {
        const snapshot = store.getSnapshot();
        if (snapshot.status === 'failed' && snapshot.data === undefined) markError(snapshot.error);
        if (snapshot.data === undefined || snapshot.data === data) return;
        if (!Array.isArray(snapshot.data)) {
          return markError(
            new InvalidOptionError('query', 'A collection takes the rows of watch(); its query has a value.'),
          );
        }
        data = snapshot.data;
        const before = shown ?? new Map<K, T>();
        const rows = new Map(data.map((row) => [getKey(row), row]));
        begin();
        for (const [key, value] of before) if (!rows.has(key)) write({ type: 'delete', value });
        for (const [key, value] of rows) {
          const known = before.get(key);
          if (known === undefined) write({ type: 'insert', value });
          else if (known !== value) write({ type: 'update', value, previousValue: known });
        }
        void commit();
        shown = rows;
        markReady();
      };
      const end = store.subscribe(show);
      show();
      return end;
    },
  };
}

/**
 * Makes the options of a collection of TanStack DB that has the rows of a live query: `createCollection(storeDbCollectionOptions({ query,
 * getKey }))`. `query` is what `client.query()` of `liveClient()` returns, or `liveStore()`, and `getKey` returns the key of a row. All other
 * options of collections pass, such as `onInsert`, which writes by a request to your server. Throws `InvalidOptionError` for a `query` that
 * is no store.
 */
export function storeDbCollectionOptions<T extends object, K extends string | number>(
  options: Omit<CollectionConfig<T, K, never, StoreDbCollectionUtils>, 'sync' | 'utils'> & {
    readonly query: LiveQueryStore<readonly T[]>;
  },
): CollectionConfig<T, K, never, StoreDbCollectionUtils> & { utils: StoreDbCollectionUtils } {
  const { query, ...others } = Object(options) as typeof options;
  requireStore('storeDbCollectionOptions({ query, getKey })', query);
  return {
    ...others,
    sync: syncOf<T, K>(query, options.getKey),
    utils: { awaitPosition: (position, timeoutMs = 5000) => awaitPosition(query, position, timeoutMs) },
  };
}
