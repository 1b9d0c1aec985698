/** Tells of queries on the channel `store-db:query`. */
import { queries, startOfWork } from '../base/tracing.ts';
import type { TracedQuery } from '../base/tracing.ts';
import type { QueryTrace } from '../query/planner/query-host.ts';

export class ChannelTrace implements QueryTrace {
  readonly #database: string;
  /** The table of the query that was begun last, while it has not returned, and when it began. Most need no payload. */
  #table: string | undefined;
  #startedMs = 0;
  /** Its payload, if its beginning was told. */
  #told: TracedQuery | undefined;

  /** `database`: the prefix of the database. */
  constructor(database: string) {
    this.#database = database;
  }

  get isWatched(): boolean {
    return queries.isWatched;
  }

  told<T>(table: string, run: () => Promise<T>): Promise<T> | undefined {
    this.#table = table;
    this.#startedMs = startOfWork();
    this.#told = undefined;
    if (!queries.isWatchedFromStart) return undefined;
    this.#told = this.#payload(table, false);
    return queries.tell(this.#told, run);
  }

  waited<T>(result: Promise<T>): Promise<T> | undefined {
    const table = this.#table;
    if (table === undefined) return undefined;
    this.#table = undefined;
    if (this.#told !== undefined) this.#told.waited = true;
    return queries.isWatchedFromStart ? undefined : queries.tell(this.#payload(table, true), () => result);
  }

  #payload(table: string, waited: boolean): TracedQuery {
    return { database: this.#database, startedMs: this.#startedMs, table, waited };
  }
}
