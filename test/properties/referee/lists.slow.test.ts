/** Random queries of lists, with indexes on elements and included fields, against SQLite's json_each. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { StoreDb, Types } from '../../../src/index.ts';
import { MemoryDriver } from '../../../src/storage/memory-driver.ts';
import { SeededRandom } from '../../../src/testing/seeded-random.ts';
import { openSqlite, firstColumn } from './sqlite.ts';
import type { SqlDatabase, SqlValue } from './sqlite.ts';

const tables = 4;
const rowsOfTable = 250;
const queriesOfTable = 120;

const elements = ['red', 'blue', 'green', '', '1', 'true', 'ü"\\', 1, 0, -2.5, 11, true, false] as const;
const others = [null, { red: 1 }, ['red'], []] as const;

interface Asked {
  readonly sql: string;
  readonly values: readonly SqlValue[];
  readonly where: readonly (readonly [string, string, unknown])[];
}

const schema = {
  name: 'posts',
  version: 1,
  fields: {
    id: { typeId: Types.uint32 },
    author: { typeId: Types.uint8 },
    tags: { typeId: Types.json },
    at: { typeId: Types.int32 },
    title: { typeId: Types.varchar },
  },
  primaryKey: 'id',
  indexes: [
    { fields: ['tags'], each: true },
    { fields: ['author', 'tags', 'at'], each: true, include: ['title'], name: 'of author' },
    { fields: ['at'], include: ['title', 'author'], name: 'times' },
    { function: 'marks', typeId: Types.json, each: true },
  ],
} as const;

/** An element as SQLite's JSON functions tell it from others: by its type and its value. */
function sqlElement(element: string | number | boolean): { readonly test: string; readonly value: SqlValue } {
  if (typeof element === 'boolean') return { test: `e.type = '${String(element)}'`, value: null };
  if (typeof element === 'number') return { test: "e.type IN ('integer', 'real') AND e.value = ?", value: element };
  return { test: "e.type = 'text' AND e.value = ?", value: element };
}

/** The condition that the list of a column has an element. What is no list has none. */
function hasSql(column: string, element: string | number | boolean, values: SqlValue[]): string {
  const { test, value } = sqlElement(element);
  if (value !== null) values.push(value);
  const list = `CASE WHEN json_type("${column}") = 'array' THEN "${column}" ELSE '[]' END`;
  return `EXISTS (SELECT 1 FROM json_each(${list}) AS e WHERE ${test})`;
}

function asked(random: SeededRandom): Asked {
  const where: [string, string, unknown][] = [];
  const values: SqlValue[] = [];
  const sql: string[] = [];
  for (let i = random.integer(1, 3); i > 0; i--) {
    const column = random.pick(['tags', 'tags', 'marks']);
    const dice = random.next();
    if (dice < 0.4) {
      const element = random.pick(elements);
      where.push([column, 'HAS', element]);
      sql.push(hasSql(column, element, values));
    } else if (dice < 0.7) {
      const list = Array.from({ length: random.integer(0, 3) }, () => random.pick(elements));
      const isAny = random.chance(0.5);
      where.push([column, isAny ? 'HAS ANY' : 'HAS ALL', list]);
      const parts = list.map((element) => hasSql(column, element, values));
      sql.push(`(${[isAny ? 'false' : 'true', ...parts].join(isAny ? ' OR ' : ' AND ')})`);
    } else {
      const name = random.pick(['author', 'at']);
      const operator = random.pick(['=', '<', '>=']);
      const value = random.integer(0, name === 'at' ? 60 : 4);
      where.push([name, operator, value]);
      values.push(value);
      sql.push(`"${name}" ${operator} ?`);
    }
  }
  return { sql: sql.join(' AND '), values, where };
}

describe('queries of lists', () => {
  let sqlite: SqlDatabase;
  beforeAll(async () => {
    sqlite = await openSqlite();
    sqlite.run(
      'CREATE TABLE posts (run INTEGER, id INTEGER, author INTEGER, tags TEXT, at INTEGER, title TEXT, marks TEXT)',
    );
  });
  afterAll(() => sqlite.close());

  it.each(Array.from({ length: tables }, (_, seed) => seed))(
    'find the rows that SQLite finds (seed %i)',
    async (seed) => {
      const random = new SeededRandom(seed + 1);
      const listOf = (): unknown => {
        if (random.chance(0.08)) return null;
        if (random.chance(0.05)) return { 0: 'red', list: ['red'] };
        return Array.from({ length: random.integer(0, 4) }, () =>
          random.pick<unknown>(random.chance(0.1) ? others : elements),
        );
      };
      const db = StoreDb({ dbPrefix: 'lists', nodeId: 0, driver: new MemoryDriver(), blockSizeBytes: 4096 });
      db.registerSchema(schema);
      const marks = new Map<number, unknown>();
      db.registerFunction('marks', ({ id }) => marks.get(id as number), 1);
      await db.start();
      const insert = sqlite.prepare('INSERT INTO posts VALUES (?, ?, ?, ?, ?, ?, ?)');
      const batch = db.batch();
      for (let id = 0; id < rowsOfTable; id++) {
        const row = {
          id,
          author: random.integer(0, 4),
          tags: listOf(),
          at: random.integer(0, 60),
          title: `t${id % 7}`,
        };
        marks.set(id, listOf());
        await batch.insert('posts', row);
        const texts = [JSON.stringify(row.tags), JSON.stringify(marks.get(id))] as const;
        insert.run([seed, id, row.author, texts[0], row.at, row.title, texts[1]]);
        // The last rows are in a commit that is not merged.
        if (id !== rowsOfTable - 30) continue;
        await batch.flush();
        await db.checkpoint();
      }
      await batch.flush();
      insert.free();
      const used = new Set<string>();
      for (let i = 0; i < queriesOfTable; i++) {
        const { sql, values, where } = asked(random);
        const [limit, offset] = [random.chance(0.3) ? random.integer(1, 9) : -1, random.chance(0.3) ? 2 : 0];
        const order = random.pick(['id', 'at', 'at']);
        const isTitled = random.chance(0.5);
        let query = db.query('posts');
        for (const [name, operator, value] of where) query = query.where(name, operator as 'HAS', value as string);
        let ordered = query.orderBy(order).offset(offset);
        if (limit > 0) ordered = ordered.limit(limit);
        const chosen = isTitled ? ordered.select('id', 'title', 'at') : ordered;
        const found = (await chosen.execute()).map(
          ({ id, title, at }) => `${String(id)} ${String(title)} ${String(at)}`,
        );
        const from = `FROM posts WHERE run = ${seed} AND ${sql}`;
        const select = `SELECT id || ' ' || title || ' ' || at ${from} ORDER BY "${order}", id LIMIT ${limit} OFFSET ${offset}`;
        expect(found, JSON.stringify(where)).toEqual(firstColumn(sqlite, select, values));
        expect(await query.count()).toBe(firstColumn(sqlite, `SELECT count(*) ${from}`, values)[0]);
        const { index } = await chosen.explain();
        if (index !== undefined) used.add(index);
      }
      expect(used.size).toBeGreaterThan(1);
      expect((await db.verify({ deep: true })).findings).toEqual([]);
      await db.stop();
    },
  );
});
