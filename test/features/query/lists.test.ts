/** Lists in json fields: the operators on them, with and without an index that has an entry for each element. */
import { describe, expect, it } from 'vitest';
import { InvalidOperatorError, InvalidQueryError, InvalidSchemaError } from '../../../src/base/errors.ts';
import { Types } from '../../../src/format/types.ts';
import { toStoredSchema } from '../../../src/schema/schema.ts';
import { candidatesOf } from '../../../src/query/planner/planner.ts';
import { chosenFor, compile, runEveryPlan } from './every-plan.ts';
import { clauseOf, runModel } from './model.ts';
import type { ModelClause, ModelQuery } from './model.ts';
import { TestTable } from './test-table.ts';
import type { Row } from './test-table.ts';

const posts = {
  name: 'posts',
  version: 1,
  fields: {
    id: { typeId: Types.uint32 },
    author: { typeId: Types.uint8 },
    tags: { typeId: Types.json },
    at: { typeId: Types.uint16 },
    title: { typeId: Types.varchar },
  },
  primaryKey: 'id',
  indexes: [
    { fields: ['tags'], each: true },
    { fields: ['author', 'tags', 'at'], each: true, include: ['title'], name: 'of author' },
    { fields: ['tags', 'at'], each: true, where: { author: [1, 2] }, name: 'of few' },
    'author',
  ],
} as const;

const long = 'long '.repeat(300);
const elements = [
  'red',
  'blue',
  'green',
  1,
  11,
  1.5,
  0,
  true,
  false,
  '1',
  'true',
  '',
  'a"b\\c',
  'ü\0',
  long,
  `${long}!`,
];
const others = [null, { red: 1 }, ['red'], [['red']]];

function listOf(i: number): unknown {
  switch (i % 9) {
    case 0:
      return null;
    case 1:
      return { red: ['red'], 0: 'red', length: 1 };
    case 2:
      return [];
    case 3:
      return [elements[i % elements.length], elements[i % elements.length], others[i % others.length]];
    default:
      return Array.from({ length: 1 + (i % 5) }, (_, k) => elements[(i * 7 + k * 5) % elements.length]);
  }
}

function post(i: number): Row {
  return { id: i, author: i % 4, tags: listOf(i), at: (i * 37) % 100, title: `title ${i}` };
}

const rows = Array.from({ length: 300 }, (_, i) => post(i));

async function filled(): Promise<TestTable> {
  const table = new TestTable(posts, { blockSizeBytes: 4096 });
  await table.commit(rows.slice(0, 200));
  await table.merge();
  return table;
}

function asking(wheres: readonly ModelClause[], more: Partial<ModelQuery> = {}): ModelQuery {
  return { wheres, orders: [], limit: undefined, offset: 0, ...more };
}

const has = elements.map((element): ModelQuery => asking([['tags', 'HAS', element]]));
const queries: readonly ModelQuery[] = [
  ...has,
  asking([['tags', 'HAS', 'none']]),
  asking([['tags', 'HAS ANY', ['red', 'blue', 1]]]),
  asking([['tags', 'HAS ANY', []]]),
  asking([['tags', 'HAS ALL', ['red', 'green']]]),
  asking([['tags', 'HAS ALL', []]]),
  asking([
    ['tags', 'HAS', 'red'],
    ['tags', 'HAS ANY', ['green', 'blue']],
    ['author', '<', 3],
  ]),
  asking([
    ['tags', 'HAS ANY', ['red', 1]],
    ['tags', 'HAS ANY', ['green', 'blue']],
  ]),
  asking([{ not: ['tags', 'HAS', 'red'] }]),
  asking([{ not: ['tags', 'HAS ANY', ['red', 1]] }]),
  asking([{ not: ['tags', 'HAS ALL', ['red', 'green']] }]),
  asking([
    {
      or: [
        ['tags', 'HAS', 'red'],
        ['author', '=', 3],
      ],
    },
  ]),
  asking([
    ['tags', 'HAS', 'red'],
    ['tags', 'HAS', 'blue'],
    ['author', '=', 1],
  ]),
  asking(
    [
      ['tags', 'HAS', 'red'],
      ['author', 'IN', [1, 2]],
    ],
    { orders: [['at', 'desc']], limit: 4, offset: 1 },
  ),
  asking(
    [
      ['tags', 'HAS', 'red'],
      ['author', '=', 2],
    ],
    { orders: [['at', 'asc']], limit: 5 },
  ),
  asking(
    [
      ['tags', 'HAS', 'blue'],
      ['author', '=', 1],
      ['at', '<', 50],
    ],
    { orders: [['at', 'desc']] },
  ),
  asking([
    ['tags', 'HAS', 'blue'],
    ['author', '>', 1],
  ]),
  asking([['author', '=', 2]], { orders: [['at', 'asc']], limit: 5 }),
  asking([['tags', 'HAS ANY', ['red', 'blue']]], { orders: [['at', 'asc']], limit: 7 }),
];

