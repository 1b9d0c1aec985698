/**
 * SQLite as the referee: random tables and queries, which both databases must answer alike, whether rows are in blocks,
 * in commits that are not merged or in a batch. A failure names its seed; run that alone with
 * REFEREE_SEED=<seed> npx vitest run test/referee
 */
import { describe, expect, it } from 'vitest';
import { SeededRandom } from '../../src/testing/seeded-random.ts';
import { openDatabase } from '../values/open-database.ts';
import type { AnyQuery } from '../values/open-database.ts';
import { indexedFields, randomQuery, randomRow, randomTable, toSelect, toSql } from './random-tables.ts';
import type { RandomQuery, Row, Table } from './random-tables.ts';
import { firstColumn, openSqlite } from './sqlite.ts';
import type { SqlDatabase } from './sqlite.ts';

const wantedQueries = 21_000;
const queriesPerStage = 40;
const rowCount = 120;

/** Both databases with one table, whose rows are numbered: in SQLite by a column `n`, in StoreDb by their key. */
class Contest {
  readonly table: Table;
  readonly random: SeededRandom;
  readonly keys: readonly unknown[];
  readonly #numbers = new Map<string, number>();
  readonly #sqlite: SqlDatabase;
  readonly #present = new Set<number>();

  constructor(random: SeededRandom, sqlite: SqlDatabase) {
    this.random = random;
    this.table = randomTable(random, 't');
    this.keys = Array.from({ length: rowCount }, (_, i) => this.table.key(random, i));
    this.keys.forEach((key, i) => this.#numbers.set(nameOf(key), i));
    this.#sqlite = sqlite;
    const columns = this.table.columns.map(({ name, kind }) => `"${name}" ${kind.sqlType}`);
    sqlite.run(`CREATE TABLE t (n INTEGER, ${columns.join(', ')})`);
    for (const fields of indexedFields(this.table)) {
      sqlite.run(`CREATE INDEX "by ${fields.join(', ')}" ON t ("${fields.join('", "')}")`);
    }
  }

  /** Random inserts, updates, replacements and deletions, in SQLite at once and in a batch. */
  change(
    batch: { insert: Write; update: Write; upsert: Write; delete(table: string, key: unknown): Promise<void> },
    count: number,
  ): void {
    const { random, table } = this;
    for (let i = 0; i < count; i++) {
      const n = random.integer(0, rowCount - 1);
      const key = this.keys[n];
      const row = randomRow(random, table, key);
      if (!this.#present.has(n)) {
        void batch[random.pick(['insert', 'upsert'] as const)]('t', row);
        this.#replace(n, row);
        continue;
      }
      const operation = random.pick(['delete', 'upsert', 'update'] as const);
      if (operation === 'delete') {
        void batch.delete('t', key);
        this.#delete(n);
      } else if (operation === 'upsert') {
        void batch.upsert('t', row);
        this.#replace(n, row);
      } else this.#update(batch, n, row);
    }
  }

  #update(batch: { update: Write }, n: number, row: Row): void {
    const [changed] = this.random.shuffled(this.table.columns.slice(1));
    if (changed === undefined) return;
    void batch.update('t', { k: row['k'], [changed.name]: row[changed.name] });
    const statement = this.#sqlite.prepare(`UPDATE t SET "${changed.name}" = ? WHERE n = ?`);
    statement.run([toSql(row[changed.name], changed.kind.typeId), n]);
    statement.free();
  }

