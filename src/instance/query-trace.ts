/** Tells of queries on the channel `store-db:query`. */
import { queries, startOfWork } from '../base/tracing.ts';
import type { TracedQuery } from '../base/tracing.ts';
import type { QueryTrace } from '../query/planner/query-host.ts';

export class ChannelTrace implements QueryTrace {
  readonly #database: string;
  /** The query that was begun last, while it has not returned. */
  #begun: TracedQuery | undefined;

  /** `database`: the prefix of the database. */
  constructor(database: string) {
    this.#database = database;
  }

  told<T>(table: string, run: () => Promise<T>): Promise<T> | undefined {
    if (!queries.isWatched) return undefined;
    const begun: TracedQuery = { database: this.#database, startedMs: startOfWork(), table, waited: false };
    this.#begun = begun;
    return queries.isWatchedFromStart ? queries.tell(begun, run) : undefined;
  }

  waited<T>(result: Promise<T>): Promise<T> | undefined {
    const begun = this.#begun;
    if (begun === undefined) return undefined;
    this.#begun = undefined;
    begun.waited = true;
    return queries.isWatchedFromStart ? undefined : queries.tell(begun, () => result);
  }
}