const numbered = Array.from({ length: 2000 }, (_, id) => {
  return { id, number: (id * 37) % 2000, kind: id % 4, tags: [`a${id % 20}`, 'other'] };
});

function isMixed({ number, kind, tags }: (typeof numbered)[number]): boolean {
  return number < 500 && (kind > 0 || tags.includes('a7') || tags.includes('a8'));
}

/** A table with all blocks in memory, and how many requests that took. */
async function filledWithNumbers(): Promise<{ readonly table: TestTable; readonly requests: number }> {
  const fields = {
    id: { typeId: Types.uint32 },
    number: { typeId: Types.uint32 },
    kind: { typeId: Types.uint8 },
    tags: { typeId: Types.json },
  };
  const schema = { name: 'numbers', version: 1, fields, primaryKey: 'id', indexes: ['number'] };
  const table = new TestTable(schema, { inlineRoots: true });
  await table.commit(numbered);
  await table.merge();
  await table.query().execute();
  await table.query().orderBy('number').limit(2000).execute();
  return { table, requests: table.requests };
}

describe('lists', () => {
  it('are searched right by each plan, each row once, also with unmerged commits', async () => {
    const table = await filled();
    const changed = { ...post(5), tags: ['red', 'new'] };
    for (const merged of [true, false]) {
      if (!merged) await table.commit([...rows.slice(190), changed], [3, 4]);
      const all = merged
        ? rows.slice(0, 200)
        : [...rows.filter(({ id }) => ![3, 4, 5].includes(id as number)), changed];
      let indexed = 0;
      for (const query of queries) {
        const runs = await runEveryPlan(table, compile(table, query));
        indexed += runs.filter(({ candidate: { access } }) => access.kind === 'index' && access.index.each).length;
        for (const run of runs) expect(run.rows).toEqual(runModel(all, 'id', query));
        if (query.limit !== undefined) continue;
        let counted = table.query();
        for (const where of query.wheres) counted = counted.where((clauses) => clauseOf(clauses, where));
        expect(await counted.count()).toBe(runModel(all, 'id', query).length);
      }
      expect(indexed).toBeGreaterThan(30);
    }
  });

  it('are counted by the tree alone', async () => {
    const table = await filled();
    const query = table.query().where('tags', 'HAS', 'red');
    const expected = runModel(rows.slice(0, 200), 'id', asking([['tags', 'HAS', 'red']])).length;
    expect(await query.count()).toBe(expected);
    expect(await query.explain()).toMatchObject({ index: 'tags' });
  });

  it('have an index that is used only with an element, and for each of them', async () => {
    const table = await filled();
    const indexesFor = (...wheres: ModelClause[]): string[] =>
      candidatesOf(table.state, compile(table, asking(wheres))).flatMap(({ access }) =>
        access.kind === 'index' && access.index.each !== undefined ? [access.index.name] : [],
      );
    expect(indexesFor(['author', '=', 1])).toEqual([]);
    expect(indexesFor(['tags', 'HAS', 'red'])).toEqual(['tags']);
    expect(indexesFor(['tags', 'HAS', 'red'], ['author', '=', 1])).toEqual(['tags', 'of author', 'of few']);
    expect(indexesFor(['tags', 'HAS ALL', ['red', 'blue']])).toEqual(['tags', 'tags']);
    expect(indexesFor(['tags', '=', null])).toEqual([]);
  });

  it('are an intersection where two elements are rare, and in the order of the field behind the element', async () => {
    const table = new TestTable(posts, { blockSizeBytes: 1024 });
    const many = Array.from({ length: 600 }, (_, id) => {
      return { id, author: id % 3, tags: [`a${id % 20}`, `b${id % 21}`], at: (id * 37) % 1000, title: 't' };
    });
    await table.commit(many);
    await table.merge();
    const both = asking([['tags', 'HAS ALL', ['a7', 'b7']]]);
    const kinds = candidatesOf(table.state, compile(table, both)).map(({ access }) => access.kind);
    expect(kinds).toContain('intersection');
    for (const run of await runEveryPlan(table, compile(table, both))) {
      expect(run.rows).toEqual(runModel(many, 'id', both));
    }
    // Looking for an element in rows takes longer than a comparison: the index pays for one row of twenty.
    expect(await table.query().where('tags', 'HAS', 'a7').explain()).toMatchObject({ access: 'index', index: 'tags' });
    const first = table.query().where('tags', 'HAS', 'a7').where('author', '=', 1).orderBy('at').limit(3);
    expect(await first.explain()).toMatchObject({ order: 'access' });
  });

  it('are counted for a plan a few at a time, however many are asked for', async () => {
    const table = new TestTable(posts, { blockSizeBytes: 1024, inlineRoots: true });
    const tags = Array.from({ length: 300 }, (_, i) => `tag ${i}`);
    const tagsOf = (id: number): string[] => tags.filter((_, i) => id === 7 || (id * 31 + i * 17) % 37 === 0);
    await table.commit(Array.from({ length: 300 }, (_, id) => ({ id, author: id % 3, tags: tagsOf(id) })));
    await table.merge();
    const planned = async (count: number): Promise<{ readonly requests: number; readonly plans: number }> => {
      const query = compile(table, asking([['tags', 'HAS ALL', tags.slice(0, count)]]));
      table.forgetBlocks();
      const before = table.requests;
      await chosenFor(table, query);
      return { requests: table.requests - before, plans: candidatesOf(table.state, query).length };
    };
    const few = await planned(8);
    expect(few.requests).toBeGreaterThan(0);
    expect(few.requests).toBeLessThanOrEqual(16);
    expect(few.plans).toBeLessThanOrEqual(20);
    for (const count of [9, 50, 300]) expect(await planned(count)).toEqual(few);
  });

  it('are looked at only in rows that no cheaper comparison matches, which plans count with', async () => {
    const { requests, table } = await filledWithNumbers();
    const mixed = table
      .query()
      .where('number', '<', 500)
      .where(({ is, or }) => or(is('kind', 'IN', [1, 2, 3]), is('tags', 'HAS ANY', ['a7', 'a8'])));
    // To look for elements in all rows would take longer than a quarter of the rows one by one.
    const { access, alternatives, readsBeforePlanning } = await mixed.explain();
    expect({ access, readsBeforePlanning, others: alternatives.map((one) => one.index) }).toEqual({
      access: 'table',
      readsBeforePlanning: false,
      others: ['number'],
    });
    expect(await mixed.count()).toBe(numbered.filter(isMixed).length);
    // An element alone takes what it did.
    const byNumber = table.query().where('number', '<', 300).where('tags', 'HAS', 'a7');
    expect(await byNumber.explain()).toMatchObject({ access: 'index', index: 'number' });
    expect(table.requests).toBe(requests);
  });

  it('can be the results of a function', async () => {
    const table = await filled();
    table.register('words', ({ title }) => (title as string).split(' '));
    expect(await table.query().where('words', 'HAS', '17').select('id').execute()).toEqual([{ id: 17 }]);
    expect(await table.query().where('words', 'HAS ANY', ['17', '3']).count()).toBe(2);
    expect(await table.query().where('words', 'HAS ALL', ['title', '3']).count()).toBe(1);
  });
});

