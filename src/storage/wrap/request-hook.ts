/** A hook of the user's own, called after every request: whatever it does, the request has its result. */
import { isThenable } from '../../base/brands.ts';
import type { Logger } from '../../base/logger.ts';
import type { ObservedRequest } from './observed-driver.ts';

/** What is told of every request. */
export type RequestHook = (request: ObservedRequest) => unknown;

/** A hook that never fails. What the one inside throws, or rejects with, is logged the first time. */
export function harmlessHook(hook: RequestHook, logger: Logger): (request: ObservedRequest) => void {
  let warned = false;
  const warn = (error: unknown): void => {
    if (warned) return;
    warned = true;
    logger.warn('The onRequest hook failed. Requests go on; further failures are not logged.', { error });
  };
  return (request) => {
    try {
      const result = hook(request);
      if (isThenable(result)) result.then(undefined, warn);
    } catch (error) {
      warn(error);
    }
  };
}
