import { describe, expect, it } from 'vitest';
import { InvalidOperatorError, InvalidQueryError } from '../../../src/base/errors.ts';
import { compileClause, writtenClause } from '../../../src/query/conditions/clause.ts';
import type { Clause, Clauses } from '../../../src/query/conditions/clause.ts';
import { candidatesFor } from '../../../src/query/planner/access-paths.ts';
import type { Candidate, CompiledQuery, Plan } from '../../../src/query/planner/access-paths.ts';
import { planOf } from '../../../src/query/planner/planner.ts';
import type { TableState } from '../../../src/view/table-state.ts';
import { Types } from '../../../src/format/types.ts';
import { compile, plansOf } from './every-plan.ts';
import { TestTable } from './test-table.ts';
import type { Explanation } from '../../../src/query/explain.ts';
import type { ModelClause } from './model.ts';
import type { Row } from './test-table.ts';

const schema = {
  name: 'people',
  version: 1,
  fields: {
    id: { typeId: Types.uint32 },
    name: { typeId: Types.varchar },
    age: { typeId: Types.uint8 },
    town: { typeId: Types.varchar },
    shoe: { typeId: Types.uint8 },
    photo: { typeId: Types.bytes },
    notes: { typeId: Types.json },
  },
  primaryKey: 'id',
  indexes: ['age', 'town'],
} as const;

function person(id: number): Row {
  const town = id % 7 === 0 ? null : `Town ${id % 20}`;
  return { id, name: `Name ${id}`, age: id % 50, town, shoe: id % 11, photo: Buffer.from([id % 3]), notes: null };
}

async function people(count = 1000): Promise<TestTable> {
  const table = new TestTable(schema);
  await table.commit(Array.from({ length: count }, (_, id) => person(id)));
  await table.merge();
  return table;
}

type Build = (clauses: Clauses<Row>) => Clause;

/** The rows of a clause must be those that a filter finds, whether or not some of them are not merged yet. */
async function expectSame(table: TestTable, build: Build, filter: (row: Row) => boolean): Promise<void> {
  const all = await table.query().execute();
  const expected = all.filter(filter);
  expect(expected.length).toBeGreaterThan(0);
  expect(await table.query().where(build).execute()).toEqual(expected);
  expect(await table.query().where(build).count()).toBe(expected.length);
}

describe('clauses', () => {
  it('are null-safe: not() matches exactly the rows that its clause does not', async () => {
    const table = await people();
    await expectSame(
      table,
      ({ is, not }) => not(is('town', '>', 'Town 3')),
      ({ town }) => town === null || (town as string) <= 'Town 3',
    );
    await expectSame(
      table,
      ({ is, not }) => not(is('town', 'PREFIX', 'Town 1')),
      ({ town }) => town === null || !(town as string).startsWith('Town 1'),
    );
    await expectSame(
      table,
      ({ is, not }) => not(is('age', 'BETWEEN', [5, 45])),
      ({ age }) => (age as number) < 5 || (age as number) > 45,
    );
    await expectSame(
      table,
      ({ is, not, or }) => not(or(is('town', 'IN', ['Town 1', null]), is('age', '<', 25))),
      ({ town, age }) => town !== 'Town 1' && town !== null && (age as number) >= 25,
    );
  });

  it('match every row, or none, where they are empty', async () => {
    const table = await people(10);
    expect(
      await table
        .query()
        .where(({ and }) => and())
        .count(),
    ).toBe(10);
    expect(
      await table
        .query()
        .where(({ or }) => or())
        .count(),
    ).toBe(0);
    expect(
      await table
        .query()
        .where(({ or, not }) => not(or()))
        .count(),
    ).toBe(10);
    expect(
      await table
        .query()
        .where(({ and, is, or }) => or(and(), is('id', '=', 3)))
        .count(),
    ).toBe(10);
    expect(
      (
        await table
          .query()
          .where(({ or }) => or())
          .explain()
      ).access,
    ).toBe('nothing');
  });

  it('are tested in the encoded rows only after those that cost less, functions last', async () => {
    const table = await people(100);
    let calls = 0;
    table.register('odd', (row) => {
      calls++;
      return (row['id'] as number) % 2 === 1;
    });
    const query = table.query().where(({ is, or }) => or(is('odd', '=', true), is('shoe', '<', 5)));
    const expected = (await table.query().execute()).filter(
      (row) => (row['id'] as number) % 2 === 1 || (row['shoe'] as number) < 5,
    );
    expect(await query.execute()).toEqual(expected);
    expect(calls).toBe(await table.query().where('shoe', '>=', 5).count());
    expect(() => table.query().where(({ is, not }) => not(is('odd', '>', 1)))).toThrow(InvalidOperatorError);
    const never = await table
      .query()
      .where(({ is, not }) => not(is('odd', '=', true)))
      .where('id', '<', 4)
      .execute();
    expect(never.map(({ id }) => id)).toEqual([0, 2]);
  });

  it('refuse invalid clauses, and check fields at once', async () => {
    const table = await people(1);
    expect(() => table.query().where((() => true) as never)).toThrow(InvalidQueryError);
    expect(() => table.query().where(({ or }) => or('x' as never))).toThrow(/or\(\) takes clauses made with is\(\)/);
    expect(() => table.query().where(({ is, not }) => not(is('agee', '=', 1)))).toThrow(/has no field 'agee'/);
    expect(() => table.query().where(({ is }) => is('age', 'LIKE' as never, 1))).toThrow(InvalidOperatorError);
    expect(() => table.query().where('age', 'BETWEEN', 5 as never)).toThrow(/takes \[low, high\]/);
    expect(() => table.query().where('age', 'BETWEEN', [1, 2, 3])).toThrow(InvalidQueryError);
    expect(() => table.query().where('age', 'PREFIX', '1')).toThrow(/PREFIX is for varchar and bytes/);
    expect(() => table.query().where('name', 'PREFIX', 1)).toThrow(InvalidQueryError);
    expect(() => table.query().where('notes', 'BETWEEN', [null, null])).toThrow(InvalidOperatorError);
  });

  it('are captured: later changes have no effect', async () => {
    const table = await people();
    const ages = [3, 5];
    const query = table.query().where(({ is }) => is('age', 'BETWEEN', ages));
    ages[1] = 50;
    expect(await query.count()).toBe(60);
  });
});

