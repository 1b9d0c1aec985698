/** Registered functions: strict equality, precedence over fields, and what happens when one misbehaves. */
import { describe, expect, it } from 'vitest';
import { defineSchema, FunctionError, Types } from '../../../src/index.ts';
import {
  column,
  failure,
  flushed,
  LoggedLines,
  makeDatabase,
  openDatabase,
  thrown,
  throughStages,
  unhandledDuring,
} from './open-database.ts';

const people = defineSchema({
  name: 'people',
  version: 1,
  fields: {
    id: { typeId: Types.uint32 },
    first: { typeId: Types.varchar },
    age: { typeId: Types.uint8 },
    raw: { typeId: Types.bytes },
  },
  primaryKey: 'id',
  indexes: ['age'],
});

function fill(batch: {
  insert(table: typeof people, row: { id: number; first?: string; age?: number; raw?: Buffer }): Promise<unknown>;
}): void {
  for (let id = 0; id < 10; id++)
    void batch.insert(people, { id, first: `n${id}`, age: id * 10, raw: Buffer.from([id]) });
  void batch.insert(people, { id: 10 });
}

const one = (): number => 1;

describe('a registered function', () => {
  it('is compared by strict equality, together with other conditions, in every stage', async () => {
    const shared = {};
    await throughStages([people], fill, async ({ query, db }) => {
      const values: Record<number, unknown> = {
        0: 0,
        1: '0',
        2: false,
        3: null,
        4: undefined,
        5: shared,
        6: {},
        7: -0,
        8: 0n,
      };
      db.registerFunction('odd', (row) => values[row['id'] as number], 1);
      const found = async (value: unknown): Promise<unknown[]> => {
        return column(await query('people').where('odd', '=', value).execute(), 'id');
      };
      expect(await found(0)).toEqual([0, 7]);
      expect(await found('0')).toEqual([1]);
      expect(await found(false)).toEqual([2]);
      expect(await found(null)).toEqual([3]);
      expect(await found(undefined)).toEqual([4, 9, 10]);
      expect(await found(shared)).toEqual([5]);
      expect(await found({})).toEqual([]);
      expect(await found(0n)).toEqual([8]);
      const both = query('people').where('odd', '=', 0).where('age', '>', 0).orderBy('age', 'desc').limit(5);
      expect(column(await both.execute(), 'id')).toEqual([7]);
      expect(await both.count()).toBe(1);
      expect(await both.first()).toMatchObject({ id: 7 });
    });
  });

  it('gets the whole row as a plain object of its own', async () => {
    const db = await openDatabase([people]);
    await flushed(db, fill);
    const seen: unknown[] = [];
    db.registerFunction('spoil', (row) => {
      seen.push({ ...row });
      (row['raw'] as Buffer | null)?.fill(99);
      row['first'] = 'spoilt';
      return true;
    });
    const rows = await db.query(people).where('spoil', '=', true).where('id', '<', 2).execute();
    expect(rows[1]).toEqual({ id: 1, first: 'n1', age: 10, raw: Buffer.from([1]) });
    expect(seen).toContainEqual({ id: 0, first: 'n0', age: 0, raw: Buffer.from([99]) });
    expect(Object.keys(seen[0] as object)).toEqual(['id', 'first', 'age', 'raw']);
  });

  it('wins over a field of its name, and registering the second of them logs a warning', async () => {
    const logger = new LoggedLines();
    const db = makeDatabase([people], undefined, { logger, logLevel: 'warn' });
    db.registerFunction('later', () => 1);
    expect(logger.lines).toEqual([]);
    db.registerFunction('age', (row) => `${String(row['age'])} years`);
    expect(logger.lines).toHaveLength(1);
    expect(logger.lines[0]).toMatchObject({ level: 'warn' });
    expect(logger.lines[0]?.message).toMatch(/age.*people/);
    db.registerSchema({
      ...people,
      name: 'others',
      fields: { id: { typeId: Types.uint8 }, later: { typeId: Types.int8 } },
      indexes: [],
    });
    expect(logger.lines).toHaveLength(2);
    expect(logger.lines[1]?.message).toMatch(/later.*others/);
    await db.start();
    await flushed(db, fill);
    expect(
      await db
        .query(people)
        .where('age', '=', '20 years' as never)
        .execute(),
    ).toMatchObject([{ id: 2 }]);
    expect(await db.query(people).where('age', '=', 20).execute()).toEqual([]);
    // Sorting is by the field all the same.
    expect(await db.query(people).orderBy('age', 'desc').first()).toMatchObject({ id: 9 });
  });

  it('takes no operator but = and HAS', async () => {
    const db = await openDatabase([people]);
    db.registerFunction('even', (row) => Number(row['id']) % 2 === 0);
    for (const operator of ['!=', '<', '<=', '>', '>=', 'IN'] as const) {
      expect(thrown(() => db.query('people').where('even', operator, true))).toMatchObject({
        code: 'INVALID_OPERATOR',
        operator,
      });
    }
    // Registered after `where`: then where the query runs.
    const query = db.query('people').where('first', '!=', 'a');
    db.registerFunction('first', () => 1);
    expect(await failure(query.execute())).toMatchObject({ code: 'INVALID_OPERATOR', operator: '!=' });
  });

  it('may be registered again, before and after start, and after where', async () => {
    const db = makeDatabase([people]);
    db.registerFunction('f', () => 1);
    await db.start();
    await flushed(db, fill);
    db.registerFunction('f', (row) => row['id']);
    expect(await db.query(people).where('f', '=', 3).count()).toBe(1);
    const query = db.query(people).where('age', '=', 30);
    db.registerFunction('age', () => 30);
    expect(await query.count()).toBe(11);
  });

  it('that throws rejects with its name, the primary key and the cause', async () => {
    const db = await openDatabase([people]);
    await flushed(db, fill);
    await db.checkpoint();
    const cause = new RangeError('not today');
    db.registerFunction('fails', (row) => {
      if (row['id'] === 7) throw cause;
      return true;
    });
    for (const run of [
      () => db.query(people).where('fails', '=', true).execute(),
      () => db.query(people).where('fails', '=', true).count(),
      () => db.query(people).where('fails', '=', true).where('age', '>', 50).orderBy('age').execute(),
      async () => {
        for await (const row of db.query(people).where('fails', '=', true)) void row;
      },
    ]) {
      const error = await failure(run());
      expect(error).toBeInstanceOf(FunctionError);
      expect(error).toMatchObject({ code: 'FUNCTION', functionName: 'fails', primaryKey: 7, cause });
      expect((error as Error).message).toContain('fails');
    }
    expect(await db.query(people).where('fails', '=', true).where('id', '<', 7).count()).toBe(7);
    db.registerFunction('fails', () => {
      // oxlint-disable-next-line no-throw-literal, typescript/only-throw-error -- what JavaScript allows
      throw 'text';
    });
    expect(await failure(db.query(people).where('fails', '=', true).execute())).toMatchObject({
      code: 'FUNCTION',
      cause: 'text',
    });
  });

  it('that returns a promise is refused, and the promise may fail unnoticed', async () => {
    const db = await openDatabase([people]);
    await flushed(db, fill);
    const unhandled = await unhandledDuring(async () => {
      for (const fn of [() => Promise.reject(new Error('late')), async () => true]) {
        db.registerFunction('slow', fn);
        const error = await failure(db.query(people).where('slow', '=', true).execute());
        expect(error).toMatchObject({ code: 'FUNCTION', functionName: 'slow', primaryKey: 0 });
      }
    });
    expect(unhandled).toEqual([]);
  });

  it.each([
    ['', one, undefined, 'name'],
    [5, one, undefined, 'name'],
    ['f', 'text', undefined, 'fn'],
    ['f', undefined, undefined, 'fn'],
    ['f', one, '1', 'version'],
    ['f', one, Number.NaN, 'version'],
    ['f', one, Infinity, 'version'],
  ])('is refused as (%s, %s, %s)', async (name, fn, version, option) => {
    const db = await openDatabase([people]);
    const error = thrown(() => db.registerFunction(name as string, fn as () => unknown, version as unknown as number));
    expect(error).toMatchObject({ code: 'INVALID_OPTION', option });
  });
});
