/** What Studio's page asks about rows: the tables, pages of rows, queries and plans. */
import { conditionOf, draftOf, operatorsOf } from '../../../studio/model/values.ts';
import type { Operator } from '../../../studio/model/values.ts';
import { afterEach, beforeEach, expect, it } from 'vitest';
import type { Condition, Row } from '../../../src/studio/messages.ts';
import { addCities, city, citySchema, requestsOf, Shown } from './shown.ts';

let shown: Shown;
beforeEach(() => {
  shown = new Shown();
});
afterEach(async () => {
  await shown[Symbol.asyncDispose]();
});

const everything = { where: [], orderBy: [] };

it('lists the tables with their fields and indexes', async () => {
  const db = await shown.withCities(3);
  const page = shown.page(db, { title: 'The shop' });
  const overview = await page.call('overview', {});
  expect(overview).toMatchObject({ title: 'The shop', writable: false, position: db.position });
  expect(overview.prices[0]).toMatchObject({ name: 'Amazon S3 Standard, us-east-1', per1000Writes: 0.005 });
  const [table] = overview.tables;
  expect(table).toMatchObject({ name: 'cities', version: 1, primaryKey: ['id'] });
  expect(table?.fields.find(({ name }) => name === 'name')).toEqual({
    name: 'name',
    type: 'varchar',
    required: true,
    maxLength: 60,
    hasDefault: false,
  });
  expect(table?.fields.find(({ name }) => name === 'country')).toMatchObject({ oneOf: ['FI', 'FR', 'DE'] });
  expect(table?.fields.find(({ name }) => name === 'uid')).toMatchObject({ type: 'uuid', hasDefault: true });
  expect(table?.indexes).toEqual([
    { name: 'country', fields: ['country'], unique: false, isPartial: false },
    { name: 'country,population', fields: ['country', 'population'], unique: false, isPartial: false },
  ]);
});

it('pages through all rows by bookmarks', async () => {
  const page = shown.page(await shown.withCities(250));
  const seen: unknown[] = [];
  let after: string | undefined;
  do {
    const asked = { table: 'cities', ...everything, size: 100, fields: ['id'], ...(after !== undefined && { after }) };
    const { rows, next } = await page.call('rows', asked);
    seen.push(...rows.map(([id]) => id));
    after = next;
  } while (after !== undefined);
  expect(seen).toEqual(Array.from({ length: 250 }, (_, i) => i + 1));
});

it('shows every type of value as JSON', async () => {
  const db = await shown.withCities(0);
  const batch = db.batch();
  await batch.insert('cities', { ...city(7), population: 2n ** 60n, area: Infinity, coat: db.Blob('arms') });
  await batch.flush();
  const page = shown.page(db);
  const row = await page.row('cities', 7);
  expect(row).toEqual({
    id: 7,
    name: 'City 00007',
    country: 'FR',
    population: '1152921504606846976',
    area: 'Infinity',
    founded: '2000-01-08T00:00:00.000Z',
    tags: { ids: [7], nested: { ok: true } },
    hash: 'BwEC',
    uid: '00000000-0000-4000-8000-000000000007',
    coat: (await db.get('cities', 7))?.['coat'],
    capital: false,
  });
  const { columns, rows } = await page.call('rows', { table: 'cities', ...everything, size: 10 });
  expect(Object.fromEntries(columns.map((name, i) => [name, rows[0]?.[i]]))).toEqual(row);
  expect(await page.row('cities', 8)).toBeNull();
});

