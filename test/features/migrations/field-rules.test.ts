/** Rules for values beyond their types: `required`, `oneOf` and generated defaults, in one version and between two. */
import { beforeEach, describe, expect, it } from 'vitest';
import { EncodeError, InvalidSchemaError } from '../../../src/base/errors.ts';
import { Types } from '../../../src/format/types.ts';
import { toStoredSchema } from '../../../src/schema/schema.ts';
import type { SchemaDefinition } from '../../../src/schema/schema.ts';
import { Fleet } from './fleet.ts';
import type { Member } from './fleet.ts';
import type { Row } from './versions.ts';

const uint32 = { typeId: Types.uint32 };
const varchar = { typeId: Types.varchar };
const status = { typeId: Types.varchar, oneOf: ['draft', 'live'] };

function users(version: number, fields: SchemaDefinition['fields'], more: Partial<SchemaDefinition> = {}) {
  return {
    name: 'users',
    version,
    fields: { id: uint32, ...fields },
    primaryKey: 'id',
    ...more,
  } satisfies SchemaDefinition;
}

let fleet: Fleet;

beforeEach(() => {
  fleet = new Fleet();
});

describe('a definition with rules', () => {
  it.each<[string, object, RegExp]>([
    ['required that is no boolean', { ...varchar, required: 'yes' }, /`required` of field 'x' must be true or false/],
    ['oneOf that is no array', { ...varchar, oneOf: 'draft' }, /`oneOf` of field 'x' must be an array/],
    ['no values', { ...varchar, oneOf: [] }, /must be an array of 1 to 1000 values, not an array of 0/],
    ['a value of another type', { ...varchar, oneOf: ['a', 1] }, /`oneOf` of field 'x'/],
    ['null', { ...varchar, oneOf: ['a', null] }, /`oneOf` of field 'x'/],
    ['a value twice', { ...varchar, oneOf: ['a', 'b', 'a'] }, /lists 'a' twice/],
    ['an integer out of range', { typeId: Types.uint8, oneOf: [256] }, /`oneOf` of field 'x'/],
    ['values of a type without', { typeId: Types.float64, oneOf: [0.5] }, /is for integers, varchar and uuid/],
    ['a default that is none of them', { ...status, default: 'new' }, /'new', is none of its values: 'draft', 'live'/],
    ['an id as default beside them', { ...status, default: 'uuidv7' }, /is none of its values/],
    ['the time as the default of a number', { typeId: Types.int64, default: 'now' }, /The default of field 'x'/],
  ])('is refused for %s', (_, x, message) => {
    const read = () => toStoredSchema({ name: 't', version: 1, fields: { id: uint32, x }, primaryKey: 'id' });
    expect(read).toThrow(InvalidSchemaError);
    expect(read).toThrow(message);
  });

  it('is the same in any order of its values, and is read back unchanged', async () => {
    const fields = {
      status: { ...status, required: true, default: 'draft' },
      size: { typeId: Types.uint64, oneOf: [1n, 2n ** 60n] },
      made: { typeId: Types.timestamp, default: 'now' },
    } as const;
    const defined = users(1, fields);
    const one = await fleet.open(1, [defined]);
    await fleet.write(one, 'insert', [{ id: 1, size: 2n ** 60n }]);
    await fleet.run(one.db.checkpoint());
    const turned = users(1, { ...fields, status: { ...fields.status, oneOf: ['live', 'draft'] } });
    const two = await fleet.open(2, [turned]);
    expect(await fleet.run(two.db.tables())).toEqual([defined]);
    for (const other of [
      { ...status, default: 'draft' },
      { ...varchar, required: true, default: 'draft' },
    ]) {
      const three = await fleet.open(3, []);
      const differs = users(1, { ...fields, status: other });
      expect(() => three.db.registerSchema(differs)).toThrow(/is stored with another definition/);
      await fleet.run(three.db.stop());
    }
  });
});

