/** Runs work on the present state of a table, and again on a newer one if its blocks were taken away meanwhile. */
import { AbortedError, SnapshotExpiredError } from '../base/errors.ts';
import { untilAborted } from '../base/until-aborted.ts';
import type { Overlay, QueryHost } from '../table/query-host.ts';
import type { TableState } from '../table/table-state.ts';
import { BlockGone } from '../tree/block-source.ts';

/** Queries that are overtaken so often in a row give up: they take longer than blocks are kept. */
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
}

/** Rejects as soon as the signal is aborted, whatever the promise still waits for: a store that does not answer. */
export function orAborted<T>(running: Promise<T>, table: string, signal: AbortSignal | undefined): Promise<T> {
  return signal === undefined ? running : orGivenUp(running, table, signal);
}

async function orGivenUp<T>(running: Promise<T>, table: string, signal: AbortSignal): Promise<T> {
  try {
    return await untilAborted(running, signal);
  } catch (error) {
    if (!signal.aborted || error !== signal.reason) throw error;
    const message = `The query on table '${table}' was given up because its signal was aborted.`;
    throw new AbortedError(message, { cause: error });
  }
}

/** Only one promise is made where the state and the work give none. */
export async function runOnState<T>(
  { host, table, overlay }: RunOptions,
  work: (state: TableState, stored: TableState) => T | Promise<T>,
): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    let stored = host.tableState(table);
    if (stored instanceof Promise) stored = await stored;
    try {
      const state = overlay === undefined ? stored : await overlay.overlayOn(stored);
      const result = work(state, stored);
      return result instanceof Promise ? await result : result;
    } catch (error) {
      if (!(error instanceof BlockGone) || !(await host.viewMovedOn(stored))) throw error;
      if (attempt < maxAttempts) continue;
      const message =
        `The query on table '${table}' was overtaken by garbage collection ${maxAttempts} times in a row. ` +
        'Run it again, or make it shorter with conditions or a limit.';
      throw new SnapshotExpiredError(message, { cause: error });
    }
  }
}
