/** The results of conditions on several fields together, if the planner uses a part of them. */
import { beforeAll, describe, expect, it } from 'vitest';
import { DuplicateKeyError } from '../../../src/base/errors.ts';
import { Types } from '../../../src/format/types.ts';
import type { Query } from '../../../src/query/query.ts';
import type { RowOf, SchemaDefinition } from '../../../src/schema/schema.ts';
import { Nodes } from '../protocol/nodes.ts';
import type { TestNode } from '../protocol/nodes.ts';

const cells = {
  name: 'cells',
  version: 1,
  fields: {
    day: { typeId: Types.uint16 },
    kind: { typeId: Types.varchar },
    x: { typeId: Types.float64 },
    sheet: { typeId: Types.varchar },
    text: { typeId: Types.varchar },
  },
  primaryKey: ['sheet', 'x'],
  indexes: ['kind', { fields: ['text', 'day'] }],
} as const satisfies SchemaDefinition;

type Row = RowOf<typeof cells>;

const long = 'l'.repeat(1100);
/** Twelve kinds have seven rows each, all others none. Texts are equal as far as an index holds them. */
const rows: readonly Row[] = Array.from({ length: 900 }, (_, i) => ({
  sheet: `s${Math.floor(i / 30)}`,
  x: (i % 30) - 10,
  kind: i % 10 === 3 && i < 840 ? `k${Math.floor(i / 10) % 12}` : null,
  day: i % 50,
  text: i % 3 === 0 ? `${long}${Math.floor(i / 50) % 2}` : `t${i}`,
})).toSorted((a, b) => compare(a.sheet, b.sheet) || a.x - b.x);

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

let nodes: Nodes;
let node: TestNode;
let all: Query<Row>;

beforeAll(async () => {
  nodes = new Nodes();
  node = nodes.make(1, { blockSizeBytes: 4096 });
  node.db.registerSchema(cells);
  await nodes.run(node.db.start());
  const batch = node.db.batch();
  for (const row of rows) void batch.insert(cells, row);
  await nodes.run(batch.flush());
  await nodes.run(node.db.checkpoint());
  all = node.db.query(cells);
});

/** Expects what a query finds, and returns its plan. */
async function found(query: Query<Row>, isMeant: (row: Row) => boolean): Promise<object> {
  expect(await nodes.run(query.execute())).toEqual(rows.filter(isMeant));
  return nodes.run(query.explain());
}

describe('tuples', () => {
  it('of more fields than the key has are looked up by the key, and tested', async () => {
    const query = all.where(['sheet', 'x', 'kind'], 'IN', [
      ['s1', 3, 'k4'],
      ['s1', 13, 'none'],
      ['s2', 0, null],
    ]);
    const isMeant = ({ sheet, x, kind }: Row): boolean =>
      (sheet === 's1' && x === 3 && kind === 'k4') || (sheet === 's2' && x === 0 && kind === null);
    expect(rows.filter(isMeant)).toHaveLength(2);
    await found(query, isMeant);
    const two = all.where(['sheet', 'x', 'kind'], 'IN', [
      ['s1', 3, 'k4'],
      ['s1', 13, 'none'],
    ]);
    await found(two, ({ sheet, x }) => sheet === 's1' && x === 3);
  });

  it('of more fields than an index has, or others, are looked up by it, and tested', async () => {
    const days = Array.from({ length: 50 }, (_, day) => day);
    const wide = all.where(
      ['text', 'day', 'x'],
      'IN',
      days.flatMap((day) => [['t1', day, -9] as const, ['t2', day, 5] as const]),
    );
    expect(await found(wide, ({ text, x }) => text === 't1' && x === -9)).toMatchObject({ index: 'text,day' });
    const turned = all.where(
      ['day', 'text'],
      'IN',
      days.flatMap((day) => [[day, 't1'] as const, [day, 't2'] as const]),
    );
    expect(await found(turned, ({ text }) => text === 't1' || text === 't2')).toMatchObject({ index: 'text,day' });
    const ofKinds: readonly (readonly [string, number])[] = days.flatMap((day) => [
      ['k1', day === 13 ? 113 : day],
      ['k2', day + 60],
    ]);
    const apart = all.where(['kind', 'day'], 'IN', ofKinds);
    expect(await found(apart, ({ kind, day }) => kind === 'k1' && day !== 13)).toMatchObject({
      index: 'kind',
      filters: ['kind', 'day'],
    });
  });

  it('of texts that an index holds in part are tested', async () => {
    const isMeant = ({ text, day }: Row): boolean => text === `${long}1` && day === 3;
    expect(rows.filter(({ text, day }) => text !== null && text.startsWith(long) && day === 3)).toHaveLength(6);
    expect(rows.filter(isMeant)).toHaveLength(3);
    const tuples = Array.from({ length: 70 }, (_, i) => [`${long}1`, i === 0 ? 3 : i + 100] as const);
    const plan = { index: 'text,day', filters: ['text', 'day'] };
    expect(await found(all.where(['text', 'day'], 'IN', tuples), isMeant)).toMatchObject(plan);
  });

  it('are no branches that ask a field for two values', async () => {
    const query = all.where(({ is, and, or }) =>
      or(
        and(is('sheet', '=', 's0'), is('x', '=', 4), is('x', '=', 5)),
        and(is('sheet', '=', 's5'), is('x', '=', 0)),
        and(is('sheet', '=', 's6'), is('x', '=', 0)),
      ),
    );
    await found(query, ({ sheet, x }) => (sheet === 's5' || sheet === 's6') && x === 0);
  });

  it('that say the whole key are not all that a query may ask for', async () => {
    const one = all.where(['sheet', 'x'], '=', ['s1', 3]);
    await found(one, ({ sheet, x }) => sheet === 's1' && x === 3);
    await found(one.where('kind', '=', 'k5'), () => false);
    await found(all.where('sheet', '=', 's1').where('sheet', '=', 's1'), ({ sheet }) => sheet === 's1');
  });
});