/** The plan that leaves least to do, whether or not a table so small is read as a whole rather. */
function bestOf(table: TestTable, ...wheres: readonly ModelClause[]): Explanation | undefined {
  return plansOf(table, compile(table, { wheres, orders: [], limit: undefined, offset: 0 }))[0];
}

describe('ways to the rows', () => {
  it('BETWEEN and PREFIX are ranges of an index or of the primary key', async () => {
    const table = await people();
    const range = { ranges: 1, filters: [] };
    expect(bestOf(table, ['age', 'BETWEEN', [3, 5]])).toMatchObject({ ...range, index: 'age' });
    expect(bestOf(table, ['town', 'PREFIX', 'Town 1'])).toMatchObject({ ...range, index: 'town' });
    const keys = table.query().where('id', 'BETWEEN', [10, 12]);
    expect(await keys.explain()).toMatchObject({ ...range, access: 'table' });
    expect((await keys.execute()).map(({ id }) => id)).toEqual([10, 11, 12]);
    expect((await table.query().where('id', 'BETWEEN', [12, 10]).explain()).access).toBe('nothing');
    expect(await table.query().where('town', 'PREFIX', 'Town 1').count()).toBe(
      (await table.query().execute()).filter(({ town }) => (town as string | null)?.startsWith('Town 1')).length,
    );
  });

  it('an OR on one field is several ranges, in order', async () => {
    const table = await people();
    const some = table
      .query()
      .where(({ is, or }) => or(is('age', '<', 2), is('age', 'BETWEEN', [1, 3]), is('age', '>', 48)));
    const either = {
      or: [
        ['age', '<', 2],
        ['age', 'BETWEEN', [1, 3]],
        ['age', '>', 48],
      ],
    } as const;
    expect(bestOf(table, either)).toMatchObject({ access: 'index', index: 'age', ranges: 2, filters: [] });
    const sorted = some.orderBy('age', 'desc').limit(25);
    expect((await sorted.execute()).map(({ age }) => age)).toEqual([...Array<number>(20).fill(49), 3, 3, 3, 3, 3]);
    const keys = table.query().where(({ is, or }) => or(is('id', '=', 7), is('id', 'IN', [3, 7])));
    expect(await keys.explain()).toMatchObject({ access: 'keys', ranges: 2, filters: [] });
    const ends = table.query().where(({ is, not }) => not(is('id', 'BETWEEN', [2, 996])));
    expect(await ends.explain()).toMatchObject({ access: 'table', ranges: 2, filters: [], order: 'access' });
    expect((await ends.execute()).map(({ id }) => id)).toEqual([0, 1, 997, 998, 999]);
    expect((await ends.orderBy('id', 'desc').execute()).map(({ id }) => id)).toEqual([999, 998, 997, 1, 0]);
    expect(await ends.count()).toBe(5);
  });

  it('an OR on several fields is a union without duplicates, if each branch has a range', async () => {
    const table = await people();
    const build: Build = ({ is, or, and }) => {
      return or(is('age', '=', 3), and(is('town', '=', 'Town 5'), is('shoe', '>', 4)), is('id', '<', 10));
    };
    const filter = ({ age, town, shoe, id }: Row): boolean => {
      return age === 3 || (town === 'Town 5' && (shoe as number) > 4) || (id as number) < 10;
    };
    const either: ModelClause = {
      or: [
        ['age', '=', 3],
        {
          and: [
            ['town', '=', 'Town 5'],
            ['shoe', '>', 4],
          ],
        },
        ['id', '<', 10],
      ],
    };
    const plan = bestOf(table, either);
    expect(plan).toMatchObject({ access: 'union', ranges: 3 });
    expect(plan?.parts?.map(({ access }) => access)).toEqual(['index', 'index', 'table']);
    await expectSame(table, build, filter);
    await table.commit(
      [
        { ...person(3), town: 'Town 5', shoe: 9 },
        { ...person(2000), age: 3 },
      ],
      [53, 5],
    );
    await expectSame(table, build, filter);
    const unindexed = await table
      .query()
      .where(({ is, or }) => or(is('age', '=', 3), is('shoe', '=', 4)))
      .explain();
    expect(unindexed).toMatchObject({ access: 'table', filters: ['age', 'shoe'] });
  });

  it('a union reads the blocks that its branches need, and no more', async () => {
    const table = await people(20_000);
    table.forgetBlocks();
    let reads = 0;
    const get = table.driver.get.bind(table.driver);
    table.driver.get = (key, options) => {
      reads++;
      return get(key, options);
    };
    const found = await table
      .query()
      .where(({ is, or }) => or(is('id', '=', 17), is('id', '=', 19_000)))
      .execute();
    expect(found.map(({ id }) => id)).toEqual([17, 19_000]);
    expect(reads).toBeLessThan(8);
  });
});

