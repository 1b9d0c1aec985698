/** The change feed: the committed changes, commit by commit, in the order of the log. */
import { isPromise } from '../base/brands.ts';
import type { Environment } from '../base/env.ts';
import { ChangesExpiredError, InvalidOptionError, NotStartedError } from '../base/errors.ts';
import { Pacer } from '../base/pacer.ts';
import { anySignal, newAbortController, abortedError } from '../base/abort.ts';
import { describeValue } from '../base/messages.ts';
import { isNotKnown, kinds, OptionTable } from '../base/options.ts';
import type { OptionKind } from '../base/options.ts';
import { positionKind } from './options.ts';
import type { CallOptions } from './options.ts';
import type { Engine } from '../engine/engine.ts';
import { LogFeed, untilItWorks } from '../engine/log-feed.ts';
import type { LogFeedOptions } from '../engine/log-feed.ts';
import type { CommitMember, TableChange, TableDrop } from '../format/commit.ts';
import { decodeRow } from '../format/row-decode.ts';
import { isSystemTable } from '../format/stored-schema.ts';
import type { Bridge } from '../migration/bridge.ts';
import { tableName } from '../schema/table-ref.ts';
import type { TableRef } from '../schema/table-ref.ts';
import type { TableShape } from '../schema/table-shape.ts';
import { isDeleted, isExpiry } from '../view/merged-cursor.ts';
import type { TableState } from '../view/table-state.ts';
import { changesByTable } from '../view/view.ts';
import type { LoggedCommit, View } from '../view/view.ts';
import { FeedStates } from './feed-states.ts';
import type { FeedStatesOptions } from './feed-states.ts';
import { BlockGone } from '../tree/block-source.ts';
import { readAll } from '../tree/cursor.ts';

/** Options of `db.changes()`. */
export interface ChangesOptions extends CallOptions {
  /**
   * The position after which to begin: that of the last commit that was worked off, or 0 for everything that the log holds.
   * Default: `db.position`, so that the loop gives every commit that queries have not shown yet: with polling `'onDemand'`, before
   * the first read or write, these include commits from before the start that are not merged.
   */
  readonly after?: number;
  /** The tables whose changes are given, by their names or schema definitions; commits of other tables are left out. Default: all. */
  readonly tables?: readonly TableRef[];
  /**
   * Whether each change has `before`, the row as it was just before. A loop that begins behind what is merged needs the option
   * `history`, or a snapshot, for that. Default false.
   */
  readonly before?: boolean;
}

const tablesKind: OptionKind = {
  allowed: 'an array with the name or the schema definition of at least one table',
  accepts: (value) => Array.isArray(value) && value.length > 0,
  describe: (value) => (Array.isArray(value) ? 'an empty array' : describeValue(value)),
};

export const changesOptions: OptionTable<ChangesOptions> = new OptionTable({
  after: positionKind,
  tables: tablesKind,
  before: kinds.flag,
  signal: kinds.signal,
});

/** Returns the names of the tables that a feed is about, which must be among `known`. Throws `InvalidOptionError`. */
export function feedTables(tables: readonly TableRef[], known: readonly string[]): ReadonlySet<string> {
  const names = new Set(tables.map((table) => tableName(table)));
  for (const name of names) {
    if (known.includes(name)) continue;
    throw new InvalidOptionError(
      'tables',
      `Option \`tables\` of db.changes() has table '${name}', which ${isNotKnown(name, known)} A table must be registered here, or stored.`,
    );
  }
  return names;
}

/** The change of one row by a commit. */
export interface Change {
  /** Name of the table. */
  readonly table: string;
  /** Schema version of the row. While a table is migrated, instances with the older version write only that one. */
  readonly version: number;
  /**
   * `'upsert'`: the row was inserted or changed. `'delete'`: it was deleted, if it was there. `'drop'`: the table was dropped with all its
   * rows; there is no change for each of them.
   */
  readonly operation: 'upsert' | 'delete' | 'drop';
  /** Its primary key; undefined for `'drop'`. */
  readonly key: unknown;
  /** Whether a row was deleted because it had expired. Absent if not. */
  readonly expired?: true;
  /** The whole row as it is after an upsert, by the schema of the commit; blobs as references. */
  readonly row?: Record<string, unknown>;
  /** The row as it was just before the change, in the same version; null if there was none. Only with the option `before`. */
  readonly before?: Record<string, unknown> | null;
}

/** Version of a table that the reader has registered; undefined if it has none. */
type VersionOf = (table: string) => number | undefined;

/** The changes of one flush. */
interface MemberChanges {
  readonly member: CommitMember;
  readonly drops: readonly TableDrop[];
  readonly changes: readonly TableChange[];
}

/** Selects the changes that a feed gives. */
interface Selection {
  readonly gives: (table: string) => boolean;
  readonly versionOf: VersionOf;
}

