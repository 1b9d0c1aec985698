/** Giving up on work that goes on: what several callers share, or what must not be cut short, such as a merge. */

import { AbortedError, StorageError, StoreDbError } from './errors.ts';
import { ownSignal } from './signals.ts';

/** What a call rejects with that its signal has ended; `what` names it. */
export function abortedError(what: string, cause: unknown): AbortedError {
  return new AbortedError(`${what} was given up because its signal was aborted`, { cause });
}

/**
 * Makes an `AbortedError` of the error that a call ends with once its signal is aborted: the reason itself, which may be anything,
 * or a request that was given up. An error that says more stays as it is. `what` names the call.
 */
export async function namingAborts<T>(
  what: string,
  signal: AbortSignal | undefined,
  call: () => Promise<T>,
): Promise<T> {
  try {
    return await call();
  } catch (error) {
    throw signal === undefined ? error : namedAbort(what, signal, error);
  }
}

/** The error to throw instead of one that was caught, for the same reason as {@link namingAborts}. */
export function namedAbort(what: string, signal: AbortSignal, error: unknown): unknown {
  if (!signal.aborted) return error;
  const saysMore = error instanceof StoreDbError && !(error instanceof StorageError) && error !== signal.reason;
  return saysMore ? error : abortedError(what, signal.reason);
}

/** The outcome of `work`, or the signal's reason as soon as it is aborted. */
export async function untilAborted<T>(work: Promise<T>, outer: AbortSignal | undefined): Promise<T> {
  if (outer === undefined) return work;
  const signal = ownSignal(outer);
  let onAbort: (() => void) | undefined;
  const aborted = new Promise<never>((_, reject) => {
    onAbort = () => reject(signal.reason as Error);
    if (signal.aborted) onAbort();
    else signal.addEventListener('abort', onAbort, { once: true });
  });
  try {
    return await Promise.race([work, aborted]);
  } finally {
    signal.removeEventListener('abort', onAbort as () => void);
  }
}
