/** Paths into json fields in the parts of an index: its included values, its condition, and the list whose elements have entries. */
import { describe, expect, it } from 'vitest';
import { InvalidSchemaError } from '../../../src/base/errors.ts';
import { Types } from '../../../src/format/types.ts';
import { isIndexOf, schemaFormat } from '../../../src/format/stored-schema.ts';
import { defineSchema } from '../../../src/schema/define-schema.ts';
import { toDefinition } from '../../../src/schema/stored-definition.ts';
import { toStoredSchema } from '../../../src/schema/schema.ts';
import { Random } from '../../properties/model/random.ts';
import { compile, runEveryPlan } from './every-plan.ts';
import type { ModelClause } from './model.ts';
import { expectedOf, valueAt } from './path-model.ts';
import { TestTable } from './test-table.ts';
import type { Row } from './test-table.ts';

const plain = {
  name: 'people',
  version: 1,
  fields: { id: { typeId: Types.uint32 }, country: { typeId: Types.varchar }, info: { typeId: Types.json } },
  primaryKey: 'id',
} as const;

const schema = defineSchema({
  ...plain,
  indexes: [
    { fields: ['country'], include: ['info.v', 'info.n', 'info.geo'] },
    { fields: [{ path: 'info.v', typeId: Types.varchar }], include: ['country', 'info.list.0'] },
    { fields: [{ path: 'info.n', typeId: Types.float64 }, 'country'] },
    { fields: ['country', 'id'], where: { 'info.v': ['a', 1, null] }, name: 'some' },
    { fields: ['country'], where: { 'info.t': { not: null } }, include: ['info.t'], name: 'timed' },
    { fields: ['id'], where: { 'info.t': new Date(0), 'info.geo.lat': [1, 2] }, name: 'first' },
    { fields: [{ path: 'info.tags', typeId: Types.json }], each: true },
    { fields: ['country', { path: 'info.tags', typeId: Types.json }, 'id'], each: true, include: ['info.v'] },
  ],
});

const first = new Date(0).toJSON();
const values: readonly unknown[] = ['a', 'b', '1', 1, 2, 0, true, null, undefined, { x: 'a' }, ['a'], 'l'.repeat(1100)];
const times: readonly unknown[] = [first, '2024-05-06T07:08:09.010Z', 'never', 5, null, undefined];
const tags: readonly unknown[] = ['red', 'blue', 1, '1', true, null, ['red'], 'l'.repeat(1100)];

function person(id: number): Row {
  const pick = (from: readonly unknown[], by: number): unknown => from[(id * by) % from.length];
  const info = {
    v: pick(values, 5),
    n: pick(values, 7),
    t: pick(times, 3),
    geo: id % 4 === 0 ? 'none' : { lat: id % 3, lng: pick(values, 11), at: [id] },
    list: [pick(values, 1), id],
    tags: id % 7 === 0 ? 'red' : [pick(tags, 3), pick(tags, 5), pick(tags, 3)],
  };
  const row = { id, country: ['DE', 'FR', 'IT', null][id % 4], info: id % 11 === 0 ? null : info };
  return JSON.parse(JSON.stringify(row)) as Row;
}

const rows = Array.from({ length: 140 }, (_, id) => person(id));
const selected = [
  'id',
  'country',
  'info.v',
  'info.n',
  'info.t',
  'info.geo',
  'info.geo.lat',
  'info.geo.at.0',
  'info.list.0',
];

async function filled(definition: typeof plain = schema): Promise<TestTable> {
  const table = new TestTable(definition, { blockSizeBytes: 2048 });
  await table.commit(rows.slice(0, 110));
  await table.merge();
  await table.commit(rows.slice(100), [4, 5]);
  return table;
}

const there = rows.filter(({ id }) => id !== 4 && id !== 5);

