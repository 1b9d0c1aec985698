/** A catalogue with lists, nested values and texts in several languages, queries on it as plain data, and what they must find. */
import { defineSchema, json, StoreDb, Types } from '../../../src/index.ts';
import type { Database } from '../../../src/index.ts';
import type { Query } from '../../../src/query/query.ts';
import { MemoryDriver } from '../../../src/storage/memory-driver.ts';
import { SeededRandom } from '../../../src/testing/seeded-random.ts';
import { runModel } from '../query/model.ts';
import type { ModelCondition } from '../query/model.ts';

interface Meta {
  readonly maker?: { readonly country: string; readonly town: string | null };
  readonly price: number | string;
  readonly sizes: readonly string[];
}

export const products = defineSchema({
  name: 'products',
  version: 1,
  fields: {
    id: { typeId: Types.uint32 },
    title: { typeId: Types.varchar },
    body: { typeId: Types.varchar },
    language: { typeId: Types.varchar },
    tags: json<readonly (string | number)[]>(),
    meta: json<Meta>(),
    year: { typeId: Types.uint16 },
    stock: { typeId: Types.varchar },
  },
  primaryKey: 'id',
  indexes: [
    { fields: ['tags'], each: true },
    { fields: ['stock', 'tags', 'year'], each: true, name: 'stocked' },
    { fields: [{ path: 'meta.maker.country', typeId: Types.varchar }, 'year'], include: ['title', 'meta.price'] },
    { fields: [{ path: 'meta.price', typeId: Types.float64 }] },
    { fields: [{ path: 'meta.sizes', typeId: Types.json }], each: true },
    { fields: ['year'], where: { stock: ['few', 'sold out'] }, name: 'rare' },
    { fields: ['title', 'body'], text: { weights: { title: 2, body: 1 } } },
    { fields: ['title', 'body'], text: { language: 'de' }, where: { language: 'de' }, name: 'german' },
  ],
});
export type Product = Readonly<Record<string, unknown>>;

const words: Readonly<Record<string, readonly string[]>> = {
  en: 'red white lamps glasses running oak table cup'.split(' '),
  de: 'rot weiß Lampen Gläser laufen Eiche Tische Tasse'.split(' '),
  ja: ['赤い', 'ランプ', '東京', 'グラス', '机'],
  ru: 'красный белый лампы стаканы стол'.split(' '),
};
const languages = Object.keys(words);
const tags: readonly (string | number)[] = ['new', 'sale', 'oak', 'glass', 'gift', 7, 1.5, 'grün', '東京', '1'];
const countries = ['DE', 'FR', 'JP', 'PT', 'FI'];

export function productRows(count: number): Product[] {
  const random = new SeededRandom(35);
  const text = (language: string, most: number): string =>
    Array.from({ length: random.integer(1, most) }, () => random.pick(words[language] as string[])).join(' ');
  return Array.from({ length: count }, (_, id) => {
    const language = random.pick(languages);
    const maker = { country: random.pick(countries), town: random.chance(0.3) ? null : `town ${id % 40}` };
    const meta = {
      ...(random.chance(0.9) && { maker }),
      price: id % 17 === 0 ? 'on request' : random.integer(1, 900) / 4,
      sizes: random.chance(0.5) ? [`s${id % 30}`, 'm'] : [],
    };
    return {
      id,
      title: text(language, 3),
      body: `${text(language, 14)} n${id % 90}`,
      language,
      tags:
        id % 11 === 0
          ? null
          : [...Array.from({ length: random.integer(0, 3) }, () => random.pick(tags)), `t${id % 70}`],
      meta,
      year: 1990 + (id % 30),
      stock: random.pick(['many', 'many', 'many', 'few', 'sold out']),
    };
  });
}

/** Starts a database in memory that has these products. */
export async function catalogueOf(rows: readonly Product[]): Promise<Database> {
  const db = StoreDb({ driver: new MemoryDriver(), dbPrefix: 'catalogue', nodeId: 1, logLevel: 'silent' });
  db.registerSchema(products);
  await db.start();
  await db.load('products', rows);
  return db;
}

/** A query as plain data, which a page can be given. */
export interface Asked {
  readonly where: readonly ModelCondition[];
  readonly order?: readonly (readonly [field: string, direction: 'asc' | 'desc'])[];
  readonly limit?: number;
}

/** Queries, with the index that each is planned with where the bundle has all of them. */
export const asked: readonly (readonly [index: string | undefined, Asked])[] = [
  ['tags', { where: [['tags', 'HAS', 't13']] }],
  ['tags', { where: [['tags', 'HAS', 7]], limit: 5 }],
  [
    'tags',
    {
      where: [
        ['tags', 'HAS', '東京'],
        ['year', '>', 2010],
      ],
    },
  ],
  [undefined, { where: [['tags', 'HAS ANY', ['t3', 't4', 'none']]] }],
  [undefined, { where: [['tags', 'HAS ALL', ['t20', 'oak']]] }],
  [
    'stocked',
    {
      where: [
        ['stock', '=', 'few'],
        ['tags', 'HAS', 'oak'],
      ],
      order: [['year', 'desc']],
      limit: 3,
    },
  ],
  [
    'meta.maker.country,year',
    {
      where: [
        ['meta.maker.country', '=', 'JP'],
        ['year', '=', 2001],
      ],
    },
  ],
  ['meta.price', { where: [['meta.price', '<', 2]], order: [['meta.price', 'asc']] }],
  ['meta.price', { where: [], order: [['meta.price', 'desc']], limit: 7 }],
  ['meta.sizes', { where: [['meta.sizes', 'HAS', 's8']] }],
  [
    'rare',
    {
      where: [
        ['stock', '=', 'sold out'],
        ['year', 'BETWEEN', [1995, 1996]],
      ],
    },
  ],
  [undefined, { where: [['meta.maker.town', '=', 'town 3']], order: [['id', 'desc']] }],
  [undefined, { where: [['meta.maker.town', '=', null]], order: [['year', 'asc']], limit: 9 }],
];

/** What a query answers: its rows, and how many there are without a limit. */
export interface Answer {
  readonly rows: readonly object[];
  readonly count: number;
}

/** Returns a query of a database or a reader. It can run in a page. */
export function queryOf(base: Query, { where, order = [], limit }: Asked): Query {
  let query = base;
  for (const [field, operator, value] of where) query = query.where(field, operator as never, value as never);
  for (const [field, direction] of order) query = query.orderBy(field, direction);
  return limit === undefined ? query : query.limit(limit);
}

/** A row with its paths as fields. */
function flatRow(row: Product): Product {
  const { maker, price, sizes } = row['meta'] as Meta;
  return {
    ...row,
    'meta.maker.country': maker?.country ?? null,
    'meta.maker.town': maker?.town ?? null,
    // The index on the price is of numbers.
    'meta.price': typeof price === 'number' ? price : null,
    'meta.sizes': sizes,
  };
}

/** Returns what a query finds among rows. */
export function expectedOf(rows: readonly Product[], { where, order = [], limit }: Asked): Answer {
  const byId = new Map(rows.map((row) => [row['id'], row]));
  const query = { wheres: where, orders: order, offset: 0, limit: undefined };
  const found = runModel(rows.map(flatRow), 'id', query);
  return { rows: found.slice(0, limit).map(({ id }) => byId.get(id) as object), count: found.length };
}
