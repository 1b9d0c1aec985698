/** Unique indexes: which flushes they refuse, and which not. */
import { beforeEach, describe, expect, it } from 'vitest';
import { UniqueIndexError } from '../../../src/base/errors.ts';
import { Database } from '../../../src/api/database.ts';
import { Types } from '../../../src/format/types.ts';
import { Instance } from '../../../src/instance/instance.ts';
import { checkOptions } from '../../../src/instance/options.ts';
import type { StoreDbOptions } from '../../../src/instance/options.ts';
import { Nodes } from '../protocol/nodes.ts';
import type { TestNode } from '../protocol/nodes.ts';

const users = {
  name: 'users',
  version: 1,
  fields: {
    id: { typeId: Types.uint32 },
    email: { typeId: Types.varchar },
    team: { typeId: Types.uint8 },
    seat: { typeId: Types.uint8 },
    note: { typeId: Types.varchar },
  },
  primaryKey: 'id',
  indexes: [{ fields: ['email'], unique: true }, { fields: ['team', 'seat'], unique: true, name: 'place' }, 'note'],
} as const;

interface User {
  readonly id: number;
  readonly email?: string | null;
  readonly team?: number | null;
  readonly seat?: number | null;
  readonly note?: string;
}

let nodes: Nodes;
let a: TestNode;

async function open(nodeId: number, options: Partial<StoreDbOptions> = {}): Promise<TestNode> {
  const node = nodes.make(nodeId, options);
  node.db.registerSchema(users);
  await nodes.run(node.db.start());
  return node;
}

beforeEach(async () => {
  nodes = new Nodes();
  a = await open(0);
});

type Kind = 'insert' | 'update' | 'upsert';

function flush({ db }: TestNode, kind: Kind, ...rows: User[]): Promise<void> {
  const batch = db.batch();
  for (const row of rows) void batch[kind](users, row);
  return batch.flush();
}

async function refused(flushed: Promise<void>): Promise<UniqueIndexError> {
  const error = await nodes.failure(flushed);
  if (!(error instanceof UniqueIndexError)) throw error;
  return error;
}

const long = 'x'.repeat(2000);

/** Where the row that stands in the way is: in blocks, in a commit that is not merged, or in both. */
const stages: readonly (readonly [string, (node: TestNode) => Promise<void>])[] = [
  ['not merged', async () => {}],
  ['merged', ({ db }) => nodes.run(db.checkpoint())],
];

