import { describe, expect, it } from 'vitest';
import {
  AbortedError,
  CorruptionError,
  FunctionError,
  InvalidOperatorError,
  InvalidQueryError,
  SchemaNotFoundError,
  SnapshotExpiredError,
} from '../../../src/base/errors.ts';
import { Types } from '../../../src/format/types.ts';
import type { Operator } from '../../../src/query/conditions/comparison.ts';
import type { Overlay } from '../../../src/query/planner/query-host.ts';
import { stacked, TestTable } from './test-table.ts';
import type { Row } from './test-table.ts';

const schema = {
  name: 'people',
  version: 1,
  fields: {
    id: { typeId: Types.uint32 },
    name: { typeId: Types.varchar },
    age: { typeId: Types.uint8 },
    born: { typeId: Types.timestamp },
    photo: { typeId: Types.bytes },
    notes: { typeId: Types.json },
    avatar: { typeId: Types.blob },
  },
  primaryKey: 'id',
  indexes: ['age'],
} as const;

function person(id: number): Row {
  const born = id % 3 === 0 ? null : new Date(id * 1000 - 5000);
  return {
    id,
    name: `Name ${id}`,
    age: id % 100 === 77 && id < 700 ? 77 : id % 10,
    born,
    photo: Buffer.from([id % 4]),
    notes: { id },
    avatar: null,
  };
}

async function people(count = 200): Promise<TestTable> {
  const table = new TestTable(schema);
  await table.commit(Array.from({ length: count }, (_, id) => person(id)));
  await table.merge();
  return table;
}

async function drain(rows: AsyncIterable<Row>): Promise<unknown[]> {
  const ids: unknown[] = [];
  for await (const row of rows) ids.push(row['id']);
  return ids;
}

describe('where', () => {
  it('refuses unknown fields, naming those that there are', async () => {
    const table = await people(1);
    expect(() => table.query().where('agee', '=', 1)).toThrow(InvalidQueryError);
    expect(() => table.query().where('agee', '=', 1)).toThrow(/has no field 'agee'.*id, name, age, born/);
  });

  it('refuses unknown operators, naming those that there are', async () => {
    const table = await people(1);
    for (const operator of ['==', 'in', 'LIKE', undefined]) {
      const query = table.query();
      expect(() => query.where('age', operator as Operator, 1)).toThrow(InvalidOperatorError);
      expect(() => query.where('age', operator as Operator, 1)).toThrow(/one of =, !=, >, >=, <, <=, IN/);
    }
  });

  it('refuses values at once that a field is not compared with', async () => {
    const table = await people(1);
    expect(() => table.query().where('age', '=', 'old')).toThrow(InvalidQueryError);
    expect(() => table.query().where('notes', '<', null)).toThrow(InvalidOperatorError);
  });

  it('captures its arguments', async () => {
    const table = await people();
    const ids = [1, 2];
    const photo = Buffer.from([1]);
    const born = new Date(-4000);
    const query = table.query().where('id', 'IN', ids);
    const byPhoto = table.query().where('photo', '=', photo).limit(1);
    const byBirth = table.query().where('born', '=', born);
    ids.push(3);
    photo[0] = 2;
    born.setTime(0);
    expect(await drain(query)).toEqual([1, 2]);
    expect(await drain(byPhoto)).toEqual([1]);
    expect(await drain(byBirth)).toEqual([1]);
  });

  it('ANDs conditions, also contradicting ones on a key', async () => {
    const table = await people();
    const query = table.query().where('age', '>', 3).where('age', '<=', 5).where('id', '<', 20);
    expect(await drain(query)).toEqual([4, 5, 14, 15]);
    expect(await table.query().where('id', '>', 5).where('id', '<', 3).where('id', '<', 2).execute()).toEqual([]);
    expect(await table.query().where('id', '=', 5).where('id', '=', 6).execute()).toEqual([]);
  });

  it('tests JSON and blobs for null', async () => {
    const table = await people(3);
    expect(await table.query().where('notes', '!=', null).count()).toBe(3);
    expect(await table.query().where('avatar', '=', null).count()).toBe(3);
  });
});