describe('a row', () => {
  const table = users(1, {
    name: { ...varchar, required: true },
    status,
    size: { typeId: Types.int64, oneOf: [0n, -5n, 2n ** 62n], default: 0n },
    made: { typeId: Types.timestamp, default: 'now', required: true },
    photo: { typeId: Types.blob, required: true },
  });
  let one: Member;

  beforeEach(async () => {
    one = await fleet.open(1, [table]);
    await fleet.write(one, 'insert', [{ id: 1, name: 'Ann', photo: one.db.Blob('x') }]);
  });

  it.each<[string, 'insert' | 'upsert' | 'update', Row, string, string]>([
    ['inserted without a value', 'insert', { id: 2 }, 'name', 'it is required, and has no value'],
    ['inserted with null', 'insert', { id: 2, name: null }, 'name', 'it is required, and has no value'],
    ['upserted without a value', 'upsert', { id: 1 }, 'name', 'it is required, and has no value'],
    ['updated to null', 'update', { id: 1, name: null }, 'name', 'it is required, and has no value'],
    ['inserted without a blob', 'insert', { id: 2, name: 'Bob' }, 'photo', 'it is required, and has no value'],
    ['whose default is set aside', 'update', { id: 1, made: null }, 'made', 'it is required, and has no value'],
    [
      'of another value',
      'update',
      { id: 1, status: 'gone' },
      'status',
      "'gone' is none of its values: 'draft', 'live'",
    ],
    [
      'of another 64-bit integer',
      'update',
      { id: 1, size: 5 },
      'size',
      '5n is none of its values: 0, -5, 4611686018427387904',
    ],
  ])('%s is refused, and nothing of its batch is written', async (_, kind, row, field, message) => {
    const batch = one.db.batch();
    void batch.update('users', { id: 1, status: 'live' });
    const refused = batch[kind]('users', row);
    await expect(refused).rejects.toBeInstanceOf(EncodeError);
    await expect(refused).rejects.toMatchObject({ code: 'ENCODE', table: 'users', field });
    await expect(refused).rejects.toThrow(`Cannot store field '${field}' of table 'users': ${message}`);
    expect(await fleet.failure(batch.flush())).toMatchObject({ code: 'ENCODE' });
    expect(await fleet.row(one, 1)).toMatchObject({ name: 'Ann', status: null, size: 0n });
    expect(await fleet.rows(one)).toHaveLength(1);
  });

  it('that keeps to the rules is stored, and may be null where it need not be anything', async () => {
    await fleet.write(one, 'update', [{ id: 1, status: 'draft', size: -5 }]);
    expect(await fleet.row(one, 1)).toMatchObject({ status: 'draft', size: -5n });
    await fleet.write(one, 'update', [{ id: 1, status: null, size: null }]);
    expect(await fleet.row(one, 1)).toMatchObject({ name: 'Ann', status: null, size: null });
    await fleet.write(one, 'update', [{ id: 1, size: 2n ** 62n }]);
    expect(await fleet.row(one, 1)).toMatchObject({ name: 'Ann', size: 2n ** 62n });
  });

  it('is given the time of its insert, by the clock of the process, and keeps it', async () => {
    const before = one.environment.now();
    const batch = one.db.batch();
    void batch.insert('users', { id: 2, name: 'Bob', photo: one.db.Blob('y') });
    await fleet.advance(5000);
    await fleet.run(batch.flush());
    const made = (await fleet.row(one, 2))?.['made'];
    expect(made).toEqual(new Date(before));
    await fleet.write(one, 'update', [{ id: 2, name: 'Bert' }]);
    expect((await fleet.row(one, 2))?.['made']).toEqual(made);
  });

  it('follows the rules in a trigger, too', async () => {
    one.db.registerTrigger('users', 'insert', async (row, batch) => {
      await batch.update('users', { id: row['id'], status: 'gone' });
    });
    const batch = one.db.batch();
    const inserted = batch.insert('users', { id: 2, name: 'Bob', photo: one.db.Blob('y') });
    await expect(inserted).rejects.toMatchObject({ code: 'ENCODE', field: 'status' });
  });
});

