/** Renamed fields keep their values in a new version, in both versions, on any instance. */
import { beforeEach, describe, expect, it } from 'vitest';
import { InvalidSchemaError } from '../../../src/base/errors.ts';
import { Types } from '../../../src/format/types.ts';
import { renamesVersion } from '../../../src/format/version.ts';
import { toStoredSchema } from '../../../src/schema/schema.ts';
import type { SchemaDefinition } from '../../../src/schema/schema.ts';
import { Fleet } from './fleet.ts';
import type { Member } from './fleet.ts';
import type { Row } from './versions.ts';

const uint32 = { typeId: Types.uint32 };
const varchar = { typeId: Types.varchar };

function users(version: number, fields: SchemaDefinition['fields'], more: Partial<SchemaDefinition> = {}) {
  return { name: 'users', version, fields, primaryKey: 'id', ...more } satisfies SchemaDefinition;
}

const users1 = users(
  1,
  { id: uint32, name: varchar, age: { typeId: Types.uint8 }, old: varchar },
  { indexes: ['name'] },
);
const users2 = users(
  2,
  { id: uint32, fullName: varchar, years: { typeId: Types.int32 }, email: varchar },
  { indexes: ['fullName', 'years'], renames: { fullName: 'name', years: 'age' } },
);

let fleet: Fleet;

beforeEach(() => {
  fleet = new Fleet();
});

describe('a definition that renames fields', () => {
  const fields = { id: uint32, title: varchar, text: varchar };
  it.each<[string, unknown, RegExp]>([
    ['an unknown field', { titel: 'name' }, /renames 'titel', which is none of its fields/],
    ['a name that is still there', { title: 'text' }, /cannot have been called 'text'.* a field of this version/],
    ['its own name', { title: 'title' }, /cannot have been called 'title'/],
    ['one name of two fields', { title: 'name', text: 'name' }, /the old name 'name' twice, to 'title' and 'text'/],
    ['one name twice', { title: ['name', 'name'] }, /the old name 'name' twice, to 'title'/],
    ['no name', { title: [] }, /must give the name that it had/],
    ['what is no name', { title: 5 }, /old name of field 'title' must be a string/],
    ['an empty name', { title: '' }, /old name of field 'title' must be a string/],
    ['a list', ['title'], /must be an object from new names of fields to old ones/],
    ['nothing', null, /must be an object/],
  ])('is refused for %s', (_, renames, message) => {
    const read = () => toStoredSchema({ name: 't', version: 2, fields, primaryKey: 'id', renames });
    expect(read).toThrow(InvalidSchemaError);
    expect(read).toThrow(message);
  });

  it('is another definition than one that renames otherwise', async () => {
    const one = await fleet.open(1, [users2]);
    expect(() => one.db.registerSchema({ ...users2, renames: {} })).toThrow(/was registered with another definition/);
    await fleet.write(one, 'insert', [{ id: 1, fullName: 'Ann' }]);
    await fleet.run(one.db.checkpoint());
    const [stored] = await fleet.run(one.db.tables());
    expect(stored?.renames).toEqual(users2.renames);
    const { renames: _, ...plain } = users2;
    const other = await fleet.open(2, []);
    expect(() => other.db.registerSchema(plain)).toThrow(/is stored with another definition/);
    other.db.registerSchema(stored as SchemaDefinition);
  });
});

const merges: Record<string, (one: Member, two: Member) => Promise<void>> = {
  unmerged: async () => {},
  'merged by the old one': (one) => fleet.run(one.db.checkpoint()),
  'merged by the new one': (_, two) => fleet.run(two.db.checkpoint()),
};