describe('a table that is not registered yet', () => {
  it('is an error when the query runs, not before', async () => {
    const table = await people(1);
    const query = table
      .query('nobody')
      .where('x', '=', 1)
      .orderBy('y', 'desc')
      .select('z' as never);
    for (const run of [query.execute(), query.first(), query.count(), drain(query), query.explain()]) {
      await expect(run).rejects.toThrow(SchemaNotFoundError);
    }
    await expect(query.execute()).rejects.toThrow('Schema not found for table nobody');
  });

  it('has its fields and values checked once it is', async () => {
    const table = await people(1);
    table.shapeOf = () => undefined;
    await expect(table.query().where('x', '=', 1).execute()).rejects.toThrow(InvalidQueryError);
    await expect(table.query().where('age', '=', 'old').execute()).rejects.toThrow(InvalidQueryError);
    await expect(table.query().orderBy('x').execute()).rejects.toThrow(InvalidQueryError);
    await expect(table.query().orderBy('notes').execute()).rejects.toThrow(InvalidQueryError);
    expect(await table.query().where('age', '=', 0).count()).toBe(1);
  });
});

describe('a registered function', () => {
  it('is given the whole row, and its result compared strictly', async () => {
    const table = await people();
    table.register('initial', (row) => `${String(row['name'])[0]}${Object.keys(row).length}`);
    expect(await table.query().where('initial', '=', 'N7').count()).toBe(200);
    expect(await table.query().where('initial', '=', 'n7').count()).toBe(0);
    table.register('age', (row) => String(row['age']));
    expect(await drain(table.query().where('age', '=', '3').limit(2))).toEqual([3, 13]);
    expect(await table.query().where('age', '=', 3).execute()).toEqual([]);
  });

  it('takes no operator but = and HAS', async () => {
    const table = await people(1);
    table.register('age', () => 1);
    expect(() => table.query().where('age', '>', 1)).toThrow(InvalidOperatorError);
  });

  it('may be registered after where', async () => {
    const table = await people(5);
    const late = table.query().where('age', '=', 3);
    const wrong = table.query().where('age', '>', 3);
    table.register('age', (row) => (row['id'] === 4 ? 3 : 0));
    expect(await drain(late)).toEqual([4]);
    await expect(wrong.execute()).rejects.toThrow(InvalidOperatorError);
  });

  it('cannot change the rows that are returned', async () => {
    const table = await people(3);
    table.register('vandal', (row) => {
      row['name'] = 'changed';
      return true;
    });
    expect(await table.query().where('vandal', '=', true).execute()).toEqual([person(0), person(1), person(2)]);
  });

  it('fails the query with the row that it failed for', async () => {
    const table = await people();
    const cause = new Error('no such thing');
    table.register('picky', (row) => {
      if (row['id'] === 7) throw cause;
      return true;
    });
    const failed = table.query().where('picky', '=', true).execute();
    await expect(failed).rejects.toThrow(FunctionError);
    await expect(failed).rejects.toMatchObject({ functionName: 'picky', primaryKey: 7, cause });
    // It is not called for more rows than are needed.
    expect(await table.query().where('picky', '=', true).where('id', '<', 7).count()).toBe(7);
  });

  it('may not return a promise', async () => {
    const table = await people(3);
    table.register('late', () => Promise.reject(new Error('never handled')));
    await expect(table.query().where('late', '=', true).execute()).rejects.toMatchObject({
      code: 'FUNCTION',
      primaryKey: 0,
    });
  });
});

describe('orderBy', () => {
  it('refuses JSON, unknown fields and unknown directions', async () => {
    const table = await people(1);
    expect(() => table.query().orderBy('notes')).toThrow(/JSON, which has no order/);
    expect(() => table.query().orderBy('nothing')).toThrow(InvalidQueryError);
    expect(() => table.query().orderBy('age', 'up' as 'asc')).toThrow(/'asc' or 'desc', not 'up'/);
  });

  it('appends, and leaves ties to the primary key', async () => {
    const table = await people(30);
    expect(await drain(table.query().orderBy('age', 'desc').limit(4))).toEqual([9, 19, 29, 8]);
    expect(await drain(table.query().orderBy('age').orderBy('id', 'desc').limit(4))).toEqual([20, 10, 0, 21]);
  });

  it('takes an index for a few rows, and no sorting where a condition fixes the field', async () => {
    const table = await people(2000);
    const explain = (query: ReturnType<TestTable['query']>): Promise<unknown> => query.explain();
    expect(await explain(table.query().orderBy('age', 'desc').limit(3))).toMatchObject({
      access: 'index',
      index: 'age',
      descending: true,
      order: 'access',
    });
    expect(await explain(table.query().orderBy('age'))).toMatchObject({ access: 'table', order: 'sort' });
    expect(await explain(table.query().where('age', '=', 77).orderBy('age', 'desc'))).toMatchObject({
      access: 'index',
      order: 'access',
      filters: [],
    });
    expect(await explain(table.query().orderBy('id', 'desc').orderBy('age'))).toMatchObject({
      access: 'table',
      descending: true,
      order: 'access',
    });
  });
});