/** A search box: every word begins the town or the name, or is the age. */
function searchBox(words: readonly { town: string; name: string; age: number }[]): Build {
  return ({ is, and, or }) =>
    and(
      ...words.map(({ town, name, age }) =>
        or(is('town', 'PREFIX', town), is('name', 'PREFIX', name), is('age', '=', age)),
      ),
    );
}

describe('many clauses', () => {
  it('are not multiplied with each other: a search box takes any number of words', async () => {
    const table = await people();
    for (const count of [2, 7, 12, 50]) {
      const words = Array.from({ length: count }, () => ({ town: 'Town 1', name: 'Name 99', age: 7 }));
      await expectSame(
        table,
        searchBox(words),
        ({ town, name, age }) =>
          (town as string | null)?.startsWith('Town 1') === true || (name as string).startsWith('Name 99') || age === 7,
      );
    }
  });

  it('are planned in as many parts as there are branches, and not in all that can be made of them', async () => {
    const { state, shape } = await people();
    const partsOf = (clauses: number): number => {
      const { written } = writtenClause<Row>(({ is, and, or }) =>
        and(...Array.from({ length: clauses }, (_, i) => or(is('age', '=', i), is('town', '=', `Town ${i}`)))),
      );
      const conditions = compileClause({ shape, registered: () => undefined }, written);
      let parts = 0;
      const planPart = (of: TableState, query: CompiledQuery): Plan => {
        parts++;
        const candidates = candidatesFor(of, query, [], planPart);
        const byIndex = candidates.find(({ access }) => access.kind === 'index');
        return planOf(of, query, byIndex ?? (candidates.at(-1) as Candidate));
      };
      candidatesFor(state, { conditions, order: [], limit: undefined, offset: 0 }, [], planPart);
      return parts;
    };
    expect([1, 2, 4, 8, 16].map(partsOf)).toEqual([2, 4, 8, 16, 32]);
    expect(partsOf(1000)).toBe(64);
  });

  it('take conditions by the hundred', async () => {
    const table = await people();
    const fields = ['age', 'shoe'] as const;
    for (const operator of ['!=', '=', '<'] as const) {
      const conditions = Array.from({ length: 50 }, (_, clause) =>
        Array.from({ length: 50 }, (_2, i) => ({ field: fields[(clause + i) % 2] as 'age', value: (clause * i) % 60 })),
      );
      const matches = (row: Row): boolean =>
        conditions.every((clause) =>
          clause.some(({ field, value }) => {
            const actual = row[field] as number;
            return operator === '=' ? actual === value : operator === '<' ? actual < value : actual !== value;
          }),
        );
      const expected = (await table.query().execute()).filter(matches);
      const found = await table
        .query()
        .where(({ is, and, or }: Clauses<Row>) =>
          and(...conditions.map((clause) => or(...clause.map(({ field, value }) => is(field, operator, value))))),
        )
        .execute();
      expect(found).toEqual(expected);
    }
  });
});
