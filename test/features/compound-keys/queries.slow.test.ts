/** Queries that use a primary key of several fields: their order, and their reads. */
import { beforeEach, describe, expect, it } from 'vitest';
import { InvalidOperatorError, InvalidQueryError } from '../../../src/base/errors.ts';
import { Types } from '../../../src/format/types.ts';
import type { Explanation } from '../../../src/query/explain.ts';
import type { Query } from '../../../src/query/query.ts';
import type { RowOf, SchemaDefinition } from '../../../src/schema/schema.ts';
import { Nodes } from '../protocol/nodes.ts';
import type { TestNode } from '../protocol/nodes.ts';

const pages = {
  name: 'pages',
  version: 1,
  fields: {
    slug: { typeId: Types.varchar },
    tenant: { typeId: Types.int32 },
    part: { typeId: Types.uint8 },
    kind: { typeId: Types.varchar },
    text: { typeId: Types.varchar },
  },
  primaryKey: ['tenant', 'slug', 'part'],
  indexes: ['kind', { fields: ['kind', 'slug'] }],
} as const satisfies SchemaDefinition;

type Row = RowOf<typeof pages>;

const kinds = ['a', 'b', 'c', null];
const text = 'x'.repeat(100);
/** 40 tenants of 30 pages, each of two parts, in the order of their keys. */
const rows: readonly Row[] = Array.from({ length: 40 }, (_, i) => i - 20).flatMap((tenant) =>
  Array.from({ length: 30 }, (_, i) => `s${String(i).padStart(2, '0')}`).flatMap((slug) =>
    [1, 2].map((part) => ({ slug, tenant, part, kind: kinds[(tenant + 20 + part) % 4] as string | null, text })),
  ),
);

let nodes: Nodes;
let node: TestNode;
let all: Query<Row>;

beforeEach(async () => {
  nodes = new Nodes();
  const writer = nodes.make(1, { blockSizeBytes: 4096 });
  writer.db.registerSchema(pages);
  await nodes.run(writer.db.start());
  const batch = writer.db.batch();
  for (const row of rows.toReversed()) void batch.insert(pages, row);
  await nodes.run(batch.flush());
  await nodes.run(writer.db.checkpoint());
  await nodes.run(writer.db.stop());
  // Nothing of the table is in memory.
  node = nodes.make(2, { blockSizeBytes: 4096 });
  node.db.registerSchema(pages);
  await nodes.run(node.db.start());
  node.driver.takeLines();
  all = node.db.query(pages);
});

interface Ran {
  readonly plan: Explanation;
  /** Objects that were read. */
  readonly gets: number;
}

/** Runs a query, expects what it finds, and tells how. */
async function ran(
  query: Query<Row>,
  isMeant: (row: Row) => boolean,
  order?: (a: Row, b: Row) => number,
): Promise<Ran> {
  const plan = await nodes.run(query.explain());
  node.driver.takeLines();
  const found = await nodes.run(query.execute());
  const gets = node.driver.takeLines().filter((line) => line.startsWith('get ')).length;
  const expected = rows.filter(isMeant);
  expect(found).toEqual(order === undefined ? expected : expected.toSorted(order));
  expect(await nodes.run(query.count())).toBe(expected.length);
  return { plan, gets };
}

/** By which text compares in these rows, all of which are ASCII. */
function compare(a: string | number, b: string | number): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

const whole = { access: 'keys', ranges: 1, order: 'access', filters: [] };
const range = { access: 'table', ranges: 1, order: 'access', filters: [] };

