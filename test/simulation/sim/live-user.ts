/**
 * The queries that one life of a simulated process watches, and the changes that it follows. Each result must be the model's after exactly
 * the commit whose position it has, later than the one before and different from it, and the newest one must be the present result once
 * nothing is written any more. The row before each change must be the model's before the change.
 */
import { sleep } from '../../../src/base/env.ts';
import type { Environment } from '../../../src/base/env.ts';
import { StoreDbError } from '../../../src/base/errors.ts';
import type { Database } from '../../../src/api/database.ts';
import type { CommittedChanges, ChangeFeed } from '../../../src/instance/change-feed.ts';
import type { LiveResults, LiveRows, LiveValue } from '../../../src/query/live-results.ts';
import type { Query } from '../../../src/query/query.ts';
import type { SeededRandom } from '../../../src/testing/seeded-random.ts';
import { aggregatesOf, expectedAnswer, sorted, text } from './ask.ts';
import type { Ask } from './ask.ts';
import { buildQuery } from './build-query.ts';
import { rowsOf, runQuery, textOf } from './model.ts';
import type { ModelQuery, State } from './model.ts';
import { completeRow, modelKey, tablesIn } from './tables.ts';
import type { Row } from './tables.ts';
import { isVersioned, tableName } from './versions.ts';
import type { World } from './world.ts';

type Result = LiveRows<object> | LiveValue<unknown>;

export interface LiveUserOptions {
  readonly world: World;
  readonly name: string;
  readonly db: Database;
  readonly environment: Environment;
  readonly random: SeededRandom;
  /** What the process asks now and then. */
  readonly query: () => ModelQuery;
  readonly expect: (what: string, error: unknown) => void;
}

/** A loop, and what it has given. */
interface Watched {
  readonly what: string;
  readonly table: string;
  readonly loop: AsyncIterator<Result, unknown>;
  /** The result in a state. */
  readonly expected: (state: State) => string;
  readonly foundIn: (result: Result) => string;
  /** Results may look the same: their rows lack fields. */
  readonly isCut: boolean;
  /** How long it takes over each result, in virtual time. */
  readonly slowMs: number;
  last: Result | undefined;
  isOver: boolean;
}

interface Followed {
  readonly feed: ChangeFeed;
  readonly tables: ReadonlySet<string>;
  readonly loop: AsyncIterator<CommittedChanges, unknown>;
  at: number;
  isOver: boolean;
}

const invariant = 'live queries';
const feedInvariant = 'rows before changes';
const maxWatched = 5;

/** A number field of each table, and the fields that its groups are made by. */
const figuresOf: Readonly<Record<string, readonly [field: string, by: readonly string[]]>> = {
  items: ['rank', ['owner']],
  notes: ['score', ['score']],
  seats: ['points', ['team']],
  pages: ['rank', ['tenant', 'slug']],
};

export class LiveUser {
  readonly #options: LiveUserOptions;
  readonly #watched: Watched[] = [];
  #followed: Followed | undefined;

  constructor(options: LiveUserOptions) {
    this.#options = options;
  }

  mayAct(): boolean {
    const { random, world } = this.#options;
    return random.chance(world.config.liveChance);
  }

  /** Begins to watch a query, or to follow changes, or ends that. */
  act(): void {
    const { random } = this.#options;
    const open = this.#watched.filter(({ isOver }) => !isOver);
    if (this.#followed?.isOver !== false && random.chance(0.3)) return this.#follow();
    if (open.length < maxWatched && random.chance(0.8)) return this.#watch();
    if (open.length > 0) this.#end(random.pick(open));
  }

  #fail(of: string, what: string): void {
    const { world, name } = this.#options;
    world.judge.fail(of, `${name}: ${what}`);
  }

  #watch(): void {
    const { random, db, query: anyQuery, world, name } = this.#options;
    const model = anyQuery();
    const query = buildQuery(db.query(tableName(model.table)), model) as Query;
    const slowMs = random.pick([0, 0, 0, 1, 10]) * world.config.thinkMs;
    const { table } = model;
    const watched = { ...this.#asked(model, query), table, slowMs, last: undefined, isOver: false };
    world.trace.add(name, `watches ${watched.what}`);
    this.#watched.push(watched);
    void this.#read(watched);
  }

