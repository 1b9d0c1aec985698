/** The change feed: the committed changes, commit by commit, in the order of the log. */
import type { Environment } from '../base/env.ts';
import { ChangesExpiredError, NotStartedError } from '../base/errors.ts';
import { Pacer } from '../base/pacer.ts';
import { anySignal, newAbortController, abortedError } from '../base/abort.ts';
import { kinds, OptionTable } from '../base/options.ts';
import { systemSchemas } from '../blob/blob-tables.ts';
import { positionKind } from './options.ts';
import type { CallOptions } from './options.ts';
import type { Engine } from '../engine/engine.ts';
import type { LogFeed } from '../engine/log-feed.ts';
import type { TableChange } from '../format/commit.ts';
import { decodeRow } from '../format/row-decode.ts';
import { isDeleted } from '../view/merged-cursor.ts';
import { changesByTable } from '../view/view.ts';
import type { LoggedCommit } from '../view/view.ts';
import { BlockGone } from '../tree/block-source.ts';
import { TreeCursor } from '../tree/cursor.ts';

/** Options of `db.changes()`. */
export interface ChangesOptions extends CallOptions {
  /**
   * The position after which to begin: that of the last commit that was worked off, or 0 for everything that the log holds.
   * Default: `db.position`, so that the loop gives every commit that queries have not shown yet: with polling `'onDemand'`, before
   * the first read or write, these include commits from before the start that are not merged.
   */
  readonly after?: number;
}

export const changesOptions: OptionTable<ChangesOptions> = new OptionTable({
  after: positionKind,
  signal: kinds.signal,
});

/** The change of one row by a commit. */
export interface Change {
  /** Name of the table. */
  readonly table: string;
  /** Schema version of the row. While a table is migrated, instances with the older version write only that one. */
  readonly version: number;
  /** `'upsert'`: the row was inserted or changed. `'delete'`: it was deleted, if it was there. */
  readonly operation: 'upsert' | 'delete';
  /** Its primary key. */
  readonly key: unknown;
  /** The whole row as it is after an upsert, by the schema of the commit; blobs as references. */
  readonly row?: Record<string, unknown>;
}

const systemTables: ReadonlySet<string> = new Set(systemSchemas.map(({ name }) => name));

/** Version of a table that the reader has registered; undefined if it has none. */
type VersionOf = (table: string) => number | undefined;

/**
 * Returns the changes of a commit to tables of the application. Rows that it holds in two versions, while a migration is under way,
 * are returned once: in the reader's own version if that is one of them, else in the older one.
 */
function changesOf({ commit }: LoggedCommit, versionOf: VersionOf): TableChange[] {
  return commit.members.flatMap((member) => {
    const tables = [...changesByTable(member)].filter(([name]) => !systemTables.has(name));
    return tables.map(([name, changes]) => changes.of(versionOf(name) ?? 0) ?? changes.first);
  });
}

/**
 * One commit: the changes of one flush, or of several that shared it. `for await` gives its changes: table by table, in the order
 * of keys, and flush by flush. It reads them as it goes, so that a commit of any size takes little memory.
 */
export class CommittedChanges implements AsyncIterable<Change> {
  /** Where the commit is in the log. Keep it to go on from here: `db.changes({ after: position })`. */
  readonly position: number;
  /** Id of the commit. */
  readonly commitId: string;
  /** Id of the node that committed. */
  readonly nodeId: number;
  /** When it was committed, by that node's clock. */
  readonly at: Date;
  readonly #engine: Engine;
  readonly #environment: Environment;
  readonly #changes: readonly TableChange[];

  /** @internal Use `db.changes()`. */
  constructor(logged: LoggedCommit, changes: readonly TableChange[], engine: Engine, environment: Environment) {
    const { commitId, nodeId, atMs } = logged.commit;
    this.position = logged.slot;
    this.commitId = commitId;
    this.nodeId = nodeId;
    this.at = new Date(atMs);
    this.#engine = engine;
    this.#environment = environment;
    this.#changes = changes;
  }

  /** All changes at once: for commits that are not large. Rejects as the iteration does. */
  async toArray(): Promise<Change[]> {
    const all: Change[] = [];
    for await (const change of this) all.push(change);
    return all;
  }