/**
 * Returns the changes of a commit to tables of the application. Rows that it holds in two versions, while a migration is under way,
 * are returned once: in the reader's own version if that is one of them, else in the older one, or in the active one of `before`.
 */
function changesOf({ commit }: LoggedCommit, { gives, versionOf }: Selection, before?: View): MemberChanges[] {
  const changesIn = (member: CommitMember): TableChange[] => {
    const tables = [...changesByTable(member)].filter(([name]) => gives(name));
    return tables.map(([name, changes]) => {
      const [own, active] = [versionOf(name), before?.table(name)?.shape.version];
      const isReadable = active === undefined || (own ?? 0) >= active;
      return (
        (isReadable ? changes.of(own ?? 0) : undefined) ??
        (active === undefined ? undefined : changes.of(active)) ??
        changes.first
      );
    });
  };
  return commit.members.map((member) => {
    const drops = (member.drops ?? []).filter(({ table }) => gives(table));
    return { member, drops, changes: changesIn(member) };
  });
}

/** The state before a commit, and what its tables are read with. */
interface Before {
  readonly view: View;
  readonly bridge: Bridge;
  readonly versionOf: VersionOf;
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
  readonly #members: readonly MemberChanges[];
  readonly #before: Before | undefined;

  /** @internal Use `db.changes()`. */
  constructor(
    logged: LoggedCommit,
    members: readonly MemberChanges[],
    { engine, environment }: Pick<FeedOptions, 'engine' | 'environment'>,
    before: Before | undefined,
  ) {
    const { commitId, nodeId, atMs } = logged.commit;
    this.position = logged.slot;
    this.commitId = commitId;
    this.nodeId = nodeId;
    this.at = new Date(atMs);
    this.#engine = engine;
    this.#environment = environment;
    this.#members = members;
    this.#before = before;
  }

  /** All changes at once: for commits that are not large. Rejects as the iteration does. */
  async toArray(): Promise<Change[]> {
    const all: Change[] = [];
    for await (const change of this) all.push(change);
    return all;
  }

  /**
   * The changes one by one; may be called again. Rejects with `ChangesExpiredError` if the commit is so large that its rows
   * are read from the store, or if rows before are, and they were collected meanwhile.
   */
  async *[Symbol.asyncIterator](): AsyncGenerator<Change, undefined> {
    const pacer = new Pacer(this.#environment);
    let view = this.#before?.view;
    for (const [i, { member, drops, changes }] of this.#members.entries()) {
      for (const { table, version } of drops) yield { table, version, operation: 'drop', key: undefined };
      for (const change of changes) yield* this.#read(change, pacer, view);
      // Flushes of one commit follow each other.
      if (i < this.#members.length - 1) view = view?.withMember(member);
    }
  }

  async *#read(change: TableChange, pacer: Pacer, view: View | undefined): AsyncGenerator<Change, undefined> {
    const { context } = this.#engine;
    const shape = context.shape(change.schema);
    const { name: table, version, layout } = shape;
    const state = view && (await this.#reading(() => this.#stateBefore(view, shape)));
    const cursor = readAll(context.layer(change, shape));
    while (await this.#reading(() => cursor.next())) {
      const { node, to } = cursor;
      for (let i = cursor.from; i < to; i++) {
        if (pacer.due()) await pacer.pause();
        const key = shape.keyValue(node.key(i));
        const before = state && { before: await this.#rowIn(state.found, node.key(i)) };
        if (isDeleted(node, i)) {
          const expired = isExpiry(node, i) && ({ expired: true } as const);
          yield { table, version, operation: 'delete', key, ...expired, ...before };
        } else
          yield { table, version, operation: 'upsert', key, row: decodeRow(layout, node, node.rowBase(i)), ...before };
      }
    }
  }

  /** A table before a flush, in the version of the rows of its change; `found` is undefined if the table is new. */
  async #stateBefore(view: View, { name, version }: TableShape): Promise<{ readonly found: TableState | undefined }> {
    const active = view.table(name);
    if (active === undefined || active.shape.version === version) return { found: active };
    const { bridge, versionOf } = this.#before as Before;
    if (versionOf(name) !== version) throw this.#rowsBeforeGone();
    return { found: await bridge.stateOf(view, name) };
  }

  async #rowIn(state: TableState | undefined, key: Uint8Array): Promise<Record<string, unknown> | null> {
    if (state === undefined) return null;
    const found = state.lookup(key);
    // In memory nothing is waited for.
    const row = isPromise(found) ? await this.#reading(() => found) : found;
    return row === undefined ? null : decodeRow(state.shape.layout, row.source, row.base);
  }

  #rowsBeforeGone(cause?: unknown): ChangesExpiredError {
    const { appliedSeq } = this.#engine.view.block0;
    return new ChangesExpiredError(this.position - 1, appliedSeq, { rowsBefore: true, cause });
  }