  #asked(model: ModelQuery, query: Query): Omit<Watched, 'table' | 'slowMs' | 'last' | 'isOver'> {
    const { random } = this.#options;
    const figures = figuresOf[model.table];
    const dice = random.next();
    const what = JSON.stringify(model);
    const loopOf = (results: unknown): Watched['loop'] => (results as LiveResults<Result>)[Symbol.asyncIterator]();
    if (dice < 0.55 || (figures === undefined && dice < 0.9)) return this.#rows(model, query);
    const ofRows = (asked: Exclude<Ask, { kind: 'pages' }>) => (state: State) =>
      text(expectedAnswer(runQuery(rowsOf(state, model.table), model), asked));
    if (figures === undefined || dice < 0.7) {
      const foundIn = (result: Result): string => text((result as LiveValue<unknown>).value);
      const expected = ofRows({ kind: 'count' });
      return { what: `the count of ${what}`, loop: loopOf(query.watchCount()), foundIn, expected, isCut: false };
    }
    const [field, by] = figures;
    if (dice < 0.85) {
      const foundIn = (result: Result): string => text([sorted((result as LiveValue<Row>).value)]);
      const loop = loopOf(query.watchAggregate(aggregatesOf(field)));
      const expected = ofRows({ kind: 'groups', by: [], field });
      return { what: `aggregates of ${what}`, loop, foundIn, expected, isCut: false };
    }
    const foundIn = (result: Result): string => text((result as LiveRows<Row>).rows.map(sorted));
    const loop = loopOf(query.groupBy(...by).watch(aggregatesOf(field)));
    return {
      what: `groups of ${what}`,
      loop,
      foundIn,
      expected: ofRows({ kind: 'groups', by, field }),
      isCut: false,
    };
  }

  #rows(model: ModelQuery, query: Query): Omit<Watched, 'table' | 'slowMs' | 'last' | 'isOver'> {
    const { random, world } = this.#options;
    const { table } = model;
    const all = isVersioned(table) ? [] : Object.keys(completeRow(table, {}));
    const fields = random.chance(0.3) ? all.filter(() => random.chance(0.5)) : [];
    const isCut = fields.length > 0;
    const cut = (row: Row): Row => (isCut ? (Object.fromEntries(fields.map((name) => [name, row[name]])) as Row) : row);
    const selected = isCut ? query.select(...fields) : query;
    return {
      what: `${isCut ? `${fields.join()} of ` : ''}${JSON.stringify(model)}`,
      loop: (selected.watch() as unknown as LiveResults<Result>)[Symbol.asyncIterator](),
      foundIn: (result) =>
        textOf(((result as LiveRows<object>).rows as Row[]).map((row) => world.ledger.blobs.read(table, row))),
      expected: (state) => textOf(runQuery(rowsOf(state, table), model).map(cut)),
      isCut,
    };
  }

  async #read(watched: Watched): Promise<void> {
    const { expect, environment, random, world, name } = this.#options;
    try {
      for (;;) {
        const next = await watched.loop.next();
        if (next.done === true || watched.isOver) return;
        world.trace.add(name, `sees ${watched.what} at ${next.value.position}`);
        this.#judge(watched, next.value);
        if (watched.slowMs > 0) await sleep(environment, random.between(0, 2) * watched.slowMs);
      }
    } catch (error) {
      expect(`watch ${watched.what}`, error);
    } finally {
      watched.isOver = true;
    }
  }

  #end(watched: Watched): void {
    watched.isOver = true;
    void watched.loop.return?.();
  }

  /** The states that an instance may show at a position. */
  #statesAt(position: number): readonly State[] {
    const { ledger } = this.#options.world;
    return [ledger.stateAt(position), ...ledger.supersededAt(position)];
  }

  #judge(watched: Watched, result: Result): void {
    const { ledger } = this.#options.world;
    const { what, table, last, expected, foundIn } = watched;
    const { position } = result;
    const found = foundIn(result);
    if (position > ledger.tail) return this.#fail(invariant, `${what} shows slot ${position}, of ${ledger.tail}`);
    if (!this.#statesAt(position).some((state) => expected(state) === found)) {
      const right = expected(ledger.stateAt(position));
      this.#fail(invariant, `${what} at slot ${position} is\n${found}\nIn the model:\n${right}`);
    }
    if (last !== undefined) {
      // A row is in another version once its table was migrated, which is no commit.
      const isBack = isVersioned(table) ? position < last.position : position <= last.position;
      if (isBack) this.#fail(invariant, `${what} shows slot ${position} after ${last.position}`);
    }
    if ('rows' in result) this.#judgeDifferences(watched, result, last as LiveRows<object> | undefined);
    else if (last !== undefined && foundIn(last) === found)
      this.#fail(invariant, `${what} gives a value twice, at ${position}`);
    watched.last = result;
  }

  /** The differences lead from the result before to this one, and there are some. */
  #judgeDifferences({ what, isCut, foundIn }: Watched, result: LiveRows<object>, last?: LiveRows<object>): void {
    const { rows, added, changed, removed, position } = result;
    const before = new Set(last?.rows);
    const fresh = new Set(rows.filter((row) => !before.has(row)));
    const told = new Set([...added, ...changed]);
    const isTold = fresh.size === told.size && [...fresh].every((row) => told.has(row));
    const counts = before.size - removed.length + added.length === rows.length;
    if (!isTold || !counts || removed.some((row) => !before.has(row)))
      this.#fail(invariant, `${what} at slot ${position} has other differences than it tells`);
    const isSame = last !== undefined && !isCut && foundIn(last) === foundIn(result);
    if (isSame) this.#fail(invariant, `${what} gives the same rows again at slot ${position}`);
  }

  #follow(): void {
    const { db, random, world, name } = this.#options;
    const { ledger } = world;
    const all = tablesIn(world.config);
    const chosen = all.filter(() => random.chance(0.6));
    const tables = chosen.length === 0 ? all : chosen;
    try {
      const after = random.chance(0.3) ? random.integer(0, ledger.tail) : undefined;
      const from = Math.min(after ?? db.position, db.position);
      const feed = db.changes({ after: from, before: true, tables });
      world.trace.add(name, `follows ${tables.join()} after ${from}`);
      const loop = feed[Symbol.asyncIterator]();
      const followed = { feed, tables: new Set(tables), loop, at: from, isOver: false };
      this.#followed = followed;
      void this.#readChanges(followed, random.pick([0, 0, 3, 20]) * world.config.thinkMs);
    } catch (error) {
      this.#options.expect('changes', error);
    }
  }

  async #readChanges(followed: Followed, slowMs: number): Promise<void> {
    const { environment, random, expect, world, name } = this.#options;
    try {
      for (;;) {
        const next = await followed.loop.next();
        if (next.done === true) return;
        const commit = next.value;
        await this.#judgeCommit(followed, commit);
        world.trace.add(name, `is told of ${commit.position}`);
        followed.at = commit.position;
        if (slowMs > 0) await sleep(environment, random.between(0, 2) * slowMs);
      }
    } catch (error) {
      // The log was trimmed, or what was before is not kept.
      const isGone = error instanceof StoreDbError && error.code === 'CHANGES_EXPIRED';
      if (!isGone) expect('changes', error);
    } finally {
      followed.isOver = true;
    }
  }

  async #judgeCommit({ tables, at }: Followed, commit: CommittedChanges): Promise<void> {
    const { world } = this.#options;
    const { ledger } = world;
    const { position } = commit;
    if (position <= at) this.#fail(feedInvariant, `slot ${position} is told after ${at}`);
    for (let slot = at + 1; slot < position; slot++) this.#mustBeLeftOut(slot, tables);
    const state = ledger.stateAt(position - 1);
    const rows = new Map<string, string>();
    for await (const change of commit) {
      const { table, before, row } = change;
      const key = modelKey(change.key);
      const place = `${table} ${key}`;
      const known = rows.get(place) ?? this.#textOf(table, rowsOf(state, table).get(key));
      const found = this.#textOf(table, before && ledger.blobs.read(table, before as Row));
      if (found !== known) {
        this.#fail(feedInvariant, `slot ${position}: ${place} was\n${found}\nIn the model:\n${known}`);
        return;
      }
      rows.set(place, this.#textOf(table, row && ledger.blobs.read(table, row as Row)));
    }
  }

  #mustBeLeftOut(slot: number, tables: ReadonlySet<string>): void {
    const { members = [] } = this.#options.world.ledger.commitAt(slot) ?? {};
    const names = members.flatMap(({ changes }) => changes.map(({ schema }) => schema.name));
    const missing = names.find((table) => tables.has(table));
    if (missing !== undefined) this.#fail(feedInvariant, `slot ${slot} changes ${missing}, and is not told`);
  }

  #textOf(table: string, row: Row | null | undefined): string {
    return row === undefined || row === null ? 'no row' : `${table} ${textOf([row])}`;
  }

  /** Now that everything works and nothing is written any more, the newest results are those of the present state. */
  async finish(): Promise<void> {
    const { environment, world } = this.#options;
    const { config, ledger, judge } = world;
    const isBehind = (): Watched | undefined => this.#watched.find((watched) => this.#isBehind(watched));
    for (let tries = 0; tries < 30 && isBehind() !== undefined && judge.violation === undefined; tries++) {
      await sleep(environment, config.intervalMs + 20 * config.thinkMs + 1000);
    }
    const behind = isBehind();
    if (behind === undefined) return;
    const { what, last, expected, foundIn } = behind;
    const found = last === undefined ? 'nothing' : `${foundIn(last)}\nat slot ${last.position}`;
    this.#fail(
      invariant,
      `${what} at the end, of ${ledger.tail}, is\n${found}\nIn the model:\n${expected(ledger.state)}`,
    );
  }

  #isBehind({ isOver, last, expected, foundIn }: Watched): boolean {
    const { ledger } = this.#options.world;
    if (isOver) return false;
    return last === undefined || foundIn(last) !== expected(ledger.state);
  }

  /** Ends all loops. */
  end(): void {
    for (const watched of this.#watched) if (!watched.isOver) this.#end(watched);
    void this.#followed?.loop.return?.();
  }
}
