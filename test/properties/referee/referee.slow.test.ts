/**
 * SQLite as the referee: random tables and queries, which both databases must answer alike, whether rows are in blocks,
 * in commits that are not merged or in a batch. A failure names its seed; run that alone with
 * REFEREE_SEED=<seed> npx vitest run test/properties/referee
 */
import { describe, expect, it } from 'vitest';
import { SeededRandom } from '../../../src/testing/seeded-random.ts';
import { openDatabase } from '../../features/values/open-database.ts';
import type { AnyQuery } from '../../features/values/open-database.ts';
import { compareAnswers } from './asks.ts';
import { Contest } from './contest.ts';
import { build, randomQuery, toSelect } from './random-queries.ts';
import type { RandomQuery } from './random-queries.ts';
import { indexedFields } from './random-tables.ts';
import type { Table } from './random-tables.ts';
import { firstColumn, openSqlite } from './sqlite.ts';

const wantedQueries = 12_000;
const queriesPerStage = 40;
/** One query in so many is asked for something else than its rows as well. */
const asks = 0.25;

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
      const { sql, values } = toSelect(table, query);
      const expected = firstColumn(sqlite, sql, values);
      const rows = await build(start(), query).execute();
      const found = rows.map((row) => contest.numberOf(row['k']));
      const wrong = (what: string): never => {
        throw new Error(`${describeQuery(seed, stage, table, query)}: ${what}`);
      };
      if (found.length !== expected.length || found.some((n, at) => n !== expected[at]))
        wrong(`found ${found.join(', ')}; expected ${expected.join(', ')}`);
      const count = await build(start(), query).count();
      if (count !== expected.length) wrong(`counted ${count}; expected ${expected.length}`);
      const problem = random.chance(asks) ? await compareAnswers(contest, start, query) : undefined;
      if (problem !== undefined) wrong(problem);
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
    expect(queries).toBeGreaterThanOrEqual(wantedQueries);
    // Or the referee would have nothing to see.
    expect(matched).toBeGreaterThan(queries / 2);
  });
});
