/** What queries promise: operators, null, comparison with any value, limits, order, and what rows are. */
import { describe, expect, it } from 'vitest';
import { defineSchema, Types } from '../../../src/index.ts';
import type { Database } from '../../../src/index.ts';
import { column, failure, makeDatabase, openDatabase, thrown, throughStages } from './open-database.ts';
import type { AnyQuery, Row } from './open-database.ts';

const things = defineSchema({
  name: 'things',
  version: 1,
  fields: {
    id: { typeId: Types.uint32 },
    small: { typeId: Types.uint8 },
    signed: { typeId: Types.int16 },
    big: { typeId: Types.uint64 },
    bigSigned: { typeId: Types.int64 },
    float: { typeId: Types.float64 },
    single: { typeId: Types.float32 },
    text: { typeId: Types.varchar },
    flag: { typeId: Types.boolean },
    time: { typeId: Types.timestamp },
    doc: { typeId: Types.json },
    uuid: { typeId: Types.uuid },
    raw: { typeId: Types.bytes },
  },
  primaryKey: 'id',
  indexes: ['small', 'big', 'text', 'float', 'flag', 'time'],
});

const uuid = '0189abcd-0123-7abc-8def-0123456789ab';
const rows: readonly Row[] = [
  { id: 1, small: 0, signed: -5, big: 0n, bigSigned: -1n, float: -1.5, single: 0.5, text: '', flag: false },
  { id: 2, small: 7, signed: 0, big: 2n ** 53n, bigSigned: 0n, float: 0, single: 1.5, text: 'a', flag: true },
  { id: 3, small: 255, signed: 5, big: 2n ** 64n - 1n, bigSigned: 9n, float: 1e300, single: -2, text: 'b', flag: true },
  { id: 4 },
  { id: 5, small: 7, time: new Date(-1000), doc: { a: 1 }, uuid, raw: Buffer.from([1]) },
];

function add(batch: ReturnType<Database['batch']>): void {
  for (const row of rows) void batch.insert('things', row);
}

async function ids(query: AnyQuery): Promise<unknown[]> {
  return column(await query.execute(), 'id');
}

type Case = readonly [
  field: string,
  operator: '=' | '!=' | '<' | '<=' | '>' | '>=' | 'IN',
  value: unknown,
  ids: number[],
];

const all = [1, 2, 3, 4, 5];

