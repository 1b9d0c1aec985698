import { describe, expect, it } from 'vitest';
import { DuplicateKeyError, MigrationError, RowNotFoundError } from '../../../src/base/errors.ts';
import type { TestNode } from '../protocol/nodes.ts';
import { users1, users2, Versions } from './versions.ts';

interface World {
  readonly versions: Versions;
  readonly v1: TestNode;
  readonly v2: TestNode;
}

/** What happens between two steps: nothing, or a merge by either. */
const merges = {
  unmerged: async () => {},
  'merged by the old one': ({ versions, v1 }: World) => versions.merge(v1),
  'merged by the new one': ({ versions, v2 }: World) => versions.merge(v2),
  'merged by both': async ({ versions, v1, v2 }: World) => {
    await versions.merge(v1);
    await versions.merge(v2);
  },
} as const;

async function world(): Promise<World> {
  const versions = new Versions();
  const v1 = await versions.open(1, [users1]);
  await versions.write(v1, 'insert', [
    { id: 1, name: 'Ann', age: 31, old: 'a' },
    { id: 2, name: 'Bob', age: 32, old: 'b' },
    { id: 3, name: 'Cleo', age: 33, old: 'c' },
  ]);
  return { versions, v1, v2: await versions.open(2, [users2]) };
}

