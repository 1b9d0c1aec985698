/** Several fields compared together by `<`, `<=`, `>`, `>=` and `BETWEEN`: the rows found, and the reads. */
import { beforeAll, describe, expect, it } from 'vitest';
import { InvalidOperatorError, InvalidQueryError } from '../../../src/base/errors.ts';
import { compareValues } from '../../../src/base/bytes.ts';
import { Types } from '../../../src/format/types.ts';
import type { Explanation } from '../../../src/query/explain.ts';
import type { Query } from '../../../src/query/query.ts';
import type { RowOf, SchemaDefinition } from '../../../src/schema/schema.ts';
import { SeededRandom } from '../../../src/testing/seeded-random.ts';
import { Nodes } from '../protocol/nodes.ts';
import type { TestNode } from '../protocol/nodes.ts';

const cells = {
  name: 'cells',
  version: 1,
  fields: {
    text: { typeId: Types.varchar },
    y: { typeId: Types.uint8 },
    x: { typeId: Types.float64 },
    sheet: { typeId: Types.varchar },
    rank: { typeId: Types.int16 },
    meta: { typeId: Types.json },
  },
  primaryKey: ['sheet', 'y', 'x'],
  indexes: [{ fields: ['text', 'rank'] }, { fields: ['rank'], where: { rank: { not: null } }, name: 'ranked' }],
} as const satisfies SchemaDefinition;

/** An index has all of these: it is read alone. */
type Row = Omit<RowOf<typeof cells>, 'meta'>;
type Name = keyof Row;

const long = 'l'.repeat(1100);
const texts = [null, '', 'a', 'a\0', 'b', `${long}a`, `${long}b`] as const;
const ranks = [null, -1, 0, 7] as const;

/** 12 sheets of 20 by 5 cells, in the order of their keys. */
const rows: readonly Row[] = Array.from({ length: 1200 }, (_, i) => ({
  text: texts[(i * 5) % 7] as string | null,
  y: Math.floor(i / 5) % 20,
  x: (i % 5) - 2.5,
  sheet: `s${String(Math.floor(i / 100)).padStart(2, '0')}`,
  rank: ranks[(i + Math.floor(i / 7)) % 4] as number | null,
}));

let nodes: Nodes;
let node: TestNode;
let all: Query<Row, RowOf<typeof cells>>;

beforeAll(async () => {
  nodes = new Nodes();
  node = nodes.make(1, { blockSizeBytes: 4096 });
  node.db.registerSchema(cells);
  await nodes.run(node.db.start());
  const batch = node.db.batch();
  for (const row of rows) void batch.insert(cells, row);
  await nodes.run(batch.flush());
  await nodes.run(node.db.checkpoint());
  all = node.db.query(cells).select('text', 'y', 'x', 'sheet', 'rank');
});

type Value = string | number | null;
type Operator = '<' | '<=' | '>' | '>=';

/** As comparing each field alone would have it: the first that differs decides, and null is neither before nor behind. */
function holds(row: Row, names: readonly Name[], operator: Operator, values: readonly Value[]): boolean {
  for (const [i, name] of names.entries()) {
    const [own, value] = [row[name], values[i] as Value];
    if (own === null || value === null) return false;
    const order = compareValues(own, value);
    if (order !== 0) return order > 0 === operator.startsWith('>');
  }
  return operator.endsWith('=');
}

/** Expects what a query finds, and returns its plan. */
async function found(query: typeof all, isMeant: (row: Row) => boolean): Promise<Explanation> {
  const plan = await nodes.run(query.explain());
  const expected = rows.filter(isMeant);
  expect(await nodes.run(query.execute())).toEqual(expected);
  expect(await nodes.run(query.count())).toBe(expected.length);
  return plan;
}

const range = { access: 'table', ranges: 1, order: 'access', filters: [] };

/** Objects that a query reads where nothing of the table is in memory. */
async function getsOf(make: (query: typeof all) => typeof all): Promise<number> {
  const cold = nodes.make(9, { blockSizeBytes: 4096 });
  cold.db.registerSchema(cells);
  await nodes.run(cold.db.start());
  cold.driver.takeLines();
  await nodes.run(make(cold.db.query(cells).select('text', 'y', 'x', 'sheet', 'rank')).execute());
  const gets = cold.driver.takeLines().filter((line) => line.startsWith('get ')).length;
  await nodes.run(cold.db.stop());
  return gets;
}

