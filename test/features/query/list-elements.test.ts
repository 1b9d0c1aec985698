/** Conditions on many elements of lists, compared with plain JavaScript; each list is read once, however many elements are looked for. */
import { describe, expect, it } from 'vitest';
import { InvalidQueryError } from '../../../src/base/errors.ts';
import { Types } from '../../../src/format/types.ts';
import { Random } from '../../properties/model/random.ts';
import { compile, runEveryPlan } from './every-plan.ts';
import { clauseOf, runModel } from './model.ts';
import type { ModelClause } from './model.ts';
import { TestTable } from './test-table.ts';
import type { Row } from './test-table.ts';

const posts = {
  name: 'posts',
  version: 1,
  fields: { id: { typeId: Types.uint32 }, kind: { typeId: Types.uint8 }, tags: { typeId: Types.json } },
  primaryKey: 'id',
  indexes: [{ fields: ['tags'], each: true }],
} as const;

const scalars = [
  0,
  1,
  1.5,
  11,
  -1,
  1e21,
  2 ** 53,
  true,
  false,
  '',
  '0',
  '1',
  'true',
  'null',
  'ü\0"\\',
  'x'.repeat(2000),
];
const sought = [...scalars, -0, 1.0, 'none', 12, ...Array.from({ length: 300 }, (_, i) => `tag${i}`)];
// JSON has no -0.
const held = [
  ...sought.slice(0, -150).filter((one) => !Object.is(one, -0)),
  null,
  ['x', 1],
  [[1]],
  { tag1: 'tag2' },
  '["tag1"]',
];

function listOf(random: Random): unknown {
  if (random.chance(0.1)) return random.pick([null, 'tag1', { 0: 'tag1', length: 1 }, [], 7]);
  return Array.from({ length: random.pick([1, 5, 80]) }, () => random.pick(held));
}

/** A condition on elements, or several joined. */
function clause(random: Random, rows: readonly Row[], depth = 0): ModelClause {
  const parts = (): ModelClause[] => Array.from({ length: 2 }, () => clause(random, rows, depth + 1));
  const kind = depth > 1 ? 3 : random.below(6);
  if (kind === 0) return { and: parts() };
  if (kind === 1) return { or: parts() };
  if (kind === 2) return { not: clause(random, rows, depth + 1) };
  if (random.chance(0.2)) return ['kind', '=', random.below(3)];
  const all = random.chance(0.5);
  const { tags } = random.pick(rows);
  const ofRow: readonly unknown[] = Array.isArray(tags) ? tags : [];
  const known = ofRow.filter((one) => typeof one !== 'object');
  const some = all && known.length > 0 ? known.filter(() => random.chance(0.8)) : [];
  const more = Array.from({ length: random.pick([0, 1, 2, 3, 250]) }, () => random.pick(sought));
  return ['tags', all ? 'HAS ALL' : 'HAS ANY', random.chance(0.5) && all ? some : [...some, ...more]];
}

function randomRows(random: Random): Row[] {
  return Array.from({ length: 40 }, (_, id) => ({ id, kind: random.below(3), tags: listOf(random) }));
}

async function filled(rows: readonly Row[]): Promise<TestTable> {
  const table = new TestTable(posts, { blockSizeBytes: 8192 });
  await table.commit(rows.slice(0, 30));
  await table.merge();
  await table.commit(rows.slice(30));
  return table;
}

describe('conditions on many elements', () => {
  it('find what plain JavaScript finds, by each plan', async () => {
    const random = new Random(11);
    let found = 0;
    for (let round = 0; round < 4; round++) {
      const rows = randomRows(random);
      const table = await filled(rows);
      for (let i = 0; i < 30; i++) {
        const query = { wheres: [clause(random, rows)], orders: [], limit: undefined, offset: 0 };
        const expected = runModel(rows, 'id', query).map(({ id }) => id);
        found += expected.length;
        for (const run of await runEveryPlan(table, compile(table, query))) {
          expect(run.rows.map(({ id }) => id).toSorted((a, b) => Number(a) - Number(b))).toEqual(expected);
        }
      }
    }
    expect(found).toBeGreaterThan(500);
  });

  it.each([null, Number.NaN, 1n, new Uint8Array(1), [1], {}])(
    'refuse what lists cannot be searched for: %s',
    (value) => {
      const table = new TestTable(posts);
      for (const operator of ['HAS ANY', 'HAS ALL'] as const) {
        const asked = { wheres: [['tags', operator, ['a', value]] as const], orders: [], limit: undefined, offset: 0 };
        expect(() => compile(table, asked)).toThrow(InvalidQueryError);
      }
    },
  );
});

describe('a list', () => {
  const rows = Array.from({ length: 20 }, (_, id) => ({ id, kind: 0, tags: [`a${id}`, 'all', 1] }));
  const many = Array.from({ length: 100 }, (_, i) => `a${i * 7}`);

  it.each([
    ['HAS ANY', [['tagsOf', 'HAS ANY', many]], [0, 7, 14]],
    ['HAS ALL', [['tagsOf', 'HAS ALL', ['all', 1, 'a3']]], [3]],
    ['several conditions', ['all', 1, 'a3'].map((one) => ['tagsOf', 'HAS', one]), [3]],
    ['not HAS ANY', [{ not: ['tagsOf', 'HAS ANY', many] }], rows.map(({ id }) => id).filter((id) => id % 7 > 0)],
    [
      'not HAS ALL',
      [{ not: ['tagsOf', 'HAS ALL', ['all', 1, 'a3']] }],
      rows.map(({ id }) => id).filter((id) => id !== 3),
    ],
  ] as const)('is read once for all elements: %s', async (_, wheres, expected) => {
    const table = new TestTable(posts);
    let calls = 0;
    table.register('tagsOf', ({ tags }) => {
      calls++;
      return tags;
    });
    await table.commit(rows);
    let query = table.query();
    for (const where of wheres as readonly ModelClause[]) query = query.where((clauses) => clauseOf(clauses, where));
    const found = await query.execute();
    expect(found.map(({ id }) => id)).toEqual(expected);
    expect(calls).toBe(rows.length);
  });
});
