/** Random queries and searches on random tables, against the model: every access, in memory and not, with layers and without. */
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Types } from '../../../src/format/types.ts';
import type { TypeId } from '../../../src/format/types.ts';
import { compileAggregate } from '../../../src/query/aggregate.ts';
import { valueOperators } from '../../../src/query/conditions/comparison.ts';
import { requireField } from '../../../src/query/conditions/condition.ts';
import type { SearchOptions } from '../../../src/query/conditions/search-options.ts';
import { compile, countEveryPlan, foldEveryPlan, runEveryPlan } from '../../features/query/every-plan.ts';
import { clauseOf, extremeModel, groupModel, runModel, withoutMinus } from '../../features/query/model.ts';
import type { ModelClause, ModelCondition, ModelQuery } from '../../features/query/model.ts';
import { runEveryWay } from '../../features/search/every-way.ts';
import { searchModel } from '../../features/search/search-model.ts';
import type { Article } from '../../features/search/search-model.ts';
import { TestTable } from '../../features/query/test-table.ts';
import type { Row } from '../../features/query/test-table.ts';

/** Few different values, so that conditions match and rows tie. */
const values: Record<string, fc.Arbitrary<unknown>> = {
  uint8: fc.integer({ min: 0, max: 5 }),
  int16: fc.integer({ min: -3, max: 3 }),
  float64: fc.constantFrom(-Infinity, -1.5, -0, 0, 0.1, 1, 1e300, Infinity),
  float32: fc.constantFrom(-2, Math.fround(0.1), 0, 3.5),
  int64: fc.constantFrom(-(2n ** 63n), -(2n ** 32n) - 1n, -1n, 0n, 1n, 2n ** 32n, 2n ** 63n - 1n),
  uint64: fc.constantFrom(0n, 1n, 2n ** 32n - 1n, 2n ** 32n, 2n ** 63n, 2n ** 64n - 1n),
  varchar: fc.constantFrom(
    '',
    'a',
    'ab',
    'abcd',
    'abcde',
    'abcdefghijkl',
    'abcdefghijklm',
    'abcdefghijkln',
    '\uFFFF',
    '\u{10000}',
    'zé',
    'a\0',
    'a\0b',
  ),
  long: fc.constantFrom(
    'short',
    'x'.repeat(1024),
    'x'.repeat(1025),
    `${'x'.repeat(1024)}a`,
    `${'x'.repeat(1024)}b`,
    'x'.repeat(1030),
    'y',
  ),
  boolean: fc.boolean(),
  timestamp: fc.constantFrom(-1, 0, 1, -8.64e15, 8.64e15, 1.7e12).map((time) => new Date(time)),
  uuid: fc.constantFrom(
    '00000000-0000-0000-0000-000000000000',
    '00000000-0000-0000-0000-0000000000ff',
    'ffffffff-0000-4000-8000-000000000000',
  ),
  bytes: fc
    .constantFrom([], [0], [0, 1], [255], [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13])
    .map((list) => Buffer.from(list)),
};

const fields = {
  id: { typeId: Types.uint32 },
  key: { typeId: Types.varchar },
  uint8: { typeId: Types.uint8 },
  int16: { typeId: Types.int16 },
  float64: { typeId: Types.float64 },
  float32: { typeId: Types.float32 },
  int64: { typeId: Types.int64 },
  uint64: { typeId: Types.uint64 },
  varchar: { typeId: Types.varchar },
  long: { typeId: Types.varchar },
  boolean: { typeId: Types.boolean },
  timestamp: { typeId: Types.timestamp },
  uuid: { typeId: Types.uuid },
  bytes: { typeId: Types.bytes },
  title: { typeId: Types.varchar },
  body: { typeId: Types.varchar },
} satisfies Record<string, { typeId: TypeId }>;

const names = Object.keys(values);
const idArbitrary = fc.integer({ min: 0, max: 400 });