describe('a comparison with a tuple', () => {
  it('of the first fields of the key reads one range of it', async () => {
    for (const operator of ['<', '<=', '>', '>='] as const) {
      const one = all.where(['sheet', 'y'], operator, ['s03', 4]);
      expect(await found(one, (row) => holds(row, ['sheet', 'y'], operator, ['s03', 4]))).toMatchObject(range);
      const key = ['s10', 19, -0.5] as const;
      const whole = all.where(['sheet', 'y', 'x'], operator, key);
      const isMeant = (row: Row): boolean => holds(row, ['sheet', 'y', 'x'], operator, key);
      expect(await found(whole, isMeant)).toMatchObject(range);
    }
    const between = await found(
      all.where(['sheet', 'y'], 'BETWEEN', [
        ['s03', 18],
        ['s04', 1],
      ]),
      (row) => holds(row, ['sheet', 'y'], '>=', ['s03', 18]) && holds(row, ['sheet', 'y'], '<=', ['s04', 1]),
    );
    expect(between).toMatchObject(range);
    const none = all.where(['sheet', 'y'], 'BETWEEN', [
      ['s04', 1],
      ['s03', 18],
    ]);
    expect((await found(none, () => false)).access).toBe('nothing');
    // Written twice, on as many fields or not, it is one range all the same.
    const twice = all.where(['sheet', 'y'], '>', ['s03', 4]).where(['sheet', 'y', 'x'], '<', ['s03', 5, 0.5]);
    const isBoth = (row: Row): boolean => row.sheet === 's03' && row.y === 5 && row.x < 0.5;
    expect(await found(twice, isBoth)).toMatchObject(range);
  });

  it('reads the blocks of its range, and no others', async () => {
    const everything = await getsOf((query) => query);
    expect(everything).toBeGreaterThan(8);
    const last = await getsOf((query) => query.where(['sheet', 'y'], '>', ['s11', 15]));
    expect(last).toBeLessThanOrEqual(3);
    const few = await getsOf((query) =>
      query.where(['sheet', 'y', 'x'], 'BETWEEN', [
        ['s05', 3, 0],
        ['s05', 5, 0],
      ]),
    );
    expect(few).toBeLessThanOrEqual(3);
    // It goes on where a page ended, in either direction.
    const back = await getsOf((query) =>
      query
        .where(['sheet', 'y', 'x'], '<', ['s07', 3, 0.5])
        .orderBy('sheet', 'desc')
        .orderBy('y', 'desc')
        .orderBy('x', 'desc')
        .limit(10),
    );
    expect(back).toBeLessThanOrEqual(3);
  });

  it('goes backwards along the key, and sorts where each field has its own way', async () => {
    const after = all.where(['sheet', 'y', 'x'], '<', ['s07', 3, 0.5]);
    const before = rows.filter((row) => holds(row, ['sheet', 'y', 'x'], '<', ['s07', 3, 0.5]));
    const back = after.orderBy('sheet', 'desc').orderBy('y', 'desc').orderBy('x', 'desc').limit(7);
    expect(await nodes.run(back.explain())).toMatchObject({ ...range, descending: true });
    expect(await nodes.run(back.execute())).toEqual(before.slice(-7).toReversed());
    const mixed = after.orderBy('sheet', 'desc').orderBy('y').limit(3);
    expect(await nodes.run(mixed.explain())).toMatchObject({ access: 'table', ranges: 1, order: 'sort' });
    expect(await nodes.run(mixed.execute())).toEqual(before.filter(({ sheet }) => sheet === 's07').slice(0, 3));
  });

  it('of fields behind those that are fixed is a range behind their values', async () => {
    const sheet = all.where('sheet', '=', 's05');
    const rest = await found(
      sheet.where(['y', 'x'], '>', [17, 0]),
      (row) => row.sheet === 's05' && holds(row, ['y', 'x'], '>', [17, 0]),
    );
    expect(rest).toMatchObject(range);
    const lists = await found(
      all.where('sheet', 'IN', ['s05', 's02']).where(['y', 'x'], '<=', [1, 0.5]),
      (row) => ['s02', 's05'].includes(row.sheet) && holds(row, ['y', 'x'], '<=', [1, 0.5]),
    );
    expect(lists).toMatchObject({ ...range, ranges: 2 });
    // A fixed field may be among those that are compared.
    for (const operator of ['<', '<=', '>', '>='] as const) {
      for (const given of ['s04', 's05', 's06']) {
        const query = sheet.where(['sheet', 'y', 'x'], operator, [given, 17, 0.5]);
        const isMeant = (row: Row): boolean =>
          row.sheet === 's05' && holds(row, ['sheet', 'y', 'x'], operator, [given, 17, 0.5]);
        const plan = await found(query, isMeant);
        expect(plan).toMatchObject(rows.some(isMeant) ? range : { access: 'nothing' });
        await found(query.where('y', '=', 17), (row) => isMeant(row) && row.y === 17);
        await found(query.where('y', 'IN', [16, 17, 18]), (row) => isMeant(row) && row.y >= 16 && row.y <= 18);
      }
    }
  });

  it('is not tested where the fixed values alone decide', async () => {
    const fixed = all.where('sheet', '=', 's05').where('y', '=', 3);
    const isFixed = (row: Row): boolean => row.sheet === 's05' && row.y === 3;
    expect(await found(fixed.where(['sheet', 'y'], '>=', ['s05', 3]), isFixed)).toMatchObject(range);
    expect((await found(fixed.where(['sheet', 'y'], '>', ['s05', 3]), () => false)).access).toBe('nothing');
    const apart = fixed.where(['sheet', 'x'], '>', ['s05', 0]);
    expect(await found(apart, (row) => isFixed(row) && row.x > 0)).toMatchObject({ ...range, filters: ['sheet', 'x'] });
  });

  it('of other fields, or in another order, is tested', async () => {
    const turned = await found(all.where(['y', 'sheet'], '>', [18, 's05']), (row) =>
      holds(row, ['y', 'sheet'], '>', [18, 's05']),
    );
    expect(turned).toMatchObject({ access: 'table', ranges: 1, filters: ['y', 'sheet'] });
    const more = await found(all.where(['sheet', 'y', 'x', 'rank'], '>=', ['s10', 3, 0.5, 0]), (row) =>
      holds(row, ['sheet', 'y', 'x', 'rank'], '>=', ['s10', 3, 0.5, 0]),
    );
    expect(more).toMatchObject({ access: 'table', ranges: 1, filters: ['sheet', 'y', 'x', 'rank'] });
    const gone = await found(all.where(['sheet', 'rank'], '<', ['s01', 0]), (row) =>
      holds(row, ['sheet', 'rank'], '<', ['s01', 0]),
    );
    expect(gone).toMatchObject({ access: 'table', filters: ['sheet', 'rank'] });
    await found(
      all.where(({ is, not }) => not(is(['sheet', 'y'], '<', ['s10', 3]))),
      (row) => !holds(row, ['sheet', 'y'], '<', ['s10', 3]),
    );
    await found(
      all.where(({ is, or }) => or(is(['sheet', 'y'], '<', ['s01', 1]), is(['sheet', 'y'], '>', ['s10', 18]))),
      (row) => holds(row, ['sheet', 'y'], '<', ['s01', 1]) || holds(row, ['sheet', 'y'], '>', ['s10', 18]),
    );
  });

  it('of the fields of an index reads ranges of it, without those that are null', async () => {
    const rest = await found(
      all.where(['text', 'rank'], '>', ['b', 0]).where('text', '<', 'c'),
      (row) => row.text !== null && row.text < 'c' && holds(row, ['text', 'rank'], '>', ['b', 0]),
    );
    expect(rest).toMatchObject({ index: 'text,rank', ranges: 1, filters: [] });
    const before = await found(all.where(['text', 'rank'], '<=', ['', 0]), (row) =>
      holds(row, ['text', 'rank'], '<=', ['', 0]),
    );
    expect(before).toMatchObject({ index: 'text,rank', ranges: 2, filters: [] });
    // An index holds a part of a long text: what it does not tell is tested.
    const cut = await found(all.where(['text', 'rank'], '>', [`${long}a`, 0]), (row) =>
      holds(row, ['text', 'rank'], '>', [`${long}a`, 0]),
    );
    expect(cut.filters).toEqual(['text', 'rank']);
    const inside = await found(
      all.where(['rank', 'y'], '>', [0, 17]).where('sheet', '=', 's03'),
      (row) => row.sheet === 's03' && holds(row, ['rank', 'y'], '>', [0, 17]),
    );
    expect([inside.index, ...inside.alternatives.map(({ index }) => index)]).toContain('ranked');
  });

  it('takes values that a field cannot hold, and null, as comparing the field alone does', async () => {
    const names = ['sheet', 'y', 'x'] as const;
    for (const operator of ['<', '<=', '>', '>='] as const) {
      for (const y of [3.5, -1, 300, null, 0, 255]) {
        for (const x of [0.5, null]) {
          const isMeant = (row: Row): boolean => holds(row, names, operator, ['s04', y, x]);
          const plan = await found(all.where(names, operator, ['s04', y, x]), isMeant);
          expect(plan).toMatchObject(range);
        }
      }
      const none = await found(all.where(['sheet', 'y'], operator, [null, 3]), () => false);
      expect(none.access).toBe('nothing');
    }
    // The same as written out.
    const written = all.where(({ is, and, or }) =>
      or(is('rank', '>', 0), and(is('rank', '=', 0), is('text', '>', 'a'))),
    );
    const isMeant = (row: Row): boolean => holds(row, ['rank', 'text'], '>', [0, 'a']);
    await found(written, isMeant);
    await found(all.where(['rank', 'text'], '>', [0, 'a']), isMeant);
    await found(
      all.where(({ is, not }) => not(is(['rank', 'text'], '>', [null, 'a']))),
      () => true,
    );
  });

  it('finds the same rows as a naive comparison, for random fields and values', async () => {
    const random = new SeededRandom(7);
    const domains: Readonly<Record<Name, readonly Value[]>> = {
      sheet: ['', 's00', 's05', 's05a', 's11', 'x', null],
      y: [0, 3, 3.5, 19, 255, 256, -1, null],
      x: [-2.5, -0.5, 0, 1.5, Number.POSITIVE_INFINITY, null],
      text: texts,
      rank: [...ranks, 0.5, 40_000, -40_000],
    };
    const names = Object.keys(domains) as Name[];
    const ordered: readonly (readonly Name[])[] = [
      ['sheet', 'y', 'x'],
      ['sheet', 'x'],
      ['y', 'x'],
      ['text', 'rank'],
    ];
    const accesses = new Set<string>();
    for (let i = 0; i < 400; i++) {
      const tests: ((row: Row) => boolean)[] = [];
      let query = all;
      for (let count = random.integer(1, 2); count > 0; count--) {
        const order = random.pick([...ordered, random.shuffled(names)]);
        const on = order.slice(0, random.integer(2, order.length)) as readonly Name[];
        const tuple = (): Value[] => on.map((name) => random.pick(random.chance(0.1) ? [null] : domains[name]));
        const operator = random.pick(['<', '<=', '>', '>=', 'BETWEEN'] as const);
        if (operator === 'BETWEEN') {
          const [low, high] = [tuple(), tuple()];
          query = query.where(on as readonly string[], operator, [low, high] as never);
          tests.push((row) => holds(row, on, '>=', low) && holds(row, on, '<=', high));
        } else {
          const values = tuple();
          query = query.where(on as readonly string[], operator, values as never);
          tests.push((row) => holds(row, on, operator, values));
        }
      }
      if (random.chance(0.4)) {
        const sheet = random.pick(['s00', 's05']);
        query = query.where('sheet', '=', sheet);
        tests.push((row) => row.sheet === sheet);
      }
      if (random.chance(0.3)) {
        query = query.where('y', '<', 9);
        tests.push((row) => row.y < 9);
      } else if (random.chance(0.4)) {
        query = query.where('y', '=', 3);
        tests.push((row) => row.y === 3);
      }
      if (random.chance(0.1)) {
        const text = random.pick(texts.slice(1));
        query = query.where('text', '=', text as string);
        tests.push((row) => row.text === text);
      }
      const plan = await found(query, (row) => tests.every((test) => test(row)));
      accesses.add(plan.access === 'nothing' || plan.filters.length === 0 ? plan.access : `${plan.access} tested`);
    }
    for (const access of ['index', 'nothing', 'table', 'table tested']) expect(accesses).toContain(access);
  });

  it('is of pages, transactions and batches as other conditions are', async () => {
    const query = all.where(['sheet', 'y'], 'BETWEEN', [
      ['s03', 18],
      ['s04', 1],
    ]);
    const whole = await nodes.run(query.execute());
    const first = await nodes.run(query.page({ size: 7 }));
    const next = await nodes.run(query.page({ size: 100, after: first.next }));
    expect([...first.rows, ...next.rows]).toEqual(whole);
    const other = all.where(['sheet', 'y'], 'BETWEEN', [
      ['s03', 18],
      ['s04', 2],
    ]);
    expect((await nodes.failure(other.page({ size: 7, after: first.next }))).message).toContain('other conditions');
    const read = await nodes.run(
      node.db.transaction(async (tx) =>
        tx.query(cells).where(['sheet', 'y', 'x'], '>=', ['s11', 19, 1.5]).select('x').execute(),
      ),
    );
    expect(read).toEqual([{ x: 1.5 }]);
    const batch = node.db.batch();
    void batch.insert(cells, { sheet: 's99', y: 1, x: 1 });
    const overlaid = all.where(['sheet', 'y', 'x'], '>', ['s11', 19, 0.5]).overlay(batch).select('sheet');
    expect(await nodes.run(overlaid.execute())).toEqual([{ sheet: 's11' }, { sheet: 's99' }]);
    batch.clear();
  });
});