it('filters with every operator, by values as the page has them', async () => {
  const page = shown.page(await shown.withCities(30));
  const ids = async (field: string, operator: string, value: unknown): Promise<unknown[]> => {
    const where = [{ field, operator: operator as '=', value }];
    const { rows } = await page.call('rows', { table: 'cities', where, orderBy: [], size: 100, fields: ['id'] });
    const { count } = await page.call('count', { table: 'cities', where, orderBy: [] });
    expect(count).toBe(rows.length);
    return rows.map(([id]) => id);
  };
  expect(await ids('population', '=', '7000')).toEqual([7]);
  expect(await ids('population', '=', null)).toEqual([10, 20, 30]);
  expect(await ids('id', '!=', 1)).toHaveLength(29);
  expect(await ids('area', '<', 1)).toEqual([1, 2, 3]);
  expect(await ids('area', '<=', 1)).toEqual([1, 2, 3, 4]);
  expect(await ids('id', '>', 28)).toEqual([29, 30]);
  expect(await ids('founded', '>=', '2000-01-30T00:00:00Z')).toEqual([29, 30]);
  expect(await ids('country', 'IN', ['FI', 'DE'])).toHaveLength(20);
  expect(await ids('population', 'BETWEEN', [3000, '5000'])).toEqual([3, 4, 5]);
  expect(await ids('name', 'PREFIX', 'City 0001')).toHaveLength(10);
  expect(await ids('hash', '=', 'BQEC')).toEqual([5]);
  expect(await ids('uid', '=', '00000000-0000-4000-8000-000000000009')).toEqual([9]);
  expect(await ids('capital', '=', true)).toEqual([1]);
});

it('finds rows by the elements of lists, as people type them', async () => {
  const db = await shown.withCities(9);
  const page = shown.page(db);
  const batch = db.batch();
  await batch.update('cities', { id: 3, tags: ['port', 'a, b', 7] });
  await batch.update('cities', { id: 4, tags: ['port', '7'] });
  await batch.flush();
  const ids = async (operator: Operator, text: string): Promise<unknown[]> => {
    const where = [conditionOf({ field: 'tags', operator, text, second: '' }, 'json')];
    expect(conditionOf(draftOf(where[0] as Condition, 'json'), 'json')).toEqual(where[0]);
    const { rows } = await page.call('rows', { table: 'cities', where, orderBy: [], size: 100, fields: ['id'] });
    return rows.map(([id]) => id);
  };
  expect(operatorsOf({ type: 'json', required: true }).map(([operator]) => operator)).toEqual([
    'HAS',
    'HAS ANY',
    'HAS ALL',
  ]);
  expect(await ids('HAS', 'port')).toEqual([3, 4]);
  expect(await ids('HAS', '7')).toEqual([3]);
  expect(await ids('HAS', '"7"')).toEqual([4]);
  expect(await ids('HAS ANY', '7, "7"')).toEqual([3, 4]);
  expect(await ids('HAS ALL', 'port, "a, b"')).toEqual([3]);
  const where = [{ field: 'tags', operator: 'HAS ANY', value: 'port' } as const];
  await expect(page.call('count', { table: 'cities', where, orderBy: [] })).rejects.toThrow(/where\[0\]\.value/);
});

it('sorts by any field', async () => {
  const page = shown.page(await shown.withCities(30));
  const orderBy = [
    { field: 'country', direction: 'desc' },
    { field: 'population', direction: 'asc' },
  ] as const;
  const { rows } = await page.call('rows', { table: 'cities', where: [], orderBy, size: 3, fields: ['id', 'country'] });
  expect(rows).toEqual([
    [10, 'FR'],
    [1, 'FR'],
    [4, 'FR'],
  ]);
});

it('groups, adds up, sorts and cuts the groups', async () => {
  const page = shown.page(await shown.withCities(30));
  const result = await page.call('query', {
    table: 'cities',
    where: [{ field: 'id', operator: '<=', value: 29 }],
    orderBy: [{ field: 'total', direction: 'desc' }],
    groupBy: ['country'],
    aggregates: [
      { name: 'n', kind: 'count' },
      { name: 'total', kind: 'sum', field: 'population' },
      { name: 'mean', kind: 'avg', field: 'area' },
      { name: 'last', kind: 'max', field: 'founded' },
    ],
    limit: 2,
  });
  expect(result.columns).toEqual([
    { name: 'country', type: 'varchar' },
    { name: 'n', type: 'uint64' },
    { name: 'total', type: 'uint64' },
    { name: 'mean', type: 'float64' },
    { name: 'last', type: 'timestamp' },
  ]);
  expect(result.rows).toEqual([
    ['DE', 10, 135000, 3.875, '2000-01-30T00:00:00.000Z'],
    ['FI', 9, 135000, 3.75, '2000-01-28T00:00:00.000Z'],
  ]);
  const all = await page.call('query', {
    table: 'cities',
    ...everything,
    aggregates: [{ name: 'n', kind: 'count' }],
  });
  expect(all.rows).toEqual([[30]]);
});

