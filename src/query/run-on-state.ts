/** Runs work on the present state of a table, and again on a newer one if its blocks were taken away meanwhile. */
import { abortedError, anySignal, untilAborted, newAbortController } from '../base/abort.ts';
import { isPromise } from '../base/brands.ts';
import { SnapshotExpiredError } from '../base/errors.ts';
import { BlockGone } from '../tree/block-source.ts';
import type { Overlay, QueryHost, ReadThrough } from './planner/query-host.ts';
import type { TableState } from '../view/table-state.ts';

/** Queries that lose their blocks to garbage collection so often in a row give up: they take longer than blocks are kept. */
const maxAttempts = 8;

/** Options of the calls that run a query. */
export interface QueryOptions {
  /** Gives the query up: it rejects with `AbortedError`. */
  readonly signal?: AbortSignal;
}

export interface RunOptions {
  readonly host: QueryHost;
  readonly table: string;
  readonly overlay: Overlay | undefined;
  /** The reads that the overlay needs go through this. */
  readonly through?: ReadThrough | undefined;
  /** Whether the work may begin speculatively, on a state that may turn out to be outdated; then it is repeated. */
  readonly speculative?: boolean;
}

/** A signal that is aborted as soon as one of two is. */
export function eitherOf(one: AbortSignal | undefined, other: AbortSignal | undefined): AbortSignal | undefined {
  if (one === undefined || other === undefined) return one ?? other;
  return anySignal(one, other);
}

/** Rejects as soon as the signal is aborted, even if the promise waits for a store that does not answer. */
export function orAborted<T>(running: Promise<T>, table: string, signal: AbortSignal | undefined): Promise<T> {
  return signal === undefined ? running : orGivenUp(running, table, signal);
}

async function orGivenUp<T>(running: Promise<T>, table: string, signal: AbortSignal): Promise<T> {
  try {
    return await untilAborted(running, signal);
  } catch (error) {
    if (!signal.aborted || error !== signal.reason) throw error;
    throw abortedError(`The query on table '${table}'`, error);
  }
}

/** `ends` is aborted when the work on this state is no longer wanted. */
type Work<T> = (state: TableState, stored: TableState, ends?: AbortSignal) => T | Promise<T>;

/** A first attempt that did not end at once. */
interface Attempt<T> {
  /** Undefined if the state could not be read: then `failure` is set. */
  readonly stored: TableState | Promise<TableState> | undefined;
  readonly result: Promise<T> | undefined;
  readonly failure: { readonly error: unknown } | undefined;
}

export function runOnState<T>(options: RunOptions, work: Work<T>): Promise<T> {
  const { trace } = options.host;
  if (trace?.isWatched !== true) return run(options, work);
  return trace.told(options.table, () => run(options, work)) ?? run(options, work);
}

/** Makes only one promise if neither the state nor the work is a promise. */
function run<T>(options: RunOptions, work: Work<T>): Promise<T> {
  const { host, table, overlay, speculative } = options;
  let stored: TableState | Promise<TableState> | undefined;
  let result: Promise<T> | undefined;
  let failure: Attempt<T>['failure'];
  try {
    stored = host.tableState(table);
    if (overlay === undefined && !isPromise(stored)) {
      const done = work(stored, stored);
      if (!isPromise(done)) return Promise.resolve(done);
      result = done;
    } else if (speculative === true && overlay === undefined && isPromise(stored)) {
      const early = host.earlyState?.(table);
      if (early !== undefined) {
        result = runSpeculatively(early, stored, (state, ends) => work(state, state, ends));
        // If there is no present state, the caller gets that error.
        result.catch(() => undefined);
      }
    }
  } catch (error) {
    failure = { error };
  }
  const kept = runUntilKept(options, work, { stored, result, failure });
  return host.trace?.waited(kept) ?? kept;
}

async function runUntilKept<T>(
  { host, table, overlay, through }: RunOptions,
  work: Work<T>,
  { stored: begun, result, failure }: Attempt<T>,
): Promise<T> {
  if (begun === undefined) throw failure?.error;
  for (let attempt = 1; ; attempt++) {
    const stored = await (attempt === 1 ? begun : host.tableState(table));
    try {
      if (attempt === 1 && failure !== undefined) throw failure.error;
      if (attempt === 1 && result !== undefined) return await result;
      const state = overlay === undefined ? stored : await overlay.overlayOn(stored, through);
      return await work(state, stored);
    } catch (error) {
      if (!(error instanceof BlockGone) || !(await host.viewMovedOn(stored))) throw error;
      if (attempt < maxAttempts) continue;
      const message =
        `Garbage collection deleted blocks that the query on table '${table}' was reading, ${maxAttempts} times in a row. ` +
        'Run it again, or make it shorter with conditions or a limit.';
      throw new SnapshotExpiredError(message, { cause: error });
    }
  }
}

/** Work on a state of a table. `ends` is aborted when its result is not needed any more. */
export type StateWork<T> = (state: TableState, ends?: AbortSignal) => T | Promise<T>;

/**
 * Runs work speculatively on the state that the table most likely has, while the present state is determined. Returns the result if
 * the two states are the same; otherwise repeats the work on the present state.
 */
export async function runSpeculatively<T>(
  early: TableState,
  present: Promise<TableState>,
  work: StateWork<T>,
): Promise<T> {
  const ending = newAbortController();
  const speculative = (async () => work(early, ending.signal))();
  // The caller gets the error below.
  speculative.catch(() => undefined);
  let state: TableState | undefined;
  try {
    state = await present;
  } finally {
    if (state !== early) ending.abort();
  }
  return state === early ? speculative : work(state);
}