  #delete(n: number): void {
    this.#sqlite.run(`DELETE FROM t WHERE n = ${n}`);
    this.#present.delete(n);
  }

  #replace(n: number, row: Row): void {
    this.#delete(n);
    const values = this.table.columns.map(({ name, kind }) => toSql(row[name], kind.typeId));
    const statement = this.#sqlite.prepare(`INSERT INTO t VALUES (${[n, ...values].map(() => '?').join(', ')})`);
    statement.run([n, ...values]);
    statement.free();
    this.#present.add(n);
  }

  /** The numbers of the rows that SQLite finds. */
  expected(query: RandomQuery): unknown[] {
    const { sql, values } = toSelect(this.table, query);
    return firstColumn(this.#sqlite, sql, values);
  }

  async found(query: AnyQuery): Promise<unknown[]> {
    return (await query.execute()).map((row) => this.#numbers.get(nameOf(row['k'])));
  }
}

type Write = (table: string, row: Row) => Promise<void>;

function nameOf(key: unknown): string {
  return key instanceof Uint8Array ? Buffer.from(key).toString('hex') : String(key);
}

function build(start: AnyQuery, query: RandomQuery): AnyQuery {
  for (const { column, operator, value } of query.conditions) start.where(column.name, operator, value);
  for (const { name, direction } of query.orders) start.orderBy(name, direction);
  if (query.limit !== undefined) start.limit(query.limit);
  return query.offset > 0 ? start.offset(query.offset) : start;
}

function describeQuery(seed: number, stage: string, table: Table, query: RandomQuery): string {
  const { sql, values } = toSelect(table, query);
  const shown = values.map((value) => (typeof value === 'string' ? JSON.stringify(value.slice(-20)) : String(value)));
  return `REFEREE_SEED=${seed}, ${stage}, indexes ${indexedFields(table).join('; ')}: ${sql} with ${shown.join(', ')}`;
}

/** Queries of every stage that a table goes through. Returns how many there were, and how many found anything. */
async function play(seed: number): Promise<{ queries: number; matched: number }> {
  const random = new SeededRandom(seed);
  const sqlite = await openSqlite();
  const contest = new Contest(random, sqlite);
  const { table, keys } = contest;
  const db = await openDatabase([table.schema], undefined, { blockSizeBytes: random.pick([512, 2048, 65_536]) });
  let queries = 0;
  let matched = 0;
  const check = async (stage: string, start: () => AnyQuery): Promise<void> => {
    for (let i = 0; i < queriesPerStage; i++) {
      const query = randomQuery(random, table, keys);
      const expected = contest.expected(query);
      const found = await contest.found(build(start(), query));
      if (found.length !== expected.length || found.some((n, at) => n !== expected[at])) {
        const rows = `found ${found.join(', ')}; expected ${expected.join(', ')}`;
        throw new Error(`${describeQuery(seed, stage, table, query)}: ${rows}`);
      }
      const count = await build(start(), query).count();
      if (count !== expected.length) {
        throw new Error(`${describeQuery(seed, stage, table, query)}: counted ${count}; expected ${expected.length}`);
      }
      matched += Math.sign(found.length);
      queries++;
    }
  };
  const stored = (): AnyQuery => db.query('t');
  const flush = async (count: number): Promise<void> => {
    const batch = db.batch();
    contest.change(batch, count);
    await batch.flush();
  };
  await flush(150);
  await check('flushed', stored);
  await db.checkpoint();
  await check('merged', stored);
  for (let layer = 0; layer < 3; layer++) await flush(random.integer(1, 25));
  await check('with layers', stored);
  const batch = db.batch();
  contest.change(batch, 20);
  await check('with an overlay', () => db.query('t').overlay(batch));
  const sub = batch.subBatch();
  contest.change(sub, 10);
  await check('with two overlays', () => db.query('t').overlay(sub));
  await sub.flush();
  await batch.flush();
  await db.checkpoint();
  await check('merged again', stored);
  sqlite.close();
  await db.stop();
  return { queries, matched };
}

describe('SQLite and StoreDb', () => {
  it('answer random queries alike', { timeout: 180_000 }, async () => {
    const only = process.env['REFEREE_SEED'];
    if (only !== undefined) {
      await play(Number(only));
      return;
    }
    let queries = 0;
    let matched = 0;
    for (let seed = 1; queries < wantedQueries; seed++) {
      const played = await play(seed);
      queries += played.queries;
      matched += played.matched;
    }
    expect(queries).toBeGreaterThanOrEqual(20_000);
    // Or the referee would have nothing to see.
    expect(matched).toBeGreaterThan(queries / 2);
  });
});
