/** Giving up on work that goes on: what several callers share, or what must not be cut short, such as a merge. */

import { AbortedError } from './errors.ts';
import { ownSignal } from './signals.ts';

/** What a call rejects with that its signal has ended; `what` names it. */
export function abortedError(what: string, cause: unknown): AbortedError {
  return new AbortedError(`${what} was given up because its signal was aborted`, { cause });
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