  async #reading<T>(read: () => T | Promise<T>): Promise<T> {
    const { register, stopping } = this.#engine;
    if (stopping.aborted) throw new NotStartedError('Reading changes');
    try {
      return await read();
    } catch (error) {
      if (!(error instanceof BlockGone)) throw error;
      const { logFloor, generation } = (await register.refresh()).block0;
      // Staged rows exist as long as the log may be read for their commit.
      if (logFloor >= this.position) throw new ChangesExpiredError(this.position - 1, logFloor, { cause: error });
      if (this.#before !== undefined && this.#before.view.block0.generation < generation)
        throw this.#rowsBeforeGone(error);
      throw error;
    }
  }
}

class FeedIterator implements AsyncIterableIterator<CommittedChanges, undefined> {
  readonly #options: FeedOptions;
  readonly #controller: AbortController;
  readonly #signal: AbortSignal;
  readonly #states: FeedStates | undefined;
  #feed: LogFeed | undefined;
  /** The last commit that was given out or left out. */
  #at: number;
  #ended = false;
  /** Calls are answered in turn, whether or not the caller waits for them. */
  #last: Promise<unknown> = Promise.resolve();

  constructor(options: FeedOptions) {
    this.#options = options;
    this.#at = options.after;
    this.#controller = newAbortController();
    const { signal } = this.#controller;
    const either = options.signal === undefined ? signal : anySignal(signal, options.signal);
    this.#signal = options.engine.untilClosed(either);
    const { states } = options;
    this.#states = states && new FeedStates({ ...options, ...states }, this);
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
    this.#states?.end();
    return Promise.resolve({ done: true, value: undefined });
  }

  async #next(): Promise<IteratorResult<CommittedChanges, undefined>> {
    const options = this.#options;
    const states = this.#states;
    try {
      states?.release();
      options.worked(this.#at);
      while (!this.#ended) {
        this.#feed ??= await this.#begin();
        const logged = await this.#feed.next();
        const view = states?.take(logged);
        if (logged.slot <= this.#at) continue;
        this.#at = logged.slot;
        const members = changesOf(logged, options, view);
        if (members.every(({ drops, changes }) => drops.length + changes.length === 0)) {
          states?.release();
          options.worked(this.#at);
          continue;
        }
        await states?.held();
        const { bridge } = options;
        const before = view && { view, bridge, versionOf: options.versionOf };
        return { done: false, value: new CommittedChanges(logged, members, options, before) };
      }
    } catch (error) {
      if (!this.#ended) throw this.#reasonOf(error);
    }
    return { done: true, value: undefined };
  }

  async #begin(): Promise<LogFeed> {
    const options = this.#options;
    const states = this.#states;
    const from = states && (await untilItWorks(options, this.#signal, () => states.begin(this.#at, this.#signal)));
    return new LogFeed(options, from ?? this.#at, this.#signal);
  }

  #reasonOf(error: unknown): unknown {
    this.#ended = true;
    this.#controller.abort();
    this.#states?.end();
    const { engine, signal } = this.#options;
    if (engine.stopping.aborted) return new NotStartedError('db.changes()');
    if (signal?.aborted !== true) return error;
    return abortedError('db.changes()', signal.reason);
  }
}

interface FeedOptions extends LogFeedOptions, Selection {
  readonly after: number;
  readonly signal: AbortSignal | undefined;
  readonly bridge: Bridge;
  /** For the rows before changes; undefined if nobody asks for them. */
  readonly states: Pick<FeedStatesOptions, 'shown' | 'keep'> | undefined;
  /** Called with the last position that a loop has done with. */
  readonly worked: (position: number) => void;
}

/** Whether a feed of some tables, or of all, gives the changes of a table. */
export function givesTable(tables: ReadonlySet<string> | undefined): (table: string) => boolean {
  return (table) => (tables === undefined ? !isSystemTable(table) : tables.has(table));
}

/** The result of `db.changes()`: an endless loop over commits, for `for await`. Each loop begins at the same position. */
export class ChangeFeed implements AsyncIterable<CommittedChanges> {
  readonly #options: FeedOptions;
  #position: number;

  /** @internal Use `db.changes()`. */
  constructor(options: Omit<FeedOptions, 'worked'>) {
    this.#position = options.after;
    const worked = (position: number): void => void (this.#position = position);
    this.#options = { ...options, worked };
  }

  /**
   * The position up to which a loop has worked: it has asked for the next commit after the last one that it got, and later commits
   * were of other tables. Keep it now and then where the tables change seldom, since `commit.position` stays behind then.
   */
  get position(): number {
    return this.#position;
  }

  /** Begins a loop. */
  [Symbol.asyncIterator](): AsyncIterableIterator<CommittedChanges, undefined> {
    return new FeedIterator(this.#options);
  }
}
