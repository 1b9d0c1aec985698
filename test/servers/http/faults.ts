/** Faults that a test can give to requests of a test server. */
import { setTimeout as sleep } from 'node:timers/promises';

/**
 * A fault of a request.
 * - A refusal: it is answered so; with `after`, only once it was handled.
 * - `reset`: the connection is cut before it is handled; `reset-after`: handled, and cut instead of answered;
 *   `reset-during`: handled, and cut in the middle of the answer's body.
 * - `delayMs`: it is handled so much later.
 */
export type FaultOf<Refusal> =
  | 'reset'
  | 'reset-after'
  | 'reset-during'
  | (Refusal & { readonly status: number; readonly after?: boolean })
  | { readonly delayMs: number };

/** Asked about every request once its body is there. A promise holds the request back until it settles. */
export type InterceptOf<Request, Refusal> = (
  request: Request,
) => FaultOf<Refusal> | undefined | void | Promise<FaultOf<Refusal> | undefined | void>;

/** Asks what is to become of a request, and waits if it is delayed. */
export async function faultOf<Request, Refusal>(
  intercept: InterceptOf<Request, Refusal> | undefined,
  request: Request,
): Promise<FaultOf<Refusal> | undefined> {
  const fault = (await intercept?.(request)) ?? undefined;
  if (typeof fault === 'object' && 'delayMs' in fault) await sleep(fault.delayMs);
  return fault;
}

/** Handles a request as its fault says: with `refuse` or `handle`, or by a cut connection. */
export async function handleWith<Refusal, Answer>(
  fault: FaultOf<Refusal> | undefined,
  refuse: (refusal: Refusal & { readonly status: number; readonly after?: boolean }) => Answer,
  handle: () => Promise<Answer>,
): Promise<Answer | 'cut'> {
  const refusal = typeof fault === 'object' && 'status' in fault ? fault : undefined;
  if (fault === 'reset') return 'cut';
  if (refusal !== undefined && refusal.after !== true) return refuse(refusal);
  const answer = await handle();
  if (fault === 'reset-after') return 'cut';
  return refusal === undefined ? answer : refuse(refusal);
}
