/** Indexes on some rows: which definitions are refused, which flushes, and which queries go by them. */
import { beforeEach, describe, expect, it } from 'vitest';
import { InvalidSchemaError, UniqueIndexError } from '../../../src/base/errors.ts';
import { Types } from '../../../src/format/types.ts';
import { toStoredSchema } from '../../../src/schema/schema.ts';
import type { SchemaDefinition } from '../../../src/schema/schema.ts';
import type { Query } from '../../../src/query/query.ts';
import { Nodes } from '../protocol/nodes.ts';
import type { TestNode } from '../protocol/nodes.ts';

const users = {
  name: 'users',
  version: 1,
  fields: {
    id: { typeId: Types.uint32 },
    email: { typeId: Types.varchar },
    deletedAt: { typeId: Types.timestamp },
    kind: { typeId: Types.varchar },
    made: { typeId: Types.uint32 },
    meta: { typeId: Types.json },
    photo: { typeId: Types.blob },
  },
  primaryKey: 'id',
  indexes: [
    { fields: ['email'], unique: true, where: { deletedAt: null }, name: 'active' },
    { fields: ['made'], where: { kind: ['draft', 'live'] }, name: 'shown' },
    { fields: ['made'], where: { email: { not: null }, deletedAt: null }, name: 'reachable' },
  ],
} as const satisfies SchemaDefinition;

let nodes: Nodes;
let a: TestNode;
let b: TestNode;

async function open(nodeId: number): Promise<TestNode> {
  const node = nodes.make(nodeId, { blockSizeBytes: 1024 });
  node.db.registerSchema(users);
  await nodes.run(node.db.start());
  return node;
}

beforeEach(async () => {
  nodes = new Nodes();
  a = await open(1);
  b = await open(2);
});

function refusal(where: unknown): string {
  const indexes = [{ fields: ['email'], where, name: 'active' }];
  try {
    toStoredSchema({ ...users, indexes });
  } catch (error) {
    if (error instanceof InvalidSchemaError) return error.message;
    throw error;
  }
  return 'it was taken';
}

describe('a condition', () => {
  it('is refused if it means nothing, with a suggestion', () => {
    const about = "The condition of index 'active' of table 'users': ";
    expect(refusal({ deletedat: null })).toBe(`${about}the table has no field 'deletedat': did you mean deletedAt?`);
    expect(refusal({ gone: null })).toBe(`${about}the table has no field 'gone'.`);
    expect(refusal({ meta: null })).toBe(`${about}field 'meta' is of type json, which it cannot test.`);
    expect(refusal({ photo: null })).toBe(`${about}field 'photo' is of type blob, which it cannot test.`);
    expect(refusal({ made: 'x' })).toMatch(/field 'made': 'x' does not fit type uint32/);
    expect(refusal({ made: -1 })).toMatch(/field 'made': -1 does not fit type uint32/);
    expect(refusal({ kind: undefined })).toMatch(/field 'kind': undefined does not fit type varchar/);
    expect(refusal({ kind: { not: 'a' } })).toBe(
      `${about}field 'kind' takes a value, null, an array of these, or { not: null }, not an object.`,
    );
    expect(refusal({ kind: [] })).toBe(`${about}field 'kind' takes 1 to 1000 values, not 0.`);
    expect(refusal({ kind: ['a', 'b', 'a'] })).toBe(`${about}field 'kind' lists 'a' twice.`);
    expect(refusal({})).toBe(`${about}it names no field. Leave \`where\` out for an index on all rows.`);
    for (const where of ['deletedAt', null, ['deletedAt'], 5])
      expect(refusal(where)).toMatch(/it is an object from fields/);
    expect(refusal({ deletedAt: null, kind: 'a' })).toBe('it was taken');
  });

  it('is a part of the definition: another one is another version', () => {
    const other = (where: object): SchemaDefinition => ({
      ...users,
      indexes: [{ fields: ['email'], unique: true, where, name: 'active' } as never, ...users.indexes.slice(1)],
    });
    expect(() => a.db.registerSchema(other({ kind: 'a' }))).toThrow(/was registered with another definition/);
    expect(() => a.db.registerSchema(other({ deletedAt: { not: null } }))).toThrow(/another definition/);
    a.db.registerSchema(other({ deletedAt: [null] }));
  });
});

