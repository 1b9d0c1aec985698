/** The results of watched queries, as functions of an application return them. */
import { InvalidOptionError } from '../base/errors.ts';
import { describeValue } from '../base/messages.ts';

/** Returns the results of a watched query that a function has returned. Throws `InvalidOptionError` for anything else. */
export function watchedResults<T extends object>(owner: string, given: T): T {
  const { subscribe, then } = Object(given) as Readonly<Record<string, unknown>>;
  if (typeof subscribe === 'function') return given;
  const what = typeof then === 'function' ? 'a promise' : describeValue(given);
  throw new InvalidOptionError(
    'watch',
    `${owner} has returned ${what}; it must return query.watch() or query.watchCount() itself, without await or execute().`,
  );
}
