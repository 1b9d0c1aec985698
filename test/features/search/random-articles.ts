/** Random articles, searches and queries, and what a search over articles must return, for tests that compare the engine with a model. */
import { expect } from 'vitest';
import { Types } from '../../../src/format/types.ts';
import type { SearchOptions } from '../../../src/query/conditions/search-options.ts';
import type { Random } from '../../properties/model/random.ts';
import { runModel } from '../query/model.ts';
import type { ModelClause, ModelQuery } from '../query/model.ts';
import type { Row } from '../query/test-table.ts';
import { rankedModel } from './search-model.ts';
import type { Article, Scored, Statistics } from './search-model.ts';

export const articles = {
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

/** The weights of the fields of the index. */
const fieldWeights = [3, 1];

/** Some begin alike, and some differ by a letter. */
const vocabulary = [
  'red',
  'wine',
  'white',
  'winter',
  'grape',
  'glass',
  'cellar',
  'oak',
  'ref',
  'read',
  'wines',
  'while',
];

export function wordOf(random: Random): string {
  // The first words come more often than the last ones.
  return vocabulary[Math.min(random.below(vocabulary.length), random.below(vocabulary.length))] as string;
}

export function textOf(random: Random, most: number): string {
  return Array.from({ length: random.below(most + 1) }, () => wordOf(random)).join(' ');
}

export function articleOf(random: Random, id: number): Article {
  const title = random.chance(0.1) ? null : textOf(random, 3);
  return { id, title, body: random.chance(0.05) ? null : textOf(random, 12), section: random.below(4) };
}

/** A search, its conditions, order and limits. */
export interface AskedArticles extends ModelQuery {
  readonly text: string;
  readonly options: SearchOptions;
}

export function searchOf(random: Random): Pick<AskedArticles, 'text' | 'options'> {
  const prefix = random.chance(0.3);
  const phrase = (): string => `"${random.pick(vocabulary)} ${random.pick(vocabulary)}"`;
  const excluded = (): string => `-${random.chance(0.3) ? phrase() : random.pick(vocabulary)}`;
  const options: SearchOptions = {
    prefix,
    match: random.pick(['all', 'any']),
    ...(random.chance(0.15) ? { fuzzy: true } : {}),
    ...(random.chance(0.2) ? { fields: [random.pick(['title', 'body'] as const)] } : {}),
    ...(random.chance(0.2) ? { weights: { body: 2 } } : {}),
  };
  if (random.chance(0.04))
    return { text: random.pick(['', '...', '""', excluded(), `${excluded()} ${excluded()}`]), options };
  const terms = Array.from({ length: random.between(0, 3) }, () =>
    random.chance(0.2) ? phrase() : random.pick(vocabulary),
  );
  if (random.chance(0.25)) terms.unshift(excluded());
  const last = random.pick(vocabulary);
  terms.push(prefix ? last.slice(0, random.between(1, last.length)) : last);
  return { text: terms.join(' '), options };
}

export function queryOf(random: Random, most = 120): ModelQuery {
  const wheres: readonly ModelClause[] = [
    ['section', '=', random.below(4)],
    ['section', 'IN', [1, 2]],
    ['id', '<', random.below(most)],
    {
      or: [
        ['section', '=', 0],
        ['id', '>', most / 2],
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

/** Whether a score is not below another one, as far as sums of fractions tell. */
export function isAtLeast(one: number, other: number): boolean {
  return one >= other * (1 - 1e-9);
}

/**
 * Expects that a search without conditions has found the rows of the model, in its order: returns them with the scores of the model.
 * `statistics`: undefined if they are not known, and so the order is not.
 */
export function expectRanked(
  found: readonly Article[],
  rows: readonly Article[],
  { text, options }: Pick<AskedArticles, 'text' | 'options'>,
  statistics: Statistics | undefined,
): readonly Scored[] {
  const wanted = rankedModel(rows, fieldWeights, text, options, statistics);
  const scores = new Map(wanted.map(({ row: { id }, score }) => [id, score]));
  const ids = found.map(({ id }) => id);
  expect({ text, options, ids: ids.toSorted((a, b) => a - b) }).toEqual({
    text,
    options,
    ids: [...scores.keys()].toSorted((a, b) => a - b),
  });
  const ranked = found.map((row) => ({ row, score: scores.get(row.id) as number }));
  if (statistics === undefined) return ranked;
  for (const [i, { row, score }] of ranked.entries()) {
    const before = ranked[i - 1];
    if (before === undefined) continue;
    const { id, title, body } = before.row;
    const isAlike = title === row.title && body === row.body;
    const isInOrder = isAlike ? id < row.id : isAtLeast(before.score, score);
    const pair = { text, options, before, next: { row, score } };
    expect({ ...pair, isInOrder }).toEqual({ ...pair, isInOrder: true });
  }
  return ranked;
}

/** Returns what the conditions, order and limits of a query make of the rows of its search, the best ones first. */
export function resultOf(ranked: readonly Scored[], query: ModelQuery): Article[] {
  const rows = ranked.map(({ row }) => row) as unknown as readonly Row[];
  const whole = { ...query, orders: [], limit: undefined, offset: 0 };
  const matching = new Set(runModel(rows, 'id', whole).map(({ id }) => id));
  const kept = rows.filter(({ id }) => matching.has(id));
  const end = query.limit === undefined ? undefined : query.offset + query.limit;
  const result =
    query.orders.length === 0 ? kept.slice(query.offset, end) : runModel(kept, 'id', { ...query, wheres: [] });
  return result as unknown as Article[];
}