/** A text that identifies the same row as an id: some of them sort differently by code point and by UTF-16. */
function keyOf(id: number): string {
  return `${['a', 'a\0', '\uFFFF', '\u{10000}'][id % 4]}${id}`;
}

function withKey(row: Row): Row {
  return { ...row, key: keyOf(row['id'] as number) };
}

const words = ['red', 'wine', 'white', 'winter', 'grape'];

function textArbitrary(maxLength: number): fc.Arbitrary<string | null> {
  const text = fc.array(fc.constantFrom(...words), { maxLength }).map((some) => some.join(' '));
  return fc.option(text, { freq: 8 });
}

const rowArbitrary: fc.Arbitrary<Row> = fc
  .record({
    id: idArbitrary,
    title: textArbitrary(3),
    body: textArbitrary(6),
    ...Object.fromEntries(names.map((name) => [name, fc.option(values[name] as fc.Arbitrary<unknown>, { freq: 6 })])),
  })
  .map(withKey);

/** What numbers are compared with: also what the field's type cannot hold. */
const anyNumber: fc.Arbitrary<unknown> = fc.oneof(
  fc.constantFrom(
    -Infinity,
    -(2 ** 63),
    -1.5,
    -1,
    -0,
    0.1,
    Math.fround(0.1),
    0.5,
    1,
    3,
    5.5,
    300,
    2 ** 32,
    2 ** 63,
    2 ** 64,
  ),
  fc.constantFrom(-(2n ** 63n), -(2n ** 32n) - 1n, 0n, 1n, 2n ** 53n + 1n, 2n ** 63n, 2n ** 64n - 1n, 10n ** 400n),
);
const numeric = new Set(['uint8', 'int16', 'float64', 'float32', 'int64', 'uint64']);

/** What a value begins with, of any length, cut at whole characters. */
function beginningsOf(value: unknown): fc.Arbitrary<unknown> {
  if (typeof value === 'string') {
    const characters = Array.from(value);
    return fc.nat(characters.length).map((length) => characters.slice(0, length).join(''));
  }
  if (value instanceof Uint8Array) return fc.nat(value.length).map((length) => value.subarray(0, length));
  return fc.constant(value);
}

interface Change {
  readonly rows: readonly Row[];
  readonly deleted: readonly number[];
}

function changeArbitrary(maxRows: number): fc.Arbitrary<Change> {
  return fc.record({
    rows: fc.uniqueArray(rowArbitrary, { maxLength: maxRows, selector: (row) => row['id'], size: 'max' }),
    deleted: fc.array(idArbitrary, { maxLength: 30 }),
  });
}

const texts = ['key', 'varchar', 'long', 'bytes'];

/** Those of which compound indexes are mostly made come more often. */
const anyField = fc.oneof(
  fc.constantFrom('uint8', 'varchar', 'long', 'boolean'),
  fc.constantFrom('id', 'key', ...names),
);

const conditionArbitrary: fc.Arbitrary<ModelCondition> = fc
  .constantFrom(...valueOperators)
  .chain((operator) => {
    return fc.tuple(operator === 'PREFIX' ? fc.constantFrom(...texts) : anyField, fc.constant(operator));
  })
  .chain(([name, operator]) => {
    const held =
      name === 'id' ? idArbitrary : name === 'key' ? idArbitrary.map(keyOf) : (values[name] as fc.Arbitrary<unknown>);
    const value = fc.option(numeric.has(name) ? fc.oneof(held, anyNumber) : held, { freq: 8 });
    let compared: fc.Arbitrary<unknown> = value;
    if (operator === 'IN') compared = fc.array(value, { maxLength: 4 });
    if (operator === 'BETWEEN') compared = fc.tuple(value, value);
    if (operator === 'PREFIX') compared = value.chain(beginningsOf);
    return compared.map((chosen) => [name, operator, chosen] as const);
  });