describe.each(stages)('a value that another row has, %s', (_, settle) => {
  it('is refused, by any operation, and nothing is written', async () => {
    await nodes.run(flush(a, 'insert', { id: 1, email: 'a@b' }, { id: 2, email: 'c@d' }));
    await settle(a);
    for (const kind of ['insert', 'update', 'upsert'] as const) {
      const id = kind === 'insert' ? 3 : 2;
      const error = await refused(flush(a, kind, { id, email: 'a@b', note: 'new' }));
      expect(error).toMatchObject({ code: 'UNIQUE_INDEX', table: 'users', index: 'email', value: 'a@b' });
      expect(error).toMatchObject({ primaryKey: id, otherKey: 1 });
      expect(error.message).toContain('primary keys ' + id + " and 1 would both have 'a@b' there");
    }
    expect(await nodes.run(a.db.query(users).where('note', '=', 'new').count())).toBe(0);
    expect(await nodes.run(a.db.query(users).count())).toBe(2);
  });

  it('is none of the same value in one field of several', async () => {
    await nodes.run(flush(a, 'insert', { id: 1, team: 1, seat: 1 }, { id: 2, team: 1, seat: 2 }));
    await settle(a);
    await nodes.run(flush(a, 'insert', { id: 3, team: 2, seat: 1 }));
    expect(await refused(flush(a, 'upsert', { id: 4, team: 1, seat: 2 }))).toMatchObject({
      index: 'place',
      value: [1, 2],
      primaryKey: 4,
      otherKey: 2,
    });
  });

  it('may be null as often as one likes', async () => {
    await nodes.run(flush(a, 'insert', { id: 1, email: null, team: 1 }, { id: 2, team: 1 }));
    await settle(a);
    await nodes.run(flush(a, 'insert', { id: 3, email: null, team: 1 }, { id: 4, seat: 2 }, { id: 5, seat: 2 }));
    expect(await nodes.run(a.db.query(users).where('email', '=', null).count())).toBe(5);
  });

  it('is compared whole, however little of it the index holds', async () => {
    await nodes.run(flush(a, 'insert', { id: 1, email: `${long}1` }, { id: 2, email: `${long}2` }));
    await settle(a);
    await nodes.run(flush(a, 'insert', { id: 3, email: `${long}3` }, { id: 4, email: long }));
    await nodes.run(flush(a, 'insert', { id: 5, email: long.slice(0, 1024) }));
    expect(await refused(flush(a, 'insert', { id: 6, email: `${long}2` }))).toMatchObject({ otherKey: 2 });
    expect(await refused(flush(a, 'insert', { id: 6, email: long.slice(0, 1024) }))).toMatchObject({ otherKey: 5 });
  });

  it('is free again once the other row is deleted, or has another one', async () => {
    await nodes.run(flush(a, 'insert', { id: 1, email: 'a' }, { id: 2, email: 'b' }, { id: 3, email: 'c' }));
    await settle(a);
    const batch = a.db.batch();
    void batch.delete(users, 1);
    void batch.update(users, { id: 2, email: 'd' });
    void batch.upsert(users, { id: 3 });
    await nodes.run(batch.flush());
    await nodes.run(flush(a, 'insert', { id: 4, email: 'a' }, { id: 5, email: 'b' }, { id: 6, email: 'c' }));
    expect(await refused(flush(a, 'insert', { id: 7, email: 'd' }))).toMatchObject({ otherKey: 2 });
  });

  it('may be swapped, handed on and taken over in one batch', async () => {
    await nodes.run(flush(a, 'insert', { id: 1, email: 'a' }, { id: 2, email: 'b' }, { id: 3, email: 'c' }));
    await settle(a);
    await nodes.run(flush(a, 'update', { id: 1, email: 'b' }, { id: 2, email: 'c' }, { id: 3, email: 'a' }));
    const batch = a.db.batch();
    void batch.delete(users, 1);
    void batch.insert(users, { id: 4, email: 'b' });
    await nodes.run(batch.flush());
    const rows = await nodes.run(a.db.query(users).select('id', 'email').execute());
    expect(rows).toEqual([
      { id: 2, email: 'c' },
      { id: 3, email: 'a' },
      { id: 4, email: 'b' },
    ]);
  });

  it('is refused though the row that has it is written in the same batch without being changed there', async () => {
    await nodes.run(flush(a, 'insert', { id: 1, email: 'a' }));
    await settle(a);
    expect(await refused(flush(a, 'upsert', { id: 1, email: 'a', note: 'x' }, { id: 2, email: 'a' }))).toMatchObject({
      otherKey: 1,
    });
    const batch = a.db.batch();
    void batch.update(users, { id: 1, note: 'x' });
    void batch.insert(users, { id: 2, email: 'a' });
    expect(await refused(batch.flush())).toMatchObject({ otherKey: 1 });
    batch.clear();
    await nodes.run(flush(a, 'update', { id: 1, email: 'a', note: 'y' }));
    await nodes.run(flush(a, 'upsert', { id: 1, email: 'a' }));
  });
});

describe('a flush', () => {
  it('is refused for two rows of its own', async () => {
    const error = await refused(flush(a, 'insert', { id: 2, email: 'a' }, { id: 1, email: 'a' }));
    expect(error).toMatchObject({ primaryKey: 2, otherKey: 1 });
    expect(await nodes.run(a.db.query(users).count())).toBe(0);
  });

  it('is judged by its result, not by states in between', async () => {
    const batch = a.db.batch();
    void batch.insert(users, { id: 1, email: 'a' });
    void batch.insert(users, { id: 2, email: 'a' });
    void batch.update(users, { id: 1, email: 'b' });
    await nodes.run(batch.flush());
    expect(await nodes.run(a.db.query(users).where('email', '=', 'a').execute())).toMatchObject([{ id: 2 }]);
  });

  it('that leaves its values as they are looks for none of them', async () => {
    const filled = await open(1, { blockSizeBytes: 1024 });
    const rows = Array.from({ length: 400 }, (_, id) => ({ id, email: `someone-${id}@example.com` }));
    await nodes.run(flush(filled, 'insert', ...rows));
    await nodes.run(filled.db.checkpoint());
    // An instance that has nothing in memory.
    const b = await open(2, { blockSizeBytes: 1024 });
    const looked = (): string[] => b.driver.takeLines().filter((line) => /indexes\/users\/(?:email|place)/.test(line));
    looked();
    await nodes.run(flush(b, 'update', { id: 3, note: 'changed' }, { id: 4, email: 'someone-4@example.com' }));
    expect(looked()).toEqual([]);
    await nodes.run(flush(b, 'update', { id: 5, email: 'else@example.com' }));
    expect(looked()).not.toEqual([]);
  });

  it('keeps its operations, and can be put right', async () => {
    await nodes.run(flush(a, 'insert', { id: 1, email: 'a' }));
    const batch = a.db.batch();
    void batch.insert(users, { id: 2, email: 'a' });
    await refused(batch.flush());
    expect(batch.size).toBe(1);
    void batch.update(users, { id: 2, email: 'b' });
    await nodes.run(batch.flush());
    expect(await nodes.run(a.db.query(users).count())).toBe(2);
  });

  it('is refused because of another flush of the same commit', async () => {
    const flushes = [1, 2, 3].map((id) => flush(a, 'insert', { id, email: 'a' }));
    const settled = await nodes.run(Promise.allSettled(flushes));
    expect(settled.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'rejected']);
    expect(settled[2]).toMatchObject({ reason: { code: 'UNIQUE_INDEX', primaryKey: 3, otherKey: 1 } });
  });

  it('is refused because of commits of others meanwhile', async () => {
    const b = await open(1);
    await nodes.run(flush(a, 'insert', { id: 1, email: 'a' }));
    expect(await refused(flush(b, 'insert', { id: 2, email: 'a' }))).toMatchObject({ otherKey: 1 });
  });

  it('is not refused because of a row whose deletion this instance has not seen yet', async () => {
    await nodes.run(flush(a, 'insert', { id: 1, email: 'a' }));
    const b = await open(1);
    const batch = a.db.batch();
    void batch.delete(users, 1);
    await nodes.run(batch.flush());
    await nodes.run(flush(b, 'insert', { id: 2, email: 'a' }));
    expect(await nodes.run(b.db.query(users).execute())).toMatchObject([{ id: 2 }]);
  });

  it('may belong to a transaction', async () => {
    await nodes.run(flush(a, 'insert', { id: 1, email: 'a' }));
    const failed = a.db.transaction(async (tx) => {
      await tx.insert(users, { id: 2, email: 'a' });
    });
    expect(await nodes.failure(failed)).toMatchObject({ code: 'UNIQUE_INDEX', primaryKey: 2, otherKey: 1 });
  });
});

