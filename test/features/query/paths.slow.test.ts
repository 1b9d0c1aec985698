/** Paths into json fields: conditions, orders, groups and aggregates on them, with and without indexes on them. */
import { describe, expect, it } from 'vitest';
import { InvalidOperatorError, InvalidQueryError, InvalidSchemaError } from '../../../src/base/errors.ts';
import { Types } from '../../../src/format/types.ts';
import { candidatesOf } from '../../../src/query/planner/planner.ts';
import { toDefinition } from '../../../src/schema/stored-definition.ts';
import { toStoredSchema } from '../../../src/schema/schema.ts';
import { compile, runEveryPlan } from './every-plan.ts';
import { clauseOf } from './model.ts';
import type { ModelClause, ModelQuery } from './model.ts';
import { expectedOf, kindOf, valueAt } from './path-model.ts';
import { TestTable } from './test-table.ts';
import type { Row } from './test-table.ts';

const plain = {
  name: 'people',
  version: 1,
  fields: {
    id: { typeId: Types.uint32 },
    country: { typeId: Types.varchar },
    info: { typeId: Types.json },
    'a.b': { typeId: Types.json },
  },
  primaryKey: 'id',
} as const;

const indexed = {
  ...plain,
  indexes: [
    { fields: [{ path: 'info.v', typeId: Types.varchar }] },
    { fields: ['country', { path: 'info.n', typeId: Types.float64 }] },
    { fields: [{ path: 'info.t', typeId: Types.timestamp }, 'country'] },
    { fields: [{ path: 'info.b', typeId: Types.boolean }] },
    { fields: [{ path: 'info.list.0.sku', typeId: Types.varchar }], where: { country: ['DE', 'FR'] } },
    { fields: [{ path: 'a.b.deep\\.key.x', typeId: Types.float64 }], name: 'deep' },
    { fields: [{ path: 'info.__proto__.constructor', typeId: Types.varchar }], name: 'proto' },
  ],
};

const long = 'long '.repeat(300);
const time = '2024-05-06T07:08:09.010Z';
/** Values of all types, that look alike, and that one type sorts next to others. */
const values: readonly unknown[] = [
  undefined,
  null,
  'Paris',
  'Pari',
  'Paris ',
  '',
  '1',
  'true',
  'null',
  'ü\0',
  '\u{1F600}',
  '\uE000',
  long,
  `${long}!`,
  '\ud800',
  1,
  1.0,
  0,
  -0,
  1.5,
  -3,
  2 ** 53,
  2 ** 53 + 2,
  1e300,
  5e-324,
  true,
  false,
  time,
  '2024-05-06T07:08:09.011Z',
  '2024-05-06',
  '2024-05-06T07:08:09Z',
  '+012024-05-06T07:08:09.010Z',
  '-000001-05-06T07:08:09.010Z',
  {},
  { length: 1 },
  [],
  ['Paris'],
  [[1]],
];

const keys = ['v', 'n', 't', 'b'];

function person(i: number): Row {
  const value = (k: number): unknown => values[(i * 7 + k * 11) % values.length];
  const info = Object.fromEntries(keys.map((key, k) => [key, value(k)]));
  const sku = { sku: value(5) };
  const proto = JSON.parse(`{ "__proto__": { "constructor": ${JSON.stringify(value(6)) ?? 'null'} } }`) as object;
  return {
    id: i,
    country: ['DE', 'FR', 'IT', null][i % 4],
    info:
      i % 13 === 0
        ? (value(1) ?? null)
        : { ...info, list: i % 5 === 0 ? sku : [sku, { sku: 'second' }], ...define(proto) },
    'a.b': i % 3 === 0 ? null : { 'deep.key': { x: value(3) }, deep: { key: { x: 7 } } },
  };
}

/** Own properties only, also one of the name `__proto__`. */
function define(from: object): object {
  const to = {};
  for (const [name, value] of Object.entries(from))
    Object.defineProperty(to, name, { value, enumerable: true, writable: true, configurable: true });
  return to;
}

/** Rows as JSON gives them back. */
const rows = Array.from({ length: 260 }, (_, i): Row => {
  const { info, 'a.b': more, ...row } = person(i);
  const kept = (json: unknown): unknown => JSON.parse(JSON.stringify(json)) as unknown;
  return { ...row, info: copied(info) ?? null, 'a.b': kept(more) };
});

function copied(json: unknown): unknown {
  const text = JSON.stringify(json);
  return text === undefined ? null : (JSON.parse(text) as unknown);
}

