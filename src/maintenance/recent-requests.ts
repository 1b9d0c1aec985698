/** Counts the requests of the last minute, and how many of them failed, for the health of an instance. */
import { isError } from '../base/brands.ts';
import { AbortedError, NotStartedError } from '../base/errors.ts';
import type { ObservedRequest } from '../storage/wrap/observed-driver.ts';

/** Requests are counted in spans of this length, and forgotten with their span. */
const spanMs = 5000;
/** The spans of a minute. */
const spans = 12;

interface Span {
  /** The number of the span since the clock began; undefined if nothing was counted in it. */
  at: number | undefined;
  requests: number;
  failed: number;
}

/** Whether a request was given up by its caller: that says nothing about the store. */
function isGivenUp(error: unknown): boolean {
  if (error instanceof AbortedError || error instanceof NotStartedError) return true;
  if (!isError(error)) return false;
  return error.name === 'AbortError' || isGivenUp(error.cause);
}

export class RecentRequests {
  readonly #spans: readonly Span[] = Array.from({ length: spans }, () => ({ at: undefined, requests: 0, failed: 0 }));

  /** Notes a request that has just ended. Requests that their callers gave up are passed over. */
  note({ status, error }: Pick<ObservedRequest, 'status' | 'error'>, nowMs: number): void {
    const isFailed = status === 'error';
    if (isFailed && isGivenUp(error)) return;
    const at = Math.floor(nowMs / spanMs);
    const span = this.#spans[at % spans] as Span;
    if (span.at !== at) Object.assign(span, { at, requests: 0, failed: 0 });
    span.requests++;
    if (isFailed) span.failed++;
  }

  /** Returns the counts of the last minute. */
  snapshot(nowMs: number): { readonly requests: number; readonly failed: number } {
    const first = Math.floor(nowMs / spanMs) - spans + 1;
    const recent = this.#spans.filter(({ at }) => at !== undefined && at >= first);
    return {
      requests: recent.reduce((sum, { requests }) => sum + requests, 0),
      failed: recent.reduce((sum, { failed }) => sum + failed, 0),
    };
  }
}
