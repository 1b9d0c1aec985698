/**
 * The watched queries of an instance: tells each of the commits that its table gets, and keeps the instance looking for commits of others
 * while there are any.
 */
import { newAbortController } from '../base/abort.ts';
import { sleep } from '../base/env.ts';
import type { Environment } from '../base/env.ts';
import { Pacer } from '../base/pacer.ts';
import type { Polling } from '../coordination/polling-pace.ts';
import { isLookDue, mayPass } from '../engine/log-feed.ts';
import type { LiveCursor } from '../query/live-results.ts';
import type { WatchedQuery } from '../query/planner/query-host.ts';
import { changesByTable } from '../view/view.ts';
import type { LoggedCommit, View } from '../view/view.ts';
import { ChangedRows } from './changed-rows.ts';
import { ExpiryWatch } from './expiry-watch.ts';
import { LiveQuery } from './live-query.ts';
import type { LiveOwner } from './live-query.ts';
import type { LiveSource } from './recording-host.ts';

export interface LiveQueriesOptions {
  readonly environment: Environment;
  readonly intervalMs: number;
  readonly polling: Polling;
}

/** Queries that run at the same time. */
const maxRuns = 16;

/** A text that changes when a migration of a table begins, ends or is cancelled: that is no commit, and may change what is shown. */
function versionsOf(view: View, table: string): string {
  return `${view.table(table)?.shape.version} ${view.nextVersion(table)?.migration?.birth}`;
}

export class LiveQueries implements LiveOwner {
  readonly #options: LiveQueriesOptions;
  readonly #byTable = new Map<string, Set<LiveQuery>>();
  /** For the tables among them whose rows expire. */
  readonly #expiring = new Map<string, ExpiryWatch>();
  /** By table, a text that tells its versions: see {@link versionsOf}. */
  readonly #versions = new Map<string, string>();
  readonly #pacer: Pacer;
  readonly #waiting: (() => void)[] = [];
  #running = 0;
  #source: LiveSource | undefined;
  /** The last slot that the queries were told of. */
  #seen = 0;
  /** Ends the looks for commits. */
  #looking: AbortController | undefined;
  #detach: (() => void) | undefined;

  constructor(options: LiveQueriesOptions) {
    this.#options = options;
    this.#pacer = new Pacer(options.environment);
  }

  open(query: WatchedQuery): LiveCursor<object> {
    return new LiveQuery(query, this);
  }

