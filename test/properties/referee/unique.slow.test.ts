/**
 * SQLite as the referee of unique indexes: random batches, which both databases must take or refuse alike. SQLite judges
 * by making the index anew from all rows once a batch is there: what counts is what it leaves.
 */
import { describe, expect, it } from 'vitest';
import { UniqueIndexError } from '../../../src/index.ts';
import { SeededRandom } from '../../../src/testing/seeded-random.ts';
import { openDatabase } from '../../features/values/open-database.ts';
import { Contest } from './contest.ts';
import { firstColumn, openSqlite } from './sqlite.ts';
import type { SqlDatabase } from './sqlite.ts';

const tables = 12;
const batches = 40;

/** Names of the indexes that SQLite cannot make. */
function refusedBy(sqlite: SqlDatabase, indexes: readonly (readonly string[])[]): string[] {
  return indexes
    .filter((fields) => {
      try {
        sqlite.run(`CREATE UNIQUE INDEX u ON t ("${fields.join('", "')}")`);
        sqlite.run('DROP INDEX u');
        return false;
      } catch (error) {
        expect((error as Error).message).toContain('UNIQUE constraint failed');
        return true;
      }
    })
    .map((fields) => fields.join(','));
}

/** Returns how many batches were refused. */
async function play(seed: number): Promise<number> {
  const random = new SeededRandom(`unique ${seed}`);
  const sqlite = await openSqlite();
  const contest = new Contest(random, sqlite, []);
  const names = contest.table.columns.slice(1).map(({ name }) => name);
  const indexes = Array.from({ length: random.integer(1, 2) }, () =>
    random.shuffled(names).slice(0, random.pick([1, 2, 2, 3])),
  ).filter((fields, i, all) => all.findIndex((other) => other.join() === fields.join()) === i);
  const schema = { ...contest.table.schema, indexes: indexes.map((fields) => ({ fields, unique: true })) };
  const db = await openDatabase([schema], undefined, { blockSizeBytes: random.pick([512, 65_536]) });
  let refusals = 0;
  for (let i = 0; i < batches; i++) {
    await contest.try(async () => {
      const batch = db.batch();
      contest.change(batch, random.pick([1, 1, 2, 3, 8]));
      const refused = refusedBy(sqlite, indexes);
      const error = await batch.flush().then(
        () => undefined,
        (reason: unknown) => reason as Error,
      );
      const found = error instanceof UniqueIndexError ? error.index : error?.message;
      // Where several indexes stand against a batch, either may be told.
      if (refused.length === 0 ? found !== undefined : !refused.includes(found as string)) {
        const where = `seed ${seed}, batch ${i}, unique indexes ${indexes.map((fields) => fields.join(',')).join('; ')}`;
        throw new Error(`${where}: ${String(found)}; SQLite refuses ${refused.join('; ')}`, { cause: error });
      }
      refusals += Math.sign(refused.length);
      return refused.length === 0;
    });
    if (random.chance(0.15)) await db.checkpoint();
  }
  const rows = await db.query('t').execute();
  const found = rows.map((row) => contest.numberOf(row['k']));
  expect(found, `seed ${seed}`).toEqual(firstColumn(sqlite, 'SELECT n FROM t ORDER BY k', []));
  sqlite.close();
  await db.stop();
  return refusals;
}

describe('SQLite and StoreDb', () => {
  it('refuse the same batches for the same unique indexes', { timeout: 120_000 }, async () => {
    let refusals = 0;
    for (let seed = 1; seed <= tables; seed++) refusals += await play(seed);
    expect(refusals).toBeGreaterThan((tables * batches) / 10);
    expect(refusals).toBeLessThan((tables * batches * 9) / 10);
  });
});