describe('a mistake with lists', () => {
  it('in a query is refused, with the reason', async () => {
    const table = await filled();
    const where = (...given: readonly [string, string, unknown]): (() => unknown) => {
      return () => table.query().where(given[0], given[1] as 'HAS', given[2] as string);
    };
    expect(where('title', 'HAS', 'a')).toThrow(InvalidOperatorError);
    expect(where('title', 'HAS', 'a')).toThrow(/'title' of table 'posts' is of type varchar: HAS is for lists in json/);
    expect(where('title', 'HAS ANY', ['a'])).toThrow(/HAS is for lists in json fields/);
    for (const value of [null, undefined, Number.NaN, ['red'], {}, 5n]) {
      expect(where('tags', 'HAS', value)).toThrow(InvalidQueryError);
      expect(where('tags', 'HAS ALL', [value])).toThrow(/HAS looks for a string, a finite number, true or false/);
    }
    expect(where('tags', 'HAS ANY', 'red')).toThrow(/HAS ANY on 'tags' takes an array of elements, not 'red'/);
    expect(where('tags', 'CONTAINS', 'red')).toThrow(/HAS, HAS ANY, HAS ALL/);
    expect(where('tag', 'HAS', 'red')).toThrow(/did you mean 'tags'\?/);
  });

  it.each([
    [{ fields: ['author'], each: true }, /must be on one json field, .*: none of its fields is/],
    [{ fields: ['tags', 'more'], each: true }, /must be on one json field, .*: tags and more are/],
    [{ fields: ['tags'], each: true, unique: true }, /cannot be both `unique` and with `each`/],
    [{ fields: ['tags'], each: 'yes' }, /`each` of an index of table 'posts' must be true or false, not 'yes'/],
    [{ fields: ['tags'] }, /Field 'tags' is of type json, which cannot be the index. Name a path .*, or add `each`/],
    ['tags', /Field 'tags' is of type json, which cannot be the index. Name a path .*, or add `each`/],
    [
      { fields: ['tags.0'] },
      /An index names a path with the type of its values: { path: 'tags.0', typeId: Types.varchar }/,
    ],
    ['more.x', /An index names a path with the type of its values: { path: 'more.x', typeId: Types.varchar }/],
    [{ fields: [] }, /must be an array of 1 to 16 names, not one of 0/],
    [{ fields: ['tags'], each: true, include: ['tags'] }, /Field 'tags' is of type json/],
  ])('in the index %j is refused', (index, message) => {
    const fields = { ...posts.fields, more: { typeId: Types.json } };
    const define = (): unknown => toStoredSchema({ ...posts, fields, indexes: [index] });
    expect(define).toThrow(InvalidSchemaError);
    expect(define).toThrow(message);
  });
});