async function put(node: TestNode, ...rows: object[]): Promise<void> {
  const batch = node.db.batch();
  for (const row of rows) void batch.upsert('users', row);
  await nodes.run(batch.flush());
}

async function refused(node: TestNode, ...rows: object[]): Promise<UniqueIndexError> {
  const batch = node.db.batch();
  for (const row of rows) void batch.upsert('users', row);
  const error = await nodes.failure(batch.flush());
  expect(error).toBeInstanceOf(UniqueIndexError);
  return error as UniqueIndexError;
}

const gone = new Date(1000);

describe.each([
  ['not merged', async () => {}],
  ['merged', (node: TestNode) => nodes.run(node.db.checkpoint())],
] as const)('a unique index on some rows, %s', (_, settle) => {
  it('allows equal rows outside, and none inside, on every node', async () => {
    await put(a, { id: 1, email: 'x', deletedAt: gone }, { id: 2, email: 'x', deletedAt: gone }, { id: 3, email: 'x' });
    await settle(a);
    const error = await refused(b, { id: 4, email: 'x' });
    expect(error).toMatchObject({ index: 'active', value: 'x', primaryKey: 4, otherKey: 3 });
    expect(error.message).toContain('is unique where deletedAt = null, and the rows with primary keys 4 and 3');
    await put(b, { id: 4, email: 'x', deletedAt: gone });
    // Rows enter, and leave.
    expect(await refused(b, { id: 4, email: 'x', deletedAt: null })).toMatchObject({ otherKey: 3 });
    await put(a, { id: 3, email: 'x', deletedAt: gone });
    await settle(a);
    await put(b, { id: 4, email: 'x', deletedAt: null });
    expect(await refused(a, { id: 5, email: 'x' })).toMatchObject({ otherKey: 4 });
    await put(a, { id: 4, email: 'x', deletedAt: gone }, { id: 5, email: 'x' });
    const { findings } = await nodes.run(a.db.verify({ deep: true }));
    expect(findings).toEqual([]);
  });

  it('is looked at by updates that change the condition alone', async () => {
    await put(a, { id: 1, email: 'x' }, { id: 2, email: 'x', deletedAt: gone });
    await settle(a);
    const batch = b.db.batch();
    void batch.update(users, { id: 2, deletedAt: null });
    expect(await nodes.failure(batch.flush())).toMatchObject({ code: 'UNIQUE_INDEX', primaryKey: 2, otherKey: 1 });
    void batch.update(users, { id: 1, deletedAt: gone });
    await nodes.run(batch.flush());
    const active = b.db.query(users).where('deletedAt', '=', null);
    expect(await nodes.run(active.execute())).toMatchObject([{ id: 2 }]);
  });
});