const paths = ['info.v', 'info.n', 'info.t', 'info.b', 'info.list.0.sku', 'info.list.sku', 'a.b.deep\\.key.x'];
const moreNames = [
  'info.__proto__.constructor',
  'info.constructor',
  'info.list.length',
  'info.v.length',
  'a.b.deep.key.x',
  'info.0',
];
const compared: readonly unknown[] = [
  'Paris',
  '',
  '1',
  'true',
  long,
  '\u{1F600}',
  '\ud800',
  time,
  1,
  1n,
  0,
  -0,
  1.5,
  2 ** 53 + 1,
  2n ** 53n + 1n,
  Infinity,
  -Infinity,
  10n ** 400n,
  true,
  false,
  new Date(time),
  new Date(-1e14),
];

function asking(wheres: readonly ModelClause[], more: Partial<ModelQuery> = {}): ModelQuery {
  return { wheres, orders: [], limit: undefined, offset: 0, ...more };
}

function clauses(): ModelClause[] {
  const all: ModelClause[] = [];
  for (const path of [...paths, ...moreNames]) {
    all.push([path, '=', null], [path, '!=', null], { not: [path, '=', null] }, [path, '<', null]);
  }
  for (const [i, value] of compared.entries()) {
    for (const [k, path] of paths.entries()) {
      const operator = (['=', '!=', '<', '<=', '>', '>='] as const)[(i + k) % 6] as '=';
      all.push([path, operator, value], { not: [path, operator, value] }, [path, '=', value]);
    }
  }
  for (const path of paths) {
    all.push([path, 'IN', ['Paris', 1, true, null]], { not: [path, 'IN', ['Paris', 1, null]] });
    all.push([path, 'IN', ['Paris', '', long]], [path, 'IN', [0, 1]], [path, 'IN', []], [path, 'IN', [null]]);
    all.push([path, 'IN', ['Paris', 1]], [path, 'IN', [new Date(time), new Date(0)]], {
      not: [path, 'IN', ['Paris', '']],
    });
    all.push([path, 'BETWEEN', ['A', 'Z']], [path, 'BETWEEN', [null, 'Z']], { not: [path, 'BETWEEN', [0, 2]] });
    all.push([path, 'PREFIX', 'Par'], [path, 'PREFIX', ''], { not: [path, 'PREFIX', 'long '] });
    all.push(
      {
        or: [
          [path, '=', 'Paris'],
          [path, '>', 0],
        ],
      },
      {
        and: [
          [path, '>=', ''],
          [path, '<', 'Q'],
        ],
      },
    );
  }
  return all;
}

async function filled(schema: typeof plain | typeof indexed): Promise<TestTable> {
  const table = new TestTable(schema, { blockSizeBytes: 4096 });
  await table.commit(rows.slice(0, 200));
  await table.merge();
  return table;
}

const typed = new Map([
  ['info.v', 'text'],
  ['info.n', 'number'],
  ['info.t', 'time'],
  ['info.b', 'boolean'],
  ['info.list.0.sku', 'text'],
  ['a.b.deep\\.key.x', 'number'],
  ['info.__proto__.constructor', 'text'],
] as const);

