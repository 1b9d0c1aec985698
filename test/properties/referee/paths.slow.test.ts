/** Random conditions and orders on paths into JSON, which SQLite's JSON functions must answer alike, with and without indexes. */
import { expect, it } from 'vitest';
import { Types } from '../../../src/index.ts';
import { SeededRandom } from '../../../src/testing/seeded-random.ts';
import { openDatabase } from '../../features/values/open-database.ts';
import type { AnyQuery } from '../../features/values/open-database.ts';
import { firstColumn, openSqlite } from './sqlite.ts';
import type { SqlValue } from './sqlite.ts';

const paths = [
  { path: 'j.a', sql: '$.a', typeId: Types.varchar, types: ['text'] },
  { path: 'j.b.c', sql: '$.b.c', typeId: Types.float64, types: ['integer', 'real'] },
  { path: 'j.list.1.x', sql: '$.list[1].x', typeId: Types.varchar, types: ['text'] },
  { path: 'j.d\\.e', sql: '$."d.e"', typeId: Types.boolean, types: ['true', 'false'] },
] as const;
type Path = (typeof paths)[number];

const base = {
  name: 't',
  version: 1,
  fields: { k: { typeId: Types.uint32 }, group: { typeId: Types.uint8 }, j: { typeId: Types.json } },
  primaryKey: 'k',
} as const;
const indexes = [
  { fields: [{ path: 'j.a', typeId: Types.varchar }] },
  { fields: ['group', { path: 'j.b.c', typeId: Types.float64 }] },
  { fields: [{ path: 'j.list.1.x', typeId: Types.varchar }, 'group'] },
  {
    fields: [
      { path: 'j.d\\.e', typeId: Types.boolean },
      { path: 'j.b.c', typeId: Types.float64 },
    ],
  },
];

const leaves = ['', 'a', 'ab', 'b', '1', 'ü', '\u{1F600}', 1, 1.5, 0, -2, 1e20, true, false, null, undefined, {}, []];
const operators = ['=', '!=', '<', '<=', '>', '>='] as const;

function jsonOf(random: SeededRandom): unknown {
  const leaf = (): unknown => random.pick(leaves);
  if (random.chance(0.1)) return random.pick([null, [], {}, { a: { a: 1 } }, { b: 'c', list: { x: 'a' } }]);
  const json = {
    a: leaf(),
    b: random.chance(0.8) ? { c: leaf() } : leaf(),
    list: [leaf(), { x: leaf() }],
    'd.e': leaf(),
  };
  // Members that are undefined are missing.
  return JSON.parse(JSON.stringify(json)) as unknown;
}

/** A condition, and what SQLite takes for it, with its values. */
interface Condition {
  readonly build: (query: AnyQuery) => AnyQuery;
  readonly sql: string;
  readonly values: readonly SqlValue[];
}

function typesOf(value: unknown): string {
  return typeof value === 'string' ? "'text'" : typeof value === 'number' ? "'integer', 'real'" : "'true', 'false'";
}

function conditionOf(random: SeededRandom): Condition {
  const { path, sql } = random.pick<Path>(paths);
  const type = `json_type(j, '${sql}')`;
  const value = random.pick(leaves.filter((one) => ['string', 'number', 'boolean'].includes(typeof one)));
  const operator = random.pick(operators);
  const bound = typeof value === 'boolean' ? Number(value) : (value as SqlValue);
  const dice = random.next();
  if (dice < 0.2) {
    const isNull = random.chance(0.5);
    const test = `coalesce(${type}, 'null') = 'null'`;
    return {
      build: (query) => query.where(path, isNull ? '=' : '!=', null),
      sql: isNull ? test : `not (${test})`,
      values: [],
    };
  }
  const holds = (by: string): string =>
    `coalesce(${type} in (${typesOf(value)}) and json_extract(j, '${sql}') ${by} ?, 0)`;
  if (dice < 0.35) {
    return {
      build: (query) => query.where(path, 'IN', [value, null]),
      sql: `(${holds('=')} or coalesce(${type}, 'null') = 'null')`,
      values: [bound],
    };
  }
  if (dice < 0.5) {
    return {
      build: (query) => query.where(({ is, not }) => not(is(path, operator, value as never))),
      sql: operator === '!=' ? holds('=') : `not ${holds(operator)}`,
      values: [bound],
    };
  }
  return {
    build: (query) => query.where(path, operator, value as never),
    sql: operator === '!=' ? `not ${holds('=')}` : holds(operator),
    values: [bound],
  };
}

function orderOf(random: SeededRandom): { readonly build: Condition['build']; readonly sql: string } {
  const { path, sql, types } = random.pick<Path>(paths);
  const direction = random.pick(['asc', 'desc'] as const);
  const list = types.map((one) => `'${one}'`).join();
  const typed = `case when json_type(j, '${sql}') in (${list}) then json_extract(j, '${sql}') end`;
  return { build: (query) => query.orderBy(path, direction), sql: `${typed} ${direction}, k` };
}

it.each([1, 2, 3])('finds the rows that SQLite finds (seed %i)', async (seed) => {
  const random = new SeededRandom(seed);
  const sqlite = await openSqlite();
  sqlite.run('create table t (k integer primary key, "group" integer, j text)');
  const indexed = await openDatabase([{ ...base, indexes }], undefined, { blockSizeBytes: 512 });
  const without = await openDatabase([base], undefined, { blockSizeBytes: 512 });
  const insert = sqlite.prepare('insert or replace into t values (?, ?, ?)');
  let matched = 0;
  for (let stage = 0; stage < 3; stage++) {
    const rows = Array.from({ length: stage === 0 ? 150 : 20 }, () => {
      const k = random.integer(1, 200);
      return { k, group: random.integer(0, 3), j: jsonOf(random) };
    });
    for (const db of [indexed, without]) {
      const batch = db.batch();
      for (const row of rows) await batch.upsert('t', row);
      await batch.flush();
      if (stage === 0) await db.checkpoint();
    }
    for (const { k, group, j } of rows) insert.run([k, group, JSON.stringify(j)]);
    for (let i = 0; i < 60; i++) {
      const conditions = Array.from({ length: random.integer(1, 2) }, () => conditionOf(random));
      const group = random.chance(0.3) ? random.integer(0, 3) : undefined;
      const order = random.chance(0.5) ? orderOf(random) : undefined;
      const where = [...conditions.map(({ sql }) => sql), ...(group === undefined ? [] : [`"group" = ${group}`])];
      const limit = random.chance(0.4) ? random.integer(1, 10) : undefined;
      const sql = `select k from t where ${where.join(' and ')} order by ${order?.sql ?? 'k'} limit ${limit ?? -1}`;
      const values = conditions.flatMap((one) => one.values);
      const expected = firstColumn(sqlite, sql, values);
      // Without an index nothing says by which type to order.
      for (const db of order === undefined ? [indexed, without] : [indexed]) {
        let query: AnyQuery = db.query('t');
        for (const { build } of conditions) query = build(query);
        if (group !== undefined) query = query.where('group', '=', group);
        if (order !== undefined) query = order.build(query);
        if (limit !== undefined) query = query.limit(limit);
        const found = (await query.execute()).map((row) => row['k']);
        expect(found, `${sql} with ${JSON.stringify(values)}`).toEqual(expected);
        expect(await query.count()).toBe(expected.length);
      }
      matched += Math.sign(expected.length);
    }
  }
  expect(matched).toBeGreaterThan(100);
  insert.free();
  sqlite.close();
  await indexed.stop();
  await without.stop();
});