describe.each(Object.entries(merges))('two versions with other names side by side, %s', (_, merge) => {
  it("see each other's writes", async () => {
    const one = await fleet.open(1, [users1], { writeForwardInterval: 3_600_000 });
    await fleet.write(one, 'insert', [
      { id: 1, name: 'Ann', age: 31, old: 'a' },
      { id: 2, name: 'Bob', age: 32, old: 'b' },
    ]);
    const two = await fleet.open(2, [users2], { writeForwardInterval: 3_600_000 });
    await merge(one, two);
    expect(await fleet.row(two, 1)).toEqual({ id: 1, fullName: 'Ann', years: 31, email: null });
    await fleet.write(two, 'update', [{ id: 1, fullName: 'Anna', email: 'a@x' }]);
    await fleet.write(two, 'insert', [{ id: 3, fullName: 'Cleo', years: 33 }]);
    await merge(one, two);
    expect(await fleet.rows(one)).toEqual([
      { id: 1, name: 'Anna', age: 31, old: 'a' },
      { id: 2, name: 'Bob', age: 32, old: 'b' },
      { id: 3, name: 'Cleo', age: 33, old: null },
    ]);
    await fleet.write(one, 'update', [
      { id: 1, age: 41 },
      { id: 2, name: 'Bert' },
      { id: 3, name: null },
    ]);
    await merge(one, two);
    const expected = [
      { id: 1, fullName: 'Anna', years: 41, email: 'a@x' },
      { id: 2, fullName: 'Bert', years: 32, email: null },
      { id: 3, fullName: null, years: 33, email: null },
    ];
    expect(await fleet.rows(two)).toEqual(expected);
    const byName = async (member: Member, field: string, value: string): Promise<Row[]> =>
      fleet.run(member.db.query('users').where(field, '=', value).execute());
    expect(await byName(two, 'fullName', 'Bert')).toEqual([expected[1]]);
    expect(await byName(one, 'name', 'Anna')).toEqual([{ id: 1, name: 'Anna', age: 41, old: 'a' }]);
    await fleet.write(two, 'update', [{ id: 2, years: null }]);
    expect(await fleet.row(one, 2)).toEqual({ id: 2, name: 'Bert', age: null, old: 'b' });
    expect(await fleet.findings(one)).toEqual([]);
  });
});

/** Takes 60 rows of one version to another, and has the old version go. */
async function migrated(from: SchemaDefinition, to: SchemaDefinition, row: (id: number) => Row): Promise<Member> {
  const one = await fleet.open(1, [from]);
  await fleet.write(
    one,
    'insert',
    Array.from({ length: 60 }, (_, id) => row(id)),
  );
  await fleet.run(one.db.checkpoint());
  const two = await fleet.open(2, [to]);
  await fleet.run(two.db.setTargetSchemaVersion('users', to.version, { rowsPerSecond: 40 }));
  await fleet.until(two, 'switched');
  await fleet.run(one.db.stop());
  await fleet.untilRetired(two);
  expect(await fleet.findings(two)).toEqual([]);
  return two;
}

