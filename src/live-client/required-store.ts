/** The store that frameworks are given. */
import { InvalidOptionError } from '../base/errors.ts';
import { describeValue } from '../base/messages.ts';

/** Checks that a value is the store of a live query. Throws `InvalidOptionError`. */
export function requireStore(owner: string, store: unknown): void {
  const { subscribe, getSnapshot } = Object(store) as Readonly<Record<string, unknown>>;
  if (typeof subscribe === 'function' && typeof getSnapshot === 'function') return;
  throw new InvalidOptionError(
    'store',
    `${owner} takes the store of a live query: client.query() of liveClient(), or liveStore(() => query.watch()). It is ${describeValue(store)}.`,
  );
}
