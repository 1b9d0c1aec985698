/** Random searches with other conditions, orders and limits, in every way that could be chosen, compared with a model that looks at every row. */
import { expect, it } from 'vitest';
import { Random } from '../../properties/model/random.ts';
import { TestTable } from '../query/test-table.ts';
import type { Row } from '../query/test-table.ts';
import { runEveryWay, runOneWay } from './every-way.ts';
import { articleOf, articles, expectRanked, queryOf, resultOf, searchOf } from './random-articles.ts';
import type { Article } from './search-model.ts';

it.each([1, 2, 3])(
  'random searches find what the model finds, in each way: seed %i',
  { timeout: 300_000 },
  async (seed) => {
    const random = new Random(seed);
    const table = new TestTable(articles, { blockSizeBytes: 512 });
    const rows = new Map<number, Article>();
    /** The rows and marks of deletions that are stored, and those of each layer. */
    let counted: { readonly rows: readonly Article[]; readonly count: number }[] = [];
    let found = 0;
    for (let round = 0; round < 6; round++) {
      const changed = Array.from({ length: round === 0 ? 90 : 8 }, () => articleOf(random, random.below(120)));
      const gone = Array.from({ length: round === 0 ? 0 : 3 }, () => random.below(120));
      const last = new Map(changed.map((row) => [row.id, row]));
      const deleted = [...new Set(gone.filter((id) => rows.has(id) && !last.has(id)))];
      await table.commit([...last.values()] as unknown as readonly Row[], deleted);
      for (const row of last.values()) rows.set(row.id, row);
      for (const id of deleted) rows.delete(id);
      counted.push({ rows: [...last.values()], count: last.size + deleted.length });
      if (round % 3 === 0) {
        await table.merge();
        counted = [{ rows: [...rows.values()], count: rows.size }];
      }
      const statistics = {
        rows: counted.flatMap((one) => one.rows),
        count: counted.reduce((sum, { count }) => sum + count, 0),
      };
      const all = [...rows.values()];
      for (let i = 0; i < 25; i++) {
        const search = searchOf(random);
        const query = { ...queryOf(random), ...search };
        const everyRow = { wheres: [], orders: [], limit: undefined, offset: 0, ...search };
        const whole = (await runOneWay(table, everyRow)).rows as unknown as readonly Article[];
        const ranked = expectRanked(whole, all, search, statistics);
        const expected = resultOf(ranked, query).map(({ id }) => id);
        found += expected.length;
        for (const { way, rows: own } of await runEveryWay(table, query)) {
          expect({ query, way: way.kind, ids: own.map(({ id }) => id) }).toEqual({
            query,
            way: way.kind,
            ids: expected,
          });
        }
      }
    }
    expect(found).toBeGreaterThan(200);
  },
);