it('queries rows under a budget, and says when that is used up', async () => {
  await shown.withCities(2000, { blockSizeBytes: 4096 }).then((db) => db.checkpoint());
  const { db } = await shown.open({ role: 'replica' });
  const page = shown.page(db);
  const asked = { table: 'cities', ...everything, limit: 5, fields: ['name'] };
  expect((await page.call('query', asked)).rows).toHaveLength(5);
  expect(await page.failure('query', { ...asked, limit: 2000, budget: { requests: 3 } })).toMatchObject({
    status: 422,
    code: 'BUDGET_EXCEEDED',
  });
});

it('explains a query, and writes the line that creates the missing index', async () => {
  await shown.withCities(3000).then((db) => db.checkpoint());
  const { db } = await shown.open({ role: 'replica' });
  const page = shown.page(db);
  const where = [{ field: 'uid', operator: '=', value: '00000000-0000-4000-8000-000000000009' } as const];
  const found = await page.call('explain', { table: 'cities', where, orderBy: [], run: true });
  expect(found.explanation).toMatchObject({ access: 'table', missingIndex: ['uid'] });
  expect(found.explanation.steps[0]?.actual).toMatchObject({ rows: 3000 });
  expect(found.indexLine).toBe("indexes: ['uid']");
  const inTags = [{ field: 'tags.kinds', operator: '=', value: 7 } as const];
  expect((await page.call('explain', { table: 'cities', where: inTags, orderBy: [] })).indexLine).toBe(
    "indexes: [{ fields: [{ path: 'tags.kinds', typeId: Types.float64 }] }]",
  );
  const { db: cold } = await shown.open({ role: 'replica' });
  const indexed = await shown.page(cold).call('explain', {
    table: 'cities',
    where: [{ field: 'country', operator: '=', value: 'FI' }],
    orderBy: [{ field: 'population', direction: 'asc' }],
    limit: 3,
  });
  // The indexes are those that are stored, although Studio has registered the table without any.
  expect(indexed.explanation).toMatchObject({ access: 'index', index: 'country,population' });
  expect(indexed.indexLine).toBeUndefined();
});

it('explains groups by the plan that they run with: of an index alone, where one has their fields', async () => {
  await shown.withCities(3000).then((db) => db.checkpoint());
  const { db } = await shown.open({ role: 'replica' });
  const page = shown.page(db);
  const asked = { table: 'cities', where: [], orderBy: [], aggregates: [{ name: 'all', kind: 'count' }] } as const;
  const { explanation } = await page.call('explain', { ...asked, groupBy: ['country'], run: true });
  expect(explanation).toMatchObject({ access: 'index', index: 'country', indexOnly: true, order: 'access' });
  const { cost } = await page.call('query', { ...asked, groupBy: ['country'] });
  // The blocks are in memory now: the query reads those that the plan has read.
  expect(cost.requests).toBe(0);
  const rows = await page.call('explain', { ...asked, groupBy: ['uid'] });
  expect(rows.explanation).toMatchObject({ access: 'table' });
  expect(rows.explanation.steps.map(({ step }) => step)).not.toContain('sort');
});

it('shows a page of rows of a cold replica with few requests, and says how many', async () => {
  await shown.withCities(500).then((db) => db.checkpoint());
  const { db, driver } = await shown.open({ role: 'replica' });
  const page = shown.page(db);
  await page.call('overview', {});
  const before = requestsOf(driver);
  const { cost, rows } = await page.call('rows', { table: 'cities', ...everything, size: 50 });
  expect(rows).toHaveLength(50);
  expect(requestsOf(driver) - before).toBe(cost.requests);
  expect(cost.requests).toBeLessThanOrEqual(2);
  expect(cost.dollars).toBeCloseTo(cost.requests * 0.0000004, 10);
  // Everything is in memory now.
  expect((await page.call('rows', { table: 'cities', ...everything, size: 50 })).cost).toMatchObject({ requests: 0 });
});

