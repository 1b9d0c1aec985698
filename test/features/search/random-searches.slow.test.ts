/** Random searches with other conditions, orders and limits, in every way that could be chosen, compared with a model that looks at every row. */
import { expect, it } from 'vitest';
import { Types } from '../../../src/format/types.ts';
import type { SearchOptions } from '../../../src/query/conditions/search-options.ts';
import { Random } from '../../properties/model/random.ts';
import { runModel } from '../query/model.ts';
import type { ModelClause, ModelQuery } from '../query/model.ts';
import { TestTable } from '../query/test-table.ts';
import type { Row } from '../query/test-table.ts';
import { runEveryWay, runOneWay } from './every-way.ts';
import { searchModel } from './search-model.ts';
import type { Article } from './search-model.ts';

const articles = {
  name: 'articles',
  version: 1,
  fields: {
    id: { typeId: Types.uint32 },
    title: { typeId: Types.varchar },
    body: { typeId: Types.varchar },
    section: { typeId: Types.uint8 },
  },
  primaryKey: 'id',
  indexes: [{ fields: ['title', 'body'], text: { weights: { title: 3 } }, name: 'words' }, 'section'],
} as const;

const vocabulary = ['red', 'wine', 'white', 'winter', 'grape', 'glass', 'cellar', 'oak', 'ref', 'read'];

function textOf(random: Random, most: number): string {
  // The first words come more often than the last ones.
  const word = (): string => vocabulary[Math.min(random.below(10), random.below(10))] as string;
  return Array.from({ length: random.below(most + 1) }, word).join(' ');
}

function articleOf(random: Random, id: number): Article {
  const title = random.chance(0.1) ? null : textOf(random, 3);
  return { id, title, body: textOf(random, 12), section: random.below(4) };
}

function searchOf(random: Random): readonly [string, SearchOptions] {
  const prefix = random.chance(0.3);
  const terms = Array.from({ length: random.between(1, 3) }, () => {
    return random.chance(0.2) ? `"${random.pick(vocabulary)} ${random.pick(vocabulary)}"` : random.pick(vocabulary);
  });
  if (random.chance(0.25)) terms.unshift(`-${random.pick(vocabulary)}`);
  const last = random.pick(vocabulary);
  terms.push(prefix ? last.slice(0, random.between(1, last.length)) : last);
  // A term that is there twice counts once.
  const text = [...new Set(terms)].join(' ');
  const options: SearchOptions = {
    prefix,
    match: random.pick(['all', 'any']),
    ...(random.chance(0.2) ? { fields: [random.pick(['title', 'body'] as const)] } : {}),
    ...(random.chance(0.2) ? { weights: { body: 2 } } : {}),
  };
  return [text, options];
}

function queryOf(random: Random): ModelQuery {
  const wheres: readonly ModelClause[] = [
    ['section', '=', random.below(4)],
    ['section', 'IN', [1, 2]],
    ['id', '<', random.below(120)],
    {
      or: [
        ['section', '=', 0],
        ['id', '>', 60],
      ],
    },
  ];
  return {
    wheres: wheres.filter(() => random.chance(0.2)),
    orders: random.chance(0.3) ? [[random.pick(['section', 'id']), random.pick(['asc', 'desc'])]] : [],
    limit: random.pick([undefined, 1, 5, 20]),
    offset: random.pick([0, 0, 0, 4]),
  };
}

it.each([1, 2, 3])('random searches find what the model finds, in each way: seed %i', async (seed) => {
  const random = new Random(seed);
  const table = new TestTable(articles, { blockSizeBytes: 512 });
  const rows = new Map<number, Article>();
  let found = 0;
  for (let round = 0; round < 6; round++) {
    const changed = Array.from({ length: round === 0 ? 90 : 8 }, () => articleOf(random, random.below(120)));
    const gone = Array.from({ length: round === 0 ? 0 : 3 }, () => random.below(120));
    const last = new Map(changed.map((row) => [row.id, row]));
    const deleted = gone.filter((id) => rows.has(id) && !last.has(id));
    await table.commit([...last.values()] as unknown as readonly Row[], [...new Set(deleted)]);
    for (const row of last.values()) rows.set(row.id, row);
    for (const id of deleted) rows.delete(id);
    const isMerged = round % 3 === 0;
    if (isMerged) await table.merge();
    const all = [...rows.values()].toSorted((a, b) => a.id - b.id);
    for (let i = 0; i < 25; i++) {
      const [text, options] = searchOf(random);
      const query = queryOf(random);
      const wanted = searchModel(all, [3, 1], text, options) as unknown as readonly Row[];
      const everyRow = { wheres: [], orders: [], limit: undefined, offset: 0, text, options };
      // The numbers of rows and words, and so the order, are exact once all is merged.
      const ranked = isMerged ? wanted : (await runOneWay(table, everyRow)).rows;
      expect(new Set(ranked.map(({ id }) => id))).toEqual(new Set(wanted.map(({ id }) => id)));
      const matching = new Set(
        runModel(ranked, 'id', { ...query, orders: [], limit: undefined, offset: 0 }).map(({ id }) => id),
      );
      const kept = ranked.filter(({ id }) => matching.has(id));
      const end = query.limit === undefined ? undefined : query.offset + query.limit;
      const expected = (
        query.orders.length === 0 ? kept.slice(query.offset, end) : runModel(kept, 'id', { ...query, wheres: [] })
      ).map(({ id }) => id);
      found += expected.length;
      for (const { way, rows: own } of await runEveryWay(table, { ...query, text, options })) {
        const ids = own.map(({ id }) => id);
        expect({ text, options, query, way: way.kind, ids }).toEqual({
          text,
          options,
          query,
          way: way.kind,
          ids: expected,
        });
      }
    }
  }
  expect(found).toBeGreaterThan(200);
});