const cases: readonly Case[] = [
  // null is found by = and != only, and matches every != of something else.
  ['small', '=', null, [4]],
  ['small', '!=', null, [1, 2, 3, 5]],
  ['small', '<', null, []],
  ['small', '<=', null, []],
  ['small', '>', null, []],
  ['small', '>=', null, []],
  ['small', '!=', 7, [1, 3, 4]],
  ['text', '=', null, [4, 5]],
  ['text', '!=', null, [1, 2, 3]],
  ['text', '!=', 'a', [1, 3, 4, 5]],
  ['text', '>', null, []],
  ['text', '<=', '', [1]],
  ['text', '>=', '', [1, 2, 3]],
  ['float', '!=', 0, [1, 3, 4, 5]],
  ['id', '=', null, []],
  ['id', '!=', null, all],
  ['doc', '=', null, [1, 2, 3, 4]],
  ['doc', '!=', null, [5]],
  ['time', '<', new Date(0), [5]],
  ['time', '=', new Date(-1000), [5]],
  ['uuid', '=', uuid.toUpperCase(), [5]],
  ['uuid', '!=', uuid, [1, 2, 3, 4]],
  ['raw', '=', new Uint8Array([1]), [5]],
  ['flag', '>', false, [2, 3]],
  ['flag', '<', false, []],
  // IN.
  ['small', 'IN', [], []],
  ['text', 'IN', [], []],
  ['id', 'IN', [], []],
  ['small', 'IN', [null], [4]],
  ['small', 'IN', [null, 7], [2, 4, 5]],
  ['small', 'IN', [7, 7, 7.5, 300, -1, 0n], [1, 2, 5]],
  ['id', 'IN', [null, 3, 1, 99], [1, 3]],
  ['text', 'IN', ['a', null, ''], [1, 2, 4, 5]],
  // What the type cannot hold is compared by value.
  ['small', '<', 300, [1, 2, 3, 5]],
  ['small', '<=', 300n, [1, 2, 3, 5]],
  ['small', '>', -1, [1, 2, 3, 5]],
  ['small', '>=', -Infinity, [1, 2, 3, 5]],
  ['small', '<', Infinity, [1, 2, 3, 5]],
  ['small', '>', 300, []],
  ['small', '<', -1, []],
  ['small', '=', 300, []],
  ['small', '!=', 300, all],
  ['small', '=', 7.5, []],
  ['small', '!=', 7.5, all],
  ['small', '<', 7.5, [1, 2, 5]],
  ['small', '<=', 7.5, [1, 2, 5]],
  ['small', '>', 7.5, [3]],
  ['small', '>=', 7.5, [3]],
  ['small', '>', 6.5, [2, 3, 5]],
  ['small', '=', 7n, [2, 5]],
  ['small', '<', 10n ** 30n, [1, 2, 3, 5]],
  ['signed', '>', -5.5, [1, 2, 3]],
  ['signed', '<', -4.5, [1]],
  ['signed', '>', 1e9, []],
  ['big', '=', 2 ** 53, [2]],
  ['big', '=', 2n ** 53n + 1n, []],
  ['big', '>', -1, [1, 2, 3]],
  ['big', '>=', -(10n ** 30n), [1, 2, 3]],
  ['big', '<', 2 ** 64, [1, 2, 3]],
  ['big', '<=', 2n ** 64n, [1, 2, 3]],
  ['big', '=', 2 ** 64, []],
  ['big', '<', 2n ** 64n - 1n, [1, 2]],
  ['big', '>', 0.5, [2, 3]],
  ['big', '<', Infinity, [1, 2, 3]],
  ['bigSigned', '<', 0.5, [1, 2]],
  ['bigSigned', '>=', -0.5, [2, 3]],
  ['bigSigned', '>', -(2n ** 70n), [1, 2, 3]],
  ['bigSigned', '<', -(2 ** 63), []],
  ['float', '=', 0n, [2]],
  ['float', '>', 10n ** 299n, [3]],
  ['float', '<', 10n ** 400n, [1, 2, 3]],
  ['float', '>', -(10n ** 400n), [1, 2, 3]],
  ['float', '<=', 2n ** 53n + 1n, [1, 2]],
  ['single', '=', 0.5, [1]],
  ['single', '<', 0.500_000_001, [1, 3]],
  ['single', '>', 0.499_999_999_9, [1, 2]],
  ['single', '<', 1e300, [1, 2, 3]],
  // Half a surrogate pair is nothing that a row holds, but it has a place: after U+D7FF, before U+E000.
  ['text', '>', '\uD800', []],
  ['text', '<', '\uD800', [1, 2, 3]],
  ['text', '=', 'a\uD800', []],
  ['text', '>', 'a\uD800', [3]],
  ['text', '!=', '\uDC00', all],
];

