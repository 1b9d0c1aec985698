/** Searches of texts and paths into json as Studio's page asks for them, and as people write them. */
import { afterEach, beforeEach, expect, it } from 'vitest';
import { defineSchema, Types } from '../../../src/index.ts';
import type { Database } from '../../../src/index.ts';
import type { Condition, SearchAsked, TableInfo } from '../../../src/studio/messages.ts';
import { queryText } from '../../../studio/model/query-text.ts';
import { conditionOf, draftOf, isUnfinished } from '../../../studio/model/values.ts';
import type { Operator } from '../../../studio/model/values.ts';
import { Shown } from './shown.ts';

const articles = defineSchema({
  name: 'articles',
  version: 1,
  fields: {
    id: { typeId: Types.uint32 },
    title: { typeId: Types.varchar },
    note: { typeId: Types.varchar },
    address: { typeId: Types.json },
  },
  primaryKey: 'id',
  indexes: [
    { fields: ['title'], text: {}, name: 'words' },
    { fields: ['note'], text: {}, name: 'others', where: { title: 'tea' } },
    { fields: ['title', 'note'], text: { weights: { title: 3 } }, name: 'both' },
    { fields: [{ path: 'address.city', typeId: Types.varchar }] },
    { fields: [{ path: 'address.since', typeId: Types.timestamp }] },
  ],
});

/** Adds three articles. */
async function addArticles(db: Database): Promise<void> {
  db.registerSchema(articles);
  const batch = db.batch();
  const lyon = { city: 'Lyon', zip: 'x', tags: ['old'], since: '2026-01-01T00:00:00.000Z' };
  const paris = { city: 'Paris', zip: 100, tags: ['new', 'all'], since: '2026-01-03T00:00:00.000Z' };
  await batch.insert(articles, { id: 1, title: 'red and white wine', address: lyon });
  await batch.insert(articles, { id: 2, title: 'wine', note: 'No tea', address: paris });
  await batch.insert(articles, { id: 3, title: 'tea', note: 'Note', address: {} });
  await batch.flush();
}

let shown: Shown;
beforeEach(() => {
  shown = new Shown();
});
afterEach(async () => {
  await shown[Symbol.asyncDispose]();
});

async function withArticles(): Promise<Database> {
  const { db } = await shown.open();
  await addArticles(db);
  return db;
}

it('searches texts, the best rows first, and says where the words are', async () => {
  const db = await shown.withCities(3);
  await addArticles(db);
  const page = shown.page(db);
  const { tables } = await page.call('overview', {});
  expect(tables.find(({ name }) => name === 'articles')?.indexes).toEqual([
    { name: 'words', fields: ['title'], unique: false, isPartial: false, isText: true },
    { name: 'others', fields: ['note'], unique: false, isPartial: true, isText: true },
    {
      name: 'both',
      fields: ['title', 'note'],
      unique: false,
      isPartial: false,
      isText: true,
      weights: { title: 3, note: 1 },
    },
    { name: 'address.city', fields: ['address.city'], unique: false, isPartial: false },
    { name: 'address.since', fields: ['address.since'], unique: false, isPartial: false },
  ]);
  const search = { text: 'win', prefix: true };
  const asked = { table: 'articles', search, where: [], orderBy: [], fields: ['id', 'title'] };
  const first = await page.call('rows', { ...asked, size: 1 });
  expect(first).toMatchObject({ rows: [[2, 'wine']], marks: [[[], [[0, 4]]]] });
  const second = await page.call('rows', { ...asked, size: 1, after: first.next ?? '' });
  expect(second).toMatchObject({ rows: [[1, 'red and white wine']], marks: [[[], [[14, 18]]]] });
  expect(second.next).toBeUndefined();
  expect(await page.call('count', asked)).toMatchObject({ count: 2 });
  await expect(page.call('count', { ...asked, table: 'cities' })).rejects.toThrow('has no index on texts');
});

it('searches and shows tables that the application of this instance has not registered', async () => {
  const first = await withArticles();
  first.registerSchema({
    name: 'sessions',
    version: 1,
    fields: { id: { typeId: Types.uint32 }, user: { typeId: Types.varchar }, at: { typeId: Types.timestamp } },
    primaryKey: 'id',
    indexes: ['user', { fields: ['user', 'at'] }, { fields: ['at', 'user'] }],
    expireAfter: { field: 'at', seconds: 3600 },
  });
  await first.transaction((tx) => tx.insert('sessions', { id: 1, user: 'ann', at: new Date() }));
  await first.checkpoint();
  for (const role of ['writer', 'replica'] as const) {
    const { db } = await shown.open({ role });
    const page = shown.page(db);
    const { tables } = await page.call('overview', {});
    expect(tables.map(({ name }) => name)).toEqual(expect.arrayContaining(['articles', 'sessions']));
    expect(tables.find(({ name }) => name === 'sessions')?.expireAfter).toEqual({ field: 'at', seconds: 3600 });
    const asked = { where: [], orderBy: [], fields: ['id'] };
    const found = await page.call('rows', { ...asked, table: 'articles', search: { text: 'wine' }, size: 10 });
    expect(found).toMatchObject({ rows: [[2], [1]] });
    const named = { text: 'note', index: 'others' };
    expect((await page.call('query', { ...asked, table: 'articles', search: named })).rows).toEqual([[3]]);
    expect((await page.call('rows', { ...asked, table: 'sessions', size: 10 })).rows).toEqual([[1]]);
  }
});