describe('paths', () => {
  it('find the same rows by each plan, with and without indexes, also with unmerged commits', async () => {
    const tables = [await filled(plain), await filled(indexed)];
    const changed = { ...rows[5], info: { v: 'Paris', n: 1, t: time, b: true } } as Row;
    let byIndex = 0;
    for (const isMerged of [true, false]) {
      if (!isMerged) for (const table of tables) await table.commit([...rows.slice(190), changed], [3, 4]);
      const there = isMerged
        ? rows.slice(0, 200)
        : [...rows.filter(({ id }) => ![3, 4, 5].includes(id as number)), changed];
      for (const clause of clauses()) {
        const query = asking([clause]);
        const expected = expectedOf(there, query).map(({ id }) => id);
        for (const table of tables) {
          for (const { rows: found, candidate } of await runEveryPlan(table, compile(table, query))) {
            if (candidate.access.kind === 'index') byIndex++;
            expect(
              found.map(({ id }) => id),
              JSON.stringify(clause, (_, value: unknown) => String(value)),
            ).toEqual(expected);
          }
          expect(
            await table
              .query()
              .where((is) => clauseOf(is, clause))
              .count(),
          ).toBe(expected.length);
        }
      }
    }
    expect(byIndex).toBeGreaterThan(140);
  });

  it('order and group rows by the type of an index, or by all types one after the other', async () => {
    const tables = [await filled(plain), await filled(indexed)];
    const there = rows.slice(0, 200);
    for (const [i, table] of tables.entries()) {
      for (const path of [...paths, ...moreNames]) {
        const type = i === 1 ? typed.get(path as 'info.v') : undefined;
        for (const direction of ['asc', 'desc'] as const) {
          for (const [limit, offset] of [
            [undefined, 0],
            [7, 3],
          ] as const) {
            const query = asking([['id', '<', 150]], { orders: [[path, direction]], limit, offset });
            const expected = expectedOf(there, query, () => type).map(({ id }) => id);
            for (const { rows: found } of await runEveryPlan(table, compile(table, query))) {
              expect(
                found.map(({ id }) => id),
                `${path} ${direction} ${i}`,
              ).toEqual(expected);
            }
          }
        }
        const groups = await table
          .query()
          .groupBy(path as 'id')
          .aggregate({ n: 'count' });
        const sizes = new Map<string, number>();
        for (const row of there) {
          const value = kindOf(valueAt(row, path), type);
          sizes.set(JSON.stringify(value), (sizes.get(JSON.stringify(value)) ?? 0) + 1);
        }
        const found = groups.map((group) => [JSON.stringify((group as Row)[path]), (group as Row)['n']]);
        expect(new Map(found as [string, number][]), path).toEqual(sizes);
        expect(found).toHaveLength(sizes.size);
      }
    }
  });

  it('come page by page', async () => {
    for (const table of [await filled(plain), await filled(indexed)]) {
      for (const path of ['info.v', 'info.n', 'info.t', 'info.list.0.sku']) {
        const query = table.query().where('id', '<', 120).orderBy(path, 'desc');
        const all = (await query.execute()).map(({ id }) => id);
        const seen: unknown[] = [];
        let after: string | undefined;
        do {
          const page = await query.page({ size: 17, ...(after === undefined ? {} : { after }) });
          seen.push(...page.rows.map(({ id }) => id));
          after = page.next;
        } while (after !== undefined);
        expect(seen).toEqual(all);
      }
    }
  });

  it('are selected flat, as JSON has them, and aggregated', async () => {
    const there = rows.slice(0, 200);
    for (const [i, table] of [await filled(plain), await filled(indexed)].entries()) {
      const selected = await table
        .query()
        .select('id', 'info.v' as 'id', 'info.list.0' as 'id')
        .execute();
      expect(selected).toEqual(
        there.map((row) => ({
          id: row['id'],
          'info.v': valueAt(row, 'info.v') ?? null,
          'info.list.0': valueAt(row, 'info.list.0') ?? null,
        })),
      );
      const numbers = there.map((row) => valueAt(row, 'info.n')).filter((value) => typeof value === 'number');
      const some = numbers.filter((value) => Math.abs(value) < 1e9);
      const query = table.query().where('info.n', '<', 1e9);
      expect(await query.sum('info.n')).toBe(some.reduce((sum, value) => sum + value, 0));
      expect(await query.avg('info.n')).toBe(some.reduce((sum, value) => sum + value, 0) / some.length);
      // Its index is of the texts there.
      const others = there.map((row) => valueAt(row, 'info.v')).filter((value) => typeof value === 'number');
      expect(await table.query().sum('info.v')).toBe(others.reduce((sum, value) => sum + value, 0));
      expect(await query.min('info.n')).toBe(Math.min(...some));
      expect(await query.max('info.n')).toBe(Math.max(...some));
      const filledIn = there.filter((row) => (valueAt(row, 'info.n') ?? null) !== null).length;
      expect(await table.query().aggregate({ n: { count: 'info.n' } })).toEqual({ n: filledIn });
      const latest = await table.query().where('info.t', '>=', new Date(0)).max('info.t');
      const far = '+012024-05-06T07:08:09.010Z';
      expect(latest).toEqual(i === 1 ? far : '2024-05-06T07:08:09.011Z');
    }
  });

  it('take lists inside of a field', async () => {
    const table = new TestTable(plain);
    await table.commit([
      { id: 1, info: { tags: ['red', 1], deep: [{ list: [true] }] } },
      { id: 2, info: { tags: 'red' } },
      { id: 3, info: ['red'] },
      { id: 4, info: null },
    ]);
    const ids = async (path: string, element: unknown): Promise<unknown[]> =>
      (
        await table
          .query()
          .where(path as 'id', 'HAS' as '=', element as 1)
          .execute()
      ).map(({ id }) => id);
    expect(await ids('info.tags', 'red')).toEqual([1]);
    expect(await ids('info.tags', 1)).toEqual([1]);
    expect(await ids('info.deep.0.list', true)).toEqual([1]);
    expect(await ids('info.deep.1.list', true)).toEqual([]);
    expect(await ids('info', 'red')).toEqual([3]);
  });

  it('use an index of their type only', async () => {
    const table = await filled(indexed);
    const indexesFor = (...wheres: ModelClause[]): string[] =>
      candidatesOf(table.state, compile(table, asking(wheres))).flatMap(({ access }) =>
        access.kind === 'index' ? [access.index.name] : [],
      );
    expect(indexesFor(['info.v', '=', 'Paris'])).toEqual(['info.v']);
    expect(indexesFor(['info.v', '=', 1])).toEqual([]);
    expect(indexesFor(['info.v', '!=', null])).toEqual([]);
    expect(indexesFor(['info.v', '=', null])).toEqual(['info.v']);
    expect(indexesFor(['info.t', '>', new Date(0)])).toEqual(['info.t,country']);
    expect(indexesFor(['info.t', '>', time])).toEqual([]);
    expect(indexesFor(['country', '=', 'DE'], ['info.n', '>', 1n])).toEqual(['country,info.n', 'info.list.0.sku']);
    expect(await table.query().orderBy('info.v').limit(3).explain()).toMatchObject({
      index: 'info.v',
      order: 'access',
    });
  });

  it('say what is wrong with a name, a value, a type or an index', async () => {
    const table = await filled(plain);
    const query = table.query();
    for (const name of ['info.', 'info..v', 'country.x', 'infos.v', '.info', `info.${'x.'.repeat(101)}x`]) {
      expect(() => query.where(name, '=', 1), name).toThrow(InvalidQueryError);
    }
    for (const value of [undefined, {}, [1], Number.NaN, new Date(Number.NaN), Symbol('x'), new Uint8Array(1)]) {
      expect(() => query.where('info.v', '=', value)).toThrow(InvalidQueryError);
    }
    expect(() => query.where('info.v', 'IN', 'x')).toThrow(InvalidQueryError);
    expect(() => query.where('info.v', 'BETWEEN', ['x'])).toThrow(InvalidQueryError);
    expect(() => query.where('info.v', 'PREFIX', 1)).toThrow(InvalidOperatorError);
    const mixed = "Cannot compare field 'info.v' of table 'people' with 'Z': type float64 is compared with numbers";
    expect(() => query.where('info.v', 'BETWEEN', [0, 'Z'])).toThrow(mixed);
    expect(() => query.where(({ not, is }) => not(is('info.v', 'BETWEEN', [0, 'Z'])))).toThrow(mixed);
    const wrong = [
      [new Date(0), 'none'],
      ['a', true],
      [undefined, 'Z'],
      ['a', undefined],
      [null, undefined],
    ];
    for (const ends of wrong) {
      expect(() => query.where('info.v', 'BETWEEN', ends)).toThrow(InvalidQueryError);
    }
    for (const ends of [
      [null, 'Z'],
      [0, null],
      [null, null],
      [1, 2n],
    ])
      query.where('info.v', 'BETWEEN', ends);
    const refused = (fields: unknown, more: object = {}): unknown => {
      try {
        return toStoredSchema({ ...plain, indexes: [{ fields, ...more } as never] });
      } catch (error) {
        return error;
      }
    };
    const varchar = Types.varchar;
    for (const field of [
      { path: 'info', typeId: varchar },
      { path: 'country.x', typeId: varchar },
      { path: 'info.', typeId: varchar },
      { path: 1, typeId: varchar },
      { path: 'info.v' },
      { path: 'info.v', typeId: Types.uint32 },
      { path: 'info.v', typeId: Types.json },
      { path: 'info.v', typeId: varchar, unique: true },
      'info.v',
    ]) {
      expect(refused([field]), JSON.stringify(field)).toBeInstanceOf(InvalidSchemaError);
    }
    const v = { path: 'info.v', typeId: varchar };
    expect(refused([v, v])).toBeInstanceOf(InvalidSchemaError);
    expect(refused(['country'], { include: [v] })).toBeInstanceOf(InvalidSchemaError);
    expect(refused(['country'], { where: { 'info.v': {} } })).toBeInstanceOf(InvalidSchemaError);
    const both = [{ fields: [v] }, { fields: ['country', { ...v, typeId: Types.float64 }] }];
    expect(() => toStoredSchema({ ...plain, indexes: both })).toThrow(
      "give the path 'info.v' two types, varchar and float64",
    );
    const definition = toDefinition(toStoredSchema(indexed));
    expect(toStoredSchema(definition)).toEqual(toStoredSchema(indexed));
  });
});