describe('where', () => {
  it('finds rows by the rules, in every stage, with an index and without', async () => {
    const bare = { ...things, name: 'bare', indexes: [] } as const;
    await throughStages(
      [things, bare],
      (batch) => {
        add(batch);
        for (const row of rows) void batch.insert('bare', row);
      },
      async ({ query, stage }) => {
        for (const table of ['things', 'bare']) {
          for (const [field, operator, value, expected] of cases) {
            const what = `${table} ${stage}: ${field} ${operator} ${String(value)}`;
            const found = query(table).where(field, operator, value);
            expect(await ids(found), what).toEqual(expected);
            expect(await found.count(), what).toBe(expected.length);
            expect((await found.first())?.['id'], what).toBe(expected[0]);
            expect(await ids(query(table).where(field, operator, value).orderBy('id', 'desc')), what).toEqual(
              expected.toReversed(),
            );
          }
        }
      },
    );
  });

  it('ANDs conditions, also two on one field', async () => {
    await throughStages([things], add, async ({ query }) => {
      expect(await ids(query('things').where('small', '=', 7).where('flag', '=', true))).toEqual([2]);
      expect(await ids(query('things').where('small', '>', 0).where('small', '<', 255))).toEqual([2, 5]);
      expect(await ids(query('things').where('small', '=', 7).where('small', '=', 8))).toEqual([]);
      expect(await ids(query('things').where('text', 'IN', ['a', 'b']).where('text', '!=', 'a'))).toEqual([3]);
      expect(await ids(query('things').where('id', '>', 1).where('id', '<=', 4).where('small', '!=', null))).toEqual([
        2, 3,
      ]);
    });
  });

  it.each([
    ['small', '=', undefined],
    ['small', '=', '7'],
    ['small', '=', Number.NaN],
    ['small', '<', true],
    ['small', 'IN', [1, undefined]],
    ['small', 'IN', [1, '2']],
    // oxlint-disable-next-line no-sparse-arrays -- a hole is what is tested
    ['small', 'IN', [1, , 2]],
    ['small', 'IN', 7],
    ['small', 'IN', null],
    ['small', 'IN', new Set([7])],
    ['text', '=', 5],
    ['text', '=', Buffer.from('a')],
    ['text', '=', undefined],
    ['flag', '=', 1],
    ['time', '=', 0],
    ['time', '=', new Date(Number.NaN)],
    ['time', '<', '2020-01-01'],
    ['uuid', '=', 5],
    ['uuid', '<', 'no uuid'],
    ['uuid', '=', 5],
    ['raw', '=', 'a'],
    ['big', '=', '5'],
    ['doc', '=', undefined],
    ['nothing', '=', 1],
    ['', '=', 1],
    [undefined, '=', 1],
    [5, '=', 1],
  ] as const)('throws at once for %s %s %s', async (field, operator, value) => {
    const db = await openDatabase([things]);
    const error = thrown(() => db.query('things').where(field as string, operator, value));
    expect(error).toMatchObject({ code: 'INVALID_QUERY' });
  });

  it.each(['==', 'in', 'LIKE', '', undefined, null, '<>'])(
    'throws InvalidOperatorError at once for %s',
    async (operator) => {
      const db = await openDatabase([things]);
      const error = thrown(() => db.query('things').where('small', operator as '=', 1));
      expect(error).toMatchObject({ code: 'INVALID_OPERATOR', operator });
    },
  );

  it('takes no order and no value of JSON but null', async () => {
    const db = await openDatabase([things]);
    for (const [operator, value] of [
      ['=', { a: 1 }],
      ['<', null],
      ['IN', [null]],
      ['>', 1],
    ] as const) {
      expect(thrown(() => db.query('things').where('doc', operator, value))).toMatchObject({
        code: 'INVALID_OPERATOR',
      });
    }
    expect(thrown(() => db.query('things').orderBy('doc'))).toMatchObject({ code: 'INVALID_QUERY' });
  });

  it('throws at execute() where the schema comes to be known only then', async () => {
    const db = makeDatabase([]);
    const unknownField = db.query('things').where('nothing', '=', 1);
    const wrongKind = db.query('things').where('small', '=', 'a');
    const order = db.query('things').orderBy('nothing');
    const good = db.query('things').where('small', '=', 7);
    expect(await failure(good.execute())).toMatchObject({ code: 'NOT_STARTED' });
    await db.start();
    expect(await failure(good.execute())).toMatchObject({ code: 'SCHEMA_NOT_FOUND' });
    db.registerSchema(things);
    expect(await failure(unknownField.execute())).toMatchObject({ code: 'INVALID_QUERY' });
    expect(await failure(wrongKind.count())).toMatchObject({ code: 'INVALID_QUERY' });
    expect(await failure(order.first())).toMatchObject({ code: 'INVALID_QUERY' });
    expect(await good.execute()).toEqual([]);
  });

  it('captures the value at the call', async () => {
    const db = await openDatabase([things]);
    const batch = db.batch();
    add(batch);
    await batch.flush();
    const list = [7, 255];
    const time = new Date(-1000);
    const raw = Buffer.from([1]);
    const queries = [
      db.query('things').where('small', 'IN', list),
      db.query('things').where('time', '=', time),
      db.query('things').where('raw', '=', raw),
    ];
    list.length = 0;
    time.setTime(0);
    raw[0] = 2;
    expect(await Promise.all(queries.map(ids))).toEqual([[2, 3, 5], [5], [5]]);
  });
});