describe('a comparison that cannot be', () => {
  const loose = (): Query<Record<string, unknown>> => node.db.query('cells');
  const refused = (fields: unknown, operator: unknown, value: unknown): Error => {
    try {
      loose().where(fields as never, operator as never, value as never);
    } catch (error) {
      return error as Error;
    }
    throw new Error('it was taken');
  };

  it('is refused at the call, and says why', () => {
    const on = ['sheet', 'y'];
    expect(refused(on, '>', 'x').message).toBe(
      "where([sheet, y]) takes arrays of 2 values, one for each field, not 'x'.",
    );
    expect(refused(on, '<=', ['s01']).message).toContain(
      'takes arrays of 2 values, one for each field, not an array of 1.',
    );
    expect(refused(on, '<', ['s01', 1, 2]).message).toContain('not an array of 3.');
    expect(refused(on, '>', ['s01', 'a']).message).toContain("Cannot compare field 'y' of table 'cells' with 'a'");
    expect(refused(on, '>', ['s01', undefined]).message).toContain("Cannot compare field 'y'");
    // What is not looked at to find rows is checked all the same.
    expect(refused(on, '>', [null, 'a']).message).toContain("Cannot compare field 'y'");
    expect(refused(on, 'BETWEEN', ['s01', 1]).message).toContain(
      'takes [low, high], each an array with a value for each field, not ',
    );
    expect(refused(on, 'BETWEEN', [['s01', 1]]).message).toBe(
      "where([sheet, y], 'BETWEEN') takes [low, high], each an array with a value for each field, not an array.",
    );
    expect(refused(on, 'BETWEEN', 5)).toBeInstanceOf(InvalidQueryError);
    expect(refused(['sheet', 'meta'], '>', ['s01', null])).toBeInstanceOf(InvalidOperatorError);
    expect(refused(['sheet', 'meta'], '>', ['s01', null]).message).toContain("Field 'meta' of table 'cells' is JSON");
    expect(refused(['sheet', 'z'], '>', ['s01', 1]).message).toContain("has no field 'z'");
    for (const operator of ['!=', 'PREFIX']) {
      const error = refused(on, operator, ['s01', 1]);
      expect(error).toBeInstanceOf(InvalidOperatorError);
      expect(error.message).toBe(
        `[sheet, y] are compared together by =, <, <=, >, >=, IN, BETWEEN, and not by '${operator}': add a condition for each field.`,
      );
    }
    node.db.registerFunction('size', () => 1, 1);
    expect(refused(['sheet', 'size'], '>', ['s01', 1]).message).toContain(
      "takes the operators '=', 'HAS', 'HAS ANY' and 'HAS ALL': not '>'",
    );
  });
});
