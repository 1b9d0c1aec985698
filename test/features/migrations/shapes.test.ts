/** The changes that a new version may make, from the first row on both sides until the old version is gone. */
import { beforeEach, describe, expect, it } from 'vitest';
import { Types } from '../../../src/format/types.ts';
import type { SchemaDefinition } from '../../../src/schema/schema.ts';
import { Fleet } from './fleet.ts';
import type { Member } from './fleet.ts';
import type { Row } from './versions.ts';

let fleet: Fleet;

beforeEach(() => {
  fleet = new Fleet();
});

type Fields = SchemaDefinition['fields'];

function users(version: number, fields: Fields, more: Partial<SchemaDefinition> = {}): SchemaDefinition {
  return { name: 'users', version, fields, primaryKey: 'id', ...more };
}

const uint32 = { typeId: Types.uint32 };
const varchar = { typeId: Types.varchar };

/** Takes rows of one version to another, with `meanwhile` before it switches, and looks at the result all along. */
async function migrate(
  from: SchemaDefinition,
  to: SchemaDefinition,
  rows: readonly Row[],
  expected: readonly Row[],
  meanwhile: (one: Member, two: Member) => Promise<void> = async () => {},
): Promise<Member> {
  const one = await fleet.open(1, [from]);
  await fleet.write(one, 'insert', rows);
  await fleet.run(one.db.checkpoint());
  const two = await fleet.open(2, [to]);
  await fleet.run(two.db.setTargetSchemaVersion('users', to.version, { rowsPerSecond: 20 }));
  await meanwhile(one, two);
  await fleet.until(two, 'switched');
  expect(await fleet.rows(two)).toEqual(expected);
  expect(await fleet.findings(two)).toEqual([]);
  await fleet.run(one.db.stop());
  await fleet.untilRetired(two);
  expect(await fleet.rows(two)).toEqual(expected);
  expect(await fleet.findings(two)).toEqual([]);
  expect(await fleet.leftovers(two)).toEqual({ missing: [], superfluous: [] });
  return two;
}

const numbers = Array.from({ length: 60 }, (_, i) => i);