describe('a range behind fixed fields', () => {
  it('ends where they do, and one that is not behind them is tested', async () => {
    await found(all.where('sheet', '=', 's1').where('x', '>', 17), ({ sheet, x }) => sheet === 's1' && x > 17);
    await found(all.where('sheet', '=', 's1').where('x', '<', -8), ({ sheet, x }) => sheet === 's1' && x < -8);
    await found(all.where('x', '=', 4), ({ x }) => x === 4);
  });

  it('covers few combinations: those of long lists are tested', async () => {
    const sheets = Array.from({ length: 40 }, (_, i) => `s${i}`);
    const many = Array.from({ length: 29 }, (_, i) => i - 9);
    const query = all.where('sheet', 'IN', sheets).where('x', 'IN', many);
    expect(await found(query, ({ x }) => many.includes(x))).toMatchObject({ ranges: 40, filters: ['x'] });
    const fewer = all.where('sheet', 'IN', sheets.slice(0, 20)).where('x', 'IN', many);
    const isMeant = ({ sheet, x }: Row): boolean => sheets.indexOf(sheet) < 20 && many.includes(x);
    expect(await found(fewer, isMeant)).toMatchObject({ ranges: 580, filters: [] });
  });
});

describe('pages in an order that is not of the key behind an index', () => {
  it.each([
    ['x first', (query: Query<Row>) => query.orderBy('kind').orderBy('x')],
    ['a part descending', (query: Query<Row>) => query.orderBy('kind').orderBy('sheet').orderBy('x', 'desc')],
    ['another field between', (query: Query<Row>) => query.orderBy('kind').orderBy('day')],
    ['of the key', (query: Query<Row>) => query.orderBy('kind')],
    ['of the key, backwards', (query: Query<Row>) => query.orderBy('kind', 'desc')],
  ])('leave out no row: %s', async (_, ordered) => {
    const query = ordered(all.where('kind', 'BETWEEN', ['k1', 'k2']));
    expect(await nodes.run(query.explain())).toMatchObject({ index: 'kind' });
    const whole = await nodes.run(query.execute());
    expect(whole).toHaveLength(28);
    const paged: Row[] = [];
    let after: string | undefined;
    do {
      const page = await nodes.run(query.page({ size: 4, after }));
      paged.push(...page.rows);
      after = page.next;
    } while (after !== undefined);
    expect(paged).toEqual(whole);
  });
});

describe('an order', () => {
  const byX = (sign: number) => (a: Row, b: Row) => sign * (a.x - b.x);
  it.each([
    ['sheet', 'asc', byX(-1)],
    ['sheet', 'desc', byX(-1)],
    ['sheet', 'desc', byX(1)],
  ] as const)('by parts of the key, each its own way: %s %s', async (_, direction, order) => {
    const sign = direction === 'asc' ? 1 : -1;
    const isBack = order({ ...rows[0], x: 1 } as Row, { ...rows[0], x: 0 } as Row) < 0;
    const query = all.orderBy('sheet', direction).orderBy('x', isBack ? 'desc' : 'asc');
    const sorted = rows.toSorted((a, b) => sign * compare(a.sheet, b.sheet) || order(a, b));
    expect(await nodes.run(query.execute())).toEqual(sorted);
  });
});

describe('-0 in a key', () => {
  it('is the same key as 0, and is returned as it is read', async () => {
    const batch = node.db.batch();
    expect(await nodes.run(batch.insert(cells, { sheet: 'zero', x: -0 }))).toEqual(['zero', -0]);
    await nodes.run(batch.flush());
    const again = node.db.batch();
    void again.insert(cells, { sheet: 'zero', x: 0 });
    expect(await nodes.failure(again.flush())).toBeInstanceOf(DuplicateKeyError);
    for (const x of [0, -0]) {
      expect(await nodes.run(node.db.get(cells, ['zero', x]))).toMatchObject({ sheet: 'zero', x: -0 });
      expect(await nodes.run(all.where(['sheet', 'x'], '=', ['zero', x]).count())).toBe(1);
    }
    const deletion = node.db.batch();
    void deletion.delete(cells, ['zero', 0]);
    await nodes.run(deletion.flush());
    expect(await nodes.run(node.db.get(cells, ['zero', -0]))).toBeUndefined();
  });
});