describe('a staged flush', () => {
  const count = 3000;

  /** Everything is staged: a commit may hold next to nothing itself. */
  async function staging(nodeId: number): Promise<TestNode> {
    const node = nodes.make(nodeId);
    const options = { dbPrefix: 'db', nodeId, driver: node.driver, logLevel: 'silent', blockSizeBytes: 4096 } as const;
    const checked = checkOptions({ ...options, writeForwardInterval: 86_400_000 }, () => undefined);
    const db = new Database(new Instance(checked, nodes.environment, 1024));
    db.registerSchema(users);
    await nodes.run(db.start());
    return { ...node, db };
  }

  it('is refused before anything of it is stored, and stands in the way of later ones', async () => {
    const staged = await staging(1);
    const rows = Array.from({ length: count }, (_, id) => ({ id, email: `user ${(id * 7) % count}`, team: 1 }));
    const keys = await nodes.keys();
    expect(await refused(flush(staged, 'insert', ...rows, { id: count, email: 'user 14' }))).toMatchObject({
      value: 'user 14',
      primaryKey: count,
      otherKey: 2,
    });
    expect(await nodes.keys()).toEqual(keys);
    // Merging begins by itself after such a flush: not yet.
    for (const { driver } of [a, staged]) {
      driver.onPut(/^(data|indexes)/, () => Promise.reject(new Error('not now')), Number.POSITIVE_INFINITY);
    }
    await nodes.run(flush(staged, 'insert', ...rows));
    expect((await nodes.keys()).some((key) => key.startsWith('staged/'))).toBe(true);
    await nodes.run(a.db.refresh());
    for (const node of [a, staged]) {
      expect(await refused(flush(node, 'insert', { id: 9000, email: 'user 21' }))).toMatchObject({ otherKey: 3 });
    }
    // Rows that a staged commit replaces count no more, those that it takes over do.
    const shifted = rows.map(({ id }) => ({ id, email: id < 10 ? `moved ${id}` : `user ${((id + 1) * 7) % count}` }));
    await nodes.run(flush(staged, 'update', ...shifted));
    await nodes.run(a.db.refresh());
    await nodes.run(flush(a, 'upsert', { id: 9000, email: 'user 21' }));
    expect(await refused(flush(a, 'upsert', { id: 9001, email: 'user 77' }))).toMatchObject({ otherKey: 10 });
    expect(await refused(flush(a, 'upsert', { id: 9001, email: 'moved 3' }))).toMatchObject({ otherKey: 3 });
    expect((await nodes.block0()).appliedSeq).toBe(0);
    a.driver.heal();
    await nodes.run(a.db.checkpoint());
    expect(await refused(flush(a, 'upsert', { id: 9001, email: 'user 77' }))).toMatchObject({ otherKey: 10 });
    expect(await nodes.run(a.db.verify())).toMatchObject({ ok: true });
  });
});