describe('conditions on the key', () => {
  it('read its first fields as a range, and all of them as one row', async () => {
    const tenant = all.where('tenant', '=', 3);
    const one = await ran(
      tenant.where('slug', '=', 's07').where('part', '=', 2),
      (row) => row.tenant === 3 && row.slug === 's07' && row.part === 2,
    );
    expect(one.plan).toMatchObject(whole);
    // The way down the tree, and no more.
    expect(one.gets).toBeLessThanOrEqual(2);
    const each = await ran(tenant, (row) => row.tenant === 3);
    expect(each.plan).toMatchObject(range);
    expect(each.gets).toBeLessThanOrEqual(5);
    const behind = await ran(tenant.where('slug', '>', 's20'), (row) => row.tenant === 3 && row.slug > 's20');
    expect(behind.plan).toMatchObject(range);
    const between = await ran(
      tenant.where('slug', 'BETWEEN', ['s05', 's06']).where('part', '>', 0),
      (row) => row.tenant === 3 && row.slug >= 's05' && row.slug <= 's06',
    );
    expect(between.plan).toMatchObject({ ...range, filters: ['part'] });
    const prefix = await ran(
      tenant.where('slug', 'PREFIX', 's1'),
      (row) => row.tenant === 3 && row.slug.startsWith('s1'),
    );
    expect(prefix.plan).toMatchObject(range);
    const few = await ran(
      all.where('tenant', 'IN', [5, -3]).where('slug', '<', 's02'),
      (row) => [5, -3].includes(row.tenant) && row.slug < 's02',
    );
    expect(few.plan).toMatchObject({ ...range, ranges: 2 });
    const grid = await ran(
      all.where('tenant', 'IN', [5, -3]).where('slug', 'IN', ['s02', 's01', 'none']).where('part', '=', 1),
      (row) => [5, -3].includes(row.tenant) && ['s01', 's02'].includes(row.slug) && row.part === 1,
    );
    expect(grid.plan).toMatchObject({ ...whole, ranges: 6 });
    const outside = await ran(tenant.where('tenant', '=', 4), () => false);
    expect(outside.plan.access).toBe('nothing');
    expect((await ran(all.where('tenant', '>', 1e12), () => false)).plan.access).toBe('nothing');
    // What does not begin with the first field goes through all.
    const second = await ran(all.where('slug', '=', 's07'), (row) => row.slug === 's07');
    expect(second.plan).toMatchObject({ access: 'table', ranges: 1, filters: ['slug'] });
  });

  it('look up tuples, also written as clauses', async () => {
    const isMeant = ({ tenant, slug, part }: Row): boolean =>
      (tenant === 9 && slug === 's01' && part === 1) || (tenant === -2 && slug === 's05' && part === 2);
    const tuples = [
      [9, 's01', 1],
      [-2, 's05', 2],
      [-2, 's05', 2],
      [9, 'none', 1],
      [1e12, 's01', 1],
      [9, 's01', 1.5],
    ] as const;
    const listed = await ran(all.where(['tenant', 'slug', 'part'], 'IN', tuples), isMeant);
    expect(listed.plan).toMatchObject({ ...whole, ranges: 3 });
    expect(listed.gets).toBeLessThanOrEqual(4);
    const turned = await ran(
      all.where(
        ['part', 'tenant', 'slug'],
        'IN',
        tuples.map(([tenant, slug, part]) => [part, tenant, slug] as const),
      ),
      isMeant,
    );
    expect(turned.plan).toMatchObject({ ...whole, ranges: 3 });
    const clauses = all.where(({ is, and, or }) =>
      or(
        ...tuples.map(([tenant, slug, part]) =>
          and(is('slug', '=', slug), is('tenant', '=', tenant), is('part', '=', part)),
        ),
      ),
    );
    expect((await ran(clauses, isMeant)).plan).toMatchObject({ ...whole, ranges: 3 });
    const one = await ran(
      all.where(['tenant', 'slug', 'part'], '=', [9, 's01', 1]),
      (row) => isMeant(row) && row.tenant === 9,
    );
    expect(one.plan).toMatchObject(whole);
    const first = await ran(
      all.where(({ is }) =>
        is(['tenant', 'slug'], 'IN', [
          [9, 's01'],
          [-2, 's05'],
        ]),
      ),
      ({ tenant, slug }) => (tenant === 9 && slug === 's01') || (tenant === -2 && slug === 's05'),
    );
    expect(first.plan).toMatchObject({ ...range, ranges: 2 });
    const others = await ran(
      all.where(({ is, not }) =>
        not(
          is(['tenant', 'slug'], 'IN', [
            [9, 's01'],
            [-2, 's05'],
          ]),
        ),
      ),
      ({ tenant, slug }) => !((tenant === 9 && slug === 's01') || (tenant === -2 && slug === 's05')),
    );
    expect(others.plan.access).toBe('table');
    const filtered = await ran(
      all.where(['tenant', 'slug', 'part'], 'IN', tuples).where('tenant', '=', 9),
      (row) => isMeant(row) && row.tenant === 9,
    );
    expect(filtered.plan).toMatchObject({ access: 'keys' });
    expect((await ran(all.where(['tenant', 'slug'], 'IN', []), () => false)).plan.access).toBe('nothing');
    // Not the first fields of the key.
    await ran(
      all.where(['slug', 'part'], 'IN', [
        ['s01', 1],
        ['s05', 2],
      ]),
      ({ slug, part }) => (slug === 's01' && part === 1) || (slug === 's05' && part === 2),
    );
    const nulls = await ran(
      all.where(['tenant', 'kind'], 'IN', [
        [1, null],
        [2, 'a'],
      ]),
      ({ tenant, kind }) => (tenant === 1 && kind === null) || (tenant === 2 && kind === 'a'),
    );
    expect(nulls.plan.order).toBe('access');
  });

  it('take long lists of tuples', async () => {
    const odd = rows.filter((_, i) => i % 3 === 1);
    const tuples = odd.map(({ tenant, slug, part }) => [tenant, slug, part] as const);
    const wrong = Array.from({ length: 2000 }, (_, i) => [i + 100, 's01', 1] as const);
    const query = all.where(['tenant', 'slug', 'part'], 'IN', [...wrong, ...tuples.toReversed()]);
    const { plan } = await ran(query, (row) => odd.includes(row));
    expect(plan).toMatchObject({ access: 'keys', ranges: odd.length + 2000, filters: [] });
  });

  it('on several fields name their mistakes', async () => {
    const loose = node.db.query('pages');
    const refused = (call: () => unknown): Error => {
      try {
        call();
      } catch (error) {
        return error as Error;
      }
      throw new Error('it was taken');
    };
    const tuple = (value: unknown): Error => refused(() => loose.where(['tenant', 'slug'], '=', value as never));
    expect(tuple('x').message).toBe("where([tenant, slug]) takes arrays of 2 values, one for each field, not 'x'.");
    expect(tuple([1]).message).toContain('not an array of 1.');
    expect(tuple([1, 5]).message).toContain("Cannot compare field 'slug'");
    expect(refused(() => loose.where(['tenant', 'slug'], 'IN', 5 as never)).message).toContain(
      "where([tenant, slug], 'IN') takes an array of arrays",
    );
    expect(refused(() => loose.where(['tenant', 'slug'], 'IN', [5] as never)).message).toContain('not 5.');
    const compared = refused(() => loose.where(['tenant', 'slug'], '!=' as never, [1, 'a'] as never));
    expect(compared).toBeInstanceOf(InvalidOperatorError);
    expect(compared.message).toContain("are compared together by =, <, <=, >, >=, IN, BETWEEN, and not by '!='");
    const between = (value: unknown): string =>
      refused(() => loose.where(['tenant', 'slug'], 'BETWEEN' as never, value as never)).message;
    for (const value of [
      [1, 'a'],
      [[1, 'a'], 2],
      [[1, 'a']],
      [
        [1, 'a'],
        [2, 'a'],
        [3, 'a'],
      ],
      1,
      undefined,
    ]) {
      expect(between(value)).toContain('takes [low, high], each an array with a value for each field, not ');
    }
    expect(between([[1, 'a'], [2]])).toContain('not an array of 1');
    expect(refused(() => loose.where(['tenant', 'tenant'], '=', [1, 1])).message).toContain("names 'tenant' twice");
    expect(refused(() => loose.where(['tenant', 'sulg'], '=', [1, 'a'])).message).toContain("did you mean 'slug'");
    expect(refused(() => loose.where([], '=', []))).toBeInstanceOf(InvalidQueryError);
    expect(refused(() => loose.where([5] as never, '=' as never, [1] as never)).message).toContain('not 5');
  });
});