function randomWheres(random: Random): ModelClause[] {
  const country = (): ModelClause => ['country', '=', ['DE', 'FR', null][random.below(3)]];
  const ofPath = (): ModelClause => {
    const path = ['info.v', 'info.n', 'info.geo.lat', 'info.list.0', 'info.geo.lng'][random.below(5)] as string;
    const value = ['a', 'b', '1', 1, 2, true][random.below(6)];
    const operator = (['=', '!=', '<', '>='] as const)[random.below(4)] as '=';
    const some: readonly ModelClause[] = [
      [path, operator, value],
      [path, 'IN', ['a', 1]],
      [path, 'IN', ['a', 1, null]],
      [path, '=', null],
      [path, '!=', null],
      { not: [path, operator, value] },
      {
        or: [
          [path, '=', value],
          ['info.v', '=', 'a'],
        ],
      },
    ];
    return some[random.below(some.length)] as ModelClause;
  };
  const ofTime = (): ModelClause => ['info.t', random.below(2) === 0 ? '=' : '>=', new Date(0)];
  const anyText = (): ModelClause => ['info.t', 'PREFIX', ''];
  const more: readonly (() => ModelClause)[] = [country, ofPath, ofPath, ofTime, anyText, () => ['info.t', '!=', null]];
  return Array.from({ length: 1 + random.below(3) }, () => (more[random.below(more.length)] as () => ModelClause)());
}

describe('paths in the parts of indexes', () => {
  it('give the rows and values that a scan gives, by every plan', async () => {
    const table = await filled();
    const random = new Random(11);
    const used = new Set<string>();
    const rare: readonly (readonly [ModelClause[], string[]])[] = [
      [[['info.t', '=', new Date(0)] as ModelClause, ['info.geo.lat', 'IN', [1, 2]]], ['id']],
      [[['info.n', '<', 2]], ['id', 'country', 'info.n']],
      [[['info.v', 'IN', ['a', 1]]], ['id', 'country']],
    ];
    for (let i = 0; i < 130; i++) {
      const [wheres, names] = rare[i] ?? [
        randomWheres(random),
        selected.filter((name) => name === 'id' || random.below(3) === 0),
      ];
      const orders = rare[i] === undefined && random.below(3) === 0 ? ([['info.v', 'desc']] as const) : [];
      const limit = random.below(2) === 0 ? undefined : 1 + random.below(8);
      const query = { wheres, orders, limit, offset: 0 };
      const expected = expectedOf(there, query, (path) => (path === 'info.n' ? 'number' : 'text')).map((row) =>
        Object.fromEntries(names.map((name) => [name, valueAt(row, name) ?? null])),
      );
      for (const { rows: found, candidate } of await runEveryPlan(table, compile(table, query, false, { names }))) {
        expect(found, JSON.stringify([wheres, names, orders])).toEqual(expected);
        const { access, use } = candidate;
        if (access.kind === 'index') used.add(`${access.index.name}${use?.only === true ? ' only' : ''}`);
      }
    }
    const only = ['country', 'info.v', 'info.n,country', 'timed'].map((name) => `${name} only`);
    expect([...used]).toEqual(expect.arrayContaining([...only, 'first only', 'some']));
  });

  it('find rows by the elements of a list at a path', async () => {
    const table = await filled();
    for (const element of ['red', 1, '1', true, 'l'.repeat(1100), 'none']) {
      for (const country of ['DE', 'FR']) {
        const expected = there.filter((row) => {
          const list = valueAt(row, 'info.tags');
          return row['country'] === country && Array.isArray(list) && list.includes(element);
        });
        const wheres: ModelClause[] = [
          ['info.tags', 'HAS', element],
          ['country', '=', country],
        ];
        const query = { wheres, orders: [], limit: undefined, offset: 0 };
        const runs = await runEveryPlan(table, compile(table, query, false, { names: ['id', 'info.v'] }));
        for (const { rows: found } of runs) {
          expect(found).toEqual(expected.map((row) => ({ id: row['id'], 'info.v': valueAt(row, 'info.v') ?? null })));
        }
        const names = runs.map(({ candidate: { access } }) => (access.kind === 'index' ? access.index.name : ''));
        expect(names).toEqual(expect.arrayContaining(['info.tags', 'country,info.tags,id']));
      }
    }
  });

  it('answer a query from the entries alone', async () => {
    const table = new TestTable(schema, { blockSizeBytes: 2048 });
    await table.commit(rows.map(({ id, country }) => ({ id, country, info: { v: 1, geo: { lat: 2 } } })));
    await table.merge();
    const query = table.query().where('country', '=', 'DE').where('info.geo.lat', '=', 2);
    const shown = query.select('id', 'info.v' as 'id', 'info.geo.lat' as 'id');
    expect(await shown.explain()).toMatchObject({ index: 'country', indexOnly: true });
    const before = table.requests;
    expect(await shown.execute()).toHaveLength(35);
    expect(table.requests - before).toBeLessThanOrEqual(2);
  });

  it('tell tuples of different paths apart, however many there are', async () => {
    const table = await filled();
    const or: ModelClause[] = Array.from({ length: 140 }, (_, i) => ({
      and: [
        ['country', '=', ['DE', 'FR'][i % 2]],
        i % 4 < 2 ? [['info.v', 'info.n'][i % 2] as string, '=', ['a', 'b'][i % 3] ?? '1'] : ['info.n', '=', i % 3],
      ],
    }));
    const query = { wheres: [{ or }], orders: [], limit: undefined, offset: 0 };
    const expected = expectedOf(there, query).map(({ id }) => id);
    for (const { rows: found } of await runEveryPlan(table, compile(table, query))) {
      expect(found.map(({ id }) => id)).toEqual(expected);
    }
    expect(expected.length).toBeGreaterThan(5);
  });
});