describe('a migration', () => {
  it('moves values to their new names without a migrate function, and says that they stay', async () => {
    const two = await migrated(users1, users2, (id) => ({ id, name: `n${id}`, age: id, old: 'o' }));
    const rows = await fleet.rows(two);
    expect(rows).toEqual(rows.map((_, id) => ({ id, fullName: `n${id}`, years: id, email: null })));
    expect(rows).toHaveLength(60);
    const [warning, ...others] = two.log.filter(({ level }) => level === 'warn');
    expect(others).toEqual([]);
    expect(warning?.message).toMatch(
      /Field old \(varchar\) is dropped.* Field fullName is field name under another name/,
    );
    expect(warning?.message).not.toMatch(/Field (name|age)/);
  });

  it('takes a field of another type along', async () => {
    const to = users(2, { id: uint32, label: varchar }, { renames: { label: 'n' } });
    const two = await migrated(users(1, { id: uint32, n: uint32 }), to, (id) => ({ id, n: id * 3 }));
    expect(await fleet.row(two, 7)).toEqual({ id: 7, label: '21' });
  });

  it('may name the primary key', async () => {
    const to = users(2, { key: varchar, n: uint32 }, { primaryKey: 'key', renames: { key: 'id' } });
    const two = await migrated(users(1, { id: uint32, n: uint32 }), to, (id) => ({ id, n: id }));
    expect(await fleet.row(two, '7')).toEqual({ key: '7', n: 7 });
  });

  it('goes over several versions, one by one or at once', async () => {
    const [a, b, c] = [
      { id: uint32, a: varchar },
      { id: uint32, b: varchar },
      { id: uint32, c: varchar },
    ];
    const versions = [
      users(1, a),
      users(2, b, { renames: { b: 'a' } }),
      users(3, c, { renames: { c: ['b', 'a'] } }),
    ] as const;
    const two = await migrated(versions[0], versions[1], (id) => ({ id, a: `a${id}` }));
    await fleet.run(two.db.stop());
    const three = await fleet.open(3, versions);
    await fleet.run(three.db.setTargetSchemaVersion('users', 3));
    await fleet.until(three, 'switched');
    expect(await fleet.row(three, 8)).toEqual({ id: 8, c: 'a8' });
    fleet = new Fleet();
    const atOnce = await migrated(versions[0], versions[2], (id) => ({ id, a: `a${id}` }));
    expect(await fleet.row(atOnce, 8)).toEqual({ id: 8, c: 'a8' });
  });

  it('keeps releases out that know of no other names', async () => {
    const one = await fleet.open(1, [users2]);
    await fleet.write(one, 'insert', [{ id: 1 }]);
    await fleet.run(one.db.checkpoint());
    expect((await fleet.block0()).format).toBe(renamesVersion);
  });
});

describe('names that do not go with the stored version', () => {
  const v1 = users(1, { id: uint32, name: varchar, title: varchar });
  it.each<[string, SchemaDefinition, RegExp]>([
    [
      'a name that is not there',
      users(3, { id: uint32, c: varchar }, { renames: { c: 'b' } }),
      /field 'c' was called 'b', and version 1, which is stored, has no such field: give the name that it has there as well/,
    ],
    [
      'both names',
      users(2, { id: uint32, title: varchar }, { renames: { title: 'name' } }),
      /has 'title' and 'name': one of them would be lost/,
    ],
    [
      'two old names',
      users(2, { id: uint32, t: varchar }, { renames: { t: ['name', 'title'] } }),
      /has 'name' and 'title': one of them would be lost/,
    ],
    [
      'another primary key',
      users(2, { key: varchar, title: varchar }, { primaryKey: 'key', renames: { key: 'name' } }),
      /the primary key of a row stays/,
    ],
    [
      'the primary key for another field',
      users(2, { key: varchar, was: uint32, title: varchar }, { primaryKey: 'key', renames: { was: 'id' } }),
      /the primary key of a row stays/,
    ],
  ])('are refused before anything is written: %s', async (_, to, message) => {
    const one = await fleet.open(1, [v1]);
    await fleet.write(one, 'insert', [{ id: 1, name: 'Ann', title: 'Dr' }]);
    await fleet.run(one.db.checkpoint());
    await fleet.run(one.db.stop());
    const before = await fleet.block0();
    await expect(fleet.open(2, [to])).rejects.toThrow(message);
    const { tables, migrations, generation } = await fleet.block0();
    expect({ tables, migrations, generation }).toEqual({
      tables: before.tables,
      migrations: before.migrations,
      generation: before.generation,
    });
    const late = await fleet.open(3, []);
    expect(() => late.db.registerSchema(to)).toThrow(InvalidSchemaError);
    // A database without an older version opens.
    fleet = new Fleet();
    const fresh = await fleet.open(1, [to]);
    await fleet.write(fresh, 'insert', [
      { [to.primaryKey as string]: 1, ...(to.primaryKey === 'key' && { key: 'x' }) },
    ]);
    expect(await fleet.rows(fresh)).toHaveLength(1);
  });
});