describe('limit and offset', () => {
  it('take integers of at least 0', async () => {
    const table = await people(1);
    for (const count of [-1, 1.5, Number.NaN, Infinity, '1', undefined, null, 1n]) {
      expect(() => table.query().limit(count as number)).toThrow(InvalidQueryError);
      expect(() => table.query().offset(count as number)).toThrow(InvalidQueryError);
    }
  });

  it('apply to rows, counts and iteration', async () => {
    const table = await people(50);
    const query = table.query().offset(45).limit(10);
    expect((await query.execute()).map((row) => row['id'])).toEqual([45, 46, 47, 48, 49]);
    expect(await query.count()).toBe(5);
    expect(await drain(query)).toEqual([45, 46, 47, 48, 49]);
    expect(await table.query().limit(0).execute()).toEqual([]);
    expect(await table.query().where('id', '=', 3).offset(1).execute()).toEqual([]);
    expect(await table.query().where('id', '=', 3).offset(1).count()).toBe(0);
  });
});

describe('the ways to run a query', () => {
  it('first gives a row or undefined', async () => {
    const table = await people(5);
    expect(await table.query().where('age', '>', 2).first()).toEqual(person(3));
    expect(await table.query().where('age', '>', 20).first()).toBeUndefined();
    expect(await table.query().limit(0).first()).toBeUndefined();
  });

  it('select gives the fields asked for, in that order', async () => {
    const table = await people(5);
    const rows = await table.query().where('id', '=', 2).select('name', 'id', 'name').execute();
    expect(rows).toStrictEqual([{ name: 'Name 2', id: 2 }]);
    expect(Object.keys(rows[0] as Row)).toEqual(['name', 'id']);
    expect(() => table.query().select('nothing' as never)).toThrow(InvalidQueryError);
    expect(() => table.query().select()).toThrow(InvalidQueryError);
  });

  it('a query never changes: every call returns another one', async () => {
    const table = await people(20);
    const base = table.query();
    const batch: Overlay = { overlayOn: async (state) => state, isOf: () => true };
    const extended = [
      base.where('id', '<', 5),
      base.where(({ is }) => is('id', '<', 5)),
      base.orderBy('id', 'desc').limit(5),
      base.limit(5),
      base.offset(15),
      base.select('id').limit(5),
      base.overlay(batch).limit(5),
    ];
    for (const query of extended) {
      expect(query).not.toBe(base);
      expect((await query.execute()).length).toBe(5);
    }
    expect(base.budget({ ms: 1000 })).not.toBe(base);
    expect(await base.execute()).toEqual(Array.from({ length: 20 }, (_, id) => person(id)));
    // The classic mistake of builders that mutate: two conditions that should not meet.
    const young = base.where('id', '<', 10);
    expect([await young.where('id', '>', 7).count(), await young.where('id', '<', 3).count()]).toEqual([2, 3]);
    expect(await young.count()).toBe(10);
  });

  it('a query can be run again while it runs, and extended', async () => {
    const table = await people(20);
    table.late = true;
    const query = table.query().where('id', '<', 10);
    const running = query.execute();
    const narrower = query.where('id', '<', 5).limit(2);
    expect((await running).length).toBe(10);
    expect((await narrower.execute()).length).toBe(2);
    expect((await query.execute()).length).toBe(10);
  });

  it('rows are fresh: changing them changes nothing', async () => {
    const table = await people(3);
    for (let round = 0; round < 2; round++) {
      const [row] = await table.query().where('id', '=', 1).execute();
      expect(row).toEqual(person(1));
      for (const field of Object.keys(row as Row)) Reflect.deleteProperty(row as Row, field);
    }
  });

  it('gives up when its signal is aborted', async () => {
    const table = await people();
    const signal = AbortSignal.abort(new Error('enough'));
    await expect(table.query().execute({ signal })).rejects.toThrow(AbortedError);
    await expect(table.query().orderBy('name').execute({ signal })).rejects.toThrow(AbortedError);
    await expect(table.query().where('age', '=', 1).where('name', '!=', '').count({ signal })).rejects.toThrow(
      AbortedError,
    );
  });
});