describe('queries', () => {
  const kinds = ['draft', 'live', 'gone', null] as const;

  beforeEach(async () => {
    const rows = Array.from({ length: 400 }, (_, id) => ({
      id,
      email: id % 10 === 0 ? null : `user ${id}`,
      deletedAt: id % 20 === 3 ? null : gone,
      kind: id % 25 === 0 ? kinds[(id / 25) % 4] : 'other',
      made: (id * 7) % 400,
    }));
    await put(a, ...rows);
    await nodes.run(a.db.checkpoint());
  });

  /** The indexes that the query could go by, the best first. */
  async function offered(query: Query): Promise<string[]> {
    const { index, alternatives } = await nodes.run(query.explain());
    return [index, ...alternatives.map((other) => other.index)].filter((name) => name !== undefined);
  }

  it('go by the index where their conditions imply its own', async () => {
    const { db } = a;
    const query = db.query(users).where('deletedAt', '=', null).where('email', '=', 'user 23');
    expect(await offered(query)).toEqual(['active', 'reachable']);
    expect(await nodes.run(query.execute())).toMatchObject([{ id: 23 }]);
    expect(await offered(db.query(users).where('deletedAt', '=', null))).toEqual(['active']);
    expect(await offered(db.query(users).where('kind', '=', 'live').where('made', '<', 100))).toEqual(['shown']);
    expect(await offered(db.query(users).where('kind', 'IN', ['live', 'draft']))).toEqual(['shown']);
    const { steps, filters } = await nodes.run(db.query(users).where('kind', 'IN', ['live', 'draft']).explain());
    expect(steps[0]?.description).toBe("Reads 1 range of index 'shown' (rows where kind IN ('draft', 'live')).");
    // All of its rows match, so that none is tested.
    expect(filters).toEqual([]);
    const first = db.query(users).where('deletedAt', '=', null).where('email', '!=', null).orderBy('made').limit(3);
    expect(await nodes.run(first.explain())).toMatchObject({ index: 'reachable', order: 'access', filters: [] });
    expect((await nodes.run(first.execute())).map(({ made }) => made)).toEqual([1, 21, 41]);
    const either = db
      .query(users)
      .where(({ is, or, and }) => or(is('kind', '=', 'live'), and(is('kind', '=', 'draft'), is('made', '>', 5))));
    expect(await offered(either)).toEqual(['shown']);
  });

  it('count by the index alone', async () => {
    const query = a.db.query(users).where('deletedAt', '=', null);
    a.driver.takeLines();
    expect(await nodes.run(query.count())).toBe(20);
    expect(await nodes.run(query.where('email', '>=', 'user 3').count())).toBe(
      [...Array(20).keys()].filter((i) => `user ${i * 20 + 3}` >= 'user 3').length,
    );
    expect(await nodes.run(query.min('email'))).toBe('user 103');
  });

  it('leave it where a row that matches may be outside', async () => {
    const { db } = a;
    const outside = [
      db.query(users).where('email', '=', 'user 23'),
      db.query(users).where('email', '=', 'user 23').where('deletedAt', '>', new Date(5)),
      db.query(users).where('email', '=', 'user 23').where('deletedAt', '!=', null),
      db.query(users).where('kind', 'IN', ['live', 'gone']).where('made', '<', 100),
      db.query(users).where('kind', 'IN', ['live', null]),
      db.query(users).where('kind', 'PREFIX', 'li'),
      db.query(users).where('kind', '!=', 'other').where('made', '<', 9),
      db.query(users).where(({ is, or }) => or(is('deletedAt', '=', null), is('email', '=', 'user 1'))),
      db
        .query(users)
        .where(({ is, not }) => not(is('kind', '=', 'gone')))
        .where('made', '=', 7),
    ];
    for (const query of outside) expect(await offered(query as Query)).toEqual([]);
    const [, other] = outside;
    expect(await nodes.run((other as (typeof outside)[number]).execute())).toEqual([]);
    const mixed = db.query(users).where('kind', 'IN', ['live', 'gone']).select('id', 'kind');
    expect((await nodes.run(mixed.execute())).map(({ id }) => id)).toEqual([25, 50, 125, 150, 225, 250, 325, 350]);
  });

  it('see rows enter and leave that are not merged yet', async () => {
    await put(b, { id: 1, email: 'new', deletedAt: null, made: 5 }, { id: 23, email: 'left', deletedAt: gone });
    await nodes.run(a.db.refresh());
    const query = a.db.query(users).where('deletedAt', '=', null).where('email', '!=', null);
    const found = await nodes.run(query.orderBy('email').select('id').execute());
    expect(found.map(({ id }) => id)).toContain(1);
    expect(found.map(({ id }) => id)).not.toContain(23);
    const overlay = a.db.batch();
    void overlay.update(users, { id: 43, deletedAt: gone });
    const over = await nodes.run(query.overlay(overlay).execute());
    expect(over.map(({ id }) => id)).not.toContain(43);
    expect(over).toHaveLength(found.length - 1);
  });
});
