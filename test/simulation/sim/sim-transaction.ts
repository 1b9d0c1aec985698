/**
 * One transaction of a simulated application: counts up, moves money, or decides by a query what to write. Whatever an
 * attempt reads must be of one state; what the committed one read is held against the state directly before its place in
 * the log, by the ledger.
 */
import { StoreDbError } from '../../../src/base/errors.ts';
import type { Database } from '../../../src/api/database.ts';
import type { SeededRandom } from '../../../src/testing/seeded-random.ts';
import type { Transaction } from '../../../src/transaction/transaction.ts';
import { buildQuery } from './build-query.ts';
import { itemsQuery, randomOp } from './generate.ts';
import type { RecordedRead, Segment } from './ledger.ts';
import { applyOps, rowsOf, runQuery, textOf } from './model.ts';
import type { Key, ModelQuery, Op, State } from './model.ts';
import { verdictOf } from './sim-batch.ts';
import { accountIds, accounts, engineKey, firstBalance, items, seats as seatsTable } from './tables.ts';
import type { Row } from './tables.ts';
import type { PageUser } from './page-user.ts';
import type { Asker } from './query-maker.ts';
import type { SeatUser } from './seat-user.ts';
import type { VersionUser } from './version-user.ts';
import { tableName } from './versions.ts';
import type { World } from './world.ts';

export interface SimTransactionOptions {
  readonly world: World;
  readonly name: string;
  readonly db: Database;
  readonly random: SeededRandom;
  readonly signal: AbortSignal | undefined;
  readonly sleep: () => Promise<void>;
  /** Of a node that uses a table in several versions. */
  readonly versions: VersionUser | undefined;
  /** Of a node that uses the table with unique indexes. */
  readonly seats: SeatUser | undefined;
  /** Of a node that uses the table whose key is made of several fields. */
  readonly pages: PageUser | undefined;
}

export interface TransactionReport {
  readonly error?: unknown;
  /** What was committed. */
  readonly acked?: Segment;
  /** What each attempt read. */
  readonly attempts: readonly (readonly RecordedRead[])[];
}

/** The application throws it in the middle of a transaction. */
class ChangeOfMind extends Error {}

/** What an attempt does, and has done. */
class Attempt {
  readonly reads: RecordedRead[] = [];
  segment: Segment | undefined;
  readonly since: number;
  readonly #tx: Transaction;
  readonly #ops: Op[] = [];
  readonly #sleep: () => Promise<void>;

  constructor(tx: Transaction, since: number, sleep: () => Promise<void>) {
    this.#tx = tx;
    this.since = since;
    this.#sleep = sleep;
  }

  get ops(): readonly Op[] {
    return this.#ops;
  }

  async #read(what: string, rows: () => Promise<Row[]>, model: (state: State) => readonly Row[]): Promise<Row[]> {
    const own = [...this.#ops];
    const found = await rows();
    const resultAt = (state: State): string =>
      textOf(model(own.length === 0 ? state : (applyOps(state, own, true) as State)));
    this.reads.push({ what, found: textOf(found), resultAt });
    await this.#sleep();
    return found;
  }