  /**
   * The changes one by one; may be called again. Rejects with `ChangesExpiredError` if the commit is so large that its rows
   * are read from the store, and they were collected meanwhile.
   */
  async *[Symbol.asyncIterator](): AsyncGenerator<Change, undefined> {
    const pacer = new Pacer(this.#environment);
    for (const change of this.#changes) yield* this.#read(change, pacer);
  }

  async *#read(change: TableChange, pacer: Pacer): AsyncGenerator<Change, undefined> {
    const { context } = this.#engine;
    const shape = context.shape(change.schema);
    const { name: table, version, layout } = shape;
    const cursor = new TreeCursor(context.layer(change, shape));
    while (await this.#advance(cursor)) {
      const { node, to } = cursor;
      for (let i = cursor.from; i < to; i++) {
        if (pacer.due()) await pacer.pause();
        const key = shape.keyValue(node.key(i));
        if (isDeleted(node, i)) yield { table, version, operation: 'delete', key };
        else yield { table, version, operation: 'upsert', key, row: decodeRow(layout, node, node.rowBase(i)) };
      }
    }
  }

  async #advance(cursor: TreeCursor): Promise<boolean> {
    const { register, stopping } = this.#engine;
    if (stopping.aborted) throw new NotStartedError('Reading changes');
    try {
      return await cursor.next();
    } catch (error) {
      if (!(error instanceof BlockGone)) throw error;
      // Staged rows exist as long as the log may be read for their commit.
      const { logFloor } = (await register.refresh()).block0;
      if (logFloor < this.position) throw error;
      throw new ChangesExpiredError(this.position - 1, logFloor, { cause: error });
    }
  }
}

class FeedIterator implements AsyncIterableIterator<CommittedChanges, undefined> {
  readonly #engine: Engine;
  readonly #environment: Environment;
  readonly #controller: AbortController;
  readonly #feed: LogFeed;
  readonly #outer: AbortSignal | undefined;
  readonly #versionOf: VersionOf;
  #ended = false;
  /** Calls are answered in turn, whether or not the caller waits for them. */
  #last: Promise<unknown> = Promise.resolve();

  constructor(options: FeedOptions) {
    this.#engine = options.engine;
    this.#environment = options.environment;
    this.#outer = options.signal;
    this.#versionOf = options.versionOf;
    this.#controller = newAbortController();
    const { signal } = this.#controller;
    const either = options.signal === undefined ? signal : anySignal(signal, options.signal);
    this.#feed = options.open(options.after, options.engine.untilClosed(either));
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  next(): Promise<IteratorResult<CommittedChanges, undefined>> {
    const answer = this.#last.then(() => this.#next());
    this.#last = answer.catch(() => undefined);
    return answer;
  }

  return(): Promise<IteratorResult<CommittedChanges, undefined>> {
    this.#ended = true;
    // A caller that waits for the next commit learns that there is none.
    this.#controller.abort();
    return Promise.resolve({ done: true, value: undefined });
  }

  async #next(): Promise<IteratorResult<CommittedChanges, undefined>> {
    try {
      while (!this.#ended) {
        const logged = await this.#feed.next();
        const changes = changesOf(logged, this.#versionOf);
        if (changes.length === 0) continue;
        return { done: false, value: new CommittedChanges(logged, changes, this.#engine, this.#environment) };
      }
    } catch (error) {
      if (!this.#ended) throw this.#reasonOf(error);
    }
    return { done: true, value: undefined };
  }

  #reasonOf(error: unknown): unknown {
    this.#ended = true;
    if (this.#engine.stopping.aborted) return new NotStartedError('db.changes()');
    if (this.#outer?.aborted !== true) return error;
    return abortedError('db.changes()', this.#outer.reason);
  }
}

interface FeedOptions {
  readonly engine: Engine;
  readonly environment: Environment;
  readonly after: number;
  readonly signal: AbortSignal | undefined;
  readonly versionOf: VersionOf;
  readonly open: (after: number, signal: AbortSignal) => LogFeed;
}

/** The result of `db.changes()`: an endless loop over commits, for `for await`. Each loop begins at the same position. */
export class ChangeFeed implements AsyncIterable<CommittedChanges> {
  readonly #options: FeedOptions;

  /** @internal Use `db.changes()`. */
  constructor(options: FeedOptions) {
    this.#options = options;
  }

  /** Begins a loop. */
  [Symbol.asyncIterator](): AsyncIterableIterator<CommittedChanges, undefined> {
    return new FeedIterator(this.#options);
  }
}
