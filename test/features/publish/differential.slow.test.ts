/** Random queries on a reader, against the same queries on the database, with row and field filters and without. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { StoreDb, Types } from '../../../src/index.ts';
import { MemoryDriver } from '../../../src/storage/memory-driver.ts';
import type { PublishOptions } from '../../../src/maintenance/publish/publish-options.ts';
import type { Query } from '../../../src/query/query.ts';
import { SeededRandom } from '../../../src/testing/seeded-random.ts';
import { BundleServer } from './published.ts';

type AnyQuery = Query<Record<string, unknown>>;

const definition = {
  name: 'mixed',
  version: 2,
  fields: {
    a: { typeId: Types.uint16 },
    b: { typeId: Types.varchar },
    price: { typeId: Types.float64 },
    text: { typeId: Types.varchar },
    big: { typeId: Types.int64 },
    flag: { typeId: Types.boolean },
    at: { typeId: Types.timestamp },
    raw: { typeId: Types.bytes },
    more: { typeId: Types.json },
  },
  primaryKey: ['a', 'b'],
  indexes: ['price', { fields: ['text', 'flag'] }, 'big', 'raw'],
};
const count = 4000;
const random = new SeededRandom(11);
const db = StoreDb({ driver: new MemoryDriver(), dbPrefix: 'db', nodeId: 1 });

const texts = [
  '',
  'a',
  'ab',
  'abcdefghijkl',
  'abcdefghijklm',
  'é',
  '\u{10000}',
  'x'.repeat(1500),
  `${'x'.repeat(1500)}y`,
];
const values: Readonly<Record<string, () => unknown>> = {
  a: () => random.integer(0, 40),
  b: () => random.pick(texts.slice(0, 7)),
  price: () => random.pick([-Infinity, -1.5, -0, 0, 0.25, 7, 1e300]),
  text: () => random.pick(texts),
  big: () => random.pick([-(2n ** 62n), -1n, 0n, 5n, 2n ** 62n]),
  flag: () => random.chance(0.5),
  at: () => new Date(random.integer(0, 5) * 1e11),
  raw: () => Buffer.from(random.pick(['', 'a', 'ab', 'a longer value of bytes'])),
};
const compared = Object.keys(values);

beforeAll(async () => {
  db.registerSchema(definition);
  await db.start();
  const batch = db.batch();
  for (let i = 0; i < count; i++) {
    const row: Record<string, unknown> = { a: i % 4001, b: random.pick(texts.slice(0, 7)), more: { i } };
    for (const name of compared.slice(2)) row[name] = random.chance(0.1) ? null : (values[name] as () => unknown)();
    void batch.upsert('mixed', row);
  }
  await batch.flush();
});

afterAll(async () => {
  await db.stop();
});

type Step = (query: AnyQuery) => AnyQuery;

function randomSteps(names: readonly string[]): Step[] {
  const steps: Step[] = [];
  for (let i = random.integer(0, 3); i > 0; i--) {
    const name = random.pick(names);
    const operator = random.pick(['=', '!=', '<', '<=', '>', '>=', 'IN', 'BETWEEN']);
    const make = values[name] as () => unknown;
    const value = operator === 'IN' ? [make(), make()] : operator === 'BETWEEN' ? [make(), make()] : make();
    steps.push((query) => query.where(name as never, operator as never, value as never));
  }
  for (let i = random.integer(0, 2); i > 0; i--) {
    const name = random.pick(names);
    const direction = random.pick(['asc', 'desc'] as const);
    steps.push((query) => query.orderBy(name as never, direction));
  }
  const [limit, offset] = [random.integer(0, 60), random.integer(0, 30)];
  if (random.chance(0.5)) steps.push((query) => query.limit(limit));
  if (random.chance(0.4)) steps.push((query) => query.offset(offset));
  return steps;
}

const filters: readonly (readonly [string, PublishOptions, readonly string[]])[] = [
  ['everything', {}, [...compared, 'more']],
  ['some fields', { fields: { mixed: ['text', 'flag', 'price'] } }, ['a', 'b', 'text', 'flag', 'price']],
  [
    'some rows',
    { where: { mixed: ({ is, or }) => or(is('price', '>', 0), is('text', '=', 'ab')) } },
    [...compared, 'more'],
  ],
  ['no rows', { where: { mixed: ({ is }) => is('a', 'IN', []) } }, compared],
];

describe('a reader of', () => {
  it.each(filters)('%s answers as the database does', async (_, options, names) => {
    const server = new BundleServer();
    await db.publish(server.place, options);
    const reader = await server.open({ maxMemoryBytes: 8 * 2 ** 20 });
    const build = options.where?.['mixed'];
    const base = build === undefined ? db.query('mixed') : db.query('mixed').where(build as never);
    const usable = names.filter((name) => compared.includes(name));
    for (let i = 0; i < 60; i++) {
      const steps = randomSteps(usable);
      const run = (query: AnyQuery): AnyQuery => steps.reduce((next, step) => step(next), query);
      const [mine, own] = [run(reader.query('mixed')), run(base)];
      expect(await mine.execute()).toEqual(await own.select(...(names as never[])).execute());
      expect(await mine.count()).toBe(await own.count());
      const rows: object[] = [];
      for await (const row of mine) rows.push(row);
      expect(rows).toEqual(await mine.execute());
      const field = random.pick(usable) as never;
      expect(await mine.max(field)).toEqual(await own.max(field));
      const groups = (query: AnyQuery): Promise<object[]> =>
        query.groupBy('flag' as never).aggregate({ n: 'count', least: { min: 'price' as never } });
      const grouped = usable.includes('flag') ? [mine, own] : [];
      const [first, second] = await Promise.all(grouped.map(groups));
      expect(first).toEqual(second);
    }
    reader.close();
  });
});