describe('a new version', () => {
  it('adds and drops indexes', async () => {
    const fields = { id: uint32, a: varchar, b: uint32 };
    const rows = numbers.map((id) => ({ id, a: `a${id % 7}`, b: id % 5 }));
    const two = await migrate(users(1, fields, { indexes: ['a'] }), users(2, fields, { indexes: ['b'] }), rows, rows);
    const query = two.db.query('users').where('b', '=', 3);
    const { access, index, alternatives } = await fleet.run(query.explain());
    expect([{ access, index }, ...alternatives]).toContainEqual(
      expect.objectContaining({ access: 'index', index: 'b' }),
    );
    expect(await fleet.run(query.count())).toBe(12);
    expect((await fleet.block0()).tables[0]?.versions[0]?.indexes.map(({ name }) => name)).toEqual(['b']);
    expect((await fleet.namesIn('indexes')).filter((name) => name.startsWith('indexes/users/a/'))).toEqual([]);
  });

  it('widens numbers, and turns them into text', async () => {
    const from = users(1, {
      id: uint32,
      n: { typeId: Types.int8 },
      f: { typeId: Types.float32 },
      t: { typeId: Types.uint16 },
    });
    const to = users(
      2,
      { id: uint32, n: { typeId: Types.int64 }, f: { typeId: Types.float64 }, t: varchar },
      { indexes: ['n'] },
    );
    const rows = numbers.map((id) => ({ id, n: id - 30, f: id / 4, t: id * 3 }));
    await migrate(
      from,
      to,
      rows,
      rows.map(({ id, n, f, t }) => ({ id, n: BigInt(n), f, t: String(t) })),
    );
  });

  it('splits a field, and both versions write it meanwhile', async () => {
    const from = users(
      1,
      { id: uint32, name: varchar },
      {
        migrate: ({ id, first, last }) => ({ id, name: `${String(first)} ${String(last)}` }),
      },
    );
    const to = users(
      2,
      { id: uint32, first: varchar, last: varchar },
      {
        indexes: ['last'],
        migrate: ({ id, name }) => {
          const [first, last] = String(name).split(' ');
          return { id, first, last };
        },
      },
    );
    const rows = numbers.map((id) => ({ id, name: `first${id} last${id}` }));
    const expected: Row[] = numbers.map((id) => ({ id, first: `first${id}`, last: `last${id}` }));
    expected[5] = { id: 5, first: 'Ada', last: 'Lovelace' };
    expected[6] = { id: 6, first: 'first6', last: 'new' };
    expected[50] = { id: 50, first: 'Alan', last: 'Turing' };
    await migrate(from, { ...to }, rows, expected, async (one, two) => {
      await fleet.write(one, 'update', [
        { id: 5, name: 'Ada Lovelace' },
        { id: 50, name: 'Alan Turing' },
      ]);
      await fleet.write(two, 'update', [{ id: 6, last: 'new' }]);
      expect(await fleet.row(two, 50)).toEqual({ id: 50, first: 'Alan', last: 'Turing' });
    });
  });

  it.each<[string, Fields, Fields, (id: number) => unknown, (id: number) => unknown]>([
    [
      'a wider number',
      { id: { typeId: Types.uint16 } },
      { id: { typeId: Types.int64 } },
      (id) => id * 7,
      (id) => BigInt(id * 7),
    ],
    ['text', { id: uint32 }, { id: varchar }, (id) => id * 7, (id) => String(id * 7)],
    [
      'a number from text',
      { id: varchar },
      { id: { typeId: Types.int32 } },
      (id) => String(id * 7 - 100),
      (id) => id * 7 - 100,
    ],
  ])('has %s for its primary key', async (_, before, after, keyBefore, keyAfter) => {
    const from = users(1, { ...before, n: uint32, only: varchar }, { indexes: ['n'] });
    const to = users(2, { ...after, n: uint32, added: varchar }, { indexes: ['n'] });
    const rows = numbers.map((id) => ({ id: keyBefore(id), n: id, only: 'o' }));
    const expected = [...numbers.filter((id) => id !== 3), 1000].map((id) => ({
      id: keyAfter(id),
      n: id === 55 ? 5 : id,
      added: null,
    }));
    const order = (a: Row, b: Row): number => (String(a['id']) < String(b['id']) ? -1 : 1);
    const byNumber = (a: Row, b: Row): number => Number(a['id']) - Number(b['id']);
    const isText = after['id']?.typeId === Types.varchar;
    const two = await migrate(from, to, rows, expected.toSorted(isText ? order : byNumber), async (one, other) => {
      // Until all rows are made, those with the new version wait, and those with the old one do not.
      expect(await fleet.failure(other.db.query('users').execute())).toMatchObject({ code: 'MIGRATION_PENDING' });
      await fleet.write(one, 'insert', [{ id: keyBefore(1000), n: 1000, only: 'late' }]);
      await fleet.deleteRows(one, [keyBefore(3)]);
      await fleet.until(one, 'switched');
      await fleet.write(one, 'update', [{ id: keyBefore(55), n: 5 }]);
      await fleet.advance(5000);
    });
    await fleet.write(two, 'insert', [{ id: keyAfter(2000), n: 1, added: 'x' }]);
    expect(await fleet.row(two, keyAfter(2000))).toMatchObject({ added: 'x' });
  });

  it('stops at a key that the new type cannot hold', async () => {
    const one = await fleet.open(1, [users(1, { id: varchar })]);
    await fleet.write(one, 'insert', [{ id: '12' }, { id: '012' }]);
    const two = await fleet.open(2, [users(2, { id: uint32 })]);
    await fleet.run(two.db.setTargetSchemaVersion('users', 2));
    const { blockers } = await fleet.until(two, 'blocked');
    expect(blockers).toEqual([expect.stringMatching(/^Row '012': Its primary key cannot be one of version 2: /)]);
    await fleet.deleteRows(one, ['012']);
    await fleet.run(two.db.setTargetSchemaVersion('users', 2));
    await fleet.until(two, 'switched');
    expect(await fleet.rows(two)).toEqual([{ id: 12 }]);
  });

  it('renames the primary key', async () => {
    const rows = numbers.map((id) => ({ id, n: id }));
    const to = users(2, { key: uint32, n: uint32 }, { primaryKey: 'key' });
    await migrate(
      users(1, { id: uint32, n: uint32 }),
      to,
      rows,
      rows.map(({ id, n }) => ({ key: id, n })),
    );
  });

  it('keeps blobs', async () => {
    const photo = { typeId: Types.blob };
    const one = await fleet.open(1, [users(1, { id: uint32, photo })]);
    await fleet.write(one, 'insert', [
      { id: 1, photo: one.db.Blob('first') },
      { id: 2, photo: one.db.Blob('second') },
    ]);
    const two = await fleet.open(2, [users(2, { id: uint32, photo, title: varchar })]);
    await fleet.run(two.db.setTargetSchemaVersion('users', 2));
    await fleet.until(two, 'switched');
    await fleet.write(two, 'update', [{ id: 1, title: 'one', photo: two.db.Blob('changed') }]);
    await fleet.deleteRows(two, [2]);
    await fleet.advance(3000);
    await fleet.run(one.db.stop());
    await fleet.untilRetired(two);
    const row = await fleet.row(two, 1);
    expect(await fleet.run(two.db.getBlob(row?.['photo'] as string).getString())).toBe('changed');
    expect(await fleet.findings(two)).toEqual([]);
    expect(await fleet.leftovers(two)).toEqual({ missing: [], superfluous: [] });
    expect(await fleet.namesIn('blobs')).toHaveLength(1);
  });
});

it('goes through many versions, one after the other', async () => {
  const first = await fleet.open(1, [users(1, { id: uint32, a: uint32 })]);
  await fleet.write(
    first,
    'insert',
    numbers.map((id) => ({ id, a: id })),
  );
  await fleet.run(first.db.stop());
  let last: Member | undefined;
  for (let version = 2; version <= 5; version++) {
    const fields = {
      id: uint32,
      a: { typeId: version % 2 === 0 ? Types.uint64 : Types.uint32 },
      [`v${version}`]: varchar,
    };
    const next = await fleet.open(version % 2, [users(version, fields)]);
    await fleet.run(next.db.setTargetSchemaVersion('users', version));
    if (last !== undefined) await fleet.run(last.db.stop());
    await fleet.untilRetired(next);
    expect(await fleet.row(next, 7)).toEqual({ id: 7, a: version % 2 === 0 ? 7n : 7, [`v${version}`]: null });
    last = next;
  }
  expect(await fleet.findings(last as Member)).toEqual([]);
  expect(await fleet.leftovers(last as Member)).toEqual({ missing: [], superfluous: [] });
});