describe('the definition of paths in the parts of indexes', () => {
  it('is stored in a form that older releases refuse, and is the definition again', () => {
    const stored = toStoredSchema(schema);
    expect(toStoredSchema(toDefinition(stored))).toEqual(stored);
    for (const index of stored.indexes) {
      expect(schemaFormat({ ...stored, indexes: [index] })).toBe(14);
      expect(isIndexOf(stored, index)).toBe(true);
    }
    expect(stored.indexes[3]?.where).toEqual([{ field: 'info.v', values: [1, 'a', null] }]);
    expect(stored.indexes[5]?.where?.[1]).toEqual({ field: 'info.t', values: [first] });
    const [paths] = [{ path: 'info.tags', typeId: Types.json }];
    expect(isIndexOf(stored, { name: 'x', fields: ['info.tags'], paths: [paths] })).toBe(false);
    expect(isIndexOf(stored, { name: 'x', fields: ['id'], where: [{ field: 'inf.v', values: [1] }] })).toBe(false);
    expect(isIndexOf(stored, { name: 'x', fields: ['id'], where: [{ field: 'info.v', values: [{}] }] })).toBe(false);
    expect(isIndexOf(stored, { name: 'x', fields: ['id'], include: ['country.v'] })).toBe(false);
  });

  it.each([
    [{ fields: ['country'], include: ['country.v'] }, /included field of an index 'country.v' is not a field/],
    [{ fields: ['country'], include: ['info.'] }, /'info.' is not a field/],
    [{ fields: ['country'], include: ['info.v', 'info.v'] }, /names the field 'info.v', which it has there twice/],
    [
      { fields: [{ path: 'info.v', typeId: Types.varchar }], include: ['info.v'] },
      /names the field 'info.v', which it holds anyway/,
    ],
    [{ fields: ['country'], where: { 'country.v': 1 } }, /the table has no field 'country.v'/],
    [{ fields: ['country'], where: { 'info.v': [1, 1] } }, /the path 'info.v' lists 1 twice/],
    [{ fields: ['country'], where: { 'info.v': {} } }, /the path 'info.v' takes a value, null, an array of these/],
    [{ fields: ['country'], where: { 'info.v': Infinity } }, /the path 'info.v' takes strings, finite numbers, true/],
    [{ fields: ['country'], where: { 'info.v': new Date(Number.NaN) } }, /takes strings, finite numbers, true, false/],
    [{ fields: ['country'], where: { 'info.v': 1n } }, /takes strings, finite numbers, true, false, Dates and null/],
    [{ fields: [{ path: 'info.v', typeId: Types.json }] }, /cannot be of typeId json/],
    [
      { fields: ['info', { path: 'info.v', typeId: Types.json }], each: true },
      /must be on one json field, or on a path of typeId json, .*: info and info.v are/,
    ],
    [{ fields: [{ path: 'info.v', typeId: Types.varchar }], each: true }, /none of its fields is/],
    [{ fields: [{ path: 'info.v', typeId: Types.json }], each: true, unique: true }, /both `unique` and with `each`/],
  ])('%o is refused', (index, message) => {
    const define = (): unknown => toStoredSchema({ ...plain, indexes: [index as never] });
    expect(define).toThrow(InvalidSchemaError);
    expect(define).toThrow(message);
  });
});