const { clause: clauseArbitrary } = fc.letrec<{ clause: ModelClause }>((tie) => ({
  clause: fc.oneof(
    { depthSize: 'small', maxDepth: 3, withCrossShrink: true },
    { arbitrary: conditionArbitrary, weight: 4 },
    { arbitrary: fc.record({ or: fc.array(tie('clause'), { maxLength: 3 }) }), weight: 3 },
    { arbitrary: fc.record({ and: fc.array(tie('clause'), { maxLength: 3 }) }), weight: 1 },
    { arbitrary: fc.record({ not: tie('clause') }), weight: 1 },
  ),
}));

const queryArbitrary: fc.Arbitrary<ModelQuery> = fc.record({
  wheres: fc.array(fc.oneof(conditionArbitrary, clauseArbitrary), { maxLength: 3 }),
  orders: fc.array(fc.tuple(anyField, fc.constantFrom('asc' as const, 'desc' as const)), { maxLength: 3 }),
  limit: fc.option(fc.integer({ min: 0, max: 40 }), { nil: undefined }),
  offset: fc.constantFrom(0, 0, 0, 1, 7, 20),
});

/** An index on several fields. Few different ones, so that conditions and orders often go by them. */
const compoundArbitrary = fc
  .oneof(
    fc.shuffledSubarray(['uint8', 'varchar', 'long', 'boolean'], { minLength: 2, maxLength: 3 }),
    fc.shuffledSubarray(['id', 'key', ...names], { minLength: 2, maxLength: 4 }),
  )
  .map((indexed) => ({ fields: indexed }));

interface Search {
  readonly text: string;
  readonly options: SearchOptions;
}

const searchArbitrary: fc.Arbitrary<Search> = fc.record({
  text: fc
    .uniqueArray(fc.constantFrom(...words, ...words, '"red wine"', '-white', '-"wine grape"', 'wi'), {
      minLength: 1,
      maxLength: 3,
    })
    .map((terms) => terms.join(' ')),
  options: fc.record({ match: fc.constantFrom('all', 'any'), prefix: fc.boolean() }),
});

const scenario = fc.record({
  primaryKey: fc.constantFrom('id' as const, 'key' as const),
  indexes: fc
    .tuple(
      fc.subarray(names),
      fc.uniqueArray(compoundArbitrary, { maxLength: 3, selector: (index) => index.fields.join(',') }),
    )
    .map((lists) => lists.flat()),
  stored: changeArbitrary(250),
  layers: fc.array(changeArbitrary(25), { maxLength: 3 }),
  queries: fc.array(queryArbitrary, { minLength: 20, maxLength: 20, size: 'max' }),
  searches: fc.array(searchArbitrary, { minLength: 2, maxLength: 2, size: 'max' }),
  cold: fc.boolean(),
  pageSize: fc.constantFrom(1, 3, 10, 300),
  aggregated: fc.record({
    selected: fc.shuffledSubarray(['id', 'key', ...names], { minLength: 1, maxLength: 3 }),
    field: fc.constantFrom('id', 'key', ...names),
    number: fc.constantFrom('uint8', 'int16', 'int64', 'uint64'),
    groupedBy: fc.uniqueArray(fc.constantFrom('uint8', 'varchar', 'boolean', 'long', 'float64'), {
      minLength: 1,
      maxLength: 2,
    }),
  }),
});

type Build = () => ReturnType<TestTable['query']>;

/** All rows, page by page; never one too many. */
async function pagesOf(build: Build, size: number): Promise<Row[]> {
  const rows: Row[] = [];
  let after: string | undefined;
  do {
    const page = await build().page({ size, after });
    expect(page.rows.length === size || page.next === undefined).toBe(true);
    rows.push(...page.rows);
    after = page.next;
  } while (after !== undefined);
  return rows;
}