describe('the order of the key', () => {
  const byKey = (sign: number) => (x: Row, y: Row) =>
    sign * (compare(x.tenant, y.tenant) || compare(x.slug, y.slug) || compare(x.part, y.part));

  it('needs no sorting, forwards and backwards, whole or behind fixed fields', async () => {
    const few = (query: Query<Row>): Query<Row> => query.where('tenant', '>=', 18);
    const isFew = (row: Row): boolean => row.tenant >= 18;
    const inOrder = [
      [few(all).orderBy('tenant').orderBy('slug').orderBy('part'), byKey(1)],
      [few(all).orderBy('tenant').orderBy('slug'), byKey(1)],
      [few(all).orderBy('tenant'), byKey(1)],
      [few(all).orderBy('tenant', 'desc').orderBy('slug', 'desc').orderBy('part', 'desc'), byKey(-1)],
    ] as const;
    for (const [query, order] of inOrder) {
      const { plan } = await ran(query, isFew, order);
      expect(plan).toMatchObject(range);
    }
    // Ties are broken by ascending keys, which the tree backwards does not have.
    const tied = await ran(few(all).orderBy('tenant', 'desc'), isFew, (x, y) => y.tenant - x.tenant || byKey(1)(x, y));
    expect(tied.plan.order).toBe('sort');
    const mixed = await ran(
      few(all).orderBy('tenant').orderBy('slug', 'desc').orderBy('part', 'desc'),
      isFew,
      (x, y) => x.tenant - y.tenant || byKey(-1)(x, y),
    );
    expect(mixed.plan.order).toBe('sort');
    const fixed = all.where('tenant', '=', 18);
    const isFixed = (row: Row): boolean => row.tenant === 18;
    const back = await ran(fixed.orderBy('slug', 'desc').orderBy('part', 'desc'), isFixed, byKey(-1));
    expect(back.plan).toMatchObject({ ...range, descending: true });
    const page = await ran(
      fixed.where('slug', '=', 's09').orderBy('part', 'desc'),
      (row) => isFixed(row) && row.slug === 's09',
      byKey(-1),
    );
    expect(page.plan).toMatchObject({ ...range, descending: true });
    // Stops when it has enough.
    node.driver.takeLines();
    const last = await nodes.run(
      all.orderBy('tenant', 'desc').orderBy('slug', 'desc').orderBy('part', 'desc').limit(2).execute(),
    );
    expect(last).toEqual(rows.slice(-2).toReversed());
  });

  it('is the order of rows of one value of an index', async () => {
    const one = await ran(
      all.where('kind', '=', 'b').where('tenant', '>', 15).orderBy('tenant').orderBy('slug'),
      (row) => row.kind === 'b' && row.tenant > 15,
    );
    expect(one.plan.order).toBe('access');
    const bySlug = all.where('kind', '=', 'b').orderBy('slug').orderBy('tenant').limit(5);
    expect(await nodes.run(bySlug.explain())).toMatchObject({ order: 'access', index: 'kind,slug' });
    const sorted = rows
      .filter(({ kind }) => kind === 'b')
      .toSorted((x, y) => compare(x.slug, y.slug) || byKey(1)(x, y));
    expect(await nodes.run(bySlug.execute())).toEqual(sorted.slice(0, 5));
    // Of one slug the rows come by tenant and part, as the entries do.
    const ofOne = all
      .where('kind', '=', 'b')
      .where('slug', '=', 's03')
      .orderBy('tenant', 'desc')
      .orderBy('part', 'desc');
    expect(await nodes.run(ofOne.limit(3).explain())).toMatchObject({ order: 'access', index: 'kind,slug' });
    expect(await nodes.run(ofOne.limit(3).execute())).toEqual(
      sorted
        .filter(({ slug }) => slug === 's03')
        .toReversed()
        .slice(0, 3),
    );
    const covered = all.where('kind', '=', 'c').select('tenant', 'slug', 'part');
    expect(await nodes.run(covered.explain())).toMatchObject({ access: 'index', indexOnly: true });
    expect(await nodes.run(covered.execute())).toEqual(
      rows.filter(({ kind }) => kind === 'c').map(({ tenant, slug, part }) => ({ tenant, slug, part })),
    );
  });

  it('serves pages, which begin after a key', async () => {
    const orders = [
      (query: Query<Row>) => query,
      (query: Query<Row>) => query.orderBy('tenant', 'desc').orderBy('slug', 'desc').orderBy('part', 'desc'),
      (query: Query<Row>) => query.orderBy('tenant', 'desc'),
      (query: Query<Row>) => query.orderBy('slug').orderBy('tenant', 'desc'),
      (query: Query<Row>) => query.orderBy('kind'),
      (query: Query<Row>) => query.orderBy('part'),
      (query: Query<Row>) => query.where('tenant', '=', 4).orderBy('slug', 'desc').orderBy('part', 'desc'),
      (query: Query<Row>) => query.where('tenant', '=', 4).orderBy('part').orderBy('slug'),
      (query: Query<Row>) => query.where('kind', '=', 'a'),
      (query: Query<Row>) => query.where('kind', '=', 'a').orderBy('slug'),
      (query: Query<Row>) =>
        query.where(({ is, or, and }) => or(is('tenant', '=', 4), and(is('tenant', '=', 5), is('slug', '<', 's09')))),
      (query: Query<Row>) =>
        query.where(({ is, or }) => or(is('tenant', '=', 4), is('kind', '=', 'a'))).orderBy('slug'),
    ];
    for (const [i, ordered] of orders.entries()) {
      const query = ordered(all);
      const found = await nodes.run(query.execute());
      const paged: Row[] = [];
      let after: string | undefined;
      do {
        const page = await nodes.run(query.page({ size: 97, after }));
        paged.push(...page.rows);
        after = page.next;
      } while (after !== undefined);
      expect(paged, `order ${i}`).toEqual(found);
    }
    const first = await nodes.run(all.page({ size: 1000 }));
    const other = nodes.make(3, { blockSizeBytes: 4096 });
    other.db.registerSchema(pages);
    await nodes.run(other.db.start());
    other.driver.takeLines();
    await nodes.run(other.db.query(pages).page({ size: 3, after: first.next }));
    expect(other.driver.takeLines().filter((line) => line.startsWith('get ')).length).toBeLessThanOrEqual(4);
  });
});

describe('aggregates', () => {
  it('take the ends of the key', async () => {
    const tenant = all.where('tenant', '=', 7);
    node.driver.takeLines();
    expect(await nodes.run(all.min('tenant'))).toBe(-20);
    expect(await nodes.run(all.max('tenant'))).toBe(19);
    expect(await nodes.run(tenant.max('slug'))).toBe('s29');
    expect(await nodes.run(tenant.where('slug', '<', 's10').max('slug'))).toBe('s09');
    expect(node.driver.takeLines().filter((line) => line.startsWith('get ')).length).toBeLessThanOrEqual(9);
    const ends = { least: { min: 'slug' }, greatest: { max: 'slug' }, n: 'count' } as const;
    expect(await nodes.run(tenant.aggregate(ends))).toEqual({ least: 's00', greatest: 's29', n: 60 });
    expect(await nodes.run(all.where('slug', '=', 's01').aggregate({ most: { max: 'tenant' } }))).toEqual({
      most: 19,
    });
    const groups = await nodes.run(tenant.groupBy('part').aggregate({ n: 'count' }));
    expect(groups).toEqual([
      { part: 1, n: 30 },
      { part: 2, n: 30 },
    ]);
  });
});