it('shows what others commit, and tables that appear later', async () => {
  const writer = await shown.withCities(1);
  const { db } = await shown.open({ role: 'replica', writeForwardInterval: 10 });
  const page = shown.page(db);
  expect((await page.call('overview', {})).tables).toHaveLength(1);
  await addCities(writer, 2, 4);
  writer.registerSchema({ ...citySchema, name: 'towns', indexes: [] });
  const batch = writer.batch();
  await batch.insert('towns', city(1));
  await batch.flush();
  expect((await page.call('rows', { table: 'towns', ...everything, size: 10 })).rows).toHaveLength(1);
  expect((await page.call('rows', { table: 'cities', ...everything, size: 10 })).rows).toHaveLength(3);
});

it('says what is wrong with what it is asked', async () => {
  const page = shown.page(await shown.withCities(3));
  const asked = { table: 'cities', ...everything, size: 10 };
  const failures: readonly (readonly [asked: object, message: RegExp, status?: number])[] = [
    [{ ...asked, table: 'towns' }, /There is no table towns/],
    [{ ...asked, table: '__proto__' }, /There is no table __proto__/],
    [{ ...asked, size: 0 }, /`size` is 0; it takes a whole number from 1 to 1000/],
    [{ ...asked, where: [{ field: 'nam', operator: '=', value: 1 }] }, /no field nam/],
    [{ ...asked, where: [{ field: 'id', operator: 'LIKE', value: 1 }] }, /`where\[0\]\.operator` is 'LIKE'/],
    [{ ...asked, where: [{ field: 'id', operator: '=', value: 'x' }] }, /Field id of table cities/],
    [{ ...asked, where: [{ field: 'id', operator: 'BETWEEN', value: [1] }] }, /a list of two values/],
    [{ ...asked, where: 'all' }, /`where` is 'all'/],
    [{ ...asked, fields: [] }, /at least one column/],
    [{ ...asked, fields: ['nope'] }, /no field nope/],
    [{ ...asked, orderBy: [{ field: 'tags', direction: 'asc' }] }, /tags/],
    [{ ...asked, after: 'nonsense' }, /bookmark/i],
    [[asked], /its arguments are/],
  ];
  for (const [given, message] of failures) {
    const failure = await page.failure('rows', given);
    expect(failure.message).toMatch(message);
    expect(failure.status).toBe(400);
  }
  expect(await page.failure('row', { table: 'cities', key: [1, 2] })).toMatchObject({ status: 400 });
  expect(await page.failure('query', { ...asked, groupBy: ['country'] })).toMatchObject({ status: 400 });
  expect(await page.failure('nonsense' as 'row', {})).toMatchObject({ status: 404 });
  expect(await page.failure('constructor' as 'row', {})).toMatchObject({ status: 404 });
});

it('shows an empty database, and one with 300 tables', async () => {
  const { db } = await shown.open();
  expect((await shown.page(db).call('overview', {})).tables).toEqual([]);
  const batch = db.batch();
  for (let i = 0; i < 300; i++) {
    const name = `t${String(i).padStart(3, '0')}`;
    db.registerSchema({ ...citySchema, name, indexes: [] });
    await batch.insert(name, city(i));
  }
  await batch.flush();
  const { db: other, driver } = await shown.open({ role: 'replica' });
  const page = shown.page(other);
  const before = requestsOf(driver);
  const { tables } = await page.call('overview', {});
  expect(tables).toHaveLength(300);
  expect(tables[299]?.name).toBe('t299');
  expect(requestsOf(driver) - before).toBeLessThan(6);
  const row: Row | null = await page.row('t123', 123);
  expect(row?.['name']).toBe('City 00123');
});

it('leaves the schemas of an application as they are', async () => {
  await shown.withCities(2);
  const { db } = await shown.open();
  const wider = { ...citySchema, version: 2, fields: { ...citySchema.fields, mayor: citySchema.fields.name } };
  db.registerSchema({ ...wider, fields: { ...wider.fields, mayor: { typeId: 10 } } });
  const page = shown.page(db);
  const [table] = (await page.call('overview', {})).tables;
  expect(table).toMatchObject({ version: 2 });
  expect(db.registeredSchemas().map(({ version }) => version)).toEqual([2]);
  expect(await page.row('cities', 1)).toMatchObject({ id: 1, mayor: null });
});