  /** The instance runs from now on. */
  attach(source: LiveSource): void {
    const { events, view } = source.engine;
    this.#source = source;
    this.#seen = view.tail;
    const ends = [
      events.committed.on((news) => this.#committed(news)),
      events.viewChanged.on((newer) => this.#shown(newer)),
    ];
    this.#detach = () => ends.forEach((end) => end());
    for (const table of this.#byTable.keys()) this.#versions.set(table, versionsOf(view, table));
    this.#touchAll();
    this.#look();
  }

  /** The instance is being stopped. Loops wait for the next start. */
  detach(): void {
    this.#detach?.();
    for (const table of this.#expiring.keys()) this.#endExpiry(table);
    this.#source = undefined;
    this.#looking?.abort();
    this.#looking = undefined;
  }

  /** Adds a query, unless it is there. Returns the instance for its runs; undefined while the instance is stopped. */
  add(query: LiveQuery): LiveSource | undefined {
    const { table } = query.query;
    let ofTable = this.#byTable.get(table);
    if (ofTable === undefined) {
      ofTable = new Set();
      this.#byTable.set(table, ofTable);
      if (this.#source !== undefined) this.#versions.set(table, versionsOf(this.#source.engine.view, table));
    }
    ofTable.add(query);
    this.#look();
    this.#beginExpiry(table);
    return this.#source;
  }

  /** Tells the queries of a table when its rows expire, if they do. */
  #beginExpiry(table: string): void {
    const source = this.#source;
    if (source?.shapeOf(table)?.expiry === undefined || this.#expiring.has(table)) return;
    const { intervalMs } = this.#options;
    const expired = (nowMs: number, keys: readonly Uint8Array[] | undefined): void => {
      for (const query of this.#byTable.get(table) ?? []) {
        query.expire(nowMs, keys);
        query.wakeIfTouched();
      }
    };
    this.#expiring.set(table, new ExpiryWatch({ source, table, intervalMs, expired }));
  }

  #endExpiry(table: string): void {
    this.#expiring.get(table)?.end();
    this.#expiring.delete(table);
  }

  remove(query: LiveQuery): void {
    const { table } = query.query;
    const ofTable = this.#byTable.get(table);
    if (ofTable?.delete(query) !== true || ofTable.size > 0) return;
    this.#byTable.delete(table);
    this.#endExpiry(table);
    this.#versions.delete(table);
    if (this.#byTable.size > 0) return;
    this.#looking?.abort();
    this.#looking = undefined;
  }

  /** Runs a query when it is its turn. */
  async inTurn<T>(run: () => Promise<T>): Promise<T> {
    if (this.#running < maxRuns) this.#running++;
    else {
      await new Promise<void>((resolve) => {
        this.#waiting.push(resolve);
      });
    }
    try {
      if (this.#pacer.due()) await this.#pacer.pause();
      return await run();
    } finally {
      const next = this.#waiting.shift();
      if (next === undefined) this.#running--;
      else next();
    }
  }

  /** Waits after a failure that time may mend, unless the instance was stopped. Throws every other one. */
  async afterFailure(failure: unknown, { engine }: LiveSource, signal: AbortSignal | undefined): Promise<void> {
    // The next start goes on with it.
    if (this.#source?.engine !== engine) return;
    if (!mayPass(failure)) throw failure;
    engine.failures.report('Watching queries', failure);
    await sleep(this.#options.environment, this.#options.intervalMs, signal).catch(() => undefined);
  }

  #committed(news: readonly LoggedCommit[]): void {
    const [first] = news;
    if (first !== undefined && first.slot !== this.#seen + 1) this.#touchAll();
    for (const { slot, commit } of news) {
      this.#seen = slot;
      for (const member of commit.members) {
        for (const { table } of member.drops ?? []) for (const query of this.#byTable.get(table) ?? []) query.touch();
        for (const [table, changes] of changesByTable(member)) {
          const queries = this.#byTable.get(table);
          if (queries === undefined) continue;
          const changed = new ChangedRows(changes);
          for (const query of queries) query.apply(slot, changed);
          const shape = this.#source?.shapeOf(table);
          if (shape !== undefined) this.#expiring.get(table)?.note(shape, changed.of(shape.version));
        }
      }
    }
  }

  #shown(view: View): void {
    const { tail } = view;
    // The view has gone past commits that were not read.
    if (tail !== this.#seen) this.#touchAll();
    this.#seen = tail;
    for (const [table, queries] of this.#byTable) {
      const versions = versionsOf(view, table);
      const isOther = versions !== this.#versions.get(table);
      if (isOther) this.#versions.set(table, versions);
      for (const query of queries) {
        if (isOther) query.touch();
        query.wakeIfTouched();
      }
    }
  }

  #touchAll(): void {
    for (const expiring of this.#expiring.values()) expiring.noteAny();
    for (const queries of this.#byTable.values()) {
      for (const query of queries) {
        query.touch();
        query.wakeIfTouched();
      }
    }
  }

  /** Begins to look at every interval for what others commit, if there is a query and nothing looks yet. */
  #look(): void {
    const source = this.#source;
    if (source === undefined || this.#byTable.size === 0 || this.#looking !== undefined) return;
    const looking = newAbortController();
    this.#looking = looking;
    void this.#lookOn(source, looking.signal);
  }

  async #lookOn({ engine }: LiveSource, signal: AbortSignal): Promise<void> {
    const { environment, intervalMs, polling } = this.#options;
    while (!signal.aborted) {
      engine.asked();
      await sleep(environment, intervalMs, signal).catch(() => undefined);
      if (signal.aborted) return;
      if (!isLookDue(engine, polling, intervalMs)) continue;
      try {
        await engine.refresh(signal);
        engine.failures.worked('Watching queries');
      } catch (error) {
        if (!signal.aborted) engine.failures.report('Watching queries', error);
      }
    }
  }
}