it('queries by words as they are asked for, with conditions, order and limit', async () => {
  const page = shown.page(await withArticles());
  const asked = { table: 'articles', where: [], orderBy: [], fields: ['id', 'title'] };
  const ids = async (text: string, options: Partial<SearchAsked> = {}, more: object = {}): Promise<unknown[]> => {
    const { rows } = await page.call('query', { ...asked, search: { text, ...options }, ...more });
    return rows.map(([id]) => id);
  };
  expect(await ids('red wine')).toEqual([1]);
  expect(await ids('tea wine', { match: 'any' })).toEqual([3, 2, 1]);
  expect(await ids('win')).toEqual([]);
  expect(await ids('win', { prefix: true })).toEqual([2, 1]);
  expect(await ids('winr', { fuzzy: true })).toEqual([2, 1]);
  expect(await ids('note', { index: 'others' })).toEqual([3]);
  expect(await ids('wine', {}, { where: [{ field: 'address.city', operator: '=', value: 'Lyon' }] })).toEqual([1]);
  expect(await ids('wine', {}, { orderBy: [{ field: 'id', direction: 'asc' }] })).toEqual([1, 2]);
  expect(await ids('wine', {}, { limit: 1 })).toEqual([2]);
  expect(await ids('tea note', { index: 'both' })).toEqual([3]);
  expect(await ids('tea note', { index: 'both', fields: ['note'] })).toEqual([]);
  expect(await ids('tea', { fields: ['title', 'note'] })).toEqual([3, 2]);
  expect(await ids('tea', { fields: ['title', 'note'], weights: { note: 50 } })).toEqual([2, 3]);
  const found = await page.call('query', { ...asked, search: { text: 'wine' } });
  expect(found.marks).toEqual([
    [[], [[0, 4]]],
    [[], [[14, 18]]],
  ]);
  const aggregates = [{ name: 'all', kind: 'count' }] as const;
  const counted = await page.call('query', { ...asked, search: { text: 'wine' }, aggregates });
  expect(counted).toMatchObject({ rows: [[2]] });
  expect(counted.marks).toBeUndefined();
  expect((await page.call('explain', { ...asked, search: { text: 'wine' } })).explanation).toMatchObject({
    access: 'search',
    index: 'words',
  });
  const failures: readonly (readonly [search: object, message: RegExp])[] = [
    [{ text: 'wine', index: 'nope' }, /no index on texts of the name 'nope', but 'words', 'others', 'both'/],
    [{ text: 'wine', match: 'some' }, /match/],
    [{ text: 'wine', fields: ['title', 'nope'] }, /has the fields title, nope\. It has 'words' \(title\)/],
    [{ text: 'wine', fields: 'title' }, /`fields`/],
    [{ text: 'wine', index: 'both', fields: [] }, /`fields` is empty/],
    [{ text: 'wine', index: 'both', weights: { titel: 2 } }, /'titel'.*did you mean `title`\?/],
    [{ text: 'wine', weights: { title: 0 } }, /`weights`/],
    [{ text: 'wine', weights: [1] }, /`weights`/],
    [{ text: 'a b c d e f g h i j '.repeat(7) }, /64 words/],
    [{ text: '' }, /`search\.text` is/],
  ];
  for (const [search, message] of failures) {
    for (const name of ['query', 'explain'] as const) {
      const failure = await page.failure(name, { ...asked, search });
      expect(failure.message).toMatch(message);
      expect(failure.status).toBe(400);
    }
  }
});

