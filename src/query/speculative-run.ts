/**
 * Work on the state that a table most likely has, while it is found out whether it is the present one. What is read by
 * then need not be waited for afterwards.
 */
import { newAbortController } from '../base/signals.ts';
import type { TableState } from '../view/table-state.ts';

/** `ends` is aborted when nobody wants the outcome any more. */
export type StateWork<T> = (state: TableState, ends?: AbortSignal) => T | Promise<T>;

/** The outcome of work on the present state: what it came to on the early one, if that is the same. */
export async function workAhead<T>(early: TableState, present: Promise<TableState>, work: StateWork<T>): Promise<T> {
  const ending = newAbortController();
  const ahead = (async () => work(early, ending.signal))();
  // Whoever it is that wants to know is told below.
  ahead.catch(() => undefined);
  let state: TableState | undefined;
  try {
    state = await present;
  } finally {
    if (state !== early) ending.abort();
  }
  return state === early ? ahead : work(state);
}