interface Aggregated {
  readonly selected: readonly string[];
  readonly field: string;
  /** Of integers: their sums are exact in the model too. */
  readonly number: string;
  readonly groupedBy: readonly string[];
}

async function checkAggregates(build: Build, rows: readonly Row[], aggregated: Aggregated): Promise<void> {
  const { field, number, groupedBy } = aggregated;
  expect(await build().min(field)).toEqual(extremeModel(rows, field, 1));
  expect(await build().max(field)).toEqual(extremeModel(rows, field, -1));
  const of = (some: readonly Row[]): Row => {
    const known = some.map((row) => row[number]).filter((value) => value !== null) as (number | bigint)[];
    const sum = known.length === 0 ? null : known.reduce((total, value) => (total as number) + (value as number));
    const count = some.filter((row) => row[field] !== null).length;
    return { rows: some.length, count, sum, least: extremeModel(some, field, 1), most: extremeModel(some, field, -1) };
  };
  const spec = {
    rows: 'count',
    count: { count: field },
    sum: { sum: number },
    least: { min: field },
    most: { max: field },
  } as const;
  expect(await build().aggregate(spec)).toEqual(of(rows));
  const { rows: count, least, most } = of(rows);
  expect(await build().aggregate({ rows: 'count', least: { min: field }, most: { max: field } })).toEqual({
    rows: count,
    least,
    most,
  });
  const groups = groupModel(rows, groupedBy).map((some) => {
    const named = groupedBy.map((name): [string, unknown] => [name, withoutMinus(some[0]?.[name])]);
    return Object.assign(of(some), Object.fromEntries(named));
  });
  expect(
    await build()
      .groupBy(...groupedBy)
      .aggregate(spec),
  ).toEqual(groups);
}

function apply(rows: Map<number, Row>, change: Change): void {
  for (const row of change.rows) rows.set(row['id'] as number, row);
  for (const id of change.deleted) rows.delete(id);
}

/** Whatever plan is chosen, the rows are the same, and so is what is taken of them. */
async function checkEveryPlan(
  table: TestTable,
  query: ModelQuery,
  expected: readonly Row[],
  { selected, field, number, groupedBy }: Aggregated,
): Promise<void> {
  for (const run of await runEveryPlan(table, compile(table, query))) expect(run.rows).toEqual(expected);
  for (const count of await countEveryPlan(table, compile(table, query, true))) expect(count).toBe(expected.length);
  const some = expected.map((row) => Object.fromEntries(selected.map((name) => [name, row[name]])));
  for (const run of await runEveryPlan(table, compile(table, query, false, { names: selected }))) {
    expect(run.rows).toEqual(some);
  }
  for (const grouped of [[], groupedBy.slice(0, 1)]) {
    const folds = { names: [...grouped, field, number], folds: true };
    const aggregates = [
      { name: 'rows', kind: 'count', field: undefined },
      { name: 'count', kind: 'count', field },
      { name: 'least', kind: 'min', field },
      { name: 'sum', kind: 'sum', field: number },
    ] as const;
    const options = {
      groupedBy: grouped.map((name) => requireField(table.shape, name, 'groupBy')),
      aggregates: aggregates.map((aggregate) => compileAggregate(table.shape, aggregate)),
    };
    const folded = await foldEveryPlan(table, compile(table, query, false, folds), options);
    for (const rows of folded) expect(rows).toEqual(folded[0]);
    const counted = (folded[0] as Row[]).reduce((sum, { rows }) => sum + (rows as number), 0);
    expect(counted).toBe(expected.length);
  }
}

function buildOn(table: TestTable, query: ModelQuery, search?: Search): Build {
  return () => {
    let built = table.query().offset(query.offset);
    if (search !== undefined) built = built.search(search.text, search.options);
    for (const clause of query.wheres) {
      if (Array.isArray(clause)) built = built.where(...(clause as ModelCondition));
      else built = built.where((clauses) => clauseOf(clauses, clause));
    }
    for (const [field, direction] of query.orders) built = built.orderBy(field, direction);
    if (query.limit !== undefined) built = built.limit(query.limit);
    return built;
  };
}