  async get(table: string, key: Key): Promise<Row | undefined> {
    const rows = async (): Promise<Row[]> => {
      const row = (await this.#tx.get(tableName(table), engineKey(table, key))) as Row | undefined;
      return row === undefined ? [] : [row];
    };
    const [found] = await this.#read(`get ${table} ${key}`, rows, (state) => {
      const row = rowsOf(state, table).get(key);
      return row === undefined ? [] : [row];
    });
    return found;
  }

  query(query: ModelQuery): Promise<Row[]> {
    const { table } = query;
    const rows = async (): Promise<Row[]> =>
      (await buildQuery(this.#tx.query(tableName(table)), query).execute()) as Row[];
    return this.#read(`query ${JSON.stringify(query)}`, rows, (state) => runQuery(rowsOf(state, table), query));
  }

  /** Asks a query for something else than its rows. */
  async ask(asker: Asker): Promise<void> {
    const own = [...this.#ops];
    const { table, given } = asker.ask((name) => this.#tx.query(name));
    for await (const { what, found, expected } of given) {
      const resultAt = (state: State): string =>
        expected(rowsOf(own.length === 0 ? state : (applyOps(state, own, true) as State), table));
      this.reads.push({ what, found, resultAt });
      await this.#sleep();
    }
  }

  async write(op: Op): Promise<void> {
    this.#ops.push(op);
    const table = tableName(op.table);
    if (op.kind === 'delete') await this.#tx.delete(table, engineKey(op.table, op.key));
    else await this.#tx[op.kind](table, op.document);
  }

  async seal(segment: Segment): Promise<void> {
    this.segment = segment;
    segment.reads = this.reads;
    await this.#tx.upsert('marks', { id: segment.mark });
  }
}

type Plan = (attempt: Attempt, random: SeededRandom, world: World) => Promise<void>;

const all = (table: string): ModelQuery => ({ table, wheres: [], orders: [], offset: 0 });

/** Moves money from one account to another; their sum stays what it is. */
async function transfer(attempt: Attempt, random: SeededRandom): Promise<void> {
  const table = accounts.name;
  const [from, to] = random.shuffled(accountIds) as [number, number];
  const source = await attempt.get(table, from);
  if (source === undefined) {
    for (const id of accountIds)
      await attempt.write({ kind: 'insert', table, key: id, document: { id, balance: firstBalance } });
    return;
  }
  const target = (await attempt.get(table, to)) as Row;
  const amount = random.integer(1, 30);
  const change = (id: number, by: number, row: Row): Promise<void> =>
    attempt.write({ kind: 'update', table, key: id, document: { id, balance: (row['balance'] as number) + by } });
  await change(from, -amount, source);
  await change(to, amount, target);
}

/** Counts up what is in a row. */
async function count(attempt: Attempt, random: SeededRandom, { config }: World): Promise<void> {
  const table = items.name;
  const id = random.integer(1, config.scale.keys);
  const row = await attempt.get(table, id);
  const rank = ((row?.['rank'] ?? 0) as number) + 1;
  const kind = row === undefined ? 'insert' : 'update';
  await attempt.write({ kind, table, key: id, document: { id, rank } });
}

/** Writes by what a query found, a row that the query would have found too: the trap of snapshot isolation. */
async function skew(attempt: Attempt, random: SeededRandom, { config }: World): Promise<void> {
  const table = items.name;
  const owner = random.pick(['ann', 'bob']);
  const rows = await attempt.query({ ...all(table), wheres: [{ field: 'owner', operator: '=', value: owner }] });
  const last = rows.at(-1);
  const id = random.integer(1, config.scale.keys);
  if (rows.length < 2 || last === undefined) {
    await attempt.write({ kind: 'upsert', table, key: id, document: { id, owner, rank: rows.length } });
  } else await attempt.write({ kind: 'delete', table, key: last['id'] as number });
}

/** Reads, and writes, this and that. */
async function anything(attempt: Attempt, random: SeededRandom, { config, ledger }: World): Promise<void> {
  const steps = random.integer(1, 5);
  for (let i = 0; i < steps; i++) {
    if (random.chance(0.6)) await attempt.query(itemsQuery(random, config.scale));
    else {
      const op = randomOp(random, ledger.state, config.scale);
      if (op.table === items.name) await attempt.write(op);
    }
  }
}

/** Reads and writes the table that there is in several versions, by what it has read. */
function ofVersions(versions: VersionUser): Plan {
  return async (attempt, random) => {
    const { table } = versions;
    const rows = random.chance(0.5) ? await attempt.query(versions.anyQuery()) : await attempt.query(all(table));
    for (let i = random.integer(1, 2); i > 0; i--) {
      const op = versions.anyOp(rows.map((row) => row['id'] as number));
      const row = await attempt.get(table, op.key);
      const isThere = row !== undefined;
      if (op.kind === 'delete' || op.kind === 'upsert') await attempt.write(op);
      else
        await attempt.write({ ...op, kind: isThere ? 'update' : 'insert', document: versions.complete(op.document) });
    }
    if (random.chance(0.3)) await attempt.get(items.name, random.integer(1, 4));
  };
}

/** Takes a value only where a query has shown that it is free: so no unique index can stand against it. */
function claim(seats: SeatUser): Plan {
  return async (attempt, random) => {
    const table = seatsTable.name;
    const op = seats.anyOp();
    const row = await attempt.get(table, op.key);
    const email = op.kind === 'delete' ? null : (op.document['email'] ?? null);
    const wheres = [{ field: 'email', operator: '=', value: email }] as const;
    const others = email === null ? [] : await attempt.query({ ...all(table), wheres });
    const id = op.key;
    if (others.length > 0) await attempt.write({ kind: 'delete', table, key: (others[0] as Row)['id'] as number });
    else if (row === undefined) await attempt.write({ kind: 'insert', table, key: id, document: { id, email } });
    else
      await attempt.write({
        kind: 'update',
        table,
        key: id,
        document: { id, email, text: `t${random.integer(-9, 9)}` },
      });
  };
}

/** Asks, and writes, this and that. */
function anySeats(seats: SeatUser): Plan {
  return async (attempt, random) => {
    const steps = random.integer(1, 4);
    for (let i = 0; i < steps; i++) {
      const dice = random.next();
      if (dice < 0.4) await attempt.ask(seats);
      else if (dice < 0.6) await attempt.query(seats.anyQuery());
      else if (dice < 0.9) await attempt.write(seats.anyOp());
      else for (const op of seats.pair()) await attempt.write(op);
    }
  };
}

/** Asks for rows by keys of several fields, and writes them. */
function anyPages(pages: PageUser): Plan {
  return async (attempt, random) => {
    const steps = random.integer(1, 4);
    for (let i = 0; i < steps; i++) {
      const dice = random.next();
      if (dice < 0.25) await attempt.ask(pages);
      else if (dice < 0.5) await attempt.query(pages.anyQuery());
      else if (dice < 0.65) {
        const { table, key } = pages.anyGet();
        await attempt.get(table, key);
      } else await attempt.write(pages.anyOp());
    }
  };
}

const plans: readonly Plan[] = [transfer, transfer, count, skew, skew, anything];

function planOf({ random, versions, seats, pages }: SimTransactionOptions): Plan {
  if (versions?.chance() === true) return ofVersions(versions);
  if (seats?.chance() === true) return random.chance(0.4) ? claim(seats) : anySeats(seats);
  if (pages?.chance() === true) return anyPages(pages);
  return random.pick(plans);
}

export async function runTransaction(options: SimTransactionOptions): Promise<TransactionReport> {
  const { world, name, db, random, signal, sleep } = options;
  const { ledger, trace } = world;
  const plan = planOf(options);
  const maxAttempts = random.pick([1, 3, 16]);
  const attempts: Attempt[] = [];
  const reads = (): RecordedRead[][] => attempts.map((attempt) => attempt.reads);
  try {
    await db.transaction(
      async (tx) => {
        const before = attempts.at(-1)?.segment;
        // It is tried again, so the one before it was not applied, and never will be.
        if (before !== undefined) ledger.rejected([before], 0, undefined, 'it was tried again');
        const attempt = new Attempt(tx, ledger.tail, () => (random.chance(0.3) ? sleep() : Promise.resolve()));
        attempts.push(attempt);
        await plan(attempt, random, world);
        if (random.chance(0.03)) throw new ChangeOfMind();
        if (attempt.ops.length > 0) await attempt.seal(ledger.segment([...attempt.ops]));
      },
      { maxAttempts, ...(signal === undefined ? {} : { signal }) },
    );
  } catch (error) {
    failed(world, attempts.at(-1), error);
    return { attempts: reads(), ...(error instanceof ChangeOfMind ? {} : { error }) };
  }
  trace.add(name, `transaction committed at attempt ${attempts.length}`);
  const acked = attempts.at(-1)?.segment;
  if (acked === undefined) return { attempts: reads() };
  ledger.acked([acked]);
  return { attempts: reads(), acked };
}

function failed({ ledger }: World, last: Attempt | undefined, error: unknown): void {
  if (last?.segment === undefined) return;
  const code = error instanceof StoreDbError ? error.code : String(error);
  if (code === 'COMMIT_OUTCOME_UNKNOWN') last.segment.status = 'unknown';
  else ledger.rejected([last.segment], last.since, verdictOf(error), code);
}
