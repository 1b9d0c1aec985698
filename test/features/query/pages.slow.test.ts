import { describe, expect, it } from 'vitest';
import { InvalidOptionError, InvalidQueryError, BookmarkError } from '../../../src/base/errors.ts';
import { Types } from '../../../src/format/types.ts';
import type { Page } from '../../../src/query/page-options.ts';
import { TestTable } from './test-table.ts';
import type { Row } from './test-table.ts';

const schema = {
  name: 'items',
  version: 1,
  fields: {
    id: { typeId: Types.uint32 },
    rank: { typeId: Types.int32 },
    text: { typeId: Types.varchar },
    kind: { typeId: Types.boolean },
    ref: { typeId: Types.blob },
  },
  primaryKey: 'id',
  indexes: ['rank', 'kind'],
} as const;

function item(id: number): Row {
  const text = id % 4 === 0 ? null : `${'long '.repeat(id % 3 === 0 ? 300 : 1)}${id % 5}`;
  return { id, rank: id % 10 === 0 ? null : (id * 7) % 13, text, kind: id % 2 === 0, ref: null };
}

async function items(count = 300): Promise<TestTable> {
  const table = new TestTable(schema);
  await table.commit(Array.from({ length: count }, (_, id) => item(id)));
  await table.merge();
  return table;
}

type Query = ReturnType<TestTable['query']>;

async function walk(next: () => Query, size: number, between: (page: Page<Row>) => Promise<void>): Promise<unknown[]> {
  const ids: unknown[] = [];
  let after: string | undefined;
  do {
    const page = await next().page({ size, after });
    ids.push(...page.rows.map(({ id }) => id));
    after = page.next;
    await between(page);
  } while (after !== undefined);
  return ids;
}

const orders: readonly (readonly (readonly [field: string, direction: 'asc' | 'desc'])[])[] = [
  [],
  [['id', 'desc']],
  [['rank', 'asc']],
  [['rank', 'desc']],
  [['text', 'asc']],
  [['text', 'desc']],
  [['ref', 'asc']],
  [
    ['kind', 'desc'],
    ['rank', 'asc'],
  ],
  [
    ['rank', 'desc'],
    ['id', 'desc'],
  ],
];

describe('pages', () => {
  it.each(orders)('by %o %o repeat and skip no row that stays, while others come and go', async (...order) => {
    const table = await items();
    const query = (): Query => {
      let built = table.query();
      for (const [field, direction] of order) built = built.orderBy(field, direction);
      return built;
    };
    const stays = (id: unknown): boolean => (id as number) < 300 && (id as number) % 3 !== 1;
    const expected = (await query().execute()).map(({ id }) => id).filter(stays);
    let round = 0;
    const ids = await walk(query, 20, async ({ rows }) => {
      round++;
      // New rows everywhere, and of the others some go: among them the last one of the page.
      const gone = [...rows.map(({ id }) => id), round, 299 - round].filter((id) => !stays(id));
      await table.commit(
        Array.from({ length: 5 }, (_, i) => item(1000 + round * 5 + i * 211)),
        gone,
      );
      if (round % 3 === 0) await table.merge();
    });
    expect(new Set(ids).size).toBe(ids.length);
    expect(ids.filter(stays)).toEqual(expected);
  });

  it('go on behind a row that is gone, and end with no bookmark', async () => {
    const table = await items(10);
    const { rows, next } = await table.query().select('id').page({ size: 4 });
    expect(rows).toEqual([{ id: 0 }, { id: 1 }, { id: 2 }, { id: 3 }]);
    expect(next).toMatch(/^[\w-]+$/);
    await table.commit([], [3, 4]);
    const page = await table.query().page({ size: 5, after: next });
    expect(page.rows.map(({ id }) => id)).toEqual([5, 6, 7, 8, 9]);
    expect(page.next).toBeUndefined();
    expect(await table.query().where('id', '>', 100).page({ size: 5 })).toEqual({ rows: [], next: undefined });
  });

  it('begin at the right row, without reading the rows before it', async () => {
    const table = await items(20_000);
    let reads = 0;
    const get = table.driver.get.bind(table.driver);
    table.driver.get = (key, options) => {
      reads++;
      return get(key, options);
    };
    const queries: (() => Query)[] = [
      () => table.query(),
      () => table.query().orderBy('id', 'desc'),
      () => table.query().where('kind', '=', true),
      () => table.query().where('kind', '=', true).orderBy('id', 'desc'),
      () => table.query().where('rank', '>=', 5).orderBy('rank'),
      () => table.query().orderBy('rank', 'desc'),
    ];
    for (const query of queries) {
      let after: string | undefined;
      for (let i = 0; i < 30; i++) after = (await query().page({ size: 100, after })).next;
      table.forgetBlocks();
      reads = 0;
      const page = await query().page({ size: 3, after });
      expect(page.rows).toHaveLength(3);
      // By an index, eight rows are looked up together.
      expect(reads).toBeLessThan(24);
      expect(page.rows).toEqual(await query().offset(3000).limit(3).execute());
    }
  });

  it('refuse bookmarks of another query, another version, and damaged ones', async () => {
    const table = await items();
    const query = (): Query =>
      table
        .query()
        .where(({ is, not }) => not(is('rank', '=', 5)))
        .orderBy('text');
    const { next } = await query().page({ size: 5 });
    const after = next as string;
    await expect(query().where('kind', '=', true).page({ size: 5, after })).rejects.toThrow(
      /other conditions or another order/,
    );
    await expect(table.query().where('rank', '=', 5).orderBy('text').page({ size: 5, after })).rejects.toThrow(
      BookmarkError,
    );
    await expect(query().orderBy('rank').page({ size: 5, after })).rejects.toMatchObject({ code: 'BOOKMARK' });
    const newer = new TestTable({ ...schema, version: 2 });
    const other = newer
      .query()
      .where(({ is, not }) => not(is('rank', '=', 5)))
      .orderBy('text');
    await expect(other.page({ size: 5, after })).rejects.toThrow(/another version of its schema/);
    for (let i = 0; i < after.length; i++) {
      const damaged = `${after.slice(0, i)}${after[i] === 'A' ? 'B' : 'A'}${after.slice(i + 1)}`;
      await expect(query().page({ size: 5, after: damaged })).rejects.toThrow(BookmarkError);
      await expect(query().page({ size: 5, after: after.slice(0, i) })).rejects.toThrow(BookmarkError);
    }
    await expect(query().page({ size: 5, after: 7 as never })).rejects.toThrow(InvalidOptionError);
    // Another size or other fields are the same query all the same.
    expect((await query().select('id').page({ size: 7, after })).rows).toHaveLength(7);
  });

  it('refuse invalid sizes, and limits together with them', async () => {
    const table = await items(3);
    for (const size of [0, -1, 1.5, '3', undefined]) {
      await expect(table.query().page({ size: size as number })).rejects.toThrow(InvalidOptionError);
    }
    await expect(table.query().page(undefined as never)).rejects.toThrow(InvalidOptionError);
    await expect(table.query().limit(5).page({ size: 3 })).rejects.toThrow(/takes the place of limit\(\)/);
    await expect(table.query().offset(5).page({ size: 3 })).rejects.toThrow(InvalidQueryError);
  });
});