describe('limit and offset', () => {
  it.each([-1, 1.5, Number.NaN, Infinity, '1', null, undefined, 1n])('refuse %s', async (count) => {
    const db = await openDatabase([things]);
    expect(thrown(() => db.query('things').limit(count as number))).toMatchObject({ code: 'INVALID_QUERY' });
    expect(thrown(() => db.query('things').offset(count as number))).toMatchObject({ code: 'INVALID_QUERY' });
  });

  it('cut the ordered rows', async () => {
    await throughStages([things], add, async ({ query }) => {
      for (const ordered of [
        () => query('things'),
        () => query('things').orderBy('small'),
        () => query('things').orderBy('text', 'desc'),
        () => query('things').where('small', '!=', 0).orderBy('signed'),
      ]) {
        const whole = await ids(ordered());
        for (let limit = 0; limit <= 6; limit++) {
          for (let offset = 0; offset <= 6; offset++) {
            const cut = ordered().limit(limit).offset(offset);
            const expected = whole.slice(offset, offset + limit);
            expect(await ids(cut)).toEqual(expected);
            expect(await cut.count()).toBe(expected.length);
            expect((await cut.first())?.['id']).toBe(expected[0]);
            const iterated: unknown[] = [];
            for await (const row of cut) iterated.push(row['id']);
            expect(iterated).toEqual(expected);
          }
        }
        expect(await ids(ordered().offset(2))).toEqual(whole.slice(2));
        expect(await ids(ordered().limit(Number.MAX_SAFE_INTEGER).offset(1))).toEqual(whole.slice(1));
      }
    });
  });
});

describe('orderBy', () => {
  it('of two fields sorts ties in the first by the second, and ties in both by primary key', async () => {
    const people = defineSchema({
      name: 'people',
      version: 1,
      fields: { id: { typeId: Types.uint8 }, group: { typeId: Types.varchar }, age: { typeId: Types.int8 } },
      primaryKey: 'id',
      indexes: ['group'],
    });
    const groups = ['b', null, 'a'];
    const ages = [3, null, -3];
    const list = Array.from({ length: 36 }, (_, id) => ({
      id,
      group: groups[id % 3],
      age: ages[Math.floor(id / 3) % 3],
    }));
    const groupOrder = [null, 'a', 'b'];
    const ageOrder = [null, -3, 3];
    await throughStages(
      [people],
      (batch) => {
        for (const row of list.toReversed()) void batch.insert('people', row);
      },
      async ({ query }) => {
        for (const first of ['asc', 'desc'] as const) {
          for (const second of ['asc', 'desc'] as const) {
            const sign = { asc: 1, desc: -1 };
            const expected = list.toSorted((a, b) => {
              const byGroup = groupOrder.indexOf(a.group as string) - groupOrder.indexOf(b.group as string);
              const byAge = ageOrder.indexOf(a.age as number) - ageOrder.indexOf(b.age as number);
              return byGroup * sign[first] || byAge * sign[second] || a.id - b.id;
            });
            const found = await query('people').orderBy('group', first).orderBy('age', second).execute();
            expect(found).toEqual(expected);
          }
        }
        expect(await ids(query('people'))).toEqual(list.map(({ id }) => id));
        // A field that was sorted by already changes nothing.
        expect(await ids(query('people').orderBy('group').orderBy('group', 'desc'))).toEqual(
          await ids(query('people').orderBy('group')),
        );
        expect(await ids(query('people').orderBy('id', 'desc').orderBy('age'))).toEqual(
          list.map(({ id }) => id).toReversed(),
        );
      },
    );
  });

  it.each(['ASC', '', null, 1])('refuses the direction %s', async (direction) => {
    const db = await openDatabase([things]);
    expect(thrown(() => db.query('things').orderBy('small', direction as 'asc'))).toMatchObject({
      code: 'INVALID_QUERY',
    });
    expect(thrown(() => db.query('things').orderBy('nothing'))).toMatchObject({ code: 'INVALID_QUERY' });
  });
});