const everyRow: ModelQuery = { wheres: [], orders: [], limit: undefined, offset: 0 };

/** Whatever way is chosen, a search with a query's conditions, order and limit has the rows of the model. */
async function checkSearch(
  table: TestTable,
  rows: readonly Row[],
  primaryKey: string,
  query: ModelQuery,
  search: Search,
): Promise<readonly Row[]> {
  const ranked = await buildOn(table, everyRow, search)().execute();
  const ids = (some: readonly object[]): unknown[] => some.map((row) => (row as Article).id).toSorted((a, b) => a - b);
  const wanted = searchModel(rows as unknown as readonly Article[], [3, 1], search.text, search.options);
  expect(ids(ranked)).toEqual(ids(wanted));
  const matching = new Set(runModel(ranked, primaryKey, { ...everyRow, wheres: query.wheres }));
  const end = query.limit === undefined ? undefined : query.offset + query.limit;
  const byScore = ranked.filter((row) => matching.has(row)).slice(query.offset, end);
  const expected = query.orders.length === 0 ? byScore : runModel(ranked, primaryKey, query);
  // A query for no rows is answered before there is a plan.
  if (query.limit === 0) return expected;
  for (const { way, rows: own } of await runEveryWay(table, { ...query, ...search })) {
    expect({ search, way: way.kind, rows: own }).toEqual({ search, way: way.kind, rows: expected });
  }
  return expected;
}

describe('random queries', () => {
  it('have the results of the model', async () => {
    await fc.assert(
      fc.asyncProperty(
        scenario,
        async ({ primaryKey, indexes, stored, layers, queries, searches, cold, pageSize, aggregated }) => {
          const ofWords = { fields: ['title', 'body'], text: { weights: { title: 3 } }, name: 'words' };
          const table = new TestTable(
            { name: 't', version: 1, fields, primaryKey, indexes: [...indexes, ofWords] },
            { blockSizeBytes: 1024, ...(cold ? { cacheBytes: 4096 } : {}) },
          );
          const model = new Map<number, Row>();
          apply(model, stored);
          await table.commit([...model.values()]);
          await table.merge();
          for (const layer of layers) {
            apply(model, layer);
            await table.commit(layer.rows, primaryKey === 'id' ? layer.deleted : layer.deleted.map(keyOf));
          }
          for (const query of queries) {
            const expected = runModel([...model.values()], primaryKey, query);
            const build = buildOn(table, query);
            expect(await build().execute()).toEqual(expected);
            expect(await build().count()).toBe(expected.length);
            if (query.offset === 1 || queries.indexOf(query) % 3 === 0)
              await checkEveryPlan(table, query, expected, aggregated);
            const iterated: Row[] = [];
            for await (const row of build()) iterated.push(row);
            expect(iterated).toEqual(expected);
            await checkAggregates(build, expected, aggregated);
            if (query.limit !== undefined || query.offset > 0) continue;
            expect(await pagesOf(build, pageSize)).toEqual(expected);
          }
          for (const [i, search] of searches.entries()) {
            const query = queries[i] as ModelQuery;
            const expected = await checkSearch(table, [...model.values()], primaryKey, query, search);
            const build = buildOn(table, query, search);
            expect(await build().execute()).toEqual(expected);
            expect(await build().count()).toBe(expected.length);
            const iterated: Row[] = [];
            for await (const row of build()) iterated.push(row);
            expect(iterated).toEqual(expected);
            await checkAggregates(build, expected, aggregated);
            if (query.limit !== undefined || query.offset > 0) continue;
            expect(await pagesOf(build, pageSize)).toEqual(expected);
          }
        },
      ),
      { numRuns: 40 },
    );
  }, 600_000);
});