describe('a field that becomes required', () => {
  const before = users(1, { name: varchar });
  const rows = [{ id: 1, name: 'Ann' }, { id: 2 }];

  async function migrated(to: SchemaDefinition): Promise<Member> {
    const one = await fleet.open(1, [before]);
    await fleet.write(one, 'insert', rows);
    await fleet.run(one.db.checkpoint());
    const two = await fleet.open(2, [to]);
    await fleet.run(two.db.setTargetSchemaVersion('users', 2));
    return two;
  }

  it('has its default where there was nothing, in rows of the old version too', async () => {
    const two = await migrated(users(2, { name: { ...varchar, required: true, default: '?' } }));
    await fleet.until(two, 'switched');
    const one = await fleet.open(3, [before]);
    await fleet.write(one, 'insert', [{ id: 3 }]);
    await fleet.write(one, 'update', [{ id: 1, name: null }]);
    expect((await fleet.rows(two)).map((row) => row['name'])).toEqual(['?', '?', '?']);
    await fleet.run(one.db.stop());
    await fleet.untilRetired(two, true);
    expect((await fleet.rows(two)).map((row) => row['name'])).toEqual(['?', '?', '?']);
    expect(await fleet.findings(two)).toEqual([]);
  });

  it('has the value that `migrate` makes', async () => {
    const migrate = (row: Row): Row => ({ ...row, name: row['name'] ?? `user ${String(row['id'])}` });
    const two = await migrated(users(2, { name: { ...varchar, required: true } }, { migrate }));
    await fleet.until(two, 'switched');
    expect((await fleet.rows(two)).map((row) => row['name'])).toEqual(['Ann', 'user 2']);
  });

  it.each<[string, Partial<SchemaDefinition>, RegExp]>([
    ['neither', {}, /Field 'name': it is required, and has no value; give it one by a constant `default` of version 2/],
    ['a `migrate` that gives null', { migrate: (row) => ({ ...row, name: null }) }, /in its `migrate`/],
  ])('stops the migration with %s, and leaves the old version in force', async (_, more, message) => {
    const two = await migrated(users(2, { name: { ...varchar, required: true } }, more));
    const { blockers } = await fleet.until(two, 'blocked');
    expect(blockers[0]).toMatch(message);
    const one = await fleet.open(3, [before]);
    expect(await fleet.rows(one)).toEqual([
      { id: 1, name: 'Ann' },
      { id: 2, name: null },
    ]);
    await fleet.write(one, 'update', [{ id: 2, name: 'Bob' }]);
    expect(await fleet.rows(one)).toHaveLength(2);
  });
});

describe('a field that a later version does not require', () => {
  const required = users(1, { name: { ...varchar, required: true }, status });

  it('is refused to be null while the old version is in force', async () => {
    const one = await fleet.open(1, [required]);
    await fleet.write(one, 'insert', [{ id: 1, name: 'Ann', status: 'draft' }]);
    const two = await fleet.open(2, [users(2, { name: varchar, status: varchar })]);
    const failure = await fleet.failure(fleet.write(two, 'insert', [{ id: 2 }]));
    expect(failure).toMatchObject({ code: 'ENCODE', field: 'name' });
    expect(failure).toMatchObject({
      message: expect.stringMatching(/Version 1 .* requires field 'name'.*finishMigration/) as string,
    });
    // As for values that a type cannot hold: null.
    await fleet.write(two, 'update', [{ id: 1, status: 'archived' }]);
    expect(await fleet.row(one, 1)).toEqual({ id: 1, name: 'Ann', status: null });
    expect(await fleet.row(two, 1)).toEqual({ id: 1, name: 'Ann', status: 'archived' });
  });

  it('has the default of the old version there', async () => {
    const one = await fleet.open(1, [users(1, { name: { ...varchar, required: true, default: '?' } })]);
    await fleet.write(one, 'insert', [{ id: 1, name: 'Ann' }]);
    const two = await fleet.open(2, [users(2, { name: varchar })]);
    await fleet.write(two, 'update', [{ id: 1, name: null }]);
    expect(await fleet.row(one, 1)).toEqual({ id: 1, name: '?' });
    expect(await fleet.row(two, 1)).toEqual({ id: 1, name: null });
  });
});