describe('rows', () => {
  it('are fresh plain objects, independent of each other', async () => {
    await throughStages([things], add, async ({ query, get }) => {
      const read = async (): Promise<Row[]> => {
        const [byScan] = await query('things').where('id', '=', 5).execute();
        const byIndex = await query('things').where('time', '<', new Date(0)).first();
        const byKey = await get('things', 5);
        return [byScan, byIndex, byKey] as Row[];
      };
      const nulls = Object.fromEntries(Object.keys(things.fields).map((name) => [name, null]));
      const expected = { ...nulls, ...rows[4], raw: Buffer.from([1]), time: new Date(-1000), doc: { a: 1 } };
      for (const row of await read()) {
        expect(row).toEqual(expected);
        expect(Object.getPrototypeOf(row)).toBe(Object.prototype);
        expect(Object.isFrozen(row)).toBe(false);
        (row['raw'] as Buffer)[0] = 99;
        (row['time'] as Date).setTime(5);
        (row['doc'] as Row)['a'] = 'changed';
        row['small'] = 0;
        row['extra'] = true;
      }
      for (const row of await read()) expect(row).toEqual(expected);
    });
  });
});

describe('a text that is no UUID, as the users of an application may give one', () => {
  const notes = { name: 'notes', version: 1, primaryKey: 'id', fields: { id: { typeId: Types.uuid } } } as const;

  it('is the key of no row, wherever one row is asked for', async () => {
    const db = await openDatabase([notes]);
    const batch = db.batch();
    await batch.insert(notes, { id: uuid });
    await batch.flush();
    const snapshot = await db.snapshot();
    for (const text of ['', 'no uuid', `${uuid}0`, '__proto__']) {
      expect(await db.get(notes, text)).toBeUndefined();
      expect(await snapshot.get(notes, text)).toBeUndefined();
      expect(await db.transaction(async (tx) => tx.get(notes, text))).toBeUndefined();
      expect(await db.query(notes).where('id', '=', text).first()).toBeUndefined();
      expect(await db.query(notes).where('id', 'IN', [text, uuid]).count()).toBe(1);
      expect(await db.query(notes).where('id', '!=', text).count()).toBe(1);
      expect(() => db.query(notes).where('id', '>', text)).toThrow(/is compared with UUID strings/);
    }
    // @ts-expect-error -- a number is no UUID
    await expect(db.get(notes, 5)).rejects.toMatchObject({ code: 'INVALID_QUERY' });
    await snapshot.release();
  });
});

describe('a property of json that is undefined', () => {
  it('is left out, as JSON.stringify() does', async () => {
    const json = {
      name: 'j',
      version: 1,
      primaryKey: 'id',
      fields: { id: { typeId: 1 }, value: { typeId: 14 } },
    } as const;
    const db = await openDatabase([json]);
    const batch = db.batch();
    await batch.insert('j', { id: 1, value: { a: undefined, b: [{ c: undefined, d: 1 }] } });
    await batch.flush();
    expect((await db.get('j', 1))?.['value']).toStrictEqual({ b: [{ d: 1 }] });
  });
});