it('takes paths into json in conditions, orders, groups and figures', async () => {
  const page = shown.page(await withArticles());
  const [table] = (await page.call('overview', {})).tables;
  expect(table?.paths).toEqual([
    { name: 'address.city', type: 'varchar' },
    { name: 'address.since', type: 'timestamp' },
  ]);
  const ids = async (field: string, operator: string, value: unknown): Promise<unknown[]> => {
    const where = [{ field, operator: operator as '=', value }];
    const orderBy = [{ field: 'address.city', direction: 'desc' }] as const;
    return (await page.call('query', { table: 'articles', where, orderBy, fields: ['id'] })).rows.map(([id]) => id);
  };
  expect(await ids('address.city', '!=', null)).toEqual([2, 1]);
  expect(await ids('address.zip', '>=', 100)).toEqual([2]);
  expect(await ids('address.tags', 'HAS ANY', ['new', 'old'])).toEqual([2, 1]);
  // By the index on times.
  const since = [{ field: 'address.since', operator: '>', value: '2026-01-02T00:00:00.000Z' }] as const;
  const timed = await page.call('explain', { table: 'articles', where: since, orderBy: [] });
  const indexes = [timed.explanation, ...timed.explanation.alternatives].map(({ index }) => index);
  expect(indexes).toContain('address.since');
  expect(await ids('address.since', '>', '2026-01-02T00:00:00.000Z')).toEqual([2]);
  const groups = await page.call('query', {
    table: 'articles',
    where: [],
    groupBy: ['address.zip'],
    aggregates: [{ name: 'last', kind: 'max', field: 'address.city' }],
    orderBy: [{ field: 'address.zip', direction: 'desc' }],
  });
  expect(groups.columns.map(({ type }) => type)).toEqual(['json', 'json']);
  expect(groups.rows).toEqual([
    ['x', 'Lyon'],
    [100, 'Paris'],
    [null, null],
  ]);
  const where = [{ field: 'address..city', operator: '=', value: 1 }];
  expect(await page.failure('count', { table: 'articles', where, orderBy: [] })).toMatchObject({ status: 400 });
  const failure = await page.failure('count', {
    table: 'articles',
    where: [{ field: 'title.city', operator: '=', value: 1 }],
    orderBy: [],
  });
  expect(failure.status).toBe(400);
  expect(failure.message).toContain('no field title.city');
});

it('shows pages of rows in the order of a path, and tells paths that are not typed yet from others', async () => {
  const page = shown.page(await withArticles());
  const asked = { table: 'articles', where: [], fields: ['id'], size: 2 } as const;
  for (const [field, ids] of [
    ['address.zip', [3, 2, 1]],
    ['address.city', [3, 1, 2]],
  ] as const) {
    const orderBy = [{ field, direction: 'asc' }] as const;
    const first = await page.call('rows', { ...asked, orderBy });
    const second = await page.call('rows', { ...asked, orderBy, after: first.next ?? '' });
    expect([...first.rows, ...second.rows].flat()).toEqual(ids);
  }
  const failure = await page.failure('rows', { ...asked, orderBy: [{ field: 'address.', direction: 'asc' }] });
  expect(failure.status).toBe(400);
  const [table] = (await page.call('overview', {})).tables;
  const unfinished = ['address.', 'address.city.', String.raw`address.a\\.`];
  const finished = ['address', 'address.city', String.raw`address.a\.`, 'title'];
  expect([...unfinished, ...finished].filter((name) => isUnfinished(table as TableInfo, name))).toEqual(unfinished);
});

it('reads values for paths as people type them', () => {
  const draft = (operator: Operator, text: string): Condition =>
    conditionOf({ field: 'address.zip', operator, text, second: '9' }, 'any');
  for (const operator of ['=', 'PREFIX', 'IN', 'BETWEEN', 'HAS', 'HAS ALL', 'null'] as const) {
    const condition = draft(operator, '7');
    expect(conditionOf(draftOf(condition, 'any'), 'any')).toEqual(condition);
  }
  expect(draft('=', '7').value).toBe(7);
  expect(draft('=', '"7"').value).toBe('7');
  expect(draft('=', 'Lyon').value).toBe('Lyon');
  expect(draft('PREFIX', '7').value).toBe('7');
  expect(draft('IN', 'Lyon, "7", 7').value).toEqual(['Lyon', '7', 7]);
  expect(draft('BETWEEN', '7').value).toEqual([7, 9]);
});

it('writes queries as TypeScript, with their search and their paths', async () => {
  const page = shown.page(await withArticles());
  const [table] = (await page.call('overview', {})).tables;
  const text = queryText(table as TableInfo, {
    table: 'articles',
    search: { text: `red "wine's" -tea`, match: 'any', prefix: true, index: 'words' },
    where: [
      { field: 'address.city', operator: 'HAS ALL', value: ['a', 7] },
      { field: 'address.since', operator: '>', value: '2026-01-02T00:00:00.000Z' },
    ],
    orderBy: [],
  });
  expect(text).toBe(`const rows = await db
  .query('articles')
  .search('red "wine\\'s" -tea', { match: 'any', prefix: true, index: 'words' })
  .where('address.city', 'HAS ALL', ['a', 7])
  .where('address.since', '>', new Date('2026-01-02T00:00:00.000Z'))
  .execute();`);
  const weighed = queryText(table as TableInfo, {
    table: 'articles',
    search: { text: 'wine', fields: ["o'clock", 'title'], weights: { title: 0.5, "o'clock": 3 } },
    where: [],
    orderBy: [],
  });
  expect(weighed).toContain(`{ fields: ['o\\'clock', 'title'], weights: { title: 0.5, 'o\\'clock': 3 } }`);
});