for (const [name, merge] of Object.entries(merges)) {
  describe(`two versions side by side, ${name}`, () => {
    it('the new one sees the old rows as its own', async () => {
      const given = await world();
      const { versions, v2 } = given;
      await merge(given);
      expect(await versions.rows(v2)).toEqual([
        { id: 1, name: 'Ann', age: 31, email: null, level: 3 },
        { id: 2, name: 'Bob', age: 32, email: null, level: 3 },
        { id: 3, name: 'Cleo', age: 33, email: null, level: 3 },
      ]);
      expect(await versions.row(v2, 2)).toEqual({ id: 2, name: 'Bob', age: 32, email: null, level: 3 });
      expect(await versions.row(v2, 9)).toBeUndefined();
    });

    it('fields of one version survive writes of the other', async () => {
      const given = await world();
      const { versions, v1, v2 } = given;
      await merge(given);
      await versions.write(v2, 'update', [{ id: 1, email: 'ann@x', level: 9 }]);
      await merge(given);
      expect(await versions.row(v1, 1)).toEqual({ id: 1, name: 'Ann', age: 31, old: 'a' });
      await versions.write(v1, 'update', [{ id: 1, name: 'Anna', old: 'aa' }]);
      await merge(given);
      expect(await versions.row(v2, 1)).toEqual({ id: 1, name: 'Anna', age: 31, email: 'ann@x', level: 9 });
      await versions.write(v2, 'update', [{ id: 1, age: 40 }]);
      await merge(given);
      expect(await versions.row(v1, 1)).toEqual({ id: 1, name: 'Anna', age: 40, old: 'aa' });
      expect(await versions.row(v2, 1)).toEqual({ id: 1, name: 'Anna', age: 40, email: 'ann@x', level: 9 });
      await versions.write(v1, 'update', [{ id: 1, age: 41 }]);
      await versions.write(v2, 'update', [{ id: 1, level: 1 }]);
      await versions.write(v1, 'update', [{ id: 1, name: 'A' }]);
      await merge(given);
      expect(await versions.row(v1, 1)).toEqual({ id: 1, name: 'A', age: 41, old: 'aa' });
      expect(await versions.row(v2, 1)).toEqual({ id: 1, name: 'A', age: 41, email: 'ann@x', level: 1 });
      expect(await versions.findings(v1)).toEqual([]);
      expect(await versions.findings(v2)).toEqual([]);
    });

    it('both insert, delete and replace, and keys are unique', async () => {
      const given = await world();
      const { versions, v1, v2 } = given;
      await versions.write(v2, 'insert', [{ id: 4, name: 'Dan', age: 300, email: 'd@x' }]);
      await merge(given);
      // What the old type cannot hold is null for the old one, and stays with the new one.
      expect(await versions.row(v1, 4)).toEqual({ id: 4, name: 'Dan', age: null, old: null });
      expect(await versions.row(v2, 4)).toEqual({ id: 4, name: 'Dan', age: 300, email: 'd@x', level: 3 });
      const insert = async (node: TestNode, id: number): Promise<Error> => {
        const batch = node.db.batch();
        void batch.insert('users', { id, name: 'again' });
        return versions.failure(batch.flush());
      };
      expect(await insert(v1, 4)).toBeInstanceOf(DuplicateKeyError);
      expect(await insert(v2, 1)).toBeInstanceOf(DuplicateKeyError);
      await versions.delete(v2, [1]);
      await versions.delete(v1, [4]);
      await merge(given);
      for (const node of [v1, v2]) {
        expect(await versions.row(node, 1)).toBeUndefined();
        expect(await versions.row(node, 4)).toBeUndefined();
        const batch = node.db.batch();
        void batch.update('users', { id: 4, name: 'x' });
        expect(await versions.failure(batch.flush())).toBeInstanceOf(RowNotFoundError);
      }
      // Nothing of the deleted row comes back with a new one of its key.
      await versions.write(v1, 'insert', [{ id: 4, name: 'Dan', age: null }]);
      await merge(given);
      expect(await versions.row(v2, 4)).toEqual({ id: 4, name: 'Dan', age: null, email: null, level: 3 });
      await versions.write(v2, 'upsert', [{ id: 2, name: 'Bobby', age: 7, email: 'b@x' }]);
      await versions.write(v1, 'upsert', [{ id: 3, name: 'C', age: 8, old: 'x' }]);
      await merge(given);
      expect(await versions.row(v1, 2)).toEqual({ id: 2, name: 'Bobby', age: 7, old: 'b' });
      expect(await versions.row(v2, 3)).toEqual({ id: 3, name: 'C', age: 8, email: null, level: 3 });
      expect((await versions.rows(v1)).map(({ id }) => id)).toEqual([2, 3, 4]);
      expect((await versions.rows(v2)).map(({ id }) => id)).toEqual([2, 3, 4]);
      expect(await versions.findings(v2)).toEqual([]);
    });

    it('queries by index, count and order see the same', async () => {
      const given = await world();
      const { versions, v1, v2 } = given;
      const more = Array.from({ length: 60 }, (_, i) => ({ id: 10 + i, name: `n${i % 7}`, age: i, old: `o${i}` }));
      await versions.write(v1, 'insert', more);
      await merge(given);
      await versions.write(
        v2,
        'update',
        more.filter(({ id }) => id % 3 === 0).map(({ id }) => ({ id, email: `${id}@x`, age: id })),
      );
      await merge(given);
      await versions.write(
        v1,
        'update',
        more.filter(({ id }) => id % 2 === 0).map(({ id }) => ({ id, age: 200 - id })),
      );
      await versions.delete(v1, [12, 13]);
      await merge(given);
      const all = await versions.rows(v2);
      expect(all.length).toBe(61);
      const { db } = v2;
      for (const age of [15, 31, 188, 170, 46]) {
        const expected = all.filter((row) => row['age'] === age);
        expect(await versions.run(db.query('users').where('age', '=', age).execute())).toEqual(expected);
      }
      const named = all.filter((row) => row['name'] === 'n3');
      expect(await versions.run(db.query('users').where('name', '=', 'n3').execute())).toEqual(named);
      expect(await versions.run(db.query('users').where('name', '=', 'n3').count())).toBe(named.length);
      expect(await versions.run(db.query('users').count())).toBe(61);
      const sorted = all.toSorted((a, b) => Number(b['age']) - Number(a['age']) || Number(a['id']) - Number(b['id']));
      const first = await versions.run(db.query('users').orderBy('age', 'desc').limit(20).execute());
      expect(first).toEqual(sorted.slice(0, 20));
      const range = await versions.run(db.query('users').where('id', '>=', 30).where('id', '<', 40).execute());
      expect(range).toEqual(all.filter((row) => Number(row['id']) >= 30 && Number(row['id']) < 40));
      expect(await versions.findings(v1)).toEqual([]);
    });
  });
}

describe("a migrate of the old version's own that fails", () => {
  it('rejects the flush with an error that names the row, and nothing is written', async () => {
    const versions = new Versions();
    const broken = {
      ...users1,
      migrate: (): never => {
        throw new Error('as it happens');
      },
    };
    const v1 = await versions.open(1, [users1]);
    await versions.write(v1, 'insert', [{ id: 1, name: 'Ann', age: 31, old: 'a' }]);
    const v2 = await versions.open(2, [broken, users2]);
    const error: unknown = await versions
      .write(v2, 'update', [{ id: 1, name: 'Anna' }])
      .catch((caught: unknown) => caught);
    expect(error).toBeInstanceOf(MigrationError);
    expect(error).toMatchObject({ name: 'MigrationError', code: 'MIGRATION', table: 'users', primaryKey: 1 });
    expect((error as Error).message).toMatch(
      /primary key 1 .* version 1, .* threw: as it happens. Nothing was written/,
    );
    expect(await versions.row(v1, 1)).toEqual({ id: 1, name: 'Ann', age: 31, old: 'a' });
  });
});