describe('overlay', () => {
  it('shows the writes of a batch on top of the stored rows', async () => {
    const table = await people(20);
    const layer = await table.layer(
      [
        { ...person(3), age: 99 },
        { ...person(100), age: 99 },
      ],
      [4],
    );
    const batch: Overlay = {
      overlayOn: async (state) => (layer === undefined ? state : stacked(state, layer)),
      isOf: () => true,
    };
    expect(await drain(table.query().overlay(batch).where('age', '=', 99))).toEqual([3, 100]);
    expect(await drain(table.query().overlay(batch).where('age', 'IN', [3, 4]))).toEqual([13, 14]);
    expect(await table.query().overlay(batch).count()).toBe(20);
    expect(await table.query().overlay(batch).where('id', '=', 4).execute()).toEqual([]);
    expect(await table.query().where('age', '=', 99).execute()).toEqual([]);
  });

  it('takes batches only', async () => {
    const table = await people(1);
    for (const other of [null, undefined, {}, 'batch']) {
      expect(() => table.query().overlay(other as never)).toThrow(/takes a batch/);
    }
    const foreign: Overlay = { overlayOn: async (state) => state, isOf: (owner) => owner !== table };
    expect(() => table.query().overlay(foreign)).toThrow(/batch of another database instance/);
  });
});

describe('iteration', () => {
  it('answers calls that do not wait for each other, in order', async () => {
    const table = await people(100);
    const rows = table.query()[Symbol.asyncIterator]();
    const answers = await Promise.all(Array.from({ length: 102 }, () => rows.next()));
    expect(answers.slice(0, 100).map(({ value }) => (value as Row)['id'])).toEqual(
      Array.from({ length: 100 }, (_, i) => i),
    );
    expect(answers.slice(100)).toEqual([
      { done: true, value: undefined },
      { done: true, value: undefined },
    ]);
  });

  it('sees one state from its first row to its last', async () => {
    const table = await people(400);
    const ids: unknown[] = [];
    for await (const row of table.query()) {
      ids.push(row['id']);
      if (ids.length === 10)
        await table.commit(
          [],
          Array.from({ length: 400 }, (_, id) => id),
        );
    }
    expect(ids.length).toBe(400);
    expect(await table.query().execute()).toEqual([]);
  });

  it('ends when the loop is left', async () => {
    const table = await people();
    const rows = table.query()[Symbol.asyncIterator]();
    await rows.next();
    await rows.return?.();
    expect(await rows.next()).toEqual({ done: true, value: undefined });
  });
});

describe('a block that is gone', () => {
  async function losing(): Promise<{ table: TestTable; lose: () => Promise<void> }> {
    const table = await people(500);
    const lose = async (): Promise<void> => {
      const { entries } = await table.driver.list('test/');
      const names = entries.map(({ key }) => key);
      await table.driver.delete(names);
      table.forgetBlocks();
    };
    return { table, lose };
  }

  it('makes the query begin again on a newer state', async () => {
    const { table, lose } = await losing();
    const fresh = await people(3);
    await lose();
    table.onMissing = (state) => {
      expect(state).toBe(table.state);
      table.state = fresh.state;
      return Promise.resolve(true);
    };
    expect(await drain(table.query())).toEqual([0, 1, 2]);
  });

  it('is corruption if there is no newer state', async () => {
    const { table, lose } = await losing();
    await lose();
    await expect(table.query().execute()).rejects.toThrow(CorruptionError);
    await expect(table.query().where('id', '=', 3).execute()).rejects.toThrow(CorruptionError);
  });

  it('ends a loop that has had rows already', async () => {
    const { table, lose } = await losing();
    table.onMissing = () => Promise.resolve(true);
    const rows = table.query()[Symbol.asyncIterator]();
    expect((await rows.next()).value).toEqual(person(0));
    await lose();
    const rest = (async () => {
      for (;;) if ((await rows.next()).done === true) break;
    })();
    await expect(rest).rejects.toThrow(SnapshotExpiredError);
  });

  it('gives up on a state that never holds still', async () => {
    const { table, lose } = await losing();
    await lose();
    table.onMissing = () => Promise.resolve(true);
    await expect(table.query().execute()).rejects.toThrow(SnapshotExpiredError);
  });

  it('an index entry without its row is corruption', async () => {
    const table = await people(2000);
    const other = await people(2000);
    await other.commit([], [77]);
    await other.merge();
    const indexes = table.state.indexes;
    const { layeredState } = await import('../../../src/view/layered-state.ts');
    table.state = layeredState(table.shape, other.state.tree, indexes);
    await expect(table.query().where('age', '=', 77).execute()).rejects.toThrow(/Index 'age' has an entry for a row/);
  });
});
